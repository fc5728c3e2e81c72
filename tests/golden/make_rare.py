#!/usr/bin/env python3
"""Writes rare.txt: ops that few programs have, in small programs exported and run by TensorFlow, for
tests/test_shapes.c."""

from graph_cases import begin, differentiate, eighths, holder, np, of, once_more, program, random, raw, reseed, tf
from op_cases import f32, f64, i32, i64

begin("rare.txt", __file__, 101)

# ---- sparse tensors and dense ones ----

AT = i64([[0, 1], [0, 3], [2, 0], [2, 3]])
SHAPE = i64([3, 4])


def sparse(dtype, name="", shape=(None, 2)):
    """Indices, values and shape that are fed."""
    return [
        holder(tf.int64, shape, name + "i"),
        holder(dtype, [shape[0]], name + "v"),
        holder(tf.int64, [shape[1]], name + "s"),
    ]


def fed(dtype, name="", at=AT, shape=SHAPE, scale=1):
    values = scale * np.array([1.5, -2, -4, 0.5, 3, -1.25])[: len(at)]
    return {
        name + "i": np.array(at, np.int64).reshape(-1, len(shape)),
        name + "v": values.astype(dtype.as_numpy_dtype),
        name + "s": i64(shape),
    }


for dtype in (tf.float32, tf.float64, tf.float16, tf.int32):

    def with_dense():
        i, v, s = sparse(dtype)
        d = holder(dtype, None, "d")
        return [
            getattr(raw, "SparseDenseCwise" + how)(sp_indices=i, sp_values=v, sp_shape=s, dense=d)
            for how in ("Add", "Mul", "Div")
        ]

    some = lambda *shape: np.where(eighths(*shape) < 0, -2, 3).astype(dtype.as_numpy_dtype)
    program(
        "dense_to_entries_" + dtype.name,
        with_dense,
        {**fed(dtype), "d": some(3, 4)},
        {**fed(dtype), "d": some(3, 1)},
        {**fed(dtype), "d": some(4)},
        {**fed(dtype), "d": some()},
        {**fed(dtype, at=()), "d": some(1, 4)},
        ({**fed(dtype), "d": some(3, 3)}, "incompatible shape"),
    )
program(
    "division_of_whole_entries",
    lambda: [
        raw.SparseDenseCwiseDiv(sp_indices=AT, sp_values=holder(tf.int64, [4], "v"), sp_shape=SHAPE, dense=i64(-2))
    ],
    {"v": i64([7, -8, 9, 0])},
)
for how in ("Mul", "Div"):
    op = getattr(raw, "SparseDenseCwise" + how)
    for shape in ((3, 4), (3, 1), (4,)):
        dense = np.where(eighths(*shape) < 0, np.float32(-2), np.float32(3))
        name = "grad_entries_%s_%s" % (how.lower(), "_".join(map(str, shape)))
        differentiate(
            name, of(lambda x: op(sp_indices=AT, sp_values=x, sp_shape=SHAPE, dense=dense), 1), {"x": eighths(4)}
        )
        differentiate(
            name + "_dense",
            of(lambda x: op(sp_indices=AT, sp_values=f32([1, -2, 3, 0.5]), sp_shape=SHAPE, dense=x), len(shape)),
            {"x": dense},
        )

for dtype in (tf.float32, tf.float64):
    program(
        "sparse_softmax_" + dtype.name,
        lambda: [raw.SparseSoftmax(sp_indices=i, sp_values=v, sp_shape=s) for i, v, s in [sparse(dtype)]],
        fed(dtype),
        fed(dtype, at=()),
        fed(dtype, at=AT[:1]),
    )
CUBE = i64([[0, 0, 1], [0, 0, 2], [0, 1, 0], [1, 0, 0], [1, 0, 2], [1, 0, 3]])
program(
    "sparse_softmax_cube",
    lambda: [
        raw.SparseSoftmax(sp_indices=i, sp_values=v, sp_shape=s) for i, v, s in [sparse(tf.float32, shape=(None, 3))]
    ],
    fed(tf.float32, at=CUBE, shape=(2, 2, 4)),
)
differentiate(
    "grad_sparse_softmax",
    of(lambda x: raw.SparseSoftmax(sp_indices=CUBE, sp_values=x, sp_shape=[2, 2, 4]), 1),
    {"x": eighths(6)},
)

for dtype in (tf.float32, tf.float64, tf.float16, tf.int16):
    for index in (tf.int32, tf.int64):

        def plus_dense():
            i, v, s = sparse(dtype)
            return [
                raw.SparseTensorDenseAdd(
                    a_indices=tf.cast(i, index),
                    a_values=v,
                    a_shape=tf.cast(s, index),
                    b=holder(dtype, [None, None], "d"),
                )
            ]

        program(
            "sparse_plus_dense_%s_%s" % (dtype.name, index.name),
            plus_dense,
            {**fed(dtype), "d": eighths(3, 4).astype(dtype.as_numpy_dtype)},
            {**fed(dtype, at=[[0, 1], [0, 1], [2, 2]]), "d": eighths(3, 4).astype(dtype.as_numpy_dtype)},
            {**fed(dtype, at=()), "d": eighths(3, 4).astype(dtype.as_numpy_dtype)},
            ({**fed(dtype), "d": eighths(4, 4).astype(dtype.as_numpy_dtype)}, "which has the shape [4,4]"),
        )
differentiate(
    "grad_sparse_plus_dense",
    of(
        lambda x: raw.SparseTensorDenseAdd(
            a_indices=AT, a_values=x, a_shape=SHAPE, b=f32(np.arange(12).reshape(3, 4))
        ),
        1,
    ),
    {"x": eighths(4)},
)
differentiate(
    "grad_dense_plus_sparse",
    of(lambda x: raw.SparseTensorDenseAdd(a_indices=AT, a_values=f32([1, 2, 3, 4]), a_shape=SHAPE, b=x)),
    {"x": eighths(3, 4)},
)

for dtype in (tf.float32, tf.float64, tf.int32, tf.int8):
    for what in ("Sum", "Max"):
        for axes in ([0], [1], [-1], [0, 1], []):
            program(
                "sparse_%s_to_sparse_%s_%s" % (what.lower(), dtype.name, "_".join(map(str, axes)) or "none"),
                lambda: [
                    out
                    for i, v, s in [sparse(dtype)]
                    for keep in (False, True)
                    for out in getattr(raw, "SparseReduce%sSparse" % what)(
                        input_indices=i, input_values=v, input_shape=s, reduction_axes=i32(axes), keep_dims=keep
                    )
                ],
                fed(dtype),
                fed(dtype, at=AT[1:]),
            )
    for what in ("Maximum", "Minimum"):
        program(
            "sparse_%s_%s" % (what.lower(), dtype.name),
            lambda: list(
                getattr(raw, "SparseSparse" + what)(
                    **{
                        "%s_%s" % (n, k): x
                        for n in "ab"
                        for k, x in zip(("indices", "values", "shape"), sparse(dtype, n))
                    }
                )
            ),
            {**fed(dtype, "a"), **fed(dtype, "b", at=[[0, 0], [0, 3], [1, 1], [2, 3]], scale=-1)},
            {**fed(dtype, "a", at=()), **fed(dtype, "b")},
            ({**fed(dtype, "a"), **fed(dtype, "b", shape=(3, 5))}, "shapes do not match"),
        )
for n, axis in ((2, 0), (3, 1), (1, -1)):
    program(
        "sparse_split_%d_%d" % (n, axis),
        lambda: [
            part
            for i, v, s in [sparse(tf.float32)]
            for parts in raw.SparseSplit(split_dim=i64(axis), indices=i, values=v, shape=s, num_split=n)
            for part in parts
        ],
        fed(tf.float32),
        fed(tf.float32, at=AT[:1]),
        fed(tf.float32, at=()),
    )
program(
    "sparse_split_of_text",
    lambda: [
        part
        for parts in raw.SparseSplit(
            split_dim=i64(1), indices=AT, values=holder(tf.string, [4], "v"), shape=SHAPE, num_split=2
        )
        for part in parts
    ],
    {"v": np.array([b"a", b"bb", b"", b"d"], object)},
)
program(
    "sparse_split_too_often",
    lambda: list(
        raw.SparseSplit(
            split_dim=holder(tf.int64, [], "d"), indices=AT, values=f32([1, 2, 3, 4]), shape=SHAPE, num_split=5
        )[1]
    ),
    ({"d": i64(0)}, "5 parts"),
)

for a in (tf.float32, tf.bfloat16):
    for b in (tf.float32, tf.bfloat16):
        program(
            "product_of_sparse_%s_%s" % (a.name, b.name),
            lambda: [raw.MatMul(a=[[1.0]], b=[[2.0]])]
            + [
                raw.SparseMatMul(
                    a=tf.cast(holder(tf.float32, [None, 3], "a"), a),
                    b=tf.cast(holder(tf.float32, [None, 3], "b"), b),
                    transpose_b=True,
                    a_is_sparse=True,
                )
            ],
            {"a": eighths(2, 3), "b": eighths(4, 3)},
        )
differentiate(
    "grad_product_of_sparse",
    of(lambda x: raw.SparseMatMul(a=x, b=f32(np.arange(6).reshape(2, 3)), transpose_a=True, a_is_sparse=True)),
    {"x": eighths(2, 4)},
)

# ---- tensors as texts; sparse ones in data sets and queues ----

for dtype in (tf.float32, tf.int64, tf.bool, tf.int8):
    program(
        "text_of_" + dtype.name,
        lambda: [
            raw.ParseTensor(serialized=raw.SerializeTensor(tensor=x), out_type=dtype)
            for x in [holder(dtype, [None, 2], "x")]
        ],
        {"x": eighths(3, 2).astype(dtype.as_numpy_dtype)},
        {"x": np.zeros((0, 2), dtype.as_numpy_dtype)},
    )
program(
    "text_of_text",
    lambda: [
        raw.ParseTensor(serialized=raw.SerializeTensor(tensor=x), out_type=tf.string)
        for x in [holder(tf.string, [None], "x")]
    ],
    {"x": np.array([b"a", b"", b"ccc"], object)},
)
program(
    "text_of_tensorflow",
    lambda: [raw.ParseTensor(serialized=holder(tf.string, [], "s"), out_type=tf.float32)],
    {"s": np.array(tf.make_tensor_proto(eighths(2, 3)).SerializeToString(), object)},
    ({"s": np.array(tf.make_tensor_proto(1).SerializeToString(), object)}, "Type mismatch"),
    ({"s": np.array(b"\xff\xff\xff", object)}, "Could not parse"),
)


def texts():
    i, v, s = sparse(tf.float32)
    one, many = (
        op(sparse_indices=i, sparse_values=v, sparse_shape=s) for op in (raw.SerializeSparse, raw.SerializeManySparse)
    )
    rows = raw.DeserializeManySparse(serialized_sparse=tf.concat([many, many[:1]], 0), dtype=tf.float32)
    nested = raw.DeserializeSparse(serialized_sparse=tf.stack([[one, one], [one, one], [one, one]]), dtype=tf.float32)
    return list(rows) + list(nested) + list(raw.DeserializeSparse(serialized_sparse=one, dtype=tf.float32))


program("sparse_texts", texts, fed(tf.float32), fed(tf.float32, at=()), fed(tf.float32, at=AT[2:]))
program(
    "sparse_texts_of_another_type",
    lambda: list(
        raw.DeserializeSparse(
            serialized_sparse=raw.SerializeSparse(
                sparse_indices=AT, sparse_values=holder(tf.float32, [4], "v"), sparse_shape=SHAPE
            ),
            dtype=tf.int32,
        )
    ),
    ({"v": f32([1, 2, 3, 4])}, "(float) and dtype (int32)"),
)


def numbered():
    i, v, s = sparse(tf.float32)
    one = raw.AddSparseToTensorsMap(sparse_indices=i, sparse_values=v, sparse_shape=s, shared_name="one")
    rows = raw.AddManySparseToTensorsMap(sparse_indices=i, sparse_values=v, sparse_shape=s, shared_name="rows")
    return list(raw.TakeManySparseFromTensorsMap(sparse_handles=[one], dtype=tf.float32, shared_name="one")) + list(
        raw.TakeManySparseFromTensorsMap(sparse_handles=rows[::-1], dtype=tf.float32, shared_name="rows")
    )


program("numbered_sparse", numbered, fed(tf.float32), fed(tf.float32, at=AT[2:]), fed(tf.float32))
program(
    "numbered_sparse_that_is_not_there",
    lambda: list(raw.TakeManySparseFromTensorsMap(sparse_handles=holder(tf.int64, [1], "n"), dtype=tf.float32)),
    ({"n": i64([7])}, "Unable to find SparseTensor: 7"),
)


def example(ids, words, x):
    kinds = {
        "ids": tf.train.Feature(int64_list=tf.train.Int64List(value=ids)),
        "a_word": tf.train.Feature(bytes_list=tf.train.BytesList(value=words)),
        "x": tf.train.Feature(float_list=tf.train.FloatList(value=x)),
    }
    return tf.train.Example(features=tf.train.Features(feature=kinds)).SerializeToString(deterministic=True)


EXAMPLES = np.array(
    [
        example([1, 2], [b"a"], [0.5, 1]),
        example([], [b"bb", b"c"], [2, -1]),
        example([7], [], [0, 0]),
        example([3, 4, 5], [b"d"], [1, 1]),
    ],
    object,
)
FEATURES = {
    "ids": tf.VarLenFeature(tf.int64),
    "a_word": tf.VarLenFeature(tf.string),
    "x": tf.FixedLenFeature([2], tf.float32),
    "z": tf.FixedLenFeature([1], tf.int64, default_value=[9]),
}


def elements(data):
    """Of two features that are sparse and two that are dense; the data set is given once."""
    f = tf.data.make_one_shot_iterator(data()).get_next()
    return [t for s in (f["ids"], f["a_word"]) for t in (s.indices, s.values, s.dense_shape)] + [f["x"], f["z"]]


texts_of = lambda: tf.data.Dataset.from_tensor_slices(tf.constant(EXAMPLES))
program(
    "sparse_elements",
    lambda: elements(lambda: texts_of().map(lambda s: tf.parse_single_example(s, FEATURES))),
    {},
    {},
    {},
)
program(
    "batches_of_sparse_elements",
    lambda: elements(lambda: texts_of().map(lambda s: tf.parse_single_example(s, FEATURES)).skip(1).batch(2)),
    {},
    {},
    ({}, "End of sequence"),
)
program(
    "sparse_batches",
    lambda: elements(
        lambda: texts_of()
        .batch(3)
        .map(lambda s: tf.parse_example(s, FEATURES))
        .map(lambda f: {**f, "x": f["x"] + tf.sparse_reduce_sum(tf.cast(f["ids"], tf.float32))})
    ),
    {},
    {},
)
program(
    "parsed_by_the_data_set",
    lambda: elements(
        lambda: texts_of().batch(3).apply(tf.data.experimental.parse_example_dataset(FEATURES, 2)).repeat(2)
    ),
    {},
    {},
    {},
    {},
    ({}, "End of sequence"),
)
program(
    "parsed_by_the_data_set_without_a_word",
    lambda: elements(
        lambda: texts_of()
        .batch(3)
        .apply(tf.data.experimental.parse_example_dataset({**FEATURES, "z": tf.FixedLenFeature([1], tf.int64)}))
    ),
    ({}, "Feature: z (data type: int64) is required"),
)

# ---- sequences: a context, and lists of features ----


def sequence(y, words, steps):
    """steps: [ids, vector] of each."""
    s = tf.train.SequenceExample()
    s.context.feature["y"].int64_list.value.extend(y)
    if words:
        s.context.feature["words"].bytes_list.value.extend(words)
    for ids, vector in steps:
        s.feature_lists.feature_list["ids"].feature.add().int64_list.value.extend(ids)
        s.feature_lists.feature_list["vector"].feature.add().float_list.value.extend(vector)
    return s.SerializeToString(deterministic=True)


SEQUENCES = np.array(
    [
        sequence([3], [b"a", b"bb"], [([1, 2], [0.5, 1]), ([], [2, -1]), ([5], [0, 4])]),
        sequence([-1], [], [([7], [1, 1])]),
        sequence([0], [b"c"], []),
    ],
    object,
)
CONTEXT = {
    "y": tf.FixedLenFeature([1], tf.int64),
    "words": tf.VarLenFeature(tf.string),
    "z": tf.FixedLenFeature([], tf.float32, default_value=0.25),
}
LISTS = {"ids": tf.VarLenFeature(tf.int64), "vector": tf.FixedLenSequenceFeature([2], tf.float32, allow_missing=True)}


def flat(parsed):
    return [
        t
        for part in parsed
        for key in sorted(part)
        for x in [part[key]]
        for t in ([x.indices, x.values, x.dense_shape] if isinstance(x, tf.SparseTensor) else [x])
    ]


program(
    "sequences",
    lambda: flat(tf.io.parse_sequence_example(holder(tf.string, [None], "s"), CONTEXT, LISTS)),
    {"s": SEQUENCES},
    {"s": SEQUENCES[:1]},
    {"s": SEQUENCES[2:]},
    ({"s": np.array([b"\xff"], object)}, "ould not parse"),
)
program(
    "a_sequence",
    lambda: flat(tf.io.parse_single_sequence_example(holder(tf.string, [], "s"), CONTEXT, LISTS)),
    *[{"s": np.array(s, object)} for s in SEQUENCES]
)
required = {"vector": tf.FixedLenSequenceFeature([2], tf.float32)}
program(
    "a_sequence_without_a_list",
    lambda: flat(tf.io.parse_single_sequence_example(holder(tf.string, [], "s"), None, required)),
    {"s": np.array(SEQUENCES[0], object)},
    ({"s": np.array(SEQUENCES[2], object)}, "is required but could not be found"),
)
program(
    "a_sequence_of_wrong_vectors",
    lambda: flat(
        tf.io.parse_single_sequence_example(
            holder(tf.string, [], "s"), None, {"vector": tf.FixedLenSequenceFeature([3], tf.float32)}
        )
    ),
    ({"s": np.array(SEQUENCES[0], object)}, "vector"),
)
program(
    "sequences_without_a_context",
    lambda: flat(
        tf.io.parse_sequence_example(
            holder(tf.string, [None], "s"), {"missing": tf.FixedLenFeature([1], tf.int64)}, LISTS
        )
    ),
    ({"s": SEQUENCES}, "missing"),
)


def old_sequences(single):
    """As TensorFlow 1 parsed them."""
    s = holder(tf.string, [] if single else [None], "s")
    shapes = {
        "context_dense_shapes": [[1], []],
        "feature_list_dense_shapes": [[2]],
        "context_sparse_types": [tf.string],
        "feature_list_sparse_types": [tf.int64],
        "feature_list_dense_types": [tf.float32],
    }
    defaults = [i64([]), f32(0.25)]
    if single:
        made = raw.ParseSingleSequenceExample(
            serialized=s,
            feature_list_dense_missing_assumed_empty=["vector"],
            context_sparse_keys=["words"],
            context_dense_keys=["y", "z"],
            feature_list_sparse_keys=["ids"],
            feature_list_dense_keys=["vector"],
            context_dense_defaults=defaults,
            debug_name="",
            **shapes
        )
    else:
        made = raw.ParseSequenceExample(
            serialized=s,
            debug_name=[],
            context_dense_defaults=defaults,
            feature_list_dense_missing_assumed_empty=["vector"],
            context_sparse_keys=["words"],
            context_dense_keys=["y", "z"],
            feature_list_sparse_keys=["ids"],
            feature_list_dense_keys=["vector"],
            Ncontext_sparse=1,
            Ncontext_dense=2,
            Nfeature_list_sparse=1,
            Nfeature_list_dense=1,
            **shapes
        )
    return [t for part in made for t in part]


program("old_sequences", lambda: old_sequences(False), {"s": SEQUENCES}, {"s": SEQUENCES[1:2]})
program("an_old_sequence", lambda: old_sequences(True), *[{"s": np.array(s, object)} for s in SEQUENCES])

# ---- parts of variables and of tensors replaced ----

for resource in (False, True):

    def parts_of_variables():
        v = tf.Variable(f32(np.arange(12).reshape(3, 4)), use_resource=resource)
        x = holder(tf.float32, [2], "x")
        fetched = []
        for change in (
            lambda: v[1, 1:3].assign(x),
            lambda: v[:2, ::-3].assign([x, x + 1]),
            lambda: v[..., 2].assign([x[0], 0, 9]),
        ):
            with tf.control_dependencies(fetched):
                with tf.control_dependencies([change()]):
                    fetched.append(v.read_value() * 1)
        return fetched

    program(
        "part_of_a_%s" % ("resource" if resource else "reference"),
        parts_of_variables,
        {"x": f32([7, -1])},
        {"x": f32([0, 3])},
        init=True,
    )
program(
    "part_of_a_variable_of_another_shape",
    lambda: [tf.Variable(f32([1, 2, 3]), use_resource=True)[:2].assign(holder(tf.float32, [None], "x"))],
    ({"x": f32([1, 2, 3])}, "shape"),
    init=True,
)
program(
    "part_of_a_tensor",
    lambda: [
        raw.TensorStridedSliceUpdate(input=x, begin=[1, 0], end=[3, 4], strides=[1, 2], value=x[:2, :2] * 2)
        for x in [holder(tf.float32, [None, 4], "x")]
    ],
    {"x": eighths(3, 4)},
    {"x": eighths(5, 4)},
)
for i in range(2):
    differentiate(
        "grad_part_of_a_tensor_%d" % i,
        of(
            lambda x: raw.TensorStridedSliceUpdate(
                input=[x, f32(np.ones((3, 4)))][i],
                begin=[1, 0],
                end=[3, 4],
                strides=[1, 2],
                value=[f32([[1, 2], [3, 4]]), x[:2, :2]][i],
            )
        ),
        {"x": eighths(3, 4)},
    )

# ---- texts of many values, and of whole tensors ----

for dtype, values in (
    (tf.float64, np.array([[0.1, 1 / 3, 1e10], [-0.0, 123456.7, 2.5]])),
    (tf.float32, f32([[0.1, 1 / 3, 1e20], [-0.0, 123456789, 2.5], [1, 1e-7, np.inf], [np.nan, 1, 2]])),
    (tf.int64, i64([[1, -2, 3], [2**60, 0, 7], [4, 5, 6], [7, 8, 9]])),
    (tf.bool, np.array([[True, False, True]] * 4)),
):
    program(
        "sentence_of_" + dtype.name,
        lambda: [
            raw.StringFormat(inputs=[x, x[:, 0], x[0, 0]], template="a {} b {}{} c", placeholder="{}", summarize=n)
            for x in [holder(dtype, [None, 3], "x")]
            for n in (-1, 1, 3)
        ],
        {"x": values},
        {"x": values[:2]},
        {"x": values[:1]},
    )
program(
    "sentence_of_text",
    lambda: [
        raw.StringFormat(inputs=[x, x[0]], template="%s|%s", summarize=2) for x in [holder(tf.string, [None], "x")]
    ],
    {"x": np.array([b"a", b"q\"uote's", b"line\n\ttab\\ \x01\xc3\xa9", b"", b"e"], object)},
)
program(
    "sentence_of_letters",
    lambda: [raw.StringFormat(inputs=[holder(tf.string, [None], "x")], template="%s")],
    {"x": np.array(["wörld, 日本".encode(), b"\x00\x1f\x7f\x80\xff'"], object)},
)
program(
    "sentence_of_cubes",
    lambda: [raw.StringFormat(inputs=[holder(tf.int32, None, "x")], template="%s", summarize=1)],
    {"x": np.arange(27, dtype=np.int32).reshape(3, 3, 3)},
    {"x": i32(5)},
    {"x": np.zeros((2, 0), np.int32)},
)
LETTERS = np.array([[[b"a", b"b", b""], [b"c", b"d", b"ee"]], [[b"f", b"g", b"h"], [b"i", b"j", b"k"]]], object)
for axes in ([0], [-1], [1, 0], [0, 2], [2, 1, 0], []):
    program(
        "joined_" + "_".join(map(str, axes)).replace("-", "n"),
        lambda: [
            raw.ReduceJoin(inputs=x, reduction_indices=i32(axes), keep_dims=keep, separator=gap)
            for x in [holder(tf.string, [2, 2, 3], "x")]
            for keep, gap in ((False, ""), (True, ", "))
        ],
        {"x": LETTERS},
    )
program(
    "joined_twice",
    lambda: [raw.ReduceJoin(inputs=holder(tf.string, [2, 2, 3], "x"), reduction_indices=holder(tf.int32, [2], "a"))],
    ({"x": LETTERS, "a": i32([1, 1])}, "Duplicate reduction dimension 1"),
)
ABOUT = tf.SummaryMetadata(plugin_data=tf.SummaryMetadata.PluginData(plugin_name="text")).SerializeToString()
for dtype in (tf.float32, tf.int64, tf.string):
    program(
        "summary_of_" + dtype.name,
        lambda: [
            raw.MergeSummary(
                inputs=[
                    raw.TensorSummaryV2(tag="a/tag", tensor=x, serialized_summary_metadata=ABOUT),
                    raw.TensorSummary(tensor=x, name="named"),
                ]
            )
            for x in [holder(dtype, [None], "x")]
        ],
        {
            "x": (
                np.array([b"some", b"text"], object)
                if dtype == tf.string
                else i64([1, 2, 300]).astype(dtype.as_numpy_dtype)
            )
        },
    )

# ---- sets along the last axis ----

for dtype, kinds in (
    (tf.int64, i64([5, 1, -3, 7])),
    (tf.int8, np.int8([5, 1, -3, 7])),
    (tf.string, np.array([b"bb", b"a", b"", b"b"], object)),
):

    def operations():
        a, b = holder(dtype, [None, None], "x"), holder(dtype, [None, None], "y")
        i, v, s = sparse(dtype)
        found = []
        for how in ("a-b", "b-a", "intersection", "union"):
            found += raw.DenseToDenseSetOperation(set1=a, set2=b, set_operation=how)
            found += raw.DenseToSparseSetOperation(
                set1=a, set2_indices=i, set2_values=v, set2_shape=s, set_operation=how
            )
            found += raw.SparseToSparseSetOperation(
                set1_indices=AT[:3],
                set1_values=kinds[[0, 0, 2]],
                set1_shape=SHAPE,
                set2_indices=i,
                set2_values=v,
                set2_shape=s,
                set_operation=how,
            )
        return found + [raw.SetSize(set_indices=i, set_values=v, set_shape=s)]

    some = {
        "x": kinds[[[0, 0, 1], [2, 3, 3], [1, 1, 1]]],
        "y": kinds[[[1, 2], [3, 2], [0, 2]]],
        "i": AT,
        "v": kinds[[1, 1, 2, 0]],
        "s": SHAPE,
    }
    program(
        "sets_of_" + dtype.name,
        operations,
        some,
        {**some, "i": AT[:1], "v": kinds[:1]},
        {**some, "i": i64(np.zeros((0, 2))), "v": kinds[:0]},
        ({**some, "i": AT[::-1]}, "out of"),
        ({**some, "x": some["x"][:2]}, "group"),
    )

# ---- numbers that are drawn until they fit; functions of the beta and Bessel families ----

ALPHAS = f32([[0.1, 1, 0.9], [2.5, 30, 1000]])
for dtype in (tf.float32, tf.float64, tf.float16):
    program(
        "gamma_samples_" + dtype.name,
        lambda: [raw.RandomGamma(shape=[5, 4], alpha=holder(dtype, None, "a"), seed=3, seed2=7)],
        *[{"a": a.astype(dtype.as_numpy_dtype)} for a in (ALPHAS, ALPHAS[1, 0], ALPHAS[:, :0], ALPHAS)]
    )
for rate in (tf.float64, tf.int32, tf.float32):
    for dtype in (tf.int64, tf.float32, tf.int32):
        program(
            "poisson_samples_%s_%s" % (rate.name, dtype.name),
            lambda: [raw.RandomPoissonV2(shape=[7], rate=holder(rate, None, "a"), seed=3, seed2=7, dtype=dtype)],
            *[{"a": np.array(a).astype(rate.as_numpy_dtype)} for a in ([[0, 1], [9.5, 10], [33, 12345]], 4, [])]
        )
differentiate(
    "grad_gamma_samples",
    of(lambda x: raw.RandomGamma(shape=[3], alpha=x, seed=3, seed2=7), 1),
    {"x": f32([0.5, 2, 7])},
)
program(
    "gamma_samples_by_alpha",
    lambda: [raw.RandomGammaGrad(alpha=holder(tf.float64, [None], "a"), sample=[[0.1], [1.0], [4.0]])],
    {"a": np.array([0.2, 1, 3.5, 9])},
)
PARTS = np.array([0.0, 0.03, 0.5, 0.9, 1])
for dtype in (tf.float32, tf.float64):
    program(
        "beta_" + dtype.name,
        lambda: [raw.Betainc(a=tf.constant(0.5, dtype), b=tf.constant(2.5, dtype), x=holder(dtype, [5], "p"))],
        {"p": PARTS.astype(dtype.as_numpy_dtype)},
    )
program(
    "beta_of_all",
    lambda: [raw.Betainc(a=holder(tf.float64, [5], "a"), b=holder(tf.float64, [5], "b"), x=PARTS)],
    {"a": np.array([1, 0.2, 30, 4, 2.0]), "b": np.array([3, 10, 28, 0.3, 2.0])},
    {"a": np.array([1, -1, 5, 400, 2.0]), "b": np.array([3, 1, 0.1, 50, 0])},
)
differentiate(
    "grad_beta", of(lambda x: raw.Betainc(a=f32([0.5, 2, 8]), b=f32(1.5), x=x), 1), {"x": f32([0.1, 0.5, 0.75])}
)
for op in (raw.BesselI0e, raw.BesselI1e):
    name = "bessel_%d" % (op is raw.BesselI1e)
    program(name, lambda: [op(x=holder(tf.float64, [None], "x"))], {"x": np.array([0, 0.1, -3, 8, 29, 31, -400, 1e5])})
    differentiate("grad_" + name, of(lambda x: op(x=x), 1), {"x": f32([0, 0.25, -3, 9])})

# ---- products, norms and running sums of few programs; integers that floats become and are floats again ----

for dtype in (tf.float32, tf.float64, tf.int32):
    program(
        "cross_" + dtype.name,
        lambda: [raw.Cross(a=holder(dtype, [None, 3], "a"), b=holder(dtype, [None, 3], "b"))],
        {"a": (8 * eighths(2, 3)).astype(dtype.as_numpy_dtype), "b": (8 * eighths(2, 3)).astype(dtype.as_numpy_dtype)},
    )
program(
    "cross_of_four",
    lambda: [raw.Cross(a=holder(tf.float32, None, "a"), b=holder(tf.float32, None, "b"))],
    ({"a": eighths(2, 4), "b": eighths(2, 4)}, "3"),
)
for i in range(2):
    differentiate(
        "grad_cross_%d" % i,
        of(lambda x: raw.Cross(**dict(zip(["ab", "ba"][i], (x, f32([[1, -2, 3], [0.5, 4, 1]])))))),
        {"x": eighths(2, 3)},
    )
for dtype in (tf.float32, tf.float64):
    program(
        "norm_" + dtype.name,
        lambda: [
            raw.EuclideanNorm(input=x, axis=axes, keep_dims=keep)
            for x in [holder(dtype, [None, 3, 2], "x")]
            for axes in (0, [1], [0, 2], [-1, 1, 0], [])
            for keep in (False, True)
        ],
        {"x": eighths(2, 3, 2).astype(dtype.as_numpy_dtype)},
        {"x": np.zeros((0, 3, 2), dtype.as_numpy_dtype)},
    )
    program(
        "running_logsumexp_" + dtype.name,
        lambda: [
            raw.CumulativeLogsumexp(x=x, axis=axis, exclusive=exclusive, reverse=reverse)
            for x in [holder(dtype, [None, 3], "x")]
            for axis in (0, -1)
            for exclusive in (False, True)
            for reverse in (False, True)
        ],
        {"x": eighths(4, 3).astype(dtype.as_numpy_dtype)},
        {"x": np.array([[-np.inf, 1, 1000], [-np.inf, 2, -1000], [0, 3, np.inf]]).astype(dtype.as_numpy_dtype)},
    )
for axes in (0, [0, 1]):
    differentiate(
        "grad_norm_%d" % (axes != 0),
        of(lambda x: raw.EuclideanNorm(input=x, axis=axes)),
        {"x": eighths(3, 2) + f32(3)},
    )
for exclusive in (False, True):
    for reverse in (False, True):
        differentiate(
            "grad_running_logsumexp_%d_%d" % (exclusive, reverse),
            of(lambda x: tf.maximum(raw.CumulativeLogsumexp(x=x, axis=0, exclusive=exclusive, reverse=reverse), -9)),
            {"x": eighths(4, 2)},
        )
program(
    "parallel_concat",
    lambda: [tf.parallel_stack([x[0], x[1]]) for x in [holder(tf.float32, [2, 3], "x")]],
    {"x": eighths(2, 3)},
)
program("guaranteed", lambda: [tf.guarantee_const(holder(tf.float32, [2], "x") + 1)], {"x": eighths(2)})

for dtype in (tf.float32, tf.float64):

    def round_trips():
        x = holder(dtype, [2, 3, 4], "x")
        low, high = tf.constant(-1.5, dtype), tf.constant(0.75, dtype)
        made = [
            raw.QuantizeAndDequantizeV2(
                input=x,
                input_min=low,
                input_max=high,
                signed_input=signed,
                num_bits=bits,
                range_given=given,
                round_mode=mode,
                narrow_range=narrow,
            )
            for signed, bits, given, mode, narrow in (
                (True, 8, False, "HALF_TO_EVEN", False),
                (True, 3, True, "HALF_UP", False),
                (False, 4, True, "HALF_TO_EVEN", False),
                (True, 4, True, "HALF_TO_EVEN", True),
                (False, 2, False, "HALF_UP", False),
                (True, 16, False, "HALF_UP", True),
            )
        ]
        made += [
            raw.QuantizeAndDequantizeV3(input=x, input_min=low, input_max=high, num_bits=bits, range_given=given)
            for bits, given in ((5, True), (3, False))
        ]
        return made

    program(
        "round_trips_" + dtype.name,
        round_trips,
        *[
            {"x": x.astype(dtype.as_numpy_dtype)}
            for x in (eighths(2, 3, 4), np.zeros((2, 3, 4)), np.abs(eighths(2, 3, 4)), -np.abs(eighths(2, 3, 4)))
        ]
    )
differentiate(
    "grad_round_trip",
    of(lambda x: raw.QuantizeAndDequantizeV2(input=x, input_min=-1.0, input_max=1.0, num_bits=4, range_given=True)),
    {"x": eighths(2, 3)},
)

# ---- pictures ----

noise = random.integers(0, 256, (12, 10, 3)).astype(np.uint8)
with tf.Session(graph=tf.Graph()) as session:
    JPEG, GREY_JPEG = (session.run(tf.image.encode_jpeg(tf.constant(x), quality=90)) for x in (noise, noise[:, :, :1]))
for window in ([0, 0, 12, 10], [1, 2, 5, 6], [11, 9, 1, 1], [3, 5, 8, 3]):
    program(
        "window_of_a_jpeg_" + "_".join(map(str, window)),
        lambda: [
            tf.image.decode_and_crop_jpeg(holder(tf.string, [], "f"), window, channels=channels) for channels in (0,)
        ],
        {"f": np.array(JPEG, object)},
        {"f": np.array(GREY_JPEG, object)},
    )
program(
    "window_beside_a_jpeg",
    lambda: [tf.image.decode_and_crop_jpeg(holder(tf.string, [], "f"), [5, 5, 8, 3])],
    ({"f": np.array(JPEG, object)}, "rop window"),
)


def bmp(pixels, down=False):
    """As files have it: rows from below, of a multiple of 4 bytes, blue first."""
    height, width, channels = pixels.shape
    rows = pixels if down else pixels[::-1]
    rows = rows[..., [2, 1, 0, 3][:channels]] if channels > 1 else rows
    lines = [r.tobytes() + b"\0" * (-r.size % 4) for r in rows]
    number = lambda x, size: int(x).to_bytes(size, "little", signed=True)
    head = (
        number(40, 4)
        + number(width, 4)
        + number(-height if down else height, 4)
        + number(1, 2)
        + number(8 * channels, 2)
    )
    return np.array(
        b"BM" + number(0, 4) + number(0, 4) + number(54, 4) + head.ljust(40, b"\0") + b"".join(lines), object
    )


BMPS = [bmp(noise), bmp(noise[:3, :2], True), bmp(noise[:, :, :1]), bmp(np.concatenate([noise, noise[..., :1]], -1))]
program(
    "bmps",
    lambda: [tf.image.decode_bmp(holder(tf.string, [], "f"))],
    *[{"f": b} for b in BMPS],
    ({"f": np.array(b"BM", object)}, "ncomplete bmp content")
)
program(
    "images_that_are_bmps", lambda: [raw.DecodeImage(contents=holder(tf.string, [], "f"))], *[{"f": b} for b in BMPS]
)

# ---- sound ----

audio = tf.audio


def wav(samples, rate=16000):
    """As files have it, with a piece that nobody reads."""
    channels, bytes_of = samples.shape[1], lambda *numbers: b"".join(n.to_bytes(size, "little") for n, size in numbers)
    head = b"fmt " + bytes_of(
        (16, 4), (1, 2), (channels, 2), (rate, 4), (2 * rate * channels, 4), (2 * channels, 2), (16, 2)
    )
    rest = (
        b"LIST\2\0\0\0ab" + b"data" + np.array([2 * samples.size], "<i4").tobytes() + samples.astype("<i2").tobytes()
    )
    return np.array(b"RIFF\0\0\0\0WAVE" + head + rest, object)


noise = random.integers(-30000, 30000, (40, 2))
program(
    "wav",
    lambda: [
        t
        for f in [holder(tf.string, [], "f")]
        for channels, samples in ((-1, -1), (1, 30), (3, 50))
        for t in audio.decode_wav(f, desired_channels=channels, desired_samples=samples)
    ],
    {"f": wav(noise)},
    {"f": wav(noise[:, :1], 8000)},
    ({"f": np.array(b"RIFF", object)}, "RIFF"),
)
for squared in (False, True):
    program(
        "spectrogram_%d" % squared,
        lambda: [
            raw.AudioSpectrogram(
                input=holder(tf.float32, [None, 2], "x"), window_size=window, stride=stride, magnitude_squared=squared
            )
            for window, stride in ((8, 4),)
        ],
        {"x": eighths(30, 2)},
        {"x": eighths(7, 2)},
    )
program(
    "spectrogram_of_odd_windows",
    lambda: [raw.AudioSpectrogram(input=holder(tf.float32, [None, 1], "x"), window_size=11, stride=3)],
    {"x": eighths(40, 1)},
)
program(
    "mfcc",
    lambda: [
        m
        for s in [tf.abs(holder(tf.float32, [1, None, 129], "x"))]
        for m in (
            raw.Mfcc(spectrogram=s, sample_rate=16000),
            raw.Mfcc(
                spectrogram=s,
                sample_rate=11025,
                upper_frequency_limit=5000,
                lower_frequency_limit=100,
                filterbank_channel_count=6,
                dct_coefficient_count=5,
            ),
        )
    ],
    {"x": eighths(1, 2, 129)},
    {"x": np.zeros((1, 1, 129), np.float32)},
)

# ---- images through projective transforms ----

TURNS = f32([[0.8, -0.6, 1.5, 0.6, 0.8, -0.5, 0, 0], [1.2, 0.1, -1, 0, 0.9, 0.25, 0.02, -0.01]])
for dtype in (tf.float32, tf.float64, tf.uint8, tf.int64):
    program(
        "warped_" + dtype.name,
        lambda: [
            raw.ImageProjectiveTransformV2(
                images=x, transforms=t, output_shape=size, interpolation=how, fill_mode=fill
            )
            for x in [holder(dtype, [2, 5, 6, 2], "x")]
            for t in (TURNS, TURNS[1:])
            for size in ([5, 6], [3, 8])
            for how in ("NEAREST", "BILINEAR")
            for fill in ("CONSTANT", "NEAREST")
        ],
        {"x": (np.abs(eighths(2, 5, 6, 2)) * 16).astype(dtype.as_numpy_dtype)},
    )
for fill in ("REFLECT", "WRAP"):
    program(
        "warped_by_" + fill.lower(),
        lambda: [
            raw.ImageProjectiveTransformV2(
                images=x,
                transforms=[[1.0, 0, shift, 0, 1, 2 * shift, 0, 0]],
                output_shape=[4, 7],
                interpolation="BILINEAR",
                fill_mode=fill,
            )
            for x in [holder(tf.float32, [1, 5, 6, 1], "x")]
            for shift in (-1.25, 3.5, -20.25, 17.0)
        ],
        {"x": eighths(1, 5, 6, 1)},
    )
for size in ([5, 6], [3, 4]):
    differentiate(
        "grad_warped_%d" % size[0],
        of(
            lambda x: raw.ImageProjectiveTransformV2(
                images=x, transforms=TURNS, output_shape=size, interpolation="BILINEAR"
            ),
            4,
        ),
        {"x": eighths(2, 5, 6, 1)},
    )

# ---- tables ----


def dense_table(dtype):
    lookup, keys = tf.lookup.experimental, holder(dtype, [None], "k")
    words = {tf.int64: (-1, -2), tf.string: ("", "-")}[dtype]
    t = lookup.DenseHashTable(
        dtype, tf.float32, default_value=-1.0, empty_key=words[0], deleted_key=words[1], name="t"
    )
    before = t.lookup(keys)
    with tf.control_dependencies([before]):
        with tf.control_dependencies([t.insert(keys[:2], [1.5, 2.5])]):
            return [before, t.lookup(keys), t.size()]


program(
    "dense_table_of_int64", lambda: dense_table(tf.int64), *[{"k": i64(k)} for k in ([3, 5, 7], [7, 3, 5], [5, 9, 11])]
)
program(
    "dense_table_of_text",
    lambda: dense_table(tf.string),
    *[{"k": np.array(k, object)} for k in ([b"a", b"bb", b"c"], [b"c", b"a", b"bb"])]
)


# ---- pictures that move ----


def packed(colours, least):
    """By Lempel, Ziv and Welch's method, in pieces."""
    clear, out, held, count = 1 << least, bytearray(), 0, 0
    codes, width, at = {(k,): k for k in range(clear)}, least + 1, ()

    def put(code):
        nonlocal held, count
        held |= code << count
        count += width
        while count >= 8:
            out.append(held & 255)
            held >>= 8
            count -= 8

    put(clear)
    for c in [int(c) for c in colours]:
        if at + (c,) in codes:
            at += (c,)
            continue
        put(codes[at])
        codes[at + (c,)] = len(codes) + 2
        if len(codes) + 2 > 1 << width:
            width += 1
        if width > 12:
            width = 12
            put(clear)
            codes, width = {(k,): k for k in range(clear)}, least + 1
        at = (c,)
    put(codes[at])
    put(clear + 1)
    out.append(held & 255)
    pieces = [out[i : i + 200] for i in range(0, len(out), 200)]
    return bytes([least]) + b"".join(bytes([len(p)]) + p for p in pieces) + b"\0"


def gif(frames, palette, bits):
    """Frames are places, colours [height,width], whether rows come in passes, a colour to see through, an own palette."""
    short = lambda *numbers: b"".join(int(n).to_bytes(2, "little") for n in numbers)
    file = b"GIF89a" + short(9, 9) + bytes([0x80 | bits - 1, 0, 0]) + palette.tobytes()
    for left, top, colours, passes, through, own in frames:
        if through is not None:
            file += b"\x21\xf9\4\1\0\0" + bytes([through]) + b"\0"
        rows = [y for start, step in ((0, 8), (4, 8), (2, 4), (1, 2)) for y in range(start, len(colours), step)]
        flags = (0x40 if passes else 0) | (0x80 | bits - 1 if own is not None else 0)
        file += b"\x2c" + short(left, top, colours.shape[1], colours.shape[0]) + bytes([flags])
        file += (b"" if own is None else own.tobytes()) + packed(
            (colours[rows] if passes else colours).ravel(), max(bits, 2)
        )
    return np.array(file + b"\x21\xfe\3abc\0\x3b", object)


def drawn(bits, *shape):
    return random.integers(0, 1 << bits, shape)


colours = lambda bits: random.integers(0, 256, (1 << bits, 3)).astype(np.uint8)
GIFS = [
    gif([(0, 0, drawn(3, 9, 9), False, None, None)], colours(3), 3),
    gif(
        [
            (0, 0, drawn(2, 9, 9), True, None, None),
            (2, 3, drawn(2, 4, 5), False, 1, None),
            (6, 6, drawn(2, 5, 5), True, None, colours(2)),
        ],
        colours(2),
        2,
    ),
    gif([(0, 0, drawn(8, 120, 90), False, None, None)], colours(8), 8),
    gif([(0, 0, np.zeros((60, 70), int), False, None, None)], colours(1), 1),
]
program("gifs", lambda: [tf.image.decode_gif(holder(tf.string, [], "f"))], *[{"f": g} for g in GIFS])
program(
    "gif_cut_short",
    lambda: [tf.image.decode_gif(holder(tf.string, [], "f"))],
    ({"f": np.array(GIFS[0].item()[:60], object)}, "nvalid GIF"),
)


# ---- conditions in conditions in a loop whose rounds end at a border: predicates of the gradients cross it ----


def conditions_behind_borders():
    x = holder(tf.float32, [None, 3], "x")
    n = tf.shape(x)[0]
    rows = tf.TensorArray(tf.float32, n, infer_shape=False).split(x * 2, tf.ones([n], tf.int32))

    def body(i, kept, total):
        row = tf.reshape(rows.read(i), [1, 3])
        row = tf.cond(
            tf.equal(i % 3, 0),
            lambda: row * 2,
            lambda: tf.cond(tf.equal(i % 3, 1), lambda: tf.tanh(row), lambda: tf.reverse(row, [1])),
        )
        total = total * 0.5 + row
        return i + 1, kept.write(i, total), total

    kept = tf.TensorArray(tf.float32, n, clear_after_read=False)
    kept = tf.while_loop(lambda i, *_: i < n, body, [0, kept, tf.zeros([1, 3])])[1].concat()
    return [kept, tf.gradients(tf.reduce_sum(tf.square(kept)), x)[0]]


program(
    "conditions_behind_borders",
    conditions_behind_borders,
    {"x": eighths(5, 3)},
    {"x": eighths(1, 3)},
    {"x": eighths(3, 3)},
)
