#!/usr/bin/env python3
"""Writes random.h: what TensorFlow's random ops draw, for test_ops_random.c.

Every op runs twice in one session, so that the second run shows where the first one left the stream.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
SEED, SEED2 = 87654321, 1


def fnv(data):
    """FNV-1a over the bytes of an array."""
    value = 14695981039346656037
    for byte in data.tobytes():
        value = (value ^ byte) * 1099511628211 % 2**64
    return value


def runs(build):
    with tf.Graph().as_default(), tf.Session() as session:
        op = build()
        return [session.run(op) for _ in range(2)]


def numbers(values):
    return ", ".join(repr(float(v)) for v in np.asarray(values, np.float64).ravel())


def case(name, op, dtype, build, head=11):
    """The first and last values of both runs, and a hash of all of the second."""
    first, second = runs(build)
    rows.append(f'    {{"{name}", "{op}", TW_{dtype.upper()}, {first.size}, {{{numbers(first.ravel()[:head])}}},\n'
                f'     {{{numbers(second.ravel()[:head])}}}, {{{numbers(second.ravel()[-3:])}}},\n'
                f'     UINT64_C({fnv(second)})}},')


rows = []
raw = tf.raw_ops
for dtype in ("float32", "float64", "float16", "bfloat16"):
    for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
        case(f"{op} {dtype}", op, dtype,
             lambda: getattr(raw, op)(shape=[4999], dtype=dtype, seed=SEED, seed2=SEED2))
for dtype in ("int32", "int64"):
    low, high = (-5, 1000) if dtype == "int32" else (-(2**40), 2**41)
    case(f"RandomUniformInt {dtype}", "RandomUniformInt", dtype,
         lambda: raw.RandomUniformInt(shape=[4999], minval=tf.constant(low, dtype), maxval=tf.constant(high, dtype),
                                      seed=SEED, seed2=SEED2))
case("RandomShuffle vector", "RandomShuffle", "int32",
     lambda: raw.RandomShuffle(value=tf.range(1001), seed=SEED, seed2=SEED2))
case("RandomShuffle rows", "RandomShuffle", "float32",
     lambda: raw.RandomShuffle(value=tf.reshape(tf.range(3 * 101, dtype=tf.float32), [101, 3]), seed=SEED,
                               seed2=SEED2))
case("Multinomial", "Multinomial", "int64",
     lambda: raw.Multinomial(logits=tf.constant([[0.0, 1.0, -1.0, 2.0], [3.0, 0.5, 0.5, -np.inf]]), num_samples=7,
                             seed=SEED, seed2=SEED2))

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "random.h"), "w") as out:
    out.write(f"/* random.h - made by make_random.py with TensorFlow {tf.__version__}; do not edit. */\n\n"
              "static const struct drawn {\n"
              "    const char *name, *op;\n    tw_dtype dtype;\n    int64_t elements;\n"
              "    double first[11], second[11], last[3]; /* of the first run, of the second */\n"
              "    uint64_t hash;                         /* FNV-1a of the second run's bytes */\n"
              "} golden_random[] = {\n")
    out.write("\n".join(rows) + "\n};\n")
