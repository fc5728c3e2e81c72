#!/usr/bin/env python3
"""Writes sparse.h: a table of rows after steps of gradient descent that look some of them up, as TensorFlow computes it.
tests/test_train.c builds the same with tw_gather()."""
import os

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 3

table = tf.get_variable("table", initializer=np.arange(12, dtype=np.float32).reshape(6, 2) / 7, use_resource=True)
rows = tf.nn.embedding_lookup(table, [4, 1, 4, 4])
loss = tf.reduce_sum(tf.square(rows) * [[0.3], [0.7], [1.1], [0.9]])
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(STEPS):
        session.run(train)
    values = session.run(table).ravel()
with open(os.path.join(HERE, "sparse.h"), "w") as file:
    file.write("/* sparse.h - a table after %d steps, made by make_sparse.py with TensorFlow %s. */\n" % (STEPS, tf.__version__))
    file.write("static const float golden_table[] = {%s};\n" % ", ".join(float(v).hex() + "f" for v in values))
