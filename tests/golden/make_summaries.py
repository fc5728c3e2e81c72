#!/usr/bin/env python3
"""Writes summaries.h: serialized summaries as TensorFlow's ops make them, for tests/test_ops_summary.c."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

raw = tf.raw_ops
VALUES = np.array([0, 1, -1, 0.5, 1e-13, -3e21, 2.5, 2.5, 1e30, 7], np.float32)
CASES = {
    "scalar": raw.ScalarSummary(tags="tower_0/loss", values=np.float32(4.6756)),
    "scalars": raw.ScalarSummary(tags=["a", "", "c"], values=np.array([1, -7, 300], np.int32)),
    "histogram": raw.HistogramSummary(tag="conv1/weights", values=VALUES),
    "histogram_of_nothing": raw.HistogramSummary(tag="empty", values=np.zeros(0, np.float64)),
    "histogram_of_zeros": raw.HistogramSummary(tag="zeros", values=np.zeros((2, 3), np.int64)),
}
CASES["merged"] = raw.MergeSummary(inputs=[CASES["scalars"], CASES["histogram_of_zeros"], CASES["scalar"]])

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "summaries.h"), "w") as out:
    out.write(f"/* summaries.h - made by make_summaries.py with TensorFlow {tf.__version__}; do not edit. */\n\n")
    for name, case in CASES.items():
        data = case.numpy()
        out.write(f"static const unsigned char golden_{name}[{len(data)}] = {{")
        for i, byte in enumerate(data):
            out.write(("\n    " if i % 24 == 0 else " ") + f"{byte},")
        out.write("\n};\n")
