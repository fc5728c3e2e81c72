#!/usr/bin/env python3
"""Writes ops_nn.txt: neural-network ops run by TensorFlow, for tests/test_ops_nn.c."""
import numpy as np

from op_cases import Cases, i32 as vector, tf
from op_cases import eighths as random_eighths

random = np.random.default_rng(5)
cases = Cases("ops_nn.txt", __file__)
case, raw = cases.case, tf.raw_ops


def eighths(*shape, low=-16, high=17):
    return random_eighths(random, *shape, low=low, high=high)


def convolution(prefix, image, filter_shape, stride, padding, dilation=(1, 1), pads=None):
    names = {"Conv2D": ("Conv2DBackpropInput", "Conv2DBackpropFilter"),
             "DepthwiseConv2dNative": ("DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter")}
    x, w = eighths(*image), eighths(*filter_shape)
    attrs = dict(strides=[1, *stride, 1], padding=padding, dilations=[1, *dilation, 1])
    if pads:
        attrs["explicit_paddings"] = [0, 0, *pads, 0, 0]
    y = case(prefix, input=x, filter=w, **attrs)[0]
    dy = eighths(*y.shape)
    if prefix == "Conv2D" and image[-1] != filter_shape[2]:
        grouped_gradients(names[prefix], x, w, dy, attrs)
        return
    if prefix == "Conv2D" and dilation != (1, 1):
        dilated_gradients(names[prefix], x, w, dy, attrs)
        return
    case(names[prefix][0], input_sizes=vector(image), filter=w, out_backprop=dy, **attrs)
    case(names[prefix][1], input=x, filter_sizes=vector(filter_shape), out_backprop=dy, **attrs)


def grouped_gradients(names, x, w, dy, attrs):
    """TensorFlow's CPU has no gradients of convolutions in groups but where XLA compiles them."""
    def compiled(op, **arguments):
        return tf.function(lambda: op(**arguments), jit_compile=True)()
    dx = compiled(raw.Conv2DBackpropInput, input_sizes=x.shape, filter=w, out_backprop=dy, **attrs)
    dw = compiled(raw.Conv2DBackpropFilter, input=x, filter_sizes=w.shape, out_backprop=dy, **attrs)
    case(names[0], expected=dx, input_sizes=vector(x.shape), filter=w, out_backprop=dy, **attrs)
    case(names[1], expected=dw, input=x, filter_sizes=vector(w.shape), out_backprop=dy, **attrs)


def dilated_gradients(names, x, w, dy, attrs):
    """TensorFlow's CPU has no gradients of dilated convolutions: spread the filter with zeros instead."""
    d, p = attrs["dilations"][1:3], attrs.get("explicit_paddings", [])
    kh, kw, c, k = w.shape
    wide = np.zeros(((kh - 1) * d[0] + 1, (kw - 1) * d[1] + 1, c, k), np.float32)
    wide[::d[0], ::d[1]] = w
    plain = dict(strides=attrs["strides"], padding=attrs["padding"])
    if p:
        plain["explicit_paddings"] = p
    dx = raw.Conv2DBackpropInput(input_sizes=x.shape, filter=wide, out_backprop=dy, **plain).numpy()
    dw = raw.Conv2DBackpropFilter(input=x, filter_sizes=wide.shape, out_backprop=dy, **plain).numpy()
    dw = dw[::d[0], ::d[1]]
    case(names[0], expected=dx, input_sizes=vector(x.shape), filter=w, out_backprop=dy, **attrs)
    case(names[1], expected=dw, input=x, filter_sizes=vector(w.shape), out_backprop=dy, **attrs)


for one in ("Conv2D", "DepthwiseConv2dNative"):
    k = 4 if one == "Conv2D" else 2
    convolution(one, (1, 5, 4, 3), (3, 3, 3, k), (1, 1), "SAME")
    convolution(one, (2, 5, 7, 2), (2, 3, 2, k), (2, 2), "SAME")
    convolution(one, (1, 7, 6, 1), (3, 2, 1, k), (3, 3), "VALID")
    convolution(one, (1, 6, 5, 2), (5, 5, 2, k), (2, 2), "SAME")
    convolution(one, (2, 3, 3, 3), (1, 1, 3, k), (2, 2), "VALID")
    convolution(one, (1, 4, 5, 2), (3, 3, 2, k), (1, 1), "EXPLICIT", pads=(1, 0, 2, 1))
convolution("Conv2D", (0, 4, 4, 2), (3, 3, 2, 4), (1, 1), "SAME")
convolution("Conv2D", (1, 5, 6, 2), (2, 3, 2, 3), (1, 2), "VALID")
convolution("Conv2D", (1, 7, 6, 2), (3, 2, 2, 3), (1, 1), "SAME", (2, 3))
convolution("Conv2D", (1, 6, 7, 2), (2, 2, 2, 2), (1, 1), "VALID", (3, 2))
convolution("Conv2D", (1, 5, 5, 2), (2, 3, 2, 2), (2, 2), "EXPLICIT", (2, 2), (2, 1, 0, 3))

for shape in ((2, 3), (2, 2, 3), (2, 1, 2, 3), (0, 2, 2, 3)):
    case("BiasAdd", value=eighths(*shape), bias=eighths(shape[-1]))
    case("BiasAddV1", value=eighths(*shape), bias=eighths(shape[-1]))
    case("BiasAddGrad", out_backprop=eighths(*shape))
case("BiasAdd", value=eighths(2, 3, 2, 2), bias=eighths(3), data_format="NCHW")
case("BiasAddGrad", out_backprop=eighths(2, 3, 2, 2), data_format="NCHW")
case("BiasAdd", value=random.integers(-2**31, 2**31, (4, 3)).astype(np.int32),
     bias=random.integers(-2**31, 2**31, 3).astype(np.int32))

x = np.concatenate([eighths(12), np.array([0, 6, 7, 30, -30, 100, -100], np.float32)])
dy = eighths(*x.shape)
for op in ("Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign"):
    y = case(op, features=x)[0]
    if op in ("Elu", "Selu"):
        case(op + "Grad", gradients=dy, outputs=y)
    else:
        case(op + "Grad", gradients=dy, features=x)
case("LeakyRelu", features=x, alpha=0.25)
case("LeakyReluGrad", gradients=dy, features=x, alpha=0.25)
case("Relu", features=np.array([-3, 0, 5, 2147483647, -2147483648], np.int32))
case("Relu6", features=np.array([3, 0, 5, 255], np.uint8))


def pools(image, window, stride, padding, pads=None, values=None):
    x = eighths(*image) if values is None else values
    attrs = dict(ksize=[1, *window, 1], strides=[1, *stride, 1], padding=padding)
    extra = dict(explicit_paddings=[0, 0, *pads, 0, 0]) if pads else {}
    y = case("MaxPool", input=x, **attrs, **extra)[0]
    dy = eighths(*y.shape)
    case("MaxPoolGrad", orig_input=x, orig_output=y, grad=dy, **attrs, **extra)
    if not pads:
        case("MaxPoolGradGrad", orig_input=x, orig_output=y, grad=eighths(*x.shape), **attrs)
        case("AvgPool", value=x, **attrs)
        case("AvgPoolGrad", orig_input_shape=vector(image), grad=dy, **attrs)


pools((1, 5, 6, 2), (3, 3), (2, 2), "SAME")
pools((2, 5, 6, 1), (3, 3), (2, 2), "VALID")
pools((1, 4, 5, 3), (2, 2), (1, 1), "SAME")
pools((1, 5, 5, 1), (2, 2), (3, 3), "SAME")
pools((1, 3, 2, 2), (5, 4), (2, 2), "SAME")
pools((2, 4, 5, 1), (2, 3), (2, 1), "VALID")
pools((1, 1, 1, 17), (3, 3), (1, 1), "SAME")
pools((1, 4, 4, 1), (3, 3), (1, 1), "SAME", values=np.ones((1, 4, 4, 1), np.float32))
pools((1, 4, 5, 2), (3, 3), (2, 2), "EXPLICIT", pads=(1, 2, 0, 1), values=-1 - eighths(1, 4, 5, 2, low=0))
x = random.integers(-9, 10, (1, 3, 3, 2)).astype(np.int32)
attrs = dict(ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="SAME")
case("MaxPool", expected=raw.MaxPool(input=tf.constant(x), **attrs), input=x, **attrs)
x = eighths(0, 4, 4, 2)
case("MaxPool", input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
case("AvgPool", value=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")

for shape, radius, bias, alpha, beta in (((1, 2, 2, 7), 2, 1.0, 0.5, 0.75), ((2, 1, 2, 3), 4, 2.0, 0.125, 0.75),
                                         ((1, 1, 3, 4), 0, 1.0, 1.0, 0.5), ((1, 1, 2, 9), 5, 1.0, 0.25, 1.0),
                                         ((1, 2, 1, 8), 4, 1.0, 0.001 / 9, 0.75), ((1, 1, 2, 5), 1, 1.5, 0.5, 0.3)):
    attrs = dict(depth_radius=radius, bias=bias, alpha=alpha, beta=beta)
    x = eighths(*shape)
    y = case("LRN", input=x, **attrs)[0]
    case("LRNGrad", input_grads=eighths(*shape), input_image=x, output_image=y, **attrs)

for version in ("", "V2", "V3"):
    for training in (True, False):
        for shape in ((2, 3, 2, 3), (1, 1, 1, 2), (3, 1, 2, 18), (0, 2, 2, 3)):
            if shape[0] == 0 and not training:
                continue
            c = shape[-1]
            x, scale, offset = eighths(*shape), eighths(c), eighths(c)
            mean, variance = (eighths(0), eighths(0)) if training else (eighths(c), eighths(c, low=1))
            attrs = dict(epsilon=0.001, is_training=training)
            results = case("FusedBatchNorm" + version, keep=range(5 if training and shape[0] else 3), x=x, scale=scale,
                           offset=offset, mean=mean, variance=variance, **attrs)
            if shape[0] == 0:  # left unwritten
                results[3], results[4] = np.zeros_like(scale), np.zeros_like(scale)
            saved = dict(reserve_space_1=results[3] if training else mean,
                         reserve_space_2=results[4] if training else variance)
            if version == "V3":
                saved["reserve_space_3"] = eighths(0)
            case("FusedBatchNormGrad" + version, keep=range(3), y_backprop=eighths(*shape), x=x, scale=scale, **saved,
                 **attrs)

for shape in ((3, 4), (5,), (2, 2, 3), (1, 1), (0, 3)):
    case("Softmax", logits=eighths(*shape))
    case("LogSoftmax", logits=eighths(*shape))
case("Softmax", logits=np.array([[128, 127, -128]], np.float32))


def probabilities(*shape):
    p = random.integers(0, 5, shape).astype(np.float32) + 0.5
    return (p / p.sum(-1, keepdims=True)).astype(np.float32)


for logits, labels in (((3, 4), (3, 4)), ((1, 3), (2, 3)), ((2, 3), (1, 3)), ((0, 3), (0, 3)), ((2, 1), (2, 3))):
    case("SoftmaxCrossEntropyWithLogits", features=eighths(*logits), labels=probabilities(*labels))
for kind in (np.int32, np.int64):
    case("SparseSoftmaxCrossEntropyWithLogits", features=eighths(4, 3), labels=np.array([0, 2, 1, 2], kind))
    case("SparseSoftmaxCrossEntropyWithLogits", features=eighths(0, 3), labels=np.array([], kind))
case("SparseSoftmaxCrossEntropyWithLogits", features=np.array([[1000, 0, -1000], [3, 3, 3]], np.float32),
     labels=np.array([2, 0], np.int64))

scores = np.array([[1, 2, 2, 0], [4, 3, 2, 1], [1, np.inf, 0, 0], [1, 2, 3, np.nan], [0, 0, 0, 0]], np.float32)
for kind in (np.int32, np.int64):
    targets = np.array([2, 3, 0, 2, 1], kind)
    for k in (0, 1, 2, 3):
        case("InTopKV2", predictions=scores, targets=targets, k=np.array(k, kind))
        case("InTopK", predictions=scores, targets=targets, k=k)
case("InTopK", predictions=scores[:2], targets=np.array([4, -1], np.int32), k=4)
for padding in ("SAME", "VALID"):
    image, taps = eighths(2, 5, 6, 3), eighths(2, 3, 3)
    window = dict(strides=[1, 2, 1, 1], rates=[1, 1, 2, 1], padding=padding)
    case("Dilation2D", input=image, filter=taps, **window)
    shape = tf.raw_ops.Dilation2D(input=image, filter=taps, **window).shape
    for of in ("Input", "Filter"):
        case("Dilation2DBackprop" + of, input=image, filter=taps, out_backprop=eighths(*shape), **window)

# in groups
convolution("Conv2D", (1, 5, 4, 4), (3, 3, 2, 6), (1, 1), "SAME")
convolution("Conv2D", (2, 5, 6, 6), (2, 3, 2, 3), (2, 2), "SAME")
convolution("Conv2D", (1, 7, 6, 3), (3, 2, 1, 6), (3, 3), "VALID")
convolution("Conv2D", (2, 3, 3, 4), (1, 1, 2, 4), (2, 2), "VALID")
convolution("Conv2D", (1, 4, 5, 4), (3, 3, 2, 2), (1, 1), "EXPLICIT", pads=(1, 0, 2, 1))
convolution("Conv2D", (1, 5, 4, 4), (2, 2, 2, 4), (1, 1), "SAME", (2, 2))
convolution("Conv2D", (1, 5, 5, 4), (2, 3, 2, 2), (2, 2), "EXPLICIT", (2, 2), (2, 1, 0, 3))
