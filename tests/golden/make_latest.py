#!/usr/bin/env python3
"""Writes latest.txt: rare ops of TensorFlow 2's programs whose inputs are lists or variables, and gradients of linear
algebra, in small programs exported and run by TensorFlow, for tests/test_shapes.c."""

import io
import os
import tempfile

from PIL import Image
from graph_cases import begin, differentiate, eighths, holder, np, of, program, raw, reseed, tf, words
from op_cases import f32, f64, i32, i64
from tensorflow.compiler.tf2xla.ops import gen_xla_ops as xla
from tensorflow.python.framework.function import Defun

begin("latest.txt", __file__, 9)

# ---- combinations of ragged, sparse and dense columns ----

FED = {"numbers": i64([1, 2, 3]), "ends": i64([0, 2, 3]), "letters": words("a", "b", "c"), "letter_ends": i64([0, 1, 3]), "int_ends": i32([0, 1, 3]),
       "places": i64([[0, 0], [1, 0], [1, 1]]), "cells": words("x", "y", "z"), "size": i64([2, 2]),
       "table": i64([[7, 8], [9, 10]])}
COLUMNS = {"n": ("R", "numbers", "ends"), "l": ("R", "letters", "letter_ends"), "i": ("R", "letters", "int_ends"), "s": ("S", "places", "cells", "size"),
           "d": ("D", "table")}


def crossing(columns, hashed=False, buckets=0, splits=tf.int64):
    def build():
        held = {k: holder(tf.as_dtype("string" if v.dtype == object else v.dtype), [None] * v.ndim, k)
                for k, v in FED.items() if any(k in COLUMNS[c] for c in columns)}
        of_kind = {kind: [[held[name] for name in COLUMNS[c][1:]] for c in columns if COLUMNS[c][0] == kind]
                   for kind in "RSD"}
        return list(raw.RaggedCross(
            ragged_values=[v for v, _ in of_kind["R"]], ragged_row_splits=[s for _, s in of_kind["R"]],
            sparse_indices=[i for i, _, _ in of_kind["S"]], sparse_values=[v for _, v, _ in of_kind["S"]],
            sparse_shape=[s for _, _, s in of_kind["S"]], dense_inputs=[d for d, in of_kind["D"]],
            input_order="".join(COLUMNS[c][0] for c in columns), hashed_output=hashed, num_buckets=buckets,
            hash_key=956888297470, out_values_type=tf.int64 if hashed else tf.string, out_row_splits_type=splits))
    return build


def fed(columns, **changed):
    return {**{k: v for k, v in FED.items() if any(k in COLUMNS[c] for c in columns)}, **changed}


program("cross_ragged", crossing("nl"), fed("nl"), (fed("nl", ends=i64([0, 1, 2, 3])), "rows"))
program("cross_all", crossing("sid", splits=tf.int32), fed("sid"))
program("cross_hashed", crossing("nls", hashed=True), fed("nls"))
program("cross_buckets", crossing("dl", hashed=True, buckets=100), fed("dl"))
program("cross_dense", crossing("d"), fed("d"), fed("d", table=np.zeros((2, 0), np.int64)))

# ---- normal numbers between bounds: drawn as normal, uniform or exponential ones, turned and not ----


def between(kind):
    def build():
        names = ("means", "stddevs", "minvals", "maxvals")
        return [raw.StatelessParameterizedTruncatedNormal(
            shape=holder(tf.int32, [None], "shape"), seed=holder(tf.int64, [2], "seed"),
            **{name: holder(kind, None, name) for name in names})]
    return build


for kind in (tf.float32, tf.float64):
    def bounds(low, high, mean=0, deviation=1, shape=(3,)):
        return {"shape": i32(shape), "seed": i64([5, 6]), "means": np.array(mean, kind.as_numpy_dtype),
                "stddevs": np.array(deviation, kind.as_numpy_dtype), "minvals": np.array(low, kind.as_numpy_dtype),
                "maxvals": np.array(high, kind.as_numpy_dtype)}

    program("between_" + kind.name, between(kind),
            *[bounds(*pair) for pair in ((-2, 2), (-0.3, 0.4), (3, np.inf), (-np.inf, -4), (1, 1.25), (-np.inf, 1), (0.5, 9))],
            bounds([-1, 0, 1], 4, [[0], [1.5]], [1, 2, 0.5], (5, 2, 3)), bounds(0, 1, 0, [1, 0], (0, 2)),
            (bounds(0, 1, 0, 0), "Invalid parameters"), (bounds(1, 1), "Invalid parameters"),
            (bounds(-np.inf, np.inf), "Invalid parameters"), (bounds(0, 1, 0, [1, 1], (2, 3)), "broadcasted shape"))

# ---- a generator that ops move on themselves ----


def drawing(draw):
    def build():
        # TensorFlow's binomial op leaves a state alone whose memory is still a constant's, and draws the same twice
        first = tf.cast(tf.random.uniform([3]), tf.int64) + [5, 1, 7]
        state = tf.get_variable("state", initializer=first, use_resource=True)
        drawn = draw(resource=state.handle, algorithm=1)
        with tf.control_dependencies([drawn]):
            return [drawn, state.read_value()]
    return build


for dtype in (tf.float32, tf.float64, tf.float16):
    for name, op in (("uniform", raw.StatefulUniform), ("normal", raw.StatefulStandardNormalV2),
                     ("truncated", raw.StatefulTruncatedNormal)):
        program("kept_%s_%s" % (name, dtype.name), drawing(lambda **r: op(shape=tf.constant([5], tf.int32), dtype=dtype, **r)),
                {}, {}, init=True)
for dtype in (tf.int32, tf.int64):
    program("kept_int_" + dtype.name,
            drawing(lambda **r: raw.StatefulUniformInt(shape=[2, 3], minval=tf.constant(-5, dtype),
                                                       maxval=tf.constant(100, dtype), **r)), {}, {}, init=True)
for dtype in (tf.uint64, tf.uint32, tf.int64, tf.int32):
    program("kept_words_" + dtype.name, drawing(lambda **r: raw.StatefulUniformFullInt(shape=[3], dtype=dtype, **r)), {},
            {}, init=True)
for counts, shape in (([5.0, 100.0], [3, 2]), (100.0, [2]), ([1.0, 2.0, 30.0], [7, 3])):
    program("kept_binomial_%d" % len(shape) + str(shape[0]),
            drawing(lambda **r: raw.StatefulRandomBinomial(shape=shape, counts=tf.constant(counts), probs=tf.constant(0.4),
                                                           dtype=tf.int32, **r)), {}, {}, init=True)

# ---- gradients of linear algebra, and of patches of volumes ----


def eigen(compute_v):
    def build(x):
        e, v = raw.Eig(input=x, compute_v=compute_v, Tout=tf.complex64)
        parts = [tf.math.real(e), tf.math.imag(e)] + ([tf.abs(v)] if compute_v else [])
        return tf.concat([tf.reshape(p, [-1]) for p in parts], 0)
    return build


APART = (eighths(2, 3, 3) / 4 + np.diag(f32([1, 2.5, -2]))).astype(np.float32)
for computes in (True, False):
    differentiate("eig_%d" % computes, of(eigen(computes), 3), {"x": APART}, {"x": APART[:1]})
POSITIVE = (np.matmul(APART, np.swapaxes(APART, 1, 2)) + np.eye(3)).astype(np.float32)


def shaped(shape, f):
    def build():
        x = holder(tf.float32, shape, "x")
        return x, f(x)
    return build


differentiate("square_root", shaped([None, 3, 3], lambda x: raw.MatrixSquareRoot(input=x)), {"x": POSITIVE})
for size, stride, padding in ((2, 1, "VALID"), (3, 2, "SAME")):
    patches = shaped([2, 3, 3, 4, 2], lambda x: raw.ExtractVolumePatches(
        input=x, ksizes=[1, size, 2, size, 1], strides=[1, stride, 1, stride, 1], padding=padding))
    differentiate("volume_patches_" + padding, patches, {"x": eighths(2, 3, 3, 4, 2)})
RIGHT = f32([[[1, 2], [-1, 0.5], [3, 1], [0, -2]]])
DIAGONALS = f32([[[1, -0.5, 2, 9], [5, -6, 7, 5.5], [9, 1, 0.5, -1]]])
differentiate("tridiagonal_diagonals", of(lambda d: raw.TridiagonalSolve(diagonals=d, rhs=RIGHT), 3), {"x": DIAGONALS})
differentiate("tridiagonal_rhs", of(lambda b: raw.TridiagonalSolve(diagonals=DIAGONALS, rhs=b), 3), {"x": RIGHT})
FACTORS = [DIAGONALS[:, i:i + 1] for i in range(3)] + [RIGHT]
for i in range(4):
    def multiplied(x):
        given = FACTORS[:i] + [x] + FACTORS[i + 1:]
        return raw.TridiagonalMatMul(superdiag=given[0], maindiag=given[1], subdiag=given[2], rhs=given[3])
    differentiate("tridiagonal_product_%d" % i, of(multiplied, 3), {"x": FACTORS[i]})
for lower in (True, False):
    BANDS = f32([[[4, 5, 6, 4.5], [1, -1, 0.5, 2]]])[:, ::1 if lower else -1]
    differentiate("banded_bands_%d" % lower, shaped([None, 2, None], lambda m: raw.BandedTriangularSolve(
        matrix=m, rhs=RIGHT, lower=lower, adjoint=lower)), {"x": BANDS})
    differentiate("banded_rhs_%d" % lower, of(lambda b: raw.BandedTriangularSolve(matrix=BANDS, rhs=b, lower=lower), 3),
                  {"x": RIGHT})

# ---- the largest, approximately, which on CPUs is exactly ----


def approximate(dtype, rows=None, **attrs):
    return lambda: [tf.cast(y, tf.float32) for y in raw.ApproxTopK(
        input=tf.cast(holder(tf.float32, [rows, 4], "x"), dtype), k=3, **attrs)]


TIES = f32([[1, 3, 3, 2], [0, -1, -2, 5]])
for dtype in (tf.float32, tf.float16, tf.bfloat16):
    program("approximate_" + dtype.name, approximate(dtype), {"x": TIES}, {"x": TIES[:0]})
for attrs in ({"is_max_k": False}, {"reduction_dimension": 0}):
    program("approximate_not_" + list(attrs)[0], approximate(tf.float32, 4, **attrs),
            ({"x": np.tile(TIES, [2, 1])}, list(attrs)[0]))
differentiate("approximate_gradient", shaped([2, 4], lambda x: raw.ApproxTopK(input=x, k=3)[0]), {"x": TIES})

# ---- XLA's slices, whose begins are moved to where the part fits; with caches of text generators ----


def dynamic(dtype, index):
    part = holder(dtype, [None, None], "part")
    at = holder(index, [2], "at")
    x = holder(dtype, [3, 4], "x")
    return [xla.xla_dynamic_update_slice(x, part, at), xla.xla_dynamic_slice(x, at, tf.constant([2, 3], index)), x + part[:1, :1]]


WHOLE = np.arange(1, 13).reshape(3, 4)
for dtype, index in ((tf.float32, tf.int32), (tf.int64, tf.int64), (tf.float16, tf.int32)):
    runs = [{"part": np.array(part, dtype.as_numpy_dtype), "at": np.array(at, index.as_numpy_dtype),
             "x": WHOLE.astype(dtype.as_numpy_dtype)}
            for part, at in (([[-1, -2]], [1, 1]), ([[-1], [-2]], [-5, 3]), ([[-1, -2]], [7, 7]))]
    program("dynamic_" + dtype.name, lambda: dynamic(dtype, index), *runs)

# ---- texts in a variable ----


def words_taken():
    v = tf.get_variable("v", initializer=tf.constant(["a", "bc", "", "def"]), use_resource=True)
    at = holder(tf.int32, [None], "at")
    return [raw.ResourceGather(resource=v.handle, indices=at, dtype=tf.string),
            raw.ResourceGatherNd(resource=v.handle, indices=at[:, None], dtype=tf.string)]


program("words_taken", words_taken, {"at": i32([3, 0, 3, 2])}, {"at": i32([])}, init=True)

# ---- conditions ----


def constant_decides():
    """Of a condition in a loop behind a border, nothing is left but its own name for the predicate."""
    n = tf.size(tf.where(holder(tf.float32, [None], "x") > 0))
    shaped = tf.range(n)

    def body(i, a):
        return i + 1, tf.cond(tf.constant(False), lambda: tf.negative(a), lambda: tf.square(a)) + tf.size(shaped)
    return [tf.while_loop(lambda i, a: i < 2, body, [0, n])[1]]


program("constant_decides", constant_decides, {"x": f32([1, -1, 2, 3])})


def elements_of_no_rows():
    """An array's elements may be of no rows, and are something nevertheless."""
    array = tf.TensorArray(tf.float32, 3, infer_shape=False, clear_after_read=False).unstack(holder(tf.float32, [3, 0, 2], "x"))
    return [array.concat(), array.read(1), array.size()]


program("elements_of_no_rows", elements_of_no_rows, {"x": f32([[], [], []]).reshape(3, 0, 2)})


@Defun(tf.float32)
def several_types(x):
    return tf.cast(x, tf.int32), tf.exp(x) * x


def gradient_of_several_types():
    """What a function gives of whole numbers has no gradient, and none is asked for."""
    x = holder(tf.float32, [2], "x")
    whole, y = several_types(x)
    return tf.gradients([y, tf.cast(whole, tf.float32)], [x])


program("gradient_of_several_types", gradient_of_several_types, {"x": f32([1, -2])})


def one_branch():
    """TensorFlow calls what takes the Case's result as a node of the branch is called behind the Case's name."""
    tf.enable_control_flow_v2()
    x = holder(tf.float32, [2], "x")
    i = holder(tf.int32, [], "i")
    taken = tf.switch_case(i, [lambda: tf.identity(x) * 2])
    within = tf.cond(i > 3, lambda: tf.switch_case(i, [lambda: tf.identity(x) * 3]), lambda: x)
    tf.disable_control_flow_v2()
    return [taken, within]


program("one_branch", one_branch, {"x": f32([1, 2]), "i": i32(5)})


def variable_decides():
    """A variable of TensorFlow 1, of which its readers hand the memory on, and a condition in a branch of another."""
    v = tf.get_variable("training", initializer=tf.constant(True), use_resource=False)
    x, p = holder(tf.float32, [2], "x"), tf.identity(v)
    inner = tf.cond(p, lambda: tf.cond(tf.logical_not(v), lambda: x, lambda: -x), lambda: x * 2)
    return [inner, tf.cond(v, lambda: x + 1, lambda: x + 2)]


program("variable_decides", variable_decides, {"x": f32([1, 2])}, init=True)


def segments_without_rows():
    """The extremes of no row are the narrow type's own least and greatest numbers, and so are those of infinities."""
    x, ids = holder(tf.float32, [3], "x"), holder(tf.int32, [3], "ids")
    return [tf.cast(extreme(tf.cast(x, dtype), ids, 3), tf.float32)
            for dtype in (tf.half, tf.bfloat16) for extreme in (raw_max, raw_min)]


def raw_max(x, ids, count):
    return raw.UnsortedSegmentMax(data=x, segment_ids=ids, num_segments=count)


def raw_min(x, ids, count):
    return raw.UnsortedSegmentMin(data=x, segment_ids=ids, num_segments=count)


program("segments_without_rows", segments_without_rows,
        {"x": f32([np.inf, -np.inf, 2]), "ids": i32([0, 1, 1])})


def extremes_beside_nans():
    """A segment takes what comes last unless what it has is further out; an update that is no number changes nothing."""
    x, ids, base = holder(tf.float32, [8, 1], "x"), holder(tf.int32, [8], "ids"), holder(tf.float32, [4, 1], "base")
    updates, places = x[4:], tf.expand_dims(tf.range(4), 1)
    found = [raw_max(x, ids, 4), raw_min(x, ids, 4)]
    return found + [op(tensor=base, indices=places, updates=updates) for op in (raw.TensorScatterMax, raw.TensorScatterMin)]


program("extremes_beside_nans", extremes_beside_nans,
        {"x": f32([[1], [np.nan], [np.nan], [1], [np.nan], [5], [3], [2]]), "ids": i32([0, 0, 1, 1, 2, 2, 3, 3]),
         "base": f32([[1], [np.nan], [4], [-2]])})


def sums_before_products():
    """What one input has alone is summed before anything is multiplied: infinities and empty axes show it."""
    x, y, none = holder(tf.float32, [2, 2], "x"), holder(tf.float32, [2], "y"), holder(tf.float32, [2, 0], "none")
    return [raw.Einsum(inputs=list(inputs), equation=equation) for equation, inputs in (
        ("ab,c->ab", (x, y)), ("ab,bc->a", (x, none)), ("ab,c->c", (none, y)), ("ab,b->a", (x, y)), ("ab,ac->cb", (x, x)))]


program("sums_before_products", sums_before_products,
        {"x": f32([[np.inf, 2], [-1, 0.5]]), "y": f32([0, 3]), "none": np.zeros([2, 0], np.float32)})


def quantized_ties():
    """What lies in the middle of two steps goes where TensorFlow's order of operations takes it."""
    x = holder(tf.float32, [8], "x")
    return [quantized for low, high, bits in ((0, 1.1, 3), (-1, 1.1, 3), (0, 10, 4)) for quantized in (
        tf.quantization.fake_quant_with_min_max_args(x, low, high, bits),
        tf.quantization.fake_quant_with_min_max_vars(x, low, high, bits),
        tf.quantization.fake_quant_with_min_max_vars_per_channel(x, [low] * 8, [high] * 8, bits))]


program("quantized_ties", quantized_ties,
        {"x": f32([0.23571429, 0.8642857, 1.0214286, -0.75, 1.6666666, 2.3333333, 5.6666665, 0.5])})


def far_out():
    """Functions of the gamma family and of Bessel's where their sums begin to fail: infinities, tails, large numbers."""
    a, x = holder(tf.float64, [11], "a"), holder(tf.float64, [11], "x")
    order, at = holder(tf.float64, [6], "order"), holder(tf.float64, [6], "at")
    large = holder(tf.float64, [4], "large")
    return [raw.Igamma(a=a, x=x), raw.Igammac(a=a[:-1], x=x[:-1]), raw.IgammaGradA(a=a[:-1], x=x[:-1]),
            raw.RandomGammaGrad(alpha=a[:-1], sample=x[:-1]), raw.Zeta(x=order + 1, q=at), raw.Polygamma(a=order, x=at),
            *[op(x=large) for op in (raw.BesselI0, raw.BesselI1, raw.BesselJ0, raw.BesselJ1, raw.BesselY0)]]


program("far_out", far_out,
        {"a": f64([0, np.inf, 10, 89, 1.1, 1e4, 1000, 5, 0.5, 30, -1]), "x": f64([0, 2, 89, 150, 20, 10, 1e-3, 40, 3, 33, 0]),
         "order": f64([np.inf, np.inf, 9.007199254740992e15, 1e30, 3, 4]), "at": f64([0.5, 2, 0.001, 0.1, 700, 0.25]),
         "large": f64([1.7976931348623157e308, np.inf, 750, 12])})


def types_of_few():
    """Types that few programs have: bfloat16 quotients, complex biases, truth of half numbers, axes counted on."""
    narrow, half = tf.cast(holder(tf.float32, [4], "narrow"), tf.bfloat16), holder(tf.float16, [3], "half")
    value, bias, axes = holder(tf.complex64, [2, 2], "value"), holder(tf.complex64, [2], "bias"), holder(tf.int32, [7], "axes")
    added = raw.BiasAdd(value=value, bias=bias)
    return [tf.cast(raw.Xdivy(x=narrow, y=narrow[::-1]), tf.float32), added, raw.BiasAddGrad(out_backprop=added * value),
            raw.ToBool(input=half), raw.DataFormatDimMap(x=axes)]


program("types_of_few", types_of_few,
        {"narrow": f32([0, 2, 0.5, 0]), "half": np.float16([-0.0, 6e-8, 1]),
         "value": np.complex64([[1 + 2j, 3], [5, 6 - 1j]]), "bias": np.complex64([1j, 2]), "axes": i32([-4, -1, 0, 3, 4, 6, 100])})


def gradient_of_any_normalized():
    """What LRNGrad is given as the normalized image need not be what LRN makes of the other."""
    dy, x, y = (holder(tf.float32, [2, 2, 8], name) for name in ("dy", "x", "y"))
    dy, x, y = (tf.expand_dims(v, 0) for v in (dy, x, y))
    return [raw.LRNGrad(input_grads=dy, input_image=x, output_image=y, depth_radius=r, bias=0.5, alpha=1, beta=b)
            for r, b in ((2, 0.5), (4, 0.75), (5, 0.6))]


program("gradient_of_any_normalized", gradient_of_any_normalized, {"dy": eighths(2, 2, 8), "x": eighths(2, 2, 8), "y": eighths(2, 2, 8)})
def best_by_int64():
    """How many are wanted, and where they stand, may be int64."""
    x = holder(tf.float32, [2, 4], "x")
    return [found for k, places in ((np.int64(3), tf.int64), (np.int32(1), tf.int64), (np.int64(0), tf.int32))
            for found in raw.TopKV2(input=x, k=k, index_type=places)]


program("best_by_int64", best_by_int64, {"x": f32([[1, 4, 4, -2], [0, 7, 1, 9]])})
# ---- data sets: reductions by key, sparse batches, lists, what is kept in files; one element a run ----

experimental = tf.data.experimental


def elements(make):
    def build():
        return tf.nest.flatten(tf.data.make_one_shot_iterator(make()).get_next(), expand_composites=True)
    return build


def numbers(count):
    return tf.data.Dataset.range(count)


MEAN = experimental.Reducer(lambda key: (np.int64(0), key), lambda s, x: (s[0] + x, s[1]), lambda a, b: (a, b * 10))
END = ({}, "End of sequence")
program("reduced", elements(lambda: numbers(12).apply(experimental.group_by_reducer(lambda x: 1 - x % 3, MEAN))),
        {}, {}, {}, END)
program("reduced_nothing", elements(lambda: numbers(0).apply(experimental.group_by_reducer(lambda x: x % 3, MEAN))), END)
program("sparse_batches", elements(lambda: numbers(8).map(lambda x: tf.range(x)).sparse_batch(3, [10])), {}, {}, {}, END)
program("sparse_batches_of_texts", elements(
    lambda: numbers(4).map(lambda x: tf.as_string(tf.reshape(tf.range(2 * x), [2, x]))).sparse_batch(3, [2, None])),
    {}, {}, END)
program("sparse_batches_too_small", elements(lambda: numbers(4).map(lambda x: tf.zeros([x])).sparse_batch(3, [1])),
        ({}, "smaller"))
program("listed", elements(lambda: experimental.from_list([(1, 2.5), (3, 4.5), (5, 6.5)]).map(lambda a, b: (b, a))),
        {}, {}, {}, END)
program("lists_counted", lambda: [experimental.from_list([10, 11, 12]).cardinality(),
                                  experimental.from_list([1, 2]).repeat(3).cardinality()], {})
with tempfile.TemporaryDirectory() as folder:
    here = os.getcwd()
    os.chdir(folder)
    program("kept_in_files", elements(lambda: numbers(2).snapshot("kept")), {}, {}, END)
    os.chdir(here)

# ---- JPEGs: a part of their size, colours that do not go over into each other, four inks ----


def jpeg(mode):
    ramp = (np.indices((17, 23)).sum(0) * 7).astype(np.uint8)
    pixels = np.stack([ramp, 255 - ramp, ramp * np.uint8(3), ramp // 3], -1)
    out = io.BytesIO()
    Image.fromarray(pixels[..., :len(mode)], mode).save(out, "JPEG", quality=80, subsampling=2)
    return np.array(out.getvalue(), object)


for mode in ("RGB", "CMYK"):
    for ratio in (1, 2, 8):
        program("jpeg_%s_%d" % (mode.lower(), ratio), lambda: [
            f(holder(tf.string, [], "file") if i == 0 else tf.get_default_graph().get_tensor_by_name("file:0"))
            for i, f in enumerate((lambda x: raw.DecodeJpeg(contents=x, ratio=ratio),
                                   lambda x: raw.DecodeJpeg(contents=x, ratio=ratio, fancy_upscaling=False),
                                   lambda x: raw.ExtractJpegShape(contents=x),
                                   lambda x: raw.DecodeAndCropJpeg(contents=x, crop_window=[0, 1, 2, 2], ratio=ratio)))],
            {"file": jpeg(mode)})
program("jpeg_grey_of_inks", lambda: [raw.DecodeJpeg(contents=holder(tf.string, [], "file"), channels=1)],
        ({"file": jpeg("CMYK")}, "JPEG"))

# ---- scripts, rows of ragged tensors that are empty, texts of segments, images at a filter's edge ----

program("scripts", lambda: [tf.strings.unicode_script(holder(tf.int32, [None], "x"))],
        {"x": i32(list(range(0, 0x800, 13)) + list(range(0x800, 0x110000, 4001)) + [-1, 0x110000, 2**31 - 1])})


def filled():
    x, d = holder(tf.float32, [None], "x"), holder(tf.float32, [], "d")
    given = raw.RaggedFillEmptyRows(value_rowids=holder(tf.int64, [None], "rows"), values=x,
                                    nrows=tf.constant(6, tf.int64), default_value=d)
    return list(given) + tf.gradients(given[1] * given[1], [x, d])


FILLED = {"x": f32([1, 2, 3]), "d": f32(7.5)}
program("filled_ragged", filled, {**FILLED, "rows": i64([1, 1, 4])}, {**FILLED, "x": f32([]), "rows": i64([])},
        ({**FILLED, "rows": i64([1, 1, 6])}, "outside of the 6 rows"))
program("joined_segments", lambda: [tf.strings.unsorted_segment_join(holder(tf.string, [None], "x"),
                                                                     [0, 0, 0, 1, 1, 2, 2, 2], 4, ":")],
        {"x": words("", "a", "", "b", "", "", "", "c")})
program("scaled_by_gaussian", lambda: [raw.ScaleAndTranslate(
    images=holder(tf.float32, [None] * 4, "x"), size=[6, 17], scale=[6 / 13, 1], translation=[0., 0],
    kernel_type="gaussian")], {"x": eighths(1, 13, 17, 1)})

# ---- tables without names: others in each run ----


def nameless_tables():
    key = holder(tf.string, [None], "key")
    table = raw.AnonymousMutableHashTable(key_dtype=tf.string, value_dtype=tf.float32)
    of_pairs = raw.AnonymousMutableHashTableOfTensors(key_dtype=tf.string, value_dtype=tf.float32, value_shape=[2])
    dense = raw.AnonymousMutableDenseHashTable(empty_key=tf.constant(-1, tf.int64), deleted_key=tf.constant(-2, tf.int64),
                                               value_dtype=tf.float32)
    static = raw.AnonymousHashTable(key_dtype=tf.string, value_dtype=tf.int64)
    with tf.control_dependencies([
            raw.LookupTableInsertV2(table_handle=table, keys=key, values=tf.ones_like(key, tf.float32)),
            raw.LookupTableInsertV2(table_handle=of_pairs, keys=key, values=tf.ones([1, 2])),
            raw.LookupTableInsertV2(table_handle=dense, keys=tf.constant([5, 6], tf.int64), values=[1., 2.]),
            raw.InitializeTableV2(table_handle=static, keys=tf.constant(["a"]), values=tf.constant([4], tf.int64))]):
        asked = tf.constant(["a", "b"])
        return [raw.LookupTableFindV2(table_handle=table, keys=asked, default_value=tf.constant(0.)),
                raw.LookupTableFindV2(table_handle=of_pairs, keys=asked, default_value=tf.zeros([2])),
                raw.LookupTableFindV2(table_handle=dense, keys=tf.constant([5, 7], tf.int64), default_value=tf.constant(0.)),
                raw.LookupTableFindV2(table_handle=static, keys=asked, default_value=tf.constant(-1, tf.int64)),
                raw.LookupTableSizeV2(table_handle=table)]


program("nameless_tables", nameless_tables, {"key": words("a")}, {"key": words("b")}, {"key": words("c")})


def branches_that_need_not_fit(held, new):
    """What a branch multiplies need not fit where it is not taken, though its condition is known to a run alone; in a
    function, which is called with shapes that its own argument does not tell, and in one that has a condition on them."""
    def build():
        x, taken = holder(tf.float32, held, "x"), holder(tf.bool, [], "taken")
        three, five = np.ones([3, 2], np.float32), np.ones([5, 2], np.float32)
        unknown = tf.TensorSpec([None, None], tf.float32)

        def narrow(x, taken):
            return tf.cond(taken, lambda: tf.reduce_sum(tf.matmul(x, three)), lambda: tf.reduce_sum(x))

        def by_width(x):
            return tf.cond(tf.equal(tf.shape(x)[1], 3), lambda: tf.matmul(x, three), lambda: tf.matmul(x, five) * 2)
        signature = [unknown, tf.TensorSpec([], tf.bool)]
        called = tf.function(narrow, input_signature=signature)(x, taken) if new else narrow(tf.placeholder_with_default(x, [None, None]), taken)
        width = tf.function(by_width, input_signature=[unknown])(x)
        return {"both": [called, width], "narrow": [called + 1]}

    if new:
        tf.enable_control_flow_v2()
    feeds = [{"x": eighths(2, 5), "taken": np.array(False)}, ({"x": eighths(2, 5), "taken": np.array(True)}, "narrow", "[2,5] x [3,2]")]
    if held[1] is None:
        feeds[1:1] = [{"x": eighths(4, 3), "taken": np.array(taken)} for taken in (True, False)]
    program("branches_that_need_not_fit_%d_%d" % (new, held[1] or 0), build, *[(f, "both") if isinstance(f, dict) else f for f in feeds])
    tf.disable_control_flow_v2()


for new in (False, True):
    for held in ([None, None], [2, 5]):
        branches_that_need_not_fit(held, new)

# ---- complex numbers, which are fed and fetched by their parts ----

reseed(10)


def complex_of(x):
    return tf.complex(x, x[::-1] * 2)


def parts(*values):
    return tf.concat([tf.reshape(f(v), [-1]) for v in values for f in (tf.math.real, tf.math.imag)], 0)


for equation, shapes in (("ij,jk->ik", ((2, 3), (3, 4))), ("bij,bj->bi", ((2, 2, 3), (2, 3))), ("ij,ij->", ((2, 3), (2, 3)))):
    program("einsum_complex_" + equation[:3], lambda: [parts(tf.einsum(
        equation, *[complex_of(holder(tf.float32, shape, "xy"[i])) for i, shape in enumerate(shapes)]))],
        {"xy"[i]: eighths(*shape) for i, shape in enumerate(shapes)})
differentiate("einsum_complex", of(lambda x: parts(tf.einsum("ij,kj->ik", complex_of(x), complex_of(x * x)))), {"x": eighths(2, 3)})
differentiate("einsum_complex_alone", of(lambda x: parts(tf.einsum("ii->i", complex_of(x)), tf.einsum("ij->j", complex_of(x)))),
              {"x": eighths(3, 3)})


def scattered_complex():
    x = complex_of(holder(tf.float32, [3, 2], "x"))
    places, rows = [[0], [2], [0]], tf.constant([0, 2, 0])
    of_parts = [raw.TensorScatterAdd(tensor=x, indices=places, updates=x), raw.TensorScatterSub(tensor=x, indices=places, updates=x)]
    for i, change in enumerate((tf.scatter_add, tf.scatter_sub, tf.scatter_mul, tf.scatter_div)):
        variable = tf.get_variable("v%d" % i, initializer=tf.ones([3, 2], tf.complex64), use_resource=i % 2 == 0)
        of_parts.append(change(variable, rows, x) + 0)
    return [parts(v) for v in of_parts]


program("scattered_complex", scattered_complex, {"x": eighths(3, 2) + 3}, init=True)
program("small_types", lambda: [tf.one_hot(tf.cast(holder(tf.int32, [None], "x"), tf.int8), 3),
                                tf.argmax(tf.cast(holder(tf.int32, [2, 3], "y"), tf.bool), 1)],
        {"x": i32([2, 0, -1]), "y": i32([[0, 1, 1], [0, 0, 0]])})

# ---- tables that data sets fill, numbers of the system's ----


def filled_tables():
    keys = holder(tf.string, [None], "keys")
    pairs = tf.data.Dataset.from_tensor_slices((tf.constant(["a", "b"]), tf.constant([5, 6], tf.int64)))
    table = tf.lookup.StaticHashTable(tf.data.experimental.DatasetInitializer(pairs), -1)
    numbered = tf.data.experimental.index_table_from_dataset(tf.data.Dataset.from_tensor_slices(["a", "c"]), num_oov_buckets=2)
    tf.add_to_collection(tf.GraphKeys.GLOBAL_VARIABLES, tf.get_variable("v", initializer=1.))
    with tf.control_dependencies([tf.tables_initializer(), tf.tables_initializer()]):
        return [table.lookup(tf.identity(keys)), numbered.lookup(tf.identity(keys)), table.size()]


program("filled_tables", filled_tables, {"keys": words("a", "b", "c")}, {"keys": words("c")})
for kind in (tf.int32, tf.uint64):
    program("numbers_of_the_system_" + kind.name, lambda: [tf.shape(raw.NonDeterministicInts(shape=holder(tf.int32, [None], "x"), dtype=kind)),
            tf.reduce_any(tf.not_equal(raw.NonDeterministicInts(shape=tf.constant([1000]), dtype=kind), 0))], {"x": i32([3, 2])})

# ---- convolutions that pad and resize; of several images TensorFlow's take the first one's numbers for all ----

for kind in (tf.float32, tf.float64):
    fed = {"x": eighths(1, 4, 5, 2, dtype=kind.as_numpy_dtype), "pads": i32([[0, 0], [1, 2], [2, 1], [0, 0]])}
    program("padded_conv_" + kind.name, lambda: [raw.FusedPadConv2D(
        input=holder(kind, [None] * 4, "x"), paddings=holder(tf.int32, [4, 2], "pads"), filter=eighths(2, 3, 2, 2).astype(kind.as_numpy_dtype),
        mode="REFLECT", strides=[1, 2, 1, 1], padding="SAME")], fed)
    program("resized_conv_" + kind.name, lambda: [raw.FusedResizeAndPadConv2D(
        input=holder(kind, [None] * 4, "x"), size=[7, 6], paddings=holder(tf.int32, [4, 2], "pads"),
        filter=eighths(2, 3, 2, 2).astype(kind.as_numpy_dtype), mode="SYMMETRIC", strides=[1, 1, 2, 1], padding="VALID",
        resize_align_corners=True)], fed)


def batched():
    x, two = holder(tf.float32, [4, 2], "x"), tf.constant(2.)
    return list(tf.nondifferentiable_batch_function(1, 4, 100)(lambda a: [a * two, tf.cast(a, tf.int32)])(x))


program("batched", batched, {"x": eighths(4, 2)})

# ---- a data set that another device is given ----


def copied_data_set():
    def total(x):
        tried = tf.data.Dataset.from_tensor_slices(x).apply(tf.data.experimental.copy_to_device("/cpu:0"))
        return tried.prefetch(1).reduce(0.0, lambda s, y: s * 2 + tf.reduce_sum(y))
    x = holder(tf.float32, [None, 2], "x")
    return [tf.function(total)(x), total(x)]


program("copied_data_set", copied_data_set, {"x": eighths(3, 2)})

# ---- indices that are no places, and are to be ignored ----

for kind in (tf.float32, tf.float16, tf.string):
    def ignoring(kind=kind):
        places = holder(tf.int32, [None, 2], "places")
        held = tf.cast(tf.ones([2, 3, 2]), kind) if kind != tf.string else tf.fill([2, 3, 2], "t")
        taken = [tf.gather_nd(held, places, bad_indices_policy="IGNORE")]
        return taken if kind == tf.string else taken + [tf.scatter_nd(places, tf.fill([3, 2], tf.constant(2, kind)), [2, 3, 2],
                                                                      bad_indices_policy="IGNORE")]

    program("ignoring_" + kind.name, ignoring, {"places": i32([[0, 1], [2, 0], [1, -1]])}, {"places": i32([[1, 1], [0, 0], [1, 1]])})
differentiate("ignoring", of(lambda x: tf.gather_nd(x, tf.constant([[0, 1], [7, 0], [0, 1]]), bad_indices_policy="IGNORE"), 2),
              {"x": eighths(2, 2)})
# ---- linear algebra of what is not finite, not positive definite or singular ----


def not_finite():
    a = holder(tf.float32, [None, None], "a")
    ones = tf.ones_like(a[:, :1])
    sure = [tf.linalg.det(a), *tf.linalg.slogdet(a), tf.linalg.band_part(tf.linalg.cholesky(a), -1, 0),
            tf.linalg.triangular_solve(a, ones), tf.linalg.triangular_solve(a, ones, lower=False, adjoint=True),
            tf.linalg.qr(a)[1], tf.linalg.svd(a, compute_uv=False)]
    return {"": sure, "solved": [tf.linalg.solve(a, ones), tf.linalg.inv(a)], "eigen": [tf.linalg.eigvalsh(a)]}


NAN = np.nan
SQUARES = [[[4, 2], [NAN, 1]], [[1, NAN], [1, 1]], np.full((3, 3), NAN), np.diag([1, NAN, 2]), [[0, NAN], [0, 1]], [[-1, 2], [2, 1]]]
program("not_finite", not_finite, *[{"a": f32(a)} for a in SQUARES], *[({"a": f32(a)}, "solved") for a in SQUARES[:2]],
        ({"a": f32(SQUARES[2])}, "solved", "not invertible"),
        ({"a": f32(SQUARES[0])}, "eigen", "Self-adjoint eigen decomposition was not successful"))

# ---- gradients in sixteen bits of a list that a loop reads twice, and of an array ----


def read_twice(dtype, new):
    def build():
        (tf.enable_control_flow_v2 if new else tf.disable_control_flow_v2)()
        x = holder(dtype, [3, 2], "x")
        read = tf.TensorArray(dtype, 3, clear_after_read=False).unstack(x)
        total = tf.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t + read.read(i) * read.read(2 - i)), [0, x[0]])[1]
        gradient = tf.gradients(total, x)[0]
        tf.disable_control_flow_v2()
        return [total, gradient]

    name = "read_twice_%s_%d" % (dtype.name, new)
    program(name, build, {"x": eighths(3, 2).astype(dtype.as_numpy_dtype)})


for dtype in (tf.float16, tf.bfloat16):
    for new in (False, True):
        read_twice(dtype, new)

# ---- what TensorFlow refuses: classes that are none, numbers below zero, rates and the like ----

for sampler, rest in {"Uniform": {"range_max": 5}, "LogUniform": {"range_max": 5}, "All": {},
                      "FixedUnigram": {"range_max": 5, "unigrams": [1.0, 2, 3, 4, 5]}}.items():
    def sampling(sampler=sampler, rest=rest):
        classes = holder(tf.int64, [None, 1], "classes")
        return list(getattr(raw, sampler + "CandidateSampler")(true_classes=classes, num_true=1, num_sampled=5, unique=True,
                                                               seed=3, **rest))

    program("sampling_" + sampler, sampling, {"classes": i64([[1], [4]])}, *[({"classes": i64([[1], [c]])}, "true class") for c in (5, -1)])


def counting(most):
    def build():
        x = holder(tf.int32, [None, None], "x")
        return list(raw.DenseCountSparseOutput(values=x, weights=tf.constant([], tf.float32), binary_output=False, maxlength=most))
    return build


program("counting", counting(-1), {"x": i32([[0, 5, 2]])}, ({"x": i32([[0, -2, 3]])}, "must all be non-negative"))
program("counting_none", counting(0), {"x": i32([[0, 5, 2]])})


def updating():
    lr, l1, power = [holder(tf.float32, [], name) for name in ("lr", "l1", "power")]
    def update(op, **given):
        v = tf.Variable([[1.0, 2]], use_resource=True)
        slots = {name: tf.Variable([[0.5, 0.25]], use_resource=True).handle for name in ("accum", "linear") if name in given}
        with tf.control_dependencies([op(var=v.handle, lr=lr, l1=l1, l2=0.5, **{**given, **slots})]):
            return [v.read_value()]
    rows = {"grad": tf.constant([[0.5, -1]]), "indices": [0]}
    return {"ftrl": update(raw.ResourceSparseApplyFtrl, accum=0, linear=0, lr_power=power, **rows),
            "adagrad": update(raw.ResourceApplyProximalAdagrad, accum=0, grad=rows["grad"])}


for which in ("ftrl", "adagrad"):
    def rates(lr=0.5, l1=0.25, power=-0.5):
        return {"lr": f32(lr), "l1": f32(l1), "power": f32(power)} if which == "ftrl" else {"lr": f32(lr), "l1": f32(l1)}

    program("updating_" + which, updating, (rates(), which), (rates(lr=0), which, "is 0, expected more than 0"),
            (rates(l1=-1), which, "is -1, expected not less than 0"),
            *[(rates(power=0.5), which, "is 0.5, expected not more than 0")][: which == "ftrl"], init=True)
program("compressed", lambda: {"well": [tf.image.decode_png(raw.EncodePng(image=holder(tf.uint8, [None, None, 1], "x"), compression=9))],
                               "badly": [raw.EncodePng(image=tf.zeros([1, 1, 1], tf.uint8), compression=10)]},
        ({"x": np.array([[[3], [200]]], np.uint8)}, "well"), ({"x": np.array([[[3], [200]]], np.uint8)}, "badly", "expected -1 to 9"))

# ---- a normalization that moves its averages: inputs that are constants have names below its own ----


def averages(training):
    return lambda: list(raw.FusedBatchNormV3(x=holder(tf.float32, [2, None, 1, 2], "x"), scale=[1.0, 2], offset=[0.5, 1], mean=[0.1, 0.2],
                                             variance=[1.0, 3], exponential_avg_factor=0.75, is_training=training))[:3 if training else 1]


reseed(31)
for training in (True, False):
    program("averages_%d" % training, averages(training), {"x": eighths(2, 3, 1, 2)})

# ---- a generator that is moved on, and not read ----


def skipping():
    state = tf.get_variable("state", initializer=tf.constant([-5, 1, 7], tf.int64), use_resource=True)
    with tf.control_dependencies([raw.RngSkip(resource=state.handle, algorithm=tf.constant(1, tf.int64), delta=holder(tf.int64, [], "delta"))]):
        return [state.read_value()]


program("skipping", skipping, {"delta": i64(3)}, {"delta": i64(0)}, init=True)

# ---- a picture's file: no chunks that TensorFlow does not write, compressed as is asked for ----

program("pictures_file", lambda: [tf.strings.substr(raw.EncodePng(image=holder(tf.uint8, [None, None, 1], "x")), 0, 41),
                                  raw.EncodePng(image=holder(tf.uint16, [None, None, 1], "words"), compression=0)],
        {"x": np.array([[[3], [200]]], np.uint8), "words": np.array([[[3], [500]]], np.uint16)})
