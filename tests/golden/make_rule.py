#!/usr/bin/env python3
"""Writes rule.h: learning rates, clipped gradients and AdamW's steps as TensorFlow and Keras compute them, for
tests/test_rule.c."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import numpy as np
import tensorflow as tf

STEPS = [0, 1, 2, 5, 7, 9, 10, 11, 40]
GRADIENTS = [np.array([3.0, -4.0, 0.5], np.float32), np.array([[1.5, -0.25], [12.0, 0.0]], np.float32)]


def floats(values):
    return "{" + ", ".join("%.9gf" % v if "." in "%.9g" % v or "e" in "%.9g" % v else "%.9g" % v
                           for v in np.ravel(values)) + "}"


def rates(schedule):
    return floats([schedule(tf.constant(s)).numpy() for s in STEPS])


def adam_w():
    """Five steps: the variable after each."""
    v = tf.Variable(np.array([1.0, -2.0, 0.5], np.float32))
    optimizer = tf.keras.optimizers.AdamW(0.1, weight_decay=0.2, beta_1=0.9, beta_2=0.99, epsilon=1e-6)
    after = []
    for i in range(5):
        optimizer.apply([tf.constant(GRADIENTS[0] * (i + 1) * (-1) ** i)], [v])
        after.append(v.numpy())
    return floats(after)


S = tf.keras.optimizers.schedules
clipped, norm = tf.clip_by_global_norm([tf.constant(g) for g in GRADIENTS], 2.0)
lines = [
    "/* rule.h - made by make_rule.py with TensorFlow %s; do not edit. */" % tf.__version__,
    "",
    "static const int64_t golden_steps[] = {%s};" % ", ".join(map(str, STEPS)),
    "static const float golden_polynomial[] = %s;" % rates(S.PolynomialDecay(0.5, 10, 0.01, power=2.0)),
    "static const float golden_linear[] = %s;" % rates(S.PolynomialDecay(0.5, 10, 0.0, power=1.0)),
    "static const float golden_cosine[] = %s;" % rates(S.CosineDecay(0.5, 10, alpha=0.1)),
    "static const float golden_norm = %.9gf;" % norm.numpy(),
    "static const float golden_clipped_by_norm[] = %s;" % floats(np.concatenate([c.numpy().ravel() for c in clipped])),
    "static const float golden_clipped[] = %s;" % floats(
        np.concatenate([tf.clip_by_value(g, -1.25, 1.25).numpy().ravel() for g in GRADIENTS])),
    "static const float golden_adam_w[] = %s;" % adam_w(),
]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "rule.h"), "w") as f:
    f.write("\n".join(lines) + "\n")
