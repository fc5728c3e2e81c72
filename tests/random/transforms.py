"""How cases of complex numbers, their parts and their transforms are drawn; see drawing.py."""
import tensorflow as tf

from drawing import *


def parts_of(dtype):
    return f32 if dtype is c64 else f64


@generator("Real", "Imag", "Angle", "ComplexAbs")
def part(draw, op):
    dtype = draw.pick(COMPLEX)
    return Case(op, {"x" if op == "ComplexAbs" else "input": draw.values(dtype, draw.shape())},
                {"Tout": tf.as_dtype(parts_of(dtype))})


@generator("Conj")
def conj(draw, op):
    return Case(op, {"input": draw.values(draw.pick(COMPLEX), draw.shape())})


@generator("Complex")
def join(draw, op):
    dtype, (a, b) = draw.pick(COMPLEX), draw.broadcast()
    return Case(op, {"real": draw.values(parts_of(dtype), a), "imag": draw.values(parts_of(dtype), b)},
                {"Tout": tf.as_dtype(dtype)})


@generator("ConjugateTranspose")
def conjugate_transpose(draw, op):
    shape = draw.shape()
    return Case(op, {"x": draw.values(draw.pick(COMPLEX + (f32,)), shape),
                     "perm": np.array(draw.random.permutation(len(shape)), i32)})


@generator("Exp", "Sin", "Cos", "Tan", "Tanh", "Sigmoid", "Sinh", "Cosh", "Asin", "Acos", "Atan", "Asinh", "Acosh", "Atanh")
def function(draw, op):
    dtype = draw.pick(COMPLEX)
    return Case(op, {"x": draw.values(dtype, draw.shape(), 0.2, 1.4)}, tolerance=1e-4 if dtype is c64 else 1e-9)


@generator("FFT", "IFFT", "FFT2D", "IFFT2D", "FFT3D", "IFFT3D")
def transform(draw, op):
    axes = int(op[-2]) if op.endswith("D") else 1
    shape = draw.shape(axes if draw.flag(0.98) else 0, 4, draw.pick((3, 6, 12)))
    return Case(op, {"input": draw.values(draw.pick(COMPLEX), shape)}, gradients=0 not in shape)


@generator("RFFT", "IRFFT", "RFFT2D", "IRFFT2D", "RFFT3D", "IRFFT3D")
def real_transform(draw, op):
    axes, dtype, back = int(op[-2]) if op.endswith("D") else 1, draw.pick(COMPLEX), op.startswith("I")
    batch, lengths = draw.shape(0, 1, 3), [draw.int(1, draw.pick((4, 9, 17))) for _ in range(axes)]
    shape = batch + tuple(n + draw.flag(0.02) - draw.flag(0.02) for n in lengths)
    if back:
        shape = shape[:-1] + (lengths[-1] // 2 + 1,)
    # TensorFlow's gradients are of transforms of the whole, over at most two axes, and of more than one or two numbers
    whole = shape == batch + tuple(lengths[:-1]) + ((lengths[-1] // 2 + 1,) if back else (lengths[-1],))
    kept = whole and 0 not in shape and lengths[-1] > 2 and axes < 3
    return Case(op, {"input": draw.values(dtype if back else parts_of(dtype), shape), "fft_length": np.array(lengths, i32)},
                {"Treal" if back else "Tcomplex": tf.as_dtype(parts_of(dtype) if back else dtype)}, gradients=kept)
