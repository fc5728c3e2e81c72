#!/usr/bin/env python3
"""Writes rare.txt: ops that few programs have, in small programs exported and run by TensorFlow, for tests/test_shapes.c."""
from graph_cases import begin, differentiate, eighths, holder, np, of, once_more, program, raw, reseed, tf
from op_cases import f32, f64, i32, i64

begin("rare.txt", __file__, 101)

# ---- sparse tensors and dense ones ----

AT = i64([[0, 1], [0, 3], [2, 0], [2, 3]])
SHAPE = i64([3, 4])


def sparse(dtype, name="", shape=(None, 2)):
    """Indices, values and shape that are fed."""
    return [holder(tf.int64, shape, name + "i"), holder(dtype, [shape[0]], name + "v"),
            holder(tf.int64, [shape[1]], name + "s")]


def fed(dtype, name="", at=AT, shape=SHAPE, scale=1):
    values = scale * np.array([1.5, -2, -4, 0.5, 3, -1.25])[:len(at)]
    return {name + "i": np.array(at, np.int64).reshape(-1, len(shape)), name + "v": values.astype(dtype.as_numpy_dtype),
            name + "s": i64(shape)}


for dtype in (tf.float32, tf.float64, tf.float16, tf.int32):
    def with_dense():
        i, v, s = sparse(dtype)
        d = holder(dtype, None, "d")
        return [getattr(raw, "SparseDenseCwise" + how)(sp_indices=i, sp_values=v, sp_shape=s, dense=d)
                for how in ("Add", "Mul", "Div")]
    some = lambda *shape: np.where(eighths(*shape) < 0, -2, 3).astype(dtype.as_numpy_dtype)
    program("dense_to_entries_" + dtype.name, with_dense, {**fed(dtype), "d": some(3, 4)}, {**fed(dtype), "d": some(3, 1)},
            {**fed(dtype), "d": some(4)}, {**fed(dtype), "d": some()}, {**fed(dtype, at=()), "d": some(1, 4)},
            ({**fed(dtype), "d": some(3, 3)}, "incompatible shape"))
program("division_of_whole_entries", lambda: [raw.SparseDenseCwiseDiv(
    sp_indices=AT, sp_values=holder(tf.int64, [4], "v"), sp_shape=SHAPE, dense=i64(-2))],
        {"v": i64([7, -8, 9, 0])})
for how in ("Mul", "Div"):
    op = getattr(raw, "SparseDenseCwise" + how)
    for shape in ((3, 4), (3, 1), (4,)):
        dense = np.where(eighths(*shape) < 0, np.float32(-2), np.float32(3))
        name = "grad_entries_%s_%s" % (how.lower(), "_".join(map(str, shape)))
        differentiate(name, of(lambda x: op(sp_indices=AT, sp_values=x, sp_shape=SHAPE, dense=dense), 1), {"x": eighths(4)})
        differentiate(name + "_dense", of(lambda x: op(sp_indices=AT, sp_values=f32([1, -2, 3, 0.5]), sp_shape=SHAPE, dense=x),
                                          len(shape)), {"x": dense})

for dtype in (tf.float32, tf.float64):
    program("sparse_softmax_" + dtype.name, lambda: [raw.SparseSoftmax(sp_indices=i, sp_values=v, sp_shape=s)
                                                     for i, v, s in [sparse(dtype)]], fed(dtype), fed(dtype, at=()),
            fed(dtype, at=AT[:1]))
CUBE = i64([[0, 0, 1], [0, 0, 2], [0, 1, 0], [1, 0, 0], [1, 0, 2], [1, 0, 3]])
program("sparse_softmax_cube", lambda: [raw.SparseSoftmax(sp_indices=i, sp_values=v, sp_shape=s)
                                        for i, v, s in [sparse(tf.float32, shape=(None, 3))]],
        fed(tf.float32, at=CUBE, shape=(2, 2, 4)))
differentiate("grad_sparse_softmax", of(lambda x: raw.SparseSoftmax(sp_indices=CUBE, sp_values=x, sp_shape=[2, 2, 4]), 1),
              {"x": eighths(6)})

for dtype in (tf.float32, tf.float64, tf.float16, tf.int16):
    for index in (tf.int32, tf.int64):
        def plus_dense():
            i, v, s = sparse(dtype)
            return [raw.SparseTensorDenseAdd(a_indices=tf.cast(i, index), a_values=v, a_shape=tf.cast(s, index),
                                             b=holder(dtype, [None, None], "d"))]
        program("sparse_plus_dense_%s_%s" % (dtype.name, index.name), plus_dense,
                {**fed(dtype), "d": eighths(3, 4).astype(dtype.as_numpy_dtype)},
                {**fed(dtype, at=[[0, 1], [0, 1], [2, 2]]), "d": eighths(3, 4).astype(dtype.as_numpy_dtype)},
                {**fed(dtype, at=()), "d": eighths(3, 4).astype(dtype.as_numpy_dtype)},
                ({**fed(dtype), "d": eighths(4, 4).astype(dtype.as_numpy_dtype)}, "which has the shape [4,4]"))
differentiate("grad_sparse_plus_dense", of(lambda x: raw.SparseTensorDenseAdd(
    a_indices=AT, a_values=x, a_shape=SHAPE, b=f32(np.arange(12).reshape(3, 4))), 1), {"x": eighths(4)})
differentiate("grad_dense_plus_sparse", of(lambda x: raw.SparseTensorDenseAdd(
    a_indices=AT, a_values=f32([1, 2, 3, 4]), a_shape=SHAPE, b=x)), {"x": eighths(3, 4)})

for dtype in (tf.float32, tf.float64, tf.int32, tf.int8):
    for what in ("Sum", "Max"):
        for axes in ([0], [1], [-1], [0, 1], []):
            program("sparse_%s_to_sparse_%s_%s" % (what.lower(), dtype.name, "_".join(map(str, axes)) or "none"), lambda: [
                out for i, v, s in [sparse(dtype)] for keep in (False, True)
                for out in getattr(raw, "SparseReduce%sSparse" % what)(input_indices=i, input_values=v, input_shape=s,
                                                                      reduction_axes=i32(axes), keep_dims=keep)],
                    fed(dtype), fed(dtype, at=AT[1:]))
    for what in ("Maximum", "Minimum"):
        program("sparse_%s_%s" % (what.lower(), dtype.name), lambda: list(getattr(raw, "SparseSparse" + what)(
            **{"%s_%s" % (n, k): x for n in "ab" for k, x in zip(("indices", "values", "shape"), sparse(dtype, n))})),
                {**fed(dtype, "a"), **fed(dtype, "b", at=[[0, 0], [0, 3], [1, 1], [2, 3]], scale=-1)},
                {**fed(dtype, "a", at=()), **fed(dtype, "b")},
                ({**fed(dtype, "a"), **fed(dtype, "b", shape=(3, 5))}, "shapes do not match"))
for n, axis in ((2, 0), (3, 1), (1, -1)):
    program("sparse_split_%d_%d" % (n, axis), lambda: [
        part for i, v, s in [sparse(tf.float32)] for parts in raw.SparseSplit(
            split_dim=i64(axis), indices=i, values=v, shape=s, num_split=n) for part in parts],
            fed(tf.float32), fed(tf.float32, at=AT[:1]), fed(tf.float32, at=()))
program("sparse_split_of_text", lambda: [part for parts in raw.SparseSplit(
    split_dim=i64(1), indices=AT, values=holder(tf.string, [4], "v"), shape=SHAPE, num_split=2) for part in parts],
        {"v": np.array([b"a", b"bb", b"", b"d"], object)})
program("sparse_split_too_often", lambda: list(raw.SparseSplit(
    split_dim=holder(tf.int64, [], "d"), indices=AT, values=f32([1, 2, 3, 4]), shape=SHAPE, num_split=5)[1]),
        ({"d": i64(0)}, "5 parts"))

for a in (tf.float32, tf.bfloat16):
    for b in (tf.float32, tf.bfloat16):
        program("product_of_sparse_%s_%s" % (a.name, b.name), lambda: [raw.MatMul(a=[[1.0]], b=[[2.0]])] + [raw.SparseMatMul(
            a=tf.cast(holder(tf.float32, [None, 3], "a"), a), b=tf.cast(holder(tf.float32, [None, 3], "b"), b),
            transpose_b=True, a_is_sparse=True)], {"a": eighths(2, 3), "b": eighths(4, 3)})
differentiate("grad_product_of_sparse", of(lambda x: raw.SparseMatMul(a=x, b=f32(np.arange(6).reshape(2, 3)), transpose_a=True,
                                                                      a_is_sparse=True)), {"x": eighths(2, 4)})
