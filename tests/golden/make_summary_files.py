#!/usr/bin/env python3
"""Writes summary_files.pb and summary_files.txt: a graph whose nodes write summaries to an event file, and the events that
TensorFlow finds there, without their times. tests/test_ops_summary.c runs the same nodes and compares.

Pictures are left out of the events that are compared: TensorFlow packs them otherwise.
"""
import glob
import os
import shutil
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from tensorflow.core.util import event_pb2
from tensorflow.python.ops import summary_ops_v2
from tensorflow.python.summary.summary_iterator import summary_iterator

tf.disable_eager_execution()
tf.enable_resource_variables()
tf.enable_control_flow_v2()
HERE = os.path.dirname(os.path.abspath(__file__))
raw = tf.raw_ops


def build():
    """Gives the groups of nodes that are run one after the other."""
    folder = tf.placeholder(tf.string, [], "folder")
    step = tf.get_variable("step", [], tf.int64, initializer=tf.zeros_initializer())
    recorded = tf.placeholder(tf.bool, [], "recorded")
    writer = tf2.summary.create_file_writer(folder, max_queue=100, flush_millis=10 ** 6, filename_suffix=".v2")
    handle = writer._resource
    floats = np.float32([0, 1, -1, 0.5, 1e-13, -3e21, 2.5, 2.5])

    @tf2.function
    def train(x):
        with writer.as_default(step=step), tf2.summary.record_if(lambda: recorded):
            tf2.summary.write("inside", x * 2, metadata=None)
            step.assign_add(1)
            return x + 1

    with writer.as_default(step=step):
        ops = [
            raw.WriteScalarSummary(writer=handle, step=step, tag="scalar", value=np.float32(2.5)),
            raw.WriteScalarSummary(writer=handle, step=step, tag="whole", value=np.int32(-7)),
            raw.WriteHistogramSummary(writer=handle, step=step, tag="histogram", values=floats),
            raw.WriteHistogramSummary(writer=handle, step=step, tag="truths", values=np.array([True, False, True])),
            raw.WriteAudioSummary(writer=handle, step=step, tag="audio", tensor=np.float32([[0, 0.5, -1, 2]]),
                                  sample_rate=8000.0, max_outputs=1),
            raw.WriteSummary(writer=handle, step=step, tensor=np.float32([[1, 2], [3, 4]]), tag="tensor",
                             summary_metadata=tf.SummaryMetadata(display_name="shown").SerializeToString()),
            raw.WriteSummary(writer=handle, step=step, tensor=np.array([b"some", b"words"]), tag="text", summary_metadata=b""),
            raw.WriteRawProtoSummary(writer=handle, step=step, tensor=[
                tf.Summary(value=[tf.Summary.Value(tag="raw", simple_value=3)]).SerializeToString(),
                tf.Summary(value=[tf.Summary.Value(tag="rare", simple_value=4)]).SerializeToString()]),
            raw.WriteGraphSummary(writer=handle, step=step, tensor=tf.GraphDef(
                node=[tf.NodeDef(name="a", op="NoOp")]).SerializeToString()),
            raw.ImportEvent(writer=handle, event=tf.Event(wall_time=1, step=9, file_version="other").SerializeToString()),
        ]
        for i, op in enumerate(ops):
            tf.group(op, name="write_%d" % i)
        picture = raw.WriteImageSummary(writer=handle, step=step, tag="image", tensor=np.float32([[[[0], [np.nan]]]]),
                                        bad_color=np.uint8([9]), max_images=1)
        tf.group(picture, name="write_picture")
        tf.identity(train(tf.constant(3.0)), name="train")
        tf.group(writer.init(), name="init")
        tf.group(writer.flush(), name="flush")
        tf.group(writer.close(), name="close")
        tf.group(step.initializer, name="first")
    return len(ops)


def main():
    folder = tempfile.mkdtemp()
    with tf.Graph().as_default() as graph, tf.Session() as session:
        count = build()
        node = graph.get_operation_by_name
        session.run([node("first"), node("init")], {"folder:0": folder})
        for i in range(count):
            session.run(node("write_%d" % i))
        for recorded in (True, False, True):
            session.run("train:0", {"recorded:0": recorded})
        session.run(node("close"))
        definition = graph.as_graph_def()
    (path,) = glob.glob(os.path.join(folder, "*"))
    assert path.endswith(".v2")
    with open(os.path.join(HERE, "summary_files.pb"), "wb") as file:
        file.write(definition.SerializeToString(deterministic=True))
    with open(os.path.join(HERE, "summary_files.txt"), "w") as file:
        file.write("# Made by make_summary_files.py with TensorFlow %s.\n" % tf.__version__)
        for i, event in enumerate(summary_iterator(path)):
            event.ClearField("wall_time")
            event.ClearField("source_metadata")
            if i:
                file.write(event.SerializeToString(deterministic=True).hex() + "\n")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
