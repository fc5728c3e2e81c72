#!/usr/bin/env python3
"""Writes graph.pb, a graph as TensorFlow writes it, and graph.h, what TensorFlow computes with it; for
tests/test_graph_def.c. The nodes lie in the file in no order."""
import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
random = np.random.default_rng(8)
folder = os.path.dirname(os.path.abspath(__file__))


def eighths(*shape):
    return (random.integers(-8, 9, shape) / 8).astype(np.float32)


def build():
    images = tf.placeholder(tf.float32, [None, 6, 6, 2], "images")
    labels = tf.placeholder(tf.int32, [None], "labels")
    with tf.device("/cpu:0"), tf.variable_scope("net"):
        filters = tf.get_variable("filters", initializer=eighths(3, 3, 2, 4), use_resource=True)
        biases = tf.get_variable("biases", [4], initializer=tf.constant_initializer(0.125), use_resource=True)
    with tf.device("/device:GPU:1"):
        x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(images, filters, [1, 1, 1, 1], "SAME"), biases))
    x = tf.nn.lrn(tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID"), 2, 1.0, 0.5, 0.75)
    left, right = tf.split(x, 2, axis=3)
    x = tf.concat([right, tf.nn.avg_pool(left, [1, 1, 1, 1], [1, 1, 1, 1], "SAME")], 3)
    with tf.colocate_with(x.op, ignore_existing=True):
        x = tf.reshape(x, [-1, 36])
    logits = tf.matmul(x, tf.constant(eighths(3, 36), name="dense"), transpose_b=True, name="logits")
    tf.nn.softmax(logits, name="probabilities")
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits), name="loss")
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss, var_list=[filters, biases], name="train")
    with tf.control_dependencies([train]):
        tf.identity(loss, name="loss_after_training")
    tf.global_variables_initializer()
    constants()


def constants():
    """All types, in all the ways in which values can be written."""
    with tf.name_scope("constants"):
        for kind in ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8"):
            tf.cast(tf.constant([[3, 1, 2]], kind), tf.float32, name=kind)
            tf.cast(tf.constant(5, kind), tf.float32, name=kind + "_scalar")
            tf.cast(tf.fill([2], tf.constant(7, kind)), tf.float32, name=kind + "_filled")
        tf.cast(tf.constant([True, False, True]), tf.float32, name="bool")
        tf.identity(tf.constant([], tf.float32, [0, 3]), name="empty")
        tf.identity(tf.constant(np.array([b"a\0b", b""], object)), name="strings")
        tf.identity(tf.constant(np.array([4, 6, 6, 6, 6, 6], np.float32)), name="repeated")
        tf.identity(tf.constant(2.5, tf.float32, [2, 2]), name="same")


def shorten(definition):
    """Writes one constant as a list whose last value is repeated."""
    for node in definition.node:
        if node.op == "Const" and node.attr["value"].tensor.tensor_content == np.array([4] + [6] * 5, "<f4").tobytes():
            node.attr["value"].tensor.tensor_content = b""
            node.attr["value"].tensor.float_val.extend([4, 6])
            return
    raise ValueError("the constant is not there")


def numbers(values):
    return "{" + ", ".join("%.9g" % v for v in np.ravel(values)) + "}" if np.size(values) else "{0}"


with tf.Graph().as_default() as graph:
    build()
    definition = graph.as_graph_def()
    shorten(definition)
nodes = list(definition.node)
del definition.node[:]
definition.node.extend(nodes[i] for i in random.permutation(len(nodes)))
with open(os.path.join(folder, "graph.pb"), "wb") as file:
    file.write(definition.SerializeToString(deterministic=True))

out = ["/* graph.h - made by make_graph.py with TensorFlow %s; do not edit. */" % tf.__version__, ""]
with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
    tf.import_graph_def(definition, name="")
    fed = eighths(2, 6, 6, 2)
    feeds = {"images:0": fed, "labels:0": [2, 0]}
    session.run("init")
    gradient = [n.name for n in definition.node if n.op == "Conv2DBackpropFilter"][0] + ":0"
    probabilities, loss, gradients = session.run(["probabilities:0", "loss:0", gradient], feeds)
    session.run("loss_after_training:0", feeds)
    after = session.run(["net/filters/Read/ReadVariableOp:0", "net/biases/Read/ReadVariableOp:0", "loss:0"], feeds)
    out += ["static const char golden_gradient[] = \"%s\";" % gradient[:-2],
            "enum { GOLDEN_NODES = %d };" % len(nodes),
            "static const float golden_images[2 * 6 * 6 * 2] = %s;" % numbers(fed),
            "static const int32_t golden_labels[2] = {2, 0};",
            "static const float golden_probabilities[6] = %s;" % numbers(probabilities),
            "static const float golden_losses[2] = %s; /* before and after one step */" % numbers([loss, after[2]]),
            "static const float golden_gradients[3 * 3 * 2 * 4] = %s;" % numbers(gradients),
            "static const float golden_filters[3 * 3 * 2 * 4] = %s; /* after the step */" % numbers(after[0]),
            "static const float golden_biases[4] = %s;" % numbers(after[1]),
            "static const struct {", "    const char *name;", "    int count;", "    float values[6];",
            "} golden_constants[] = {"]
    for node in definition.node:
        if node.name.startswith("constants/") and node.op in ("Cast", "Identity") and "strings" not in node.name:
            values = session.run(node.name + ":0")
            out.append('    {"%s", %d, %s},' % (node.name, values.size, numbers(values)))
    out.append("};")
with open(os.path.join(folder, "graph.h"), "w") as file:
    file.write("\n".join(out) + "\n")
