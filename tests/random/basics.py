"""How cases of arithmetic, reductions, arrays and networks' ops are drawn; see drawing.py."""
from drawing import *

ANY = (f32, f64, f16, i32, i64, u8, np.bool_, c64, c128) + UNSIGNED


# ---- functions of elements -------------------------------------------------------------------------------------------

@generator("Abs", "Neg", "Sign", "Square", "Ceil", "Floor", "Round", "Sqrt", "Rsqrt", "Log", "Log1p", "Expm1", "Inv",
           "Reciprocal", "IsNan", "IsInf", "IsFinite")
def unary(draw, op):
    types = (f32, f64, f16) + ((i32, i64) if op in ("Abs", "Neg", "Sign", "Square") else ())
    types += UNSIGNED if op == "Square" else (i8, i16) if op in ("Abs", "Neg", "Sign") else ()
    types += COMPLEX if op in ("Neg", "Sign", "Square", "Sqrt", "Rsqrt", "Log", "Log1p", "Expm1", "Inv", "Reciprocal") else ()
    return Case(op, {"x": draw.wild(draw.pick(types), draw.shape(), *((0.1, 4) if op in ("Sqrt", "Rsqrt", "Log", "Log1p")
                                                                      else (-3, 3)))})


@generator("Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign", "LeakyRelu")
def activation(draw, op):
    attrs = {"alpha": draw.pick((0.2, 0.01, 1.5))} if op == "LeakyRelu" else {}
    return Case(op, {"features": draw.values(draw.pick((f32, f64, f16)), draw.shape(), -8, 8)}, attrs)


@generator("ReluGrad", "Relu6Grad", "SoftplusGrad", "SoftsignGrad", "LeakyReluGrad", "EluGrad", "SeluGrad", "SigmoidGrad",
           "TanhGrad", "SqrtGrad", "RsqrtGrad", "InvGrad", "ReciprocalGrad")
def activation_gradient(draw, op):
    complex_too = op in ("SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "InvGrad", "ReciprocalGrad")
    dtype, shape = draw.pick((f32, f64) + (COMPLEX if complex_too else ())), draw.shape()
    first, second = (("gradients", "outputs") if op in ("EluGrad", "SeluGrad") else
                     ("dy", "y") if op in ("SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "InvGrad", "ReciprocalGrad")
                     else ("gradients", "features"))
    positive = op in ("SqrtGrad", "RsqrtGrad", "InvGrad", "ReciprocalGrad")
    return Case(op, {first: draw.values(dtype, shape), second: draw.values(dtype, shape, 0.2 if positive else -2, 2)})


@generator("Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "Maximum", "Minimum", "SquaredDifference", "Pow", "DivNoNan",
           "MulNoNan", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod")
def binary(draw, op):
    a, b = draw.broadcast()
    types = {"DivNoNan": (f32, f64), "MulNoNan": (f32, f64), "RealDiv": (f32, f64, f16), "Mod": (f32, f64, i32, i64), "TruncateMod": (f32, f64, i32, i64),
             "TruncateDiv": (i32, i64, i16, u8) + UNSIGNED, "FloorMod": (f32, f64, i32, i64, i8, i16, u8) + UNSIGNED,
             "FloorDiv": (f32, f64, i32, i64) + UNSIGNED,
             "Pow": (f32, f64, i32)}.get(op, (f32, f64, f16, bf16, i32, i64))
    if op in ("Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "SquaredDifference", "DivNoNan", "MulNoNan"):
        types += COMPLEX
    if op in ("AddV2", "Sub", "Mul", "Div", "Maximum", "Minimum"):
        types += UNSIGNED + (i8, i16, u8)
    dtype = draw.pick(types)
    x, y = draw.values(dtype, a, -9, 9), draw.values(dtype, b, -4, 4)
    if op == "Pow":
        x, y = draw.values(dtype, a, 0.1 if dtype != i32 else -3, 3), draw.values(dtype, b, 0 if dtype == i32 else -2, 3)
    if "No" in op and y.size:
        y.reshape(-1)[0] = 0
    elif op in ("RealDiv", "Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod") and draw.flag(0.95):
        y = np.where(y == 0, y.dtype.type(1), y)
    # TensorFlow's gradient of a complex MulNoNan forgets the conjugates
    return Case(op, {"x": x, "y": y}, gradients=op != "MulNoNan" or dtype not in COMPLEX)


@generator("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "LogicalOr")
def comparison(draw, op):
    a, b = draw.broadcast()
    dtype = np.bool_ if op.startswith("Logical") else draw.pick((f32, f64, f16, i32, i64, u8) + UNSIGNED +
                                                               (COMPLEX if op in ("Equal", "NotEqual") else ()))
    return Case(op, {"x": np.round(draw.values(dtype, a)) if dtype != np.bool_ else draw.values(dtype, a),
                     "y": np.round(draw.values(dtype, b)) if dtype != np.bool_ else draw.values(dtype, b)})


@generator("ApproximateEqual")
def approximately(draw, op):
    shape = draw.shape()
    return Case(op, {"x": draw.values(f32, shape), "y": draw.values(f32, shape)}, {"tolerance": 0.5})


@generator("ClipByValue")
def clip(draw, op):
    dtype, shape = draw.pick((f32, f64, i32)), draw.shape()
    limits = shape if draw.flag(0.3) else ()
    return Case(op, {"t": draw.wild(dtype, shape, -5, 5), "clip_value_min": draw.values(dtype, limits, -3, -1),
                     "clip_value_max": draw.values(dtype, limits, 1, 3)}, gradients=limits == ())


@generator("AddN", "AccumulateNV2")
def add_n(draw, op):
    dtype, shape = draw.pick((f32, f64, i32) + (COMPLEX if op == "AddN" else ())), draw.shape()
    return Case(op, {"inputs": [draw.values(dtype, shape) for _ in range(draw.int(1, 9))]},
                {"shape": shape} if op != "AddN" else {}, gradients=op == "AddN")


@generator("Cast")
def cast(draw, op):
    source, target = draw.pick(ANY + (i8, i16)), draw.pick(ANY + (i8, i16))
    positive = source not in (np.bool_,) and np.dtype(target).kind == "u"
    return Case(op, {"x": draw.values(source, draw.shape(), 0 if positive else -99, 99)}, {"DstT": target, "Truncate": False})


@generator("Select", "SelectV2")
def select(draw, op):
    dtype, (a, b) = draw.pick((f32, f64, i32) + COMPLEX), draw.broadcast()
    if op == "Select":
        b = a
        c = a if draw.flag(0.6) or not a else a[:1] if draw.flag() else ()
    else:
        c = draw.pick((a, b, ()))
    names = ("t", "e")
    return Case(op, {"condition": draw.values(np.bool_, c), names[0]: draw.values(dtype, a), names[1]: draw.values(dtype, b)})


@generator("Bucketize")
def bucketize(draw, op):
    return Case(op, {"input": draw.values(draw.pick((f32, f64, i32, i64)), draw.shape(), -5, 5)},
                {"boundaries": sorted(float(draw.int(-4, 4)) for _ in range(draw.int(0, 4)))})


# ---- reductions ------------------------------------------------------------------------------------------------------

@generator("Sum", "Mean", "Prod", "Max", "Min", "All", "Any")
def reduction(draw, op):
    dtype = np.bool_ if op in ("All", "Any") else draw.pick((f32, f64, i32, i64) + UNSIGNED + ((f16,) if op != "Prod" else ()) +
                                                               (COMPLEX if op in ("Sum", "Mean", "Prod") else ()))
    shape = draw.shape()
    rank = len(shape)
    axes = [int(a) for a in draw.random.permutation(rank)[:draw.int(0, rank)]]
    axes = [a - rank if draw.flag(0.2) else a for a in axes]
    if draw.flag(0.02):
        axes.append(draw.pick((rank, -rank - 1)))
    indices = np.array(axes, draw.pick((i32, i64)))
    if len(axes) == 1 and draw.flag():
        indices = indices.reshape(())
    return Case(op, {"input": draw.values(dtype, shape, -3, 3), "reduction_indices": indices},
                {"keep_dims": draw.flag()}, gradients=op != "Prod" or 0 not in shape,
                tolerance=0.02 if dtype == f16 else None)


@generator("ArgMax", "ArgMin")
def arg(draw, op):
    shape = draw.shape(1)
    axis = draw.int(-len(shape), len(shape) - 1) if draw.flag(0.97) else len(shape)
    return Case(op, {"input": np.round(draw.values(draw.pick((f32, f64, i32, i64, u8)), shape, 0, 5)),
                     "dimension": i32(axis)}, {"output_type": draw.pick((i32, i64))})


@generator("Cumsum", "Cumprod")
def cumulative(draw, op):
    shape = draw.shape(1)
    return Case(op, {"x": draw.values(draw.pick((f32, f64, i32)), shape, 1, 2),
                     "axis": i32(draw.int(-len(shape), len(shape) - 1))},
                {"exclusive": draw.flag(), "reverse": draw.flag()}, gradients=op == "Cumsum" or 0 not in shape)


@generator("L2Loss")
def l2(draw, op):
    return Case(op, {"t": draw.values(draw.pick((f32, f64)), draw.shape())})


@generator("TopKV2")
def top_k(draw, op):
    shape = draw.shape(1)
    k = draw.int(0, shape[-1]) if draw.flag(0.95) else shape[-1] + 1
    return Case(op, {"input": draw.values(draw.pick((f32, f64, i32)), shape, -9, 9), "k": i32(k)},
                {"sorted": True})


@generator("InTopKV2")
def in_top_k(draw, op):
    batch, classes = draw.int(0, 4), draw.int(1, 6)
    return Case(op, {"predictions": np.round(draw.wild(f32, (batch, classes))), "targets": draw.indices((batch,), classes, i32),
                     "k": i32(draw.int(1, 4))}, gradients=False, fed=("predictions", "targets"))


# ---- arrays ----------------------------------------------------------------------------------------------------------

@generator("MatMul")
def matmul(draw, op):
    dtype, (m, k, n) = draw.pick((f32, f64, f16, bf16, i32) + COMPLEX), (draw.dim(), draw.dim(), draw.dim())
    ta, tb = draw.flag(), draw.flag()
    return Case(op, {"a": draw.values(dtype, (k, m) if ta else (m, k)),
                     "b": draw.values(dtype, (n, k + draw.flag(0.02)) if tb else (k, n))},
                {"transpose_a": ta, "transpose_b": tb}, tolerance=0.05 if np.dtype(dtype).itemsize == 2 else None)


@generator("BatchMatMul", "BatchMatMulV2")
def batch_matmul(draw, op):
    dtype, (m, k, n) = draw.pick((f32, f64, i32) + COMPLEX), (draw.dim(), draw.dim(), draw.dim())
    x, y = draw.flag(), draw.flag()
    batch = draw.shape(0, 2, 3)
    other = batch if op == "BatchMatMul" else tuple(1 if draw.flag(0.3) else d for d in batch)[draw.int(0, len(batch)):]
    return Case(op, {"x": draw.values(dtype, batch + ((k, m) if x else (m, k))),
                     "y": draw.values(dtype, other + ((n, k) if y else (k, n)))}, {"adj_x": x, "adj_y": y})


@generator("Transpose")
def transpose(draw, op):
    shape = draw.shape()
    perm = draw.random.permutation(len(shape)).astype(draw.pick((i32, i64)))
    if perm.size and draw.flag(0.03):
        perm[0] = perm[-1] if perm.size > 1 else 1
    return Case(op, {"x": draw.values(draw.pick(ANY), shape), "perm": perm})


@generator("Slice")
def slice_(draw, op):
    shape, index = draw.shape(), draw.pick((i32, i64))
    begin = [draw.int(0, d) for d in shape]
    size = [draw.pick((-1, draw.int(0, d - b))) for d, b in zip(shape, begin)]
    if shape and draw.flag(0.03):
        size[0] = shape[0] + 1
    return Case(op, {"input": draw.values(draw.pick(ANY), shape), "begin": np.array(begin, index), "size": np.array(size, index)})


@generator("StridedSlice")
def strided_slice(draw, op):
    shape, index = draw.shape(1), draw.pick((i32, i64))
    n = draw.int(0, len(shape))
    strides = [draw.pick((1, 1, 2, -1, -2)) for _ in range(n)]
    begin = [draw.int(-d - 1, d) for d in shape[:n]]
    end = [draw.int(-d - 1, d + 1) for d in shape[:n]]
    masks = {k: draw.int(0, 2 ** n - 1) if draw.flag(0.4) else 0 for k in ("begin_mask", "end_mask", "new_axis_mask")}
    masks["shrink_axis_mask"] = draw.int(0, 2 ** n - 1) if draw.flag(0.2) else 0
    masks["ellipsis_mask"] = 2 ** draw.int(0, n - 1) if n and draw.flag(0.2) else 0
    return Case(op, {"input": draw.values(draw.pick(ANY), shape), "begin": np.array(begin, index),
                     "end": np.array(end, index), "strides": np.array(strides, index)}, masks)


@generator("Pad", "PadV2", "MirrorPad")
def pad(draw, op):
    shape, dtype = draw.shape(), draw.pick((f32, f64, i32))
    most = 1 if op == "MirrorPad" else 3
    paddings = np.array([[min(draw.int(0, most), d), min(draw.int(0, most), d)] if op[0] == "M" else
                         [draw.int(0, 3), draw.int(0, 3)] for d in shape], draw.pick((i32, i64))).reshape(-1, 2)
    inputs = {"input": draw.values(dtype, shape), "paddings": paddings}
    if op == "PadV2":
        inputs["constant_values"] = dtype(7)
    return Case(op, inputs, {"mode": draw.pick(("REFLECT", "SYMMETRIC"))} if op == "MirrorPad" else {}, fed=("input",))


@generator("ConcatV2", "Pack")
def join(draw, op):
    shape, dtype, n = draw.shape(1 if op == "ConcatV2" else 0, 4), draw.pick(ANY), draw.int(2, 5)
    if op == "Pack":
        return Case(op, {"values": [draw.values(dtype, shape) for _ in range(n)]},
                    {"axis": draw.int(-len(shape) - 1, len(shape))})
    axis = draw.int(-len(shape), len(shape) - 1)
    parts = []
    for _ in range(n):
        some = list(shape)
        some[axis] = draw.dim()
        parts.append(draw.values(dtype, some))
    return Case(op, {"values": parts, "axis": i32(axis)})


@generator("Split", "SplitV", "Unpack")
def split(draw, op):
    shape, dtype = list(draw.shape(1)), draw.pick(ANY)
    axis, n = draw.int(-len(shape), len(shape) - 1), draw.int(1, 4)
    if op == "Unpack":
        return Case(op, {"value": draw.values(dtype, shape)}, {"num": shape[axis], "axis": axis})
    if op == "Split":
        shape[axis] *= n
        return Case(op, {"split_dim": i32(axis), "value": draw.values(dtype, shape)}, {"num_split": n})
    sizes = [draw.int(0, 3) for _ in range(n)]
    shape[axis] = sum(sizes)
    if draw.flag(0.3):
        sizes[draw.int(0, n - 1)] = -1
    return Case(op, {"value": draw.values(dtype, shape), "size_splits": np.array(sizes, draw.pick((i32, i64))),
                     "split_dim": i32(axis)}, {"num_split": n})


@generator("Tile")
def tile(draw, op):
    shape = draw.shape(0, 4, 3)
    return Case(op, {"input": draw.values(draw.pick(ANY), shape),
                     "multiples": np.array([draw.int(0 if draw.flag(0.1) else 1, 3) for _ in shape], draw.pick((i32, i64)))})


@generator("Gather", "GatherV2", "GatherNd")
def gather(draw, op):
    shape = draw.shape(1)
    if op == "GatherNd":
        depth = draw.int(1, len(shape))
        rows = draw.shape(0, 2, 3)
        indices = np.stack([draw.random.integers(0, max(d, 1), rows) for d in shape[:depth]], -1).astype(i32)
        return Case(op, {"params": draw.values(draw.pick((f32, f64, i32)), shape), "indices": indices})
    batch = draw.int(0, min(2, len(shape) - 1)) if op == "GatherV2" and draw.flag(0.4) else 0
    axis = draw.int(batch, len(shape) - 1) if op == "GatherV2" else 0
    indices = draw.indices(shape[:batch] + draw.shape(0, 2, 3), shape[axis], wrong=0.03 if shape[axis] else 1)
    inputs = {"params": draw.values(draw.pick((f32, f64, i32)), shape), "indices": indices}
    if op == "GatherV2":
        inputs["axis"] = i32(axis)
        return Case(op, inputs, {"batch_dims": batch}, fed=("params", "indices"))
    return Case(op, inputs, fed=("params", "indices"))


@generator("OneHot")
def one_hot(draw, op):
    indices = draw.indices(draw.shape(0, 3), 4, draw.pick((i32, i64)), wrong=0.3)
    dtype = draw.pick((f32, i32))
    return Case(op, {"indices": indices, "depth": i32(draw.int(0, 5)), "on_value": dtype(3), "off_value": dtype(-1)},
                {"axis": draw.int(-1, indices.ndim)})


@generator("ReverseV2")
def reverse(draw, op):
    shape = draw.shape()
    axes = draw.random.permutation(len(shape))[:draw.int(0, len(shape))].astype(draw.pick((i32, i64)))
    return Case(op, {"tensor": draw.values(draw.pick(ANY), shape), "axis": axes})


@generator("BroadcastTo")
def broadcast_to(draw, op):
    full = draw.shape()
    shape = tuple(1 if draw.flag(0.3) else d for d in full)[draw.int(0, len(full)):]
    return Case(op, {"input": draw.values(draw.pick((f32, f64, i32)), shape), "shape": np.array(full, draw.pick((i32, i64)))})


@generator("Reshape", "ExpandDims", "Squeeze")
def reshape(draw, op):
    shape = draw.shape()
    x = draw.values(draw.pick(ANY), shape)
    if op == "ExpandDims":
        return Case(op, {"input": x, "dim": i32(draw.int(-len(shape) - 2, len(shape) + 1))})
    if op == "Squeeze":
        ones = [i for i, d in enumerate(shape) if d == 1]
        axis = ones[:draw.int(0, len(ones))]
        return Case(op, {"input": x}, {"squeeze_dims": axis if draw.flag(0.95) else [draw.int(-1, 4)]})
    target = [int(d) for d in draw.random.permutation(shape)]
    if target and 0 not in shape and draw.flag():
        target[0] = -1
    return Case(op, {"tensor": x, "shape": np.array(target, draw.pick((i32, i64)))})


@generator("Diag", "DiagPart")
def diag(draw, op):
    shape = draw.shape(1, 3)
    if op == "Diag":
        return Case(op, {"diagonal": draw.values(draw.pick((f32, f64, i32)), shape[:2])})
    return Case(op, {"input": draw.values(draw.pick((f32, f64, i32)), shape[:2] + shape[:2])})


@generator("Where", "Unique", "ListDiff", "InvertPermutation", "UniqueWithCounts")
def find(draw, op):
    if op == "Where":
        return Case(op, {"input": np.round(draw.values(draw.pick((f32, i32, u8)), draw.shape(0, 4)))
                         if draw.flag() else draw.values(np.bool_, draw.shape())})
    if op == "InvertPermutation":
        p = draw.random.permutation(draw.int(0, 6)).astype(draw.pick((i32, i64)))
        if p.size and draw.flag(0.1):
            p[0] = draw.pick((p[-1], -1, 99))
        return Case(op, {"x": p})
    n, dtype = draw.int(0, 9), draw.pick((f32, i32, i64, u8))
    x = np.round(draw.values(dtype, (n,), 0, 5))
    if op == "ListDiff":
        return Case(op, {"x": x, "y": np.round(draw.values(dtype, (draw.int(0, 4),), 0, 5))})
    return Case(op, {"x": x}, gradients=False)


@generator("DynamicPartition", "DynamicStitch", "ParallelDynamicStitch")
def dynamic(draw, op):
    dtype = draw.pick((f32, f64, i32))
    if op == "DynamicPartition":
        shape, n = draw.shape(1), draw.int(1, 4)
        return Case(op, {"data": draw.values(dtype, shape), "partitions": draw.indices(shape[:draw.int(1, len(shape))], n, i32)},
                    {"num_partitions": n})
    rest = draw.shape(0, 2, 3)
    sizes = [draw.int(0, 4) for _ in range(draw.int(1, 3))]
    order = draw.random.permutation(sum(sizes)).astype(i32)
    parts = np.split(order, np.cumsum(sizes)[:-1])
    return Case(op, {"indices": parts, "data": [draw.values(dtype, (len(p),) + rest) for p in parts]})


@generator("ScatterNd")
def scatter_nd(draw, op):
    shape = tuple(max(1, d) for d in draw.shape(1, 3))
    depth, rows = draw.int(1, len(shape)), draw.int(0, 4)
    indices = np.stack([draw.random.integers(0, d, rows) for d in shape[:depth]], -1).astype(draw.pick((i32, i64)))
    return Case(op, {"indices": indices, "updates": draw.values(draw.pick((f32, f64, i32)), (rows,) + shape[depth:]),
                     "shape": np.array(shape, indices.dtype)})


@generator("Range", "LinSpace", "Fill")
def made(draw, op):
    if op == "Range":
        dtype = draw.pick((i32, i64, f32, f64))
        return Case(op, {"start": dtype(draw.int(-4, 4)), "limit": dtype(draw.int(-6, 9)), "delta": dtype(draw.pick((1, 2, -1, 0)))})
    if op == "Fill":
        return Case(op, {"dims": np.array(draw.shape(), draw.pick((i32, i64))), "value": draw.pick((f32, i32))(3)})
    dtype = draw.pick((f32, f64))
    return Case(op, {"start": dtype(draw.int(-3, 3)), "stop": dtype(draw.int(-3, 9)), "num": i32(draw.int(0, 7))}, gradients=False)


@generator("NonMaxSuppression", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5")
def suppress(draw, op):
    n = draw.int(0, 8)
    corners = draw.values(f32, (n, 2), 0, 1)
    boxes = np.concatenate([corners, corners + draw.values(f32, (n, 2), 0.05, 0.6)], 1).astype(f32)
    inputs = {"boxes": boxes, "scores": draw.values(f32, (n,), 0, 1), "max_output_size": i32(draw.int(0, 6))}
    if op == "NonMaxSuppression":
        return Case(op, inputs, {"iou_threshold": draw.pick((0.1, 0.5, 1.0))}, gradients=False)
    inputs.update(iou_threshold=f32(draw.pick((0.1, 0.5, 1.0))), score_threshold=f32(draw.pick((-1, 0.2, 0.5))))
    if op.endswith("V5"):
        inputs["soft_nms_sigma"] = f32(draw.pick((0, 0.5)))
    attrs = {"pad_to_max_output_size": draw.flag()} if op[-1] in "45" else {}
    return Case(op, inputs, attrs, gradients=False, fed=("boxes", "scores"))


# ---- networks --------------------------------------------------------------------------------------------------------

@generator("Conv2D", "DepthwiseConv2dNative")
def conv(draw, op):
    dtype = draw.pick((f32, f64))
    channels, groups = draw.int(1, 4), draw.int(2, 3) if op == "Conv2D" and draw.flag(0.3) else 1
    x = draw.values(dtype, (draw.int(0 if draw.flag(0.05) else 1, 3), draw.int(1, 9), draw.int(1, 9),
                            channels * groups))
    w = draw.values(dtype, (draw.int(1, 4), draw.int(1, 4), channels, draw.int(1, 4) * groups + draw.flag(0.02)))
    stride = draw.int(1, 3)
    strides = [1, stride, stride if op[0] == "D" else draw.int(1, 3), 1]
    attrs = {"strides": strides, "padding": draw.pick(("SAME", "VALID"))}
    if op == "Conv2D" and draw.flag(0.2):
        attrs["dilations"] = [1, draw.int(1, 2), draw.int(1, 2), 1]
    if op == "Conv2D" and draw.flag(0.2):
        attrs.update(padding="EXPLICIT", explicit_paddings=[0, 0] + [draw.int(0, 2) for _ in range(4)] + [0, 0])
    return Case(op, {"input": x, "filter": w}, attrs, tolerance=1e-4 if dtype == f32 else None,
                gradients=groups == 1 and max(attrs.get("dilations", [1])) == 1)  # TensorFlow's CPU has no others


@generator("MaxPool", "AvgPool")
def pool(draw, op):
    dtype = draw.pick((f32, f64))
    x = draw.values(dtype, (draw.int(1, 3), draw.int(1, 9), draw.int(1, 9), draw.int(1, 4)))
    attrs = {"ksize": [1, draw.int(1, 3), draw.int(1, 3), 1], "strides": [1, draw.int(1, 3), draw.int(1, 3), 1],
             "padding": draw.pick(("SAME", "VALID"))}
    return Case(op, {"input" if op == "MaxPool" else "value": x}, attrs)


@generator("BiasAdd", "BiasAddGrad")
def bias(draw, op):
    shape, dtype = draw.shape(2), draw.pick((f32, f64))
    if op == "BiasAddGrad":
        return Case(op, {"out_backprop": draw.values(dtype, shape)})
    return Case(op, {"value": draw.values(dtype, shape), "bias": draw.values(dtype, (shape[-1] + draw.flag(0.03),))})


@generator("LRN")
def lrn(draw, op):
    x = draw.values(f32, (draw.int(1, 2), draw.int(1, 3), draw.int(1, 3), draw.int(1, 9)))
    return Case(op, {"input": x}, {"depth_radius": draw.int(0, 4), "bias": 1.0 + draw.int(0, 1), "alpha": 0.5,
                                   "beta": draw.pick((0.5, 0.75, 1.0))}, tolerance=1e-4)


@generator("FusedBatchNormV3", "FusedBatchNorm")
def batch_norm(draw, op):
    c = draw.int(1, 4)
    training = draw.flag()
    x = draw.values(f32, (draw.int(1, 3), draw.int(1, 4), draw.int(1, 4), c))
    some = () if training else (c,)
    empty = (0,) if training else (c,)
    return Case(op, {"x": x, "scale": draw.values(f32, (c,)), "offset": draw.values(f32, (c,)),
                     "mean": draw.values(f32, empty), "variance": draw.values(f32, empty, 0.2, 2)},
                {"is_training": training, "epsilon": 0.01}, tolerance=3e-4, keep=(0, 1, 2) if training else (0,),
                gradients=False)


@generator("Softmax", "LogSoftmax")
def softmax(draw, op):
    return Case(op, {"logits": draw.values(draw.pick((f32, f64, f16)), draw.shape(1), -9, 9)})


@generator("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits")
def cross_entropy(draw, op):
    dtype, batch, classes = draw.pick((f32, f64)), draw.dim(), draw.int(1, 6)
    features = draw.values(dtype, (batch, classes), -9, 9)
    if op[1] == "p":
        return Case(op, {"features": features, "labels": draw.indices((batch,), classes)}, keep=(0,), fed=("features", "labels"))
    return Case(op, {"features": features, "labels": draw.values(dtype, (batch, classes), 0, 1)}, keep=(0,))


@generator("AdjustContrastv2")
def contrast(draw, op):
    return Case(op, {"images": draw.values(f32, tuple(draw.int(1, 4) for _ in range(draw.int(3, 5))), 0, 1),
                     "contrast_factor": f32(draw.pick((0.3, 1.0, 1.7)))}, tolerance=1e-4, gradients=False)


# ---- random numbers that follow from what is given -------------------------------------------------------------------

@generator("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal", "StatelessRandomUniformInt")
def stateless(draw, op):
    inputs = {"shape": np.array(draw.shape(0, 3), draw.pick((i32, i64))),
              "seed": draw.values(draw.pick((i32, i64)), (2,), -9e8, 9e8)}
    if not op.endswith("Int"):
        return Case(op, inputs, {"dtype": draw.pick((f32, f64, f16))}, tolerance=1e-5)
    dtype = draw.pick((i32, i64))
    return Case(op, {**inputs, "minval": dtype(draw.int(-9, 9)), "maxval": dtype(draw.int(8, 99))})


@generator("StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2", "StatelessRandomUniformIntV2",
           "StatelessRandomUniformFullIntV2")
def keyed(draw, op):
    inputs = {"shape": np.array(draw.shape(0, 3), draw.pick((i32, i64))), "key": draw.values(np.uint64, (1,), 0, 9e8),
              "counter": draw.values(np.uint64, (2,), 0, 9e8), "alg": i32(draw.pick((1, 3)))}
    if "Int" not in op:
        return Case(op, inputs, {"dtype": draw.pick((f32, f64, f16))}, tolerance=1e-5)
    dtype = draw.pick((i32, i64))
    if "Full" in op:
        return Case(op, inputs, {"dtype": dtype})
    return Case(op, {**inputs, "minval": dtype(draw.int(-9, 9)), "maxval": dtype(draw.int(8, 99))})


@generator("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2")
def sample_box(draw, op):
    n, dtype = draw.int(0, 3), draw.pick((i32, i64, i16, u8))
    corners = draw.values(f32, (1, n, 2), 0, 0.6)
    boxes = np.concatenate([corners, corners + draw.values(f32, (1, n, 2), 0.05, 0.4 + 0.1 * draw.flag(0.05))], 2)
    attrs = {"seed": draw.int(1, 99), "seed2": draw.int(0, 99), "max_attempts": draw.pick((1, 5, 100)),
             "use_image_if_no_bounding_boxes": draw.flag(0.8), "area_range": draw.pick(((0.05, 1.0), (0.3, 0.5)))}
    inputs = {"image_size": np.array([draw.int(1, 120), draw.int(1, 120), 3], dtype), "bounding_boxes": boxes.astype(f32)}
    covered = draw.pick((0.1, 0.5, 0.9))
    if op.endswith("V2"):
        inputs["min_object_covered"] = f32(covered)
    else:
        attrs["min_object_covered"] = covered
    return Case(op, inputs, attrs, gradients=False)


@generator("DrawBoundingBoxes", "DrawBoundingBoxesV2")
def draw_boxes(draw, op):
    batch, channels = draw.int(1, 2), draw.pick((1, 3, 4))
    inputs = {"images": draw.values(draw.pick((f32, f16)), (batch, draw.int(1, 8), draw.int(1, 8), channels), 0, 1),
              "boxes": draw.values(f32, (batch, draw.int(0, 3), 4), -0.2, 1.2)}
    if op.endswith("V2"):
        inputs["colors"] = draw.values(f32, (draw.int(0, 3), channels), 0, 1)
    return Case(op, inputs, gradients=False)


@generator("SparseCross")
def sparse_cross(draw, op):
    batch, hashed = draw.int(1, 4), draw.flag()
    indices, values, shapes, dense = [], [], [], []
    for _ in range(draw.int(1, 3)):
        counts = [draw.int(0, 3) for _ in range(batch)]
        indices.append(np.array([(b, k) for b, n in enumerate(counts) for k in range(n)], i64).reshape(-1, 2))
        values.append(feature(draw, (sum(counts),), hashed))
        shapes.append(np.array([batch + draw.flag(0.03), 3], i64))
    for _ in range(draw.int(0, 2)):
        dense.append(feature(draw, (batch, draw.int(0 if draw.flag(0.1) else 1, 2)), hashed))
    return Case(op, {"indices": indices, "values": values, "shapes": shapes, "dense_inputs": dense},
                {"hashed_output": hashed, "num_buckets": draw.pick((0, 1, 100)), "hash_key": draw.int(1, 2**40),
                 "out_type": i64 if hashed else "string", "internal_type": i64 if hashed else "string"}, fed=())


def feature(draw, shape, may_be_number):
    if may_be_number and draw.flag():
        return draw.values(i64, shape, -3, 9)
    words = np.empty(shape, object)
    for i in range(words.size):
        words.reshape(-1)[i] = b"abcdefghijklmnopqrst"[draw.int(0, 9):draw.int(9, 20)]
    return words


# ---- places, sequences -----------------------------------------------------------------------------------------------

@generator("HistogramFixedWidth")
def histogram(draw, op):
    dtype = draw.pick((f32, f64, i32, i64))
    low = draw.int(-3, 0)
    return Case(op, {"values": draw.values(dtype, draw.shape(), -5, 5), "value_range": np.array([low, low + draw.int(0 if
                     draw.flag(0.05) else 1, 5)], dtype), "nbins": i32(draw.pick((1, 2, 4, 8)) * (not draw.flag(0.03)))},
                {"dtype": draw.pick((i32, i64))}, fed=("values",))


@generator("LowerBound", "UpperBound")
def bound(draw, op):
    batch, dtype = draw.int(1, 3), draw.pick((f32, f64, i32, i64, i16, u8))
    rows = np.sort(np.round(draw.values(dtype, (batch, draw.dim(6)), 0, 5)), -1)
    return Case(op, {"sorted_inputs": rows, "values": np.round(draw.values(dtype, (batch, draw.dim(4)), 0, 6))},
                {"out_type": draw.pick((i32, i64))}, gradients=False)


@generator("UnravelIndex")
def unravel(draw, op):
    dtype, dims = draw.pick((i32, i64)), [draw.int(1, 4) for _ in range(draw.int(1, 4))]
    indices = draw.indices(draw.pick(((), (draw.int(1, 5),))), int(np.prod(dims)), dtype)
    return Case(op, {"indices": indices, "dims": np.array(dims, dtype)}, fed=("indices",))


@generator("NthElement")
def nth(draw, op):
    shape = draw.shape(1)
    n = draw.int(0, max(0, shape[-1] - 1)) + draw.flag(0.03) * 9
    return Case(op, {"input": np.round(draw.values(draw.pick((f32, f64, i32)), shape)), "n": i32(n)}, {"reverse": draw.flag()},
                gradients=0 not in shape)


@generator("CTCGreedyDecoder")
def greedy(draw, op):
    steps, batch, classes = draw.int(1, 7), draw.int(1, 3), draw.int(1, 4)
    lengths = np.array([draw.int(0, steps) + draw.flag(0.02) for _ in range(batch)], i32)
    attrs = {"merge_repeated": draw.flag()}
    if draw.flag(0.3):
        attrs["blank_index"] = draw.int(-classes, classes - 1)
    return Case(op, {"inputs": draw.values(draw.pick((f32, f64)), (steps, batch, classes)), "sequence_length": lengths},
                attrs, gradients=False)


@generator("EditDistance")
def distance(draw, op):
    dtype, rank, inputs = draw.pick((i32, i64, f32)), draw.int(0, 2), {}
    rows = [draw.int(1, 3) for _ in range(rank)]
    for name in ("hypothesis", "truth"):
        indices = [(*at, k) for at in np.ndindex(*rows) for k in range(draw.int(0, 4))]
        inputs[name + "_indices"] = np.array(indices, i64).reshape(-1, rank + 1)
        inputs[name + "_values"] = np.round(draw.values(dtype, (len(indices),), 0, 2))
        inputs[name + "_shape"] = np.array(rows + [4], i64)
    return Case(op, inputs, {"normalize": draw.flag()}, gradients=False, fed=())


@generator("EnsureShape", "Bitcast")
def looked_at(draw, op):
    shape = draw.shape()
    if op == "EnsureShape":
        wanted = [None if draw.flag(0.3) else d + draw.flag(0.02) for d in shape]
        return Case(op, {"input": draw.values(draw.pick(ANY), shape)}, {"shape": wanted})
    source, target = (draw.pick((f32, f64, i32, i64, u8, f16) + UNSIGNED) for _ in range(2))
    ratio = np.dtype(target).itemsize // np.dtype(source).itemsize
    shape = shape[:5] + ((ratio + draw.flag(0.03),) if ratio > 1 else ())
    return Case(op, {"input": draw.values(source, shape, 1, 3)}, {"type": target}, gradients=False)


@generator("Erfinv", "Ndtri", "Xlog1py")
def inverse(draw, op):
    dtype = draw.pick((f32, f64))
    if op == "Xlog1py":
        a, b = draw.broadcast()
        return Case(op, {"x": np.round(draw.values(dtype, a)), "y": draw.values(dtype, b, -0.9, 4)})
    return Case(op, {"x": draw.values(dtype, draw.shape(), 0.01 if op == "Ndtri" else -0.98, 0.98)}, tolerance=1e-5
                if dtype == f32 else 1e-9)


@generator("MaxPoolWithArgmax")
def pool_where(draw, op):
    dtype = draw.pick((f32, f64, i32))
    x = draw.values(dtype, (draw.int(1, 3), draw.int(1, 7), draw.int(1, 7), draw.int(1, 20)))
    attrs = {"ksize": [1, draw.int(1, 3), draw.int(1, 3), 1], "strides": [1, draw.int(1, 3), draw.int(1, 3), 1],
             "padding": draw.pick(("SAME", "VALID")), "include_batch_in_index": draw.flag(), "Targmax": draw.pick((i32, i64))}
    return Case(op, {"input": x}, attrs)


@generator("Dilation2D")
def dilation(draw, op):
    dtype, channels = draw.pick((f32, f64)), draw.int(1, 3)
    x = draw.values(dtype, (draw.int(1, 2), draw.int(3, 7), draw.int(3, 7), channels))
    return Case(op, {"input": x, "filter": draw.values(dtype, (draw.int(1, 3), draw.int(1, 3), channels))},
                {"strides": [1, draw.int(1, 2), draw.int(1, 2), 1], "rates": [1, draw.int(1, 2), draw.int(1, 2), 1],
                 "padding": draw.pick(("SAME", "VALID"))})
