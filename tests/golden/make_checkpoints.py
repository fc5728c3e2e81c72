"""Checkpoints as TensorFlow 2.21 writes them, for test_checkpoint_bundle.c. Run in this folder."""
import numpy as np
import tensorflow as tf

tensors = {
    "a/bfloat16": tf.constant([1.0, -2.5], tf.bfloat16),
    "a/bool": tf.constant([True, False, True]),
    "conv1/weights": tf.reshape(tf.range(24, dtype=tf.float32) * 0.5, [2, 3, 4]),
    "conv1/weights/Momentum": tf.zeros([2, 3, 4]),
    "double": tf.constant(3.25, tf.float64),
    "empty": tf.zeros([0, 3]),
    "global_step": tf.constant(1234567890123, tf.int64),
    "half": tf.constant([0.5, 65504.0], tf.float16),
    "int16": tf.constant([-300], tf.int16),
    "int32": tf.constant([[7], [-8]], tf.int32),
    "int8": tf.constant([-1], tf.int8),
    "no_strings": tf.zeros([0], tf.string),
    "strings": tf.constant([b"tower", b"", b"x" * 200, b"a\0b"]),
    "uint8": tf.constant([255, 0], tf.uint8),
}
names = sorted(tensors)
tf.raw_ops.SaveV2(prefix="checkpoint", tensor_names=names, shape_and_slices=[""] * len(names),
                  tensors=[tensors[n] for n in names])

# A variable in two parts, complex and quantized numbers, a type Tower lacks, and more dimensions than it has.
tf.raw_ops.SaveV2(prefix="checkpoint_foreign", tensor_names=["complex", "deep", "parts", "parts", "plain", "quantized",
                                                              "tiny", "unsigned"],
                  shape_and_slices=["", "", "4 2 0,1:-", "4 2 1,3:-", "", "", "", ""],
                  tensors=[tf.constant([1j], tf.complex64), tf.zeros([1] * 9), tf.ones([1, 2]), tf.ones([3, 2]),
                           tf.constant(5, tf.int32), tf.bitcast(tf.constant([-3, 7], tf.int16), tf.qint16),
                           tf.cast([9.0], tf.dtypes.experimental.float8_e5m2), tf.constant([9], tf.uint32)])
# Tensors in parts: in one dimension with a long name, in both, with numbers that take several bytes in a key.
rows = np.arange(600 * 3, dtype=np.float32).reshape(600, 3)
grid = np.arange(4 * 5, dtype=np.int64).reshape(4, 5)
tf.raw_ops.SaveV2(prefix="checkpoint_parts", tensor_names=["after", "grid", "grid", "grid", "m/rows", "m/rows", "m/rows"],
                  shape_and_slices=["", "4 5 0,2:-", "4 5 2,2:0,1", "4 5 2,2:1,4", "600 3 0,64:-", "600 3 64,63:-",
                                    "600 3 127,473:-"],
                  tensors=[np.float64(7), grid[:2], grid[2:, :1], grid[2:, 1:], rows[:64], rows[64:127], rows[127:]])

# The first version of the format: all of these but bfloat16, which it has not, in one file, and tensors in parts in two.
old = [n for n in names if tensors[n].dtype != tf.bfloat16]
tf.raw_ops.Save(filename="checkpoint_old", tensor_names=old, data=[tensors[n] for n in old])
tf.raw_ops.SaveSlices(filename="checkpoint_old_parts-00000-of-00002", tensor_names=["grid", "grid", "m/rows", "plain"],
                      shapes_and_slices=["4 5 0,2:-", "4 5 2,2:0,1", "600 3 0,64:-", ""],
                      data=[grid[:2], grid[2:, :1], rows[:64], np.float64(7)])
tf.raw_ops.SaveSlices(filename="checkpoint_old_parts-00001-of-00002", tensor_names=["grid", "m/rows", "m/rows"],
                      shapes_and_slices=["4 5 2,2:1,4", "600 3 64,63:-", "600 3 127,473:-"],
                      data=[grid[2:, 1:], rows[64:127], rows[127:]])
