#!/usr/bin/env python3
"""Writes ops_math.txt: element-wise ops, reductions and matrix products, run by TensorFlow, for
tests/test_ops_math.c."""
from op_cases import *

random = np.random.default_rng(3)
cases = Cases("ops_math.txt", __file__)
case, fails = cases.case, cases.fails

FLOATS = (np.float32, np.float64, np.float16, bf16)
SIGNED = FLOATS + (np.int32, np.int64)
INTS = (np.int8, np.int16, np.int32, np.int64, np.uint8)
inf, nan = np.inf, np.nan


def x(*shape, dtype=np.float32, low=-16, high=17):
    """Eighths; whole numbers for integers."""
    if np.dtype(dtype).kind in "iu":
        return np.asarray(random.integers(max(low, 0) if np.dtype(dtype).kind == "u" else low, high, shape), dtype)
    return np.asarray(eighths(random, *shape, low=low, high=high), dtype)


def positive(*shape, dtype=np.float32):
    return x(*shape, dtype=dtype, low=1, high=30)


def bools(*shape):
    return np.asarray(random.integers(0, 2, shape).astype(bool))


SHAPES = (((), ()), ((3,), ()), ((1,), (2, 3)), ((2, 3), (3,)), ((2, 1, 3), (4, 1)), ((1, 2, 1, 3), (2, 1, 2, 1)),
          ((0, 2), (1, 2)), ((2, 3), (2, 3)), ((5, 1), (5, 7)))


def binary(op, dtypes, make_x=x, make_y=x, **options):
    for i, d in enumerate(dtypes):
        for a, b in SHAPES if i == 0 else SHAPES[3:5]:
            case(op, x=make_x(*a, dtype=d), y=make_y(*b, dtype=d), **options)


# ---- element-wise, two inputs ----

binary("Add", SIGNED + (np.int8, np.int16, np.uint8))
binary("AddV2", SIGNED + (np.int8, np.int16, np.uint8))
binary("Sub", SIGNED + (np.int8, np.int16, np.uint8))
binary("Mul", SIGNED + (np.int8, np.int16, np.uint8))
binary("MulNoNan", (np.float32, np.float64, np.float16))
binary("RealDiv", FLOATS, make_y=positive)
binary("Div", FLOATS, make_y=positive)
binary("Div", (np.int16, np.int32, np.int64, np.uint8), make_y=positive)
binary("DivNoNan", (np.float32, np.float64, np.float16))
binary("FloorDiv", (np.float32, np.float64, np.float16) + INTS, make_y=positive)
binary("TruncateDiv", (np.int32, np.int64, np.int16, np.uint8), make_y=positive)
binary("FloorMod", (np.float32, np.float64, np.int32, np.int64), make_y=positive)
binary("Mod", (np.float32, np.float64, np.int32, np.int64), make_y=positive)
binary("Maximum", SIGNED)
binary("Minimum", SIGNED)
binary("SquaredDifference", SIGNED)
binary("Xdivy", (np.float32, np.float64, np.float16), make_y=positive)
binary("Pow", (np.float32, np.float64), make_x=positive, tolerance=1e-5)
binary("Pow", (np.float16,), make_x=lambda *s, dtype: x(*s, dtype=dtype, low=4, high=12))

case("Add", x=i32([2**31 - 1, -2**31]), y=i32([1, -1]))
case("Mul", x=i64([2**62, 3]), y=i64([4, 5]))
case("Sub", x=np.array([-128], np.int8), y=np.array([1], np.int8))
case("Add", x=f32([nan, inf, -inf, inf]), y=f32([1, 1, inf, inf]))
case("RealDiv", x=f32([1, -1, 0, inf]), y=f32([0, 0, 0, inf]))
case("MulNoNan", x=f32([inf, nan, 2]), y=f32([0, 0, 3]))
case("DivNoNan", x=f32([1, nan, 2]), y=f32([0, 0, 4]))
case("Xdivy", x=f32([0, 0, 2]), y=f32([0, nan, 4]))
case("FloorDiv", x=i32([7, -7, 7, -7]), y=i32([2, 2, -2, -2]))
case("FloorDiv", x=f32([7, -7, 7, -7]), y=f32([2, 2, -2, -2]))
case("TruncateDiv", x=i32([7, -7, 7, -7]), y=i32([2, 2, -2, -2]))
case("FloorMod", x=i32([7, -7, 7, -7, 6]), y=i32([2, 2, -2, -2, -3]))
case("FloorMod", x=f32([7, -7, 7, -7, 6]), y=f32([2, 2, -2, -2, -3]))
case("Mod", x=i32([7, -7, 7, -7]), y=i32([2, 2, -2, -2]))
case("Mod", x=f64([7.5, -7.5]), y=f64([2, 2]))
case("Pow", x=i32([2, -3, 0, 5]), y=i32([10, 3, 0, 1]))
case("Pow", x=i64([3, -1]), y=i64([20, 7]))
case("Pow", x=f32([0, 0, -2, -2, 4]), y=f32([0, 2, 3, 2, 0.5]))
for op in ("FloorDiv", "TruncateDiv", "FloorMod", "Mod", "Div"):
    fails("zero", op, i32([1, 2]), i32([1, 0]))
fails("negative integer powers", "Pow", i32([2]), i32([-1]))
fails("do not broadcast: [2,3] and [2]", "AddV2", x(2, 3), x(2))

# ---- element-wise, one input ----

ONE = {"Neg": SIGNED, "Abs": SIGNED, "Sign": SIGNED, "Square": SIGNED, "Exp": FLOATS, "Expm1": FLOATS, "Sin": FLOATS,
       "Cos": FLOATS, "Tanh": FLOATS, "Sigmoid": FLOATS, "Erf": FLOATS, "Floor": FLOATS, "Ceil": FLOATS,
       "Round": FLOATS, "IsNan": FLOATS, "IsInf": FLOATS, "IsFinite": FLOATS, "Tan": (np.float32, np.float64)}
for op, dtypes in ONE.items():
    for d in dtypes:
        case(op, x=x(2, 5, dtype=d))
for op in ("Sqrt", "Rsqrt", "Reciprocal", "Inv", "Log", "Log1p"):
    for d in FLOATS:
        case(op, x=positive(7, dtype=d))
for op in ("Floor", "Ceil", "Round", "Sign", "IsNan", "IsInf", "IsFinite", "Exp", "Tanh", "Sigmoid", "Erf", "Abs"):
    case(op, x=f32([nan, inf, -inf, 0, 0.5, 1.5, -0.5, -2.5, 3.4e38]))
case("Exp", x=f32([-200, -100, -50, 50, 88, 89]), tolerance=1e-6)
case("Log", x=f32([0, 2e-38, 3e38]))
case("Log1p", x=f64([1e-12, -1e-9]))
case("Expm1", x=f64([1e-12, -1e-9]))
case("Sqrt", x=f32([0, -1, inf]))
case("Neg", x=i32([-2**31]))
case("Round", x=i32([7, -3]), expected=i32([7, -3]))  # TensorFlow 2.21 gives zeros
case("LogicalNot", x=bools(5))
for op in ("SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad", "SigmoidGrad", "TanhGrad"):
    for d in FLOATS:
        case(op, y=positive(2, 3, dtype=d), dy=x(2, 3, dtype=d))

# ---- casts ----

ALL = FLOATS + INTS + (np.bool_,)
for a in ALL:
    for b in ALL:
        value = bools(5) if a is np.bool_ else x(5, dtype=a, low=0, high=100)
        case("Cast", x=value, DstT=tf.as_dtype(b))
case("Cast", x=f32([-1.9, -0.5, 0.5, 1.9, 1e9]), DstT=tf.int32)
case("Cast", x=i64([2**40 + 5, -1, 300]), DstT=tf.int32)
case("Cast", x=i32([300, -1, 128]), DstT=tf.uint8)
case("Cast", x=f32([0, -0.0, 0.1, nan]), DstT=tf.bool)
case("Cast", x=f64([1e300, -1e300, 0.1]), DstT=tf.float32)
case("Cast", x=f32([65519, 65520, 1e-8, 6e-8, 1 + 2**-11, 1 + 3 * 2**-11]), DstT=tf.float16)
case("Cast", x=f32([1 + 2**-8, 1 + 3 * 2**-8, 3.4e38]), DstT=tf.bfloat16)
# beyond the integers TensorFlow gives what the processor does; Tower gives the nearest
case("Cast", x=f32([1e20, -1e20, nan, 3e9]), DstT=tf.int32, expected=i32([2**31 - 1, -2**31, 0, 2**31 - 1]))
case("Cast", x=f64([1e20, -1e20, nan]), DstT=tf.int64, expected=i64([2**63 - 1, -2**63, 0]))
case("Cast", x=f32([300, -5]), DstT=tf.uint8, expected=np.array([255, 0], np.uint8))

# ---- three inputs, comparisons ----

for d in (np.float32, np.float64, np.float16, np.int32, np.int64, np.int8, np.int16, np.uint8):
    low, high = np.asarray(1, d), np.asarray(4, d)
    case("ClipByValue", t=x(2, 4, dtype=d), clip_value_min=low, clip_value_max=high)
case("ClipByValue", t=x(2, 3), clip_value_min=x(2, 3, high=0), clip_value_max=x(2, 3, low=0))
for op in ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"):
    binary(op, SIGNED + (np.int8, np.int16, np.uint8), make_x=lambda *s, dtype: x(*s, dtype=dtype, low=0, high=3),
           make_y=lambda *s, dtype: x(*s, dtype=dtype, low=0, high=3))
    case(op, x=f32([nan, nan, inf, 0]), y=f32([nan, 1, inf, -0.0]))
for op in ("Equal", "NotEqual"):
    case(op, x=bools(2, 3), y=bools(3))
    case(op, x=np.array([b"a", b"", b"ab"], object), y=np.array([b"a", b"b", b"a"], object))
for op in ("LogicalAnd", "LogicalOr"):
    for a, b in SHAPES:
        case(op, x=bools(*a), y=bools(*b))
for d in (np.float32, np.float64):
    case("ApproximateEqual", x=np.array([1, 2, 3], d), y=np.array([1.05, 2.2, 3], d), within=0.1,
         rename={"within": "tolerance"}, expected=np.array([True, False, True]))

# ---- sums of lists ----

for d in SIGNED + (np.int8, np.int16, np.uint8):
    case("AddN", inputs=[x(2, 3, dtype=d, low=0, high=9) for _ in range(4)])
case("AddN", inputs=[x(3)])
case("AddN", inputs=[x(17) for _ in range(11)])
fails("shapes differ", "AddN", [x(3), x(4)])

# ---- reductions ----

AXES = (((2, 3, 4), [0]), ((2, 3, 4), [1]), ((2, 3, 4), [2]), ((2, 3, 4), [0, 2]), ((2, 3, 4), [-1, 0, 1]),
        ((2, 3, 4), []), ((), []), ((5,), [0]), ((2, 1, 3, 2), [1, 3]), ((2, 3, 2, 2, 2), [0, 2, 4]), ((3, 0), [0]),
        ((3, 0), [1]), ((0,), [0]))
for op, dtypes in (("Sum", SIGNED), ("Mean", FLOATS + (np.int32,)), ("Prod", SIGNED), ("Max", SIGNED),
                   ("Min", SIGNED)):
    for i, d in enumerate(dtypes):
        for shape, axes in AXES if i == 0 else AXES[2:5]:
            if op == "Mean" and d == np.int32 and 0 in shape:
                continue
            case(op, input=x(*shape, dtype=d, low=-6, high=7), axis=i32(axes))
for op in ("Max", "Min"):
    for d in (np.int8, np.int16, np.uint8):
        case(op, input=x(4, 5, dtype=d), axis=i64([1]))
for op in ("Sum", "Mean", "Max"):
    case(op, input=x(2, 3, 4), axis=i32([1]), keep_dims=True)
    case(op, input=x(2, 3, 4), axis=i64([0, -1]), keep_dims=True)
for op in ("All", "Any"):
    for shape, axes in AXES:
        case(op, input=bools(*shape), axis=i32(axes))
case("Sum", input=x(3000), axis=i32([0]))
case("Sum", input=f32(np.full(5000, 0.1)), axis=i32([0]), tolerance=1e-5)
case("Mean", input=x(70, 70), axis=i32([0]))
case("Max", input=f32([[-inf, -3], [2, inf]]), axis=i32([1]))
case("Sum", input=f32([inf, -inf, 1]), axis=i32([0]))
fails("axis 3, expected -3 to 2", "Sum", x(2, 3, 4), i32([3]))
fails("axis 1 is given twice", "Sum", x(2, 3, 4), i32([1, -2]))
for op in ("ArgMax", "ArgMin"):
    for d in FLOATS + INTS:
        case(op, input=x(3, 4, 2, dtype=d, low=0, high=4), dimension=i32(1))
    case(op, input=x(3, 4), dimension=i64(-2), output_type=tf.int32)
    case(op, input=x(7), dimension=i32(0))
    fails("axis 2, expected -2 to 1", op, x(3, 4), i32(2))
    fails("expected rank 0", op, x(3, 4), i32([]))
for op in ("Cumsum", "Cumprod"):
    for d in SIGNED + (np.int16, np.int8, np.uint8):
        case(op, x=x(3, 4, dtype=d, low=-3, high=4), axis=i32(1))
    for exclusive in (False, True):
        for reverse in (False, True):
            for axis in (0, 1, -1):
                case(op, x=x(2, 4, 3), axis=i32(axis), exclusive=exclusive, reverse=reverse)
    case(op, x=x(0, 2), axis=i64(0))
    fails("expected rank 0", op, x(3, 4), i32([]))
for d in FLOATS:
    case("L2Loss", t=x(3, 4, dtype=d))
case("L2Loss", t=f32([]))
case("L2Loss", t=x(5000), tolerance=1e-5)

# ---- matrix products ----

for d in SIGNED:
    for ta in (False, True):
        for tb in (False, True):
            a, b = ((4, 3) if ta else (3, 4)), ((5, 4) if tb else (4, 5))
            case("MatMul", a=x(*a, dtype=d, low=-6, high=7), b=x(*b, dtype=d, low=-6, high=7), transpose_a=ta,
                 transpose_b=tb)
for m, k, n in ((1, 1, 1), (1, 70, 1), (33, 17, 1), (1, 9, 40), (20, 130, 19), (0, 3, 2), (2, 0, 3), (2, 3, 0)):
    case("MatMul", a=x(m, k), b=x(k, n), tolerance=1e-4)
fails("[2,3] x [2,3]: inner dimensions 3 and 2 differ", "MatMul", x(2, 3), x(2, 3))
fails("expected rank 2", "MatMul", x(2), x(2, 3))
for d in (np.float32, np.float64, np.float16, np.int32, np.int64):
    case("BatchMatMul", x=x(2, 3, 4, dtype=d, low=-6, high=7), y=x(2, 4, 2, dtype=d, low=-6, high=7))
    for shapes in (((2, 3, 4), (4, 2)), ((2, 1, 3, 4), (3, 4, 2)), ((3, 4), (4, 2))):
        case("BatchMatMulV2", x=x(*shapes[0], dtype=d, low=-6, high=7), y=x(*shapes[1], dtype=d, low=-6, high=7))
for ax in (False, True):
    for ay in (False, True):
        a, b = ((2, 4, 3) if ax else (2, 3, 4)), ((2, 5, 4) if ay else (2, 4, 5))
        case("BatchMatMulV2", x=x(*a), y=x(*b), adj_x=ax, adj_y=ay)

# ---- divisors of nothing: an empty quotient is no error ----

for op in ("Div", "FloorDiv", "TruncateDiv", "FloorMod", "Mod"):
    for d in (np.int32, np.int64):
        case(op, x=np.zeros((0,), d), y=np.zeros((), d))
        case(op, x=np.zeros((2, 0), d), y=np.zeros((1,), d))

# ---- nothing flowing in gives nothing, and NaN is not hidden ----

for d in FLOATS:
    for op in ("SqrtGrad", "RsqrtGrad", "InvGrad", "ReciprocalGrad"):
        case(op, y=np.array([0, inf, nan, 2, 4], d), dy=np.array([0, 0, 0, 0, 1], d))
    for low, high in ((-1, 1), (nan, 1), (-1, nan), (1, -1)):
        case("ClipByValue", t=np.array([nan, 2, 0, -5], d), clip_value_min=np.array(low, d),
             clip_value_max=np.array(high, d))
        case("ClipByValue", t=np.array([nan, 2, 0, -5], d), clip_value_min=np.full(4, low, d),
             clip_value_max=np.full(4, high, d))

# ---- means of integers lie among them; NaN is no place ----

for values in (np.full(3, 255, np.uint8), np.full(3, 127, np.int8), np.array([-128, -128, -127], np.int8),
               np.array([-7, 0, 0], np.int32), np.full(5, 32767, np.int16), np.full(3, 2**31 - 1, np.int32),
               np.full(3, 2**62, np.int64)):
    case("Mean", input=values, axis=i32([0]))
    case("Mean", input=np.stack([values, values]), axis=i32([1]))
    case("Mean", input=np.stack([values, values], 1), axis=i32([0]))
for op in ("ArgMax", "ArgMin"):
    for d in FLOATS:
        for values in ([1, nan, 3], [nan, 1, 3], [1, 3, nan], [nan, nan, 2], [nan, nan, nan]):
            case(op, input=np.array(values, d), dimension=i32(0))

# ---- narrow integers wrap ----

NARROW = (np.int8, np.int16, np.uint8)
for d in NARROW:
    least, most = np.iinfo(d).min, np.iinfo(d).max
    edges = np.array([least, least + 1, 0, 1, 5, most], d)
    for op in ("Maximum", "Minimum"):
        case(op, x=edges[:, None], y=edges)
    for op in ("Div", "TruncateDiv", "FloorDiv", "FloorMod"):
        case(op, x=edges[:, None], y=np.array([1, 2, 7, most], d))
    case("Square", x=edges)
    fails("division by zero", "FloorMod", edges, np.zeros((), d))
for d in (np.int8, np.int16):
    edges = np.array([np.iinfo(d).min, np.iinfo(d).min + 1, -3, 0, 1, 5, np.iinfo(d).max], d)
    for op in ("Abs", "Neg", "Sign"):
        case(op, x=edges)
    case("Pow", x=edges[:, None], y=np.arange(9, dtype=d))
    case("FloorMod", x=edges[1:, None], y=np.array([-3, -1, 4], d))
    fails("negative integer powers", "Pow", edges, np.array(-1, d))
case("BatchMatMulV2", x=x(2, 3, 4, dtype=np.int16, low=-300, high=300), y=x(4, 2, dtype=np.int16, low=-300, high=300))

# ---- products of bytes, with all of their values; of operands of one type ----

for a in (np.int8, np.uint8):
    for b in (np.int8, np.uint8):
        for ax, ay in ((False, False), (True, False), (False, True)):
            sides = [np.iinfo(a), np.iinfo(b)]
            case("BatchMatMulV3",
                 x=x(*((2, 7, 3) if ax else (2, 3, 7)), dtype=a, low=sides[0].min, high=sides[0].max + 1),
                 y=x(*((5, 7) if ay else (7, 5)), dtype=b, low=sides[1].min, high=sides[1].max + 1),
                 Tout=tf.int32, adj_x=ax, adj_y=ay)
for d in (np.float32, np.float64, np.int16, np.int32, np.int64, np.complex64, np.complex128):
    case("BatchMatMulV3", x=x(2, 1, 3, 4, dtype=d, low=-6, high=7), y=x(3, 4, 2, dtype=d, low=-6, high=7),
         Tout=tf.as_dtype(d))
