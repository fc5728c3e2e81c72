#!/usr/bin/env python3
"""Writes ops_rare.txt: ops that few programs have, by themselves, each in one type. tests/test_every_type.c runs them in all
others."""
import numpy as np

from op_cases import Cases, eighths, f32, i32, i64, tf

random = np.random.default_rng(17)
cases = Cases("ops_rare.txt", __file__)

# ---- segments

for rows, ids in [(6, [0, 0, 1, 3, 3, 3]), (5, [1, 1, 1, 1, 1]), (0, [])]:
    for shape in [(rows, 3), (rows,), (rows, 2, 2)]:
        data = eighths(random, *shape, low=-8, high=9)
        for op in ["SegmentSum", "SegmentMean", "SegmentProd", "SegmentMax", "SegmentMin"]:
            cases.case(op, data=data, segment_ids=i32(ids))
        for op in ["UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin"]:
            if rows:
                cases.case(op, data=data, segment_ids=i32(ids[::-1]), num_segments=i32(4))
cases.case("UnsortedSegmentMax", data=eighths(random, 4, 2), segment_ids=i32([2, -1, 2, 0]), num_segments=i32(3))
for n in [4, 9, 10]:
    data, rows, ids = eighths(random, 5, 3), i32([(3 * k) % 5 for k in range(n)]), i32(sorted(k * 4 // n for k in range(n)))
    for op in ["SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"]:
        cases.case(op, data=data, indices=rows, segment_ids=ids)
        cases.case(op + "WithNumSegments", data=data, indices=rows, segment_ids=ids, num_segments=i32(6))
        cases.case(op + "Grad", grad=eighths(random, 4, 3), indices=rows, segment_ids=ids, output_dim0=i32(5))

# ---- sparse tensors

A = dict(a_indices=i64([[0, 1], [0, 3], [2, 0], [2, 3]]), a_values=f32([1.5, -2, -4, 0.5]), a_shape=i64([3, 4]))
B = dict(b_indices=i64([[0, 0], [0, 3], [1, 1], [2, 0], [2, 2]]), b_values=f32([2, 2, 1, 4, -1]), b_shape=i64([3, 4]))
NONE = dict(b_indices=np.zeros((0, 2), np.int64), b_values=f32([]), b_shape=i64([3, 4]))
cases.fails("thresh has type int8, and the values have type float", "SparseAdd", *A.values(), *B.values(),
            np.int8(1).reshape(()))
for b in [B, NONE]:
    for thresh in [0, 1]:
        cases.case("SparseAdd", **A, **b, thresh=f32(thresh))
    for op in ["SparseSparseMaximum", "SparseSparseMinimum"]:
        cases.case(op, **A, **b)
NAN = dict(A, a_values=f32([np.nan, np.nan, -4, 0.5])), dict(B, b_values=f32([np.nan, 2, 1, np.nan, -1]))
for op in ["SparseSparseMaximum", "SparseSparseMinimum"]:
    cases.case(op, **NAN[0], **NAN[1])
cases.case("SparseAddGrad", backprop_val_grad=f32([1, 2, 3, 4, 5, 6]), a_indices=A["a_indices"], b_indices=B["b_indices"],
           sum_indices=i64([[0, 0], [0, 1], [0, 3], [1, 1], [2, 2], [2, 3]]))
S = dict(input_indices=A["a_indices"], input_values=A["a_values"], input_shape=A["a_shape"])
for axes in [[0], [1], [-1], [0, 1], []]:
    for keep in [False, True]:
        for op in ["SparseReduceSum", "SparseReduceMax", "SparseReduceSumSparse", "SparseReduceMaxSparse"]:
            cases.case(op, **S, reduction_axes=i32(axes), keep_dims=keep)
for dense in [eighths(random, 3, 4, low=1), eighths(random, 4, low=1), eighths(random, 3, 1, low=1), f32(2)]:
    for op in ["SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv"]:
        cases.case(op, sp_indices=A["a_indices"], sp_values=A["a_values"], sp_shape=A["a_shape"], dense=dense)
cases.case("SparseSoftmax", sp_indices=A["a_indices"], sp_values=A["a_values"], sp_shape=A["a_shape"])
for adjoint_a in [False, True]:
    for adjoint_b in [False, True]:
        b = eighths(random, *((5, 3) if adjoint_b else (3, 5)) if adjoint_a else ((5, 4) if adjoint_b else (4, 5)))
        cases.case("SparseTensorDenseMatMul", **A, b=b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)
cases.case("SparseTensorDenseAdd", **A, b=eighths(random, 3, 4))
cases.case("SparseToDense", sparse_indices=i32([[0, 1], [2, 3]]), output_shape=i32([3, 4]), sparse_values=f32([1, 2]),
           default_value=f32(-1), validate_indices=True)
cases.case("SparseToDense", sparse_indices=i32([1, 3]), output_shape=i32([5]), sparse_values=f32(2), default_value=f32(0),
           validate_indices=True)
cases.case("SparseFillEmptyRows", indices=A["a_indices"], values=A["a_values"], dense_shape=A["a_shape"],
           default_value=f32(7))
cases.case("SparseFillEmptyRowsGrad", reverse_index_map=i64([0, 2, 3]), grad_values=f32([1, 2, 3, 4]))
cases.case("SparseReorder", input_indices=A["a_indices"][::-1].copy(), input_values=A["a_values"], input_shape=A["a_shape"])
cases.case("SparseSlice", indices=A["a_indices"], values=A["a_values"], shape=A["a_shape"], start=i64([0, 1]),
           size=i64([3, 3]))
cases.case("SparseSliceGrad", backprop_val_grad=f32([1, 2, 3]), input_indices=A["a_indices"], input_start=i64([0, 1]),
           output_indices=i64([[0, 0], [0, 2], [2, 2]]))

# ---- pools

image = eighths(random, 2, 5, 6, 3)
for op in ["MaxPool", "AvgPool"]:
    for padding in ["SAME", "VALID"]:
        for ksize, strides in [([1, 2, 2, 1], [1, 2, 2, 1]), ([1, 3, 2, 1], [1, 1, 2, 1])]:
            options = dict(ksize=ksize, strides=strides, padding=padding)
            if op == "AvgPool":
                y = cases.case(op, value=image, **options)[0]
                cases.case("AvgPoolGrad", orig_input_shape=i32(image.shape), grad=eighths(random, *y.shape), **options)
                continue
            y = cases.case(op, input=image, **options)[0]
            grad = eighths(random, *y.shape)
            cases.case("MaxPoolGrad", orig_input=image, orig_output=y, grad=grad, **options)
            cases.case("MaxPoolGradGrad", orig_input=image, orig_output=y, grad=eighths(random, *image.shape), **options)
            for batch in [False, True]:
                argmax = cases.case("MaxPoolWithArgmax", input=image, Targmax=tf.int64, include_batch_in_index=batch,
                                    **options)[1]
                cases.case("MaxPoolGradWithArgmax", input=image, grad=grad, argmax=argmax, include_batch_in_index=batch,
                           **options)

# ---- volumes

cases.fails("the gradient has type float, and what was pooled type half", "MaxPool3DGrad",
            *[np.zeros((1, 2, 2, 2, 1), t) for t in (np.float16, np.float16, np.float32)], ksize=[1, 1, 1, 1, 1],
            strides=[1, 1, 1, 1, 1], padding="SAME")
volume, filters = eighths(random, 1, 4, 5, 3, 2), eighths(random, 2, 2, 2, 2, 3)
for padding in ["SAME", "VALID"]:
    for strides in [[1, 1, 1, 1, 1], [1, 2, 2, 1, 1]]:
        options = dict(strides=strides, padding=padding)
        y = cases.case("Conv3D", input=volume, filter=filters, **options)[0]
        grad = eighths(random, *y.shape)
        cases.case("Conv3DBackpropInputV2", input_sizes=i32(volume.shape), filter=filters, out_backprop=grad, **options)
        cases.case("Conv3DBackpropFilterV2", input=volume, filter_sizes=i32(filters.shape), out_backprop=grad, **options)
        options["ksize"] = [1, 2, 2, 2, 1]
        y = cases.case("MaxPool3D", input=volume, **options)[0]
        grad = eighths(random, *y.shape)
        cases.case("MaxPool3DGrad", orig_input=volume, orig_output=y, grad=grad, **options)
        cases.case("MaxPool3DGradGrad", orig_input=volume, orig_output=y, grad=eighths(random, *volume.shape), **options)
        cases.case("AvgPool3D", input=volume, **options)
        cases.case("AvgPool3DGrad", orig_input_shape=i32(volume.shape), grad=grad, **options)
    filters2 = eighths(random, 2, 3, 3)
    for rates in [[1, 1, 1, 1], [1, 2, 1, 1]]:
        options = dict(strides=[1, 2, 1, 1], rates=rates, padding=padding)
        y = cases.case("Dilation2D", input=image, filter=filters2, **options)[0]
        grad = eighths(random, *y.shape)
        cases.case("Dilation2DBackpropInput", input=image, filter=filters2, out_backprop=grad, **options)
        cases.case("Dilation2DBackpropFilter", input=image, filter=filters2, out_backprop=grad, **options)

# ---- places, patches, colours, orders

for op in ["TensorScatterAdd", "TensorScatterSub", "TensorScatterUpdate"]:
    cases.case(op, tensor=eighths(random, 5, 3), indices=i32([[0], [3], [4]]), updates=eighths(random, 3, 3))
    cases.case(op, tensor=eighths(random, 4, 3), indices=i32([[0, 1], [3, 2]]), updates=eighths(random, 2))
cases.case("TensorScatterAdd", tensor=eighths(random, 4), indices=i32([[1], [1], [1]]), updates=eighths(random, 3))
for padding in ["SAME", "VALID"]:
    for rates in [[1, 1, 1, 1], [1, 2, 1, 1]]:
        cases.case("ExtractImagePatches", images=image, ksizes=[1, 2, 3, 1], strides=[1, 2, 1, 1], rates=rates,
                   padding=padding)
cases.case("Cross", a=eighths(random, 4, 3), b=eighths(random, 4, 3))
colours = eighths(random, 2, 3, 3, low=0, high=9)
hsv = cases.case("RGBToHSV", images=colours)[0]
cases.case("HSVToRGB", images=eighths(random, 4, 3, low=0, high=9))
cases.case("AdjustHue", images=colours, delta=f32(0.25))
cases.case("AdjustSaturation", images=colours, scale=f32(0.5))
cases.case("AdjustContrastv2", images=colours, contrast_factor=f32(0.5))
for batch_dim, seq_dim in [(0, 1), (1, 0)]:
    cases.case("ReverseSequence", input=eighths(random, 3, 3, 2), seq_lengths=i64([1, 3, 2]), seq_dim=seq_dim,
               batch_dim=batch_dim)
cases.case("SpaceToDepth", input=eighths(random, 1, 4, 2, 3), block_size=2)
cases.case("DepthToSpace", input=eighths(random, 1, 2, 2, 8), block_size=2)
cases.case("SpaceToBatchND", input=eighths(random, 1, 4, 3, 1), block_shape=i32([2, 2]), paddings=i32([[0, 0], [1, 0]]))
cases.case("BatchToSpaceND", input=eighths(random, 4, 2, 2, 1), block_shape=i32([2, 2]), crops=i32([[0, 0], [1, 0]]))
cases.case("Einsum", inputs=[eighths(random, 3, 4), eighths(random, 4, 2)], equation="ij,jk->ik")
cases.case("Einsum", inputs=[eighths(random, 2, 3, 4), eighths(random, 2, 4)], equation="bij,bj->bi")

# ---- recurrent cells

small = dict(x=eighths(random, 2, 3, low=-4, high=5), cs_prev=eighths(random, 2, 2, low=-4, high=5),
             h_prev=eighths(random, 2, 2, low=-4, high=5), w=eighths(random, 5, 8, low=-4, high=5),
             wci=eighths(random, 2, low=-4, high=5), wcf=eighths(random, 2, low=-4, high=5),
             wco=eighths(random, 2, low=-4, high=5), b=eighths(random, 8, low=-4, high=5))
for peephole in [False, True]:
    options = dict(forget_bias=1.0, cell_clip=0.5, use_peephole=peephole)
    cases.case("LSTMBlockCell", **small, **options)
    several = dict(small, x=eighths(random, 3, 2, 3, low=-4, high=5))
    cases.case("BlockLSTM", seq_len_max=i64(3), **several, **options)

# ---- rows in place, and pools of drawn borders

for op in ["InplaceAdd", "InplaceSub"]:
    cases.case(op, x=eighths(random, 4, 3), i=i32([1, 3, 1]), v=eighths(random, 3, 3))
orig = eighths(random, 1, 4, 4, 2, low=-8, high=9)
borders = dict(row_pooling_sequence=i64([0, 2, 4]), col_pooling_sequence=i64([0, 1, 4]))
cases.case("FractionalAvgPoolGrad", orig_input_tensor_shape=i64([1, 4, 4, 2]), out_backprop=eighths(random, 1, 2, 2, 2),
           **borders)
pooled = np.stack([[orig[0, a:b, c:d].max((0, 1)) for c, d in [(0, 1), (1, 4)]] for a, b in [(0, 2), (2, 4)]])[None]
cases.case("FractionalMaxPoolGrad", orig_input=orig, orig_output=pooled, out_backprop=eighths(random, 1, 2, 2, 2), **borders)

# ---- the first and the nearest centers of clusters

points = eighths(random, 23, 3)
for seed, num, retries in [(7, 5, -1), (1, 1, 0), (0, 8, 0), (-3, 6, 4), (12, 23, 1)]:
    cases.case("KmeansPlusPlusInitialization", points=points, num_to_sample=i64(num), seed=i64(seed),
               num_retries_per_sample=i64(retries))
cases.case("KmeansPlusPlusInitialization", points=np.ones((3, 2), np.float32), num_to_sample=i64(3), seed=i64(5),
           num_retries_per_sample=i64(2))
for seed in [0, 5, 1 << 40]:
    cases.case("KMC2ChainInitialization", distances=np.abs(eighths(random, 9)), seed=i64(seed))
for k in [0, 1, 3, 9]:
    cases.case("NearestNeighbors", points=points, centers=np.concatenate([points[3:7], points[4:5]]), k=i64(k))
cases.case("NearestNeighbors", points=points, centers=np.zeros((0, 3), np.float32), k=i64(2))
cases.fails("Expected num_to_sample > 0", "KmeansPlusPlusInitialization", points, i64(0), i64(1), i64(1))
cases.fails("Expected num_to_sample <= ", "KmeansPlusPlusInitialization", points, i64(24), i64(1), i64(1))
cases.fails("Expected distances_tensor.size() > 0", "KMC2ChainInitialization", f32([]), i64(1))
cases.fails("Expected points.rows() > 0", "NearestNeighbors", np.zeros((0, 2), np.float32), points[:, :2], i64(1))

# ---- several diagonals

diagonals, matrix = eighths(random, 2, 3, 3), eighths(random, 2, 3, 4)
for align in ["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"]:
    cases.case("MatrixDiagV3", diagonal=diagonals, k=i32([-1, 1]), num_rows=i32(3), num_cols=i32(4), padding_value=f32(7),
               align=align)
    cases.case("MatrixDiagPartV3", input=matrix, k=i32([-1, 1]), padding_value=f32(7), align=align)
    cases.case("MatrixSetDiagV3", input=matrix, diagonal=diagonals, k=i32([-1, 1]), align=align)
cases.case("MatrixDiagV2", diagonal=diagonals[0], k=i32(1), num_rows=i32(-1), num_cols=i32(-1), padding_value=f32(0.5))
cases.case("MatrixDiagPartV2", input=matrix, k=i32(-1), padding_value=f32([[0.5]]))
for at, name in [(2, "num_rows"), (3, "num_cols"), (4, "padding_value")]:
    given = [diagonals, i32([-1, 1]), i32(3), i32(4), f32(7)]
    for wrong in [given[at].reshape(1), np.zeros(0, given[at].dtype)]:
        given[at] = wrong
        cases.fails(name + " must be a scalar", "MatrixDiagV3", *given)
for wrong in [f32([]), f32([1, 2])]:
    cases.fails("padding_value must be a scalar", "MatrixDiagPartV3", matrix, i32([-1, 1]), wrong)
