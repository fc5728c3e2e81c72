#!/usr/bin/env python3
"""Writes datasets/*.pb and datasets.txt: graphs with tf.data's data sets and iterators as tf.compat.v1 exports them, and
what TensorFlow computes with them, in the form of flow.txt (make_flow.py). tests/test_flow.c does the same and compares.

A fed text that begins with @ is the name of a file in datasets/.
"""
import gzip
import os
import zlib

import make_flow
from make_flow import HERE, Program, numbers, out, tf
import numpy as np
import tensorflow as tf2

data = tf.data
CASES = []
FILES = os.path.join(HERE, "datasets")


def case(function):
    CASES.append(function)
    return function


def path(name):
    return os.path.join(FILES, name).encode()


def options(dataset):
    """As it is written: TensorFlow's optimizer moves nothing, and what may come in any order comes in its own."""
    o = data.Options()
    o.experimental_optimization.apply_default_optimizations = False
    o.experimental_deterministic = True
    return dataset.with_options(o)


def drain(dataset, times=1, program=None, feeds=None, most=40):
    """All elements, and the end, each time from the beginning."""
    iterator = data.make_initializable_iterator(dataset)
    element = tf.nest.flatten(iterator.get_next())
    program = program or Program()
    for _ in range(times):
        program.run(targets=[iterator.initializer], feeds=feeds)
        for _ in range(most):
            if program.run(element) is None:
                break
    return program


# ---- sources -----------------------------------------------------------------------------------------------------------


@case
def ranges():
    drain(data.Dataset.range(2, 9, 3), 2)
    drain(data.Dataset.range(3, -4, -2))


@case
def tensors():
    drain(data.Dataset.from_tensors((numbers([2, 3]), [b"a", b"bc"])))
    drain(data.Dataset.from_tensor_slices({"x": numbers([3, 2]), "y": [1, 2, 3], "s": [b"a", b"b", b"cd"]}), 2)


@case
def fed_tensors():
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    dataset = data.Dataset.from_tensor_slices(x).batch(2)
    iterator = data.make_initializable_iterator(dataset)
    y = iterator.get_next() * 2
    program = Program()
    for n in (3, 4, 1):
        program.run(targets=[iterator.initializer], feeds={x: numbers([n, 2])})
        while program.run([y]) is not None:
            pass


@case
def packed_files():
    name = tf.placeholder(tf.string, [None], name="names")
    for kind in ("GZIP", "ZLIB"):
        for make, given in (
            (lambda: data.FixedLengthRecordDataset(name, 3, header_bytes=2, footer_bytes=1, compression_type=kind), "fixed.bin"),
            (lambda: data.TextLineDataset(name, compression_type=kind), "lines.txt"),
            (lambda: data.TFRecordDataset(name, compression_type=kind).map(tf.strings.length), "examples.tfrecord"),
        ):
            iterator = data.make_initializable_iterator(make())
            y = iterator.get_next()
            program = Program()
            run_with_files(program, iterator, name, ["%s.%s" % (given, kind.lower())] * 2)
            while program.run([y]) is not None:
                pass


@case
def sparse_slices():
    drain_raw(tf.raw_ops.SparseTensorSliceDataset(
        indices=np.int64([[0, 0], [0, 2], [2, 1]]), values=np.float32([1, 2, 3]), dense_shape=np.int64([4, 3])),
        (tf.int64, tf.float32, tf.int64), ((None, 1), (None,), (1,)))


@case
def files():
    name = tf.placeholder(tf.string, [None], name="names")
    for make, given in (
        (lambda: data.FixedLengthRecordDataset(name, 3, header_bytes=2, footer_bytes=1), ["fixed.bin", "fixed.bin"]),
        (lambda: data.TextLineDataset(name), ["lines.txt", "lines.txt"]),
        (lambda: data.TFRecordDataset(name).map(tf.strings.length), ["examples.tfrecord"]),
    ):
        iterator = data.make_initializable_iterator(make())
        y = iterator.get_next()
        program = Program()
        run_with_files(program, iterator, name, given)
        while program.run([y]) is not None:
            pass


@case
def lines_of_fields():
    name = tf.placeholder(tf.string, [None], name="names")
    csv = data.experimental.CsvDataset
    one_word = lambda text: tf.strings.regex_replace(text, "[\n ]", "|")
    defaults = [[0.5], tf.int64, ["none"], tf.float64]
    for given, dataset in (
        (["fields.csv", "fields.csv"],
         csv(name, defaults, header=True).map(lambda a, b, c, d: (a, b, one_word(c), d))),
        (["fields.csv"],
         csv(name, [["x"], [0.25]], header=True, select_cols=[2, 3], na_value="NA").map(lambda c, d: (one_word(c), d))),
        (["fields.tsv"], csv(name, [tf.int32, tf.string], field_delim="\t", use_quote_delim=False)),
        (["fields.csv"],
         csv(name, [tf.float32, tf.int64, tf.string, tf.float64], header=True).map(lambda a, b, c, d: (a, b, one_word(c)))),
        (["fields.tsv"], csv(name, [tf.int32], field_delim="\t")),
    ):
        iterator = data.make_initializable_iterator(dataset)
        y = iterator.get_next()
        program = Program()
        run_with_files(program, iterator, name, given)
        while program.run(list(y)) is not None:
            pass


@case
def cached_in_a_file():
    name = tf.placeholder(tf.string, [], name="name")
    dataset = data.Dataset.range(9, 12).map(lambda x: (x, tf.as_string(x), tf.cast(x, tf.float32) * [1.0, 0.5]))
    iterator = data.make_initializable_iterator(options(dataset.cache(name).repeat(2)))
    y = iterator.get_next()
    program = Program()
    before = len(out)
    program.run(targets=[iterator.initializer], feeds={name: path("cache")})
    for i in range(before, len(out)):
        out[i] = out[i].replace(FILES + "/", "@")
    while program.run(list(y)) is not None:
        pass


def run_with_files(program, iterator, name, given):
    """The graph is fed paths; what is written down are the files' names."""
    before = len(out)
    program.run(targets=[iterator.initializer], feeds={name: [path(g) for g in given]})
    for i in range(before, len(out)):
        out[i] = out[i].replace(FILES + "/", "@")


# ---- order -------------------------------------------------------------------------------------------------------------


@case
def counted():
    r = data.Dataset.range(7)
    for dataset in (r.take(3), r.take(-1), r.skip(5), r.skip(-1), r.take(2).repeat(3), r.take(0).repeat(), r.shard(3, 1),
                    r.concatenate(data.Dataset.range(20, 22)), data.Dataset.zip((r, r.skip(2).repeat(2)))):
        drain(dataset)
    iterator = data.make_initializable_iterator(r.take(2).repeat())
    y = iterator.get_next()
    program = Program()
    program.run(targets=[iterator.initializer])
    for _ in range(5):
        program.run([y])


@case
def shuffled():
    r = data.Dataset.range(10)
    for dataset in (r.shuffle(4, seed=7), r.shuffle(100, seed=3), r.shuffle(3, seed=5).repeat(3),
                    r.shuffle(3, seed=5, reshuffle_each_iteration=False).repeat(2), r.repeat(2).shuffle(4, seed=1),
                    r.take(3).shuffle(1, seed=1), r.take(0).shuffle(5, seed=1)):
        drain(options(dataset), 2)


@case
def shuffled_of_old():
    tf.set_random_seed(11)
    r = data.Dataset.range(6)
    for dataset in (r.shuffle(4), r.shuffle(4, seed=2), r.apply(data.experimental.shuffle_and_repeat(4, 3, seed=9))):
        drain(options(dataset), 2)
    r = tf.raw_ops.RangeDataset(start=0, stop=6, step=1, output_types=[tf.int64], output_shapes=[[]])
    for raw in (
        tf.raw_ops.ShuffleDataset(input_dataset=r, buffer_size=4, seed=1, seed2=2, reshuffle_each_iteration=True,
                                  output_types=[tf.int64], output_shapes=[[]]),
        tf.raw_ops.ShuffleDataset(input_dataset=r, buffer_size=4, seed=1, seed2=2, reshuffle_each_iteration=False,
                                  output_types=[tf.int64], output_shapes=[[]]),
        tf.raw_ops.ShuffleAndRepeatDataset(input_dataset=r, buffer_size=4, seed=1, seed2=2, count=2,
                                           reshuffle_each_iteration=True, output_types=[tf.int64], output_shapes=[[]]),
        tf.raw_ops.RepeatDataset(input_dataset=tf.raw_ops.ShuffleDataset(
            input_dataset=r, buffer_size=3, seed=1, seed2=2, reshuffle_each_iteration=True, output_types=[tf.int64],
            output_shapes=[[]]), count=2, output_types=[tf.int64], output_shapes=[[]]),
        tf.raw_ops.SamplingDataset(input_dataset=r, rate=0.5, seed=1, seed2=2, output_types=[tf.int64],
                                   output_shapes=[[]]),
    ):
        drain_raw(raw)


def drain_raw(variant, types=(tf.int64,), shapes=((),), most=40):
    iterator = tf.raw_ops.IteratorV2(shared_name="", container="", output_types=types, output_shapes=shapes)
    start = tf.raw_ops.MakeIterator(dataset=variant, iterator=iterator)
    element = tf.raw_ops.IteratorGetNext(iterator=iterator, output_types=types, output_shapes=shapes)
    program = Program()
    program.run(targets=[start])
    for _ in range(most):
        if program.run(element) is None:
            break


@case
def random_numbers():
    drain(options(data.experimental.RandomDataset(seed=4).take(5)), 2)


@case
def from_memory_and_ahead():
    r = data.Dataset.range(5)
    calls = tf.Variable(0, name="calls", use_resource=True, trainable=False)
    drain(options(r.cache().repeat(2)))
    drain(options(r.map(lambda x: x * x).prefetch(2)), 2)
    drain(options(r.prefetch(-1).prefetch(1).shuffle(3, seed=3).cache().repeat(2)))
    drain(options(data.experimental.choose_from_datasets([r, r.map(lambda x: -x)], data.Dataset.range(2).repeat(6))))


# ---- batches -----------------------------------------------------------------------------------------------------------


@case
def batches():
    slices = data.Dataset.from_tensor_slices((numbers([5, 2]), np.arange(5), [b"a", b"b", b"cc", b"d", b"e"]))
    for dataset in (slices.batch(2), slices.batch(2, drop_remainder=True), slices.batch(9),
                    slices.batch(2).batch(2), slices.batch(2).unbatch().batch(3)):
        drain(options(dataset))


@case
def padded_batches():
    ragged = data.Dataset.range(1, 6).map(lambda n: (tf.fill([n], n), tf.fill([2, n], tf.cast(n, tf.float32)), n))
    for dataset in (ragged.padded_batch(2, ([None], [2, None], [])),
                    ragged.padded_batch(3, ([6], [3, 7], []), (tf.constant(-1, tf.int64), 0.5, tf.constant(0, tf.int64)),
                                        drop_remainder=True),
                    ragged.map(lambda a, b, n: tf.strings.as_string(a)).padded_batch(2, [None], "none")):
        drain(options(dataset))


@case
def windows():
    r = data.Dataset.range(7)
    for dataset in (r.window(3), r.window(3, drop_remainder=True), r.window(2, shift=1, stride=2), r.window(2, shift=4)):
        drain(options(dataset.flat_map(lambda w: w.batch(3))))
    pairs = data.Dataset.zip((r, r.map(lambda x: x * 10))).window(2, drop_remainder=True)
    drain(options(pairs.flat_map(lambda a, b: data.Dataset.zip((a, b.batch(2))))))


# ---- functions ---------------------------------------------------------------------------------------------------------


@case
def maps():
    r = data.Dataset.range(6)
    three = tf.placeholder(tf.int64, [], name="three")
    table = tf.Variable([10.0, 20.0, 30.0, 40.0, 50.0, 60.0], name="table", use_resource=True)
    program = Program()
    program.run(targets=[table.initializer])
    for dataset, feeds in (
        (r.map(lambda x: (x * x, tf.cast(x, tf.float32) / 2)), None),
        (r.map(lambda x: x * three), {three: 3}),
        (r.map(lambda x: table[tf.cast(x, tf.int32)] + 1), None),
        (r.map(lambda x: x + three, num_parallel_calls=4), {three: 5}),
        (r.map(lambda x: tf.range(x)), None),
        (r.map(lambda x: tf.cond(x > 2, lambda: x * 2, lambda: -x), num_parallel_calls=2), None),
        (r.map(lambda x: tf.while_loop(lambda i: i < 10, lambda i: i * 2 + 1, [x])), None),
        (r.apply(data.experimental.map_and_batch(lambda x: (x, x * 2), 4, num_parallel_calls=2)), None),
        (r.apply(data.experimental.map_and_batch(lambda x: x - 1, 4, drop_remainder=True)), None),
        (r.map(lambda x: (x, three)), {three: 7}),
    ):
        drain(options(dataset), 2, program, feeds)


@case
def failing_maps():
    r = data.Dataset.range(5)
    for dataset in (r.map(lambda x: tf.debugging.check_numerics(1.0 / tf.cast(x - 2, tf.float32), "no number")),
                    r.map(lambda x: tf.gather(tf.constant([1, 2, 3]), x), num_parallel_calls=2)):
        iterator = data.make_initializable_iterator(options(dataset))
        y = iterator.get_next()
        program = Program()
        program.run(targets=[iterator.initializer])
        for _ in range(6):
            program.run([y])
    drain(options(r.map(lambda x: tf.debugging.check_numerics(1.0 / tf.cast(x - 2, tf.float32), "no number")).apply(
        data.experimental.ignore_errors())))


@case
def choosing():
    r = data.Dataset.range(10)
    bound = tf.placeholder(tf.int64, [], name="bound")
    drain(options(r.filter(lambda x: x % 3 < bound)), 1, None, {bound: 2})
    drain(options(r.apply(data.experimental.take_while(lambda x: x < bound))), 1, None, {bound: 4})


@case
def scans():
    r = data.Dataset.range(6)
    drain(options(r.apply(data.experimental.scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s * x)))), 2)
    drain(options(r.apply(data.experimental.scan((tf.constant(1, tf.int64), tf.constant([0.0, 1.0])),
                                                 lambda s, x: ((s[0] * 2, s[1] + 1), (s[0] + x, s[1]))))))


@case
def data_sets_of_elements():
    r = data.Dataset.range(1, 5)
    times = tf.placeholder(tf.int64, [], name="times")
    many = lambda x: data.Dataset.from_tensors(x).repeat(x)
    for dataset in (
        r.flat_map(many),
        r.flat_map(lambda x: data.Dataset.range(x).map(lambda y: y * x + times).filter(lambda z: z < 10)),
        r.interleave(many, cycle_length=2, block_length=1),
        r.interleave(many, cycle_length=3, block_length=2),
        r.interleave(many, cycle_length=2, block_length=2, num_parallel_calls=2),
        r.interleave(many, cycle_length=3, block_length=1, num_parallel_calls=1),
        r.apply(data.experimental.parallel_interleave(many, cycle_length=2, block_length=2)),
        r.flat_map(lambda x: r.flat_map(lambda y: data.Dataset.from_tensor_slices([x, y]).shuffle(2, seed=3))),
    ):
        drain(options(dataset), 1, None, {times: 1})


@case
def groups():
    r = data.Dataset.range(12)
    drain(options(r.apply(data.experimental.group_by_window(lambda x: x % 3, lambda k, w: w.batch(4), 2))))
    ragged = r.map(lambda n: tf.fill([n % 5 + 1], n))
    drain(options(ragged.apply(data.experimental.bucket_by_sequence_length(tf.size, [3, 5], [2, 2, 2]))))


@case
def reductions():
    r = data.Dataset.range(1, 6)
    two = tf.placeholder(tf.int64, [], name="two")
    program = Program()
    program.run([r.reduce(tf.constant(0, tf.int64), lambda s, x: s + x * two)], {two: 2})
    program.run([data.experimental.get_single_element(r.batch(10))])
    drain(options(data.Dataset.range(3).map(lambda n: data.Dataset.range(n + 2).reduce(n, lambda s, x: s + x))))


@case
def random_maps():
    r = data.Dataset.range(4)
    tf.set_random_seed(5)
    drain(options(r.map(lambda x: tf.random.uniform([2], seed=3))), 2)
    drain(options(r.map(lambda x: tf.random.uniform([], seed=3)).repeat(2)), 1)
    drain(options(r.map(lambda x: tf.random.normal([2], seed=4), num_parallel_calls=1).batch(2)))


# ---- iterators ---------------------------------------------------------------------------------------------------------


@case
def one_shot():
    y = data.make_one_shot_iterator(data.Dataset.range(3).map(lambda x: x * 2)).get_next()
    program = Program()
    for _ in range(5):
        program.run([y])


@case
def not_initialized():
    iterator = data.make_initializable_iterator(data.Dataset.range(2))
    y = iterator.get_next()
    program = Program()
    program.run([y])
    program.run(targets=[iterator.initializer])
    program.run([y])
    program.run(targets=[iterator.initializer])
    program.run([y])


@case
def reinitializable():
    train = data.Dataset.range(3)
    test = data.Dataset.range(100, 102).batch(1).map(lambda x: x[0])
    iterator = data.Iterator.from_structure(data.get_output_types(train), data.get_output_shapes(train))
    y = iterator.get_next()
    starts = [iterator.make_initializer(train), iterator.make_initializer(test)]
    program = Program()
    for k in (0, 1, 0):
        program.run(targets=[starts[k]])
        for _ in range(4):
            if program.run([y + 1]) is None:
                break


@case
def feedable():
    a = data.make_one_shot_iterator(data.Dataset.range(3))
    b = data.make_initializable_iterator(data.Dataset.range(10, 20))
    handle = tf.placeholder(tf.string, [], name="handle")
    y = data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
    for name, iterator in (("a", a), ("b", b)):
        tf.identity(iterator.string_handle(), name="handle_of_" + name)
    program = Program()
    handles = [program.session.run(i.string_handle()) for i in (a, b)]
    program.run(targets=[b.initializer])
    for k in (0, 1, 1, 0, 0, 1, 0, 1):
        out.append("run")
        out.append("feed handle:0 handle_of_%s:0" % "ab"[k])
        try:
            out.append("fetch %s %s" % (y.name, make_flow.spell(program.session.run(y, {handle: handles[k]}))))
        except tf.errors.OutOfRangeError as error:
            out.extend(["fetch %s" % y.name, "fails %d End of sequence" % error.error_code])


@case
def optionals():
    iterator = data.make_initializable_iterator(data.Dataset.range(2).batch(2, drop_remainder=False).repeat(2))
    optional = data.experimental.get_next_as_optional(iterator)
    has = optional.has_value()
    y = tf.cond(has, lambda: optional.get_value(), lambda: tf.constant([-1], tf.int64))
    program = Program()
    program.run(targets=[iterator.initializer])
    for _ in range(4):
        program.run([has, y])


@case
def behind_borders():
    dataset = data.Dataset.from_tensor_slices(numbers([7, 3])).batch(3)
    w = tf.get_variable("w", [3, 1], initializer=tf.ones_initializer(), use_resource=True)
    x = data.make_initializable_iterator(dataset.repeat(2))
    loss = tf.reduce_mean(tf.square(tf.matmul(x.get_next(), w) - 1))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    program = Program()
    program.run(targets=[w.initializer, x.initializer])
    for _ in range(7):
        program.run([loss], targets=[train])


@case
def initialized_with_tables():
    """As an Estimator does it: the iterator's initializer is one of the tables'."""
    keys = tf.constant([b"one", b"two"])
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, tf.constant([1, 2], tf.int64)), -1)
    dataset = data.Dataset.from_tensor_slices([b"two", b"three", b"one"]).map(table.lookup).batch(2)
    iterator = data.make_initializable_iterator(dataset)
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    y = iterator.get_next()
    program = Program()
    program.run(targets=[tf.tables_initializer()])
    while program.run([y]) is not None:
        pass


@case
def examples():
    name = tf.placeholder(tf.string, [None], name="names")
    features = {"x": tf.FixedLenFeature([2], tf.float32), "label": tf.FixedLenFeature([], tf.int64),
                "words": tf.VarLenFeature(tf.string)}

    def parse(record):
        f = tf.parse_single_example(record, features)
        return f["x"], f["label"], tf.sparse.to_dense(f["words"], b"none")

    dataset = data.TFRecordDataset(name).map(parse, num_parallel_calls=2).shuffle(4, seed=5)
    dataset = dataset.padded_batch(3, ([2], [], [None]), (0.0, tf.constant(0, tf.int64), b"none"))
    iterator = data.make_initializable_iterator(options(dataset))
    element = iterator.get_next()
    program = Program()
    run_with_files(program, iterator, name, ["examples.tfrecord"])
    while program.run(element) is not None:
        pass


def write_waiting():
    """Of tests/test_datasets.c: functions that wait for a queue."""
    for name, ahead, beside in (("waits", 0, None), ("waits_ahead", 2, None), ("waits_beside", 0, 2)):
        with tf.Graph().as_default() as graph:
            queue = tf.FIFOQueue(10, tf.int64, [[]])
            dataset = data.Dataset.range(5).map(lambda x: x + queue.dequeue() + queue.dequeue(), num_parallel_calls=beside)
            iterator = data.make_initializable_iterator(dataset.prefetch(ahead) if ahead else dataset)
            with tf.control_dependencies([queue.enqueue(tf.constant(1, tf.int64))]):
                tf.group(iterator.initializer, name="begin")
            tf.identity(iterator.get_next(), name="next")
            tf.identity(queue.size(), name="size")
            with open(os.path.join(FILES, name + ".pb"), "wb") as file:
                file.write(graph.as_graph_def().SerializeToString(deterministic=True))


# ---- how many, and which -----------------------------------------------------------------------------------------------


def inputs():
    """Of some elements, of none, without an end, and nobody knows how many."""
    return (data.Dataset.range(7), data.Dataset.range(0), data.Dataset.range(3).repeat(),
            data.Dataset.range(5).filter(lambda x: x > 1))


def keyed(x):
    return x.group_by_window(lambda v: v % 2, lambda k, d: d.batch(2), window_size=2)


@case
def cardinalities():
    same = lambda x: x
    few = data.Dataset.range(2)
    endless, unknown = inputs()[2:]
    ways = [
        lambda x: x.take(-1), lambda x: x.take(0), lambda x: x.take(3), lambda x: x.skip(-1), lambda x: x.skip(3),
        lambda x: x.skip(9), lambda x: x.repeat(), lambda x: x.repeat(0), lambda x: x.repeat(3), lambda x: x.shard(3, 0),
        lambda x: x.shard(3, 2), lambda x: x.batch(3), lambda x: x.batch(3, drop_remainder=True),
        lambda x: x.batch(3, num_parallel_calls=2), lambda x: x.padded_batch(3, []),
        lambda x: x.padded_batch(3, [], drop_remainder=True), lambda x: x.map(same),
        lambda x: x.map(same, num_parallel_calls=2), lambda x: x.flat_map(lambda v: few),
        lambda x: x.interleave(lambda v: few), lambda x: x.shuffle(3), lambda x: x.cache(), lambda x: x.prefetch(2),
        lambda x: x.apply(data.experimental.shuffle_and_repeat(3, count=2)),
        lambda x: x.apply(data.experimental.shuffle_and_repeat(3)), lambda x: x.batch(3).unbatch(),
        lambda x: x.batch(3, drop_remainder=True).unbatch(), lambda x: x.batch(4).rebatch(2), lambda x: x.unique(),
        lambda x: x.window(3), lambda x: x.window(3, 2, 2), lambda x: x.window(3, 2, 2, drop_remainder=True),
        lambda x: x.scan(np.int64(0), lambda s, v: (s + v, v)), lambda x: x.take_while(lambda v: v < 3), keyed,
        lambda x: x.apply(data.experimental.assert_cardinality(5)), lambda x: x.apply(data.experimental.ignore_errors()),
        lambda x: x.concatenate(few), lambda x: x.concatenate(endless), lambda x: x.concatenate(unknown),
        lambda x: unknown.concatenate(x), lambda x: data.Dataset.zip((x, few)), lambda x: data.Dataset.zip((x, endless)),
        lambda x: data.Dataset.zip((x, unknown)), lambda x: data.Dataset.choose_from_datasets([x, few], few.repeat(2)),
        lambda x: x.apply(data.experimental.map_and_batch(same, 3)),
        lambda x: x.apply(data.experimental.map_and_batch(same, 3, drop_remainder=True)),
        lambda x: x.map(tf.as_string).batch(2).apply(data.experimental.parse_example_dataset(
            {"a": tf.FixedLenFeature([], tf.float32, 0.0)}))]
    program = Program()
    for x in inputs():
        program.run([tf.stack([data.experimental.cardinality(way(x)) for way in ways])])
    sources = [data.Dataset.range(5, 0, -2), data.Dataset.range(5, 0, 2), data.Dataset.range(2, 9, 3),
               data.Dataset.from_tensors([1, 2]), data.Dataset.from_tensor_slices([1, 2, 3]), data.TextLineDataset("no"),
               data.experimental.RandomDataset(3)]
    counts = [data.experimental.cardinality(x) for x in sources]
    counts.append(tf.raw_ops.ExperimentalDatasetCardinality(input_dataset=tf.raw_ops.SparseTensorSliceDataset(
        indices=[[0, 0]], values=[1.0], dense_shape=[4, 3])))
    program.run([tf.stack(counts)])


@case
def elements_by_their_places():
    few, endless = data.Dataset.range(7), data.Dataset.range(3).repeat()
    add = lambda v: v + 1
    place = tf.placeholder(tf.int64, [], name="place")
    ways = [data.Dataset.range(2, 9, 3), data.Dataset.range(5, 0, -2), data.Dataset.from_tensors([1, 2]),
            data.Dataset.from_tensor_slices({"x": numbers([3, 2]), "s": [b"a", b"b", b"cd"]}),
            data.Dataset.range(2).concatenate(data.Dataset.range(5, 8)), data.Dataset.zip((few, data.Dataset.range(5, 8))),
            few.map(lambda v: (v, v * v)), few.map(add, num_parallel_calls=2), few.batch(3),
            few.batch(3, drop_remainder=True), few.take(3), few.skip(3), few.shard(3, 1), data.Dataset.range(2).repeat(2),
            few.prefetch(1), few.cache(), few.apply(data.experimental.assert_cardinality(7)), options(few),
            few.shuffle(5, seed=3)]
    program = Program()
    for way in ways:
        element = tf.nest.flatten(tf2.data.experimental.at(way, place))
        for k in (0, 2, 3, 6, -1):
            program.run(element, {place: k})
    for way in (endless, few.filter(lambda v: v > 1), endless.map(add), few.apply(data.experimental.ignore_errors())):
        program.run(tf.nest.flatten(tf2.data.experimental.at(way, place))[:1], {place: 0})


@case
def generators_of_seeds():
    """As the first versions of TensorFlow 2 shuffled: of two data sets that share one."""
    kinds = dict(output_types=[tf.int64], output_shapes=[[]])
    for again in (True, False):
        seeds = tf.raw_ops.AnonymousSeedGenerator(seed=5, seed2=7, reshuffle=again)
        few = data.Dataset.range(6)._variant_tensor
        sets = [tf.raw_ops.ShuffleDatasetV2(input_dataset=few, buffer_size=4, seed_generator=seeds.handle, **kinds),
                tf.raw_ops.ShuffleDatasetV3(input_dataset=few, buffer_size=4, seed=1, seed2=2, seed_generator=seeds.handle,
                                            **kinds)]
        both = tf.raw_ops.ZipDataset(input_datasets=sets, output_types=[tf.int64] * 2, output_shapes=[[]] * 2)
        drain_raw(tf.raw_ops.RepeatDataset(input_dataset=both, count=2, output_types=[tf.int64] * 2, output_shapes=[[]] * 2),
                  (tf.int64, tf.int64), ((), ()))


@case
def constant_generator_of_seeds():
    kinds = dict(output_types=[tf.int64], output_shapes=[[]])
    drain_raw(tf.raw_ops.ShuffleDatasetV3(
        input_dataset=data.Dataset.range(6)._variant_tensor, buffer_size=4, seed=5, seed2=7,
        seed_generator=tf.raw_ops.DummySeedGenerator(), **kinds))


def write_graph(graph, name):
    """Where a SavedModel has a data set, its generator of seeds is a constant: a handle of the process that wrote it."""
    definition = graph.as_graph_def()
    for node in definition.node:
        if name == "constant_generator_of_seeds" and node.op == "DummySeedGenerator":
            handle = tf.make_tensor_proto(0)
            handle.Clear()
            handle.dtype = tf.resource.as_datatype_enum
            handle.tensor_shape.SetInParent()
            handle.resource_handle_val.add(device="/job:localhost/replica:0/task:0/device:CPU:0", container="localhost",
                                           name="", hash_code=0, maybe_type_name="tensorflow::data::DummyResource")
            node.op = "Const"
            node.attr["dtype"].type = tf.resource.as_datatype_enum
            node.attr["value"].tensor.CopyFrom(handle)
    with open(os.path.join(FILES, name + ".pb"), "wb") as file:
        file.write(definition.SerializeToString(deterministic=True))


def write_files():
    with open(path("fixed.bin"), "wb") as f:
        f.write(b"hh" + b"abcdefghi" + b"f")
    with open(path("lines.txt"), "wb") as f:
        f.write(b"one\r\ntwo\nthree")
    with open(path("fields.csv"), "wb") as f:
        f.write(b'a,b,c,d\n1.5,7,"one, ""two""\nthree",2.25\n,-8,,1e3\r\n3,9,NA,NA\n"4",10,last,0.125')
    with open(path("fields.tsv"), "wb") as f:
        f.write(b'1\t"as-it-is\n22\ta,b\n')
    with tf.io.TFRecordWriter(path("examples.tfrecord").decode()) as w:
        for i in range(7):
            feature = {"x": tf.train.Feature(float_list=tf.train.FloatList(value=numbers([2], i + 1))),
                       "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i * i])),
                       "words": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"w%d" % k for k in range(i % 4)]))}
            w.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString(deterministic=True))
    for name in ("fixed.bin", "lines.txt", "examples.tfrecord"):
        with open(path(name), "rb") as f:
            whole = f.read()
        for kind, packed in (("gzip", gzip.compress(whole, mtime=0)), ("zlib", zlib.compress(whole))):
            with open(path(name + "." + kind), "wb") as f:
                f.write(packed)


def main():
    os.makedirs(FILES, exist_ok=True)
    write_files()
    write_waiting()
    tf.enable_resource_variables()
    tf.enable_control_flow_v2()
    only = os.environ.get("CASE")
    for function in CASES:
        if only and function.__name__ != only:
            continue
        with tf.Graph().as_default() as graph:
            out.append("graph %s" % function.__name__)
            function()
            write_graph(graph, function.__name__)
    with open(os.path.join(HERE, "datasets.txt"), "w") as file:
        file.write("# Made by make_datasets.py with TensorFlow %s.\n" % tf.__version__)
        file.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
