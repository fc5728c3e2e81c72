"""Writes golden files of small programs that TensorFlow exported and ran, for tests/test_shapes.c. One thing a line:

    program NAME HEX             a GraphDef, in hexadecimal
    gradient LOSS X              Tower is to differentiate; what it gives is fetched as "gradient"
    init OP                      an operation to be run first
    run FETCH FETCH ...          what is fetched: "name:0" a tensor, "name" an operation that is only run
    feed NAME TYPE DIMS VALUES   of the run, as in tests/op_testing.h
    out TYPE DIMS VALUES         of the tensors fetched, in order
    fails WORDS                  instead: the run fails, and the message has these words

    from graph_cases import begin, program
    begin("shapes.txt", __file__, 7)
    program("where", lambda: [tf.where(tf.placeholder(tf.float32, [None], name="x"))], {"x": f32([0, 1])})
"""
import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf
from op_cases import NAMES, number

tf.disable_eager_execution()
tf.disable_resource_variables()
tf.disable_control_flow_v2()
raw = tf.raw_ops
random = np.random.default_rng()
out = None


def begin(name, script, seed):
    """Opens the golden file that the script writes."""
    global out
    out = open(os.path.join(os.path.dirname(os.path.abspath(script)), name), "w")
    out.write("# Made by %s with TensorFlow %s; the format is described in graph_cases.py.\n"
              % (os.path.basename(script), tf.__version__))
    reseed(seed)


def reseed(seed):
    """What is drawn from here on depends on nothing that stands before."""
    random.bit_generator.state = np.random.default_rng(seed).bit_generator.state


def tensor_text(value):
    value = np.asarray(value, object if isinstance(value, bytes) else None)  # else zeros at the end are lost
    name = "string" if value.dtype.kind in "SO" else NAMES.get(value.dtype.name, value.dtype.name)
    dims = ",".join(str(d) for d in value.shape) or "scalar"
    return " ".join([name, dims] + [number(x) for x in value.ravel()])


def program(name, build, *runs, init=False, fetch_runs=None):
    """build() gives what is fetched, a list or a dict of lists by name; each run is a dict of feeds by name (or such a
    dict and the name of what is fetched, or words of the failure, or both)."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(11)
        fetches = build()
        start = tf.global_variables_initializer() if init else None
        fetches = fetches if isinstance(fetches, dict) else {"": list(fetches)}
        out.write("program %s %s\n" % (name, graph.as_graph_def().SerializeToString(deterministic=True).hex()))
        with tf.Session(graph=graph) as session:
            if init:
                session.run(start)
                out.write("init %s\n" % start.name)
            for run in runs:
                feeds, which, words = run, "", None
                if isinstance(run, tuple):
                    feeds = run[0]
                    which = run[1] if run[1] in fetches else ""
                    words = None if run[-1] in fetches else run[-1]
                wanted = fetches[which]
                out.write("run %s\n" % " ".join(f.name for f in wanted))
                for key, value in feeds.items():
                    out.write("feed %s %s\n" % (key, tensor_text(value)))
                try:
                    results = session.run(wanted, {key + ":0": value for key, value in feeds.items()})
                    assert words is None, name
                    for f, result in zip(wanted, results):
                        if not isinstance(f, tf.Operation):
                            out.write("out %s\n" % tensor_text(result))
                except tf.errors.OpError as error:
                    assert words is not None, name + ": " + error.message
                    out.write("fails %s\n" % words)


def eighths(*shape, dtype=np.float32):
    return (random.integers(-16, 17, shape) / 8).astype(dtype)


def words(*values):
    return np.array([v.encode() for v in values], object)


def holder(dtype, shape, name):
    return tf.placeholder(dtype, shape, name)


def differentiate(name, build, *runs):
    """build() gives an input and something made of it; the gradient of the sum of its squares is Tower's own."""
    with tf.Graph().as_default() as graph:
        x, y = build()
        loss = tf.reduce_sum(tf.cast(y * y, tf.float32), name="loss")
        out.write("program %s %s\n" % (name, graph.as_graph_def().SerializeToString(deterministic=True).hex()))
        out.write("gradient %s %s\n" % (loss.name, x.name))
        gradient = tf.convert_to_tensor(tf.gradients(loss, x)[0])
        with tf.Session(graph=graph) as session:
            for run in runs:
                out.write("run gradient\n")
                for key, value in run.items():
                    out.write("feed %s %s\n" % (key, tensor_text(value)))
                out.write("out %s\n" % tensor_text(session.run(gradient, {k + ":0": v for k, v in run.items()})))


def of(f, rank=2):
    def build():
        x = holder(tf.float32, None if rank is None else [None] * rank, "x")
        return x, f(x)
    return build


def once_more(name, build, *runs):
    """The gradient of the sum of squares of a gradient: second derivatives. In between is the first, by TensorFlow."""
    def first():
        x, y = build()
        return x, tf.gradients(tf.reduce_sum(y * y * 0.5 + y), x)[0]
    differentiate(name, first, *runs)
