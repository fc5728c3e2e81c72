#!/usr/bin/env python3
"""Writes tf1_saver.meta and the checkpoint tf1_saver: a graph of TensorFlow 1 with a Saver, a sharded one, a loop, and
nodes that Tower does not know, with what follows from them. tests/test_saver_ops.c saves and restores by it."""
import os

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.disable_resource_variables()
tf.disable_control_flow_v2()
HERE = os.path.dirname(os.path.abspath(__file__))

with tf.device("/cpu:0"):
    weights = tf.get_variable("weights", initializer=np.arange(6, dtype=np.float32).reshape(2, 3) / 4)
    steps = tf.get_variable("steps", initializer=np.int64(7), trainable=False)
    resource = tf.get_variable("resource", initializer=np.float64([1.5, -2.5]), use_resource=True)
total = tf.reduce_sum(weights, name="total")
tf.group(tf.assign_add(weights, tf.ones([2, 3])), tf.assign_add(steps, 1), resource.assign_add([1.0, 1.0]), name="train")
init = tf.global_variables_initializer()

coded = tf.strings.unicode_transcode(tf.constant("unknown"), "UTF-8", "UTF-16-BE", name="coded")
tf.strings.join([coded, "ly"], name="needs_coded")
tf.while_loop(lambda i: i < 3.0, lambda i: i + 1.0, [total], name="loop")
with tf.control_dependencies([coded]):
    tf.identity(total, name="after_coded")

tf.train.Saver(sharded=True, name="sharded")
saver = tf.train.Saver()
with tf.Session() as session:
    session.run(init)
    session.run("train")
    saver.save(session, os.path.join(HERE, "tf1_saver"), write_meta_graph=False, write_state=False)
meta = tf.train.export_meta_graph()
meta.meta_info_def.ClearField("stripped_op_list")  # more bytes than the graph
with open(os.path.join(HERE, "tf1_saver.meta"), "wb") as file:
    file.write(meta.SerializeToString(deterministic=True))
