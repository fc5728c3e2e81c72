#!/usr/bin/env python3
"""Writes distortion.bin: what TensorFlow's image operations make of a few images with given crops, flips, brightness
and contrast. Read by tests/test_data.c, which makes the same images.

Each case: five int32 (image, top, left, flip, train), two float32 (brightness, contrast), then 24 x 24 x 3 float32.
Run with TensorFlow 2.x: python3 make_distortion.py distortion.bin"""
import struct
import sys

import numpy as np
import tensorflow as tf


def image(m):
    y, x, c = np.meshgrid(np.arange(32), np.arange(32), np.arange(3), indexing="ij")
    if m == 0:  # strong contrast
        v = 61 + 7 * y + 3 * x * x + 50 * c + y * x // 4
    elif m == 1:  # channels far apart, little contrast
        v = 10 + 90 * c + (y + x) // 8
    else:  # one colour: the standard deviation is 0
        v = np.full_like(y, 200)
    return (v & 255).astype(np.float32)


CASES = [  # image, top, left, flip, train, brightness, contrast
    (0, 3, 5, 0, 1, 17.5, 0.75),
    (0, 8, 0, 1, 1, -62.0, 1.75),
    (1, 0, 8, 1, 1, 40.25, 0.2),
    (2, 1, 1, 0, 1, -3.0, 1.5),
    (0, 4, 4, 0, 0, 0.0, 1.0),
]

with open(sys.argv[1], "wb") as out:
    for m, top, left, flip, train, brightness, contrast in CASES:
        x = tf.constant(image(m))
        if train:
            x = x[top:top + 24, left:left + 24]
            x = tf.image.flip_left_right(x) if flip else x
            x = tf.image.adjust_brightness(x, brightness)
            x = tf.image.adjust_contrast(x, contrast)
        else:
            x = tf.image.resize_with_crop_or_pad(x, 24, 24)
        x = tf.image.per_image_standardization(x)
        out.write(struct.pack("<5i2f", m, top, left, flip, train, brightness, contrast))
        out.write(x.numpy().astype("<f4").tobytes())
