#!/usr/bin/env python3
"""Writes initial_values.h: what TensorFlow's initializers give for graph and op seeds, for
tests/test_initial_values.c."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
INT32_MAX = 2**31 - 1
# kind, a, b, initializer of a seed
INITIALIZERS = [
    ("UNIFORM", -0.5, 1.25, lambda seed: tf.random_uniform_initializer(-0.5, 1.25, seed)),
    ("NORMAL", 0.25, 2.0, lambda seed: tf.random_normal_initializer(0.25, 2.0, seed)),
    ("TRUNCATED_NORMAL", 0.0, 0.05, lambda seed: tf.truncated_normal_initializer(0.0, 0.05, seed)),
    ("TRUNCATED_NORMAL", 0.5, 0.04, lambda seed: tf.truncated_normal_initializer(0.5, 0.04, seed)),
    ("GLOROT_UNIFORM", 0.0, 0.0, lambda seed: tf.glorot_uniform_initializer(seed)),
]
SHAPES = [(5, 5, 3, 64), (384, 192), (7,)]
SEEDS = [(None, 1), (0, 1), (1, 2), (-5, -6), (2**40 + 3, 2**33), (INT32_MAX, INT32_MAX)]  # of graph, of op


def fnv(data):
    """FNV-1a over the bytes of an array."""
    value = 14695981039346656037
    for byte in data.tobytes():
        value = (value ^ byte) * 1099511628211 % 2**64
    return value


rows = []
for number, (kind, a, b, initializer) in enumerate(INITIALIZERS):
    for at, shape in enumerate(SHAPES):
        graph_seed, op_seed = SEEDS[(3 * number + at) % len(SEEDS)]
        with tf.Graph().as_default(), tf.Session() as session:
            if graph_seed is not None:
                tf.set_random_seed(graph_seed)
            v = tf.get_variable("v", shape, tf.float32, initializer(op_seed), use_resource=True)
            session.run(v.initializer)
            values = session.run(v)
        rows.append("    {{TW_INIT_%s, %#gf, %#gf, INT64_C(%d)}, {%d, {%s}}, %s, INT64_C(%d),\n     {%s}, UINT64_C(%d)},"
                    % (kind, a, b, op_seed, len(shape), ", ".join(map(str, shape)),
                       "false" if graph_seed is None else "true", graph_seed or 0,
                       ", ".join("%.9g" % values.ravel()[k * (values.size - 1) // 7] for k in range(8)), fnv(values)))

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "initial_values.h"), "w") as out:
    out.write("/* initial_values.h - made by make_initial_values.py with TensorFlow %s; do not edit. */\n\n"
              "static const struct initial {\n"
              "    tw_initializer initializer;\n    tw_shape shape;\n    bool has_seed; /* the graph */\n"
              "    int64_t graph_seed;\n    float samples[8]; /* at k * (elements - 1) / 7 */\n"
              "    uint64_t hash;    /* FNV-1a of all bytes */\n"
              "} golden_initial_values[] = {\n%s\n};\n" % (tf.__version__, "\n".join(rows)))
