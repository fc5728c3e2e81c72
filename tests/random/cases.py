"""How cases of each op are drawn; see drawing.py."""
from drawing import *

try:
    from PIL import Image
except ImportError as missing:
    raise SystemExit("scripts/random-graphs draws pictures with Pillow, which this python lacks: %s" % missing)


@generator("Sin", "Cos", "Tan", "Exp", "Sigmoid", "Tanh", "Erf")
def unary(draw, op):
    return Case(op, {"x": draw.wild(draw.pick((f32, f64, f16)), draw.shape())})


# ---- optimizers -----------------------------------------------------------------------------------------------------

# v variable, s slot, p slot of positive values, n number, r number from 0 to 1, z number that may be 0, t step, g gradient
OPTIMIZERS = {
    "GradientDescent": "var:v alpha:n delta:g",
    "Momentum": "var:v accum:s lr:n grad:g momentum:r", "KerasMomentum": "var:v accum:s lr:n grad:g momentum:r",
    "Adam": "var:v m:s v:p beta1_power:r beta2_power:r lr:n beta1:r beta2:r epsilon:n grad:g",
    "AdamWithAmsgrad": "var:v m:s v:p vhat:p beta1_power:r beta2_power:r lr:n beta1:r beta2:r epsilon:n grad:g",
    "Adagrad": "var:v accum:p lr:n grad:g", "AdagradV2": "var:v accum:p lr:n epsilon:n grad:g",
    "AdagradDA": "var:v gradient_accumulator:s gradient_squared_accumulator:p grad:g lr:n l1:z l2:z global_step:t",
    "Adadelta": "var:v accum:p accum_update:p lr:n rho:r epsilon:n grad:g",
    "Ftrl": "var:v accum:p linear:s grad:g lr:n l1:z l2:z lr_power:w",
    "FtrlV2": "var:v accum:p linear:s grad:g lr:n l1:z l2:z l2_shrinkage:z lr_power:w",
    "RMSProp": "var:v ms:p mom:s lr:n rho:r momentum:r epsilon:n grad:g",
    "CenteredRMSProp": "var:v mg:c ms:p mom:s lr:n rho:r momentum:r epsilon:n grad:g",
    "ProximalGradientDescent": "var:v alpha:n l1:z l2:z delta:g", "ProximalAdagrad": "var:v accum:p lr:n l1:z l2:z grad:g",
    "AdaMax": "var:v m:s v:p beta1_power:r lr:n beta1:r beta2:r epsilon:n grad:g",
    "AddSign": "var:v m:s lr:n alpha:n sign_decay:r beta:r grad:g",
    "PowerSign": "var:v m:s lr:n logbase:n sign_decay:r beta:r grad:g",
}
ONLY_RESOURCE = ("KerasMomentum", "AdamWithAmsgrad")
SPARSE = ("Momentum", "KerasMomentum", "Adagrad", "AdagradV2", "AdagradDA", "Adadelta", "Ftrl", "FtrlV2", "RMSProp",
          "CenteredRMSProp", "ProximalGradientDescent", "ProximalAdagrad")
UPDATES = [prefix + how + name for name in OPTIMIZERS for how in ("Apply", "SparseApply")
           for prefix in ("", "Resource") if (prefix or name not in ONLY_RESOURCE) and (how == "Apply" or name in SPARSE)]


@generator(*UPDATES)
def update(draw, op):
    dtype = draw.pick((f32, f32, f64, f16, bf16))
    name, sparse = op.split("Apply")[1], "Sparse" in op
    shape = draw.shape(low=1 if sparse else 0)
    rows = draw.dim(6)
    indices = draw.indices((rows,), shape[0] if sparse else 0)
    low, high = {"n": (0.01, 0.3), "r": (0.1, 0.9)}, None
    inputs, variables = {}, []
    for word in OPTIMIZERS[name].split():
        key, letter = word.split(":")
        if letter in "vspc":
            limits = {"v": (-2, 2), "s": (-2, 2), "p": (0.3, 2), "c": (-0.2, 0.2)}[letter]
            inputs[key] = draw.values(dtype, shape, *limits)
            variables.append(key)
        elif letter == "g":
            wrong = draw.flag(0.03)
            of_rows = (rows + wrong,) + shape[1:]
            inputs["grad" if sparse else key] = draw.values(dtype, of_rows if sparse else shape + (2,) * wrong)
            if sparse:
                inputs["indices"] = indices
        elif letter == "t":
            inputs[key] = i64(draw.int(1, 20))
        elif letter == "w":
            inputs[key] = np.dtype(dtype).type(draw.pick((-0.5, -0.5, -0.75)))
        else:
            limits = {"n": (0.01, 0.3), "r": (0.1, 0.9), "z": (0.01, 0.5)}[letter]
            inputs[key] = draw.values(dtype, (), *limits) if letter != "z" or draw.flag() else np.dtype(dtype).type(0)
    attrs = {}
    if name in ("Momentum", "KerasMomentum", "Adam") and name != "AdamWithAmsgrad":
        attrs["use_nesterov"] = draw.flag()
    if name in ("Adagrad", "AdagradV2"):
        attrs["update_slots"] = draw.flag(0.7)
    if name.startswith("Ftrl"):
        attrs["multiply_linear_by_lr"] = draw.flag()
    narrow = np.dtype(dtype).itemsize == 2
    return Case(op, inputs, attrs, variables, tolerance=0.05 if narrow else None)


# ---- functions of elements -------------------------------------------------------------------------------------------

RANGES = {"Asin": (-1, 1), "Acos": (-1, 1), "Atanh": (-0.95, 0.95), "Acosh": (1, 4), "Lgamma": (0.1, 9),
          "Digamma": (0.1, 9), "Sinh": (-3, 3), "Cosh": (-3, 3)}


@generator("Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Rint", "Lgamma", "Digamma", "Erfc")
def special(draw, op):
    x = draw.wild(draw.pick((f32, f64)), draw.shape(), *RANGES.get(op, (-2, 2)))
    if op in ("Lgamma", "Digamma"):
        x = np.where(np.abs(x) < 1e-2, x.dtype.type(0.5), x)
    return Case(op, {"x": x})


@generator("Atan2", "Xlogy", "Xdivy", "Igamma", "Igammac", "Zeta", "Polygamma", "NextAfter")
def special_of_two(draw, op):
    dtype = draw.pick((f32, f64))
    names = {"Atan2": "yx", "Xlogy": "xy", "Xdivy": "xy", "Zeta": "xq", "NextAfter": ("x1", "x2")}.get(op, "ax")
    positive = op in ("Xlogy", "Igamma", "Igammac", "Zeta", "Polygamma")
    shapes = draw.broadcast()
    first = draw.values(dtype, shapes[0], *((1.1, 6) if op == "Zeta" else (0.2, 6) if positive else (-2, 2)))
    second = draw.values(dtype, shapes[1], *((0.2, 6) if positive else (-2, 2)))
    if op == "Polygamma":
        first = np.floor(first)
    if op in ("Xlogy", "Xdivy") and first.size and draw.flag():
        first.reshape(-1)[0] = 0
    return Case(op, {names[0]: first, names[1]: second}, tolerance=1e-4 if dtype == f32 else 1e-8)


@generator("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift")
def bits(draw, op):
    dtype, (a, b) = draw.pick(INTEGERS), draw.broadcast()
    return Case(op, {"x": draw.values(dtype, a, -100, 100), "y": draw.values(dtype, b, -3, 12)},
                fed=("x", "y"))


@generator("Invert", "PopulationCount")
def bits_of_one(draw, op):
    return Case(op, {"x": draw.values(draw.pick(INTEGERS), draw.shape(), -100, 100)}, fed=("x",))


# ---- moves -----------------------------------------------------------------------------------------------------------

def moved(draw):
    return draw.pick((f32, f64, f16, i32, i64, u8, np.bool_))


@generator("SpaceToBatchND", "BatchToSpaceND", "SpaceToBatch", "BatchToSpace")
def space_and_batch(draw, op):
    nd, to_batch = op.endswith("ND"), op.startswith("Space")
    axes = draw.int(1, 3) if nd else 2
    blocks = [draw.int(1, 3) for _ in range(axes)] if nd else [draw.int(2, 3)] * 2
    margins = np.array([[draw.int(0, 2), draw.int(0, 2)] for _ in range(axes)], draw.pick((i32, i64)))
    rest = draw.shape(0, 2, 3) if nd else (draw.int(1, 3),)
    dims = []
    for b, m in zip(blocks, margins):
        count = draw.int(1, 3)
        dims.append(max(0, count * b - m.sum()) if to_batch and draw.flag(0.95) else count + 2)
    batch = draw.int(1, 2) * (1 if to_batch else int(np.prod(blocks)) + draw.flag(0.03))
    x = draw.values(moved(draw), (batch, *dims, *rest))
    inputs = {"input": x, "paddings" if to_batch else "crops": margins}
    if nd:
        return Case(op, {**inputs, "block_shape": np.array(blocks, i32)})
    return Case(op, inputs, {"block_size": blocks[0]})


@generator("SpaceToDepth", "DepthToSpace")
def space_and_depth(draw, op):
    block, dims = draw.int(2, 3), [draw.int(1, 2), draw.int(1, 3), draw.int(1, 3), draw.int(1, 3)]
    if op == "SpaceToDepth":
        dims[1:3] = [d * block + draw.flag(0.03) for d in dims[1:3]]
    else:
        dims[3] = dims[3] * block * block + draw.flag(0.03)
    return Case(op, {"input": draw.values(moved(draw), dims)}, {"block_size": block})


@generator("Roll")
def roll(draw, op):
    shape = draw.shape(1)
    count = draw.int(0, 3)
    scalar = draw.flag()
    size = () if scalar else (count,)
    return Case(op, {"input": draw.values(moved(draw), shape), "shift": draw.values(draw.pick((i32, i64)), size, -9, 9),
                     "axis": draw.values(draw.pick((i32, i64)), size, -len(shape), len(shape) - 1)})


@generator("ReverseSequence")
def reverse_sequence(draw, op):
    shape = draw.shape(2)
    batch, sequence = [int(i) for i in draw.random.permutation(len(shape))[:2]]
    sequence = batch if draw.flag(0.03) else sequence
    lengths = draw.indices((shape[batch],), shape[sequence] + 1)
    return Case(op, {"input": draw.values(moved(draw), shape), "seq_lengths": lengths},
                {"seq_dim": sequence, "batch_dim": batch}, fed=("input", "seq_lengths"))


@generator("MatrixBandPart")
def band(draw, op):
    shape, index = draw.shape(2), draw.pick((i32, i64))
    return Case(op, {"input": draw.values(moved(draw), shape), "num_lower": index(draw.int(-1, max(1, shape[-2]))),
                     "num_upper": index(draw.int(-1, max(1, shape[-1])))})


@generator("MatrixDiag", "MatrixDiagPart", "MatrixSetDiag")
def diagonal(draw, op):
    if op == "MatrixDiag":
        return Case(op, {"diagonal": draw.values(moved(draw), draw.shape(1, 3))})
    shape = tuple(max(d, 1) for d in draw.shape(2))
    dtype = moved(draw)
    inputs = {"input": draw.values(dtype, shape)}
    if op == "MatrixSetDiag":
        inputs["diagonal"] = draw.values(dtype, shape[:-2] + (min(shape[-2:]) + draw.flag(0.03),))
    return Case(op, inputs)


@generator(*[o + v for o in ("MatrixDiag", "MatrixDiagPart", "MatrixSetDiag") for v in ("V2", "V3")])
def diagonals(draw, op):
    dtype, batch = draw.pick((f32, f64, i32)), draw.shape(0, 2, 3)
    rows, columns = draw.int(1, 5), draw.int(1, 5)
    k = sorted((draw.int(1 - rows, columns - 1), draw.int(1 - rows, columns - 1)))
    if draw.flag():
        k = [k[0], k[0]]
    length = min(rows + min(k[1], 0), columns - max(k[0], 0))
    packed = batch + ((k[1] - k[0] + 1,) if k[0] != k[1] else ()) + (length,)
    attrs, faithful = {}, op.endswith("V3")  # today's TensorFlow differentiates V2 as if it were V3
    if op.endswith("V3"):
        attrs["align"] = draw.pick(("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"))
    one = k[0] == k[1] and draw.flag()
    inputs = {"k": i32(k[0]) if one else np.array(k[:1] if k[0] == k[1] and draw.flag() else k, i32)}
    if op.startswith("MatrixDiagV"):
        inputs.update(diagonal=draw.values(dtype, packed), num_rows=i32(draw.pick((-1, rows, rows))),
                      num_cols=i32(draw.pick((-1, columns, columns))), padding_value=dtype(draw.pick((0, 7))))
        return Case(op, inputs, attrs, fed=("diagonal",), gradients=faithful)
    inputs["input"] = draw.values(dtype, batch + (rows, columns))
    if op.startswith("MatrixDiagPart"):
        inputs["padding_value"] = dtype(draw.pick((0, 7)))
    else:
        inputs["diagonal"] = draw.values(dtype, packed)
    return Case(op, inputs, attrs, gradients=faithful)


# ---- segments --------------------------------------------------------------------------------------------------------

@generator("SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd")
def segment(draw, op):
    shape = draw.shape(1)
    steps = draw.random.integers(0, 3, shape[0])
    ids = np.cumsum(steps).astype(draw.pick((i32, i64)))
    if ids.size > 1 and draw.flag(0.03):
        ids[0] = 9
    return Case(op, {"data": draw.values(draw.pick((f32, f64, f16, i32, i64, u8)), shape), "segment_ids": ids})


@generator("UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd")
def unsorted_segment(draw, op):
    shape, segments = draw.shape(1), draw.int(1, 5)
    ids = draw.indices(shape[:draw.int(1, len(shape))], segments)
    return Case(op, {"data": np.round(draw.values(draw.pick((f32, f64, i32, i64)), shape)), "segment_ids": ids,
                     "num_segments": i32(segments)}, fed=("data", "segment_ids"))


@generator(*["SparseSegment" + o + w for o in ("Sum", "Mean", "SqrtN") for w in ("", "WithNumSegments", "Grad")])
def sparse_segment(draw, op):
    dtype, shape, n = draw.pick((f32, f64)), draw.shape(1, 3), draw.dim(6)
    ids = np.sort(draw.random.integers(0, 4, n)).astype(draw.pick((i32, i64)))
    indices = draw.indices((n,), shape[0], i32, 0.03 if shape[0] else 1)
    if op.endswith("Grad"):
        rows = draw.int(1, 6)
        shape = (int(ids.max()) + 1 if n else 0,) + shape[1:]
        return Case(op, {"grad": draw.values(dtype, shape), "indices": draw.indices((n,), rows, i32),
                         "segment_ids": ids, "output_dim0": i32(rows)})
    inputs = {"data": draw.values(dtype, shape), "indices": indices, "segment_ids": ids}
    if op.endswith("Segments"):
        inputs["num_segments"] = i32(draw.int(int(ids.max()) + 1 if n else 0, 6))
    return Case(op, inputs)


@generator("Bincount")
def bincount(draw, op):
    arr = draw.indices(draw.shape(0, 2), 9, i32)
    dtype = draw.pick((f32, f64, i32, i64))
    weights = draw.values(dtype, arr.shape) if draw.flag() else np.zeros(0, dtype)
    return Case(op, {"arr": arr, "size": i32(draw.int(0, 9)), "weights": weights}, fed=("arr", "weights"))


# ---- places ----------------------------------------------------------------------------------------------------------

@generator(*[p + "Scatter" + o for p in ("", "Resource") for o in ("Add", "Sub", "Mul", "Div", "Min", "Max", "Update")])
def scatter_rows(draw, op):
    dtype, shape = draw.pick((f32, f64, f16, i32, i64)), draw.shape(1)[:6]
    indices = draw.indices(draw.shape(0, 2, 3), shape[0], wrong=0.03 if shape[0] else 1)
    updates = draw.values(dtype, () if draw.flag(0.2) else indices.shape + shape[1:], 1, 3)
    return Case(op, {"resource" if "Resource" in op else "ref": np.round(draw.values(dtype, shape, -9, 9)),
                     "indices": indices, "updates": updates}, variables=("ref", "resource"))


def places(draw, shape, count):
    depth = draw.int(0 if draw.flag(0.1) else 1, len(shape)) if shape else 0
    indices = np.stack([draw.random.integers(0, max(1, d), count) for d in shape[:depth]], -1) if depth else \
        np.zeros((count, 0))
    indices = indices.astype(draw.pick((i32, i64)))
    if indices.size and draw.flag(0.03):
        indices[-1, 0] = draw.pick((-1, 9))
    return indices, shape[depth:]


@generator(*[p + "ScatterNd" + o for p in ("", "Resource") for o in ("Add", "Sub", "Update")])
def scatter_places(draw, op):
    dtype, shape = draw.pick((f32, f64, i32, i64)), tuple(max(1, d) for d in draw.shape(1, 3))
    indices, rest = places(draw, shape, draw.int(0, 4))
    return Case(op, {"ref": draw.values(dtype, shape), "indices": indices,
                     "updates": draw.values(dtype, indices.shape[:1] + rest)}, variables=("ref",))


@generator("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin",
           "ScatterNdNonAliasingAdd")
def scatter_copy(draw, op):
    dtype, shape = draw.pick((f32, f64, i32, i64)), tuple(max(1, d) for d in draw.shape(1, 3))
    indices, rest = places(draw, shape, draw.int(0, 4))
    name = "input" if op.startswith("ScatterNd") else "tensor"
    fed = (name, "indices", "updates")
    return Case(op, {name: draw.values(dtype, shape), "indices": indices,
                     "updates": draw.values(dtype, indices.shape[:1] + rest)}, fed=fed,
                gradients=len(np.unique(indices, axis=0)) == len(indices))


@generator("SparseToDense")
def sparse_to_dense(draw, op):
    dtype, index = draw.pick((f32, f64, i32, np.bool_)), draw.pick((i32, i64))
    shape = tuple(draw.int(1, 4) for _ in range(draw.int(1, 3)))
    count = draw.int(0, 4)
    at = np.unique(np.stack([draw.random.integers(0, d, count) for d in shape], -1).astype(index), axis=0)
    if len(at) > 1 and draw.flag(0.1):
        at = at[::-1]
    if len(shape) == 1 and draw.flag():
        at = at[:, 0] if draw.flag() or not len(at) else at[0, 0]
    one = draw.flag(0.3) or at.ndim == 0
    return Case(op, {"sparse_indices": at, "output_shape": np.array(shape, index),
                     "sparse_values": draw.values(dtype, () if one else (len(at),)),
                     "default_value": draw.values(dtype, ())}, {"validate_indices": draw.flag(0.7)})


@generator("SparseTensorDenseMatMul")
def sparse_matmul(draw, op):
    dtype = draw.pick((f32, f64))
    m, k, p, n = draw.int(1, 4), draw.int(1, 4), draw.int(1, 4), draw.int(0, 6)
    adjoint = {"adjoint_a": draw.flag(), "adjoint_b": draw.flag()}
    a = (k, m) if adjoint["adjoint_a"] else (m, k)
    at = np.stack([draw.random.integers(0, d, n) for d in a], -1).astype(draw.pick((i32, i64)))
    if n and draw.flag(0.05):
        at[0, draw.int(0, 1)] = 9
    return Case(op, {"a_indices": at, "a_values": draw.values(dtype, (n,)), "a_shape": np.array(a, i64),
                     "b": draw.values(dtype, (p, k) if adjoint["adjoint_b"] else (k, p))}, adjoint)


# ---- images ----------------------------------------------------------------------------------------------------------

PIXELS = (f32, f32, f64, f16, u8, i32)


def centers(draw):
    return draw.pick(({}, {"align_corners": True}, {"half_pixel_centers": True},
                      {"align_corners": True, "half_pixel_centers": True} if draw.flag(0.1) else {}))


def image_shape(draw):
    return draw.int(1, 2), draw.int(1, 6), draw.int(1, 6), draw.int(1, 3)


@generator("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea")
def resize(draw, op):
    attrs = centers(draw)
    if op == "ResizeArea":
        attrs.pop("half_pixel_centers", None)
    dtype = draw.pick(PIXELS)
    return Case(op, {"images": draw.values(dtype, image_shape(draw), 0, 100),
                     "size": i32((draw.int(0 if draw.flag(0.03) else 1, 9), draw.int(1, 9)))}, attrs,
                tolerance=1e-4)


@generator("ResizeBilinearGrad", "ResizeBicubicGrad")
def resize_grad(draw, op):
    b, h, w, c = image_shape(draw)
    return Case(op, {"grads": draw.values(f32, (b, draw.int(1, 9), draw.int(1, 9), c)),
                     "original_image": draw.values(draw.pick((f32, f64)), (b, h, w, c))}, centers(draw), gradients=False,
                tolerance=1e-4)


@generator("ResizeNearestNeighborGrad")
def resize_nearest_grad(draw, op):
    return Case(op, {"grads": draw.values(draw.pick((f32, f64, i32)), image_shape(draw)),
                     "size": i32((draw.int(1, 9), draw.int(1, 9)))}, centers(draw), gradients=False)


def boxes(draw, count, batch):
    return {"boxes": np.sort(draw.values(f32, (count, 2, 2), -0.2, 1.2), axis=1).reshape(count, 4),
            "box_ind": draw.indices((count,), batch, i32)}


@generator("CropAndResize", "CropAndResizeGradImage", "CropAndResizeGradBoxes")
def crop(draw, op):
    shape, count = image_shape(draw), draw.dim(4)
    size, given = (draw.int(1, 5), draw.int(1, 5)), {}
    given = boxes(draw, count, shape[0])
    method = {} if op.endswith("Boxes") else {"method": draw.pick(("bilinear", "nearest"))}
    grads = draw.values(f32, (count,) + size + shape[3:])
    if op == "CropAndResizeGradImage":
        return Case(op, {"grads": grads, **given, "image_size": np.array(shape, i32)}, {"T": draw.pick((f32, f64)), **method},
                    gradients=False, tolerance=1e-4)
    image = draw.values(draw.pick(PIXELS), shape, 0, 10)
    if op.endswith("Boxes"):
        return Case(op, {"grads": grads, "image": image, **given}, gradients=False, tolerance=1e-4)
    return Case(op, {"image": image, **given, "crop_size": i32(size)}, {**method, "extrapolation_value": draw.pick((0.0, 2.5))},
                tolerance=1e-4, gradients=method["method"] == "bilinear")


# ---- linear algebra --------------------------------------------------------------------------------------------------

def matrices(draw, rows, columns, dtype):
    batch = draw.pick(((), (), (2,), (2, 1), (0,)))
    return draw.values(dtype, batch + (rows, columns))


def regular(draw, n, dtype):
    a = matrices(draw, n, n, dtype)
    return a + 3 * np.eye(n, dtype=dtype) if draw.flag(0.95) else np.zeros_like(a)


@generator("MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant")
def inverse(draw, op):
    attrs = {"adjoint": draw.flag()} if op == "MatrixInverse" else {}
    a = regular(draw, draw.int(1, 5), draw.pick((f32, f64, c64, c128)))
    return Case(op, {"input": a}, attrs, tolerance=2e-4 if a.dtype in (f32, c64) else 1e-9, gradients=bool(a.any()))


@generator("Cholesky")
def cholesky(draw, op):
    a = matrices(draw, *[draw.int(1, 5)] * 2, draw.pick((f32, f64, c64, c128)))
    a = a @ np.conj(np.swapaxes(a, -1, -2)) + (1 if draw.flag(0.95) else -9) * np.eye(a.shape[-1], dtype=a.dtype)
    return Case(op, {"input": a}, tolerance=3e-4 if a.dtype in (f32, c64) else 1e-9)


@generator("CholeskyGrad")
def cholesky_grad(draw, op):
    a = regular(draw, draw.int(1, 5), f64)
    l = np.tril(a) + 3 * np.eye(a.shape[-1])
    return Case(op, {"l": l, "grad": np.tril(draw.values(f64, l.shape))}, tolerance=1e-9)


@generator("MatrixSolve", "MatrixTriangularSolve")
def solve(draw, op):
    a = regular(draw, draw.int(1, 5), draw.pick((f32, f64, c64, c128)))
    attrs = {"adjoint": draw.flag()}
    if op != "MatrixSolve":
        attrs["lower"] = draw.flag()
    return Case(op, {"matrix": a, "rhs": draw.values(a.dtype, a.shape[:-1] + (draw.int(1, 3),))}, attrs,
                tolerance=2e-4 if a.dtype in (f32, c64) else 1e-9, gradients=bool(a.any()))


@generator("MatrixSolveLs")
def least_squares(draw, op):
    a = matrices(draw, draw.int(1, 5), draw.int(1, 5), draw.pick((f32, f64, c64, c128)))
    fast = draw.flag(0.8)
    b = draw.values(a.dtype, a.shape[:-1] + (draw.int(1, 3),))
    return Case(op, {"matrix": a, "rhs": b, "l2_regularizer": f64(draw.pick((0.25, 1.0)))}, {"fast": fast}, fed=(),
                tolerance=1e-3 if a.dtype in (f32, c64) else 1e-8, gradients=fast)


@generator("SelfAdjointEigV2")
def eigen(draw, op):
    a = matrices(draw, *[draw.int(1, 5)] * 2, draw.pick((f32, f64, c64, c128)))
    return Case(op, {"input": a + np.conj(np.swapaxes(a, -1, -2))}, {"compute_v": draw.flag(0.8)}, keep=(0,),
                tolerance=2e-5 if a.dtype in (f32, c64) else 1e-9)


@generator("Qr")
def qr(draw, op):
    a = matrices(draw, draw.int(1, 5), draw.int(1, 5), draw.pick((f64, f64, c128)))
    full = draw.flag()
    return Case(op, {"input": a}, {"full_matrices": full}, tolerance=1e-8, gradients=not full and a.shape[-2] >= a.shape[-1])


@generator("Svd")
def svd(draw, op):
    a = matrices(draw, draw.int(1, 5), draw.int(1, 5), draw.pick((f64, f64, c128)))
    vectors, full = draw.flag(), draw.flag()
    has = a.size > 0 and not (vectors and full and abs(a.shape[-1] - a.shape[-2]) > 1)
    return Case(op, {"input": a}, {"compute_uv": vectors, "full_matrices": full}, keep=(0,), gradients=has, tolerance=1e-8)


@generator("Einsum")
def einsum(draw, op):
    dtype = draw.pick((f32, f64, i32))
    letters = draw.random.permutation(list("abcdeXY"))[:draw.int(1, 5)]
    sizes = {c: draw.int(1, 4) for c in letters}
    terms = []
    for _ in range(draw.int(1, 2)):
        terms.append("".join(draw.random.permutation(letters)[:draw.int(0, len(letters))]))
    if draw.flag(0.1):
        terms[0] += terms[0][:1]
    left = sorted(set("".join(terms)))
    output = "".join(draw.random.permutation(left)[:draw.int(0, len(left))]) if left else ""
    dots = tuple(draw.int(1, 3) for _ in range(draw.int(1, 2))) if draw.flag(0.3) else None
    arrays = [draw.values(dtype, (dots or ()) + tuple(sizes[c] for c in t)) for t in terms]
    if dots:
        terms, output = ["..." + t for t in terms], "..." + output
    if draw.flag(0.03):
        output += "z"
    repeats = any(len(set(t.replace(".", ""))) < len(t.replace(".", "")) for t in terms)
    return Case(op, {"inputs": arrays}, {"equation": ",".join(terms) + "->" + output}, gradients=not repeats)


# ---- colours, volumes, patches, quantized ranges ---------------------------------------------------------------------

@generator("RGBToHSV", "HSVToRGB", "AdjustHue", "AdjustSaturation")
def color(draw, op):
    shape = draw.shape(3 if op.startswith("Adjust") else 1, 4)[:-1] + (3 + draw.flag(0.03),)
    if op == "AdjustHue":
        return Case(op, {"images": draw.values(f32, shape, 0, 1), "delta": f32(draw.pick((-0.7, 0.1, 0.5)))}, tolerance=1e-4)
    if op == "AdjustSaturation":
        return Case(op, {"images": draw.values(f32, shape, 0, 1), "scale": f32(draw.pick((0.2, 1.0, 1.5)))}, tolerance=1e-4)
    return Case(op, {"images": draw.values(draw.pick((f32, f64)), shape, 0, 1)}, tolerance=1e-5,
                gradients=op == "RGBToHSV")


def volume(draw, most=5):
    return draw.int(1, 2), draw.int(1, most), draw.int(1, most), draw.int(1, most), draw.int(1, 2)


def strides(draw, axes=3):
    return {"strides": [1] + [draw.int(1, 3) for _ in range(axes)] + [1], "padding": draw.pick(("SAME", "VALID"))}


@generator("Conv3D")
def conv3d(draw, op):
    dtype, shape = draw.pick((f32, f64)), volume(draw)
    filters = tuple(draw.int(1, 3) for _ in range(3)) + (shape[4], draw.int(1, 3))
    return Case(op, {"input": draw.values(dtype, shape), "filter": draw.values(dtype, filters)}, strides(draw),
                tolerance=1e-4 if dtype == f32 else None)


@generator("MaxPool3D", "AvgPool3D")
def pool3d(draw, op):
    attrs = {"ksize": [1] + [draw.int(1, 3) for _ in range(3)] + [1], **strides(draw)}
    return Case(op, {"input": draw.values(f32 if op[0] == "M" else draw.pick((f32, f64)), volume(draw))}, attrs,
                tolerance=1e-4)


@generator("ExtractImagePatches")
def patches(draw, op):
    dtype = draw.pick((f32, f64, i32))
    shape = draw.int(1, 2), draw.int(1, 6), draw.int(1, 6), draw.int(1, 2)
    attrs = {"ksizes": [1, draw.int(1, 3), draw.int(1, 3), 1], "rates": [1, draw.int(1, 2), draw.int(1, 2), 1],
             **strides(draw, 2)}
    return Case(op, {"images": draw.values(dtype, shape)}, attrs)


@generator(*["FakeQuantWithMinMax" + k for k in ("Args", "Vars", "VarsPerChannel")])
def fake_quant(draw, op):
    shape = draw.shape(1)
    attrs = {"num_bits": draw.int(2, 8), "narrow_range": draw.flag()}
    inputs = {"inputs": draw.values(f32, shape, -9, 9)}
    if op.endswith("Args"):
        return Case(op, inputs, {**attrs, "min": -draw.int(1, 6) / 2, "max": draw.int(1, 6) / 2}, tolerance=1e-4)
    channels = shape[-1:] if op.endswith("Channel") else ()
    inputs["min"], inputs["max"] = draw.values(f32, channels, -3, -0.1), draw.values(f32, channels, 0.1, 3)
    return Case(op, inputs, attrs, tolerance=1e-4)


# ---- cells, candidates -----------------------------------------------------------------------------------------------

def lstm_inputs(draw, batch, inputs, cells, dtype=f32):
    shapes = {"cs_prev": (batch, cells), "h_prev": (batch, cells), "w": (inputs + cells, 4 * cells), "wci": (cells,),
              "wcf": (cells,), "wco": (cells,), "b": (4 * cells,)}
    return {k: draw.values(dtype, s, -1, 1) for k, s in shapes.items()}


def lstm_attrs(draw):
    return {"forget_bias": 1.0, "cell_clip": draw.pick((-1.0, 0.3, 3.0)), "use_peephole": draw.flag()}


@generator("LSTMBlockCell", "BlockLSTM")
def lstm(draw, op):
    batch, inputs, cells, steps = draw.int(1, 3), draw.int(1, 3), draw.int(1, 3), draw.int(1, 4)
    given = lstm_inputs(draw, batch, inputs, cells)
    if op == "LSTMBlockCell":
        return Case(op, {"x": draw.values(f32, (batch, inputs)), **given}, lstm_attrs(draw), tolerance=1e-4)
    whole = draw.flag(0.7)
    return Case(op, {"seq_len_max": i64(steps if whole else draw.int(0, steps)),
                     "x": draw.values(f32, (steps, batch, inputs)), **given}, lstm_attrs(draw), tolerance=1e-4,
                gradients=whole, keep=None if whole else (1, 6))  # the rest of the steps are not cleared there


@generator("LSTMBlockCellGrad")
def lstm_grad(draw, op):
    batch, inputs, cells = draw.int(1, 3), draw.int(1, 3), draw.int(1, 3)
    more = {k: draw.values(f32, (batch, cells), 0, 1) for k in ("i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad")}
    peephole = draw.flag()
    return Case(op, {"x": draw.values(f32, (batch, inputs)), **lstm_inputs(draw, batch, inputs, cells), **more},
                {"use_peephole": peephole}, tolerance=1e-4, gradients=False, keep=None if peephole else (0, 1))


@generator("GRUBlockCell", "GRUBlockCellGrad")
def gru(draw, op):
    batch, n, c = draw.int(1, 3), draw.int(1, 3), draw.int(1, 3)
    shapes = {"x": (batch, n), "h_prev": (batch, c), "w_ru": (n + c, 2 * c), "w_c": (n + c, c), "b_ru": (2 * c,),
              "b_c": (c,)}
    if op.endswith("Grad"):
        shapes.update({k: (batch, c) for k in ("r", "u", "c", "d_h")})
    return Case(op, {k: draw.values(f32, s, -1, 1) for k, s in shapes.items()}, tolerance=1e-4, gradients=False)


@generator("LogUniformCandidateSampler", "UniformCandidateSampler", "AllCandidateSampler")
def candidates(draw, op):
    num, true = draw.int(1, 9), draw.int(1, 3)
    top = draw.int(num, 40)
    attrs = {"num_true": true, "num_sampled": num, "unique": draw.flag(), "seed": draw.int(1, 99), "seed2": draw.int(0, 99)}
    if op != "AllCandidateSampler":
        attrs["range_max"] = top
    return Case(op, {"true_classes": draw.values(i64, (draw.int(1, 3), true), 0, num - 1)}, attrs)


@generator("ComputeAccidentalHits")
def hits(draw, op):
    true = draw.int(1, 3)
    return Case(op, {"true_classes": draw.values(i64, (draw.int(1, 4), true), 0, 9),
                     "sampled_candidates": draw.values(i64, (draw.int(1, 9),), 0, 9)}, {"num_true": true},
                fed=("true_classes", "sampled_candidates"))


# ---- strings ---------------------------------------------------------------------------------------------------------

def words(draw, shape=None, alphabet=b"abcXYZ 019-_\t"):
    shape = draw.shape(0, 2, 3) if shape is None else shape
    array = np.empty(shape, object)
    for i in range(array.size):
        length = draw.pick((0, 1, 2, 3, 5, 7, 8, 12, 16, 17, 31, 40, 64, 65, 100, 128, 200))
        array.reshape(-1)[i] = bytes(alphabet[int(k)] for k in draw.random.integers(0, len(alphabet), length))
    return array


@generator("StringLength", "StringUpper", "StringLower", "StringStrip", "EncodeBase64", "StringToHashBucketFast",
           "StringToHashBucketStrong", "DecodeBase64")
def text(draw, op):
    attrs = {}
    if op == "EncodeBase64":
        attrs["pad"] = draw.flag()
    if op.startswith("StringToHash"):
        attrs["num_buckets"] = draw.pick((1, 7, 1000, 2**62))
    if op.endswith("Strong"):
        attrs["key"] = [draw.int(0, 2**40), draw.int(0, 2**40)]
    if op == "StringLength":
        attrs["unit"] = draw.pick(("BYTE", "UTF8_CHAR"))
        array = words(draw)
        for i in range(array.size):
            if draw.flag():
                array.reshape(-1)[i] = "aé漢🙂".encode() * draw.int(0, 3)
        return Case(op, {"input": array}, attrs, fed=("input",))
    return Case(op, {"input": words(draw, alphabet=b"abcXYZ019-_" if op == "DecodeBase64" else b"abcXYZ 019-_\t")},
                attrs, fed=("input",))


@generator("Substr")
def substr(draw, op):
    array = words(draw)
    shape, index = array.shape if draw.flag() else (), draw.pick((i32, i64))
    return Case(op, {"input": array, "pos": draw.values(index, shape, 0, 2), "len": draw.values(index, shape, 0, 9)},
                {"unit": draw.pick(("BYTE", "UTF8_CHAR"))}, fed=("input", "pos", "len"))


@generator("StringToNumber")
def to_number(draw, op):
    array = np.empty(draw.shape(0, 2, 3), object)
    for i in range(array.size):
        array.reshape(-1)[i] = draw.pick((b"1", b"-7", b" 42 ", b"0", b"2147483647", b"1.5" if draw.flag() else b"3"))
    if array.size and draw.flag(0.1):
        array.reshape(-1)[0] = draw.pick((b"", b"x", b"1x", b"9" * 30))
    return Case(op, {"string_tensor": array}, {"out_type": draw.pick((f32, f64, i32, i64))}, fed=("string_tensor",))


@generator("AsString")
def as_string(draw, op):
    dtype = draw.pick((f32, f64, i32, i64, u8, i8, np.bool_))
    attrs = {"width": draw.pick((-1, -1, 8)), "fill": draw.pick(("", "", "0", " ", "-", "+")) if dtype != np.bool_ else ""}
    if dtype in (f32, f64):
        attrs.update(precision=draw.pick((-1, 0, 3)), **draw.pick(({}, {"scientific": True}, {"shortest": True})))
    return Case(op, {"input": draw.wild(dtype, draw.shape(0, 2, 3), -100, 100)}, attrs, fed=("input",))


@generator("RegexReplace", "RegexFullMatch", "StaticRegexReplace")
def regex(draw, op):
    pattern, rewrite = draw.pick(("a+", "[a-c]*", "(.)X", "\\d+", "[" if draw.flag(0.1) else " ")), draw.pick(("", "<\\0>", "\\1"))
    array = words(draw)
    if op == "StaticRegexReplace":
        return Case(op, {"input": array}, {"pattern": pattern, "rewrite": rewrite, "replace_global": draw.flag()}, fed=("input",))
    inputs = {"input": array, "pattern": np.array(pattern.encode(), object)}
    if op == "RegexFullMatch":
        return Case(op, inputs, fed=("input", "pattern"))
    return Case(op, {**inputs, "rewrite": np.array(rewrite.encode(), object)}, {"replace_global": draw.flag()}, fed=("input",))


# ---- pictures --------------------------------------------------------------------------------------------------------

def picture(draw, channels):
    """Smooth, so that what JPEG loses hardly depends on how it is done."""
    height, width = draw.int(1, 20), draw.int(1, 20)
    y, x = np.mgrid[0:height, 0:width]
    waves = [128 + 100 * np.sin(x / draw.int(3, 9) + y / draw.int(3, 9) + draw.int(0, 6)) for _ in range(channels)]
    return np.stack(waves, -1).astype(u8)


def encoded(draw, kind):
    import io
    mode, channels = draw.pick((("L", 1), ("RGB", 3), ("RGBA", 4), ("LA", 2))[:2 if kind == "JPEG" else 4])
    pixels, out = picture(draw, channels), io.BytesIO()
    Image.fromarray(pixels[..., 0] if channels == 1 else pixels, mode).save(out, kind)
    data = out.getvalue()
    return np.array(data[: len(data) // 2] if draw.flag(0.05) else data, object)


@generator("DecodePng", "DecodeJpeg", "DecodeImage", "ExtractJpegShape")
def decode(draw, op):
    kind = draw.pick(("PNG", "JPEG")) if op != "ExtractJpegShape" else "JPEG"
    attrs = {"channels": draw.pick((0, 1, 3) if kind == "JPEG" else (0, 1, 3, 4))} if op != "ExtractJpegShape" else {}
    if op == "DecodeImage":
        attrs["dtype"] = draw.pick((u8, f32))
    return Case(op, {"contents": encoded(draw, kind)}, attrs, fed=("contents",))


@generator("EncodePng", "EncodeJpeg")
def encode(draw, op):
    channels = draw.pick((1, 2, 3, 4) if op == "EncodePng" else (1, 3))
    return Case(op, {"image": picture(draw, channels)}, {} if op == "EncodePng" else {"quality": draw.int(80, 100)},
                fed=("image",))


@generator("ImageSummary")
def image_summary(draw, op):
    shape = (draw.int(0, 4), draw.int(1, 5), draw.int(1, 5), draw.pick((1, 3, 4)))
    return Case(op, {"tag": np.array(b"a/b", object), "tensor": draw.wild(draw.pick((f32, u8)), shape, -3, 200)},
                {"max_images": draw.int(1, 3)}, fed=("tensor",))


@generator("CTCLoss")
def ctc(draw, op):
    steps, batch, classes = draw.int(1, 6), draw.int(1, 3), draw.int(2, 5)
    lengths = np.array([draw.int(1, steps) for _ in range(batch)], i32)
    labels = [draw.random.integers(0, classes - 1, draw.int(0 if draw.flag(0.02) else 1, int(n) + draw.flag(0.02))) for n in lengths]
    at = np.array([(b, t) for b, l in enumerate(labels) for t in range(len(l))], i64).reshape(-1, 2)
    attrs = {"preprocess_collapse_repeated": draw.flag(0.3), "ctc_merge_repeated": draw.flag(0.7),
             "ignore_longer_outputs_than_inputs": draw.flag(0.3)}
    return Case(op, {"inputs": draw.values(f32, (steps, batch, classes)), "labels_indices": at,
                     "labels_values": np.concatenate(labels).astype(i32), "sequence_length": lengths}, attrs,
                tolerance=1e-4, gradients=False)
