#!/usr/bin/env python3
"""Writes distort_ops.h: one image cropped, flipped, brightened, contrasted and standardized by TensorFlow, several times
each, for tests/test_queue_input.c. The image is a formula that the test has too."""
import os

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
H, W, C, RUNS = 6, 5, 2, 4

image = (np.arange(H * W * C, dtype=np.float32) * 37 % 256).reshape(H, W, C)
with tf.Graph().as_default(), tf.Session() as session:
    tf.set_random_seed(1)
    x = tf.placeholder(tf.float32, image.shape)  # a constant would be added up with others in advance
    outputs = {
        "cropped": tf.random_crop(x, [4, 3, C], seed=7),
        "flipped": tf.image.random_flip_left_right(x, seed=8),
        "brightened": tf.image.random_brightness(x, max_delta=63, seed=9),
        "contrasted": tf.image.random_contrast(x, lower=0.2, upper=1.8, seed=10),
        "standardized": tf.image.per_image_standardization(x),
    }
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "distort_ops.h"), "w") as file:
        file.write("/* distort_ops.h - made by make_distort_ops.py with TensorFlow %s. */\n" % tf.__version__)
        for name, output in outputs.items():
            values = np.concatenate([session.run(output, {x: image}).ravel() for _ in range(RUNS)])
            file.write("static const float golden_%s[] = {\n" % name)
            texts = ["%.9gf" % v if "." in "%.9g" % v or "e" in "%.9g" % v else "%.9g" % v for v in values]
            for i in range(0, len(texts), 8):
                file.write("    " + ", ".join(texts[i : i + 8]) + ",\n")
            file.write("};\n")
