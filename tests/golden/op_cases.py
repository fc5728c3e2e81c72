"""Writes cases of single ops, run by TensorFlow on a CPU, as text for tests/op_testing.h (which says the format).

    from op_cases import Cases
    cases = Cases("ops_nn.txt")
    cases.run("BiasAdd", value=np.ones((2, 3), np.float32), bias=np.ones(3, np.float32), data_format="NHWC")

TensorFlow's oneDNN kernels are turned off: they add in other orders.
"""
import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np
import tensorflow as tf

TYPES = {"float32": "float", "float64": "double"}


def _number(x):
    return ("%.7g" % x) if isinstance(x, (float, np.floating)) else str(int(x))


class Cases:
    """A golden file under construction."""

    def __init__(self, name):
        self.random = np.random.default_rng(5)
        self.file = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), "w")
        self.file.write("# Run by TensorFlow %s; see tests/op_testing.h.\n" % tf.__version__)

    def eighths(self, *shape, low=-16, high=17):
        """Random multiples of 1/8: exact in every float type, and short as text."""
        return (self.random.integers(low, high, shape) / 8).astype(np.float32)

    def run(self, op, keep=None, **arguments):
        """One run of an op by its raw name; arrays (or lists of arrays) are inputs, the rest attributes. Returns the
        outputs; `keep` (all by default) says which are compared."""
        results = getattr(tf.raw_ops, op)(**arguments)
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        results = [np.asarray(r) for r in results]
        self.write(op, arguments, results, keep)
        return results

    def write(self, op, arguments, results, keep=None):
        """A case whose results were found in another way."""
        self.file.write("case %s\n" % op)
        for value in arguments.values():
            for one in value if self._is_input(value) and isinstance(value, list) else [value]:
                if isinstance(one, (np.ndarray, np.generic)):
                    self._tensor("in", np.asarray(one))
        for name, value in arguments.items():
            if not self._is_input(value):
                self._attribute(name, value)
        for i, value in enumerate(results):
            if keep is None or i in keep:
                self._tensor("out", value)
            else:
                self.file.write("skip\n")

    @staticmethod
    def _is_input(value):
        if isinstance(value, list) and value:
            value = value[0]
        return isinstance(value, (np.ndarray, np.generic))

    def _tensor(self, direction, value):
        dims = ",".join(str(d) for d in value.shape) or "scalar"
        values = " ".join(_number(x) for x in value.ravel())
        name = TYPES.get(value.dtype.name, value.dtype.name)
        self.file.write("%s %s %s%s\n" % (direction, name, dims, " " + values if values else ""))

    def _attribute(self, name, value):
        if isinstance(value, bool):
            kind, text = "bool", str(int(value))
        elif isinstance(value, tf.DType):
            kind, text = "type", TYPES.get(value.name, value.name)
        elif isinstance(value, int):
            kind, text = "int", str(value)
        elif isinstance(value, float):
            kind, text = "float", "%.9g" % value
        elif isinstance(value, str):
            kind, text = "string", value
        elif any(isinstance(v, float) for v in value):
            kind, text = "floats", " ".join([str(len(value))] + ["%.9g" % v for v in value])
        else:
            kind, text = "ints", " ".join([str(len(value))] + [str(v) for v in value])
        self.file.write("attr %s %s %s\n" % (name, kind, text))
