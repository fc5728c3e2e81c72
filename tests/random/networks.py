#!/usr/bin/env python3
"""Draws networks of many ops, with conditions, loops and a step of training, runs them in TensorFlow and in Tower, and
compares values, gradients (TensorFlow's, which are in the graph, and Tower's own) and variables after two updates: by the
fastest kernels, and by the plain ones without rewrites, on two virtual GPUs or in three threads.

usage: networks.py [--library FILE] [--seed N] [--cases N] [--from I] [--case I] [--nodes N]

Case I of a seed is always the same. --case I runs it alone, in every way, and writes the graph to network.pb. Ends with 1
where something differs.
"""
import argparse
import logging
import os
import sys

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from tower import Tower, TowerError

v1 = tf.compat.v1
v1.disable_eager_execution()
tf.get_logger().setLevel(logging.ERROR)

MODES = {"fast": {}, "plain": {"plain": True, "disable": "all"}, "two GPUs": {"gpus": 2}, "threads": {"threads": 3}}
TOLERANCES = {tf.float32: 1e-4, tf.float64: 1e-10}  # of the largest element; roundings add up through some forty layers
WILD = 1e4  # what is greater says nothing in float
MOST_ELEMENTS, MOST_RANK = 20000, 6
STEPS = 2
LAYERS = []


def layer(*times):
    """A function of a network that makes one or more values out of those there are; None: there are none that fit."""
    def add(function):
        LAYERS.extend([function] * (times[0] if times else 1))
        return function
    return add


class Network:
    def __init__(self, seed, index, most):
        self.random = np.random.default_rng([seed, index])
        self.dtype = self.chosen([tf.float32, tf.float64])
        self.values, self.variables, self.feeds = [], [], {}
        for _ in range(self.between(1, 3)):
            images = [self.between(1, 3), self.between(4, 10), self.between(4, 10), self.between(1, 8)]
            self.add_input(self.chosen([images, [self.between(1, 6) for _ in range(self.between(1, 3))]]))
        for _ in range(self.between(5, most)):
            self.add_layer()

    # what is drawn

    def between(self, low, high):
        return int(self.random.integers(low, high + 1))

    def chosen(self, items):
        return items[self.between(0, len(items) - 1)]

    def happens(self, chance):
        return self.random.random() < chance

    def numbers(self, shape, scale=1.0):
        return self.random.normal(size=shape) * scale

    def variable(self, shape, scale=1.0):
        self.variables.append(v1.get_variable("v%d" % len(self.variables), use_resource=True,
                                              initializer=tf.constant(self.numbers(shape, scale), self.dtype)))
        return self.variables[-1]

    def value(self, rank=None, least=0):
        """One of those there are, rather a late one."""
        fit = [x for x in self.values if x.shape.rank >= least and rank in (None, x.shape.rank)]
        return fit[min(int(len(fit) * self.random.random() ** 0.5), len(fit) - 1)] if fit else None

    def like(self, x):
        return self.chosen([y for y in self.values if y.shape.as_list() == x.shape.as_list()])

    def add_input(self, shape):
        value = self.numbers(shape)
        if self.happens(0.3):
            value = self.variable(shape)
        elif self.happens(0.5):
            value = tf.constant(value, self.dtype)
        else:
            place = v1.placeholder(self.dtype, [None] + shape[1:] if self.happens(0.3) else shape)
            self.feeds[place] = value.astype(self.dtype.as_numpy_dtype)
            value = tf.reshape(place, shape)
        self.values.append(tf.identity(value))

    def add_layer(self):
        for _ in range(20):
            with tf.device(self.chosen([None, None, None, "/cpu:0", "/gpu:0", "/gpu:1"])):
                made = self.chosen(LAYERS)(self)
            made = made if isinstance(made, (list, tuple)) else [made]
            fit = [y for y in made if y is not None and 0 < y.shape.num_elements() <= MOST_ELEMENTS
                   and y.shape.rank <= MOST_RANK]
            if fit:
                self.values.extend(fit)
                return


# ---- one value, element by element

UNARY = [
    tf.nn.relu, tf.nn.relu6, tf.nn.elu, tf.nn.selu, tf.tanh, tf.sigmoid, tf.nn.softplus, tf.nn.softsign, tf.square, tf.negative,
    tf.abs, tf.sin, tf.cos, tf.atan, tf.asinh, tf.math.erf, tf.identity, tf.stop_gradient, tf.nn.leaky_relu, tf.ones_like,
    tf.zeros_like, lambda x: tf.exp(tf.minimum(x, 2.0)), lambda x: tf.math.log(tf.abs(x) + 1.5),
    lambda x: tf.sqrt(tf.abs(x) + 0.5), lambda x: tf.math.rsqrt(tf.abs(x) + 1.0), lambda x: x * tf.sigmoid(x),
    lambda x: x * tf.nn.relu6(x + 3.0) / 6.0, lambda x: tf.clip_by_value(x, -1.0, 1.5), lambda x: 1.0 / (1.5 + tf.abs(x)),
    lambda x: tf.pow(tf.abs(x) + 0.5, 1.5), lambda x: 2.0 * x + 1.0, lambda x: 3.0 - x, lambda x: x / 4.0,
    lambda x: tf.cast(tf.cast(x, tf.float64), x.dtype), lambda x: 0.5 * x * (1.0 + tf.math.erf(x / 1.4142135)),
    lambda x: tf.sign(x) * x, lambda x: tf.math.reciprocal(x * x + 1.0),
]


@layer(3)
def unary(net):
    return net.chosen(UNARY)(net.value())


def chosen_of_two(x, y):
    return v1.where(tf.greater(x + 0 * y, 0), x + 0 * y, y + 0 * x)


BINARY = [tf.add, tf.subtract, tf.multiply, tf.maximum, tf.minimum, tf.math.squared_difference, chosen_of_two,
          lambda x, y: x / (tf.abs(y) + 1.0), lambda x, y: tf.atan2(x, tf.abs(y) + 1.0),
          lambda x, y: tf.cast(x > y, x.dtype) * (x + y), lambda x, y: tf.math.divide_no_nan(x, tf.nn.relu(y))]


@layer(3)
def binary(net):
    x = net.value()
    sizes = x.shape.as_list()[::-1]
    others = [y for y in net.values if all(a == b or 1 in (a, b) for a, b in zip(sizes, y.shape.as_list()[::-1]))]
    return 0.7 * net.chosen(BINARY)(x, net.chosen(others))


@layer()
def add_all(net):
    x = net.value()
    return tf.add_n([net.like(x) for _ in range(net.between(1, 4))])


# ---- layers of networks

@layer()
def bias(net):
    x = net.value(least=2)
    y = tf.nn.bias_add(x, net.variable([x.shape[-1]])) if x is not None else None
    return tf.nn.relu(y) if y is not None and net.happens(0.4) else y


@layer(2)
def dense(net):
    x = net.value(rank=2)
    if x is None:
        return None
    depth, units, transposed = int(x.shape[1]), net.between(1, 12), net.happens(0.3)
    y = tf.matmul(x, net.variable([units, depth] if transposed else [depth, units], depth ** -0.5), transpose_b=transposed)
    if net.happens(0.5):
        y = y + net.variable([units]) if net.happens(0.5) else tf.nn.bias_add(y, net.variable([units]))
    return net.chosen([tf.identity, tf.nn.relu, tf.tanh, tf.sigmoid, tf.nn.elu])(y)


@layer()
def products(net):
    x = net.value(least=2)
    if x is not None:
        return tf.matmul(x, x, transpose_b=True) / 3.0 if net.happens(0.5) else tf.matmul(x, x, transpose_a=True) / 3.0


@layer()
def attention(net):
    x = net.value(rank=3)
    if x is not None:
        return tf.matmul(tf.nn.softmax(tf.matmul(x, x, transpose_b=True) * 0.3), x)


@layer()
def contraction(net):
    x = net.value(rank=3)
    if x is not None:
        return tf.einsum("bsd,dhk->bhsk", x, net.variable([x.shape[2], 3, 2], 0.5))


def normalized(net, x):
    channels, training = int(x.shape[-1]), net.happens(0.6) and x.shape.num_elements() > x.shape[-1]
    moments = {} if training else {"mean": tf.constant(net.numbers(channels), tf.float32), "is_training": False,
                                   "variance": tf.constant(net.random.random(channels) + 0.5, tf.float32)}
    y = v1.nn.fused_batch_norm(x, net.variable([channels]), net.variable([channels]), epsilon=0.01, **moments)[0]
    return tf.nn.relu(y) if net.happens(0.5) else y


@layer()
def norm(net):
    x = net.value(rank=4)
    return normalized(net, x) if x is not None and net.dtype == tf.float32 else None


@layer()
def layer_norm(net):
    x = net.value(least=2)
    if x is None:
        return None
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    gain, shift = net.variable([x.shape[-1]]), net.variable([x.shape[-1]])
    if net.happens(0.5):
        return tf.nn.batch_normalization(x, mean, variance, shift, gain, 0.01)
    return (x - mean) * tf.math.rsqrt(variance + 0.01) * gain + shift


def fits(x, size, padding):
    return padding == "SAME" or min(x.shape[1], x.shape[2]) >= size


@layer(3)
def convolution(net):
    x, size, padding, stride = net.value(rank=4), net.chosen([1, 1, 2, 3, 3, 5]), net.chosen(["SAME", "VALID"]), net.between(1, 2)
    dilation = net.chosen([1, 1, 2]) if stride == 1 else 1
    if x is None or not fits(x, (size - 1) * dilation + 1, padding):
        return None
    channels, filters = int(x.shape[3]), net.between(1, 20)
    y = tf.nn.conv2d(x, net.variable([size, size, channels, filters], (size * size * channels) ** -0.5), stride, padding,
                     dilations=dilation)
    if net.happens(0.5):
        y = tf.nn.bias_add(y, net.variable([filters]))
        return tf.nn.relu(y) if net.happens(0.6) else y
    return normalized(net, y) if net.dtype == tf.float32 and net.happens(0.5) else y


@layer()
def residual(net):
    x = net.value(rank=4)
    if x is None:
        return None
    channels = int(x.shape[3])
    y = tf.nn.conv2d(x, net.variable([3, 3, channels, channels], (9 * channels) ** -0.5), 1, "SAME")
    y = x + (normalized(net, y) if net.dtype == tf.float32 and net.happens(0.7) else y)
    return tf.nn.relu(y) if net.happens(0.6) else y


@layer()
def depthwise(net):
    x, size, padding, stride = net.value(rank=4), net.chosen([1, 3, 3, 5]), net.chosen(["SAME", "VALID"]), net.between(1, 2)
    if x is not None and fits(x, size, padding):
        return tf.nn.depthwise_conv2d(x, net.variable([size, size, x.shape[3], net.between(1, 2)], 1 / size),
                                      [1, stride, stride, 1], padding)


@layer()
def transposed_convolution(net):
    x, size, stride, filters = net.value(rank=4), net.chosen([2, 3, 4]), net.between(1, 2), net.between(1, 6)
    if x is None:
        return None
    count, height, width, channels = x.shape.as_list()
    return tf.nn.conv2d_transpose(x, net.variable([size, size, filters, channels], (size * channels) ** -0.5),
                                  [count, height * stride, width * stride, filters], stride, "SAME")


@layer()
def pool(net):
    x, size, padding = net.value(rank=4), net.between(1, 3), net.chosen(["SAME", "VALID"])
    if x is not None and fits(x, size, padding):
        return net.chosen([tf.nn.max_pool2d, tf.nn.avg_pool2d])(x, size, net.between(1, 3), padding)


@layer()
def local_norm(net):
    x = net.value(rank=4)
    if x is not None and net.dtype == tf.float32:
        return tf.nn.local_response_normalization(x, 3, bias=1.0, alpha=0.1, beta=0.75)


@layer()
def resized(net):
    x = net.value(rank=4)
    if x is not None and net.dtype == tf.float32:
        how = net.chosen([v1.image.resize_bilinear, v1.image.resize_nearest_neighbor])
        return how(x, [net.between(1, 12), net.between(1, 12)], align_corners=net.happens(0.5))


@layer()
def softmax(net):
    x = net.value(least=1)
    return net.chosen([tf.nn.softmax, tf.nn.log_softmax])(x) if x is not None else None


@layer()
def losses(net):
    x = net.value(rank=2)
    if x is None:
        return None
    count, classes = x.shape.as_list()
    if net.happens(0.5):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=net.random.integers(0, classes, count), logits=x)
    wanted = net.random.random((count, classes))
    wanted = tf.constant(wanted / wanted.sum(1, keepdims=True), net.dtype)
    how = net.chosen([v1.nn.softmax_cross_entropy_with_logits, tf.nn.sigmoid_cross_entropy_with_logits])
    return how(labels=wanted, logits=x)


@layer()
def embedding(net):
    rows = net.between(2, 12)
    places = net.random.integers(0, rows, [net.between(1, 5), net.between(1, 4)])
    return tf.nn.embedding_lookup(net.variable([rows, net.between(1, 8)]), places)


# ---- sums and shapes

def product(x, axes, keepdims):
    return tf.reduce_prod(tf.tanh(x) + 1.2, axes, keepdims=keepdims)


@layer(2)
def reduced(net):
    x = net.value(least=1)
    if x is None:
        return None
    rank = x.shape.rank
    axes = [int(a) - rank * net.happens(0.3) for a in net.random.permutation(rank)[:net.between(1, rank)]]
    how = net.chosen([tf.reduce_sum, tf.reduce_mean, tf.reduce_mean, tf.reduce_max, tf.reduce_min, tf.reduce_logsumexp, product])
    return 0.5 * how(x, axes, keepdims=net.happens(0.5))


@layer()
def reshaped(net):
    x = net.value()
    left, shape = x.shape.num_elements(), []
    while left > 1 and len(shape) < 4:
        shape.append(net.chosen([d for d in range(1, left + 1) if left % d == 0]))
        left //= shape[-1]
    shape.append(left)
    if net.happens(0.3):
        shape[net.between(0, len(shape) - 1)] = -1
    return tf.reshape(x, shape)


@layer()
def transposed(net):
    x = net.value(least=2)
    return tf.transpose(x, net.random.permutation(x.shape.rank)) if x is not None else None


@layer()
def joined(net):
    x = net.value(least=1)
    if x is None:
        return None
    axis = net.between(0, x.shape.rank - 1)

    def beside(y):
        return [d for i, d in enumerate(y.shape.as_list()) if i != axis]
    fit = [y for y in net.values if y.shape.rank == x.shape.rank and beside(y) == beside(x)]
    return tf.concat([x] + [net.chosen(fit) for _ in range(net.between(1, 3))], axis)


@layer()
def stacked(net):
    x = net.value()
    return tf.stack([x] + [net.like(x) for _ in range(net.between(0, 2))], net.between(0, x.shape.rank))


@layer()
def parts(net):
    x = net.value(least=1)
    if x is None:
        return None
    axis = net.between(0, x.shape.rank - 1)
    size = int(x.shape[axis])
    if net.happens(0.3):
        return tf.unstack(x, axis=axis)[:3]
    if size > 1 and net.happens(0.5):
        first = net.between(1, size - 1)
        return tf.split(x, [first, size - first], axis)
    return tf.split(x, net.chosen([n for n in range(1, size + 1) if size % n == 0]), axis)


@layer(2)
def cut(net):
    x = net.value(least=1)
    if x is None:
        return None
    places = []
    for size in x.shape.as_list():
        begin = net.between(0, size - 1)
        places.append(net.chosen([slice(None), begin, begin - size, slice(None, None, -1), slice(begin, None, net.between(1, 2)),
                                  slice(begin, net.between(begin + 1, size))]))
    if net.happens(0.2):
        places.insert(net.between(0, len(places)), tf.newaxis)
    return x[tuple(places)]


@layer()
def padded(net):
    x = net.value(least=1)
    if x is not None:
        room = [[net.between(0, min(2, size - 1)), net.between(0, min(2, size - 1))] for size in x.shape.as_list()]
        return tf.pad(x, room, net.chosen(["CONSTANT", "REFLECT", "SYMMETRIC"]))


@layer()
def repeated(net):
    x = net.value()
    return tf.tile(x, [net.between(1, 2) for _ in range(x.shape.rank)])


@layer()
def gathered(net):
    x = net.value(least=1)
    if x is not None:
        axis = net.between(0, x.shape.rank - 1)
        places = net.random.integers(0, int(x.shape[axis]), [net.between(1, 5) for _ in range(net.between(1, 2))])
        return tf.gather(x, places, axis=axis)


@layer()
def one_axis(net):
    x = net.value(least=1)
    if x is None:
        return None
    axis, last = net.between(0, x.shape.rank - 1), int(x.shape[-1])
    return net.chosen([
        lambda: 0.3 * tf.cumsum(x, axis, net.happens(0.5), net.happens(0.5)), lambda: tf.reverse(x, [axis]),
        lambda: tf.math.top_k(x, net.between(1, last))[0], lambda: tf.expand_dims(x, axis), lambda: tf.squeeze(x),
        lambda: tf.math.unsorted_segment_sum(x, net.random.integers(0, 4, int(x.shape[0])), 4)])()


@layer()
def blocks(net):
    x = net.value(rank=4)
    if x is None:
        return None
    if x.shape[1] % 2 == 0 and x.shape[2] % 2 == 0:
        return tf.nn.space_to_depth(x, 2)
    return tf.nn.depth_to_space(x, 2) if x.shape[3] % 4 == 0 else None


# ---- conditions and loops

def shaped(y, x):
    y.set_shape(x.shape)
    return y


@layer()
def condition(net):
    x = net.value()
    weight, decides = net.variable(x.shape), tf.reduce_sum(net.value()) > 0
    return shaped(tf.cond(decides, lambda: tf.tanh(x) * weight, lambda: x - tf.square(weight) * 0.1), x)


@layer()
def loop(net):
    x, kept, rounds = net.value(), net.value(rank=0), net.between(0, 3)
    weight = net.variable(x.shape, 0.5)
    kept = 0.5 if kept is None else tf.tanh(kept)
    return shaped(v1.while_loop(lambda i, y: i < rounds, lambda i, y: (i + 1, tf.tanh(y * weight + kept)), [0, x])[1], x)


@layer()
def over_rows(net):
    x = net.value(least=2)
    if x is None:
        return None
    if net.happens(0.5):
        return shaped(v1.scan(lambda a, b: tf.tanh(a * 0.5 + b), x), x)
    weight = net.variable(x.shape[1:])
    return shaped(v1.map_fn(lambda row: tf.sigmoid(row) * weight, x), x)


# ---- a case

OPTIMIZERS = [lambda: v1.train.GradientDescentOptimizer(0.1), lambda: v1.train.MomentumOptimizer(0.05, 0.9),
              lambda: v1.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
              lambda: v1.train.AdamOptimizer(0.01, epsilon=0.1), lambda: v1.train.RMSPropOptimizer(0.01, epsilon=0.1),
              lambda: v1.train.AdagradOptimizer(0.1)]


class Case:
    """A network, its loss, gradients and update, as one graph; and the loss alone, for gradients of Tower's own."""

    def __init__(self, seed, index, most):
        draw = np.random.default_rng([seed, index, 1])
        (v1.enable_control_flow_v2 if draw.random() < 0.5 else v1.disable_control_flow_v2)()
        self.graph = tf.Graph()
        with self.graph.as_default():
            net = Network(seed, index, most)
            ends = net.values[-4:]
            self.tolerance = TOLERANCES[net.dtype]
            self.feeds = {place.name: value for place, value in net.feeds.items()}
            sums = [tf.reduce_mean(tf.tanh(x)) if net.happens(0.5) else
                    tf.reduce_mean(x * tf.constant(net.numbers(x.shape), net.dtype)) for x in ends]
            loss = tf.add_n(sums, name="loss")
            self.first_init = self.init = v1.global_variables_initializer().name
            self.loss = v1.graph_util.extract_sub_graph(self.graph.as_graph_def(), [loss.op.name, self.init])
            places = [(p.name, g) for p, g in zip(net.feeds, tf.gradients(loss, list(net.feeds)) if net.feeds else [])
                      if g is not None]
            pairs = [(g, v) for g, v in zip(tf.gradients(loss, net.variables) if net.variables else [], net.variables)
                     if g is not None]
            self.places = [name for name, _ in places]
            self.gradients = [g.name for _, g in places]
            self.fetches = [x.name for x in ends + [loss]] + [tf.convert_to_tensor(g).name for g, _ in pairs]
            self.train = None
            if pairs:
                if net.happens(0.3):
                    pairs = list(zip(tf.clip_by_global_norm([g for g, _ in pairs], 1.0)[0], [v for _, v in pairs]))
                # TensorFlow's own order is open: one variable may be read behind another's update
                pairs = list(zip(tf.tuple([g for g, _ in pairs]), [v for _, v in pairs]))
                optimizer = net.chosen(OPTIMIZERS)()
                self.train = optimizer.apply_gradients(pairs).name
                self.init = v1.global_variables_initializer().name
            self.reads = [tf.identity(v).name for _, v in pairs] + [loss.name]
        self.definition = self.graph.as_graph_def()

    def by_tensorflow(self):
        config = v1.ConfigProto(allow_soft_placement=True)
        config.graph_options.rewrite_options.disable_meta_optimizer = True  # its rewrites give other values at times
        with v1.Session(graph=self.graph, config=config) as session:
            session.run(self.init)
            values = session.run(self.fetches + self.gradients, self.feeds)
            for _ in range(STEPS if self.train else 0):
                session.run(self.train, self.feeds)
            return values + session.run(self.reads, self.feeds)

    def by_tower(self, tower, **mode):
        with tower.graph(self.definition.SerializeToString()) as graph:
            session = graph.session(soft=True, **mode)
            session.run([self.init], {})
            values = session.run(self.fetches + self.gradients, self.feeds)
            for _ in range(STEPS if self.train else 0):
                session.run([self.train], self.feeds)
            return values + session.run(self.reads, self.feeds)

    def own_gradients(self, tower):
        with tower.graph(self.loss.SerializeToString()) as graph:
            gradients = graph.gradients(["loss:0"], [], self.places)
            session = graph.session(soft=True)
            session.run([self.first_init], {})
            there = {n.name for n in self.loss.node}
            return session.run(gradients, {name: value for name, value in self.feeds.items() if name[:-2] in there})


def difference(want, got, tolerance):
    """Why two values are not the same, or None."""
    want, got = np.asarray(want, np.float64), np.asarray(got, np.float64)
    if want.shape != got.shape:
        return "shape %s, expected %s" % (got.shape, want.shape)
    finite = np.isfinite(want)
    scale = max(0.1, np.abs(want[finite]).max() if finite.any() else 0)
    same = (want == got) | (np.isnan(want) & np.isnan(got)) | (finite & (np.abs(want - got) <= tolerance * scale))
    if same.all():
        return None
    i = int(np.argmin(same.ravel()))
    return "element %d is %.9g, expected %.9g (%d of %d)" % (i, got.ravel()[i], want.ravel()[i], (~same).sum(), same.size)


def compare(tower, case, modes):
    """Sentences about what differs."""
    wanted, found = case.by_tensorflow(), []
    if not all(np.all(np.abs(value) < WILD) for value in wanted):  # nor for what is not a number
        return None
    names = case.fetches + case.gradients + ["%s after %d updates" % (name, STEPS) for name in case.reads]
    for mode in modes:
        try:
            got = case.by_tower(tower, **MODES[mode])
        except TowerError as e:
            found.append("%s: refused: %s" % (mode, e))
            continue
        for name, want, have in zip(names, wanted, got):
            why = difference(want, have, case.tolerance * (3 if " after " in name else 1))
            found += ["%s: %s: %s" % (mode, name, why)] if why else []
    try:
        first = len(case.fetches)
        own = case.own_gradients(tower) if case.places else []
        for name, want, have in zip(case.places, wanted[first:first + len(case.places)], own):
            why = difference(want, have, case.tolerance)
            found += ["own gradient of %s: %s" % (name, why)] if why else []
    except TowerError as e:
        found.append("own gradients: refused: %s" % e)
    return found


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default=os.path.join(here, "../../build/src/libtower.so"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--case", type=int)
    parser.add_argument("--nodes", type=int, default=50, help="layers of a network, at most")
    given = parser.parse_args()
    tower, differing, refused, wild = Tower(given.library), 0, 0, 0
    one = given.case is not None
    for index in [given.case] if one else range(given.first, given.first + given.cases):
        try:
            case = Case(given.seed, index, given.nodes)
            if one:
                with open("network.pb", "wb") as file:
                    file.write(case.definition.SerializeToString())
            found = compare(tower, case, list(MODES) if one else ["fast", list(MODES)[1 + index % 3]])
        except (tf.errors.OpError, ValueError) as e:  # such as dilated convolutions' gradients, or rows' through loops
            refused += 1
            if one:
                print("TensorFlow refuses:", str(e).splitlines()[-1])
            continue
        wild += found is None
        differing += bool(found)
        if found:
            print("case %d (%d nodes)" % (index, len(case.definition.node)), *found[:None if one else 3], sep="\n  ", flush=True)
    print("%d networks: %d differ, %d refused by TensorFlow, %d with numbers that are too great" %
          (1 if one else given.cases, differing, refused, wild))
    return differing > 0


if __name__ == "__main__":
    sys.exit(main())
