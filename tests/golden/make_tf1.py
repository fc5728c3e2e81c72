#!/usr/bin/env python3
"""Writes tf1_*.meta, tf1_old.pb and tf1.h: small graphs as TensorFlow 1 wrote them, and what TensorFlow computes with them.

Variables are references (VariableV2, Assign, ApplyMomentum), input comes through queues with their runners, towers ask
for GPUs that need not be there. tests/test_tf1.c imports them, runs the same steps and compares the losses.
"""
import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import gen_data_flow_ops as ops
from tensorflow.python.ops import gen_state_ops as state_ops

tf.disable_eager_execution()
tf.disable_resource_variables()
tf.disable_control_flow_v2()
HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 8


def numbers(shape, stream):
    """Multiples of 1/64 in [-1, 1); the test has the same formula."""
    count = int(np.prod(shape))
    i = np.arange(count, dtype=np.int64)
    return (((i * 7919 + stream * 104729) % 128 - 64) / 64).astype(np.float32).reshape(shape)


def dense(x, name, units, first):
    with tf.variable_scope(name):
        w = tf.get_variable("weights", initializer=numbers((int(x.shape[1]), units), first) * 0.5)
        b = tf.get_variable("biases", [units], initializer=tf.constant_initializer(0.1))
        return tf.nn.bias_add(tf.matmul(x, w), b)


def network(x, y):
    logits = dense(tf.nn.relu(dense(x, "hidden", 5, 1)), "output", 3, 2)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=y))


def export(name):
    meta = tf.train.export_meta_graph()
    meta.meta_info_def.ClearField("stripped_op_list")  # more bytes than the graph
    with open(os.path.join(HERE, name), "wb") as file:
        file.write(meta.SerializeToString(deterministic=True))


def data_in_loops():
    """One task has 14 numbers, of which loops over two tasks take five in a step and add them up: in a loop in a loop,
    as a vector that grows, and as one that does with a loop inside, whose vector may grow, too."""
    ours, theirs = "/job:worker/task:0", "/job:worker/task:1"
    with tf.device(theirs):
        iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(14))
        tf.group(iterator.initializer, name="begin")
        first = iterator.get_next()

    def take(i, sum):
        with tf.device(theirs):
            more = iterator.get_next()
        with tf.device(ours):
            return i + 1, sum + more

    def take_two(i, sum):
        with tf.device(ours):
            return i + 1, tf.while_loop(lambda j, _: j < 2, take, [0, sum])[1]

    def grow(i, taken):
        with tf.device(theirs):
            more = iterator.get_next()
        with tf.device(ours):
            return i + 1, tf.concat([taken, [more]], 0)

    def loop_and_grow(take, begin):
        def body(i, taken):
            with tf.device(ours):
                shapes = [tf.TensorShape([]), tf.TensorShape([None] * begin.shape.rank)]
                more = tf.while_loop(lambda j, _: j < 2, take, [0, begin], shape_invariants=shapes)[1]
                return i + 1, tf.concat([taken, [tf.reduce_sum(more)]], 0)
        return body

    def sum_up(body, rounds):
        return tf.reduce_sum(tf.while_loop(lambda i, _: i < rounds, body, [0, tf.reshape(first, [1])],
                                           shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])[1])

    zero = tf.constant(0, tf.int64)
    with tf.device(ours):
        tf.identity(tf.while_loop(lambda i, _: i < 2, take_two, [0, first])[1], name="sum")
        tf.identity(sum_up(grow, 4), name="sum_of_vector")
        tf.identity(sum_up(loop_and_grow(take, zero), 2), name="sum_of_sums")
        tf.identity(sum_up(loop_and_grow(grow, tf.reshape(zero, [1])), 2), name="sum_of_vectors")
    export("tf1_data_in_loops.meta")


def train_with(optimizer_name):
    """Placeholders, a step counter, a rate that falls, and one optimizer with slots."""
    x = tf.placeholder(tf.float32, [4, 6], name="x")
    y = tf.placeholder(tf.int32, [4], name="y")
    step = tf.train.get_or_create_global_step()
    loss = tf.identity(network(x, y), name="loss")
    rate = tf.train.exponential_decay(0.2, step, 3, 0.5, staircase=True)
    optimizer = {
        "sgd": lambda: tf.train.GradientDescentOptimizer(rate),
        "momentum": lambda: tf.train.MomentumOptimizer(rate, 0.9),
        "adam": lambda: tf.train.AdamOptimizer(rate),
        "rmsprop": lambda: tf.train.RMSPropOptimizer(0.02, momentum=0.5),
    }[optimizer_name]()
    train = optimizer.minimize(loss, global_step=step, name="train")
    after = tf.assign_add(step, 0, name="steps_done")  # a reference that is fetched
    with tf.control_dependencies([train]):
        tf.identity(step.read_value(), name="step_after")
    init = tf.global_variables_initializer()
    export("tf1_%s.meta" % optimizer_name)
    losses = []
    with tf.Session() as session:
        session.run(init)
        for i in range(STEPS):
            feeds = {x: numbers((4, 6), 10 + i), y: (np.arange(4) + i) % 3}
            losses.append(session.run([loss, train], feeds)[0])
        assert session.run(after) == STEPS
    return losses


def examples_by_queues():
    index = tf.train.range_input_producer(12, num_epochs=2, shuffle=False, capacity=5).dequeue()
    table = tf.constant(numbers((12, 6), 3))
    return [tf.gather(table, index), tf.floormod(index, 3)]


def train_on(example):
    x, y = tf.train.batch(example, batch_size=4, num_threads=1, capacity=9)
    loss = tf.identity(network(x, y), name="loss")
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")
    init = tf.group(tf.global_variables_initializer(), tf.local_variables_initializer(), name="initialize")
    return loss, train, init


def queues_of_two_tasks():
    """As queues(), with the examples made by one task and batched by another, whose losses are the same."""
    with tf.device("/job:worker/task:1"):
        example = examples_by_queues()
    with tf.device("/job:worker/task:0"):
        train_on(example)
    export("tf1_queues_tasks.meta")


def queue_that_nobody_fills():
    with tf.device("/job:worker/task:1"):
        taken = tf.FIFOQueue(1, [tf.float32], [[]], name="empty").dequeue()
    with tf.device("/job:worker/task:0"):
        tf.negative(taken, name="loss")
    export("tf1_queues_empty.meta")


def queue_behind_a_loop():
    """One task counts, and another makes a vector so long, round by round, whose sum and length it queues."""
    with tf.device("/job:worker/task:1"):
        index = tf.train.range_input_producer(7, num_epochs=2, shuffle=False, capacity=5).dequeue()
        start = tf.fill([1], tf.cast(index, tf.float32))
    with tf.device("/job:worker/task:0"):
        _, grown = tf.while_loop(lambda i, v: i < index, lambda i, v: (i + 1, tf.concat([v, v[-1:] + 1.0], 0)),
                                 [tf.constant(0), start],
                                 shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])
        both = tf.stack([tf.reduce_sum(grown), tf.cast(tf.size(grown), tf.float32)])
        w = tf.get_variable("w", initializer=np.float32([1, 2]))
        tf.reduce_sum(tf.train.batch([both], batch_size=2, num_threads=1, capacity=9) * w, name="loss")
        tf.assign_add(w, [0.5, 0.25], name="train")
    tf.group(tf.global_variables_initializer(), tf.local_variables_initializer(), name="initialize")
    export("tf1_queues_loop.meta")


def queues_behind_loops_in_loops():
    """Each of two tasks counts, and fills a queue with what loops in loops over both make of it; so does a step."""
    ours, theirs = "/job:worker/task:0", "/job:worker/task:1"
    shapes = [tf.TensorShape([]), tf.TensorShape([None])]

    def make(count, here, there):
        def add(j, v):
            with tf.device(there):
                longer = tf.concat([v, v[-1:] + 1.0], 0)
            with tf.device(here):
                return j + 1, longer * 0.5

        def add_two(i, v):
            with tf.device(here):
                longer = tf.while_loop(lambda j, _: j < 2, add, [0, v], shape_invariants=shapes)[1]
                return i + 1, tf.concat([longer, v[:1]], 0)

        with tf.device(here):
            start = tf.fill([1], tf.cast(count, tf.float32))
            return tf.reduce_sum(tf.while_loop(lambda i, _: i < count, add_two, [0, start], shape_invariants=shapes)[1])

    made = []
    for here, there, limit in ((ours, theirs, 9), (theirs, ours, 7)):
        with tf.device(here):
            count = tf.train.range_input_producer(limit, num_epochs=2, shuffle=False, capacity=4).dequeue()
        with tf.device(ours):
            made.append(tf.train.batch([make(count, here, there)], batch_size=1, num_threads=1, capacity=2)[0])
    with tf.device(ours):
        n = tf.get_variable("n", initializer=np.int32(2))
        loss = tf.stack(made + [make(n % 5, ours, theirs)], name="loss")
        with tf.control_dependencies([loss]):
            tf.assign_add(n, 1, name="train")
    tf.group(tf.global_variables_initializer(), tf.local_variables_initializer(), name="initialize")
    export("tf1_queues_loops.meta")


def data_sets_of_two_tasks():
    """Each task has a data set whose function makes a vector so long, round by round; the third step meets an end."""
    def grow(index):
        index = tf.cast(index, tf.int32)
        _, grown = tf.while_loop(lambda i, v: i < index, lambda i, v: (i + 1, tf.concat([v, v[-1:] + 1.0], 0)),
                                 [tf.constant(0), tf.fill([1], tf.cast(index, tf.float32))],
                                 shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])
        return grown

    vectors = []
    for task, count in enumerate((5, 2)):
        with tf.device("/job:worker/task:%d" % task):
            iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(1, 1 + count).map(grow))
            tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
            vectors.append(tf.reduce_sum(tf.square(iterator.get_next())))
    with tf.device("/job:worker/task:0"):
        w = tf.get_variable("w", initializer=np.float32([1, 2]))
        loss = tf.reduce_sum(tf.stack(vectors) * w, name="loss")
        with tf.control_dependencies([loss]):
            tf.assign_add(w, [0.5, 0.25], name="train")
    export("tf1_data_sets_tasks.meta")


def queues():
    """Two epochs of 12 numbers, batched by a runner; the last run meets the end."""
    loss, train, init = train_on(examples_by_queues())
    export("tf1_queues.meta")
    losses = []
    with tf.Session() as session:
        session.run(init)
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            while True:
                losses.append(session.run([loss, train])[0])
        except tf.errors.OutOfRangeError:
            pass
        coordinator.request_stop()
        coordinator.join(threads)
    assert len(losses) == 6
    return losses


def towers():
    """The tutorial's two towers: variables on the CPU, gradients averaged there."""
    with tf.device("/cpu:0"):
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        all_grads, losses_of = [], []
        for i in range(2):
            with tf.device("/gpu:%d" % i), tf.name_scope("tower_%d" % i), tf.variable_scope("", reuse=i > 0):
                real = tf.get_variable

                def on_cpu(*args, **kwargs):
                    with tf.device("/cpu:0"):
                        return real(*args, **kwargs)

                tf.get_variable = on_cpu
                x = tf.constant(numbers((4, 6), 20 + i))
                y = tf.constant((np.arange(4) + i) % 3, tf.int32)
                loss = network(x, y)
                tf.get_variable = real
                losses_of.append(loss)
                all_grads.append(optimizer.compute_gradients(loss))
        averaged = []
        for pairs in zip(*all_grads):
            grad = tf.reduce_mean(tf.concat([tf.expand_dims(g, 0) for g, _ in pairs], 0), 0)
            averaged.append((grad, pairs[0][1]))
        optimizer.apply_gradients(averaged, global_step=step, name="train")
        loss = tf.add_n(losses_of, name="loss")
        init = tf.global_variables_initializer()
    export("tf1_towers.meta")
    losses = []
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        session.run(init)
        for _ in range(STEPS):
            losses.append(session.run([loss, "train"])[0])
    return losses


def old():
    """As graphs were before 2017: queues whose handles are references to strings, Variable without V2."""
    queue = ops.fifo_queue([tf.int32], shapes=[[]], capacity=8, name="queue")
    ops.queue_enqueue_many(queue, [tf.constant([1, 2, 3])], name="put")
    ops.queue_dequeue_many(queue, 2, [tf.int32], name="two")
    ops.queue_size(queue, name="size")
    ops.queue_close(queue, name="close")
    variable = state_ops.variable([], tf.int32, name="v")
    tf.identity(state_ops.assign(variable, 5, name="assign"), name="five")
    with open(os.path.join(HERE, "tf1_old.pb"), "wb") as file:
        file.write(tf.get_default_graph().as_graph_def().SerializeToString(deterministic=True))


with tf.Graph().as_default():
    old()
for make in (queues_of_two_tasks, queue_that_nobody_fills, queue_behind_a_loop, queues_behind_loops_in_loops,
             data_sets_of_two_tasks, data_in_loops):
    with tf.Graph().as_default():
        make()
with open(os.path.join(HERE, "tf1.h"), "w") as file:
    file.write("/* tf1.h - losses of the graphs in tf1_*.meta, made by make_tf1.py with TensorFlow %s. */\n" % tf.__version__)
    cases = [(n, lambda n=n: train_with(n)) for n in ("sgd", "momentum", "adam", "rmsprop")]
    for name, make in cases + [("queues", queues), ("towers", towers)]:
        with tf.Graph().as_default():
            losses = make()
        file.write("static const float golden_%s[] = {%s};\n" % (name, ", ".join("%.9g" % v for v in losses)))
