#!/usr/bin/env python3
"""Writes ops_complex.txt: ops on complex numbers, their parts and their transforms, and quantized numbers, run by
TensorFlow, for tests/test_ops_complex.c; and complex_gradients.txt, what tf.gradients makes of them: a case is an op
with its inputs and the gradient of its output, and gives those of its inputs that have one."""
from op_cases import *

random = np.random.default_rng(29)
cases = Cases("ops_complex.txt", __file__)
case, fails = cases.case, cases.fails
C64, C128 = np.complex64, np.complex128
BOTH = (C64, C128)
inf, nan = np.inf, np.nan


def z(*shape, dtype=C64):
    """Eighths as parts."""
    return np.asarray(eighths(random, *shape) + 1j * eighths(random, *shape), dtype)


def x(*shape, dtype=np.float32):
    return np.asarray(eighths(random, *shape), dtype)


def away(*shape, dtype=C64):
    """Not near 0."""
    return np.asarray(z(*shape) + np.where(random.integers(0, 2, shape), 3, -3), dtype)


def part(dtype):
    return np.float32 if dtype is C64 else np.float64


SHAPES = (((), ()), ((3,), ()), ((2, 3), (3,)), ((2, 1, 3), (4, 1)), ((0, 2), (1, 2)))


def binary(op, make_y=z, **options):
    for d in BOTH:
        for a, b in SHAPES if d is C64 else SHAPES[2:4]:
            case(op, x=z(*a, dtype=d), y=make_y(*b, dtype=d), **options)


# ---- element-wise ----

for op in ("Add", "AddV2", "Sub", "Mul", "MulNoNan", "SquaredDifference"):
    binary(op)
for op in ("Div", "RealDiv", "DivNoNan", "Xdivy"):
    binary(op, make_y=away)
for op in ("DivNoNan", "MulNoNan"):
    case(op, x=np.array([1 + 2j, 3, nan], C64), y=np.array([0, 1j, 0], C64))
case("Xdivy", x=np.array([0, 0, 1j], C64), y=np.array([0, nan, 2j], C64))
for op in ("Xlogy", "Xlog1py"):
    for d in BOTH:
        case(op, x=z(2, 3, dtype=d), y=away(3, dtype=d))
    case(op, x=np.array([0, 1j], C64), y=np.array([0, 2], C64))
for d in BOTH:
    case("Pow", x=away(2, 3, dtype=d), y=z(3, dtype=d), **({"tolerance": 1e-4} if d is C64 else {"tolerance": 1e-11}))

for op in ("Neg", "Square", "Sign", "Reciprocal", "Inv", "Exp", "Expm1", "Log", "Log1p", "Sin", "Cos", "Tan", "Asin",
           "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh", "Sqrt", "Rsqrt", "Sigmoid"):
    for d in BOTH:
        v = away(2, 5, dtype=d) if op not in ("Tan", "Exp", "Sin", "Cos", "Sinh", "Cosh") else z(2, 5, dtype=d)
        case(op, x=v, tolerance=1e-5 if d is C64 else 1e-12)
case("Sign", x=np.zeros([2], C64))
for op in ("Expm1", "Log1p"):
    case(op, x=np.array([1e-9 + 1e-9j, 1e-9, 0], C128))
for op in ("SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad", "SigmoidGrad", "TanhGrad"):
    for d in BOTH:
        case(op, y=away(2, 3, dtype=d), dy=z(2, 3, dtype=d))
for op in ("SqrtGrad", "RsqrtGrad", "ReciprocalGrad"):
    case(op, y=np.array([0, nan, 2], C64), dy=np.array([0, 0, 1j], C64))

for d in BOTH:
    a = z(2, 3, dtype=d)
    case("Equal", x=a, y=a)
    case("NotEqual", x=a, y=np.conj(a))
    case("Equal", x=z(4, dtype=d), y=a[0, :1])
    case("AddN", inputs=[z(2, 3, dtype=d) for _ in range(3)])
    case("Conj", input=a)
    p = tf.as_dtype(part(d))
    case("Real", input=a, Tout=p)
    case("Imag", input=a, Tout=p)
    case("ComplexAbs", x=a, Tout=p)
    case("Angle", input=a, Tout=p)
    case("Complex", real=x(2, 1, dtype=part(d)), imag=x(3, dtype=part(d)), Tout=tf.as_dtype(d))
    case("Complex", real=x(dtype=part(d)), imag=x(dtype=part(d)), Tout=tf.as_dtype(d))
case("Conj", input=z(0, 2))
case("ComplexAbs", x=np.array([3e20 + 4e20j, complex(inf, nan)], C64), Tout=tf.float32)
fails("double from complex64", "Real", z(2), Tout=tf.float64)
fails("complex128 from float", "Complex", x(2), x(2), Tout=tf.complex128)

# ---- conversion ----

REALS = (np.float32, np.float64, np.float16, bf16, np.int8, np.uint8, np.int16, np.int32, np.int64, np.bool_)
for d in BOTH:
    for to in REALS + BOTH:
        case("Cast", x=np.array([1.5 + 2j, 0, 3 - 1j, 7j], d), DstT=tf.as_dtype(to))
    for of in REALS:
        case("Cast", x=np.array([1, 0, 3], np.float32).astype(of), DstT=tf.as_dtype(d))

# ---- moving ----

for d in BOTH:
    a = z(2, 3, 2, dtype=d)
    case("Transpose", x=a, perm=i32([2, 0, 1]))
    case("ConjugateTranspose", x=a, perm=i32([2, 0, 1]))
    case("ConcatV2", values=[a, z(2, 1, 2, dtype=d)], axis=i32(1))
    case("Split", axis=i32(1), value=a, num_split=3)
    case("Slice", input=a, begin=i32([0, 1, 0]), size=i32([2, 2, 1]))
    case("StridedSlice", input=a, begin=i32([1, 2]), end=i32([0, 0]), strides=i32([-1, -2]), begin_mask=0, end_mask=1,
         ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0)
    case("GatherV2", params=a, indices=i32([2, 0, 2]), axis=i32(1))
    case("GatherNd", params=a, indices=i32([[1, 2], [0, 0]]))
    case("Pack", values=[a, a], axis=1)
    case("Unpack", value=a, num=2, axis=2)
    case("Tile", input=a, multiples=i32([1, 2, 2]))
    case("Pad", input=a, paddings=i32([[1, 0], [0, 2], [0, 0]]))
    case("PadV2", input=z(2, dtype=d), paddings=i32([[1, 2]]), constant_values=np.asarray(1 - 2j, d))
    case("Fill", dims=i32([2, 2]), value=np.asarray(1 - 2j, d))
    case("ZerosLike", x=a)
    case("OnesLike", x=a)
    case("ReverseV2", tensor=a, axis=i32([0, 1]))
    case("Select", condition=np.array([True, False]), x=a, y=z(2, 3, 2, dtype=d))
    case("SelectV2", condition=np.array([True, False]), t=a, e=np.asarray(1j, d))
    case("BroadcastTo", input=z(3, 1, dtype=d), shape=i32([2, 3, 2]))
    case("MatrixDiag", diagonal=z(2, 3, dtype=d))
    case("MatrixDiagPart", input=z(3, 3, dtype=d))
    case("MatrixBandPart", input=z(3, 3, dtype=d), num_lower=i64(0), num_upper=i64(1))
    case("Diag", diagonal=z(3, dtype=d))
    case("ScatterNd", indices=i32([[1], [3], [1]]), updates=z(3, 2, dtype=d), shape=i32([4, 2]))
    case("UnsortedSegmentSum", data=z(4, 2, dtype=d), segment_ids=i32([2, 0, -1, 2]), num_segments=i32(3))

# ---- sums and products ----

for d in BOTH:
    for op in ("Sum", "Mean", "Prod"):
        case(op, input=z(3, 4, 2, dtype=d), axis=i32([1]), keep_dims=False)
        case(op, input=z(3, 4, 2, dtype=d), axis=i32([0, 2]), keep_dims=True)
        case(op, input=z(5, dtype=d), axis=i32([0]), keep_dims=False)
        case(op, input=z(2, 0, dtype=d), axis=i32([1]), keep_dims=False)
    for op in ("Cumsum", "Cumprod"):
        case(op, x=z(3, 4, dtype=d), axis=i32(1), exclusive=True, reverse=True)
        case(op, x=z(3, 4, dtype=d), axis=i32(0), exclusive=False, reverse=False)
    for ta in (False, True):
        for tb in (False, True):
            case("MatMul", a=z(*((3, 2) if ta else (2, 3)), dtype=d), b=z(*((4, 3) if tb else (3, 4)), dtype=d),
                 transpose_a=ta, transpose_b=tb)
            case("BatchMatMulV2", x=z(*((2, 3, 2) if ta else (2, 2, 3)), dtype=d),
                 y=z(*((4, 3) if tb else (3, 4)), dtype=d), adj_x=ta, adj_y=tb)

# ---- transforms ----

for d in BOTH:
    # What is written was computed in double: TensorFlow's own are as exact as their type.
    t = 1e-5 if d is C64 else 1e-12
    for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 19, 30, 31, 64, 97):
        case("FFT", input=z(n, dtype=d), tolerance=t)
    case("FFT", input=z(3, 2, 10, dtype=d), tolerance=t)
    for n in (1, 2, 5, 8, 23):
        case("IFFT", input=z(2, n, dtype=d), tolerance=t)
    for shape in ((4, 3), (2, 5, 7), (3, 1, 6), (1, 17, 4)):
        case("FFT2D", input=z(*shape, dtype=d), tolerance=t)
        case("IFFT2D", input=z(*shape, dtype=d), tolerance=t)
    for shape in ((2, 3, 4), (2, 2, 5, 1), (2, 1, 1, 11)):
        case("FFT3D", input=z(*shape, dtype=d), tolerance=t)
        case("IFFT3D", input=z(*shape, dtype=d), tolerance=t)
    p, types = part(d), {"Tcomplex": tf.as_dtype(d)}
    back = {"Treal": tf.as_dtype(p)}
    for n in (1, 2, 3, 4, 5, 8, 9, 22, 37):
        case("RFFT", input=x(2, n, dtype=p), fft_length=i32([n]), tolerance=t, **types)
        case("IRFFT", input=z(2, n // 2 + 1, dtype=d), fft_length=i32([n]), tolerance=t, **back)
    case("RFFT", input=x(2, 9, dtype=p), fft_length=i32([6]), tolerance=t, **types)
    case("IRFFT", input=z(9, dtype=d), fft_length=i32([7]), tolerance=t, **back)
    for n in ((4, 6), (3, 5), (1, 4), (5, 1), (2, 2)):
        half = (n[0], n[1] // 2 + 1)
        case("RFFT2D", input=x(2, *n, dtype=p), fft_length=i32(n), tolerance=t, **types)
        case("IRFFT2D", input=z(2, *half, dtype=d), fft_length=i32(n), tolerance=t, **back)
    case("RFFT2D", input=x(5, 6, dtype=p), fft_length=i32([3, 4]), tolerance=t, **types)
    case("IRFFT2D", input=z(5, 6, dtype=d), fft_length=i32([3, 4]), tolerance=t, **back)
    for n in ((2, 3, 4), (3, 2, 5), (1, 1, 3)):
        half = (n[0], n[1], n[2] // 2 + 1)
        case("RFFT3D", input=x(*n, dtype=p), fft_length=i32(n), tolerance=t, **types)
        case("IRFFT3D", input=z(*half, dtype=d), fft_length=i32(n), tolerance=t, **back)
case("FFT", input=z(0, 4))
case("RFFT", input=x(0, 4), fft_length=i32([4]), Tcomplex=tf.complex64)
case("RFFT", input=x(2, 4), fft_length=i32([0]), Tcomplex=tf.complex64, expected=np.zeros((2, 0), C64))  # it aborts
fails("rank 0, expected at least 1", "FFT", z())
fails("rank 1, expected at least 2", "FFT2D", z(3))
fails("must have length of at least 5 but got: 4", "RFFT", x(2, 4), i32([5]))
fails("must have length of at least 4 but got: 3", "IRFFT", z(3), i32([6]))
fails("fft_length must have shape [1]", "RFFT", x(2, 4), i32([2, 2]))
fails("must >= 0, but got: -1", "RFFT", x(2, 4), i32([-1]))

# ---- gradients ----

grads = Cases("complex_gradients.txt", __file__)


def gradients(op, tolerance=None, only=None, **arguments):
    names = [k for k, v in arguments.items() if isinstance(v, np.ndarray)]
    wanted = [k for k in names if arguments[k].dtype.kind in "cf" and (only is None or k in only)]
    graph = tf.Graph()
    with graph.as_default():
        tensors = {k: tf.constant(v) if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
        y = getattr(tf.raw_ops, op)(**tensors)
        y = y[0] if isinstance(y, (list, tuple)) else y
        shape = y.shape.as_list()
        kind = y.dtype.as_numpy_dtype
        dy = z(*shape, dtype=kind) if y.dtype.is_complex else x(*shape, dtype=kind)
        dx = tf.gradients(y, [tensors[k] for k in wanted], tf.constant(dy))
        dx = [g if g is None else tf.convert_to_tensor(g) for g in dx]
    with tf.compat.v1.Session(graph=graph) as session:
        values = iter(session.run([g for g in dx if g is not None]))
    grads.out.write("case %s\n" % op)
    grads.inputs(arguments[k] for k in names)
    grads.tensor("in", dy)
    for k, v in arguments.items():
        if k not in names:
            grads.attribute(k, v)
    at = dict(zip(wanted, dx))
    for k in names:
        if k in at and at[k] is not None:
            grads.tensor("out", next(values))
        else:
            grads.out.write("skip\n")
    if tolerance is not None:
        grads.out.write("tolerance %g\n" % tolerance)


D = C128
for op in ("AddV2", "Sub", "Mul", "SquaredDifference"):  # of some others it forgets the conjugates
    gradients(op, x=z(2, 3, dtype=D), y=z(3, dtype=D))
for op in ("Div", "RealDiv", "DivNoNan"):
    gradients(op, x=away(2, 3, dtype=D), y=away(3, dtype=D))
gradients("Pow", x=away(2, 3, dtype=D) / 4, y=z(3, dtype=D), tolerance=1e-10)
for op in ("Neg", "Square", "Sign", "Reciprocal", "Inv", "Exp", "Expm1", "Log", "Log1p", "Sin", "Cos", "Tan", "Asin",
           "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh", "Sqrt", "Rsqrt", "Sigmoid"):
    gradients(op, x=away(5, dtype=D) / 4, tolerance=1e-11)
for op in ("SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "SigmoidGrad", "TanhGrad"):
    gradients(op, y=away(5, dtype=D) / 2, dy=z(5, dtype=D), tolerance=1e-11)
gradients("Complex", real=x(2, 1, dtype=np.float64), imag=x(3, dtype=np.float64), Tout=tf.complex128)
for op in ("Real", "Imag", "Angle"):
    gradients(op, input=away(5, dtype=D), Tout=tf.float64)
gradients("ComplexAbs", x=away(5, dtype=D), Tout=tf.float64)
gradients("ComplexAbs", x=np.array([0, 1j], D), Tout=tf.float64)
gradients("Conj", input=z(5, dtype=D))
gradients("Cast", x=z(5, dtype=D), DstT=tf.float64)
gradients("Cast", x=x(5, dtype=np.float64), DstT=tf.complex128)
for op in ("Sum", "Mean", "Prod"):
    gradients(op, input=away(3, 4, dtype=D), axis=i32([1]), keep_dims=False)
gradients("Cumsum", x=z(3, 4, dtype=D), axis=i32(1), exclusive=True, reverse=False)
for ta in (False, True):
    for tb in (False, True):
        gradients("MatMul", a=z(*((3, 2) if ta else (2, 3)), dtype=D), b=z(*((4, 3) if tb else (3, 4)), dtype=D),
                  transpose_a=ta, transpose_b=tb)
        gradients("BatchMatMulV2", x=z(*((2, 3, 2) if ta else (2, 2, 3)), dtype=D),
                  y=z(*((4, 3) if tb else (3, 4)), dtype=D), adj_x=ta, adj_y=tb)
gradients("Transpose", x=z(2, 3, dtype=D), perm=i32([1, 0]))
gradients("ConjugateTranspose", x=z(2, 3, dtype=D), perm=i32([1, 0]))
gradients("GatherNd", params=z(3, 2, dtype=D), indices=i32([[1], [0], [1]]))
gradients("SelectV2", condition=np.array([True, False, True]), t=z(3, dtype=D), e=z(dtype=D))
for op, shape in (("FFT", (2, 6)), ("FFT2D", (2, 3, 4)), ("FFT3D", (2, 3, 2))):
    gradients(op, input=z(*shape, dtype=D))
    gradients("I" + op, input=z(*shape, dtype=D))
for n in (5, 6, 1, 2):
    gradients("RFFT", input=x(2, n, dtype=np.float64), fft_length=i32([n]), Tcomplex=tf.complex128)
    if n > 2:
        gradients("IRFFT", input=z(2, n // 2 + 1, dtype=D), fft_length=i32([n]), Treal=tf.float64)
for n in ((4, 6), (3, 5)):
    gradients("RFFT2D", input=x(2, *n, dtype=np.float64), fft_length=i32(n), Tcomplex=tf.complex128)
    gradients("IRFFT2D", input=z(2, n[0], n[1] // 2 + 1, dtype=D), fft_length=i32(n), Treal=tf.float64)
