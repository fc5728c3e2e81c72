"""Training steps of the CIFAR-10 tutorial's network in TensorFlow on the CPU; images are there already, made once.

    tensorflow_step.py [--threads N] [--dtype float32|bfloat16] [--steps N] [--xla]

One tf.function a step, NHWC, TensorFlow's own LRN. Prints one line of JSON."""
import argparse
import json
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import tensorflow as tf  # noqa: E402 (after the environment it reads)

BATCH, WARM_UP = 128, 6

p = argparse.ArgumentParser()
p.add_argument("--threads", type=int, default=2)
p.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
p.add_argument("--steps", type=int, default=20)
p.add_argument("--xla", action="store_true")
o = p.parse_args()
tf.config.threading.set_intra_op_parallelism_threads(o.threads)
tf.config.threading.set_inter_op_parallelism_threads(1)
tf.random.set_seed(0)
dtype = tf.as_dtype(o.dtype)

sizes = {"w1": ([5, 5, 3, 64], 0.05), "w2": ([5, 5, 64, 64], 0.05), "w3": ([2304, 384], 0.04), "w4": ([384, 192], 0.04),
         "w5": ([192, 10], 1 / 192)}
v = {n: tf.Variable(tf.random.truncated_normal(s, stddev=d)) for n, (s, d) in sizes.items()}
v |= {f"b{n[1]}": tf.Variable(tf.fill([s[-1]], 0.1)) for n, (s, d) in sizes.items()}
images = tf.random.normal([BATCH, 24, 24, 3], dtype=dtype)
labels = tf.random.uniform([BATCH], maxval=10, dtype=tf.int32)


def norm(x):  # LRN has no kernel for bfloat16
    y = tf.nn.lrn(tf.cast(x, tf.float32), 4, bias=1.0, alpha=0.001 / 9, beta=0.75)
    return tf.cast(y, x.dtype)


def loss_of(x):
    w = {n: tf.cast(value, dtype) for n, value in v.items()}
    x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w["w1"], 1, "SAME"), w["b1"]))
    x = norm(tf.nn.max_pool2d(x, 3, 2, "SAME"))
    x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w["w2"], 1, "SAME"), w["b2"]))
    x = tf.reshape(tf.nn.max_pool2d(norm(x), 3, 2, "SAME"), [BATCH, 2304])
    x = tf.nn.relu(tf.nn.bias_add(x @ w["w3"], w["b3"]))
    x = tf.nn.relu(tf.nn.bias_add(x @ w["w4"], w["b4"]))
    logits = tf.cast(tf.nn.bias_add(x @ w["w5"], w["b5"]), tf.float32)
    entropy = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    return entropy + 0.004 * (tf.nn.l2_loss(v["w3"]) + tf.nn.l2_loss(v["w4"]))


@tf.function(jit_compile=o.xla)
def step():
    with tf.GradientTape() as tape:
        loss = loss_of(images)
    for variable, gradient in zip(v.values(), tape.gradient(loss, list(v.values()))):
        variable.assign_sub(0.01 * gradient)
    return loss


first = float(step())
for _ in range(WARM_UP - 1):
    step()
times = []
for _ in range(o.steps):
    begin = time.perf_counter()
    loss = float(step())
    times.append((time.perf_counter() - begin) * 1e3)
ms = statistics.median(times)
print(json.dumps({"peer": "TensorFlow", "version": tf.__version__, "dtype": o.dtype, "threads": o.threads,
                  "ms": round(ms, 4), "images_per_second": round(BATCH / ms * 1e3, 1), "first_loss": round(first, 4),
                  "loss": round(loss, 4)}))
