#!/usr/bin/env python3
"""Writes ops_array.txt: ops that make, shape, cut, join and rearrange arrays, run by TensorFlow, for
tests/test_ops_array.c."""
import numpy as np

from op_cases import Cases, bf16, eighths as random_eighths, f32, f64, i32, i64, tf

random = np.random.default_rng(11)
cases = Cases("ops_array.txt", __file__)
case, fails = cases.case, cases.fails

NUMBERS = (np.float32, np.float64, np.float16, bf16, np.int8, np.int16, np.int32, np.int64, np.uint8)


def eighths(*shape, dtype=np.float32):
    return np.asarray(random_eighths(random, *shape, dtype=dtype))


def counted(*shape, dtype=np.float32, start=1):
    return np.arange(start, start + int(np.prod(shape))).reshape(shape).astype(dtype)


def whole_of(*shape, dtype=np.int32):
    return np.asarray(random.integers(0, 50, shape).astype(dtype))


def words(*shape):
    flat = [b"w%d" % i * (i % 3) for i in range(int(np.prod(shape)))]
    return np.array(flat, object).reshape(shape)


def bools(*shape):
    return np.asarray(random.integers(0, 2, shape).astype(bool))


def of_each_size(*shape):
    """Elements of 1, 2, 4 and 8 bytes, and strings."""
    for dtype in (np.uint8, np.int16, np.float32, np.float64):
        yield counted(*shape, dtype=dtype)
    yield words(*shape)


# ---- passed on, shapes ----

x = eighths(2, 1, 3)
for op in ("Identity", "StopGradient", "PreventGradient"):
    case(op, input=x)
case("IdentityN", input=[eighths(2), counted(3, dtype=np.int64), words(2), eighths(0, 3)])
case("Reshape", tensor=x, shape=i32([3, -1]))
case("Reshape", tensor=x, shape=i64([6]))
case("Reshape", tensor=eighths(1, 1), shape=np.array([], np.int32))
case("Reshape", tensor=eighths(0, 3), shape=i32([3, 0]))
case("Reshape", tensor=np.zeros((0, 2, 3), np.float32), shape=i32([0, -1]))
case("Reshape", tensor=np.zeros((5, 0), np.float32), shape=i64([0, 2, -1]))
case("Reshape", tensor=np.zeros((0, 2), np.float32), shape=i32([-1, 3]))
fails("cannot reshape [2,1,3] (6 elements) to [0,?]", "Reshape", x, i32([0, -1]))
case("ExpandDims", input=x, axis=i32(-1))
case("ExpandDims", input=x, axis=i64(1))
case("Squeeze", input=x)
case("Squeeze", input=eighths(1, 3, 1), axis=[-1], rename={"axis": "squeeze_dims"})
fails("cannot reshape [2,1,3] (6 elements) to [4]", "Reshape", x, i32([4]))
fails("expected -4 to 3", "ExpandDims", x, i32(4))

for out_type in (tf.int32, tf.int64):
    case("Shape", input=x, out_type=out_type)
    case("ShapeN", input=[x, eighths(4), f32(1)], out_type=out_type)
    case("Size", input=x, out_type=out_type)
case("Shape", input=f32(7))
case("Shape", input=words(0, 5))
case("Size", input=eighths(3, 0))
case("Rank", input=x)
case("Rank", input=words(2))

for a, b in (([2, 3], [3]), ([2, 1, 4], [3, 1]), ([1, 1], [1, 1]), ([1, 2], [1, 1]), ([], [5, 6]), ([2, 3], [2, 3]),
             ([0, 3], [1, 3]), ([1], [1, 1, 1]), ([7, 1, 5], [1, 6, 1]), ([], [])):
    for kind in (np.int32, np.int64):
        case("BroadcastGradientArgs", s0=np.array(a, kind), s1=np.array(b, kind))
fails("[2,3] and [4]", "BroadcastGradientArgs", i32([2, 3]), i32([4]))
case("ConcatOffset", concat_dim=i32(1), shape=[i32([2, 3, 4]), i32([2, 5, 4]), i32([2, 1, 4])])
case("ConcatOffset", concat_dim=i32(-3), shape=[i32([2, 3, 4]), i32([1, 3, 4])])
fails("axis 0 has size 1 in value 1 and 2 in value 0", "ConcatOffset", i32(1), [i32([2, 3]), i32([1, 3])])
fails("axis 2, expected -2 to 1", "ConcatOffset", i32(2), [i32([2, 3]), i32([1, 3])])
case("InvertPermutation", x=i32([3, 0, 2, 1]))
case("InvertPermutation", x=i64([1, 2, 0]))
case("InvertPermutation", x=np.array([], np.int32))
fails("2 is duplicated in the permutation", "InvertPermutation", i32([2, 0, 2]))
fails("number 1 is 3, which is not between 0 and 2", "InvertPermutation", i32([2, 3, 0]))
fails("number 1 is -1, which is not between 0 and 2", "InvertPermutation", i64([2, -1, 0]))

# ---- made of nothing ----

case("Fill", dims=i32([2, 3]), value=f32(1.5))
case("Fill", dims=i64([3]), value=np.array(True))
case("Fill", dims=i32([2]), value=np.array(b"tower", object))
case("Fill", dims=np.array([], np.int32), value=i64(-1 << 40))
case("Fill", dims=i32([2, 0]), value=f64(1))
for dtype in NUMBERS + (bool,):
    case("ZerosLike", x=counted(3, dtype=dtype))
    case("OnesLike", x=counted(3, dtype=dtype))
case("ZerosLike", x=words(2, 2))
case("Range", start=i32(3), limit=i32(18), delta=i32(4))
case("Range", start=i64(5), limit=i64(-3), delta=i64(-2))
case("Range", start=i32(2), limit=i32(2), delta=i32(1))
case("Range", start=f32(0.1), limit=f32(9.75), delta=f32(0.1))
case("Range", start=f64(1), limit=f64(-2), delta=f64(-0.3))
case("Range", start=np.array(1, bf16), limit=np.array(3, bf16), delta=np.array(0.25, bf16))
fails("in steps of 0", "Range", i32(1), i32(2), i32(0))
fails("in steps of -1", "Range", f32(1), f32(2), f32(-1))
case("LinSpace", start=f32(10), stop=f32(12), num=i32(7))
case("LinSpace", start=f64(0.1), stop=f64(-5), num=i64(6))
case("LinSpace", start=f32(3), stop=f32(9), num=i32(1))
fails("0 points, expected at least 1", "LinSpace", f32(0), f32(1), i32(0))

# ---- cut and joined ----

for x in of_each_size(3, 4, 5):
    case("Slice", input=x, begin=i32([1, 0, 2]), size=i32([2, -1, 3]))
    case("StridedSlice", input=x, begin=i32([2, 1]), end=i32([0, 4]), strides=i32([-1, 2]))
    case("Transpose", x=x, perm=i32([2, 0, 1]))
    case("Tile", input=x, multiples=i32([2, 1, 2]))
    case("ConcatV2", values=[x, x[:, 1:2]], axis=i32(1))
    case("Pack", values=[x, x], axis=1)
    case("Unpack", value=x, num=4, axis=1)
    case("Split", axis=i32(1), value=x, num_split=2)
    case("SplitV", value=x, size_splits=i64([1, -1, 2]), axis=i32(2), num_split=3)
    case("ReverseV2", tensor=x, axis=i32([0, -1]))
    case("BroadcastTo", input=x[:, :1], shape=i32([2, 3, 4, 5]))

x = counted(4, 3)
case("Slice", input=x, begin=i64([4, 0]), size=i64([0, 3]))
case("Slice", input=f32(3), begin=np.array([], np.int32), size=np.array([], np.int32))
case("Slice", input=eighths(0, 3), begin=i32([0, 1]), size=i32([-1, 1]))
fails("axis 0: begin 3, size 2 do not lie within 4", "Slice", x, i32([3, 0]), i32([2, 3]))
fails("axis 1: begin 4, size -1 do not lie within 3", "Slice", x, i32([0, 4]), i32([2, -1]))

x = counted(4, 3, 5)
for begin, end, strides, masks in (
        ([1], [3], [1], {}), ([-1], [-4], [-2], {}), ([0, 2], [0, 0], [1, -1], dict(begin_mask=1, end_mask=3)),
        ([1, 0], [2, 2], [1, 1], dict(shrink_axis_mask=1)), ([-1], [0], [1], dict(shrink_axis_mask=1)),
        ([0, 1], [0, 3], [1, 1], dict(ellipsis_mask=1)), ([1, 0, 2], [2, 0, 3], [1, 1, 1], dict(ellipsis_mask=2)),
        ([0, 0, 1], [0, 0, 2], [1, 1, 1], dict(new_axis_mask=3)),
        ([0, 0, 4], [0, 0, 5], [1, 1, 1], dict(new_axis_mask=1, ellipsis_mask=2, shrink_axis_mask=4)),
        ([2, 1, 0], [3, 2, 1], [1, 1, 1], dict(shrink_axis_mask=7)), ([3], [1], [1], {}),
        ([-100, 100], [100, -100], [3, -2], {}), ([0, 0, 0], [0, 0, 0], [1, 1, 1], dict(begin_mask=7, end_mask=7)),
        ([], [], [], {})):
    for kind in (np.int32, np.int64):
        parts = dict(begin=np.array(begin, kind), end=np.array(end, kind), strides=np.array(strides, kind))
        y = case("StridedSlice", input=x, **parts, **masks)[0]
        case("StridedSliceGrad", shape=np.array(x.shape, kind), **parts, dy=eighths(*y.shape), **masks)
case("StridedSlice", input=eighths(0, 2), begin=i32([0]), end=i32([5]), strides=i32([2]))
case("StridedSlice", input=eighths(0, 2), begin=i32([0]), end=i32([5]), strides=i32([-2]))
fails("slice index 4 of dimension 0 out of bounds (size 4)", "StridedSlice", x, i32([4]), i32([5]), i32([1]),
      shrink_axis_mask=1)
fails("slice index -5 of dimension 0 out of bounds (size 4)", "StridedSlice", x, i32([-5]), i32([5]), i32([1]),
      shrink_axis_mask=1)
fails("strides[1] must be non-zero", "StridedSlice", x, i32([0, 0]), i32([1, 1]), i32([1, 0]))
fails("multiple ellipses", "StridedSlice", x, i32([0, 0]), i32([1, 1]), i32([1, 1]), ellipsis_mask=3)

case("ConcatV2", values=[eighths(2, 3), eighths(1, 3), eighths(0, 3), eighths(4, 3)], axis=i64(0))
case("ConcatV2", values=[eighths(2, 3), eighths(2, 1)], axis=i32(-1))
case("Concat", concat_dim=i32(2), values=[eighths(2, 1, 3), eighths(2, 1, 2), eighths(2, 1, 1)])
case("ConcatV2", values=[eighths(0, 3), eighths(0, 2)], axis=i32(1))
fails("value 1 has shape [3,3]", "ConcatV2", [eighths(2, 3), eighths(3, 3)], i32(1))
fails("axis 2, expected -2 to 1", "ConcatV2", [eighths(2, 3), eighths(3, 3)], i32(2))
for axis in (0, 1, 2, -1, -3):
    case("Pack", values=[eighths(2, 3), eighths(2, 3), eighths(2, 3)], axis=axis)
case("Pack", values=[i32(3), i32(4)], axis=0)
case("Pack", values=[eighths(0, 3)], axis=1)
for axis in (0, 1, -1):
    case("Unpack", value=eighths(3, 3, 3), num=3, axis=axis)
case("Unpack", value=counted(4, dtype=np.int32), num=4, axis=0)
case("Split", axis=i32(-1), value=eighths(3, 6), num_split=3)
case("Split", axis=i32(0), value=eighths(4), num_split=1)
case("Split", axis=i32(0), value=eighths(0, 2), num_split=2)
fails("cannot be split into 2 equal parts", "Split", i32(0), eighths(3), num_split=2)
case("SplitV", value=eighths(5, 2), size_splits=i32([2, 0, 3]), axis=i32(0), num_split=3)
fails("sum up to 4, axis 0 has 5", "SplitV", eighths(5, 2), i32([2, 2]), i32(0), num_split=2)

# ---- rearranged ----

case("Transpose", x=eighths(3, 4), perm=i32([1, 0]))
case("Transpose", x=eighths(3, 4), perm=i64([0, 1]))
case("Transpose", x=eighths(2, 3, 4, 5), perm=i32([0, 3, 1, 2]))
case("Transpose", x=eighths(2, 3, 4, 5), perm=i32([0, 2, 3, 1]))
case("Transpose", x=eighths(2, 3, 4, 5), perm=i32([3, 2, 1, 0]))
case("Transpose", x=counted(2, 1, 3, 2, 2, 2, dtype=np.int8), perm=i32([5, 1, 3, 0, 4, 2]))
case("Transpose", x=f32(1), perm=np.array([], np.int32))
case("Transpose", x=eighths(0, 4), perm=i32([1, 0]))
fails("appears twice in the permutation", "Transpose", eighths(3, 4), i32([1, 1]))
case("Tile", input=eighths(2, 3), multiples=i64([1, 1]))
case("Tile", input=eighths(2, 3), multiples=i32([0, 2]))
case("Tile", input=f32(1), multiples=np.array([], np.int32))
case("ReverseV2", tensor=eighths(2, 3), axis=np.array([], np.int32))
case("ReverseV2", tensor=eighths(2, 3, 2), axis=i64([1]))
case("ReverseV2", tensor=eighths(2, 0), axis=i32([0, 1]))
fails("axis 1 specified more than once", "ReverseV2", eighths(2, 3), i32([1, -1]))
fails("axis 2, expected -2 to 1", "ReverseV2", eighths(2, 3), i32([2]))
case("BroadcastTo", input=f32(3), shape=i32([2, 2]))
case("BroadcastTo", input=eighths(3, 1), shape=i64([3, 4]))
case("BroadcastTo", input=eighths(1, 3), shape=i32([0, 3]))
for dtype in (np.float32, np.float64, np.int32, np.int64):
    case("Diag", diagonal=counted(3, dtype=dtype))
    case("DiagPart", input=counted(3, 3, dtype=dtype))
case("Diag", diagonal=eighths(2, 3))
case("DiagPart", input=eighths(2, 3, 2, 3))
case("Diag", diagonal=eighths(0))

# ---- checked, padded ----

case("CheckNumerics", tensor=eighths(3), message="here")
fails("here : Tensor had NaN values", "CheckNumerics", f32([1, np.nan]), message="here")
fails("here : Tensor had Inf and NaN values", "CheckNumerics", f32([np.inf, np.nan]), message="here")

case("Pad", input=eighths(2, 3), paddings=i32([[1, 0], [2, 1]]))
case("Pad", input=whole_of(2, dtype=np.int64), paddings=i64([[0, 3]]))
case("PadV2", input=eighths(2, 2), paddings=i32([[0, 1], [1, 1]]), constant_values=f32(-1.5))
for mode, pads in (("REFLECT", [[1, 2], [0, 1]]), ("SYMMETRIC", [[3, 2], [1, 2]])):
    y = case("MirrorPad", input=eighths(3, 2), paddings=i32(pads), mode=mode)[0]
    for d in (np.float32, np.float64, np.int32, np.int64):
        case("MirrorPadGrad", input=whole_of(*y.shape, dtype=d), paddings=i32(pads), mode=mode)
fails("padding 3 of axis 0", "MirrorPad", eighths(3, 2), i32([[3, 0], [0, 0]]), mode="REFLECT")

# ---- by index ----

case("OneHot", indices=i64([0, 2, -1, 7]), depth=i32(3), on_value=f32(5), off_value=f32(-1))
case("OneHot", indices=i32([[0, 2], [1, 1]]), depth=i32(3), on_value=i32(1), off_value=i32(0), axis=0)
case("OneHot", indices=i32([[0, 2], [1, 1]]), depth=i32(4), on_value=np.array(True), off_value=np.array(False), axis=1)
case("OneHot", indices=np.array(2, np.uint8), depth=i32(3), on_value=f64(1), off_value=f64(0))
case("DynamicStitch", indices=[i32([4, 0]), i32([[1, 2], [3, 0]])], data=[eighths(2, 2), eighths(2, 2, 2)])
case("DynamicStitch", indices=[i32(2), i32([0, 1])], data=[whole_of(), whole_of(2)])
case("Gather", params=eighths(4, 3), indices=i32([3, 0, 0]))
case("Gather", params=eighths(4), indices=i64([[1, 2], [3, 3]]))
case("GatherV2", params=eighths(4, 3), indices=i32([2, 1]), axis=i32(0))
case("GatherV2", params=eighths(2, 4, 3), indices=i32([[2, 1], [0, 3]]), axis=i32(1))
case("GatherV2", params=eighths(2, 4), indices=i64(3), axis=i32(-1))
case("GatherV2", params=words(4), indices=i32([3, 1]), axis=i32(0))
case("GatherV2", params=eighths(2, 4, 3), indices=i32([[2, 1], [0, 3]]), axis=i32(1), batch_dims=1)
case("GatherV2", params=eighths(2, 3, 4), indices=i32([[2, 1], [0, 3]]), axis=i32(2), batch_dims=1)
fails("indices[1] = 4 is not in [0, 4)", "Gather", eighths(4, 3), i32([3, 4]))
fails("indices[0] = -1 is not in [0, 4)", "GatherV2", eighths(4, 3), i32([-1]), i32(0))
case("GatherNd", params=eighths(3, 4), indices=i32([[0, 1], [2, 3]]))
case("GatherNd", params=eighths(3, 4), indices=i64([[[1]], [[2]]]))
case("GatherNd", params=words(2, 2), indices=i32([[1, 1]]))
fails("there is nothing to take", "GatherNd", np.zeros((2, 0, 3), np.float32), i32([[0]]))
fails("does not index into shape [3,4]", "GatherNd", eighths(3, 4), i32([[0, 4]]))
for d in (np.float32, np.float64, np.float16, np.int32, np.int64, np.int16, np.uint8, np.int8):
    case("ScatterNd", indices=i32([[4], [3], [4]]), updates=whole_of(3, dtype=d), shape=i32([6]))
    case("UnsortedSegmentSum", data=whole_of(4, 2, dtype=d), segment_ids=i32([2, 0, -1, 2]), num_segments=i32(3))
    case("TopKV2", input=whole_of(3, 7, dtype=d), k=i32(4))
case("ScatterNd", indices=i64([[0, 1], [2, 0]]), updates=eighths(2, 2), shape=i64([3, 2, 2]))
fails("does not index into shape [6]", "ScatterNd", i32([[6]]), f32([1]), i32([6]))
case("UnsortedSegmentSum", data=eighths(2, 2, 3), segment_ids=i64([[0, 1], [1, 1]]), num_segments=i32(2))
fails("segment_ids[0] = 3 is out of range [0, 3)", "UnsortedSegmentSum", f32([1]), i32([3]), i32(3))
case("TopKV2", input=f32([1, 3, 3, 2, 3]), k=i32(3))
case("TopKV2", input=eighths(2, 5), k=i32(5))
case("TopKV2", input=eighths(40), k=i32(17))
case("TopKV2", input=eighths(2, 5), k=i32(0))

# ---- chosen ----

case("Select", condition=np.array([[True, False], [False, True]]), x=eighths(2, 2), y=eighths(2, 2))
case("Select", condition=np.array([True, False]), x=eighths(2, 3), y=eighths(2, 3))
case("Select", condition=np.array(False), x=words(4), y=words(5)[1:])
for shapes in (((2, 3), (3,), ()), ((), (2, 1), (1, 3)), ((2, 1), (2, 3), (2, 3)), ((2, 3), (2, 3), (2, 3)),
               ((3,), (2, 2, 3), (1,))):
    c = random.integers(0, 2, shapes[0]).astype(bool)
    case("SelectV2", condition=np.array(c), t=np.array(eighths(*shapes[1])), e=np.array(eighths(*shapes[2])))
case("SelectV2", condition=np.array([True, False]), t=whole_of(2, 2, dtype=np.int64), e=whole_of(2, dtype=np.int64))
case("SelectV2", condition=np.array([True, False]), t=eighths(2, 2, dtype=np.float16), e=eighths(2, dtype=np.float16))

# ---- elements of every size, more axes, nothing at all ----

for x in of_each_size(3, 4, 2):
    case("Pad", input=x, paddings=i32([[0, 1], [2, 0], [1, 1]]))
    case("PadV2", input=x, paddings=i32([[0, 1], [2, 0], [0, 0]]), constant_values=np.array(x[1, 0, 1], x.dtype))
    for mode in ("REFLECT", "SYMMETRIC"):
        case("MirrorPad", input=x, paddings=i32([[2, 1], [0, 3], [1, 1]]), mode=mode)
    case("GatherV2", params=x, indices=i64([[3, 0, 3], [1, 2, 2]]), axis=i32(1))
    case("GatherNd", params=x, indices=i32([[[2, 3], [0, 0]], [[1, 1], [1, 2]]]))
    case("GatherNd", params=x, indices=i32([[2, 3, 1]]))
    case("DynamicStitch", indices=[i32([1, 3]), i32([0, 2, 1])], data=[x[:2], x])
    case("OneHot", indices=i32([[1, 3], [0, -1]]), depth=i32(3), on_value=np.array(x[1, 1, 1], x.dtype),
         off_value=np.array(x[0, 0, 1], x.dtype), axis=1)
    case("Select", condition=bools(3), x=x, y=x[::-1].copy())
    case("Select", condition=bools(3, 4, 2), x=x, y=x[::-1].copy())
    case("SelectV2", condition=bools(4, 1), t=x, e=x[1:2, :, :1])

for op, extra in (("Pad", {}), ("PadV2", dict(constant_values=f32(2)))):
    case(op, input=f32(5), paddings=np.zeros((0, 2), np.int32), **extra)
    case(op, input=eighths(0, 2), paddings=i32([[1, 1], [0, 1]]), **extra)
    case(op, input=eighths(2, 3), paddings=i64([[0, 0], [0, 0]]), **extra)
for mode in ("REFLECT", "SYMMETRIC"):
    case("MirrorPad", input=eighths(2, 3), paddings=i64([[0, 0], [0, 0]]), mode=mode)
    for dtype in (np.float16, bf16, np.int8, np.uint8, np.int16, np.float32):
        y = case("MirrorPad", input=eighths(3, 2, 4, dtype=dtype), paddings=i32([[2, 1], [0, 1], [3, 0]]), mode=mode)[0]
        if dtype != bf16:
            case("MirrorPadGrad", input=eighths(*y.shape, dtype=dtype), paddings=i32([[2, 1], [0, 1], [3, 0]]), mode=mode)
case("MirrorPad", input=eighths(4, 4), paddings=i32([[4, 4], [4, 4]]), mode="SYMMETRIC")

for axis, batch in ((1, 1), (2, 1), (2, 2), (-1, -1), (1, 0), (3, 0), (2, -2)):
    case("GatherV2", params=eighths(2, 3, 4, 2), indices=i64(random.integers(0, 2, (2, 3))), axis=i32(axis), batch_dims=batch)
case("GatherV2", params=eighths(2, 3), indices=np.zeros((0,), np.int32), axis=i32(1))
case("GatherV2", params=eighths(2, 0), indices=i32([1, 1]), axis=i32(0))
case("GatherV2", params=eighths(0, 2), indices=np.zeros((2, 0), np.int32), axis=i32(0))
fails("indices[1,0] = 3 is not in [0, 3)", "GatherV2", eighths(2, 3), i32([[0, 2], [3, 1]]), i32(1))
fails("indices[] = 3 is not in [0, 3)", "Gather", eighths(3), i64(3))
fails("indices[0] = 0 is not in [0, 0)", "Gather", eighths(0, 2), i64([0]))
fails("batch_dims is 2, the indices have 1 axes", "GatherV2", eighths(2, 3), i32([1]), i32(1), batch_dims=2)
fails("batch_dims 1 is greater than axis 0", "GatherV2", eighths(1, 3), i32([0]), i32(0), batch_dims=1)
case("GatherNd", params=eighths(3, 4), indices=np.zeros((2, 0), np.int32))
case("GatherNd", params=eighths(3, 4), indices=np.zeros((0, 2), np.int32))
fails("indices[1,0] = [2,-1] does not index into shape [3,4]", "GatherNd", eighths(3, 4), i32([[[0, 1]], [[2, -1]]]))
y = eighths(2, 3)
case("ScatterNd", expected=y[0] + y[1], indices=np.zeros((2, 0), np.int32), updates=y, shape=i32([3]))
case("ScatterNd", indices=i32([[0], [2], [0]]), updates=bools(3, 4), shape=i32([3, 4]))
case("ScatterNd", indices=i32([[0], [2], [0]]), updates=eighths(3, 2, dtype=bf16), shape=i32([3, 2]))
case("ScatterNd", indices=np.zeros((0, 1), np.int32), updates=eighths(0, 2), shape=i32([3, 2]))
fails("indices[2] = [1,2] does not index into shape [3,2]", "ScatterNd", i32([[0, 0], [1, 1], [1, 2]]), f32([1, 2, 3]),
      i32([3, 2]))
for dtype in NUMBERS:
    case("SegmentSum", data=eighths(5, 3, dtype=dtype), segment_ids=i32([0, 0, 1, 3, 3]))
case("SegmentSum", data=eighths(4), segment_ids=i64([1, 1, 1, 2]))
case("SegmentSum", data=eighths(0, 3), segment_ids=np.zeros(0, np.int32))
fails("segment ids are not increasing: 0 at 2, after 1", "SegmentSum", eighths(4), i32([0, 1, 0, 1]))
fails("segment_ids[1] = 5 is out of range [0, 3)", "SegmentSum", eighths(3), i32([0, 5, 2]))
fails("segment_ids[0] = -1 is out of range [0, 3)", "SegmentSum", eighths(3), i32([-1, 1, 2]))
case("UnsortedSegmentSum", data=eighths(3, 2), segment_ids=i32([[0, 1], [4, -1], [0, 0]]), num_segments=i64(6))
case("UnsortedSegmentSum", data=eighths(0, 2), segment_ids=np.zeros(0, np.int32), num_segments=i32(2))
case("UnsortedSegmentSum", data=eighths(3, 2), segment_ids=i32([-1, -2, -1]), num_segments=i32(0))
fails("segment_ids[1,0] = 2 is out of range [0, 2)", "UnsortedSegmentSum", eighths(2, 1), i32([[0], [2]]), i32(2))
case("OneHot", indices=np.zeros((0, 2), np.int32), depth=i32(2), on_value=f32(1), off_value=f32(0))
case("OneHot", indices=i32([0, 1]), depth=i32(0), on_value=f32(1), off_value=f32(0))
case("OneHot", indices=i64([1 << 62, -1 << 62, 1]), depth=i32(2), on_value=f32(1), off_value=f32(0))
case("Select", condition=np.array(True), x=eighths(0, 2), y=eighths(0, 2))
case("SelectV2", condition=bools(2, 1), t=eighths(2, 0), e=f32(1))
case("TopKV2", input=eighths(0, 4), k=i32(2))
case("TopKV2", input=eighths(2, 3, 6, dtype=bf16), k=i32(2))
case("TopKV2", input=f32([np.inf, -np.inf, 0, -0.0, np.inf]), k=i32(5))
case("TopKV2", input=np.array(random.integers(0, 9, (3, 200)), np.int32), k=i32(50))
fails("k is 4, the last axis has only 3", "TopKV2", eighths(2, 3), i32(4))

# ---- sizes that no machine has ----

fails("cannot reshape", "Reshape", eighths(2, 3), i64([2**62, 4, -1]))
fails("axis 0 becomes too large", "Tile", eighths(2, 3), i64([2**63 - 1, 1]))
fails("padding", "Pad", eighths(2, 3), i64([[2**62, 0], [0, 0]]))

# ---- regular expressions: RE2's language, on bytes ----

for pattern, texts in ((r"\d+", (b"12", b"1a", b"")), (r"(?:12|ab)", (b"12", b"ab", b"1b")),
                       (r"(?i)ABC", (b"abc", b"aBC", b"abcd")), (r"a.c", (b"abc", b"a\nc", b"a\0c")),
                       (r"a\x00?b", (b"a\0b", b"ab", b"a")), (r"(?s).*\.index", (b"m\n.index", b".index", b"index")),
                       (r"\pL+", ("\u00e9t\u00e9".encode(), b"\xff", b"x1")), (r"", (b"", b"a", b"\0")),
                       (r"^s3://.*", (b"s3://a", b"file", b"")), (r"(a+)+b", (b"a" * 100, b"aab", b"b"))):
    case("StaticRegexFullMatch", input=np.array(texts, object), pattern=pattern)
for pattern in ("(", r"(a)\1", "a{1001}", "((((a{1,255}){1,255}){1,255}){1,255})", "(" * 5000):
    fails("is not a regular expression", "StaticRegexFullMatch", np.array([b"a"], object), pattern=pattern)
