#!/usr/bin/env python3
"""Writes ops_extra.txt: ops that programs of TensorFlow 2 have now and then, each by itself."""
import gzip
import zlib

import numpy as np

from op_cases import Cases, eighths, f32, i32, i64, tf

random = np.random.default_rng(29)
cases = Cases("ops_extra.txt", __file__)
case, fails = cases.case, cases.fails


def texts(*words):
    return np.array(words, object)


# ---- an LSTM over all steps, the second version

x, before, h = eighths(random, 3, 2, 2), eighths(random, 2, 2), eighths(random, 2, 2)
w, b, peepholes = eighths(random, 4, 8), eighths(random, 8), eighths(random, 3, 2)
for peephole, clip in ((False, 0.0), (True, 0.5)):
    inputs = dict(seq_len_max=i64(3), x=x, cs_prev=before, h_prev=h, w=w, wci=peepholes[0],
                  wcf=peepholes[1], wco=peepholes[2], b=b)
    made = case("BlockLSTMV2", cell_clip=clip, use_peephole=peephole, **inputs)
    saved = dict(zip(("i", "cs", "f", "o", "ci", "co", "h"), made))
    case("BlockLSTMGradV2", **inputs, **saved, cs_grad=eighths(random, 3, 2, 2), h_grad=eighths(random, 3, 2, 2),
         use_peephole=peephole, tolerance=1e-4)

# ---- triangles of few bands

bands = (eighths(random, 2, 2, 4, low=1) + np.float32(1)).astype(np.float32)
for t in (np.float32, np.float64, np.complex64):
    for lower in (True, False):
        for adjoint in (True, False):
            given = bands.astype(t) * (1 + 0.5j if t == np.complex64 else 1)
            case("BandedTriangularSolve", matrix=given.astype(t), rhs=eighths(random, 2, 4, 3).astype(t), lower=lower,
                 adjoint=adjoint, tolerance=1e-4)
case("BandedTriangularSolve", matrix=bands[0, :1], rhs=eighths(random, 4, 1), tolerance=1e-4)
case("BandedTriangularSolve", matrix=bands[:1, :, :1].repeat(3, 1)[0], rhs=eighths(random, 1, 2), tolerance=1e-4)
fails("not invertible", "BandedTriangularSolve", f32([[1, 0]]), f32([[1], [2]]))
fails("2 equations, but 3 right sides", "BandedTriangularSolve", f32([[1, 1]]), f32([[1], [2], [3]]))
fails("without bands", "BandedTriangularSolve", np.zeros((0, 2), np.float32), f32([[1], [2]]))

# ---- rows that nowhere grow

case("IsotonicRegression", input=f32([[3, 1, 2, -20, -15], [1, 2, 3, 4, 5], [2, 2, 1, 1, 0]]))
case("IsotonicRegression", input=eighths(random, 2, 3, 6), tolerance=1e-6)
case("IsotonicRegression", input=i32([[3, 1, 2, 7, 0]]), output_dtype=tf.float64)
case("IsotonicRegression", input=eighths(random, 4, 1))
case("IsotonicRegression", input=np.zeros((2, 0), np.float32))

# ---- indices as they come to lie when all are shuffled

for index, seed, most in (([0, 1, 2, 3, 4, 5], [1, 2, 3], 5), ([5, 100, 65536, 3], [1, -2, 3], [70000, 1 << 40, 65536, 1 << 62]),
                          ([1, 2], [[-1, 2, 3], [4, 5, 6]], 5), (0, [1, 2, 3], 0), (7, [4, 5, 6], 300)):
    case("RandomIndexShuffle", index=i64(index), seed=i64(seed), max_index=i64(most))
case("RandomIndexShuffle", index=i32([0, 1, 2]), seed=i32([7, 8, 9]), max_index=i32(9), rounds=8)
case("RandomIndexShuffle", index=np.array(2, np.uint64), seed=np.array([1, 2, 3], np.uint32),
     max_index=np.array((1 << 64) - 2, np.uint64))
case("RandomIndexShuffle", index=np.array([0, 9], np.uint32), seed=np.array([1, 2, 3], np.uint64), max_index=np.array([4000000000, 9], np.uint32))
fails("max_index must be >= index, but 5 < 7", "RandomIndexShuffle", i64(7), i64([1, 2, 3]), i64(5))
fails("index must be >= 0 but was -1", "RandomIndexShuffle", i64(-1), i64([1, 2, 3]), i64(5))
fails("expected an even number from 4 on", "RandomIndexShuffle", i64(1), i64([1, 2, 3]), i64(5), rounds=3)
fails("seed must have shape [3]", "RandomIndexShuffle", i64(1), i64([1, 2]), i64(5))
fails("not of the same number", "RandomIndexShuffle", i64([1, 2]), i64([1, 2, 3]), i64([5]))

# ---- letters beyond ASCII

words = [w.encode() for w in ("Grüße ΑΣ, ΣΑΣ.Σ!", "ÄÖÜ İI ıi", "ﬁn ǆ ŉ ΐ", "Привет, ДОМ", "Ⅷ ⓐ ꙁ \U00010428 \U0001e900 ꭰ Ꭰ", "ΟΔΟΣ' ς", "")]
words += [b"A\xffb", b"\xe6\x97x", b"\xed\xa0\x80Z"]
# every letter of some ranges, so that those of the table begin and end where they should
for begin in (0x80, 0x370, 0x1f00, 0xa640, 0x10400):
    words += ["".join(map(chr, range(i, i + 32))).encode() for i in range(begin, begin + 256, 32)]
for op in ("StringLower", "StringUpper"):
    case(op, input=texts(*words), encoding="utf-8")
    fails('encoding is "utf-16", expected', op, texts(b"a"), encoding="utf-16")

# ---- packed bytes

words = (b"", b"a", b"many " * 20)
case("DecodeCompressed", bytes=texts(*map(zlib.compress, words), b""), compression_type="ZLIB")
case("DecodeCompressed", bytes=texts(gzip.compress(b"abc", mtime=0), gzip.compress(b"de", mtime=0) * 2),
     compression_type="GZIP")
case("DecodeCompressed", bytes=texts(*words))
fails("not packed by ZLIB", "DecodeCompressed", texts(b"abc"), compression_type="ZLIB")
fails("ends in the middle", "DecodeCompressed", texts(gzip.compress(b"abc", mtime=0)[:-3]), compression_type="GZIP")
fails('compression_type is "ZSTD", expected', "DecodeCompressed", texts(b"abc"), compression_type="ZSTD")
