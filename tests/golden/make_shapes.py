#!/usr/bin/env python3
"""Writes shapes.txt: small programs whose shapes depend on values, exported and run by TensorFlow, for
tests/test_shapes.c."""
from graph_cases import begin, differentiate, eighths, holder, np, of, once_more, program, random, raw, reseed, tf, words
from op_cases import f32, f64, i32, i64

begin("shapes.txt", __file__, 7)

# ---- Where, boolean_mask ----

for dtype in (tf.bool, tf.float32, tf.float64, tf.int64, tf.uint8):
    def where():
        return [tf.where(holder(dtype, [None, 3], "x"))]
    program("where_" + dtype.name, where, *[{"x": random.integers(0, 2, (n, 3)).astype(dtype.as_numpy_dtype)}
                                            for n in (2, 0, 4, 2)])
program("where_edges", lambda: [tf.where(holder(tf.float32, None, "x"))], {"x": f32([-0.0, np.nan, np.inf, 0])},
        {"x": np.zeros((2, 0, 3), np.float32)}, {"x": eighths(2, 2, 3, 2)})


def mask():
    x, keep = holder(tf.float32, [None, 2], "x"), holder(tf.bool, [None], "keep")
    kept = tf.boolean_mask(x, keep)
    loss = tf.reduce_sum(kept * kept)
    return [kept, tf.shape(kept), tf.reduce_mean(kept, 0), tf.gradients(loss, x)[0]]


program("boolean_mask", mask, *[{"x": eighths(n, 2), "keep": random.integers(0, 2, n).astype(bool)} for n in (3, 5, 1, 8, 3)])


def mask_2d():
    x, keep = holder(tf.float32, [None, None, 2], "x"), holder(tf.bool, [None, None], "keep")
    kept = tf.boolean_mask(x, keep)
    return [kept, tf.gradients(tf.reduce_sum(tf.square(kept)), x)[0]]


program("boolean_mask_2d", mask_2d, *[{"x": eighths(n, 2, 2), "keep": random.integers(0, 2, (n, 2)).astype(bool)}
                                      for n in (3, 1, 3)])

# ---- Unique and its like ----

for name, values in (("float", f32([1, 2, 1, -0.0, 0, np.nan, np.nan, 2])), ("string", words("b", "a", "b", "", "a")),
                     ("int64", i64([5, 5, 5])), ("int32", i32([])), ("uint8", np.array([3, 1, 3], np.uint8))):
    def unique():
        x = holder(tf.as_dtype(values.dtype) if values.dtype != object else tf.string, [None], "x")
        y, idx = tf.unique(x, out_idx=tf.int64)
        counted, places, counts = tf.unique_with_counts(x)
        return [y, idx, counted, places, counts, tf.gather(counted, places), tf.shape(y)]
    program("unique_" + name, unique, {"x": values}, {"x": values[:2]}, {"x": values})


def unique_axis(axis):
    def build():
        x = holder(tf.float32, [None, None, 2], "x")
        all = raw.UniqueWithCountsV2(x=x, axis=np.array([axis], np.int64))
        return [all.y, all.idx, all.count, raw.UniqueV2(x=x, axis=np.array([axis], np.int32))[0]]
    return build


rows = f32([[[1, 2], [3, 4]], [[1, 2], [3, 4]], [[0, 2], [0, 2]]])
for axis in (0, 1, 2, -2):
    program("unique_axis_%d" % axis, unique_axis(axis), {"x": rows}, {"x": rows[:1]}, {"x": np.zeros((0, 2, 2), np.float32)})
program("list_diff", lambda: list(tf.setdiff1d(holder(tf.int32, [None], "x"), holder(tf.int32, [None], "y"))),
        {"x": i32([1, 2, 3, 4, 2]), "y": i32([2, 7])}, {"x": i32([]), "y": i32([2])}, {"x": i32([1]), "y": i32([])},
        {"x": i32([1, 1]), "y": i32([1])})
program("list_diff_strings", lambda: list(tf.setdiff1d(holder(tf.string, [None], "x"), tf.constant(["a", "b"]), tf.int64)),
        {"x": words("a", "c", "b", "", "c")}, {"x": words("a")})

# ---- partitions and stitches ----


def partition():
    x, parts = holder(tf.float32, [None, 2], "x"), holder(tf.int32, [None], "parts")
    pieces = tf.dynamic_partition(x, parts, 3)
    doubled = [p * float(i + 1) for i, p in enumerate(pieces)]
    indices = tf.dynamic_partition(tf.range(tf.shape(x)[0]), parts, 3)
    back = tf.dynamic_stitch(indices, doubled)
    return pieces + [back, tf.gradients(tf.reduce_sum(back * back), x)[0], tf.gradients(pieces[1], x)[0]]


program("dynamic_partition", partition,
        *[{"x": eighths(n, 2), "parts": random.integers(0, 3, n).astype(np.int32)} for n in (4, 0, 6, 4, 1)],
        ({"x": eighths(2, 2), "parts": i32([0, 3])}, "is not in [0, 3)"))


def stitch():
    a, b = holder(tf.int32, [None], "a"), holder(tf.int32, [None, None], "b")
    x, y = holder(tf.float32, [None, 3], "x"), holder(tf.float32, [None, None, 3], "y")
    merged = tf.dynamic_stitch([a, b], [x, y])
    return [merged, raw.ParallelDynamicStitch(indices=[a, b], data=[x, y]), tf.reduce_sum(merged),
            *tf.gradients(merged * merged, [x, y])]


program("dynamic_stitch", stitch, {"a": i32([0, 2]), "b": i32([[1, 3]]), "x": eighths(2, 3), "y": eighths(1, 2, 3)},
        {"a": i32([0]), "b": i32([[2], [1]]), "x": eighths(1, 3), "y": eighths(2, 1, 3)},
        {"a": i32([]), "b": np.zeros((0, 1), np.int32), "x": eighths(0, 3), "y": eighths(0, 1, 3)})

# ---- segments ----


def segments():
    x, ids, n = holder(tf.float32, [None, 2], "x"), holder(tf.int32, [None], "ids"), holder(tf.int32, [], "n")
    total = tf.segment_sum(x, ids)
    some = tf.unsorted_segment_sum(x, ids, n)
    return [total, some, tf.gradients(total * total, x)[0], tf.gradients(some * some, x)[0]]


program("segments", segments, {"x": eighths(4, 2), "ids": i32([0, 0, 1, 3]), "n": i32(5)},
        {"x": eighths(2, 2), "ids": i32([0, 1]), "n": i32(2)}, {"x": eighths(4, 2), "ids": i32([0, 0, 1, 3]), "n": i32(5)},
        {"x": eighths(0, 2), "ids": i32([]), "n": i32(0)})
program("segments_half", lambda: [tf.segment_sum(holder(tf.float16, [None, 2], "x"), holder(tf.int64, [None], "ids"))],
        {"x": eighths(3, 2, dtype=np.float16), "ids": i64([0, 1, 1])}, {"x": eighths(2, 2, dtype=np.float16), "ids": i64([0, 2])})

# ---- boxes ----

boxes = f32([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]])
scores = f32([0.9, 0.75, 0.6, 0.95, 0.5, 0.3])


def suppression():
    b, s, n = holder(tf.float32, [None, 4], "b"), holder(tf.float32, [None], "s"), holder(tf.int32, [], "n")
    first = raw.NonMaxSuppression(boxes=b, scores=s, max_output_size=n, iou_threshold=0.5)
    second = raw.NonMaxSuppressionV2(boxes=b, scores=s, max_output_size=n, iou_threshold=0.3)
    third = raw.NonMaxSuppressionV3(boxes=b, scores=s, max_output_size=n, iou_threshold=0.5, score_threshold=0.4)
    fourth = raw.NonMaxSuppressionV4(boxes=b, scores=s, max_output_size=n, iou_threshold=0.5, score_threshold=0.4,
                                     pad_to_max_output_size=True)
    fifth = raw.NonMaxSuppressionV5(boxes=b, scores=s, max_output_size=n, iou_threshold=1.0, score_threshold=0.1,
                                    soft_nms_sigma=0.5)
    return [first, second, third, tf.gather(b, third), *fourth, *fifth, tf.gather(s, fifth[0]) - fifth[1]]


program("non_max_suppression", suppression, {"b": boxes, "s": scores, "n": i32(3)}, {"b": boxes, "s": scores, "n": i32(30)},
        {"b": boxes[:2], "s": scores[:2], "n": i32(3)}, {"b": boxes[:0], "s": scores[:0], "n": i32(3)},
        {"b": boxes, "s": scores, "n": i32(3)})

# ---- operands that say shapes ----


def operands():
    n, x = holder(tf.int32, [], "n"), holder(tf.float32, [None, None], "x")
    rows = tf.shape(x)[0]
    return [tf.range(n), tf.fill([n, rows], 0.5), tf.tile(x, [n, 1]), tf.reshape(x, [-1, n]), x[n:], x[:, :n],
            tf.slice(x, [0, n - 1], [rows, 1]), tf.slice(x, [n - 1, 0], [-1, -1]), tf.pad(x, [[n, 0], [0, n]]),
            tf.broadcast_to(x[:1], [n, tf.shape(x)[1]]), tf.expand_dims(x, n - 1), tf.one_hot([0, 1], n),
            tf.zeros(tf.stack([n, n])), tf.concat([x, tf.zeros([n, tf.shape(x)[1]])], 0), x[n - 1], tf.linspace(0.0, 1.0, n),
            tf.transpose(x, tf.stack([n - 1, 2 - n])), tf.reduce_sum(x, n - 1), tf.split(x, [n, rows - n], 0)[1],
            tf.nn.top_k(x, n)[0], tf.argmax(x, n - 1),
            tf.image.resize_nearest_neighbor(tf.reshape(x, [1, rows, -1, 1]), [n, n])]


program("operands", operands, {"n": i32(2), "x": eighths(3, 4)}, {"n": i32(1), "x": eighths(2, 2)},
        {"n": i32(2), "x": eighths(2, 6)}, {"n": i32(2), "x": eighths(3, 4)})
program("range_float", lambda: [tf.range(0.0, holder(tf.float32, [], "n"), 0.5) * 2.0], {"n": f32(2)}, {"n": f32(0)}, {"n": f32(1.3)})


def gradients():
    n, x = holder(tf.int32, [], "n"), holder(tf.float32, [None, None], "x")
    made = [tf.tile(x, [n, 1]), tf.reshape(x, [-1, n]), x[n - 1:], tf.slice(x, [n - 1, 0], [-1, -1]), tf.pad(x, [[n, 0], [0, n]]),
            tf.broadcast_to(x[:1], [n, tf.shape(x)[1]]), tf.expand_dims(x, n - 1), tf.concat([x, tf.zeros([n, tf.shape(x)[1]])], 0),
            x[n - 1], tf.transpose(x, tf.stack([n - 1, 2 - n])), tf.reduce_sum(x, n - 1), tf.reduce_max(x, n - 1),
            tf.reduce_mean(x, n - 1), tf.reduce_prod(x, n - 1), tf.nn.top_k(x, n)[0], tf.gather(x, [0, n - 1]),
            tf.cumsum(x, n - 1), tf.fill([n], tf.reduce_sum(x))]
    return [tf.identity(tf.convert_to_tensor(tf.gradients(tf.reduce_sum(m * m), x)[0])) for m in made]


program("operand_gradients", gradients, {"n": i32(2), "x": eighths(3, 4)}, {"n": i32(1), "x": eighths(2, 2)},
        {"n": i32(2), "x": eighths(2, 6)})


def chain():
    x = holder(tf.int32, [None], "x")
    first = tf.boolean_mask(x, x > 0)
    second = tf.unique(first)[0]
    third = tf.boolean_mask(second, second < 10)
    return [first, second, third, tf.reduce_sum(third), tf.fill([tf.size(third), tf.reduce_max(tf.concat([third, [1]], 0))], 1)]


program("chain", chain, {"x": i32([3, -1, 3, 2, 40])}, {"x": i32([-3])}, {"x": i32([1, 2, 3, 11, 12])}, {"x": i32([3, -1, 3, 2, 40])})

# ---- queues, strings ----


def queues():
    q = tf.FIFOQueue(20, [tf.float32, tf.string], [[2], []])
    x, s = holder(tf.float32, [None, 2], "x"), holder(tf.string, [None], "s")
    some, texts = q.dequeue_up_to(3)
    padded = tf.PaddingFIFOQueue(20, [tf.int32], [[None]])
    v = holder(tf.int32, [None], "v")
    any = tf.FIFOQueue(20, [tf.float32])
    return {"put": [q.enqueue_many([x, s])], "close": [q.close()], "": [some, texts, tf.reduce_sum(some), tf.shape(some)],
            "pad": [padded.enqueue([v])], "padded": [padded.dequeue_many(2)], "padded_up": [padded.dequeue_up_to(3)],
            "close_padded": [padded.close()], "any": [any.enqueue([x])], "taken": [any.dequeue() * 2.0, q.size()]}


program("queues", queues, ({"x": eighths(5, 2), "s": words("a", "b", "c", "", "e")}, "put"), {}, ({}, "close"), {},
        ({}, "is closed and has insufficient elements"), ({"v": i32([1])}, "pad"), ({"v": i32([2, 3, 4])}, "pad"),
        ({}, "padded"), ({"v": i32([1, 2])}, "pad"), ({"v": i32([3])}, "pad"), ({}, "close_padded"), ({}, "padded_up"),
        ({"x": eighths(3, 2)}, "any"), ({"x": eighths(1, 2)}, "any"), ({}, "taken"), ({}, "taken"))


def strings():
    s = holder(tf.string, [None], "s")
    bytes = tf.decode_raw(s, tf.uint8)
    return [bytes, tf.decode_raw(s, tf.int16, little_endian=False), tf.reduce_sum(tf.cast(bytes, tf.int32), 1)]


program("decode_raw", strings, {"s": words("abcd", "efgh")}, {"s": words("ab")}, {"s": words()}, {"s": words("abcd", "efgh")},
        ({"s": words("ab", "c")}, "bytes"))

# ---- sparse tensors ----


def sparse_holder(dtype, rank, name):
    return tf.SparseTensor(holder(tf.int64, [None, rank], name + "_i"), holder(dtype, [None], name + "_v"),
                           holder(tf.int64, [rank], name + "_s"))


def sparse_feed(name, indices, values, shape):
    rank = len(shape)
    return {name + "_i": i64(indices).reshape(-1, rank), name + "_v": values, name + "_s": i64(shape)}


def parts(s):
    return [tf.identity(p) for p in (s.indices, s.values, s.dense_shape)]


def sparse():
    x = sparse_holder(tf.float32, 2, "x")
    sorted = tf.sparse_reorder(x)
    cut = tf.sparse_slice(x, [0, 1], [2, 2])
    reshaped = tf.sparse_reshape(x, [-1, 2])
    filled, empty = tf.sparse_fill_empty_rows(x, 7.0)
    joined = tf.sparse_concat(1, [x, x])
    kept = tf.sparse_retain(x, x.values > 0)
    return [*parts(sorted), *parts(cut), *parts(reshaped), *parts(filled), empty, *parts(joined), *parts(kept),
            tf.gradients(tf.reduce_sum(filled.values * filled.values), x.values)[0],
            tf.gradients(tf.reduce_sum(sorted.values * tf.cast(tf.range(tf.size(sorted.values)), tf.float32)), x.values)[0]]


program("sparse", sparse, sparse_feed("x", [[2, 1], [0, 2], [0, 1]], f32([1, -2, 3]), [4, 4]),
        sparse_feed("x", [], f32([]), [2, 4]), sparse_feed("x", [[1, 0]], f32([5]), [2, 2]),
        sparse_feed("x", [[2, 1], [0, 2], [0, 1]], f32([1, -2, 3]), [4, 4]))


def segments_of_rows():
    x, ids, segments = holder(tf.float32, [None, 2], "x"), holder(tf.int32, [None], "ids"), holder(tf.int32, [None], "segments")
    made = [f(x, ids, segments) for f in (tf.sparse_segment_sum, tf.sparse_segment_mean, tf.sparse_segment_sqrt_n)]
    more = [f(x, ids, segments, num_segments=6) for f in (tf.sparse_segment_sum, tf.sparse_segment_mean, tf.sparse_segment_sqrt_n)]
    return made + more


program("sparse_segments", segments_of_rows, {"x": eighths(4, 2), "ids": i32([0, 3, 1, 1]), "segments": i32([0, 0, 2, 2])},
        {"x": eighths(2, 2), "ids": i32([1]), "segments": i32([4])}, {"x": eighths(1, 2), "ids": i32([]), "segments": i32([])},
        ({"x": eighths(1, 2), "ids": i32([1]), "segments": i32([0])}, "is not in [0, 1)"))


def safe_embedding(w, ids, combiner):
    """As TensorFlow 1's safe_embedding_lookup_sparse makes it."""
    kept = tf.sparse_retain(ids, tf.greater_equal(ids.values, 0))
    filled, empty = tf.sparse_fill_empty_rows(kept, tf.constant(0, tf.int64))
    segments = tf.cast(filled.indices[:, 0], tf.int32)
    unique, places = tf.unique(filled.values)
    rows = tf.nn.embedding_lookup(w, unique)
    op = {"sum": tf.sparse_segment_sum, "mean": tf.sparse_segment_mean, "sqrtn": tf.sparse_segment_sqrt_n}[combiner]
    result = op(rows, places, segments)
    empty = tf.tile(tf.reshape(empty, [-1, 1]), tf.stack([1, tf.shape(result)[1]]))
    return tf.where(empty, tf.zeros_like(result), result)


def embedding(combiner):
    def build():
        w = tf.Variable(eighths(5, 3))
        ids = sparse_holder(tf.int64, 2, "ids")
        y = safe_embedding(w, ids, combiner)
        loss = tf.reduce_sum(y * y)
        return {"": [y, loss, tf.train.GradientDescentOptimizer(0.125).minimize(loss)], "look": [w.value()]}
    return build


for combiner in ("sum", "mean", "sqrtn"):
    program("embedding_" + combiner, embedding(combiner), *[r for k in (
        ([[0, 0], [0, 1], [2, 0]], i64([1, 3, 3]), [3, 2]), ([[0, 0]], i64([4]), [1, 1]), ([], i64([]), [2, 2]),
        ([[0, 0], [1, 0], [1, 1]], i64([-1, 0, 0]), [2, 2])) for r in (sparse_feed("ids", *k), ({}, "look"))], init=True)

# ---- examples, lines, words ----


def example(**features):
    lists = {}
    for key, value in features.items():
        value = list(np.atleast_1d(value))
        if not value:
            continue
        if isinstance(value[0], (bytes, str)):
            lists[key] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[v.encode() if isinstance(v, str) else v for v in value]))
        elif isinstance(value[0], (int, np.integer)):
            lists[key] = tf.train.Feature(int64_list=tf.train.Int64List(value=value))
        else:
            lists[key] = tf.train.Feature(float_list=tf.train.FloatList(value=value))
    return tf.train.Example(features=tf.train.Features(feature=lists)).SerializeToString()


def texts(*values):
    return np.array(values, object)


FEATURES = {
    "age": tf.FixedLenFeature([], tf.float32), "box": tf.FixedLenFeature([2, 2], tf.float32, [[1, 2], [3, 4]]),
    "name": tf.FixedLenFeature([], tf.string, "nobody"), "tags": tf.VarLenFeature(tf.string),
    "ids": tf.VarLenFeature(tf.int64), "path": tf.FixedLenSequenceFeature([2], tf.int64, allow_missing=True, default_value=-1),
}
full = example(age=3.5, box=[0.5, 1, 2, 4], name="ann", tags=["a", "", "ccc"], ids=[-7, 1 << 40], path=[1, 2, 3, 4])
little = example(age=1.0, tags=["z"], other=5)


def unsparse(parsed):
    made = []
    for key in sorted(parsed):
        value = parsed[key]
        made += parts(value) if isinstance(value, tf.SparseTensor) else [tf.identity(value)]
    return made


def parse():
    s = holder(tf.string, [None], "s")
    parsed = tf.parse_example(s, FEATURES)
    return unsparse(parsed) + [parsed["age"] * 2.0, tf.sparse_tensor_to_dense(parsed["ids"]), tf.shape(parsed["path"])]


program("parse_example", parse, {"s": texts(full, little)}, {"s": texts(little)}, {"s": texts(little, full, full)}, {"s": texts()},
        ({"s": texts(example(tags=["a"]))}, "is required but could not be found"),
        ({"s": texts(example(age=[1.0, 2.0]))}, "Number of values"), ({"s": texts(b"no example")}, "Could not parse"),
        ({"s": texts(example(age=1))}, "Data types don't match"))


def parse_v1():
    s = holder(tf.string, [None], "s")
    all = raw.ParseExample(serialized=s, names=tf.constant([], tf.string), sparse_keys=["tags"], dense_keys=["age"],
                           dense_defaults=[tf.constant([], tf.float32)], sparse_types=[tf.string], dense_shapes=[[]])
    return [*all.sparse_indices, *all.sparse_values, *all.sparse_shapes, *all.dense_values]


program("parse_example_v1", parse_v1, {"s": texts(full, little)}, {"s": texts(little)})


def parse_dense():
    s = holder(tf.string, [None], "s")
    return [tf.parse_example(s, {k: FEATURES[k] for k in ("age", "box")})[k] for k in ("age", "box")]


program("parse_example_dense", parse_dense, {"s": texts(full, little)}, {"s": texts(little)})


def parse_sparse():
    s = holder(tf.string, [None], "s")
    all = raw.ParseExample(serialized=s, names=tf.constant([], tf.string), sparse_keys=["tags"], dense_keys=[],
                           dense_defaults=[], sparse_types=[tf.string], dense_shapes=[])
    return [*all.sparse_indices, *all.sparse_values, *all.sparse_shapes]


program("parse_example_sparse", parse_sparse, {"s": texts(full, little)}, {"s": texts(little)})


def parse_v1_dense():
    s = holder(tf.string, [None], "s")
    return list(raw.ParseExample(serialized=s, names=tf.constant([], tf.string), sparse_keys=[], dense_keys=["age"],
                                 dense_defaults=[tf.constant([], tf.float32)], sparse_types=[],
                                 dense_shapes=[[]]).dense_values)


program("parse_example_v1_dense", parse_v1_dense, {"s": texts(full, little)}, {"s": texts(little)})


def parse_single():
    s = holder(tf.string, [], "s")
    return unsparse(tf.parse_single_example(s, {k: FEATURES[k] for k in ("age", "box", "tags", "ids")}))


program("parse_single_example", parse_single, {"s": texts(full)[0]}, {"s": texts(little)[0]})


def parse_single_v1():
    s = holder(tf.string, [], "s")
    all = raw.ParseSingleExample(serialized=s, dense_defaults=[tf.constant([], tf.float32)], num_sparse=1, sparse_keys=["tags"],
                                 dense_keys=["age"], sparse_types=[tf.string], dense_shapes=[[]])
    return [*all.sparse_indices, *all.sparse_values, *all.sparse_shapes, *all.dense_values]


program("parse_single_example_v1", parse_single_v1, {"s": texts(full)[0]}, {"s": texts(little)[0]})


def csv():
    s = holder(tf.string, [None], "s")
    a, b, c, d = tf.decode_csv(s, [[0.5], [7], ["none"], tf.constant([], tf.int64)])
    chosen = tf.decode_csv(s, [["x"], [1.0]], select_cols=[2, 3])
    return [a, b, c, d, *chosen]


program("decode_csv", csv, {"s": words("1.5,2,three,4", ",,,9", '-1e3,-2,"a ""quoted"", one",0')}, {"s": words("1,2,,4")},
        {"s": words()}, ({"s": words("1,2,3")}, "have 3 in record 0"), ({"s": words("x,2,a,4")}, "is not a valid float"),
        ({"s": words("1,2,a,")}, "is required but missing"))


def splitting():
    s = holder(tf.string, [None], "s")
    made = []
    for split in (tf.string_split(s), tf.string_split(s, ",; "), tf.string_split(s, ",", skip_empty=False), tf.string_split(s, "")):
        made += parts(split)
    for sep, most in (("", -1), (", ", -1), (",", 1), ("", 1)):
        all = raw.StringSplitV2(input=s, sep=sep, maxsplit=most)
        made += [all.indices, all.values, all.shape]
    return made


program("string_split", splitting, {"s": words("a b  c", "", "x,y, z;", " lead and trail ")}, {"s": words()}, {"s": words(",,")},
        {"s": words("one", "two three")})

# ---- tables ----


def tables():
    t = raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name="t")
    start = raw.InitializeTableV2(table_handle=t, keys=tf.constant(["a", "b", ""]), values=tf.constant([1, 2, 3], tf.int64))
    s, n = holder(tf.string, [None], "s"), holder(tf.int64, [None], "n")
    find = raw.LookupTableFindV2(table_handle=t, keys=s, default_value=tf.constant(-1, tf.int64))
    m = raw.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.float32, shared_name="m")
    seen = tf.unique(n)[0]
    insert = raw.LookupTableInsertV2(table_handle=m, keys=seen, values=tf.cast(seen, tf.float32) / 2)
    keys, values = raw.LookupTableExportV2(table_handle=m, Tkeys=tf.int64, Tvalues=tf.float32)
    order = tf.argsort(keys)
    return {"": [find, tf.one_hot(find, 4)], "start": [start], "size": [raw.LookupTableSizeV2(table_handle=t)],
            "insert": [insert], "found": [raw.LookupTableFindV2(table_handle=m, keys=n, default_value=tf.constant(-1.0))],
            "export": [tf.gather(keys, order), tf.gather(values, order)],
            "remove": [raw.LookupTableRemoveV2(table_handle=m, keys=n)],
            "import": [raw.LookupTableImportV2(table_handle=m, keys=n, values=tf.cast(n, tf.float32))]}


program("bucketize", lambda: [raw.Bucketize(input=holder(tf.float32, [None], "x"), boundaries=[-1.0, 0.5, 0.5, 3.0])],
        {"x": f32([-2, -1, 0, 0.5, 0.6, 3, 9, np.inf, -np.inf])})
program("tables", tables, ({"s": words("a")}, "Table not initialized"), ({}, "start"), {"s": words("a", "x", "")}, {"s": words("b")},
        {"s": words()}, ({}, "size"), ({"n": i64([5, 7, 5, 9])}, "insert"), ({"n": i64([9, 1])}, "found"), ({}, "export"),
        ({"n": i64([7])}, "remove"), ({}, "export"), ({"n": i64([7, 5])}, "found"), ({"n": i64([1, 2])}, "import"), ({}, "export"),
        ({"n": i64(range(100))}, "insert"), ({}, "export"))


def wide_and_deep():
    """As feature columns make it: words by a vocabulary, hashed ids in an embedding, numbers in buckets, examples as input."""
    s = holder(tf.string, [None], "s")
    parsed = tf.parse_example(s, {"age": tf.FixedLenFeature([1], tf.float32, [0.0]), "tags": tf.VarLenFeature(tf.string),
                                  "ids": tf.VarLenFeature(tf.int64), "label": tf.FixedLenFeature([1], tf.float32)})
    t = raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name="words")
    start = raw.InitializeTableV2(table_handle=t, keys=tf.constant(["red", "green", "blue"]), values=tf.constant([0, 1, 2], tf.int64))
    tags = parsed["tags"]
    ids = tf.SparseTensor(tags.indices, raw.LookupTableFindV2(table_handle=t, keys=tags.values, default_value=tf.constant(3, tf.int64)),
                          tags.dense_shape)
    deep = safe_embedding(tf.Variable(eighths(4, 3)), ids, "mean")
    hashed = tf.SparseTensor(tags.indices, tf.strings.to_hash_bucket_fast(tags.values, 8), tags.dense_shape)
    buckets = tf.one_hot(raw.Bucketize(input=parsed["age"][:, 0], boundaries=[18.0, 30.5, 50.0]), 4)
    wide = tf.matmul(buckets, tf.Variable(eighths(4, 1))) + safe_embedding(tf.Variable(eighths(8, 1)), hashed, "sqrtn")
    wide += safe_embedding(tf.Variable(tf.zeros([6, 1])), parsed["ids"], "sum")
    x = tf.concat([deep, parsed["age"] / 10.0], 1)
    h = tf.nn.relu(tf.nn.xw_plus_b(x, tf.Variable(eighths(4, 5)), tf.Variable(tf.zeros(5))))
    logits = tf.nn.xw_plus_b(h, tf.Variable(eighths(5, 1)), tf.Variable(tf.zeros(1))) + wide
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=parsed["label"], logits=logits))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    return {"": [loss, logits, train], "start": [start]}


def people(*rows):
    return {"s": texts(*[example(age=[a], tags=t, ids=i, label=[l]) for a, t, i, l in rows])}


some = [(30.5, ["red", "blue"], [0, 5], 1.0), (18.0, [], [2], 0.0), (44.0, ["pink"], [], 1.0), (51.0, ["green"], [1, 1], 0.0)]
program("wide_and_deep", wide_and_deep, ({}, "start"), *[people(*some[:n], *some[:m]) for n, m in
                                                         ((4, 0), (4, 4), (2, 0), (3, 1), (4, 0), (1, 0), (4, 2))], init=True)

# ---- variables without a shape ----


def shapeless():
    x = holder(tf.float32, [None, 3], "x")
    v = tf.Variable(tf.ones([2, 3]) * 0.5, validate_shape=False)
    y = tf.reduce_sum(tf.matmul(x, v, transpose_b=True))
    return [y, tf.shape(v), tf.assign_add(v, tf.ones([2, 3]))]


def shapeless_resource():
    tf.enable_resource_variables()
    x = holder(tf.float32, [None, 3], "x")
    v = tf.Variable(tf.ones([2, 3]) * 0.5, validate_shape=False)
    with tf.control_dependencies([tf.assign_add(v, tf.ones([2, 3]))]):
        y = tf.reduce_sum(tf.matmul(x, v.read_value(), transpose_b=True))
    tf.disable_resource_variables()
    return [y]


program("shapeless_variable", shapeless, {"x": eighths(2, 3)}, {"x": eighths(4, 3)}, init=True)
program("shapeless_resource", shapeless_resource, {"x": eighths(2, 3)}, {"x": eighths(4, 3)}, init=True)

# ---- branches ----


def branches():
    x, p = holder(tf.float32, [None, 2], "x"), holder(tf.bool, [], "p")
    either = tf.cond(p, lambda: tf.boolean_mask(x, x[:, 0] > 0) * 2.0, lambda: tf.zeros([1, 2]) + x[0])
    inner = tf.cond(p, lambda: tf.cond(x[0, 0] > 0, lambda: x[:1] * 3.0, lambda: tf.concat([x, x], 0)), lambda: x + 1.0)
    same = tf.cond(p, lambda: tf.reduce_sum(tf.boolean_mask(x, x[:, 0] > 0)), lambda: tf.reduce_sum(either))
    return [either, inner, same, tf.reduce_sum(inner), tf.shape(inner)]


program("branches", branches, *[{"x": np.concatenate([f32([[s, s]]), eighths(n, 2)]), "p": np.array(p)}
                                for s, n, p in ((1, 3, True), (1, 3, False), (-1, 2, True), (-1, 3, False), (1, 3, True))])


def branch_gradients():
    x, p = holder(tf.float32, [None, 2], "x"), holder(tf.bool, [], "p")
    w = tf.Variable([[1.0], [2.0]])
    either = tf.cond(p, lambda: tf.matmul(tf.boolean_mask(x, x[:, 0] > 0), w), lambda: tf.matmul(x, w) * 2.0)
    loss = tf.reduce_sum(either * either)
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    return {"": [loss, train], "look": [w]}


program("branch_gradients", branch_gradients, *[r for n, p in ((3, True), (2, False), (3, True), (4, False)) for r in (
    {"x": eighths(n, 2), "p": np.array(p)}, ({}, "look"))], init=True)


def branch_effects():
    x, p = holder(tf.float32, [None], "x"), holder(tf.bool, [], "p")
    count = tf.Variable(0)
    step = tf.cond(p, lambda: tf.assign_add(count, 1), lambda: tf.identity(count))
    with tf.control_dependencies([step]):
        kept = tf.boolean_mask(x, x > 0)
    late = tf.cond(tf.size(kept) > 1, lambda: tf.assign_add(count, tf.size(kept) * 10), lambda: tf.constant(-1))
    with tf.control_dependencies([late]):
        after = count + 0
    return [kept, late + 0, after]


program("branch_effects", branch_effects, *[{"x": eighths(n), "p": np.array(p)}
                                            for n, p in ((5, True), (0, True), (5, False), (1, False), (6, True))], init=True)

# ---- effects on both sides ----


def effects():
    x = holder(tf.float32, [None], "x")
    count = tf.Variable(0, name="count")
    w = tf.Variable([1.0, 2.0], name="w")
    early = tf.assign_add(count, 1)
    with tf.control_dependencies([early]):
        kept = tf.boolean_mask(x, x > 0)
    loss = tf.reduce_sum(kept) * tf.reduce_sum(w)
    train = tf.train.GradientDescentOptimizer(0.125).minimize(loss)
    with tf.control_dependencies([train]):
        after = tf.identity(count + 0)
    return {"": [loss, after, train], "look": [count.value(), w.value()]}


program("effects", effects, {"x": f32([1, -1, 2])}, ({}, "look"), {"x": f32([-1, -2, -3])}, ({}, "look"), {"x": f32([1, 1])},
        ({}, "look"), init=True)


def resource_effects():
    tf.enable_resource_variables()
    result = effects()
    tf.disable_resource_variables()
    return result


program("resource_effects", resource_effects, {"x": f32([1, -1, 2])}, ({}, "look"), {"x": f32([-1, -2, -3])}, ({}, "look"),
        {"x": f32([1, 1])}, ({}, "look"), init=True)


def ragged_training():
    x, y = holder(tf.float32, [None, 3], "x"), holder(tf.int64, [None], "y")
    keep = tf.not_equal(y, 0)
    xs, ys = tf.boolean_mask(x, keep), tf.boolean_mask(y, keep)
    h = tf.nn.relu(tf.nn.xw_plus_b(xs, tf.Variable(eighths(3, 4)), tf.Variable(eighths(4))))
    logits = tf.nn.xw_plus_b(h, tf.Variable(eighths(4, 3)), tf.Variable(eighths(3)))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=ys))
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    return [loss, train]


program("ragged_training", ragged_training,
        *[{"x": eighths(n, 3), "y": np.concatenate([[1], random.integers(0, 3, n - 1)])} for n in (4, 6, 4, 3, 7, 1)], init=True)

# ---- gradients of unknown shapes, by Tower's own rules ----


n2, n3, one = {"x": eighths(3, 4)}, {"x": eighths(2, 3, 4)}, {"x": eighths(1, 4)}
differentiate("grad_top_k", of(lambda x: tf.nn.top_k(x, 2)[0]), n2, one, {"x": eighths(2, 2)})
differentiate("grad_top_k_rank", of(lambda x: tf.nn.top_k(x, 2)[0], None), n2, n3, {"x": eighths(5)})
differentiate("grad_gather_axis", of(lambda x: tf.gather(x, [[0, 2], [1, 0]], axis=1)), n2, one)
differentiate("grad_gather_negative", of(lambda x: tf.gather(x, [1, 1], axis=-1), 3), n3)
differentiate("grad_gather_batch", of(lambda x: tf.gather(x, tf.tile([[0, 0, 1]], [tf.shape(x)[0], 1]), batch_dims=1)), n2, one)
differentiate("grad_gather_batch_axis", of(lambda x: raw.GatherV2(params=x, indices=tf.tile([[1, 1]], [tf.shape(x)[0], 1]),
                                                                  axis=2, batch_dims=1), 3), n3)
for op in (tf.reduce_sum, tf.reduce_max, tf.reduce_min, tf.reduce_mean, tf.reduce_prod):
    differentiate("grad_%s" % op.__name__, of(lambda x: op(x, -1)), n2, one)
    differentiate("grad_%s_all" % op.__name__, of(lambda x: op(x), None), n2, n3, {"x": f32(3)}, {"x": eighths(5)})
    differentiate("grad_%s_keep" % op.__name__, of(lambda x: op(x, [0, 2], keepdims=True), None), n3)
differentiate("grad_unsorted_segment_sum", of(lambda x: tf.unsorted_segment_sum(x, [0, -1, 1], 2), None), n2, {"x": eighths(3)})
differentiate("grad_segment_sum", of(lambda x: tf.segment_sum(x, tf.cast(tf.where(x[:, 0] > -9)[:, 0], tf.int32) // 2)), n2, one)
differentiate("grad_tile_5", of(lambda x: tf.tile(x, [2, 1, 3, 1, 2]), 5), {"x": eighths(1, 2, 2, 1, 3)}, {"x": eighths(2, 1, 1, 2, 1)})
differentiate("grad_tile_8", of(lambda x: tf.tile(x, [2] * 8), 8), {"x": eighths(1, 2, 1, 1, 1, 2, 1, 1)})
differentiate("grad_partition", of(lambda x: tf.dynamic_partition(x, tf.cast(x[:, 0] > 0, tf.int32), 2)[1]), n2, one)
differentiate("grad_stitch", of(lambda x: tf.dynamic_stitch([[1], [0, 2]], [x[:1], x[:2]])), n2)
differentiate("grad_mask", of(lambda x: tf.boolean_mask(x, x > 0)), n2, one, n2)
differentiate("grad_unique", of(lambda x: tf.gather(x, tf.unique([2, 0, 2])[0])), n2)

# ---- gradients of sparse segments, of the rows that are picked at all ----

for kind in ("Sum", "Mean", "SqrtN"):
    op = getattr(raw, "SparseSegment%sGradV2" % kind)
    for dtype in (tf.float32, tf.float64, tf.float16):
        program("picked_%s_%s" % (kind.lower(), dtype.name),
                lambda: list(op(grad=tf.placeholder(dtype, [3, 2], name="g"), indices=tf.placeholder(tf.int32, [None], name="i"),
                                segment_ids=tf.placeholder(tf.int64, [None], name="s"), dense_output_dim0=6)),
                {"g": eighths(3, 2).astype(dtype.as_numpy_dtype), "i": i32([4, 1, 4, 0, 1]), "s": i64([0, 0, 1, 2, 2])},
                {"g": eighths(3, 2).astype(dtype.as_numpy_dtype), "i": i32([]), "s": i64([])})
program("picked_beyond", lambda: list(raw.SparseSegmentSumGradV2(grad=tf.placeholder(tf.float32, [1, 2], name="g"), indices=[6],
                                                                 segment_ids=[0], dense_output_dim0=6)),
        ({"g": eighths(1, 2)}, "6"))

# ---- bins, of values on their borders ----

for dtype in (np.float32, np.float64):
    for low, high, bins in ((-1, 2, 7), (0.1, 0.7, 3), (-3, 2, 6), (-0.3, 1.1, 9)):
        borders = (low + np.arange(bins + 1) * ((high - low) / bins)).astype(dtype)
        on = np.concatenate([borders, np.nextafter(borders, dtype(9)), np.nextafter(borders, dtype(-9))]).astype(dtype)
        program("bins_%s_%d" % (np.dtype(dtype).name, bins),
                lambda: [raw.HistogramFixedWidth(values=tf.placeholder(dtype, [None], name="v"), nbins=bins,
                                                 value_range=np.array([low, high], dtype))], {"v": on})
program("bins_of_nan", lambda: [raw.HistogramFixedWidth(values=tf.placeholder(tf.float32, [None], name="v"), nbins=4,
                                                        value_range=f32([0, 1]))], ({"v": f32([0.5, np.nan])}, "NaN"))
program("one_bin", lambda: [raw.HistogramFixedWidth(values=tf.placeholder(tf.float32, [None], name="v"), nbins=1,
                                                    value_range=f32([0, 1]))], {"v": f32([0.5, np.nan, 9])})
program("unsigned_text", lambda: [tf.as_string(tf.placeholder(tf.uint8, [None], name="v"), fill="+")], {"v": np.uint8([62, 200])})

# ---- sums of sparse tensors ----

def sparse_of(dtype, a="a"):
    return [holder(tf.int64, [None, 2], a + "i"), holder(dtype, [None], a + "v"), holder(tf.int64, [2], a + "s")]


def entries(dtype, a="a", shape=(3, 4), at=((0, 1), (0, 3), (2, 0), (2, 3)), scale=1):
    values = (scale * np.array([1.5, -2, -4, 0.5][:len(at)])).astype(dtype.as_numpy_dtype)
    return {a + "i": np.array(at, np.int64).reshape(-1, 2), a + "v": values, a + "s": i64(shape)}


for dtype in (tf.float32, tf.float64, tf.int32, tf.float16):
    for what in ("Sum", "Max"):
        for axes in ([0], [1], [-1], [0, 1], [1, -2], []):
            program("sparse_%s_%s_%s" % (what.lower(), dtype.name, "_".join(str(a) for a in axes) or "none"), lambda: [
                getattr(raw, "SparseReduce" + what)(input_indices=i, input_values=v, input_shape=s, reduction_axes=i32(axes),
                                                    keep_dims=keep) for i, v, s in [sparse_of(dtype)] for keep in (False, True)],
                    entries(dtype), entries(dtype, at=()))
for dtype in (tf.float32, tf.float64, tf.int64, tf.int16):
    def added(at_least=0.6):
        a, b = sparse_of(dtype), sparse_of(dtype, "b")
        sums = raw.SparseAdd(a_indices=a[0], a_values=a[1], a_shape=a[2], b_indices=b[0], b_values=b[1], b_shape=b[2],
                             thresh=tf.cast(at_least, dtype))
        return list(sums) + list(raw.SparseAddGrad(backprop_val_grad=tf.ones_like(sums[1]), a_indices=a[0], b_indices=b[0],
                                                   sum_indices=sums[0]))
    other = entries(dtype, "b", at=((0, 0), (0, 3), (1, 1), (2, 3)), scale=-1)
    program("sparse_add_" + dtype.name, added, {**entries(dtype), **other}, {**entries(dtype, at=()), **other},
            {**entries(dtype), **entries(dtype, "b", at=())})
program("sparse_add_shapes", added, ({**entries(tf.int16), **entries(tf.int16, "b", shape=(3, 5))}, "shapes"))
program("sparse_sum_beyond", lambda: [raw.SparseReduceSum(input_indices=i, input_values=v, input_shape=s, reduction_axes=[2])
                                      for i, v, s in [sparse_of(tf.float32)]], (entries(tf.float32), "axis"))
at = i64([[0, 1], [0, 3], [2, 0]])
for keep in (False, True):
    for axes in ([0], [1], [0, 1]):
        differentiate("grad_sparse_sum_%d_%s" % (keep, len(axes) * 2 + axes[0]), of(lambda x: raw.SparseReduceSum(
            input_indices=at, input_values=x, input_shape=[3, 4], reduction_axes=axes, keep_dims=keep), 1), {"x": eighths(3)})
differentiate("grad_sparse_add", of(lambda x: raw.SparseAdd(
    a_indices=at, a_values=x, a_shape=[3, 4], b_indices=at[1:], b_values=x[:2], b_shape=[3, 4], thresh=0.0)[1], 1),
              {"x": eighths(3)})

# ---- boxes whose scores fall as they overlap ----

program("soft_boxes", lambda: list(raw.NonMaxSuppressionV5(
    boxes=tf.placeholder(tf.float32, [3, 4], name="b"), scores=f32([0.46, 0.54, 0.75]), max_output_size=3, iou_threshold=0.1,
    score_threshold=0.2, soft_nms_sigma=0.5)),
        {"b": f32([[0.09, 0.54, 0.44, 0.63], [0.6, 0.83, 0.99, 1.07], [0.61, 0.51, 1.19, 0.98]])})

# Infinite ones overlap by NaN, which lets a score fall to 0.
for least in (-1, 0):
    program("infinite_boxes_%d" % -least, lambda: [raw.NonMaxSuppressionV3(
        boxes=tf.placeholder(tf.float32, [5, 4], name="b"), scores=f32([0.9, 0.8, 0.7, 0.6, 0.5]), max_output_size=5,
        iou_threshold=0.5, score_threshold=least)],
            {"b": f32([[0, 0, np.inf, np.inf], [0, 0, np.inf, np.inf], [0, 0, 1, 1], [np.nan, 0, 1, 1], [0, 0, 1, 1]])})

# ---- samplers of classes by their weights; each run goes on where the last one stopped ----

reseed(31)


def fixed_unigrams(unique, num, **attrs):
    true = holder(tf.int64, [None, 2], "true")
    return list(tf.random.fixed_unigram_candidate_sampler(true, 2, num, unique, 8, seed=5, **attrs))


pairs = {"true": i64([[1, 5], [0, 7], [3, 3]])}
for name, attrs in (("word2vec", {"unigrams": [9, 1.5, 4, 2, 8, 3, 1, 7], "distortion": 0.75}),
                    ("reserved", {"unigrams": [5, 3, 2, 1, 1, 4], "num_reserved_ids": 2}),
                    ("shard", {"unigrams": list(range(1, 17)), "num_shards": 2, "shard": 1, "distortion": 0.5})):
    for unique, num in ((False, 9), (True, 5)):
        program("fixed_unigrams_%s_%d" % (name, unique), lambda: fixed_unigrams(unique, num, **attrs), pairs, pairs, pairs)
program("fixed_unigrams_few", lambda: fixed_unigrams(False, 3, unigrams=[1.0] * 7), (pairs, "must be equal to weights size"))


def learned_unigrams(unique, num, seed):
    true = holder(tf.int64, [None, 2], "true")
    return list(tf.random.learned_unigram_candidate_sampler(true, 2, num, unique, 100, seed=seed))


for unique, num in ((False, 12), (True, 40)):
    program("learned_unigrams_%d" % unique, lambda: learned_unigrams(unique, num, 6),
            *[{"true": random.integers(0, 10, (n, 2))} for n in (400, 3, 1000, 1, 5)])

# ---- sounds ----

sounds = f32([[0.5, -1, 0.25, 2, 0.3333, -0.3333], [np.nan, np.inf, -np.inf, 1e-5, 0.99999, 0.0]])


def sound(most, shape):
    x, rate = holder(tf.float32, shape, "x"), holder(tf.float32, None, "rate")
    return [raw.AudioSummaryV2(tag="a", tensor=x, sample_rate=rate, max_outputs=most)]


program("sounds", lambda: sound(1, [None, None]), {"x": sounds, "rate": np.float32(44100)}, {"x": sounds[:0], "rate": np.float32(1)})
program("sounds_stereo", lambda: sound(3, [None, None, 2]),
        *[{"x": x.reshape(len(x), -1, 2), "rate": np.float32(8000.5)} for x in (sounds, sounds[:1], np.zeros((5, 0), np.float32))],
        ({"x": np.zeros((1, 3, 2), np.float32), "rate": np.float32(0)}, "sample_rate must be > 0"))

# ---- the likeliest sequences of labels ----

reseed(32)

def beams(dtype, **attrs):
    paths = raw.CTCBeamSearchDecoder(inputs=holder(dtype, [None, None, 5], "x"), sequence_length=holder(tf.int32, [None], "n"), **attrs)
    return sum((list(p) for p in paths[:3]), []) + [paths[3]]


steps = [random.standard_normal(shape) for shape in ((9, 3, 5), (1, 1, 5), (30, 2, 5))]
for dtype in (tf.float32, tf.float64):
    for width, paths, merges in ((1, 1, True), (3, 2, True), (4, 4, False), (100, 3, False)):
        program("beams_%s_%d_%d" % (dtype.name, width, merges),
                lambda: beams(dtype, beam_width=width, top_paths=paths, merge_repeated=merges),
                *[{"x": x.astype(dtype.as_numpy_dtype), "n": n} for x, n in zip(steps, (i32([9, 5, 7]), i32([1]), i32([30, 29])))])
program("beams_few", lambda: beams(tf.float32, beam_width=9, top_paths=2),
        ({"x": f32(steps[0]), "n": i32([9, 0, 1])}, "Less leaves"), ({"x": f32(steps[0]), "n": i32([9, 10, 1])}, "sequence_length(1)"))

# ---- batch normalization of 2015, and second derivatives of volumes ----

reseed(33)


def global_norm(dtype, scales):
    """Graphs of before producer 9 may have the op."""
    old = tf.GraphDef()
    with tf.Graph().as_default() as graph:
        inputs = [holder(dtype, [None, 2, 2, 3] if i == "t" else [3], i) for i in "tmvbg"]
        old.CopyFrom(graph.as_graph_def())
    node = old.node.add(name="norm", op="BatchNormWithGlobalNormalization", input="tmvbg")
    node.attr["T"].type = dtype.as_datatype_enum
    node.attr["variance_epsilon"].f = 0.125
    node.attr["scale_after_normalization"].b = scales
    old.versions.producer = 8
    return list(tf.import_graph_def(old, name="", return_elements=["norm:0"]))


def of_norm(dtype, n):
    of = dtype.as_numpy_dtype
    return {"t": eighths(n, 2, 2, 3, dtype=of), **{i: eighths(3, dtype=of) for i in "mbg"}, "v": np.abs(eighths(3, dtype=of))}


for dtype in (tf.float32, tf.float64):
    for scales in (False, True):
        program("global_norm_%s_%d" % (dtype.name, scales), lambda: global_norm(dtype, scales), of_norm(dtype, 2), of_norm(dtype, 0))


def volume(f, *shape):
    def build():
        x = holder(tf.float32, list(shape), "x")
        return x, f(x)
    return build


taps, cells = eighths(2, 2, 1, 2, 3), eighths(1, 3, 3, 2, 2)
for padding in ("SAME", "VALID"):
    for stride in (1, 2):
        window = {"ksize": [1, 2, 3, 2, 1], "strides": [1, stride, 1, stride, 1], "padding": padding}
        once_more("twice_avg_pool_3d_%s_%d" % (padding.lower(), stride), volume(
            lambda x: raw.AvgPool3D(input=x, **window), 2, 4, 3, 3, 2), {"x": eighths(2, 4, 3, 3, 2)})
        conv = {"strides": window["strides"], "padding": padding}
        once_more("twice_conv_3d_%s_%d" % (padding.lower(), stride), volume(
            lambda x: raw.Conv3D(input=x, filter=taps, **conv), 1, 4, 3, 3, 2), {"x": eighths(1, 4, 3, 3, 2)})
        once_more("twice_conv_3d_filter_%s_%d" % (padding.lower(), stride), volume(
            lambda x: raw.Conv3D(input=cells, filter=x, **conv), 2, 2, 1, 2, 3), {"x": taps})

# ---- second derivatives of batch normalization ----

reseed(34)
scale, offset, mean, variance = eighths(2), eighths(2), eighths(2), np.abs(eighths(2))
for training in (True, False):
    for version, op in ((1, raw.FusedBatchNorm), (3, raw.FusedBatchNormV3)):
        def normed(x, s):
            given = {"mean": [], "variance": []} if training else {"mean": mean, "variance": variance}
            return op(x=x, scale=s, offset=offset, epsilon=0.25, is_training=training, **given)[0]
        once_more("twice_norm_%d_%d" % (version, training), volume(lambda x: normed(x, scale), 3, 2, 2, 2), {"x": eighths(3, 2, 2, 2)})

        def penalty():
            x, s = holder(tf.float32, [3, 2, 2, 2], "x"), holder(tf.float32, [2], "s")
            dx, ds = tf.gradients(tf.pow(normed(x, s), 3), [x, s])
            return s, tf.concat([tf.reshape(dx, [-1]), ds], 0)
        differentiate("twice_norm_scale_%d_%d" % (version, training), penalty, {"x": eighths(3, 2, 2, 2), "s": eighths(2)})

# ---- gradients of slices of sparse tensors ----

reseed(35)
for name, start, size in (("middle", [0, 1], [3, 2]), ("none", [1, 1], [1, 2]), ("all", [0, 0], [9, 9])):
    differentiate("grad_sparse_slice_" + name, of(lambda x: raw.SparseSlice(
        indices=i64([[0, 1], [0, 3], [2, 0], [2, 2]]), values=x, shape=i64([3, 4]), start=i64(start), size=i64(size))[1], 1),
                  {"x": eighths(4)})


def slice_gradient():
    return [raw.SparseSliceGrad(backprop_val_grad=holder(tf.int16, [None], "dy"), input_indices=i64([[0], [2], [5]]),
                                input_start=i64([2]), output_indices=i64([[0], [3]]))]


program("sparse_slice_grad", slice_gradient, {"dy": np.array([7, 8], np.int16)})
