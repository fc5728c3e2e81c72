#!/usr/bin/env python3
"""Writes nchw.meta and nchw.h: a small residual network on images in NCHW, as programs for cuDNN were written, and the
losses that TensorFlow computes with the same network on NHWC, since its CPU kernels take nothing else."""
import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.disable_resource_variables()
tf.disable_control_flow_v2()
HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 6


def numbers(shape, stream):
    count = int(np.prod(shape))
    i = np.arange(count, dtype=np.int64)
    return (((i * 7919 + stream * 104729) % 128 - 64) / 64).astype(np.float32).reshape(shape)


def build(layout):
    first = layout == "NCHW"
    channels, sides = (1, [2, 3]) if first else (3, [1, 2])
    order = lambda four: [four[0], four[3], four[1], four[2]] if first else four
    streams = iter(range(100))

    def conv(x, filters, size, stride, name):
        kernel = tf.get_variable(name, initializer=numbers((size, size, int(x.shape[channels]), filters), next(streams)) * 0.3)
        return tf.nn.conv2d(x, kernel, order([1, stride, stride, 1]), "SAME", data_format=layout)

    def norm(x, name):
        size = [int(x.shape[channels])]
        scale = tf.get_variable(name + "/scale", initializer=np.ones(size, np.float32))
        shift = tf.get_variable(name + "/shift", initializer=np.zeros(size, np.float32))
        y, _, _ = tf.nn.fused_batch_norm(x, scale, shift, epsilon=1e-3, data_format=layout)
        return y

    x = tf.constant(numbers((4, 9, 8, 3), 200), name="images")
    labels = tf.constant([0, 1, 2, 1])
    if first:
        x = tf.transpose(x, [0, 3, 1, 2])
    bias = tf.get_variable("bias", initializer=numbers((6,), 201))
    h = tf.nn.bias_add(conv(x, 6, 3, 1, "conv1"), bias, data_format=layout)
    h = tf.nn.max_pool(tf.nn.relu(h), order([1, 3, 3, 1]), order([1, 2, 2, 1]), "SAME", data_format=layout)
    shortcut = h
    h = tf.nn.relu(norm(conv(h, 8, 3, 2, "conv2"), "norm2"))
    h = conv(h, 8, 3, 1, "conv3")
    shortcut = tf.nn.avg_pool(shortcut, order([1, 2, 2, 1]), order([1, 2, 2, 1]), "SAME", data_format=layout)
    shortcut = tf.pad(shortcut, [[0, 0], [1, 1], [0, 0], [0, 0]] if first else [[0, 0], [0, 0], [0, 0], [1, 1]])
    h = tf.nn.relu(norm(h, "norm3") + shortcut) * tf.get_variable(
        "gain", initializer=np.linspace(0.5, 1.5, 8, dtype=np.float32).reshape((8, 1, 1) if first else (1, 1, 8)))
    h = tf.concat([h, -h, tf.sigmoid(h)], channels)
    h = tf.reduce_mean(h, sides)
    dense = tf.get_variable("dense", initializer=numbers((24, 3), 202))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.matmul(h, dense)),
                          name="loss")
    tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, name="train")
    tf.global_variables_initializer()
    return loss


with tf.Graph().as_default(), tf.Session() as session:
    loss = build("NHWC")
    session.run("init")
    losses = []
    for _ in range(STEPS):
        losses.append(session.run([loss, "train"])[0])
with tf.Graph().as_default():
    build("NCHW")
    meta = tf.train.export_meta_graph()
    meta.meta_info_def.ClearField("stripped_op_list")
    with open(os.path.join(HERE, "nchw.meta"), "wb") as file:
        file.write(meta.SerializeToString(deterministic=True))
with open(os.path.join(HERE, "nchw.h"), "w") as file:
    file.write("/* Made by make_nchw.py: losses of a network on NHWC; nchw.meta is the same on NCHW. */\n")
    file.write("static const float nchw_losses[] = {%s};\n" % ", ".join("%.9gf" % v for v in losses))
