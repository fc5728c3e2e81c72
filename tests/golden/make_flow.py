#!/usr/bin/env python3
"""Writes flow/*.pb and flow.txt: graphs with control flow as TensorFlow 1 wrote them, and what TensorFlow computes with them.

flow.txt has, for each graph, runs of one session in their order: what is fed, which nodes run, what is fetched, or how
the run fails. tests/test_flow.c imports the graphs, does the same and compares.
"""
import os
import re
import sys

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from tensorflow.python.framework.function import Defun
from tensorflow.python.ops import control_flow_ops
from tensorflow.python.training import moving_averages

tf.disable_eager_execution()
HERE = os.path.dirname(os.path.abspath(__file__))
CASES = []
out = []


def case(resource=False, v2=False):
    def add(function):
        CASES.append((function.__name__, function, resource, v2))
        return function

    return add


def numbers(shape, stream=1):
    """Multiples of 1/64 in [-1, 1)."""
    i = np.arange(int(np.prod(shape)), dtype=np.int64)
    return (((i * 7919 + stream * 104729) % 128 - 64) / 64).astype(np.float32).reshape(shape)


def spell(value):
    value = np.asarray(value)
    kind = {"f": "float", "i": "int%d" % (8 * value.dtype.itemsize), "b": "bool", "O": "string", "S": "string"}[value.dtype.kind]
    if value.dtype == np.float64:
        kind = "double"
    words = [kind, str(value.ndim)] + [str(d) for d in value.shape]
    for v in value.ravel():
        words.append(v.decode() if isinstance(v, bytes) else "%d" % v if value.dtype.kind in "ib" else "%.9g" % v)
    return " ".join(words)


class Program:
    """A session whose runs are written down."""

    def __init__(self):
        self.session = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))

    def run(self, fetches=(), feeds=None, targets=(), before=False):
        """before: what is fetched is asked for before the targets run, where TensorFlow has it before or after."""
        out.append("run")
        for tensor, value in (feeds or {}).items():
            value = np.asarray(value, tensor.dtype.as_numpy_dtype)
            out.append("feed %s %s" % (tensor.name, spell(value)))
        for node in targets:
            out.append("target %s" % node.name)
        fetches = list(fetches)
        names = [self.session.graph.as_graph_element(f).name for f in fetches]
        try:
            if before:
                values = self.session.run(fetches, feeds)
                self.session.run(list(targets), feeds)
            else:
                values = self.session.run(fetches + [t for t in targets], feeds)[: len(fetches)]
        except tf.errors.OpError as error:
            for name in names:
                out.append("fetch %s" % name)
            said = re.search(r"assertion failed: [^(\n]*|Retval\[\d+\] does not have value|End of sequence|GetNext\(\) failed because the iterator has not been initialized", error.message)
            out.append("fails %d %s" % (error.error_code, said.group(0).strip() if said else ""))
            return None
        for name, value in zip(names, values):
            out.append("fetch %s %s" % (name, spell(value)))
        return values


# ---- conditionals ------------------------------------------------------------------------------------------------------


@case()
def simple():
    p, x = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.float32, [3], name="x")
    y = tf.cond(p, lambda: x * x, lambda: -x)
    z = y + 1
    program = Program()
    for taken in (True, False, True):
        program.run([y, z], {p: taken, x: numbers(3)})


@case()
def nested():
    p, q = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.bool, [], name="q")
    x = tf.placeholder(tf.float32, [4], name="x")
    y = tf.cond(p, lambda: tf.cond(q, lambda: x + 1, lambda: tf.exp(x)), lambda: tf.cond(q, lambda: x * 3, lambda: x - 2))
    (g,) = tf.gradients(tf.reduce_sum(y * y), [x])
    program = Program()
    for a in (True, False):
        for b in (True, False):
            program.run([y, g], {p: a, q: b, x: numbers(4)})


@case()
def same_predicate_inside():
    p, x = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.float32, [4], name="x")
    y = tf.cond(p, lambda: tf.cond(p, lambda: x + 1, lambda: x + 2), lambda: tf.cond(p, lambda: x + 3, lambda: x + 4))
    program = Program()
    for a in (True, False):
        program.run([y], {p: a, x: numbers(4)})


@case()
def passes_on():
    p, x = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.float32, [5], name="x")
    a = tf.exp(x)
    y = tf.cond(p, lambda: a, lambda: tf.nn.relu(a - 1))
    z = tf.cond(p, lambda: tf.nn.relu(-a), lambda: tf.constant(numbers(5, 3)))
    w = tf.cond(p, lambda: (a, x), lambda: (x, a))
    program = Program()
    for taken in (True, False):
        program.run([y, z, w[0], w[1]], {p: taken, x: numbers(5)})
        program.run([z], {p: taken, x: numbers(5, 2)})


@case()
def types():
    p = tf.placeholder(tf.bool, [], name="p")
    i = tf.placeholder(tf.int32, [2], name="i")
    y = tf.cond(p, lambda: i + 1, lambda: i * 2)
    s = tf.cond(p, lambda: tf.constant(["yes", "ja"]), lambda: tf.constant(["no", "nein"]))
    b = tf.cond(p, lambda: i > 3, lambda: tf.equal(i, 4))
    d = tf.cond(p, lambda: tf.cast(i, tf.float64) / 3, lambda: tf.cast(i, tf.float64))
    program = Program()
    for taken in (True, False, False, True):
        program.run([y, s, b, d], {p: taken, i: [3, 4]})


def assigns():
    p = tf.placeholder(tf.bool, [], name="p")
    v = tf.get_variable("v", initializer=numbers(3))
    n = tf.get_variable("n", initializer=5)

    def taken():
        with tf.control_dependencies([tf.assign_add(n, 10)]):
            return tf.identity(tf.assign_add(v, [1.0, 2.0, 3.0]))

    y = tf.cond(p, taken, lambda: tf.identity(v) * 2)
    only = tf.cond(p, lambda: tf.group(tf.assign(n, 1)), lambda: tf.no_op())
    init = tf.global_variables_initializer()
    program = Program()
    program.run([], targets=[init])
    for take in (True, False, True, False, False):
        program.run([y], {p: take})
        program.run([v, n])
    program.run([], {p: False}, targets=[only])
    program.run([n])
    program.run([], {p: True}, targets=[only.op if hasattr(only, "op") else only])
    program.run([n])


@case()
def assigns_references():
    assigns()


@case(resource=True)
def assigns_resources():
    assigns()


@case()
def asserts():
    p, x = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.float32, [2], name="x")

    def checked():
        with tf.control_dependencies([tf.Assert(tf.reduce_all(x > 0), [x])]):
            return tf.sqrt(x)

    y = tf.cond(p, checked, lambda: tf.zeros_like(x))
    program = Program()
    program.run([y], {p: True, x: [1.0, 4.0]})
    program.run([y], {p: False, x: [-1.0, 4.0]})
    program.run([y], {p: True, x: [-1.0, 4.0]})
    program.run([y], {p: True, x: [1.0, 9.0]})


@case()
def dead_fetch():
    p, x = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.float32, [2], name="x")
    no, yes = control_flow_ops.switch(x, p)
    a, b = tf.exp(yes, name="a"), tf.identity(no, name="b")
    c, index = control_flow_ops.merge([tf.nn.relu(no), a + 0])
    both = tf.add(a, b, name="both")
    program = Program()
    for taken in (True, False):
        program.run([c, index], {p: taken, x: numbers(2)})
        program.run([a], {p: taken, x: numbers(2)})
        program.run([b], {p: taken, x: numbers(2)})
        program.run([c], {p: taken, x: numbers(2)}, targets=[a.op])
    program.run([both], {p: True, x: numbers(2)})


@case()
def known_predicates():
    x = tf.placeholder(tf.float32, [2], name="x")
    t, f = tf.constant(True), tf.constant(False)
    d = tf.placeholder_with_default(True, [], name="d")
    y = tf.cond(t, lambda: x + 1, lambda: tf.placeholder(tf.float32, [2], name="never_fed") + x)
    z = tf.cond(tf.logical_and(t, f), lambda: x + 1, lambda: x + 2)
    w = tf.cond(d, lambda: x + 3, lambda: x + 4)
    dead = control_flow_ops.switch(x, t)[0] + 1
    program = Program()
    never = tf.get_default_graph().get_tensor_by_name("cond/never_fed:0")  # TensorFlow wants it fed all the same
    program.run([y, z, w], {x: numbers(2), never: numbers(2)})
    program.run([z, w], {x: numbers(2), d: False})
    program.run([dead], {x: numbers(2)})


@case()
def missing_variable():
    """A variable without a value is missed only where it is read."""
    p = tf.placeholder(tf.bool, [], name="p")
    v = tf.get_variable("v", initializer=numbers(2), use_resource=True)
    u = tf.get_variable("u", initializer=numbers(2, 2), use_resource=False)
    y = tf.cond(p, lambda: v + 1, lambda: tf.constant(numbers(2, 3)))
    z = tf.cond(tf.is_variable_initialized(u), lambda: tf.identity(u), lambda: tf.constant(numbers(2, 4)))
    fill = tf.cond(p, lambda: tf.group(tf.assign(v, numbers(2, 5))), lambda: tf.no_op())
    with tf.control_dependencies([fill]):
        after = v.read_value()
    program = Program()
    program.run([y, z], {p: False})
    program.run([y], {p: True})
    program.run([after], {p: False})
    program.run([after], {p: True})
    program.run([y], {p: True})
    program.run([], targets=[u.initializer])
    program.run([z])


@case()
def looks_when_known():
    """What a branch takes of a variable is looked at when the condition is known, which here depends on its update: the
    target network of a DQN."""
    v = tf.get_variable("v", initializer=numbers(3))
    t = tf.get_variable("t", initializer=np.zeros(3, np.float32))
    n = tf.get_variable("n", initializer=0)
    with tf.control_dependencies([tf.assign_add(v, [1.0, 2.0, 3.0]), tf.assign_add(n, 1)]):
        turn = tf.equal(n % 2, 0)
    step = tf.cond(turn, lambda: tf.group(tf.assign(t, v)), lambda: tf.no_op())
    init = tf.global_variables_initializer()
    program = Program()
    program.run([], targets=[init])
    for _ in range(4):
        program.run([], targets=[step])
        program.run([v, t])


@case()
def looks_in_branch():
    """A branch that writes a variable and then takes what came in as its value sees what it wrote."""
    p = tf.placeholder(tf.bool, [], name="p")
    v = tf.get_variable("v", initializer=numbers(3))

    def taken():
        with tf.control_dependencies([tf.assign_add(v, [1.0, 2.0, 3.0])]):
            return v * 2

    y = tf.cond(p, taken, lambda: v * 3)
    init = tf.global_variables_initializer()
    program = Program()
    program.run([], targets=[init])
    for take in (True, False, True):
        program.run([y], {p: take})
        program.run([v])


@case()
def looks_at_inputs():
    """Whoever takes a variable looks at it when all that it takes is there, with or without an edge of control."""
    v = tf.get_variable("v", initializer=numbers(3))
    with tf.control_dependencies([tf.assign_add(v, [1.0, 2.0, 3.0])]):
        x = tf.constant([1.0, 1.0, 1.0]) + 1
    y = v * tf.square(x)
    z = tf.concat([tf.exp(tf.negative(x)), v], 0)
    init = tf.global_variables_initializer()
    program = Program()
    program.run([], targets=[init])
    for _ in range(2):
        program.run([y, z])


@case(resource=True)
def gradients_after_update():
    """Moving averages first, as batch normalization asks: the ways into the gradient's loop come after an update outside."""
    w = tf.get_variable("w", initializer=numbers(3))
    m = tf.get_variable("m", initializer=numbers(3, 2), trainable=False)
    y = tf.scan(lambda a, x: tf.tanh(a * w + x), tf.constant(numbers((4, 3), 5)), numbers(3, 3))
    loss = tf.reduce_sum(tf.square(y))
    with tf.control_dependencies([m.assign_sub(0.5 * m, read_value=False)]):
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    init = tf.global_variables_initializer()
    program = Program()
    program.run([], targets=[init])
    for _ in range(3):
        program.run([loss], targets=[train])
    program.run([w, m])


def trains(kind):
    p = tf.placeholder(tf.bool, [], name="p")
    x = tf.constant(numbers((4, 3), 7))
    w = tf.get_variable("w", initializer=numbers((3, 2)))
    b = tf.get_variable("b", initializer=numbers((2,), 3))
    h = tf.matmul(x, w)
    if kind == "inner":  # variables are read inside of branches, b in one alone
        y = tf.cond(p, lambda: tf.nn.relu(h + b) * w[0], lambda: tf.tanh(tf.matmul(x, w)) - 1)
    else:
        y = tf.cond(p, lambda: tf.nn.relu(h) + b, lambda: h * h)
    loss = tf.reduce_mean(tf.square(y - 1)) + 0.1 * tf.reduce_sum(tf.square(w)) + 0.01 * tf.reduce_sum(b)
    train = tf.train.GradientDescentOptimizer(0.3).minimize(loss)
    init = tf.global_variables_initializer()
    program = Program()
    program.run([], targets=[init])
    for taken in (True, False, False, True, True, False):
        program.run([loss], {p: taken}, targets=[train])
    program.run([w, b])


@case()
def trains_references():
    trains("outer")


@case(resource=True)
def trains_resources():
    trains("outer")


@case()
def trains_references_inside():
    trains("inner")


@case()
def piecewise_rate():
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", initializer=numbers(4))
    rate = tf.train.piecewise_constant(step, [2, 4], [0.3, 0.2, 0.1])
    boundaries = tf.case(
        [(tf.less(step, 2), lambda: tf.constant(1.0)), (tf.less(step, 5), lambda: tf.constant(0.5))],
        default=lambda: tf.constant(0.25),
    )
    loss = tf.reduce_sum(tf.square(w - boundaries))
    train = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, global_step=step)
    init = tf.global_variables_initializer()
    program = Program()
    program.run([], targets=[init])
    for _ in range(7):
        program.run([loss, rate], targets=[train])


@case()
def averages():
    """The moving averages of the tutorial (values are taken once variables have some) and of batch normalization."""
    x = tf.placeholder(tf.float32, [4, 3], name="x")
    training = tf.placeholder(tf.bool, [], name="training")
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", initializer=numbers((3, 2)))
    average = tf.train.ExponentialMovingAverage(0.9, step)
    mean = tf.get_variable("moving_mean", initializer=np.zeros(3, np.float32), trainable=False)
    variance = tf.get_variable("moving_variance", initializer=np.ones(3, np.float32), trainable=False)

    def batch():
        m, v = tf.nn.moments(x, [0])
        with tf.control_dependencies(
            [
                moving_averages.assign_moving_average(mean, m, 0.9, zero_debias=True),
                moving_averages.assign_moving_average(variance, v, 0.9, zero_debias=False),
            ]
        ):
            return tf.identity(m), tf.identity(v)

    m, v = tf.cond(training, batch, lambda: (tf.identity(mean), tf.identity(variance)))
    y = tf.matmul(tf.nn.batch_normalization(x, m, v, None, None, 1e-3), w)
    loss = tf.reduce_mean(tf.square(y - 1))
    start = tf.identity(w.initialized_value())
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    with tf.control_dependencies([train]):
        both = average.apply([w])
    init = tf.global_variables_initializer()
    program = Program()
    program.run([start])
    program.run([], targets=[init])
    for i in range(4):
        program.run([loss], {x: numbers((4, 3), i), training: True}, targets=[both])
    program.run([loss, m, v], {x: numbers((4, 3), 9), training: False})
    program.run([average.average(w), start])


@case()
def devices():
    """The predicate is computed on one GPU, branches on another, who wants them is on the CPU."""
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    with tf.device("/gpu:1"):
        p = tf.reduce_sum(x) > 0
        a = tf.exp(x)
    with tf.device("/gpu:0"):
        y = tf.cond(p, lambda: tf.matmul(a, x), lambda: tf.cond(x[0, 0] > 0, lambda: a - x, lambda: a * 2))
    with tf.device("/gpu:1"):
        z = tf.nn.relu(y) + a
    with tf.device("/cpu:0"):
        total = tf.reduce_sum(z)
        (g,) = tf.gradients(total, [x])
    program = Program()
    for value in ([[1, 2], [3, 4]], [[1, -2], [-3, -4]], [[-1, 2], [-3, -4]]):
        program.run([total, y, g], {x: np.array(value, np.float32) / 4})
    program.run([y], {x: np.array([[1, 2], [3, 4]], np.float32) / 4})


@case()
def towers():
    """Two towers with a condition of their own each, gradients averaged; the variables are on the CPU."""
    p = tf.placeholder(tf.bool, [2], name="p")
    with tf.device("/cpu:0"):
        w = tf.get_variable("w", initializer=numbers((3, 2)))
    grads, losses = [], []
    for i in range(2):
        with tf.device("/gpu:%d" % i), tf.name_scope("tower_%d" % i):
            x = tf.constant(numbers((4, 3), 20 + i))
            h = tf.matmul(x, w)
            y = tf.cond(p[i], lambda: tf.nn.relu(h), lambda: tf.sigmoid(h) * h)
            losses.append(tf.reduce_mean(tf.square(y - 1)))
            grads.append(tf.gradients(losses[i], [w])[0])
    with tf.device("/cpu:0"):
        mean = tf.reduce_mean(tf.concat([tf.expand_dims(g, 0) for g in grads], 0), 0)
        train = tf.assign_sub(w, 0.5 * mean)
        loss = tf.add_n(losses)
    init = tf.global_variables_initializer()
    program = Program()
    program.run([], targets=[init])
    for value in ([True, True], [True, False], [False, True], [False, False]):
        program.run([loss], {p: value}, targets=[train.op])
    program.run([w])


# ---- loops -------------------------------------------------------------------------------------------------------------


@case()
def counts():
    n, x = tf.placeholder(tf.int32, [], name="n"), tf.placeholder(tf.float32, [3], name="x")
    i, y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * 2 + x), [0, x])
    a, b, _ = tf.while_loop(lambda a, b, k: k < n, lambda a, b, k: (b, a + b, k + 1), [0, 1, 0])
    c, d, e, _ = tf.while_loop(
        lambda c, d, e, k: k < n, lambda c, d, e, k: (tf.reshape(d, [3, 1]), tf.reshape(c, [3]), e, k + 1),
        [tf.reshape(x, [3, 1]), x * 2, x + 1, 0])
    after = y + tf.cast(i, tf.float32)
    program = Program()
    for rounds in (5, 0, 1, 12):
        program.run([i, y, a, b, c, d, e, after], {n: rounds, x: numbers(3)})
        program.run([b], {n: rounds})


@case()
def loops_in_loops():
    n = tf.placeholder(tf.int32, [], name="n")
    w = tf.constant(numbers((3, 3), 2))

    def inner(x, i):
        return tf.while_loop(lambda k, y: k < i, lambda k, y: (k + 1, tf.matmul(y, w) + tf.cast(k, tf.float32)), [0, x])[1]

    i, x = tf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, inner(x, i) * 0.5), [0, tf.constant(numbers((2, 3)))])
    many = tf.while_loop(
        lambda i, s: i < n,
        lambda i, s: (i + 1, tf.while_loop(
            lambda k, s: k < 2,
            lambda k, s: (k + 1, tf.while_loop(lambda m, s: m < k + i, lambda m, s: (m + 1, s + m * k), [0, s])[1]),
            [0, s])[1]),
        [0, 0])[1]
    program = Program()
    for rounds in (4, 0, 1):
        program.run([x, many], {n: rounds})


@case()
def conditions_in_loops():
    n, p = tf.placeholder(tf.int32, [], name="n"), tf.placeholder(tf.bool, [], name="p")

    def body(i, x):
        y = tf.cond(tf.equal(i % 2, 0), lambda: x + tf.cast(i, tf.float32), lambda: tf.cond(p, lambda: x * 2, lambda: -x))
        return i + 1, y

    x = tf.while_loop(lambda i, x: i < n, body, [0, tf.constant(numbers(3))])[1]
    y = tf.cond(p, lambda: tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y + x), [0, x * 0])[1], lambda: x)
    text = tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, tf.where(tf.equal(i, 2), tf.constant("two"), s)),
                         [0, tf.constant("none")])[1]
    program = Program()
    for rounds in (5, 2, 0):
        for value in (True, False):
            program.run([x, y], {n: rounds, p: value})


def variables_in_loops(use_resource):
    n = tf.placeholder(tf.int32, [], name="n")
    v = tf.get_variable("v", initializer=numbers(2))
    calls = tf.get_variable("calls", initializer=0)

    def body(i, x):
        """In one order: TensorFlow begins a round before the last one has ended."""
        with tf.control_dependencies([tf.assign_add(calls, 1)]):
            new = tf.assign_add(v, [1.0, 2.0]) if use_resource else tf.assign(v, v + [1.0, 2.0])
        with tf.control_dependencies([new]):
            x = x + (v.read_value() if use_resource else v)
        with tf.control_dependencies([x]):
            return i + 1, x

    start = v * 2
    with tf.control_dependencies([start]):
        zero = tf.identity(0)
    x = tf.while_loop(lambda i, x: i < n, body, [zero, start])[1]
    with tf.control_dependencies([x]):
        after = v.read_value() if use_resource else tf.identity(v)
    reads = tf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 0.5 + v), [0, tf.zeros(2)])[1]
    init = tf.global_variables_initializer()
    program = Program()
    program.run([], targets=[init])
    for rounds in (3, 0, 2):
        program.run([x, after], {n: rounds})
        program.run([v, calls])
        program.run([reads], {n: rounds})


@case()
def references_in_loops():
    variables_in_loops(False)


@case(resource=True)
def resources_in_loops():
    variables_in_loops(True)


@case()
def loops_on_devices():
    n = tf.placeholder(tf.int32, [], name="n")
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    with tf.device("/gpu:0"):
        a = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, tf.matmul(y, x)), [0, x])[1]
    with tf.device("/gpu:1"):
        b = tf.while_loop(lambda y: tf.reduce_sum(y) < 100, lambda y: y * 2 + a * 0.25, [tf.exp(x)])

    def spread(i, y):
        with tf.device("/gpu:0"):
            y = tf.nn.relu(y - 0.25)
        with tf.device("/gpu:1"):
            return i + 1, tf.tanh(y) + tf.cast(i, tf.float32)

    c = tf.while_loop(lambda i, y: i < n, spread, [0, b])[1]
    with tf.device("/cpu:0"):
        total = tf.reduce_sum(a) + tf.reduce_sum(b) + tf.reduce_sum(c)
    program = Program()
    for rounds in (3, 0, 6):
        program.run([total, a, b, c], {n: rounds, x: numbers((2, 2))})


@case()
def failing_loops():
    n = tf.placeholder(tf.int32, [], name="n")

    def body(i):
        with tf.control_dependencies([tf.Assert(i < 3, [i])]):
            return i + 1

    i = tf.while_loop(lambda i: i < n, body, [0])
    program = Program()
    program.run([i], {n: 2})
    program.run([i], {n: 5})
    program.run([i], {n: 3})


# ---- arrays, gradients of loops, recurrent networks -----------------------------------------------------------------------


@case()
def arrays():
    x = tf.placeholder(tf.float32, [4, 3], name="x")
    y = tf.map_fn(lambda row: tf.exp(row) + tf.reduce_sum(row), x)
    z = tf.scan(lambda a, row: a * 0.5 + row, x)
    total = tf.foldl(lambda a, row: a + row * row, x)
    array = tf.TensorArray(tf.float32, 4).unstack(x)
    w = tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s + array.read(i) * tf.cast(i, tf.float32)), [0, tf.zeros(3)])[1]
    (g,) = tf.gradients(tf.reduce_sum(y) + tf.reduce_sum(z * z) + tf.reduce_sum(total * w), [x])
    program = Program()
    for stream in (1, 2):
        program.run([y, z, total, w], {x: numbers((4, 3), stream)})
        program.run([g], {x: numbers((4, 3), stream)})


@case()
def gradients_of_loops():
    n = tf.placeholder(tf.int32, [], name="n")
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    w = tf.constant(numbers((3, 3), 2))
    y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w)) + y * x), [0, x])[1]
    z = tf.while_loop(lambda z: tf.reduce_sum(z) < 50, lambda z: z * z + 1.5, [tf.exp(x)])
    u = tf.while_loop(lambda i, u: i < n, lambda i, u: (i + 1, tf.cond(tf.equal(i % 2, 0), lambda: u * w[0], lambda: u + x)),
                      [0, x])[1]
    gx, gw = tf.gradients(tf.reduce_sum(y * y), [x, w])
    (gz,) = tf.gradients(tf.reduce_sum(z), [x])
    (gu,) = tf.gradients(tf.reduce_sum(u * u), [x])
    program = Program()
    for rounds in (3, 0, 5):
        program.run([y, z, u], {n: rounds, x: numbers((2, 3))})
        program.run([gx, gw], {n: rounds, x: numbers((2, 3))})
        program.run([gz, gu], {n: rounds, x: numbers((2, 3))})


@case()
def gradients_of_loops_of_any_shape():
    """TensorFlow keeps the shapes of each round for the gradients, where they are not known."""
    n = tf.placeholder(tf.int32, [], name="n")
    x, b = tf.placeholder(tf.float32, [None, None], name="x"), tf.placeholder(tf.float32, [None], name="b")
    w = tf.constant(numbers((3, 3), 2))
    y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w) + b) * x), [0, x])[1]
    z = tf.while_loop(lambda i, z: i < n, lambda i, z: (i + 1, tf.sin(z * b) + tf.reduce_mean(x * z)), [0, x])[1]
    g = tf.gradients(tf.reduce_sum(y * y) + tf.reduce_sum(z), [x, b])
    program = Program()
    for rounds, rows in ((3, 2), (4, 5), (0, 2), (2, 2)):
        program.run([y, z] + g, {n: rounds, x: numbers((rows, 3)), b: numbers(3, 3)})


@case()
def stacks_of_constants():
    """What is always pushed is known, but of what two nodes push."""
    n = tf.placeholder(tf.int32, [], name="n")
    one, two = tf.constant(1.0), tf.constant(2.0)
    stacks = [tf.raw_ops.StackV2(max_size=-1, elem_type=tf.float32, stack_name=name) for name in ("always", "once")]
    with tf.control_dependencies([tf.raw_ops.StackPushV2(handle=stacks[1], elem=one)]):
        begin = tf.identity(n) * 0

    def pop(stack):
        return tf.reshape(tf.raw_ops.StackPopV2(handle=stack, elem_type=tf.float32), [])

    def fill(i, s):
        first = tf.raw_ops.StackPushV2(handle=stacks[0], elem=two)
        popped = pop(stacks[1])
        with tf.control_dependencies([popped]):
            second = tf.raw_ops.StackPushV2(handle=stacks[1], elem=two)
        with tf.control_dependencies([first, second]):
            return i + 1, s + popped

    i, s = tf.while_loop(lambda i, s: i < n, fill, [begin, 0.0], parallel_iterations=1)
    with tf.control_dependencies([s]):
        again = tf.identity(i) * 0
    t = tf.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t * 3 + pop(stacks[0])), [again, 0.0],
                      parallel_iterations=1)[1]
    program = Program()
    for rounds in (3, 1, 5):
        program.run([s, t], {n: rounds})


def scanned(row, w):
    return tf.scan(lambda a, b: tf.tanh(tf.matmul(a[None], w)[0] + b), row, initializer=tf.zeros([2]))


@case()
def gradients_of_scans_in_maps():
    """Each round makes arrays, whose handles go through a stack into the gradients' loop."""
    x = tf.placeholder(tf.float32, [3, 4, 2], name="x")
    w = tf.constant(numbers((2, 2), 2))
    y = tf.map_fn(lambda row: scanned(row, w), x)
    g = tf.gradients(tf.reduce_sum(y * y), [x, w])
    program = Program()
    for stream in (1, 2):
        program.run([y] + g, {x: numbers((3, 4, 2), stream)})


@case()
def gradients_of_scans_in_maps_in_maps():
    x = tf.placeholder(tf.float32, [None, None, None, 2], name="x")
    w = tf.constant(numbers((2, 2), 2))
    y = tf.map_fn(lambda some: tf.map_fn(lambda row: scanned(row, w) * w[0], some) + some, x)
    g = tf.gradients(tf.reduce_sum(y * y), [x, w])
    program = Program()
    for shape in ((2, 3, 4, 2), (3, 1, 2, 2), (2, 3, 4, 2)):
        program.run([y] + g, {x: numbers(shape)})


@case(resource=True)
def gradients_of_arrays_that_grow_in_loops():
    """An array of each round grows, and how far depends on the round."""
    n = tf.placeholder(tf.int32, [], name="n")
    x = tf.placeholder(tf.float32, [3], name="x")

    def outer(i, s):
        array = tf.TensorArray(tf.float32, 0, dynamic_size=True, clear_after_read=False)
        _, array = tf.while_loop(lambda k, a: k < i + 1, lambda k, a: (k + 1, a.write(k, tf.sin(s * tf.cast(k + 1, tf.float32)))),
                                 [0, array])
        return i + 1, tf.reduce_sum(array.stack(), 0) * x

    y = tf.while_loop(lambda i, s: i < n, outer, [0, x])[1]
    g = tf.gradients(tf.reduce_sum(y * y), [x])
    program = Program()
    for rounds in (3, 1, 4):
        program.run([y] + g, {n: rounds, x: numbers(3)})


@case()
def gradients_of_loops_in_loops():
    x = tf.placeholder(tf.float32, [3], name="x")

    def outer(i, y):
        inner = tf.while_loop(lambda k, z: k < i + 1, lambda k, z: (k + 1, tf.sin(z) * x), [0, y])[1]
        return i + 1, y + inner

    y = tf.while_loop(lambda i, y: i < 3, outer, [0, x])[1]
    (g,) = tf.gradients(tf.reduce_sum(y), [x])
    program = Program()
    program.run([y], {x: numbers(3)})
    program.run([g], {x: numbers(3)})


class Cell:
    """A gated cell, as rnn_cell has them."""

    def __init__(self, units, inputs, name, resource):
        self.state_size = self.output_size = units
        with tf.variable_scope(name):
            self.gates = tf.get_variable("gates", initializer=numbers((inputs + units, units)), use_resource=resource)
            self.candidate = tf.get_variable("candidate", initializer=numbers((inputs + units, units), 2), use_resource=resource)
            self.bias = tf.get_variable("bias", initializer=numbers((units,), 3), use_resource=resource)

    def zero_state(self, batch_size, dtype):
        return tf.zeros([batch_size, self.state_size], dtype)

    def __call__(self, x, state, scope=None):
        u = tf.sigmoid(tf.matmul(tf.concat([x, state], 1), self.gates) + self.bias)
        new = u * state + (1 - u) * tf.tanh(tf.matmul(tf.concat([x, state * u], 1), self.candidate))
        return new, new


def recurrent(resource, dynamic):
    x = tf.placeholder(tf.float32, [3, 4, 2], name="x")
    lengths = tf.placeholder(tf.int32, [3], name="lengths")
    cell = Cell(5, 2, "cell", resource)
    if dynamic:
        outputs, state = tf.nn.dynamic_rnn(cell, x, sequence_length=lengths, initial_state=cell.zero_state(3, tf.float32))
    else:
        state, outputs = cell.zero_state(3, tf.float32), []
        for t, row in enumerate(tf.unstack(x, axis=1)):
            new = cell(row, state)[1]
            state = tf.where(tf.less(t, lengths), new, state)
            outputs.append(tf.where(tf.less(t, lengths), new, tf.zeros_like(new)))
        outputs = tf.stack(outputs, 1)
    loss = tf.reduce_mean(tf.square(outputs - 0.25)) + tf.reduce_mean(tf.square(state))
    train = tf.train.MomentumOptimizer(0.5, 0.9).minimize(loss)
    init = tf.global_variables_initializer()
    program = Program()
    program.run([], targets=[init])
    for i in range(8):
        feeds = {x: numbers((3, 4, 2), i), lengths: [4, 1 + i % 4, 2]}
        program.run([loss], feeds, targets=[train])
    program.run([loss, outputs, state], {x: numbers((3, 4, 2), 9), lengths: [3, 4, 0]})
    program.run([cell.gates, cell.bias])


@case()
def recurrent_dynamic_references():
    recurrent(False, True)


@case(resource=True)
def recurrent_dynamic_resources():
    recurrent(True, True)


@case()
def recurrent_static():
    recurrent(False, False)


@case()
def autoencoder_with_a_loop():
    """Trains through a loop whose rounds refine a code."""
    x = tf.constant(numbers((4, 6), 5))
    w = tf.get_variable("w", initializer=numbers((6, 3)))
    code = tf.while_loop(
        lambda i, c: i < 4,
        lambda i, c: (i + 1, c + 0.1 * tf.matmul(x - tf.matmul(tf.nn.relu(c), w, transpose_b=True), w)),
        [0, tf.matmul(x, w)])[1]
    loss = tf.reduce_mean(tf.square(x - tf.matmul(code, w, transpose_b=True)))
    train = tf.train.AdamOptimizer(0.02).minimize(loss)
    init = tf.global_variables_initializer()
    program = Program()
    program.run([], targets=[init])
    for _ in range(20):
        program.run([loss], targets=[train])


def update_before_gradients():
    """A mean of what a loop gives is kept, and the update comes before the gradients: TensorFlow lets the count of the
    loop's rounds, from which they begin, wait for it too."""
    x = tf.placeholder(tf.float32, [3, None, 2], name="x")
    w = tf.get_variable("w", initializer=numbers((2, 2)))
    mean = tf.get_variable("mean", initializer=numbers((2,)), trainable=False)
    last = tf.while_loop(lambda i, s: i < tf.shape(x)[1], lambda i, s: (i + 1, tf.tanh(tf.matmul(s, w) + x[:, i])),
                         [0, tf.ones([3, 2])])[1]
    with tf.control_dependencies([tf.assign_sub(mean, 0.25 * (mean - tf.reduce_mean(last, 0)))]):
        loss = tf.reduce_mean(tf.square(last - 0.5))
        train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    program = Program()
    program.run([], targets=[tf.global_variables_initializer()])
    for i in range(4):
        program.run([loss], {x: numbers((3, 2 + i % 3, 2), i)}, targets=[train])
    program.run([w, mean])


@case()
def update_before_gradients_of_references():
    update_before_gradients()


@case(resource=True)
def update_before_gradients_of_resources():
    update_before_gradients()


@case(v2=True)
def update_before_gradients_of_functional_references():
    update_before_gradients()


@case(resource=True, v2=True)
def update_before_gradients_of_functional_resources():
    update_before_gradients()


def constants_of_branches_in_rounds():
    """Rounds that read until there is nothing left, then take zeros, which are a constant that waits for its branch."""
    rows = tf.constant(numbers((3, 2), 4))
    w = tf.get_variable("w", initializer=numbers((2, 3)))
    array = tf.TensorArray(tf.float32, 3, clear_after_read=False).unstack(rows)
    until = tf.placeholder(tf.int32, [], name="until")

    def body(i, s):
        row = tf.cond(i >= until, lambda: tf.zeros([2]), lambda: array.read(i))
        return i + 1, s + row * tf.gather_nd(w, [[1, 2], [0, 1]])

    last = tf.while_loop(lambda i, s: i < 5, body, [0, tf.ones([2])])[1]
    loss = tf.reduce_sum(tf.square(last)) + tf.reduce_sum(tf.gather_nd(w, [[0], [0]]))
    train = tf.train.GradientDescentOptimizer(0.125).minimize(loss)
    program = Program()
    program.run([], targets=[tf.global_variables_initializer()])
    for i in (3, 0, 2):
        program.run([loss], {until: i})
        program.run([], {until: i}, targets=[train])
        program.run([w])


@case()
def constants_of_branches_in_rounds_by_references():
    constants_of_branches_in_rounds()


@case(resource=True, v2=True)
def constants_of_branches_in_functional_rounds():
    constants_of_branches_in_rounds()


@case()
def computed_shapes():
    """Branches of different shape, and loops over what has one that depends on values."""
    p, x = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.float32, [6], name="x")
    y = tf.cond(p, lambda: x[:2], lambda: x[1:] * 2)
    some = tf.boolean_mask(x, x > 0)
    z = tf.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * 2 + some), [0, some])[1]
    program = Program()
    for value in (True, False):
        program.run([tf.get_default_graph().get_tensor_by_name("cond/Merge:0")], {p: value, x: numbers(6)})
    program.run([z, y], {p: True, x: numbers(6)})
    program.run([z, tf.get_default_graph().get_tensor_by_name("while/Exit:0")], {x: numbers(6, 3)})


def gradients_after_a_condition(grows):
    """Gradients of a loop that are built under a control input from outside of it. An optimizer's are gated: there,
    TensorFlow's training step does not run, for what leaves their loop waits for one of its rounds, too."""
    p = tf.placeholder(tf.bool, [], name="p")
    v, w = tf.get_variable("v", initializer=1.0), tf.get_variable("w", initializer=numbers(2))
    shapes = [tf.TensorShape([]), tf.TensorShape([None])]
    grow = lambda a: tf.concat([a, w], 0) if grows else a * 0.5 + w
    h = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, grow(a)), [0, w + 1], shapes if grows else None)[1]
    loss = tf.reduce_sum(h * h) + tf.cond(p, lambda: tf.nn.l2_loss(w), lambda: 0.0)
    (alive,) = tf.gradients(loss, [w])
    with tf.control_dependencies([tf.cond(p, lambda: tf.identity(tf.assign_add(v, 1.0)), lambda: tf.identity(v))]):
        (after,) = tf.gradients(loss, [w])
        (dead,) = tf.gradients(loss, [w], gate_gradients=True)
        train = tf.assign_sub(w, 0.125 * dead).op
    program = Program()
    program.run([], targets=[tf.global_variables_initializer()])
    for taken in (True, False, True):
        program.run([loss, alive], {p: taken})
        program.run([after], {p: taken}, targets=[train])
        program.run([v, w])
    program.run([dead], {p: True})


@case()
def gradients_after_a_condition_references():
    gradients_after_a_condition(False)


@case(resource=True)
def gradients_after_a_condition_resources():
    gradients_after_a_condition(False)


@case()
def gradients_after_a_condition_of_a_loop_that_grows():
    gradients_after_a_condition(True)


def loop_after(resource):
    """What is outside comes before what stands in the loop, once, and gives it nothing."""
    n = tf.placeholder(tf.int32, [], name="n")
    v = tf.get_variable("v", initializer=numbers(2))
    queue = tf.FIFOQueue(20, [tf.float32], [[]])
    fill = queue.enqueue_many([numbers(16)])
    first = queue.dequeue()
    with tf.control_dependencies([first]):
        added = tf.assign_add(v, [1.0, 2.0])

    def body(i, x):
        with tf.control_dependencies([first]):
            taken = queue.dequeue()
        order = [c for c in taken.op.control_inputs if c.inputs[0].op.type == "Enter"]
        taken.op._remove_all_control_inputs()  # the body's pivot, which is before that anyway
        taken.op._add_control_inputs(order)
        with tf.control_dependencies([added]):
            here = tf.identity(x) + (v.read_value() if resource else v)
        return i + 1, here + taken

    x = tf.while_loop(lambda i, x: i < n, body, [0, tf.zeros(2)], parallel_iterations=1)[1]
    left = queue.size()
    program = Program()
    program.run([], targets=[tf.global_variables_initializer(), fill])
    for rounds in (3, 0, 2):
        program.run([x], {n: rounds})
        program.run([v, left])


@case()
def loop_after_references():
    loop_after(False)


@case(resource=True)
def loop_after_resources():
    loop_after(True)


def predicates_that_stay(called=lambda f: f):
    """Conditions in a loop whose predicate is from outside of it: sides that are constants know it by its Enter, others by
    the condition's own name of it. One of them says whether there is another round, one is in a function."""
    p, n = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.int32, [], name="n")
    x = tf.get_variable("x", initializer=numbers(2))

    @called
    def choose(p, y, x):
        return tf.cond(p, lambda: y * x, lambda: tf.constant([0.5, -0.25]))

    def body(i, y, grown):
        y = choose(p, y, tf.convert_to_tensor(x))
        y += tf.cond(p, lambda: tf.constant(0.125), lambda: tf.cond(p, lambda: tf.constant(8.0), lambda: tf.reduce_sum(y)))
        inner = tf.while_loop(lambda k, z: k < 2, lambda k, z: (k + 1, tf.cond(p, lambda: z + x, lambda: -z)), [0, y])[1]
        return i + 1, inner, tf.concat([grown, tf.cond(p, lambda: inner, lambda: tf.constant([4.0]))], 0)

    another = lambda i, *_: tf.cond(p, lambda: i < n, lambda: i < 1)
    _, y, grown = tf.while_loop(another, body, [0, x + 1, x], [tf.TensorShape(s) for s in ([], [2], [None])])
    never = tf.while_loop(lambda i: tf.cond(p, lambda: i < n, lambda: tf.constant(False)), lambda i: i + 1, [0])
    slope, = tf.gradients(tf.reduce_sum(y * y), [x])
    program = Program()
    program.run([], targets=[tf.global_variables_initializer()])
    for rounds in (3, 0, 1):
        for value in (True, False):
            program.run([y, grown, never, slope], {p: value, n: rounds})


@case()
def predicates_that_stay_by_references():
    predicates_that_stay()


@case(resource=True, v2=True)
def predicates_that_stay_in_functional_rounds():
    predicates_that_stay(tf.function)


# ---- functions: control flow as TensorFlow 2 writes it -----------------------------------------------------------------------


@case(resource=True, v2=True)
def functional_conditions():
    p, q = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.bool, [], name="q")
    x = tf.placeholder(tf.float32, [4], name="x")
    v = tf.get_variable("v", initializer=numbers(4))

    def changed():
        with tf.control_dependencies([tf.assign_add(v, x)]):
            return v * 2, tf.constant(1)

    y = tf.cond(p, lambda: tf.cond(q, lambda: x + v, lambda: tf.exp(x)), lambda: tf.unstack(tf.stack([x, x * 3]))[1])
    z, which = tf.cond(p, changed, lambda: (x, tf.constant(2)))
    only = tf.cond(q, lambda: tf.group(tf.assign(v, x)), lambda: tf.no_op())
    init = tf.global_variables_initializer()
    program = Program()
    program.run([], targets=[init])
    for a in (True, False):
        for b in (True, False):
            program.run([y], {p: a, q: b, x: numbers(4, 2)})
            program.run([z, which], {p: a, x: numbers(4, 2)})
            program.run([v])
            program.run([], {q: b, x: numbers(4, 3)}, targets=[only])
            program.run([v])


@case(resource=True, v2=True)
def functional_loops():
    n = tf.placeholder(tf.int32, [], name="n")
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    v = tf.get_variable("v", initializer=numbers(2))

    def body(i, y):
        with tf.control_dependencies([tf.assign_add(v, [1.0, 0.5])]):
            return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.matmul(y, x) + 0.5, lambda: y - x)

    i, y = tf.while_loop(lambda i, y: i < n, body, [0, x])
    many = tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, tf.while_loop(lambda k, s: k < i, lambda k, s: (k + 1, s + k), [0, s])[1]),
                         [0, 0])[1]
    z = tf.cond(n > 2, lambda: tf.while_loop(lambda i, z: i < n, lambda i, z: (i + 1, z * 2), [0, x])[1], lambda: x)
    init = tf.global_variables_initializer()
    program = Program()
    program.run([], targets=[init])
    for rounds in (3, 0, 5):
        program.run([i, y], {n: rounds, x: numbers((2, 2))})
        program.run([v])
        program.run([many, z], {n: rounds, x: numbers((2, 2))})


@case(resource=True, v2=True)
def functional_calls():
    x = tf.placeholder(tf.float32, [3], name="x")
    v = tf.get_variable("v", initializer=numbers(3))

    @tf.function
    def inner(a, b):
        v.assign_add(a)
        return a * b, b + 1.0

    @tf.function
    def outer(a):
        c, d = inner(a, a)
        return inner(c, d)

    y, z = outer(x)
    init = tf.global_variables_initializer()
    program = Program()
    program.run([], targets=[init])
    program.run([y, z], {x: numbers(3, 4)})
    program.run([v])


# ---- lists: what loops keep for each other in graphs of TensorFlow 2 -------------------------------------------------------


def traced(function, *values, others=()):
    """Puts the graph that tf.function makes of a function into the graph at hand, and runs it for these values; `others`
    are more of them, of other sizes. A None in a value's place says that the size of an axis is not known."""
    sizes = [[v.shape for v in map(np.asarray, row)] for row in (values, *others)]
    specs = [tf.TensorSpec([d if all(s[i][k] == d for s in sizes) else None for k, d in enumerate(np.shape(v))],
                           np.asarray(v).dtype, name="arg%d" % i) for i, v in enumerate(values)]
    concrete = tf.function(function, autograph=False).get_concrete_function(*specs)
    tf.import_graph_def(concrete.graph.as_graph_def(), name="")
    graph = tf.get_default_graph()
    feeds = [graph.get_tensor_by_name(t.name) for t in concrete.inputs]
    fetches = [graph.get_tensor_by_name(t.name) for t in concrete.outputs]
    program = Program()
    for row in (values, *others, values):
        program.run(fetches, dict(zip(feeds, row)))


@case(v2=True)
def lists_of_scans():
    def f(x, w):
        y = tf.scan(lambda a, e: tf.tanh(a * w + e), x, initializer=tf.zeros([3]))
        z = tf.map_fn(lambda e: e * w + 1, x)
        u = tf.foldl(lambda a, e: a * 0.5 + e * e, x)
        v = tf.foldr(lambda a, e: a * 0.5 + tf.sin(e), x)
        loss = tf.reduce_sum(y * y) + tf.reduce_sum(z * z * z) + tf.reduce_sum(u * v)
        return [y, z, u, v] + tf.gradients(loss, [x, w])

    traced(f, numbers([4, 3]), numbers(3, 2))


@case(v2=True)
def lists_of_scans_of_any_length():
    def f(x, w):
        y = tf.scan(lambda a, e: tf.tanh(a * w + e), x, initializer=tf.zeros([3]))
        z = tf.map_fn(lambda e: e * w + 1, y)
        return [y, z] + tf.gradients(tf.reduce_sum(y * z), [x, w])

    traced(f, numbers([4, 3]), numbers(3, 2), others=[(numbers([7, 3], 3), numbers(3, 2)), (numbers([1, 3]), numbers(3))])


@case(v2=True)
def lists_of_gradients_of_gradients():
    def f(x, w):
        _, y = tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, tf.tanh(a * w) + x), [0, x])
        (g,) = tf.gradients(tf.reduce_sum(y * y), [w])
        return [y, g] + tf.gradients(tf.reduce_sum(g * g), [x, w])

    traced(f, numbers([3]), numbers(3, 2))


@case(v2=True)
def lists_in_lists():
    def f(x, w):
        def row(r):
            _, y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.sin(a * w) + r), [0, r])
            return y

        y = tf.map_fn(row, x)
        return [y] + tf.gradients(tf.reduce_sum(y * y), [x, w])

    traced(f, numbers([4, 3]), numbers(3, 2))


@case(v2=True)
def lists_and_conditions():
    def f(p, x, w):
        def body(i, a):
            b = tf.cond(tf.equal(i % 2, 0), lambda: tf.sin(a * w), lambda: a + w)
            return i + 1, tf.case([(b[0] > 0.5, lambda: b * 0.5)], default=lambda: b * b)

        def looped():
            return tf.while_loop(lambda i, a: i < 5, body, [0, x])[1]

        y = tf.cond(p, looped, lambda: x * w)
        return [y] + tf.gradients(tf.reduce_sum(y * y), [x, w])

    traced(f, True, numbers([3]), numbers(3, 2), others=[(False, numbers([3]), numbers(3, 2))])


@case(v2=True)
def lists_taken_apart():
    def f(x, i):
        a = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[2])
        a = a.scatter(i, x)
        a = a.write(5, x[0] * 2)
        b = tf.TensorArray(tf.float32, size=5, infer_shape=False).split(tf.reshape(x, [-1]), [1, 2, 0, 2, 1])
        c = tf.TensorArray(tf.float32, size=3).unstack(x)
        y, z = a.gather([5, 0, 2]), b.concat()
        g = tf.gradients(tf.reduce_sum(y * y) + tf.reduce_sum(z * z * z) + tf.reduce_sum(c.read(1)), [x])
        return [y, z, c.stack(), a.size(), c.read(2), b.read(1)] + g

    traced(f, numbers([3, 2]), np.array([2, 0, 3], np.int32))


@case(v2=True)
def lists_of_an_lstm():
    """Keras's LSTM and GRU, trained for a step by hand: losses and all gradients."""
    import keras

    layers = [keras.layers.LSTM(4, return_sequences=True), keras.layers.GRU(3, reset_after=True)]

    def f(x, *weights):
        seeds = [[tf.zeros(v.shape, tf.int32) for v in layer.non_trainable_variables] for layer in layers]
        y = layers[0].stateless_call(list(weights[:3]), seeds[0], x)[0]
        y = layers[1].stateless_call(list(weights[3:]), seeds[1], y)[0]
        loss = tf.reduce_mean(y * y)
        return [y, loss] + tf.gradients(loss, [x, *weights])

    shapes = [(3, 16), (4, 16), (16,), (4, 9), (3, 9), (2, 9)]
    for layer, size in zip(layers, (3, 4)):
        layer.build((2, 5, size))
    traced(f, numbers([2, 5, 3]), *(numbers(s, i) for i, s in enumerate(shapes)))


@case(v2=True)
def cases_of_a_switch():
    def f(i, x):
        y = tf.switch_case(i, [lambda: x * 2, lambda: tf.exp(x), lambda: tf.reduce_sum(x) * x])
        return [y] + tf.gradients(tf.reduce_sum(y * y), [x])

    traced(f, np.int32(0), numbers([3]), others=[(np.int32(k), numbers([3])) for k in (1, 2, 3, -1)])


@case(v2=True)
def calls_in_loops():
    @tf.function
    def step(a, b):
        return tf.tanh(a) * b

    def f(x, w):
        _, y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, step(step(a, w), x)), [0, x])
        return [y] + tf.gradients(tf.reduce_sum(y * y), [x, w])

    traced(f, numbers([3]), numbers(3, 2))


# ---- shapes that change from round to round --------------------------------------------------------------------------------


def grows():
    n, x = tf.placeholder(tf.int32, [], name="n"), tf.placeholder(tf.float32, [None, 2], name="x")
    v = tf.get_variable("v", initializer=numbers(2))
    one, any_rows = tf.TensorShape([]), tf.TensorShape([None, 2])
    _, a = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, tf.concat([a * v, x], 0)), [0, x], [one, any_rows])
    _, b = tf.while_loop(lambda i, b: i < n, lambda i, b: (i + 1, b + tf.reduce_sum(tf.square(x[: i % 3]))), [0, 0.0])
    loss = tf.reduce_sum(a * a) + b
    g = tf.gradients(loss, [x, v])
    init = tf.global_variables_initializer()
    program = Program()
    program.run(targets=[init])
    for k in (3, 0, 1, 4, 3):
        program.run([a, b] + g, {n: k, x: numbers([2, 2])})


@case(resource=True)
def grows_in_rounds():
    grows()


@case(resource=False)
def grows_in_rounds_by_references():
    grows()


@case(resource=True, v2=True)
def grows_in_functional_rounds():
    grows()


def arrays_of_many_shapes():
    n = tf.placeholder(tf.int32, [], name="n")
    x = tf.placeholder(tf.float32, [5], name="x")
    array = tf.TensorArray(tf.float32, size=n, infer_shape=False, clear_after_read=False)
    _, array = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, tf.sin(x[: i + 1]))), [0, array])
    y = array.concat()
    _, z = tf.while_loop(lambda i, z: i < n, lambda i, z: (i + 1, z + tf.reduce_sum(array.read(i) ** 2)), [0, 0.0])
    g = tf.gradients(tf.reduce_sum(y * y * y) + z, [x])
    program = Program()
    for k in (3, 1, 5, 3):
        program.run([y, z] + g, {n: k, x: numbers(5)})


@case()
def arrays_of_several_shapes():
    arrays_of_many_shapes()


@case(v2=True)
def lists_of_several_shapes():
    arrays_of_many_shapes()


@case()
def loops_in_rounds_that_differ():
    n, x = tf.placeholder(tf.int32, [], name="n"), tf.placeholder(tf.float32, [6], name="x")

    def body(i, a):
        kept = tf.boolean_mask(x, x > tf.cast(i, tf.float32) / 8)
        _, b = tf.while_loop(lambda k, b: k < i, lambda k, b: (k + 1, b * 0.5 + tf.reduce_sum(kept)), [0, a])
        return i + 1, tf.cond(tf.size(kept) > 2, lambda: b + 1, lambda: b - tf.reduce_sum(kept * kept))

    _, y = tf.while_loop(lambda i, a: i < n, body, [0, 0.25])
    g = tf.gradients(y, [x])
    program = Program()
    for k in (4, 2, 0, 4):
        program.run([y] + g, {n: k, x: numbers(6)})


@case(resource=True)
def effects_in_rounds_that_differ():
    n, x = tf.placeholder(tf.int32, [], name="n"), tf.placeholder(tf.float32, [6], name="x")
    v = tf.get_variable("v", initializer=0.5)

    def body(i, a):
        with tf.control_dependencies([a]):
            added = tf.assign_add(v, tf.reduce_sum(x[:i]))
        with tf.control_dependencies([added]):
            return i + 1, tf.concat([a, tf.reshape(v.read_value(), [1])], 0)

    _, y = tf.while_loop(lambda i, a: i < n, body, [0, x[:1]], [tf.TensorShape([]), tf.TensorShape([None])],
                         parallel_iterations=1)
    with tf.control_dependencies([y]):
        after = v.read_value()
    init = tf.global_variables_initializer()
    program = Program()
    program.run(targets=[init])
    for k in (4, 2, 0, 4):
        program.run([y, after], {n: k, x: numbers(6)})


@case()
def texts_in_arrays():
    words = tf.placeholder(tf.string, [None], name="words")
    rounds = tf.TensorArray(tf.string, 0, dynamic_size=True, clear_after_read=False)
    _, rounds = tf.while_loop(lambda i, a: i < tf.size(words),
                              lambda i, a: (i + 1, a.write(i, tf.strings.join([words[i], tf.as_string(i)]))), [0, rounds])
    parts = tf.TensorArray(tf.string, 2, infer_shape=False, clear_after_read=False)
    parts = parts.split(words, [1, tf.size(words, out_type=tf.int64) - 1])
    pairs = tf.TensorArray(tf.string, 2).scatter([1, 0], tf.stack([words[:2], words[1:]]))
    fetches = [rounds.stack(), rounds.read(1), rounds.gather([2, 0, 2]), parts.concat(), parts.read(1), pairs.stack()]
    fetches.append(tf.foldl(lambda a, b: tf.strings.join([a, b], "-"), words))
    program = Program()
    for text in (b"a bb ccc", b"one two three"):
        program.run(fetches, {words: text.split()})


@case()
def places_in_dense_tables():
    fetches = []
    for dtype, keys, empty, deleted in ((tf.int64, [5, 13, 21, -4], -1, -2),
                                        (tf.string, ["a", "bb", "ccc", "dog"], "-", "+")):
        table = tf.lookup.experimental.DenseHashTable(dtype, tf.int32, -1, empty, deleted, initial_num_buckets=8)
        with tf.control_dependencies([table.insert(tf.constant(keys, dtype), [1, 2, 3, 4])]):
            fetches += table.export()
    Program().run(fetches)


def kth(x, k, functions):
    """One of the functions, as preprocessing of images chose: a Merge of Switches, each with a predicate of its own."""
    sides = [f(control_flow_ops.switch(x, tf.equal(k, i))[1]) for i, f in enumerate(functions)]
    return control_flow_ops.merge(sides)


@case()
def one_of_several():
    k, x = tf.placeholder(tf.int32, [], name="k"), tf.placeholder(tf.float32, [4], name="x")
    y, taken = kth(x * 2, k, [lambda v: v + 1, tf.exp, lambda v: v * v])
    (g,) = tf.gradients(tf.reduce_sum(y * x), [x])
    program = Program()
    for i in (0, 2, 1, 3):
        program.run([y, taken, g], {k: i, x: numbers(4)})


@case()
def one_of_several_sizes():
    """In a condition and in a loop, of a size that is drawn there."""
    p, x = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.float32, [3, 4, 5, 1], name="x")

    def distort(image):
        k = tf.cast(tf.reduce_sum(image) > 0, tf.int32)
        part = image[: k + 2]
        given, _ = kth(part, k, [lambda v: tf.image.resize_bilinear(v[None], [3, 2])[0],
                                 lambda v: tf.image.resize_nearest_neighbor(v[None], [3, 2])[0]])
        return given

    y = tf.map_fn(lambda image: tf.cond(p, lambda: distort(image), lambda: image[:3, :2]), x)
    program = Program()
    for taken in (True, False):
        program.run([y], {p: taken, x: numbers((3, 4, 5, 1))})


@case()
def looks_beside_an_update():
    """Loops look at a variable by its reference in every round, beside its update."""
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    w = tf.get_variable("w", initializer=numbers((3, 3)))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_mean(tf.square(tf.matmul(x, w) - 1)))
    steady = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.tanh(tf.matmul(v, w))), [0, x])[1]
    grows = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.concat([v, tf.tanh(tf.matmul(v[-2:], w))], 0)),
                          [0, x], shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 3])])[1]
    program = Program()
    program.run([], targets=[tf.global_variables_initializer()])
    for i in range(2):
        program.run([steady, grows], {x: numbers((2, 3), i)}, targets=[train], before=True)
    program.run([w])


# ---- graphs that make no sense: what Tower says is written here, TensorFlow is not asked -----------------------------------


def node(name, op, inputs=(), **attrs):
    result = tf.NodeDef(name=name, op=op, input=list(inputs))
    for key, value in attrs.items():
        attr = result.attr[key]
        if isinstance(value, bool):
            attr.b = value
        elif isinstance(value, int):
            attr.i = value
        elif isinstance(value, str):
            attr.s = value.encode()
        elif isinstance(value, tf.DType):
            attr.type = value.as_datatype_enum
        else:
            attr.tensor.CopyFrom(tf.make_tensor_proto(value))
            result.attr["dtype"].type = attr.tensor.dtype
    return result


def enter(name, source, frame, dtype=tf.float32, constant=False):
    return node(name, "Enter", [source], T=dtype, frame_name=frame, is_constant=constant)


def loop(prefix, source, body=None, back=None, cond=True):
    """Of a float that is doubled until it is 100."""
    p = prefix
    nodes = [
        enter(p + "enter", source, p + "frame"),
        enter(p + "limit", "hundred", p + "frame", constant=True),
        node(p + "merge", "Merge", [p + "enter", back or p + "next"], T=tf.float32, N=2),
        node(p + "less", "Less", [p + "merge", p + "limit"], T=tf.float32),
        node(p + "switch", "Switch", [p + "merge", p + "cond" if cond else p + "less"], T=tf.float32),
        body or node(p + "body", "AddV2", [p + "switch:1", p + "switch:1"], T=tf.float32),
        node(p + "next", "NextIteration", [p + "body"], T=tf.float32),
        node(p + "exit", "Exit", [p + "switch"], T=tf.float32),
    ]
    return nodes + ([node(p + "cond", "LoopCond", [p + "less"])] if cond else [])


CONSTANTS = [node("one", "Const", value=np.float32(1)), node("hundred", "Const", value=np.float32(100))]


def add(name, a, b):
    return node(name, "AddV2", [a, b], T=tf.float32)


def deep(levels):
    nodes, last = list(CONSTANTS), "one"
    for i in range(levels):
        nodes.append(enter("e%d" % i, last, "f%d" % i))
        last = "e%d" % i
    return nodes + [node("deepest", "Exit", [last], T=tf.float32)]


def call(name, function, source):
    result = node(name, "PartitionedCall", [source])
    result.attr["f"].func.name = function
    result.attr["Tin"].list.type.append(tf.float32.as_datatype_enum)
    result.attr["Tout"].list.type.append(tf.float32.as_datatype_enum)
    return result


def library():
    """f calls f; g0 calls g1 twice, which calls g2 twice, and so on."""
    functions = tf.GraphDef().library
    for name, calls in [("f", ["f"])] + [("g%d" % i, 2 * ["g%d" % (i + 1)]) for i in range(30)]:
        f = functions.function.add()
        f.signature.name = name
        f.signature.input_arg.add(name="x", type=tf.float32.as_datatype_enum)
        f.signature.output_arg.add(name="y", type=tf.float32.as_datatype_enum)
        for i, other in enumerate(calls):
            f.node_def.add().CopyFrom(call("call%d" % i, other, "x"))
        f.ret["y"] = "call0:output:0"
    last = functions.function.add()
    last.CopyFrom(functions.function[1])
    last.signature.name = "g30"
    del last.node_def[:]
    last.ret["y"] = "x"
    return functions


SENSELESS = [
    ("sound", CONSTANTS + loop("a_", "one"), "a_exit", None, None),
    ("sound_on_its_way_out", CONSTANTS + loop("a_", "one") +
     [node("a_left", "Identity", ["a_switch"], T=tf.float32), node("a_zero", "Const", ["^a_left"], value=np.float32(0)),
      add("a_sum", "a_left", "a_zero"), node("out", "Exit", ["a_sum"], T=tf.float32)], "out", None, None),
    ("cycle", CONSTANTS + [add("a", "b", "one"), add("b", "a", "one")], None, 3, "depends on itself"),
    ("cycle_by_merge", CONSTANTS + [node("m", "Merge", ["one", "i"], T=tf.float32, N=2),
                                    node("i", "Identity", ["m"], T=tf.float32)], None, 3, "depends on itself"),
    ("crossing_frames", CONSTANTS + loop("a_", "one") + loop("b_", "one", body=add("b_body", "b_switch:1", "a_switch:1")),
     "b_exit", 3, "frames cross"),
    ("value_from_outside", CONSTANTS + loop("a_", "one", body=add("a_body", "a_switch:1", "one")), "a_exit", 3,
     "frames cross"),
    ("back_into_another", CONSTANTS + loop("a_", "one") + loop("b_", "one", back="a_next"), "b_exit", 3,
     "leads back into a loop that it is not in"),
    ("no_condition", CONSTANTS + loop("a_", "one", cond=False), "a_exit", 3, "has no LoopCond"),
    ("no_way_in", CONSTANTS + [node("m", "Merge", ["one", "n"], T=tf.float32, N=2),
                               node("n", "NextIteration", ["m"], T=tf.float32)], "m", 12, "which input it gives is not told"),
    ("fetched_inside", CONSTANTS + loop("a_", "one"), "a_switch", 3, "is in the loop 'a_frame' and cannot be fetched"),
    ("merge_of_no_branches", CONSTANTS + [node("m", "Merge", ["one", "hundred"], T=tf.float32, N=2)], "m", 3,
     "two of its inputs run under the same conditions"),
    ("exit_of_nothing", CONSTANTS + [node("x", "Exit", ["one"], T=tf.float32)], "x", 3, "is of no loop"),
    ("into_itself", CONSTANTS + loop("a_", "one") + [enter("again", "a_exit", "a_frame"),
                                                     node("out", "Exit", ["again"], T=tf.float32)], None, 3, "itself"),
    ("calls_itself", CONSTANTS + [call("c", "f", "one")], None, 3, "function 'f' calls itself"),
    ("calls_many", CONSTANTS + [call("c", "g0", "one")], None, 8, "calls of functions become more than"),
    ("too_deep", deep(200), "deepest", 3, "is in the loop 'f198' and cannot be fetched"),
]


def endless(source="one", body=None):
    """The condition is always true."""
    nodes = loop("a_", source, body)
    for n in nodes:
        if n.name == "a_cond":
            n.input[0] = "a_true"
    nodes.append(enter("a_true", "true", "a_frame", tf.bool, constant=True))
    return CONSTANTS + [node("pair", "Const", value=np.float32([1, 1])), node("true", "Const", value=np.bool_(True))] + nodes


def write_senseless():
    with open(os.path.join(HERE, "flow", "endless.pb"), "wb") as file:  # of tests/test_while.c
        file.write(tf.GraphDef(node=endless()).SerializeToString(deterministic=True))
    unique = node("a_body", "Unique", ["a_switch:1"], T=tf.float32, out_idx=tf.int32)
    with open(os.path.join(HERE, "flow", "endless_by_shapes.pb"), "wb") as file:  # each round has a border
        file.write(tf.GraphDef(node=endless("pair", unique)).SerializeToString(deterministic=True))
    for name, nodes, fetch, code, says in SENSELESS:
        graph = tf.GraphDef(node=nodes)
        graph.versions.producer = 1087
        if name.startswith("calls"):
            graph.library.CopyFrom(library())
        with open(os.path.join(HERE, "flow", name + ".pb"), "wb") as file:
            file.write(graph.SerializeToString(deterministic=True))
        out.append("graph %s" % name)
        if fetch:
            out.append("run")
            out.append("fetch %s:0" % fetch + ("" if code else " float 0 128"))
            if code:
                out.append("fails %d %s" % (code, says))
        else:
            out.append("refused %d %s" % (code, says))


# ---- what is known before the step -----------------------------------------------------------------------------------


def constants_after_updates():
    """What is fetched is known, and comes after an update all the same."""
    v = tf.get_variable("v", initializer=0.0)

    @tf2.function
    def known():
        v.assign_add(10.0)
        return tf.constant(2.0) * 3

    with tf.control_dependencies([v.assign_add(1.0, read_value=False)]):
        constant, passed = tf.constant(3.0), tf.identity(tf.constant(4.0))
    p = tf.constant(True)
    fetches = [constant, constant + 1, tf.identity(constant), tf.shape(passed), passed * 2 - constant, known() + 1,
               tf.cond(p, known, lambda: 0.0) * 2]
    program = Program()
    program.run(targets=[v.initializer])
    for fetch in fetches:
        program.run([fetch])
        program.run([v.read_value()])


# ---- critical sections -----------------------------------------------------------------------------------------------


def sections_of_a_graph():
    """Nothing but the mutex gives them an order; one lies in another's, and of one the end is not asked for."""
    x = tf.placeholder(tf.float32, [], name="x")
    v = tf.get_variable("v", initializer=1.0)
    a, b = tf.CriticalSection(name="a"), tf.CriticalSection(name="b")
    first, second = (a.execute(lambda: tf.identity(v.assign_add(y))) for y in (x, 2 * x))
    inside = []

    def nested():
        inside.append(tf.square(v) + 1)
        return b.execute(lambda: tf.exp(x)) + inside[0]

    both = tf.maximum(first, second, name="both")
    with tf.control_dependencies([both]):
        third = a.execute(nested)
    program = Program()
    program.run(targets=[v.initializer])
    for value in (1, 2):
        program.run([both], {x: value})
        program.run([third], {x: value})
        program.run([inside[0]], {x: value})


def sections_side_by_side():
    """As no section of Python's can be: each begins before the other is done."""
    v = tf.get_variable("v", initializer=1.0)
    mutex = tf.raw_ops.MutexV2(shared_name="mutex")
    locks = [tf.raw_ops.MutexLock(mutex=mutex) for _ in range(3)]
    values = []
    for lock in locks:
        with tf.control_dependencies([lock]):
            values.append(v.read_value())
    ends = []
    for i, lock in enumerate(locks):
        with tf.control_dependencies([v.assign(values[i] + 10 ** i, read_value=False)]):
            ends.append(tf.raw_ops.ConsumeMutexLock(mutex_lock=lock))
    with tf.control_dependencies(ends):
        last = v.read_value()
    program = Program()
    program.run(targets=[v.initializer])
    program.run([last])
    program.run([last])


def sections_in_branches_and_rounds():
    x, p = tf.placeholder(tf.float32, [], name="x"), tf.placeholder(tf.bool, [], name="p")
    v = tf.get_variable("v", initializer=0.0)
    section = tf.CriticalSection(name="section")
    add = lambda y: section.execute(lambda: tf.identity(v.assign_add(y)))
    branches = tf.cond(p, lambda: add(x), lambda: add(2 * x) + 1)
    rounds = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + add(x)), [0, 0.0])[1]
    with tf.control_dependencies([branches, rounds, add(4 * x)]):
        last = tf.identity(v.read_value(), name="last")
    program = Program()
    program.run(targets=[v.initializer])
    program.run([last], {x: 1, p: True})
    program.run([last], {x: 1, p: False})
    program.run([branches], {x: 1, p: False})
    program.run([rounds], {x: 1, p: True})


def sections_of_functions():
    x = tf.placeholder(tf.float32, [2], name="x")
    v = tf.get_variable("v", initializer=numbers(2))
    section = tf.CriticalSection(name="section")

    @tf2.function
    def twice(x):
        first = section.execute(lambda: tf.identity(v.assign_add(x)))
        return first, section.execute(lambda: tf.identity(v.assign(v * 2)))

    y, z = twice(x), twice(x + 1)
    program = Program()
    program.run(targets=[v.initializer])
    program.run([y[0], y[1]], {x: numbers(2, 2)})
    program.run([z[1]], {x: numbers(2, 2)})
    program.run([y[1]], {x: numbers(2, 2)})


# ---- variables that grow in loops ------------------------------------------------------------------------------------


def variables_that_grow_in_loops():
    n, p = tf.placeholder(tf.int32, [], name="n"), tf.placeholder(tf.bool, [], name="p")
    v = tf.Variable([1.0, 2.0], shape=tf.TensorShape([None]), name="v")
    w = tf.Variable([0.5], shape=tf.TensorShape([None]), name="w")

    def grow(variable, value):
        return variable.assign(tf.concat([variable.read_value(), tf.reshape(value, [1])], 0), read_value=False)

    def round(i, s):
        before = tf.reduce_sum(v.read_value())
        with tf.control_dependencies([before]):
            grown = grow(v, tf.cast(i, tf.float32) * 2)
        with tf.control_dependencies([grown]):
            after = v.read_value()
            maybe = tf.cond(tf.logical_and(p, i > 0), lambda: tf.group(grow(w, before)), lambda: tf.no_op())
        with tf.control_dependencies([maybe]):
            return i + 1, s + before + 10 * tf.cast(tf.size(after), tf.float32) + 100 * tf.reduce_sum(w.read_value())

    def twice(i, s):
        inner = tf.while_loop(lambda k, t: k < i, round, [0, s], parallel_iterations=1)
        with tf.control_dependencies([inner[0]]):
            return i + 1, inner[1] + tf.reduce_max(v.read_value())

    with tf.control_dependencies([grow(v, 7.0)]):
        following = grow(w, 8.0)
    early = v.read_value() + 0
    with tf.control_dependencies([early]):
        one = tf.while_loop(lambda i, s: i < n, round, [0, 0.0], parallel_iterations=1)[1]
        two = tf.while_loop(lambda i, s: i < n, twice, [0, 0.0], parallel_iterations=1)[1]
    with tf.control_dependencies([one]):
        late = tf.concat([v.read_value() * 2, w.read_value()], 0)
    program = Program()
    program.run(targets=[v.initializer, w.initializer])
    for count, taken in ((3, False), (0, True), (2, True), (3, True)):
        program.run([early, one, late], {n: count, p: taken})
    program.run([two], {n: 3, p: True})
    program.run([late], {n: 0, p: False})
    program.run([two], {n: 2, p: False})
    program.run([v.read_value(), w.read_value()])
    program.run(targets=[following])
    program.run([v.read_value(), w.read_value()])


def variables_that_grow_beside_updates():
    """TensorFlow has the updates before the loop, in it or behind it, where they do not fit: here they come before."""
    v = tf.Variable(tf.ones([100]), shape=tf.TensorShape([None]), name="v")

    def round(i):
        with tf.control_dependencies([v.assign(tf.concat([v.read_value(), [1.0]], 0), read_value=False)]):
            return i + 1

    end = tf.while_loop(lambda i: i < 5, round, [0], parallel_iterations=1)
    updates = [v.assign_add(tf.ones([100]), read_value=False) for _ in range(2)]

    def update(i):
        with tf.control_dependencies([v.assign_add(10 * tf.ones([100]), read_value=False)]):
            return i + 1

    rounds = tf.while_loop(lambda i: i < 2, update, [0])
    tf.group(end, rounds, *updates, name="both")
    program = Program()
    program.run(targets=[v.initializer])
    out.extend(["run", "target both"])
    program.session.run(updates + [rounds])
    program.session.run(end)
    program.run([tf.reduce_sum(v.read_value()), tf.shape(v.read_value())])


# ---- gradients of functions ------------------------------------------------------------------------------------------


def gradients_of_functions():
    """As TensorFlow 1's function.Defun has them: by the function's own nodes, or by another function."""

    @Defun(tf.float32, tf.float32, tf.float32, tf.int32)
    def several(x, y, unused, n):
        return tf.exp(x) * y, tf.reduce_sum(tf.square(x) * tf.cast(n, tf.float32))

    @Defun(tf.float32, tf.float32)
    def outer(x, y):
        first, second = several(x, y, y, 3)
        return several(first, x, x, 2)[0] + second

    @Defun(tf.float32, tf.float32)
    def own_gradient(x, dy):
        return tf.cos(x) * dy * 100

    @Defun(tf.float32, grad_func=own_gradient)
    def own(x):
        return tf.sin(x)

    x, y = tf.placeholder(tf.float32, [2], name="x"), tf.placeholder(tf.float32, [2], name="y")
    a, b = several(x, y, y, 3)
    ways = [tf.reduce_sum(a * a) + b, tf.reduce_sum(several(x, x, y, 1)[0]), tf.reduce_sum(outer(x, y)),
            tf.reduce_sum(own(x) * y)]
    program = Program()
    for way in ways:
        program.run([g for g in tf.gradients(way, [x, y]) if g is not None], {x: numbers(2), y: numbers(2, 3)})


# ---- variables that end ----------------------------------------------------------------------------------------------


def destroyed_variables():
    v = tf.get_variable("v", initializer=numbers(2))
    destroy, strict = (tf.raw_ops.DestroyResourceOp(resource=v.handle, ignore_lookup_error=i) for i in (True, False))
    there, value = tf.is_variable_initialized(v), v.read_value()
    program = Program()
    program.run(targets=[destroy])
    program.run(targets=[strict])
    program.run(targets=[v.initializer])
    program.run([there, value])
    program.run(targets=[strict])
    program.run([there])
    program.run([value])
    program.run(targets=[v.initializer])
    program.run([there, value])
    program.run(targets=[destroy])
    program.run([there])


# ---- staging areas with keys -----------------------------------------------------------------------------------------


def staged_by_keys():
    x, k = tf.placeholder(tf.float32, [None], name="x"), tf.placeholder(tf.int64, [], name="k")
    for kind in ("Map", "OrderedMap"):
        area = dict(shared_name=kind)
        whole = dict(dtypes=[tf.float32, tf.string], **area)

        def op(name, **arguments):
            return getattr(tf.raw_ops, kind + name)(**arguments)

        both = op("Stage", key=k, indices=[0, 1], values=[x, tf.constant(["a", "b"])], **whole)
        first, second = (op("Stage", key=k, indices=[i], values=[v], **whole) for i, v in ((0, x), (1, tf.constant("c"))))
        wrong = op("Stage", key=k, indices=[1, 0], values=[tf.constant("c"), x], **whole)
        take, peek = op("Unstage", key=k, indices=[0, 1], **whole), op("Peek", key=k, indices=[0, 1], **whole)
        swapped = op("Peek", key=k, indices=[1, 0], dtypes=[tf.string, tf.float32], **area)
        text = op("Unstage", key=k, indices=[1], dtypes=[tf.string], **area)
        numbers_left = op("UnstageNoKey", indices=[0], dtypes=[tf.float32], **area)
        following = op("UnstageNoKey", indices=[0, 1], **whole)
        sizes, clear = [op("Size", **whole), op("IncompleteSize", **whole)], op("Clear", **whole)
        program = Program()
        for key in (5, 3, 8):
            program.run(targets=[both], feeds={x: [key, 1], k: key})
        program.run(targets=[both], feeds={x: [9], k: 5})  # is let go
        program.run(sizes)
        program.run(peek, {k: 3})
        program.run(swapped, {k: 3})
        program.run(take, {k: 8})
        if kind == "OrderedMap":
            program.run([following.key] + following.values)
        else:
            program.run(take, {k: 3})
        program.run(text, {k: 5})
        program.run(text, {k: 5})
        program.run(sizes)
        program.run([numbers_left.key] + numbers_left.values)
        program.run(sizes)
        program.run(targets=[first], feeds={x: [1], k: -1})
        program.run(sizes)
        program.run(targets=[first], feeds={x: [1], k: -1})
        program.run(targets=[second], feeds={k: -1})
        program.run([following.key] + following.values)
        program.run(targets=[wrong], feeds={x: [1], k: 7})
        program.run(targets=[first], feeds={x: [1], k: 2})
        program.run(targets=[both], feeds={x: [1], k: 4})
        program.run(targets=[clear])
        program.run(sizes)


def write_wrong_gradient():
    """Of a function whose results have more gradients than the node is given."""

    @Defun(tf.float32, tf.float32, func_name="product")
    def product(x, y):
        return x * y

    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        tf.gradients(product(x, x), [x])
        definition = graph.as_graph_def()
    for n in definition.node:
        if n.op == "SymbolicGradient":
            del n.input[2:]
            del n.attr["Tin"].list.type[2:]
    with open(os.path.join(HERE, "flow", "wrong_gradient_of_a_function.pb"), "wb") as file:
        file.write(definition.SerializeToString(deterministic=True))
    out.append("graph wrong_gradient_of_a_function")
    out.append("refused 3 has 2 inputs and 2 outputs; its function takes 2 and gives 1")


def write_more():
    tf.enable_resource_variables()
    for function, v2 in ((constants_after_updates, True), (variables_that_grow_in_loops, False),
                         (variables_that_grow_in_loops, True), (variables_that_grow_beside_updates, False),
                         (gradients_of_functions, False), (destroyed_variables, False), (staged_by_keys, False),
                         (sections_of_a_graph, False), (sections_side_by_side, False),
                         (sections_in_branches_and_rounds, False), (sections_in_branches_and_rounds, True),
                         (sections_of_functions, True)):
        (tf.enable_control_flow_v2 if v2 else tf.disable_control_flow_v2)()
        both = function in (variables_that_grow_in_loops, sections_in_branches_and_rounds)
        name = function.__name__ + ("_of_functions" if both and v2 else "")
        with tf.Graph().as_default() as graph:
            out.append("graph %s" % name)
            function()
            with open(os.path.join(HERE, "flow", name + ".pb"), "wb") as file:
                file.write(graph.as_graph_def().SerializeToString(deterministic=True))
    write_wrong_gradient()


def main():
    os.makedirs(os.path.join(HERE, "flow"), exist_ok=True)
    for name, function, resource, v2 in CASES:
        (tf.enable_resource_variables if resource else tf.disable_resource_variables)()
        (tf.enable_control_flow_v2 if v2 else tf.disable_control_flow_v2)()
        with tf.Graph().as_default() as graph:
            out.append("graph %s" % name)
            function()
            with open(os.path.join(HERE, "flow", name + ".pb"), "wb") as file:
                file.write(graph.as_graph_def().SerializeToString(deterministic=True))
    write_senseless()
    write_more()
    with open(os.path.join(HERE, "flow.txt"), "w") as file:
        file.write("# Made by make_flow.py with TensorFlow %s.\n" % tf.__version__)
        file.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
