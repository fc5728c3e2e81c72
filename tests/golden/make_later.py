#!/usr/bin/env python3
"""Writes later.txt: ops that TensorFlow 2's programs have beside those of TensorFlow 1, in small programs exported and run
by TensorFlow, for tests/test_shapes.c."""

import pathlib

from graph_cases import begin, differentiate, eighths, holder, np, of, program, random, raw, tf, words
from op_cases import f32, i32, i64

begin("later.txt", __file__, 5)

# ---- characters of texts ----

TEXTS = np.array([s.encode() for s in ("Hello, World", "Grüße", "日本語 x", "", "a\tb\x01", "\U0001f600!")], object)
BROKEN = np.array([b"a\xffb", b"\xe6\x97", b"\xe6\x97x", b"\xc0\x80y", b"\xed\xa0\x80z", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80",
                   b"\x80\x80", b"\xf0\x9f\x98\x80\xe2", b"\xe2\x82\xe2\x82\xac", b"ok"], object)


def encoded(encoding):
    return np.array([s.encode(encoding) for s in ("Grüße", "日本 x", "", "\x02b", "\U0001f600!")], object)


PAIRS = np.array([b"\xd8\x3d\xde\x00\x00a", b"\xd8\x3d\x00a", b"\xde\x00\x00a", b"\x00a\x00", b"\xd8\x3d"], object)
FEWER = np.array([b"\x00\x00\x00a\x00", b"\x00\x11\x00\x00", b"\x00\x00\xd8\x00\x00\x00\x00b"], object)


def decoding(**attributes):
    def build():
        x = holder(tf.string, [None], "x")
        few = raw.UnicodeDecode(input=x, Tsplits=tf.int32, **attributes)
        return [*few, *raw.UnicodeDecodeWithOffsets(input=x, **attributes)]
    return build


for errors in ("strict", "replace", "ignore"):
    for controls in (False, True):
        build = decoding(input_encoding="UTF-8", errors=errors, replace_control_characters=controls, replacement_char=63)
        wrong = (({"x": BROKEN}, "Invalid formatting"),) if errors == "strict" else ({"x": BROKEN},)
        program("decode_%s_%d" % (errors, controls), build, {"x": TEXTS}, {"x": TEXTS[:0]}, *wrong)
for name, encoding, given in (("UTF-16-BE", "utf-16-be", [PAIRS]), ("UTF-16LE", "utf-16-le", []), ("UTF-32-BE", "utf-32-be", [FEWER]),
                              ("UTF-32-LE", "utf-32-le", []), ("ISO-8859-1", None, []), ("US-ASCII", None, [])):
    feeds = [{"x": encoded(encoding) if encoding else BROKEN}] + [{"x": g} for g in given]
    program("decode_" + encoding if encoding else "decode_" + name.replace("-", "_").lower(),
            decoding(input_encoding=name), *feeds)
program("decode_unknown", decoding(input_encoding="UTF-9"), ({"x": TEXTS}, "Could not create converter"))


WRITTEN = ("UTF-8", "UTF-16-BE", "UTF-32-BE")


def transcoded(**attributes):
    def build():
        x = holder(tf.string, None, "x")
        return [raw.UnicodeTranscode(input=x, output_encoding=to, **attributes) for to in WRITTEN]
    return build


for errors in ("strict", "replace", "ignore"):
    for controls in (False, True):
        build = transcoded(input_encoding="UTF-8", errors=errors, replace_control_characters=controls)
        wrong = (({"x": BROKEN}, "Invalid formatting"),) if errors == "strict" else ({"x": BROKEN.reshape(11, 1)},)
        good = ({"x": TEXTS}, "Invalid formatting") if errors == "strict" and controls else {"x": TEXTS}
        program("transcode_%s_%d" % (errors, controls), build, good, *wrong)
program("transcode_pairs", transcoded(input_encoding="UTF-16-BE"), {"x": PAIRS})

POINTS = i32([72, 228, 26085, 128512, 0, 0xd800, 0x110000, -1, 0xfffe, 0xfdd0, 65])


def encoding(errors):
    def build():
        given = {"input_values": holder(tf.int32, [None], "v"), "input_splits": holder(tf.int64, [None], "s")}
        return [raw.UnicodeEncode(errors=errors, output_encoding=to, **given) for to in WRITTEN]
    return build


for errors in ("strict", "replace", "ignore"):
    all = {"v": POINTS, "s": i64([0, 3, 3, 8, 11])}
    program("encode_" + errors, encoding(errors), {"v": POINTS[:5], "s": i64([0, 2, 2, 5])},
            (all, "Code point is out of range") if errors == "strict" else all,
            ({"v": POINTS[:5], "s": i64([1, 5])}, "First value in input_splits"),
            ({"v": POINTS[:5], "s": i64([0, 4])}, "Invalid split value"),
            ({"v": POINTS[:5], "s": i64([0, 3, 2, 5])}, "Invalid split value"))

# ---- words in a row ----


def ngrams(**attributes):
    return lambda: list(raw.StringNGrams(data=holder(tf.string, [None], "w"), data_splits=holder(tf.int64, [None], "s"),
                                         **attributes))


WORDS = words("a", "bb", "c", "", "dd", "e", "f")
for i, (widths, pads, keep) in enumerate([([2], -1, False), ([2], 0, False), ([1, 3], 0, True), ([3, 2], 1, False), ([5], 0, True),
                                          ([9], 1, True), ([4], 2, False), ([], 1, True), ([1], -1, True)]):
    program("ngrams_%d" % i, ngrams(ngram_widths=widths, pad_width=pads, preserve_short_sequences=keep, separator="|",
                                    left_pad="<", right_pad=">>"),
            {"w": WORDS, "s": i64([0, 3, 3, 4, 7])}, {"w": WORDS[:0], "s": i64([0])}, {"w": WORDS[:0], "s": i64([])},
            ({"w": WORDS, "s": i64([0, 3])}, "Last split value must be data size"),
            ({"w": WORDS, "s": i64([0, 3, 2, 7])}, "Invalid split value"))


def joined():
    x, ids, n = holder(tf.string, None, "x"), holder(tf.int32, None, "i"), holder(tf.int32, [], "n")
    return [raw.UnsortedSegmentJoin(inputs=x, segment_ids=ids, num_segments=n, separator=s) for s in ("", ", ")]


program("joined_segments", joined, {"x": WORDS, "i": i32([0, 2, 0, 0, 1, 3, 2]), "n": i32(5)},
        {"x": WORDS[:6].reshape(3, 2), "i": i32([1, 0, 1]), "n": i32(2)},
        {"x": WORDS[:4].reshape(2, 2), "i": i32([[1, 0], [0, 0]]), "n": i32(2)},
        {"x": WORDS[:0], "i": i32([]), "n": i32(2)}, ({"x": WORDS, "i": i32([0, 2, 0, 0, 1, 3, 4]), "n": i32(4)}, "out of range"),
        ({"x": WORDS, "i": i32([0, 2, 0, 0, -1, 3, 3]), "n": i32(4)}, "out of range"))

# ---- counts and crosses ----

for name, dtype, index, binary in (("float", tf.float32, tf.int32, False), ("double_binary", tf.float64, tf.int64, True),
                                   ("int64", tf.int64, tf.int64, False)):

    def counted():
        return [raw.RaggedBincount(splits=holder(tf.int64, [None], "s"), values=holder(index, [None], "x"),
                                   size=tf.constant(4, index), binary_output=binary, weights=holder(dtype, None, "w"))]

    def counts(splits, x, weights):
        return {"s": i64(splits), "x": np.array(x, index.as_numpy_dtype), "w": np.array(weights, dtype.as_numpy_dtype)}

    program("counts_of_rows_" + name, counted, counts([0, 3, 3, 5], [1, 2, 2, 9, 1], []),
            counts([0, 2, 5], [1, 2, 2, 9, 1], [5, 1, 2, 3, 4]), counts([0], [], []),
            (counts([0, 4], [1, 2, 2, 9, 1], []), "Splits must start with 0"),
            (counts([0, 2, 5], [1, -2, 2, 9, 1], []), "must be non-negative"))


def crossed(hashed):
    def build():
        a, b = (holder(tf.int64 if hashed else tf.string, [None, None], name) for name in "ab")
        return list(raw.SparseCross(indices=[], values=[], shapes=[], dense_inputs=[a, b], hashed_output=hashed, num_buckets=50,
                                    hash_key=7, out_type=tf.int64 if hashed else tf.string,
                                    internal_type=tf.int64 if hashed else tf.string))
    return build


ONE, TWO, NONE = i64([[1, 2], [3, 4]]), i64([[5], [6]]), i64([[]])
for hashed, of_type in ((False, lambda x: words(*map(str, x.ravel())).reshape(x.shape)), (True, lambda x: x)):
    program("crossed_dense_%d" % hashed, crossed(hashed), {"a": of_type(ONE), "b": of_type(TWO)},
            {"a": of_type(ONE[:1]), "b": of_type(NONE)}, ({"a": of_type(ONE), "b": of_type(NONE)}, "batch size"))

# ---- images ----

TURNS = [[1, 0.25, 0.5, -0.25, 1, -1.5, 0, 0], [0.75, 0, 1, 0.125, 1.25, 0, 0.125, -0.0625]]
for dtype in (tf.float32, tf.float16, tf.uint8, tf.int64):
    program("filled_" + dtype.name, lambda: [
        raw.ImageProjectiveTransformV3(images=x, transforms=t, output_shape=holder(tf.int32, [2], "s%d" % k), fill_value=fill,
                                       interpolation=how, fill_mode=mode)
        for x in [holder(dtype, [2, 5, 6, 2], "x")]
        for k, (t, fill, how, mode) in enumerate([
            (TURNS, 3.5, "BILINEAR", "CONSTANT"), (TURNS[1:], 2.0, "NEAREST", "CONSTANT"), (TURNS, 1.0, "BILINEAR", "REFLECT"),
            (TURNS, 1.0, "BILINEAR", "WRAP"), (TURNS[:1], 1.0, "NEAREST", "NEAREST")])],
        {"x": (np.abs(eighths(2, 5, 6, 2)) * 16).astype(dtype.as_numpy_dtype),
         **{"s%d" % k: i32([5, 6] if k % 2 else [3, 8]) for k in range(5)}})
differentiate("grad_filled", of(lambda x: raw.ImageProjectiveTransformV3(
    images=x, transforms=TURNS, output_shape=[5, 6], fill_value=2.5, interpolation="BILINEAR"), 4), {"x": eighths(2, 5, 6, 1)})

KERNELS = ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")
PLACES = [([4, 11], [0.5, 1.5], [0, 0]), ([3, 5], [0.4, 0.7], [0.25, -1.5]), ([9, 2], [1.25, 0.2], [2, 0.5])]


def scaled(dtype, kernel):
    x = holder(dtype, [None, None, None, 2], "x")
    size, scale, shift = holder(tf.int32, [2], "n"), holder(tf.float32, [2], "s"), holder(tf.float32, [2], "t")
    return [raw.ScaleAndTranslate(images=x, size=size, scale=scale, translation=shift, kernel_type=kernel, antialias=antialias)
            for antialias in (True, False)]


for i, kernel in enumerate(KERNELS):
    dtype = (tf.float32, tf.uint8, tf.int64, tf.float64)[i % 4]
    x = (np.abs(eighths(2, 8, 7, 2)) * 16).astype(dtype.as_numpy_dtype)
    wrong = ({"x": x, "n": i32([4, 11]), "s": f32([0, 1]), "t": f32([0, 0])},
             "scale" if kernel == "lanczos3" else "positive scale")
    program("scaled_" + kernel, lambda: scaled(dtype, kernel),
            *[{"x": x, "n": i32(n), "s": f32(s), "t": f32(t)} for n, s, t in PLACES], wrong)
    for antialias in (True, False):
        n, s, t = PLACES[i % 3]
        differentiate("grad_scaled_%s_%d" % (kernel, antialias), of(lambda x: raw.ScaleAndTranslate(
            images=x, size=n, scale=f32(s), translation=f32(t), kernel_type=kernel, antialias=antialias), 4),
            {"x": eighths(2, 8, 7, 2)})


def encoded_jpeg():
    x, q = holder(tf.uint8, [None, None, None], "x"), holder(tf.int32, [], "q")
    return [raw.DecodeJpeg(contents=raw.EncodeJpegVariableQuality(images=x, quality=q))]


for channels in (1, 3):
    x = random.integers(0, 256, (9, 11, channels)).astype(np.uint8)
    program("jpeg_of_quality_%d" % channels, encoded_jpeg, {"x": x, "q": i32(95)}, {"x": x, "q": i32(20)}, {"x": x, "q": i32(100)},
            ({"x": x, "q": i32(101)}, "quality must be in [0,100]"), ({"x": x, "q": i32(-1)}, "quality must be in [0,100]"))


def sampled():
    size, boxes, seed = holder(tf.int32, [3], "n"), holder(tf.float32, [None, None, 4], "b"), holder(tf.int64, [2], "s")
    return [part for covered, area in ((0.1, [0.05, 1.0]), (0.8, [0.3, 0.6])) for part in raw.StatelessSampleDistortedBoundingBox(
        image_size=size, bounding_boxes=boxes, min_object_covered=covered, seed=seed, area_range=area, max_attempts=20,
        use_image_if_no_bounding_boxes=True)]


BOXES = f32([[[0.1, 0.2, 0.6, 0.9], [0.3, 0, 0.5, 0.5]]])
program("sampled_by_seeds", sampled, *[{"n": i32([90, 120, 3]), "b": BOXES, "s": i64([k, 5 - k])} for k in range(6)],
        {"n": i32([9, 7, 3]), "b": BOXES[:, :0], "s": i64([1, 2])})

# ---- data sets ----


def batched():
    data = tf.data.Dataset.range(7)
    made = []
    for dropped in (False, True):
        batches = data.batch(3, drop_remainder=dropped, num_parallel_calls=2)
        made.append(batches.reduce(tf.constant(0, tf.int64), lambda sum, rows: sum * 100 + tf.reduce_sum(rows)))
    return made


program("batches_beside", batched, {})

# ---- three diagonals ----


def tridiagonal(dtype):
    d, b = holder(dtype, [None, 3, None], "d"), holder(dtype, [None, None, None], "b")
    parts = [d[:, i:i + 1] for i in range(3)]
    return [raw.TridiagonalSolve(diagonals=d, rhs=b), raw.TridiagonalSolve(diagonals=d, rhs=b, partial_pivoting=False),
            raw.TridiagonalMatMul(superdiag=parts[0], maindiag=parts[1], subdiag=parts[2], rhs=b)]


def rather_large(count, n, dtype):
    d = eighths(count, 3, n, dtype=np.float64) + 0.25
    d[:, 1] += np.where(d[:, 1] > 0, 5, -5) * np.arange(0.2, 1.2, 1 / n)[:n]
    d = d + (1j * eighths(count, 3, n, dtype=np.float64) / 2 if np.issubdtype(dtype, np.complexfloating) else 0)
    return d.astype(dtype)


SINGULAR = {"d": np.stack([np.zeros((3, 4)), np.ones((3, 4))]), "b": np.ones((2, 4, 1))}
for dtype in (np.float32, np.float64, np.complex128):
    runs = [{"d": rather_large(count, n, dtype), "b": eighths(count, n, k).astype(dtype)}
            for count, n, k in ((2, 6, 3), (1, 2, 1), (3, 1, 2), (1, 9, 0), (0, 4, 2))]
    if dtype != np.complex128:  # of complex numbers TensorFlow gives zeros, for they have no limits in C++; here it is NaN
        runs.append({key: value.astype(dtype) for key, value in SINGULAR.items()})
    program("tridiagonal_" + np.dtype(dtype).name, lambda: tridiagonal(tf.as_dtype(dtype)), *runs)

# ---- crosses with words between ----


def crossed_by():
    a, b, i = holder(tf.string, [None, None], "a"), holder(tf.int64, [None, None], "b"), holder(tf.int64, [None, 2], "i")
    return list(raw.SparseCrossV2(indices=[i], values=[holder(tf.string, [None], "v")], shapes=[holder(tf.int64, [2], "n")],
                                  dense_inputs=[a, b], sep=holder(tf.string, [], "s")))


SPARSE = {"i": i64([[0, 0], [1, 0], [1, 2]]), "v": words("x", "", "z"), "n": i64([2, 3])}
program("crossed_by", crossed_by, {**SPARSE, "a": words("p", "q", "r", "s").reshape(2, 2), "b": TWO, "s": b" and "},
        {**SPARSE, "a": words("p", "q").reshape(2, 1), "b": ONE, "s": b""},
        ({**SPARSE, "a": words("p", "q", "r").reshape(3, 1), "b": TWO, "s": b"_"}, "batch size"))

# ---- boxes of which is known how they overlap ----


def suppressed():
    return [raw.NonMaxSuppressionWithOverlaps(
        overlaps=holder(tf.float32, [None, None], "x"), scores=holder(tf.float32, [None], "s"),
        max_output_size=holder(tf.int32, [], "n"), overlap_threshold=holder(tf.float32, [], "t"),
        score_threshold=holder(tf.float32, [], "l"))]


OVERLAPS = np.abs(eighths(6, 6)) / 2
RATED = {"x": OVERLAPS, "s": f32([0.3, 0.9, 0.5, 0.9, -1, 0.7])}
program("suppressed_by_overlaps", suppressed, *[{**RATED, "n": i32(n), "t": f32(t), "l": f32(l)} for n, t, l in (
    (6, 0.5, -2), (6, 0.25, 0.4), (2, 0.75, 0), (6, 2, -5), (6, -1, -5), (0, 0.5, 0))],
        {"x": OVERLAPS[:0, :0], "s": f32([]), "n": i32(3), "t": f32(0.5), "l": f32(0)},
        ({**RATED, "x": OVERLAPS[:, :5], "n": i32(3), "t": f32(0.5), "l": f32(0)}, "overlaps must be square"),
        ({**RATED, "s": f32([1]), "n": i32(3), "t": f32(0.5), "l": f32(0)}, "scores"))

# ---- data sets of other batches, and of what is new ----


def rebatched():
    made = []
    for sizes, dropped in ((3, False), (4, True), ([2, 1, 5], False), ([5, 3], True), (20, False), (20, True)):
        for data in (tf.data.Dataset.range(10).batch(4), tf.data.Dataset.range(10).batch(1), tf.data.Dataset.range(0).batch(2)):
            batches = data.rebatch(sizes, drop_remainder=dropped)
            made.append(batches.reduce(tf.constant(0, tf.int64), lambda sum, rows: sum * 100 + tf.reduce_sum(rows)))
    pairs = tf.data.Dataset.from_tensor_slices((tf.reshape(tf.range(12), [6, 2]), tf.as_string(tf.range(6)))).batch(4)
    made += list(tf.data.experimental.get_single_element(pairs.rebatch(5).take(1)))
    return made


program("rebatched", rebatched, {})


def unique():
    n, x, t = holder(tf.int64, [None], "n"), holder(tf.int32, [None, 2], "x"), holder(tf.string, [None], "t")
    slices = tf.data.Dataset.from_tensor_slices
    return [tf.data.experimental.get_single_element(of.unique().batch(100)) for of in (slices(n), slices(x), slices(t))]


program("unique_elements", unique,
        {"n": i64([3, 1, 3, 2, 1, 5]), "x": i32([[1, 2], [2, 1], [1, 2], [0, 0]]), "t": words("a", "b", "", "a", "")},
        {"n": np.arange(150, dtype=np.int64) * 7 % 61, "x": i32([[7, 7]] * 40), "t": words(*"abcdefghijklmnopqrstuvwxyz" * 2)})

# ---- arrays without elements ----


def gathered_none():
    array = tf.TensorArray(tf.float32, holder(tf.int32, [], "n"), element_shape=[2], infer_shape=False)
    return [array.stack(), array.gather(holder(tf.int32, [None], "i"))]


program("gathered_none", gathered_none, {"n": i32(0), "i": i32([])}, {"n": i32(3), "i": i32([])})

# ---- bytes ----


def fingerprints(dtype):
    return lambda: [raw.Fingerprint(data=holder(dtype, None, "x"), method=holder(tf.string, [], "m"))]


ONCE = {"m": b"farmhash64"}
program("fingerprints_of_texts", fingerprints(tf.string), {"x": WORDS, **ONCE}, {"x": WORDS[:6].reshape(2, 3), **ONCE},
        {"x": WORDS[:0], **ONCE}, {"x": words("one").reshape(1, 1, 1), **ONCE}, ({"x": WORDS, "m": b"md5"}, "Unsupported"))
program("fingerprints_of_numbers", fingerprints(tf.float32), {"x": f32(range(12)).reshape(3, 2, 2), **ONCE},
        {"x": f32([1, 2, 1]), **ONCE})


def padded(dtype, little):
    return lambda: [raw.DecodePaddedRaw(input_bytes=holder(tf.string, None, "x"), fixed_length=holder(tf.int32, [], "n"),
                                        out_type=dtype, little_endian=little)]


for dtype, little in ((tf.uint8, True), (tf.int16, True), (tf.int32, True), (tf.float64, True)):
    size = dtype.size
    program("padded_%s_%d" % (dtype.name, little), padded(dtype, little), {"x": WORDS, "n": i32(2 * size)},
            {"x": WORDS[:6].reshape(2, 3), "n": i32(size)}, {"x": WORDS[:0], "n": i32(size)},
            ({"x": WORDS, "n": i32(0)}, "greater than zero"),
            *([({"x": WORDS, "n": i32(size + 1)}, "must be a multiple")] if size > 1 else []))
EIGHT = words("abcdefgh", "12345678")
program("padded_big_endian", padded(tf.int32, False), {"x": EIGHT, "n": i32(8)}, {"x": EIGHT, "n": i32(4)})

# ---- sound that is written ----


def wav():
    return [raw.EncodeWav(audio=holder(tf.float32, None, "x"), sample_rate=holder(tf.int32, [], "r"))]


program("wav_written", wav, {"x": f32([[0, 1], [-1, 2], [0.5, -3], [1e-5, -2e-5], [0.1, -0.7]]), "r": i32(44100)},
        {"x": eighths(7, 1), "r": i32(8000)}, {"x": eighths(0, 1), "r": i32(8000)}, ({"x": eighths(2, 0), "r": i32(8000)}, "channels"),
        ({"x": eighths(2, 1), "r": i32(0)}, "sample_rate"))

# ---- patches of volumes ----


def volume_patches(dtype):
    return lambda: [raw.ExtractVolumePatches(input=holder(dtype, [None] * 5, "x%d" % k), ksizes=[1, *size, 1],
                                             strides=[1, *strides, 1], padding=padding)
                    for k, (size, strides, padding) in enumerate([([2, 2, 2], [1, 1, 1], "VALID"), ([3, 1, 2], [2, 1, 3], "SAME")])]


for dtype in (np.float32, np.int32):
    volumes = lambda *shape: {"x%d" % k: (eighths(*shape) * 8).astype(dtype) for k in range(2)}
    program("volume_patches_" + np.dtype(dtype).name, volume_patches(tf.as_dtype(dtype)), volumes(2, 3, 4, 3, 2),
            volumes(1, 2, 2, 2, 1), volumes(0, 3, 3, 3, 2))

# ---- triangles ----

for dtype in (np.float32, np.float64, np.complex64, np.complex128):
    def lu():
        x = holder(tf.as_dtype(dtype), None, "x")
        return [*raw.Lu(input=x), *raw.Lu(input=x, output_idx_type=tf.int64)]

    def matrices(*shape):
        x = eighths(*shape, dtype=np.float64) + np.arange(shape[-1]) / 7
        return {"x": (x + (1j * eighths(*shape, dtype=np.float64) if np.issubdtype(dtype, np.complexfloating) else 0)).astype(dtype)}

    program("lu_" + np.dtype(dtype).name, lu, matrices(5, 5), matrices(2, 1, 3, 3), matrices(1, 1), matrices(0, 3, 3),
            ({"x": np.zeros((2, 2), dtype)}, "not invertible"))
program("lu_large", lambda: [raw.Lu(input=holder(tf.float64, None, "x")).p], {"x": eighths(40, 40, dtype=np.float64)})

# ---- integrals and Bessel functions ----

HERE = np.array([0.01, 0.1, 0.35, 0.5, 0.9, 1, 1.3, 1.6, 2, 3.7, 6, 11, 25, 29.5, 31, 39, 41, 90, 400])
SMALL = f32([0.25, 0.5, 0.75, 1, 2, 3.5])
for op in ("BesselJ0", "BesselJ1", "BesselY0", "BesselY1", "BesselK0", "BesselK1", "BesselK0e", "BesselK1e", "Dawsn", "Expint",
           "FresnelCos", "FresnelSin", "Spence"):
    f = getattr(raw, op)
    everywhere = op in ("BesselJ0", "BesselJ1", "Dawsn", "FresnelCos", "FresnelSin")
    for dtype in (np.float32, np.float64):
        far = HERE[:-2] if op == "Expint" else HERE
        program(op + "_" + np.dtype(dtype).name, lambda: [f(x=holder(tf.as_dtype(dtype), None, "x"))], {"x": far.astype(dtype)},
                {"x": np.array([0, -1, -3], dtype)[op == "BesselY1":]}, *([{"x": -HERE.astype(dtype)}] if everywhere else []))
    differentiate("grad_" + op, of(lambda x: f(x=x), 1), {"x": np.append(SMALL, f32([0, -0.5, -2])) if everywhere else SMALL})

# ---- what waits for both sides of a condition ----


def waits_for_both():
    x, p = holder(tf.float32, [None], "x"), holder(tf.bool, [], "p")
    no, yes = raw.Switch(data=x, pred=p)
    sides = [tf.negative(no), tf.square(yes)]
    with tf.control_dependencies([tf.identity(side) for side in sides]):
        merged = raw.Merge(inputs=sides)
    with tf.control_dependencies([merged[0]]):
        return [merged[0], merged[1], x + 1]


program("waits_for_both", waits_for_both, {"x": f32([2, 3]), "p": True}, {"x": f32([2, 3]), "p": False})

# ---- ragged tensors as values ----

ROWS = {"v": eighths(7), "s": i64([0, 3, 3, 5, 7])}
DEEP = {"v": eighths(6, 2), "s": i64([0, 2, 2, 3, 6]), "o": i64([0, 1, 4])}


def as_values(splits=tf.int64, dtype=tf.float32, rank=1):
    def build():
        v, s, o = holder(dtype, [None] * rank, "v"), holder(splits, [None], "s"), holder(splits, [None], "o")
        to, read = raw.RaggedTensorToVariant, raw.RaggedTensorFromVariant

        def back(encoded, inner, outer):
            parts = read(encoded_ragged=encoded, input_ragged_rank=inner, output_ragged_rank=outer, Tvalues=dtype,
                         Tsplits=splits)
            return [*parts[0], parts[1]]

        def some(*splits_of, rows):
            return to(rt_nested_splits=list(splits_of), rt_dense_values=v, batched_input=rows)
        flat, one, two = some(rows=False), some(s, rows=False), some(o, s, rows=False)
        rows, blocks = some(s, rows=True), some(o, s, rows=True)
        return {"": [*back(flat, 0, 0), *back(one, 1, 1), *back(rows, 0, 1), *back(rows, -1, 1), tf.shape(rows)],
                "deep": [*back(two, 2, 2), *back(two, -1, 2), *back(blocks, 1, 2), *back(blocks, -1, 2),
                         tf.shape(blocks)],
                "alike": back(rows if rank == 1 else some(rows=True), -1, 0), "shallow": back(two, 1, 1)}
    return build


program("ragged_values", as_values(rank=2), {**DEEP, "s": i64([0, 2, 2, 3, 6])}, (DEEP, "deep"), (DEEP, "alike"),
        ({**DEEP, "v": DEEP["v"][:0], "s": i64([0]), "o": i64([0])}, ""),
        ({**DEEP, "v": DEEP["v"][:0], "s": i64([0]), "o": i64([0])}, "deep"), 
        (DEEP, "shallow", "xpected ragged_rank=1"))
program("ragged_texts", as_values(tf.int32, tf.string), {"v": words(*"abcdef"), "s": i32([0, 2, 2, 3, 6])},
        ({"v": words(*"abcdef"), "s": i32([0, 2, 2, 3, 6]), "o": i32([0, 1, 4])}, "deep"))
program("ragged_integers", as_values(tf.int32, tf.int64), {"v": i64(range(7)), "s": i32([0, 3, 3, 5, 7])},
        ({"v": i64(range(7)), "s": i32([0, 2, 4, 6, 7]), "o": i32([0, 1, 4])}, "deep"),
        ({"v": i64(range(6)), "s": i32([0, 2, 4, 6])}, "alike"))


def rows(v, s):
    return tf.RaggedTensor.from_row_splits(v, s, validate=False)


def mapped(function, **signature):
    """Its rows one by one; TensorFlow's own gradient by the values, too."""
    def build():
        v, s = holder(tf.float32, [None], "v"), holder(tf.int64, [None], "s")

        @tf.function(autograph=False)
        def run(v, s):
            made = tf.map_fn(function, rows(v, s), **signature)
            values = made.values if isinstance(made, tf.RaggedTensor) else made
            return *tf.nest.flatten(made, expand_composites=True), tf.gradients(tf.reduce_sum(values * values), v)[0]
        return list(run(v, s))
    return build


program("mapped_rows", mapped(lambda x: x * x), ROWS, {"v": ROWS["v"][:4], "s": i64([0, 4])},
        {"v": ROWS["v"][:0], "s": i64([0, 0])})
program("summed_rows", mapped(tf.reduce_sum, fn_output_signature=tf.float32), ROWS)
program("doubled_rows", mapped(lambda x: tf.concat([x, x * 2], 0)), ROWS)


def gone_through(rank, rows):
    def build():
        v = holder(tf.float32, [None, 2], "v")
        splits = [tf.constant(part, tf.int64) for part in ([0, 1, 4], [0, 2, 2, 3, 6])][2 - rank:]
        encoded = raw.RaggedTensorToVariant(rt_nested_splits=splits, rt_dense_values=v, batched_input=rows)
        read = raw.RaggedTensorFromVariant(encoded_ragged=encoded, input_ragged_rank=rank - rows,
                                           output_ragged_rank=rank, Tvalues=tf.float32, Tsplits=tf.int64)
        return v, read[1]
    return build


for rank, by_rows in ((0, False), (1, False), (1, True), (2, False)):
    differentiate("gone_through_%d_%s" % (rank, by_rows), gone_through(rank, by_rows), {"v": DEEP["v"]})

# ---- ragged tensors in data sets ----


def ragged_elements():
    v, s = holder(tf.float32, [None], "v"), holder(tf.int64, [None], "s")
    single, slices = tf.data.experimental.get_single_element, tf.data.Dataset.from_tensor_slices
    given = slices(rows(v, s))
    numbers = tf.data.Dataset.range(5).map(tf.range)
    cut = slices(words("a b", "", "c")).batch(3).map(tf.strings.split)
    deep = slices(tf.RaggedTensor.from_row_splits(rows(v, s), i64([0, 1, 4])))
    made = [given.map(lambda x: x * 2).ragged_batch(10), given.batch(2).batch(2),
            given.batch(2).unbatch().skip(1).batch(9),
            tf.data.Dataset.from_tensors(rows(v, s)).unbatch().batch(3).take(1), numbers.ragged_batch(5), cut,
            deep.batch(2), deep.unbatch().batch(9), given.batch(3).take(1).map(lambda x: tf.reduce_sum(x, 1))]
    return tf.nest.flatten([single(of) for of in made], expand_composites=True)


program("ragged_elements", ragged_elements, ROWS, {"v": f32([1, 2, 3, 4]), "s": i64([0, 0, 1, 4, 4])})

# ---- ragged features of examples ----


def example(**features):
    kinds = {int: ("int64_list", tf.train.Int64List), float: ("float_list", tf.train.FloatList),
             bytes: ("bytes_list", tf.train.BytesList)}
    made = {name: tf.train.Feature(**{kinds[type(values[0])][0]: kinds[type(values[0])][1](value=values)})
            for name, values in features.items() if values}
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString(deterministic=True)


EXAMPLES = np.array([example(x=[1, 2, 3], f=[1.5, 2.5], s=[b"a"], d=[7], n=[2, 1]), example(f=[0.5], d=[8]),
                     example(x=[4], s=[b"bc", b""], t=[b"u", b"v"], d=[9], n=[1])], object)


def with_ragged(shape):
    def build():
        return tf.nest.flatten(list(raw.ParseExampleV2(
            serialized=holder(tf.string, shape, "e"), names=[], sparse_keys=["s"], dense_keys=["d"],
            ragged_keys=["x", "f", "t"], dense_defaults=[tf.zeros([0], tf.int64)], num_sparse=1,
            sparse_types=[tf.string], dense_shapes=[[]],
            ragged_value_types=[tf.int64, tf.float32, tf.string], ragged_split_types=[tf.int32, tf.int64, tf.int64])))
    return build


program("parse_ragged", with_ragged([None]), {"e": EXAMPLES}, {"e": EXAMPLES[2:]},
        ({"e": np.array([example(x=[1.5], d=[1])], object)}, "Data types don't match"))
program("parse_ragged_one", with_ragged([]), {"e": EXAMPLES[0]}, {"e": EXAMPLES[1]})


def ragged_features():
    feature = tf.io.RaggedFeature
    wanted = {"x": feature(tf.int64), "lengths": feature(tf.int64, "x", [feature.RowLengths("n")], validate=False),
              "d": tf.io.FixedLenFeature([], tf.int64), "s": tf.io.VarLenFeature(tf.string)}
    given = tf.data.Dataset.from_tensors(holder(tf.string, [None], "e"))
    made = [tf.data.experimental.get_single_element(given.apply(tf.data.experimental.parse_example_dataset(wanted))),
            tf.data.experimental.get_single_element(given.map(lambda e: tf.io.parse_example(e, wanted)))]
    return tf.nest.flatten(made, expand_composites=True)


program("ragged_features", ragged_features, {"e": EXAMPLES}, {"e": EXAMPLES[1:2]})

# ---- counts as sparse tensors ----

for index, kind, binary, least, most in ((tf.int32, tf.float32, False, -1, -1), (tf.int64, tf.float64, False, 9, -1),
                                         (tf.int64, tf.int64, False, 2, 3), (tf.int32, tf.int32, True, -1, 5)):
    limits = {"minlength": least, "maxlength": most, "binary_output": binary}

    def in_counts(rank):
        v, w = holder(index, [None] * rank, "v"), holder(kind, None, "w")
        return list(raw.DenseCountSparseOutput(values=v, weights=w, **limits))

    def in_sparse():
        i, v, d = holder(tf.int64, [None, None], "i"), holder(index, [None], "v"), holder(tf.int64, [None], "d")
        w, size = holder(kind, None, "w"), tf.constant(4, index)
        sparse = {"indices": i, "values": v, "dense_shape": d, "weights": w}
        return {"counts": list(raw.SparseCountSparseOutput(**sparse, **limits)),
                "bins": [raw.SparseBincount(**sparse, size=size, binary_output=binary)]}

    def in_ragged():
        s, v = holder(tf.int64, [None], "s"), holder(index, [None], "v")
        return list(raw.RaggedCountSparseOutput(splits=s, values=v, weights=holder(kind, None, "w"), **limits))

    ints, none = index.as_numpy_dtype, np.zeros([0], kind.as_numpy_dtype)
    numbers, heavy = np.array([1, 3, 1, 0, 5, 1], ints), np.array([1, 2, 3, 4, 0, 6], kind.as_numpy_dtype)
    name = "%s_%s" % (kind.name, index.name)
    program("counted_" + name, lambda: in_counts(1), {"v": numbers, "w": none}, {"v": numbers, "w": heavy},
            {"v": numbers[:0], "w": none}, ({"v": numbers, "w": heavy[:2]}, "must have the same shape"))
    program("counted_rows_" + name, lambda: in_counts(2), {"v": numbers.reshape(2, 3), "w": none},
            {"v": numbers.reshape(3, 2), "w": heavy.reshape(3, 2)}, {"v": numbers[:0].reshape(2, 0), "w": none},
            ({"v": numbers[:0].reshape(0, 2), "w": none}, "dimension cannot be 0"))
    flat = {"i": i64([[0], [2], [3], [4], [5], [7]]), "v": numbers, "d": i64([9]), "w": heavy}
    deep = {"i": i64([[0, 0], [0, 3], [1, 0], [1, 1], [3, 0], [3, 2]]), "v": numbers, "d": i64([4, 4]), "w": none}
    runs = [(flat, "counts"), (deep, "counts"), ({**deep, "w": heavy}, "counts"), (flat, "bins"), (deep, "bins"),
            ({**deep, "w": heavy}, "bins"), ({**deep, "d": i64([3, 4])}, "counts", "Invalid index value")]
    program("counted_sparse_" + name, in_sparse, *runs)
    program("counted_ragged_" + name, in_ragged, {"s": i64([0, 2, 2, 6]), "v": numbers, "w": none},
            {"s": i64([0, 3, 6]), "v": numbers, "w": heavy}, {"s": i64([0, 0]), "v": numbers[:0], "w": none},
            ({"s": i64([1, 6]), "v": numbers, "w": none}, "plits must"),
            ({"s": i64([0, 4]), "v": numbers, "w": none}, "plits must"))

# ---- gradients of Einsum where sizes are not known ----

for name, equation, other in (("product", "bij,jk->bik", [4, 5]), ("rows", "bij,bi->bj", [2, 3]),
                              ("summed", "bij,bk->bk", [2, 5]), ("outer", "bij,k->ikb", [5])):

    def einsum():
        x = holder(tf.float32, [None] * 3, "x")
        y = tf.constant(eighths(*other)) + tf.reduce_sum(x) * 0.25
        return x, raw.Einsum(inputs=[x, tf.placeholder_with_default(y, [None] * len(other))], equation=equation)
    differentiate("grad_einsum_" + name, einsum, {"x": eighths(2, 3, 4)})
differentiate("grad_einsum_one", of(lambda x: raw.Einsum(inputs=[x], equation="ijk->ki"), 3), {"x": eighths(2, 3, 4)})
differentiate("grad_einsum_second", of(lambda x: raw.Einsum(inputs=[x, x * 2], equation="bij,bik->bjk"), 3),
              {"x": eighths(2, 3, 4)})
differentiate("grad_einsum_alone", of(lambda x: raw.Einsum(inputs=[tf.reduce_sum(x, 2), x], equation="bk,bij->bk"), 3),
              {"x": eighths(2, 3, 4)})

# ---- what is drawn from seeds ----


def seeded_counts(kind, out):
    def build():
        shape, seed = holder(tf.int32, [None], "n"), holder(tf.int64, [2], "s")
        rate = holder(kind, None, "r")
        return [raw.StatelessRandomPoisson(shape=shape, seed=seed, lam=rate, dtype=out)]
    return build


def seeded_trials(kind, out):
    def build():
        shape, seed = holder(tf.int32, [None], "n"), holder(tf.int32, [2], "s")
        return [raw.StatelessRandomBinomial(shape=shape, seed=seed, counts=holder(kind, None, "c"),
                                            probs=holder(kind, None, "p"), dtype=out)]
    return build


def seeded_gamma(kind):
    def build():
        shape, seed, alpha = holder(tf.int32, [None], "n"), holder(tf.int64, [2], "s"), holder(kind, None, "a")
        key, counter = raw.StatelessRandomGetKeyCounter(seed=seed)
        return [raw.StatelessRandomGammaV2(shape=shape, seed=seed, alpha=alpha),
                raw.StatelessRandomGammaV3(shape=shape, key=key, counter=counter, alg=3, alpha=alpha)]
    return build


def gamma_of(kind):
    def build():
        x = holder(kind, [3], "x")
        return x, raw.StatelessRandomGammaV2(shape=[5, 3], seed=tf.constant([3, 4], tf.int64), alpha=x + 0.5)
    return build


for kind in (tf.float16, tf.float32, tf.float64, tf.int32):
    number = kind.as_numpy_dtype
    rates = np.array([0, 0.5, 3, 9.5, 10, 25, 400, 3e4], number)
    whole = tf.int32 if kind == tf.float16 else tf.int64 if kind == tf.float64 else kind
    name = kind.name
    program("seeded_poisson_" + name, seeded_counts(kind, whole), {"n": i32([5, 8]), "s": i64([1, 2]), "r": rates},
            {"n": i32([90]), "s": i64([-3, 7]), "r": number(12)}, {"n": i32([0, 8]), "s": i64([1, 2]), "r": rates},
            ({"n": i32([5, 7]), "s": i64([1, 2]), "r": rates}, "must end with broadcasted shape"))
    if kind == tf.int32:
        continue
    chances = np.array([[0], [1e-3], [0.03], [0.5], [0.75], [0.98], [1], [2]], number)
    tries = np.array([0, 4, 20, 300, 2e4], number)
    program("seeded_binomial_" + name, seeded_trials(kind, whole),
            {"n": i32([3, 8, 5]), "s": i32([5, -6]), "c": tries, "p": chances},
            {"n": i32([80]), "s": i32([5, 6]), "c": number(40), "p": number(0.4)},
            {"n": i32([4, 5]), "s": i32([0, 0]), "c": tries, "p": number(0.3)},
            ({"n": i32([8, 4]), "s": i32([5, 6]), "c": tries, "p": chances}, "must end with broadcasted shape"))
    program("seeded_gamma_" + name, seeded_gamma(kind),
            {"n": i32([4, 5]), "s": i64([3, 4]), "a": np.array([0.2, 0.9, 1, 1.5, 30], number)},
            {"n": i32([70]), "s": i64([3, -4]), "a": number(0.5)},
            ({"n": i32([]), "s": i64([3, 4]), "a": np.ones([1], number)}, "must end with broadcasted shape"))
    if kind != tf.float16:
        differentiate("grad_seeded_gamma_" + name, gamma_of(kind), {"x": np.array([0.25, 0.5, 2], number)})


def seeded_orders(kind):
    def build():
        key, counter = raw.StatelessRandomGetKeyCounter(seed=holder(tf.int64, [2], "s"))
        return [raw.StatelessShuffle(value=holder(kind, None, "v"), key=key, counter=counter, alg=holder(tf.int32, [], "a"))]
    return build


program("seeded_shuffle", seeded_orders(tf.float32),
        {"v": f32(np.arange(21).reshape(7, 3)), "s": i64([1, 9]), "a": i32(1)},
        {"v": f32(np.arange(40)), "s": i64([1, 9]), "a": i32(3)}, {"v": f32(3), "s": i64([1, 9]), "a": i32(1)},
        {"v": f32(np.zeros([0, 3])), "s": i64([1, 9]), "a": i32(1)},
        ({"v": f32([1, 2]), "s": i64([1, 9]), "a": i32(7)}, "alg"))
program("seeded_shuffle_of_texts", seeded_orders(tf.string), {"v": words(*"abcdefgh"), "s": i64([2, 2]), "a": i32(1)})

# ---- groups of one device ----


def in_group_of_one(kind):
    def build():
        x = holder(kind, [None, 2], "x")
        ids = {"group_size": 1, "group_key": 1}
        token = raw.VarHandleOp(dtype=tf.float32, shape=[])
        reduced = [raw.CollectiveReduce(input=x, instance_key=1 + i, merge_op=merge, final_op=final, subdiv_offsets=[0], **ids)
                   for i, (merge, final) in enumerate((("Add", "Div"), ("Max", "Id")))]
        return [*reduced, raw.CollectiveGather(input=tf.ensure_shape(x, [2, 2]), instance_key=3, shape=[2, 2], **ids),
                raw.CollectiveBcastSend(input=tf.ensure_shape(x, [2, 2]), instance_key=4, shape=[2, 2], **ids) + 1,
                raw.CollectiveReduceV2(input=x * 2, instance_key=5, ordering_token=[token], merge_op="Add", final_op="Div",
                                       **ids),
                raw.CollectiveGatherV2(input=x, instance_key=6, ordering_token=[], **ids) + 1,
                raw.CollectiveBcastSendV2(input=x, instance_key=7, **ids)]
    return build


for kind in (tf.float32, tf.float64, tf.int32):
    program("group_of_one_" + kind.name, in_group_of_one(kind), {"x": np.array([[1, 2], [3, 4]], kind.as_numpy_dtype)})

# ---- checkpoints of the first version ----


def first_version():
    """Saved whole and in parts, and restored by other nodes."""
    x = holder(tf.float32, [4, None], "x")
    whole, parts = "test_shapes_first", "test_shapes_parts"
    save = [raw.Save(filename=whole, tensor_names=["b", "a/x"], data=[tf.constant([b"one", b""]), x]),
            raw.SaveSlices(filename=parts, tensor_names=["x", "x", "n"], shapes_and_slices=["4 2 0,1:-", "4 2 1,3:-", ""],
                           data=[tf.ensure_shape(x, [4, 2])[:1], x[1:], tf.constant(7, tf.int64)])]
    wrong = raw.SaveSlices(filename=parts, tensor_names=["x"], shapes_and_slices=["4 2 0,1:-"], data=[x])
    read = [raw.Restore(file_pattern=whole, tensor_name="a/x", dt=tf.float32),
            raw.Restore(file_pattern=whole, tensor_name="b", dt=tf.string),
            raw.RestoreSlice(file_pattern=parts, tensor_name="x", shape_and_slice="4 2 0,3:1,1", dt=tf.float32),
            raw.RestoreV2(prefix=parts, tensor_names=["x", "n"], shape_and_slices=["", ""], dtypes=[tf.float32, tf.int64])]
    return {"": save, "wrong": [wrong], "read": tf.nest.flatten(read)}


program("first_version", first_version, {"x": eighths(4, 2)}, ({}, "read"), ({"x": eighths(4, 2)}, "wrong", "4 2 0,1:-"),
        ({}, "read"))

for left in pathlib.Path().glob("test_shapes_*"): # what the programs have written
    left.unlink()
