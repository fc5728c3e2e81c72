"""Writes the golden files of single ops; the format is described in tests/op_testing.h.

    from op_cases import Cases
    cases = Cases("ops_math.txt", __file__)
    cases.case("AddV2", x=f32([1, 2]), y=f32([3]))       inputs are arrays or lists of arrays, the rest are attributes
    cases.case("Softmax", logits=x, tolerance=1e-4)
    cases.fails("words of Tower's message", "FloorDiv", i32([1]), i32([0]), mode="...")

Run the scripts with TensorFlow 2 on a CPU. Its oneDNN kernels are turned off: they add in other orders.
"""
import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

NAMES = {"float32": "float", "float64": "double", "float16": "half"}
bf16 = tf.bfloat16.as_numpy_dtype


def f32(values):
    return np.array(values, np.float32)


def f64(values):
    return np.array(values, np.float64)


def i32(values):
    return np.array(values, np.int32)


def i64(values):
    return np.array(values, np.int64)


def eighths(random, *shape, dtype=np.float32, low=-16, high=17):
    """Multiples of 1/8: exact in every float type, short as text."""
    return (random.integers(low, high, shape) / 8).astype(dtype)


def number(x):
    if isinstance(x, bytes):
        return "x" + x.hex()
    if isinstance(x, np.complexfloating):
        return number(x.real) + " " + number(x.imag)
    if isinstance(x, np.float64):
        return "%.17g" % x
    if isinstance(x, np.floating) or isinstance(x, bf16):
        return "%.9g" % float(x)
    return str(int(x))


def tensors(argument):
    """Arrays as tensors: of arrays raw_ops forgets the type where the op has a default for it."""
    if isinstance(argument, np.ndarray):
        return tf.constant(argument)
    if isinstance(argument, list) and argument and isinstance(argument[0], np.ndarray):
        return [tf.constant(a) for a in argument]
    return argument


class Cases:
    def __init__(self, name, script):
        folder = os.path.dirname(os.path.abspath(__file__))
        self.out = open(os.path.join(folder, name), "w")
        self.out.write("# Made by %s with TensorFlow %s; tests/op_testing.h describes the format.\n"
                       % (os.path.basename(script), tf.__version__))

    def tensor(self, direction, value):
        value = np.asarray(value)
        name = "string" if value.dtype.kind in "SO" else NAMES.get(value.dtype.name, value.dtype.name)
        dims = ",".join(str(d) for d in value.shape) or "scalar"
        self.out.write(" ".join([direction, name, dims] + [number(x) for x in value.ravel()]) + "\n")

    def attribute(self, name, value):
        if isinstance(value, bool):
            text = "bool %d" % value
        elif isinstance(value, int):
            text = "int %d" % value
        elif isinstance(value, float):
            text = "float %.9g" % value
        elif isinstance(value, str):
            text = "string " + value
        elif isinstance(value, tf.DType):
            text = "type " + {"float32": "float", "float64": "double", "float16": "half"}.get(value.name, value.name)
        else:
            text = " ".join(["ints", str(len(value))] + [str(v) for v in value])
        self.out.write("attr %s %s\n" % (name, text))

    def inputs(self, values):
        for value in values:
            if isinstance(value, np.ndarray) or np.isscalar(value):
                self.tensor("in", value)
            else:
                for one in value:
                    self.tensor("in", one)

    def case(self, op, keep=None, tolerance=None, rename=None, expected=None, **arguments):
        """One run of an op. Returns its outputs. keep: which are compared; rename: what attributes are called in Tower
        where TensorFlow's Python says it otherwise; expected: outputs to write instead of TensorFlow's."""
        results = expected
        if expected is None:
            results = getattr(tf.raw_ops, op)(**{name: tensors(value) for name, value in arguments.items()})
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        results = [r if isinstance(r, np.ndarray) else r.numpy() for r in results]
        self.out.write("case %s\n" % op)
        is_input = {k: isinstance(v, np.ndarray) or (isinstance(v, list) and len(v) and isinstance(v[0], np.ndarray))
                    for k, v in arguments.items()}
        self.inputs(v for k, v in arguments.items() if is_input[k])
        for k, v in arguments.items():
            if not is_input[k]:
                self.attribute((rename or {}).get(k, k), v)
        for i, value in enumerate(results):
            if keep is None or i in keep:
                self.tensor("out", value)
            else:
                self.out.write("skip\n")
        if tolerance is not None:
            self.out.write("tolerance %g\n" % tolerance)
        return results

    def fails(self, words, op, *inputs, **attrs):
        """A run that Tower refuses with these words in its message."""
        self.out.write("case %s\n" % op)
        self.inputs(inputs)
        for k, v in attrs.items():
            self.attribute(k, v)
        self.out.write("fails %s\n" % words)
