#!/usr/bin/env python3
"""Writes seldom.txt: ops of TensorFlow 1 that stand in one program of a hundred, in small programs exported and run by
TensorFlow, for tests/test_shapes.c."""

from graph_cases import begin, differentiate, eighths, holder, np, of, once_more, program, random, raw, reseed, tf, words
from op_cases import f32, f64, i32, i64

begin("seldom.txt", __file__, 1)

# ---- pools whose windows are operands ----

for dtype in (tf.float32, tf.float16, tf.int32):
    for padding in ("SAME", "VALID"):
        x = (2 * eighths(2, 5, 6, 3)).astype(dtype.as_numpy_dtype)
        program(
            "max_pool_given_%s_%s" % (dtype.name, padding.lower()),
            lambda: [
                raw.MaxPoolV2(
                    input=holder(dtype, [None, None, None, 3], "x"),
                    ksize=holder(tf.int32, [4], "k"),
                    strides=holder(tf.int32, [4], "s"),
                    padding=padding,
                )
            ],
            {"x": x, "k": i32([1, 2, 3, 1]), "s": i32([1, 2, 1, 1])},
            {"x": x, "k": i32([1, 3, 3, 1]), "s": i32([1, 1, 2, 1])},
        )
given = of(lambda x: raw.MaxPoolV2(input=x, ksize=[1, 3, 2, 1], strides=[1, 2, 2, 1], padding="SAME"), 4)
for name, how in (("grad", differentiate), ("grad_grad", once_more)):
    how(name + "_max_pool_given", given, {"x": random.permutation(2 * 5 * 4 * 2).reshape(2, 5, 4, 2).astype(np.float32) / 8})

# ---- fractional pools ----

for kind in ("Max", "Avg"):
    op = getattr(raw, "Fractional%sPool" % kind)
    for i, (overlapping, pseudo, dtype) in enumerate(
        [(False, False, tf.float32), (True, False, tf.float64), (False, True, tf.float32), (True, True, tf.int32),
         (False, True, tf.int64)]):

        def pooled():
            x = holder(dtype, [2, 14, 17, 2], "x")
            return x, op(
                value=x,
                pooling_ratio=[1.0, 1.4, 1.73, 1.0],
                pseudo_random=pseudo,
                overlapping=overlapping,
                deterministic=True,
                seed=3 + i,
                seed2=12 * i,
            )

        def pooled_and_gradient():
            x, pool = pooled()
            dx = tf.gradients(pool[0] * tf.range(1, 3, dtype=dtype), x)
            return [*pool, *dx]

        x = random.permutation(2 * 14 * 17 * 2).reshape(2, 14, 17, 2)
        x = (x / 8 if dtype.is_floating else x).astype(dtype.as_numpy_dtype)
        build = (lambda: list(pooled()[1])) if dtype.is_integer else pooled_and_gradient
        program("fractional_%s_%d" % (kind.lower(), i), build, {"x": x})
        if dtype == tf.float32:
            differentiate(
                "grad_fractional_%s_%d" % (kind.lower(), i), lambda: (lambda x, p: (x, p[0]))(*pooled()), {"x": x}
            )
program(
    "fractional_whole",
    lambda: raw.FractionalMaxPool(
        value=holder(tf.float32, [1, 4, 6, 1], "x"), pooling_ratio=[1.0, 2.0, 3.0, 1.0], deterministic=True, seed=1
    ),
    {"x": eighths(1, 4, 6, 1)},
)

# ---- glimpses ----

for second in (False, True):
    op = raw.ExtractGlimpseV2 if second else raw.ExtractGlimpse
    for centered in (False, True):
        for normalized in (False, True):
            program(
                "glimpse_%d_%d_%d" % (second, centered, normalized),
                lambda: [
                    op(
                        input=holder(tf.float32, [None, 7, 6, 2], "x"),
                        size=holder(tf.int32, [2], "n"),
                        offsets=holder(tf.float32, [None, 2], "o"),
                        centered=centered,
                        normalized=normalized,
                        uniform_noise=False,
                        noise="zero",
                    )
                ],
                {"x": eighths(3, 7, 6, 2), "n": i32([3, 4]), "o": f32([[0.25, 0.1], [2, 1], [-1, -0.5]])},
                {"x": eighths(2, 7, 6, 2), "n": i32([2, 2]), "o": f32([[0.75, -0.25], [9, -20]])},
            )

# ---- rows in place, truth, hashes ----

for dtype in (tf.float32, tf.float16, tf.int64, tf.uint8):
    some = lambda *shape: np.abs(2 * eighths(*shape)).astype(dtype.as_numpy_dtype)
    program(
        "rows_in_place_" + dtype.name,
        lambda: [
            raw.InplaceUpdate(x=raw.DeepCopy(x=holder(dtype, [None, 3], "x")), i=holder(tf.int32, [None], "i"),
                              v=holder(dtype, [None, 3], "v"))
        ],
        {"x": some(4, 3), "i": i32([2, 0]), "v": some(2, 3)},
        {"x": some(4, 3), "i": i32([-1, 6]), "v": some(2, 3)},
    )
    if dtype == tf.uint8:
        continue
    for op in (raw.InplaceAdd, raw.InplaceSub):
        program(
            "rows_in_place_%s_%s" % (dtype.name, op.__name__.lower()),
            lambda: [
                op(x=raw.DeepCopy(x=holder(dtype, [None, 3], "x")), i=holder(tf.int32, [None], "i"),
                   v=holder(dtype, [None, 3], "v"))
            ],
            {"x": some(4, 3), "i": i32([2, 2]), "v": some(2, 3)},
            {"x": some(4, 3), "i": i32([-3]), "v": some(1, 3)},
        )
program("empty", lambda: [raw.Empty(shape=holder(tf.int32, [2], "n"), dtype=tf.float32, init=True)], {"n": i32([2, 3])})

for dtype in (tf.float32, tf.int64, tf.bool, tf.string):
    values = [b"", b"a"] if dtype == tf.string else [0, 2]
    values = [np.array(v, object if dtype == tf.string else dtype.as_numpy_dtype) for v in values]
    program(
        "truth_" + dtype.name,
        lambda: [raw.ToBool(input=holder(dtype, None, "x"))],
        *[{"x": v} for v in values],
        {"x": np.reshape(values[0], [1])},
        {"x": np.zeros([0], values[0].dtype)},
    )
program(
    "old_hashes",
    lambda: (lambda s: [raw.StringToHashBucket(string_tensor=s, num_buckets=n) for n in (7, 2**40)])(
        holder(tf.string, None, "s")
    ),
    {"s": words("", "a", "word", "seven77", "eight888", "nine99999", "and a longer one, of more than two words")},
)


def staged():
    x = holder(tf.float32, [None], "x")
    put = raw.Stage(values=[x, tf.as_string(tf.shape(x))], shared_name="area")
    kinds = dict(dtypes=[tf.float32, tf.string], shared_name="area")
    return {
        "put": [put],
        "peek": list(raw.StagePeek(index=holder(tf.int32, [], "i"), **kinds)) + [raw.StageSize(**kinds)],
        "take": list(raw.Unstage(**kinds)),
        "clear": [raw.StageClear(**kinds)],
        "size": [raw.StageSize(**kinds)],
    }


program(
    "staging_area",
    staged,
    ({"x": f32([1, 2])}, "put"),
    ({"x": f32([3])}, "put"),
    ({"i": i32(1)}, "peek"),
    ({"i": i32(0)}, "peek"),
    ({}, "take"),
    ({"i": i32(0)}, "peek"),
    ({}, "clear"),
    ({}, "size"),
)

# ---- variables of texts ----


def texts(resources):
    def build():
        with tf.variable_scope("v", use_resource=resources):
            names = tf.get_variable("names", initializer=tf.constant(["a", "bc", ""]), trainable=False)
            one = tf.get_variable("one", initializer=tf.constant("begin"), trainable=False)
        given = holder(tf.string, [3], "given")
        longer = tf.assign(one, tf.strings.join([one, "."]))
        return {
            "read": [names.read_value(), one.read_value(), tf.strings.length(names)],
            "set": [tf.assign(names, given), longer],
        }

    return build


for resources in (False, True):
    program(
        "variables_of_texts_%d" % resources,
        texts(resources),
        ({}, "read"),
        ({"given": words("", "x", "a longer text than before")}, "set"),
        ({}, "read"),
        ({"given": words("p", "q", "r")}, "set"),
        ({}, "read"),
        init=True,
    )



def without_shape(dtype):
    def build():
        x, keep = holder(dtype, [None], "x"), holder(tf.bool, [None], "keep")
        v = tf.Variable(tf.boolean_mask(x, keep), validate_shape=False, trainable=False, name="v")
        return {
            "begin": [v.initializer],
            "known": [tf.is_variable_initialized(v)],
            "read": [tf.identity(v), tf.size(v)],
        }

    return build


# What match_filenames_once makes: its shape is found when it gets its value.
for dtype, x in ((tf.string, words("a", "bc", "def")), (tf.float32, f32([1, 2, 3]))):
    keep = np.array([True, False, True])
    program(
        "variable_without_a_shape_" + dtype.name,
        without_shape(dtype),
        ({}, "known"),
        ({"x": x, "keep": keep}, "begin"),
        ({}, "known"),
        ({}, "read"),
        ({"x": x[::-1].copy(), "keep": keep}, "begin"),
        ({}, "read"),
    )
program(
    "variable_without_a_value", lambda: [tf.identity(without_shape(tf.float32)()["read"][1])],
    ({}, "Attempting to use uninitialized value v"),
)

# ---- many axes ----


def tiled(rank):
    def build():
        x = holder(tf.float32, [None] * rank, "x")
        y = tf.tile(x, [1, 2, 3, 1, 2, 1][:rank])
        return [y, tf.gradients(tf.square(y) * tf.exp(y), x)[0]]

    return build


program("tile_of_5", tiled(5), {"x": eighths(2, 1, 2, 3, 1)}, {"x": eighths(1, 2, 1, 1, 2)})
program("tile_of_6", tiled(6), {"x": eighths(2, 1, 2, 1, 1, 2)})
program(
    "twelve_axes",
    lambda: (lambda x: [tf.reshape(x, [1] * 6 + [2, 1, 3, 1, 2, 1]), tf.shape(tf.reshape(x, [2] + [1] * 10 + [6]))])(
        holder(tf.float32, [12], "x")
    ),
    {"x": eighths(12)},
)

# ---- rows of different length ----

for dtype, scale in ((tf.int32, 1), (tf.int64, 1), (tf.float32, 0.5), (tf.float64, 0.3)):

    def numbers():
        a, b, c = (holder(dtype, None, n) for n in "abc")
        return list(raw.RaggedRange(starts=a, limits=b, deltas=c, Tsplits=tf.int32 if dtype == tf.int64 else tf.int64))

    t = lambda x: (scale * np.array(x)).astype(dtype.as_numpy_dtype)
    program(
        "ragged_range_" + dtype.name,
        numbers,
        {"a": t([0, 3, 8, -2]), "b": t([5, 3, 1, 7]), "c": t([2, 1, -3, 4])},
        {"a": t(1), "b": t([5, 0]), "c": t(2)},
        {"a": t(0), "b": t(3), "c": t(1)},
        {"a": t([]), "b": t([]), "c": t(1)},
        ({"a": t(0), "b": t(3), "c": t(0)}, "Requires delta != 0"),
    )

OUTER, INNER = [0, 2, 2, 3], [0, 3, 3, 7]
for dtype in (tf.float32, tf.string, tf.int64):
    some = lambda *shape: (
        np.reshape(words(*[str(i) for i in range(int(np.prod(shape)))]), shape)
        if dtype == tf.string
        else (8 * eighths(*shape)).astype(dtype.as_numpy_dtype)
    )
    for splits in (tf.int32, tf.int64):

        def gathered():
            of_axes = [tf.constant(s, splits) for s in (OUTER, INNER)]
            v, i, j = holder(dtype, [None, 2], "v"), holder(tf.int32, [None], "i"), holder(tf.int64, [None, None], "j")
            return {
                "deep": list(raw.RaggedGather(params_nested_splits=of_axes, params_dense_values=v, indices=i,
                                              OUTPUT_RAGGED_RANK=2)[0]),
                "values": [raw.RaggedGather(params_nested_splits=of_axes, params_dense_values=v, indices=i,
                                            OUTPUT_RAGGED_RANK=2)[1]],
                "wide": [x for part in raw.RaggedGather(params_nested_splits=of_axes[1:], params_dense_values=v, indices=j,
                                                        OUTPUT_RAGGED_RANK=2) for x in
                         (part if isinstance(part, list) else [part])],
                "sparse": list(raw.RaggedTensorToSparse(rt_nested_splits=of_axes, rt_dense_values=v)),
            }

        program(
            "ragged_%s_%s" % (dtype.name, splits.name),
            gathered,
            ({"v": some(7, 2), "i": i32([2, 0, 2])}, "deep"),
            ({"v": some(7, 2), "i": i32([2, 0, 1])}, "values"),
            ({"v": some(7, 2), "i": i32([])}, "values"),
            ({"v": some(7, 2), "j": i64([[0, 2], [1, 1], [2, 0]])}, "wide"),
            ({"v": some(7, 2)}, "sparse"),
        )

    for kinds in (["ROW_SPLITS", "ROW_SPLITS"], ["FIRST_DIM_SIZE", "VALUE_ROWIDS", "VALUE_ROWIDS"], ["ROW_SPLITS", "VALUE_ROWIDS"]):

        def dense():
            parts = {"FIRST_DIM_SIZE": [3], "VALUE_ROWIDS": [[0, 0, 2], [0, 0, 0, 2, 2, 2, 2]], "ROW_SPLITS": [OUTER, INNER]}
            taken = [parts[k][i - ("FIRST" in kinds[0]) if len(parts[k]) > 1 else 0] for i, k in enumerate(kinds)]
            return [
                raw.RaggedTensorToTensor(
                    shape=holder(tf.int64, None, "s"),
                    values=holder(dtype, [None, 2], "v"),
                    default_value=holder(dtype, None, "d"),
                    row_partition_tensors=[tf.constant(p, tf.int64) for p in taken],
                    row_partition_types=kinds,
                )
            ]

        program(
            "ragged_to_dense_%s_%s" % (dtype.name, "_".join(kinds).lower()),
            dense,
            {"s": i64(-1), "v": some(7, 2), "d": some(1).reshape([])},
            {"s": i64([-1, -1, 2, 2]), "v": some(7, 2), "d": some(2)},
            {"s": i64([4, 1, 6, 2]), "v": some(7, 2), "d": some(1)},
        )

program(
    "ragged_gather_outside",
    lambda: [raw.RaggedGather(params_nested_splits=[i64(OUTER)], params_dense_values=f32([1, 2, 3]),
                              indices=holder(tf.int32, [None], "i"), OUTPUT_RAGGED_RANK=1)[1]],
    ({"i": i32([3])}, "is not in [0, 3)"),
    ({"i": i32([0, -1])}, "is not in [0, 3)"),
)
program(
    "ragged_row_of_none",
    lambda: [raw.RaggedTensorToTensor(shape=i32(-1), values=f32([1, 2, 3]), default_value=f32(0),
                                      row_partition_tensors=[i64(3), holder(tf.int64, [None], "i")],
                                      row_partition_types=["FIRST_DIM_SIZE", "VALUE_ROWIDS"])],
    {"i": i64([0, 0, 2])},
)
differentiate(
    "grad_ragged_gather",
    of(lambda x: raw.RaggedGather(params_nested_splits=[i64(OUTER), i64(INNER)], params_dense_values=x,
                                  indices=i32([[2, 0], [0, 0]]), OUTPUT_RAGGED_RANK=3)[1]),
    {"x": eighths(7, 2)},
)
differentiate(
    "grad_ragged_to_sparse",
    of(lambda x: raw.RaggedTensorToSparse(rt_nested_splits=[i64(OUTER), i64(INNER)], rt_dense_values=x)[1]),
    {"x": eighths(7, 2)},
)


def to_dense(values, default):
    return raw.RaggedTensorToTensor(shape=i32([-1, -1, 2, -1]), values=values, default_value=default,
                                    row_partition_tensors=[i64(OUTER), i64(INNER)],
                                    row_partition_types=["ROW_SPLITS", "ROW_SPLITS"])


differentiate("grad_ragged_to_dense", of(lambda x: to_dense(x, 2.0)), {"x": eighths(7, 3)})
differentiate("grad_ragged_default", of(lambda x: to_dense(f32(np.ones([7, 3])), x), 1), {"x": eighths(3)})


def ragged_program():
    x = tf.RaggedTensor.from_nested_row_splits(holder(tf.float32, [None], "x"), [i64(OUTER), i64(INNER)])
    y = tf.ragged.map_flat_values(tf.exp, x)
    z = tf.reduce_sum(y, axis=2).to_tensor(default_value=0.5)
    picked = tf.gather(y, [2, 0])
    loss = tf.reduce_sum(z * z) + tf.reduce_sum(picked.to_tensor())
    return [loss, tf.convert_to_tensor(tf.gradients(loss, x.flat_values)[0]), picked.to_tensor(), x.to_sparse().indices]


program("ragged_program", ragged_program, {"x": eighths(7)})

# ---- boxes of several classes, and slices rounded each in its range ----


def corners(*shape):
    begin, size = np.abs(random.integers(0, 12, (*shape, 2))) / 16, random.integers(1, 10, (*shape, 2)) / 16
    return np.concatenate([begin, begin + size], -1).astype(np.float32)


def scores_of(*shape):
    return (random.permutation(int(np.prod(shape))).reshape(shape) / np.prod(shape)).astype(np.float32)


for pad in (False, True):
    for clip in (False, True):
        program(
            "boxes_of_classes_%d_%d" % (pad, clip),
            lambda: list(
                raw.CombinedNonMaxSuppression(
                    boxes=holder(tf.float32, [None, None, None, 4], "b"),
                    scores=holder(tf.float32, [None, None, None], "s"),
                    max_output_size_per_class=holder(tf.int32, [], "each"),
                    max_total_size=holder(tf.int32, [], "all"),
                    iou_threshold=0.3,
                    score_threshold=0.2,
                    pad_per_class=pad,
                    clip_boxes=clip,
                )
            ),
            {"b": corners(2, 9, 1), "s": scores_of(2, 9, 3), "each": i32(2), "all": i32(9)},
            {"b": corners(2, 9, 3), "s": scores_of(2, 9, 3), "each": i32(5), "all": i32(4)},
        )
program(
    "infinite_boxes_of_classes",
    lambda: list(
        raw.CombinedNonMaxSuppression(
            boxes=holder(tf.float32, [1, 5, 1, 4], "b"),
            scores=f32([0.9, 0.8, 0.7, 0.6, 0.5]).reshape(1, 5, 1),
            max_output_size_per_class=5,
            max_total_size=5,
            iou_threshold=0.5,
            score_threshold=-1,
            clip_boxes=False,
        )
    ),
    {
        "b": f32(
            [[0, 0, np.inf, np.inf], [0, 0, np.inf, np.inf], [0, 0, 1, 1], [np.nan, 0, 1, 1], [0, 0, 1, 1]]
        ).reshape(1, 5, 1, 4)
    },
)

for given in (False, True):
    for axis in (0, 1, 2):
        sizes = (3, 2, 4)
        ends = [np.float64(e) for e in (-np.ones(sizes[axis]), np.arange(1, 1 + sizes[axis]))] if given else [f64(0), f64(0)]

        def rounded():
            x, n = holder(tf.float32, [None, None, None], "x"), holder(tf.int32, [], "n")
            low, high = holder(tf.float32, None, "low"), holder(tf.float32, None, "high")
            y, wide = tf.cast(x, tf.float64), [tf.cast(low, tf.float64), tf.cast(high, tf.float64)]
            second = raw.QuantizeAndDequantizeV2(input=x, input_min=low, input_max=high, num_bits=5, axis=axis)
            return [second][given:] + [  # whose ranges must be scalars in TensorFlow's kernel
                raw.QuantizeAndDequantizeV3(input=y, input_min=wide[0], input_max=wide[1], num_bits=n, range_given=given,
                                            axis=axis),
            ]

        low, high = (e.astype(np.float32) for e in ends)
        program("rounded_slices_%d_%d" % (given, axis), rounded,
                {"x": eighths(*sizes) * np.float32(1.1), "n": i32(4), "low": low, "high": high})
