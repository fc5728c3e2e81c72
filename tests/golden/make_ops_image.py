#!/usr/bin/env python3
"""Writes ops_image.txt: image ops run by TensorFlow, for tests/test_ops_image.c."""
import numpy as np

from op_cases import Cases, eighths, f32, i32, tf

cases = Cases("ops_image.txt", __file__)
random = np.random.default_rng(5)

cases.case("AdjustContrastv2", images=eighths(random, 2, 3, 5, 3), contrast_factor=f32(1.75))
cases.case("AdjustContrastv2", images=eighths(random, 4, 4, 1), contrast_factor=f32(0.25))
cases.case("AdjustContrastv2", images=eighths(random, 2, 1, 1, 3, 2), contrast_factor=f32(0))
cases.fails("images have shape [...,H,W,C], not [4,4]", "AdjustContrastv2", np.zeros((4, 4), np.float32),
            f32(1))
for size in ((7, 4), (2, 9), (5, 6), (1, 1)):
    for align, half in ((False, False), (True, False), (False, True)):
        cases.case("ResizeNearestNeighbor", images=eighths(random, 2, 5, 6, 2), size=i32(size), align_corners=align,
                   half_pixel_centers=half)
cases.case("ResizeNearestNeighbor", images=np.arange(12, dtype=np.uint8).reshape(1, 2, 6, 1), size=i32((4, 3)))
cases.fails("size has 3 elements, expected 2", "ResizeNearestNeighbor", np.zeros((1, 4, 4, 1), np.float32),
            i32((1, 2, 3)))
cases.fails("cannot resize 4 x 4 to 0 x 2", "ResizeNearestNeighbor", np.zeros((1, 4, 4, 1), np.float32), i32((0, 2)))
cases.fails("exclude each other", "ResizeNearestNeighbor", np.zeros((1, 4, 4, 1), np.float32), i32((2, 2)),
            align_corners=True, half_pixel_centers=True)
words = np.array([[b"\1\2\3\4\5\6\7\x80"], [b"\xff\xff\0\0\0\0\xf0\x3f"]], object)
for dtype in (tf.uint8, tf.int16, tf.int32, tf.int64, tf.float32, tf.float64):
    for little in (True, False):
        cases.case("DecodeRaw", bytes=words, out_type=dtype, little_endian=little)
cases.case("DecodeRaw", bytes=np.array(b"", object), out_type=tf.uint8)
cases.fails("element 1 has 3 bytes, expected 4", "DecodeRaw", np.array([b"abcd", b"abc"], object), out_type=tf.uint8)
