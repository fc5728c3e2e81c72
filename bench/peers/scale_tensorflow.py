"""Planning of bench/scale.c's chain in TensorFlow: layers of MatMul 8x8, Add and Tanh, with gradients and descent.

    scale_tensorflow.py LAYERS...

A tf.compat.v1 graph and session with one thread, as programs of those years have it. For each number of layers prints
one line of JSON: nodes, seconds for building the graph, for the first run and for the second."""
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np  # noqa: E402 (after the environment it reads)
import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.disable_resource_variables()
sys.setrecursionlimit(10**6)

for layers in map(int, sys.argv[1:]):
    began = time.perf_counter()
    with tf1.Graph().as_default() as graph:
        x = tf1.constant(np.zeros([8, 8], np.float32))
        for i in range(layers):
            w = tf1.get_variable(f"w{i}", [8, 8], initializer=tf1.constant_initializer(0.1))
            x = tf1.tanh(tf1.matmul(x, w) + tf1.constant(np.zeros([8, 8], np.float32)))
        step = tf1.train.GradientDescentOptimizer(0.01).minimize(tf1.reduce_mean(x))
        init = tf1.global_variables_initializer()
        built = time.perf_counter()
        config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        with tf1.Session(graph=graph, config=config) as session:
            session.run(init)
            times = [time.perf_counter()]
            for _ in range(2):
                session.run(step)
                times.append(time.perf_counter())
    print(json.dumps({"nodes": len(graph.get_operations()), "build_s": round(built - began, 3),
                      "first_run_s": round(times[1] - times[0], 3), "run_s": round(times[2] - times[1], 4)}), flush=True)
