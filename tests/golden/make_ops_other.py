#!/usr/bin/env python3
"""Writes ops_other.txt: ops that programs among the golden ones have, once more by themselves, so that test_wrong_nodes
makes one thing wrong in each."""
import numpy as np

from op_cases import Cases, eighths, f32, i32, i64, tf

random = np.random.default_rng(23)
cases = Cases("ops_other.txt", __file__)
case = cases.case
x, positive = eighths(random, 2, 5), np.abs(eighths(random, 2, 5)) + np.float32(0.5)
image = np.abs(eighths(random, 2, 4, 5, 3))
words = np.array([b"ab", b"", b"c d e"], object)

# ---- element by element

for op in ["BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselJ0", "BesselJ1", "BesselK0", "BesselK0e",
           "BesselK1",
           "BesselK1e", "BesselY0", "BesselY1", "Dawsn", "Digamma", "Erfc", "Expint", "FresnelCos", "FresnelSin",
           "Lgamma",
           "Rint", "Spence"]:
    case(op, x=positive, tolerance=1e-4)
case("Erfinv", x=x / 4, tolerance=1e-4)
case("Ndtri", x=np.abs(x) / 4 + np.float32(0.125), tolerance=1e-4)
case("Atan2", y=x, x=positive)
case("NextAfter", x1=x, x2=positive)
case("TruncateMod", x=i32([7, -7, 5]), y=i32([3, 3, -2]))
for op in ["BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"]:
    case(op, x=i32([7, 1, 5]), y=i32([3, 2, 1]))
case("Invert", x=i32([7, -1]))
case("PopulationCount", x=i32([7, 5]))
for op in ["Igamma", "Igammac"]:
    case(op, a=positive, x=positive[::-1].copy(), tolerance=1e-4)
case("Zeta", x=positive + 1, q=positive, tolerance=1e-4)
case("Polygamma", a=f32([1, 2]), x=f32([1.5, 2.5]), tolerance=1e-4)
case("Betainc", a=positive, b=positive, x=np.full((2, 5), 0.5, np.float32), tolerance=1e-4)
case("CumulativeLogsumexp", x=x, axis=i32(1), exclusive=True, tolerance=1e-4)
case("EuclideanNorm", input=x, axis=i32([1]), keep_dims=True, tolerance=1e-5)

# ---- places

case("Roll", input=x, shift=i32([1, -2]), axis=i32([0, 1]))
case("BroadcastArgs", s0=i32([2, 1]), s1=i32([3]))
case("UnravelIndex", indices=i32([5, 3]), dims=i32([2, 3]))
case("LowerBound", sorted_inputs=np.sort(x, 1), values=x)
case("UpperBound", sorted_inputs=np.sort(x, 1), values=x)
case("NthElement", input=x, n=i32(2), reverse=True)
case("HistogramFixedWidth", values=x, value_range=f32([-1, 1]), nbins=i32(4))
for op in ["TensorScatterMax", "TensorScatterMin"]:
    case(op, tensor=x, indices=i32([[1], [0]]), updates=x)
case("ScatterNdNonAliasingAdd", input=x, indices=i32([[1], [0]]), updates=x)
case("TensorStridedSliceUpdate", input=x, begin=i32([0, 1]), end=i32([2, 5]), strides=i32([1, 2]), value=x[:, :2])
case("InplaceUpdate", x=x, i=i32([1, 0]), v=x)
case("ParallelDynamicStitch", indices=[i32([0, 2]), i32([1])], data=[x, x[:1]])
case("DataFormatDimMap", x=i32([0, 1, -1]))
case("DataFormatVecPermute", x=i32([1, 2, 3, 4]))
case("MatrixSetDiag", input=eighths(random, 3, 4), diagonal=f32([1, 2, 3]))
case("MatrixSetDiagV2", input=eighths(random, 3, 4), diagonal=f32([1, 2, 3]), k=i32(1))
case("SpaceToBatch", input=eighths(random, 1, 4, 4, 1), paddings=i32([[0, 0], [0, 0]]), block_size=2)
case("BatchToSpace", input=eighths(random, 4, 2, 2, 1), crops=i32([[0, 0], [0, 0]]), block_size=2)
case("ExtractVolumePatches", input=eighths(random, 1, 3, 3, 3, 1), ksizes=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1],
     padding="VALID")

# ---- matrices

square = (eighths(random, 2, 3, 3) + 4 * np.eye(3, dtype=np.float32)).astype(np.float32)
symmetric = np.matmul(square, np.swapaxes(square, 1, 2)).astype(np.float32)
for op in ["MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant", "Lu", "MatrixSquareRoot"]:
    case(op, input=symmetric, tolerance=1e-3)
case("Cholesky", input=symmetric, tolerance=1e-3)
case("CholeskyGrad", l=np.linalg.cholesky(symmetric).astype(np.float32), grad=square, tolerance=1e-3)
case("MatrixSolve", matrix=square, rhs=eighths(random, 2, 3, 2), tolerance=1e-3)
case("MatrixSolveLs", matrix=square, rhs=eighths(random, 2, 3, 2), l2_regularizer=np.array(0.5), tolerance=1e-3)
case("MatrixTriangularSolve", matrix=square, rhs=eighths(random, 2, 3, 2), tolerance=1e-3)
case("MatrixLogarithm", input=symmetric.astype(np.complex64), tolerance=1e-3)
case("TridiagonalSolve", diagonals=np.array([[1, 2, 0], [4, 5, 6], [0, 1, 2]], np.float32), rhs=eighths(random, 3, 2),
     tolerance=1e-4)
case("TridiagonalMatMul", superdiag=f32([[1, 2, 0]]), maindiag=f32([[4, 5, 6]]), subdiag=f32([[0, 1, 2]]),
     rhs=eighths(random, 3, 2))
case("SparseMatMul", a=eighths(random, 2, 3), b=eighths(random, 3, 2))

# ---- images

for op in ["ResizeArea", "ResizeBicubic", "ResizeBilinear"]:
    case(op, images=image, size=i32([3, 7]), tolerance=1e-4)
case("ResizeBilinearGrad", grads=image, original_image=image[:, :3, :2], tolerance=1e-4)
case("ResizeBicubicGrad", grads=image, original_image=image[:, :3, :2], tolerance=1e-4)
case("ResizeNearestNeighborGrad", grads=image, size=i32([3, 2]))
boxes = f32([[0, 0, 0.5, 0.75], [0.25, 0.125, 1, 1.25]])
case("CropAndResize", image=image, boxes=boxes, box_ind=i32([1, 0]), crop_size=i32([3, 2]), tolerance=1e-4)
case("CropAndResizeGradImage", grads=image[:, :3, :2], boxes=boxes, box_ind=i32([1, 0]), image_size=i32([2, 4, 5, 3]),
     T=tf.float32, tolerance=1e-4)
case("CropAndResizeGradBoxes", grads=image[:, :3, :2], image=image, boxes=boxes, box_ind=i32([1, 0]), tolerance=1e-3)
case("DrawBoundingBoxes", images=image, boxes=boxes[:, None])
case("DrawBoundingBoxesV2", images=image, boxes=boxes[:, None], colors=f32([[1, 0, 0]]))
case("ImageProjectiveTransformV2", images=image, transforms=f32([[1, 0.25, 0, 0, 1, 0.5, 0, 0]]),
     output_shape=i32([3, 4]), interpolation="BILINEAR", tolerance=1e-4)
case("ImageProjectiveTransformV3", images=image, transforms=f32([[1, 0.25, 0, 0, 1, 0.5, 0, 0]]),
     output_shape=i32([3, 4]), fill_value=f32(2), interpolation="NEAREST")
case("ScaleAndTranslate", images=image, size=i32([3, 4]), scale=f32([0.75, 1.25]), translation=f32([0.25, -0.5]),
     tolerance=1e-4)
case("ScaleAndTranslateGrad", grads=image, original_image=image[:, :3, :2], scale=f32([0.75, 1.25]),
     translation=f32([0.25, -0.5]), tolerance=1e-4)
case("MaxPoolV2", input=image, ksize=i32([1, 2, 2, 1]), strides=i32([1, 1, 1, 1]), padding="SAME")

# ---- quantized

case("FakeQuantWithMinMaxArgs", inputs=x)
case("FakeQuantWithMinMaxArgsGradient", gradients=x, inputs=x)
case("FakeQuantWithMinMaxVars", inputs=x, min=f32(-1), max=f32(2))
case("FakeQuantWithMinMaxVarsGradient", gradients=x, inputs=x, min=f32(-1), max=f32(2))
case("FakeQuantWithMinMaxVarsPerChannel", inputs=x, min=f32([-1] * 5), max=f32([2] * 5))
case("FakeQuantWithMinMaxVarsPerChannelGradient", gradients=x, inputs=x, min=f32([-1] * 5), max=f32([2] * 5))
case("QuantizeAndDequantizeV2", input=x, input_min=f32(-1), input_max=f32(1), range_given=True)
case("QuantizeAndDequantizeV3", input=x, input_min=f32(-1), input_max=f32(1), num_bits=i32(6), range_given=True)
case("QuantizeAndDequantizeV4", input=x, input_min=f32(-1), input_max=f32(1), range_given=True)

# ---- counts, texts and records

case("Bincount", arr=i32([1, 1, 2]), size=i32(4), weights=f32([1, 2, 3]))
case("DenseBincount", input=i32([1, 1, 2]), size=i32(4), weights=f32([1, 2, 3]))
case("SparseBincount", indices=i64([[0, 0], [1, 1]]), values=i32([1, 2]), dense_shape=i64([2, 2]), size=i32(4),
     weights=f32([1, 2]))
case("SetSize", set_indices=i64([[0, 0], [1, 1]]), set_values=i32([1, 2]), set_shape=i64([2, 2]))
case("EditDistance", hypothesis_indices=i64([[0, 0]]), hypothesis_values=i64([1]), hypothesis_shape=i64([1, 1]),
     truth_indices=i64([[0, 0], [0, 1]]), truth_values=i64([1, 2]), truth_shape=i64([1, 2]))
for op in ["StringLower", "StringUpper", "StringStrip", "StringLength"]:
    case(op, input=words)
case("StringToHashBucketFast", input=words, num_buckets=7)
case("StringToHashBucketStrong", input=words, num_buckets=7, key=[1, 2])
case("StringToHashBucket", string_tensor=words, num_buckets=7)
case("StringToNumber", string_tensor=np.array([b"1.5", b"-2"], object))
case("StringJoin", inputs=[words, words], separator="-")
case("Substr", input=np.array([b"abc", b"defg"], object), pos=i32([0, 1]), len=i32([2, 2]))
case("AsString", input=x[:1])
case("EncodeBase64", input=words)
case("DecodeBase64", input=np.array([b"YWI", b""], object))
case("ReduceJoin", inputs=words, reduction_indices=i32([0]))
case("RegexFullMatch", input=words, pattern=np.array(b"a.*", object))
case("RegexReplace", input=words, pattern=np.array(b"[ac]", object), rewrite=np.array(b"_", object))
case("DecodePaddedRaw", input_bytes=words, fixed_length=i32(4), out_type=tf.uint8)
case("UnsortedSegmentJoin", inputs=words, segment_ids=i32([1, 0, 1]), num_segments=i32(2))
case("ShardedFilename", basename=np.array(b"a", object), shard=i32(1), num_shards=i32(3))
case("StatelessRandomUniform", shape=i32([2, 2]), seed=i32([1, 2]))
case("StatelessRandomNormal", shape=i32([2, 2]), seed=i32([1, 2]), tolerance=1e-4)
case("StatelessTruncatedNormal", shape=i32([2, 2]), seed=i32([1, 2]), tolerance=1e-4)
case("StatelessMultinomial", logits=x, num_samples=i32(3), seed=i32([1, 2]))
case("StatelessRandomBinomial", shape=i32([2]), seed=i32([1, 2]), counts=f32(5), probs=f32(0.5))
case("StatelessRandomPoisson", shape=i32([2]), seed=i32([1, 2]), lam=f32(3), dtype=tf.float32)
case("StatelessShuffle", value=x, key=np.array([3], np.uint64), counter=np.array([4, 5], np.uint64), alg=i32(1))
case("RandomGammaGrad", alpha=positive, sample=positive, tolerance=1e-3)
