"""What cases are drawn with: shapes, values, attributes; and what a case is."""
import ml_dtypes
import numpy as np

bf16 = ml_dtypes.bfloat16
f16, f32, f64 = np.float16, np.float32, np.float64
i8, i16, i32, i64, u8 = np.int8, np.int16, np.int32, np.int64, np.uint8
UNSIGNED = u16, u32, u64 = np.uint16, np.uint32, np.uint64
c64, c128 = np.complex64, np.complex128
COMPLEX = (c64, c128)
FLOATS = (f32, f64, f16, bf16)
INTEGERS = (i32, i64, i16, i8, u8) + UNSIGNED
NUMBERS = FLOATS + INTEGERS
GENERATORS = {}


class Case:
    """One op with its inputs, by the names that the op has for them: an array, or a list of arrays.

    variables  inputs that are variables: the case's result is also what they hold afterwards
    fed        inputs that may be fed: such that no shape depends on their values. None: those of floats
    tolerance  of what is compared, relative to the largest value; None: by type
    gradients  False: they are not compared
    keep       outputs that are compared; None: all
    """

    def __init__(self, op, inputs, attrs=None, variables=(), fed=None, tolerance=None, gradients=True, keep=None):
        self.op, self.inputs, self.attrs, self.variables = op, inputs, attrs or {}, variables
        self.fed, self.tolerance, self.gradients, self.keep = fed, tolerance, gradients, keep


def generator(*ops):
    """Registers a function of (draw, op) that returns a Case."""
    def register(function):
        for name in ops:
            GENERATORS[name] = function
        return function
    return register


class Draw:
    def __init__(self, seed, index):
        self.random = np.random.default_rng([seed, index])

    def flag(self, chance=0.5):
        return bool(self.random.random() < chance)

    def pick(self, values):
        return values[int(self.random.integers(len(values)))]

    def int(self, low, high):
        """From low to high, both included."""
        return int(self.random.integers(low, high + 1))

    def dim(self, most=5):
        return 0 if self.flag(0.04) else self.int(1, most)

    def shape(self, low=0, high=4, most=5):
        rank = self.int(low, high)
        if high >= 4 and self.flag(0.05):
            rank, most = self.int(max(low, 5), 8), 2
        return tuple(self.dim(most) for _ in range(rank))

    def values(self, dtype, shape, low=-2.0, high=2.0):
        dtype = np.dtype(dtype)
        if dtype == np.bool_:
            return self.random.integers(0, 2, shape).astype(bool)
        if dtype.kind in "iu":
            low = max(int(low), np.iinfo(dtype).min)
            return np.asarray(self.random.integers(low, int(high) + 1, shape)).astype(dtype)
        values = np.asarray(self.random.uniform(low, high, shape))
        if dtype.kind == "c":
            values = values + 1j * self.random.uniform(low, high, shape)
        return np.asarray(values).astype(dtype)

    def wild(self, dtype, shape, low=-2.0, high=2.0):
        """The same, now and then with zeros, infinities, NaN and large values among them."""
        values = self.values(dtype, shape, low, high)
        if np.dtype(dtype).kind not in "iubc" and values.size and self.flag(0.15):
            flat = values.reshape(-1)
            for _ in range(self.int(1, 3)):
                flat[self.int(0, flat.size - 1)] = self.pick([0.0, -0.0, np.inf, -np.inf, np.nan, 1e4, -3e4, 1e-3])
        return values

    def broadcast(self):
        """Two shapes that broadcast; now and then two that do not."""
        full = self.shape()
        shapes = []
        for _ in range(2):
            some = [1 if self.flag(0.2) else d for d in full]
            shapes.append(tuple(some[self.int(0, len(some)):] if self.flag(0.25) else some))
        if self.flag(0.03):
            shapes[0] = shapes[0] + (self.int(6, 7),)
        return shapes

    def indices(self, shape, below, dtype=None, wrong=0.03):
        """Numbers below `below`; now and then one that is not."""
        values = self.random.integers(0, max(below, 1), shape).astype(dtype or self.pick((i32, i64)))
        values = np.asarray(values)
        if values.size and self.flag(wrong):
            values.reshape(-1)[self.int(0, values.size - 1)] = self.pick((-1, below))
        return values
