#!/usr/bin/env python3
"""Writes train.h: twenty steps of a small network on two towers, trained by TensorFlow with every optimizer, for
tests/test_train.c, which builds the same.

relu([4,3] x [3,5] + [5]) x [5,1], mean square, and weight decay; each tower has half of eight examples.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
STEPS = 20
X = np.array([[(3 * i + 5 * j) % 7 - 3 for j in range(3)] for i in range(8)], np.float32) / 4
Y = np.array([[(2 * i) % 5 - 2] for i in range(8)], np.float32) / 2


def tower_loss(x, y):
    w1 = tf.get_variable("w1", [3, 5], initializer=tf.truncated_normal_initializer(stddev=0.5, seed=11))
    b1 = tf.get_variable("b1", [5], initializer=tf.constant_initializer(0.1))
    w2 = tf.get_variable("w2", [5, 1], initializer=tf.random_normal_initializer(stddev=0.5, seed=12))
    hidden = tf.nn.relu(tf.matmul(x, w1) + b1)
    return tf.reduce_mean(tf.square(tf.matmul(hidden, w2) - y)) + 0.01 * tf.nn.l2_loss(w1)


def average_gradients(tower_grads):
    average = []
    for pairs in zip(*tower_grads):
        stacked = tf.concat(axis=0, values=[tf.expand_dims(g, 0) for g, _ in pairs])
        average.append((tf.reduce_mean(stacked, 0), pairs[0][1]))
    return average


def train(make_optimizer):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(7)
        with tf.variable_scope("", use_resource=True):
            step = tf.train.get_or_create_global_step()
            optimizer = make_optimizer(step)
            losses, grads = [], []
            for i in range(2):
                with tf.name_scope("tower_%d" % i):
                    losses.append(tower_loss(X[4 * i:4 * i + 4], Y[4 * i:4 * i + 4]))
                    grads.append(optimizer.compute_gradients(losses[i]))
                    tf.get_variable_scope().reuse_variables()
        apply = optimizer.apply_gradients(average_gradients(grads), global_step=step)
        ema = tf.train.ExponentialMovingAverage(0.9, step)
        with tf.control_dependencies([apply]):
            update = ema.apply(tf.trainable_variables())
        session.run(tf.global_variables_initializer())
        trace = [session.run(losses + [update])[:2] for _ in range(STEPS)]
        variables = [session.run(v).ravel() for v in tf.trainable_variables()]
        averages = [session.run(ema.average(v)).ravel() for v in tf.trainable_variables()]
        return np.array(trace), np.concatenate(variables), np.concatenate(averages)


def decay(step):
    return tf.train.exponential_decay(0.2, step, 6, 0.5, staircase=True)


def smooth_decay(step):
    return tf.train.exponential_decay(0.2, step, 6, 0.5)


def pieces(step):
    return tf.train.piecewise_constant(step, [4, 11], [0.05, 0.02, 0.01])


OPTIMIZERS = {
    "gradient_descent": lambda step: tf.train.GradientDescentOptimizer(decay(step)),
    "smooth": lambda step: tf.train.GradientDescentOptimizer(smooth_decay(step)),
    "momentum": lambda step: tf.train.MomentumOptimizer(pieces(step), 0.9),
    "nesterov": lambda step: tf.train.MomentumOptimizer(0.02, 0.9, use_nesterov=True),
    "adam": lambda step: tf.train.AdamOptimizer(0.01),
    "rms_prop": lambda step: tf.train.RMSPropOptimizer(0.01, 0.9, 0.5),
}


def array(values):
    return "{" + ", ".join("%.9g" % v for v in values.ravel()) + "}"


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.h"), "w") as out:
    out.write(f"/* train.h - made by make_train.py with TensorFlow {tf.__version__}; do not edit. */\n\n"
              "static const struct golden_training {\n    const char *name;\n"
              f"    float losses[2 * {STEPS}];          /* tower by tower, step by step */\n"
              "    float variables[25], averages[25]; /* w1, b1, w2 in the end */\n"
              "} golden_trainings[] = {\n")
    for name, make in OPTIMIZERS.items():
        losses, variables, averages = train(make)
        out.write(f'    {{"{name}",\n     {array(losses)},\n     {array(variables)},\n     {array(averages)}}},\n')
    out.write("};\n")
