"""Writes tests/golden/records: pictures in TFRecord files, as TensorFlow writes them. Needs tensorflow.

Two shards with PNGs and JPEGs named by text, one file for validation, and in records/raw pixels as they are, with numbers
for classes. Red, green and blue pictures of 6 x 4: the class says the colour.
"""
import os

import numpy as np
import tensorflow as tf

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "records")
COLOURS = {"red": (200, 0, 0), "green": (0, 200, 0), "blue": (0, 0, 200)}


def pixels(name):
    return np.full((4, 6, 3), COLOURS[name], np.uint8)


def texts(*values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=list(values)))


def numbers(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=list(values)))


def write(path, examples):
    with tf.io.TFRecordWriter(os.path.join(HERE, path)) as writer:
        for features in examples:
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def encoded(name, encode):
    return {
        "image/encoded": texts(encode(pixels(name)).numpy()),
        "image/class/label": numbers(list(COLOURS).index(name) + 1),
        "image/class/text": texts(name.encode()),
        "image/object/bbox/xmin": tf.train.Feature(float_list=tf.train.FloatList(value=[0.25, 0.5])),
    }


def raw(name):
    return {
        "image_raw": texts(pixels(name).tobytes()),
        "height": numbers(4),
        "width": numbers(6),
        "depth": numbers(3),
        "label": numbers(list(COLOURS).index(name)),
    }


os.makedirs(os.path.join(HERE, "raw"), exist_ok=True)
write("train-00000-of-00002", [encoded(name, tf.io.encode_png) for name in COLOURS])
write("train-00001-of-00002", [encoded(name, tf.io.encode_jpeg) for name in COLOURS])
write("validation-00000-of-00001", [encoded("blue", tf.io.encode_png)])
write("raw/colours.tfrecord", [raw(name) for _ in range(5) for name in COLOURS])
