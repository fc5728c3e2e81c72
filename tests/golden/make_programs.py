#!/usr/bin/env python3
"""Writes programs/*.meta.gz and programs.h: training programs of TensorFlow 1's kinds, small, and their losses.

Each is a MetaGraphDef of what its training step and its first values need, packed with gzip. Its variables get their first
values from its own initializers: TensorFlow's streams of random numbers. tests/test_run_command.c trains each by
`tower run` and compares the losses. To have the same bytes again: PYTHONHASHSEED=0, for feature columns are kept in sets.
"""
import gzip
import json
import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 20
PROGRAMS = []


def program(resources):
    """Registers a function that builds a graph and gives its loss, its training step and what is fed."""
    return lambda build: PROGRAMS.append((build.__name__, build, resources))


def dense(x, units, name, activation=None):
    with tf.variable_scope(name):
        weights = tf.get_variable("weights", [int(x.shape[-1]), units])
        biases = tf.get_variable("biases", [units], initializer=tf.zeros_initializer())
        y = tf.nn.bias_add(tf.matmul(x, weights), biases)
        return activation(y) if activation else y


def cross_entropy(logits, labels):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=labels)


@program(resources=False)
def language_model(draw):
    """Two layers of LSTM, unrolled, with dropout, and gradients clipped by their common norm."""
    words = tf.placeholder(tf.int32, [3, 4], "words")
    following = tf.placeholder(tf.int32, [3, 4], "following")
    table = tf.get_variable("embedding", [20, 6])
    inputs = tf.nn.dropout(tf.nn.embedding_lookup(table, words), rate=0.2, seed=3)
    layers = [tf.nn.rnn_cell.BasicLSTMCell(6, forget_bias=0.0) for _ in range(2)]
    cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.DropoutWrapper(c, output_keep_prob=0.8, seed=5) for c in layers])
    outputs, _ = tf.nn.static_rnn(cell, tf.unstack(inputs, axis=1), initial_state=cell.zero_state(3, tf.float32))
    logits = dense(tf.reshape(tf.concat(outputs, 1), [-1, 6]), 20, "softmax")
    loss = tf.reduce_sum(cross_entropy(logits, tf.reshape(following, [-1]))) / 3
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5)
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.5, step, 8, 0.5, staircase=True)
    train = tf.train.GradientDescentOptimizer(rate).apply_gradients(zip(gradients, variables), step)
    return loss, train, {words: draw.randint(0, 20, (3, 4)), following: draw.randint(0, 20, (3, 4))}


@program(resources=True)
def sequences(draw):
    """LSTM with peepholes and a projection, then GRU, over sequences of different length, in a loop."""
    words = tf.placeholder(tf.int32, [None, None], "words")
    following = tf.placeholder(tf.int32, [None, None], "following")
    lengths = tf.placeholder(tf.int32, [None], "lengths")
    inputs = tf.nn.embedding_lookup(tf.get_variable("embedding", [20, 6]), words)
    layers = [tf.nn.rnn_cell.LSTMCell(6, use_peepholes=True, num_proj=5), tf.nn.rnn_cell.GRUCell(6)]
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.MultiRNNCell(layers), inputs, lengths, dtype=tf.float32)
    logits = dense(tf.reshape(outputs, [-1, 6]), 20, "softmax")
    losses = cross_entropy(tf.reshape(logits, [tf.shape(words)[0], tf.shape(words)[1], 20]), following)
    mask = tf.sequence_mask(lengths, tf.shape(words)[1], dtype=tf.float32)
    loss = tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    return loss, train, {words: draw.randint(0, 20, (3, 5)), following: draw.randint(0, 20, (3, 5)), lengths: [5, 2, 4]}


@program(resources=False)
def word2vec(draw):
    """Noise-contrastive estimation with sampled classes."""
    center = tf.placeholder(tf.int32, [8], "center")
    beside = tf.placeholder(tf.int32, [8, 1], "beside")
    with tf.device("/cpu:0"):
        table = tf.Variable(tf.random_uniform([40, 4], -1.0, 1.0, seed=2), name="table")
        inputs = tf.nn.embedding_lookup(table, center)
        weights = tf.Variable(tf.truncated_normal([40, 4], stddev=0.3, seed=4), name="weights")
        biases = tf.Variable(tf.zeros([40]), name="biases")
    loss = tf.reduce_mean(tf.nn.nce_loss(weights, biases, beside, inputs, num_sampled=6, num_classes=40))
    train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    return loss, train, {center: draw.randint(0, 40, 8), beside: draw.randint(0, 40, (8, 1))}


@program(resources=False)
def sequence_to_sequence(draw):
    """An encoder, and a decoder that attends to it: TensorArrays in a tf.while_loop."""
    size = 5
    source = tf.placeholder(tf.int32, [None, None], "source")
    target = tf.placeholder(tf.int32, [None, None], "target")
    lengths = tf.placeholder(tf.int32, [None], "lengths")
    table = tf.get_variable("embedding", [15, size])
    inputs = tf.nn.embedding_lookup(table, source)
    encoded, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(size, name="encoder"), inputs, lengths, dtype=tf.float32)
    mask = tf.sequence_mask(lengths, tf.shape(source)[1])
    cell = tf.nn.rnn_cell.LSTMCell(size, name="decoder")
    weights = tf.get_variable("attention", [2 * size, size])
    projection = tf.get_variable("projection", [size, 15])
    steps = tf.shape(target)[1]
    given = tf.TensorArray(tf.float32, steps).unstack(tf.transpose(tf.nn.embedding_lookup(table, target), [1, 0, 2]))

    def body(i, c, h, attended, logits):
        x = tf.concat([given.read(i), attended], 1)
        x.set_shape([None, 2 * size])
        y, new = cell(x, tf.nn.rnn_cell.LSTMStateTuple(c, h))
        scores = tf.reduce_sum(encoded * tf.expand_dims(y, 1), 2)
        shares = tf.nn.softmax(tf.where(mask, scores, tf.fill(tf.shape(scores), -1e9)))
        context = tf.reduce_sum(tf.expand_dims(shares, 2) * encoded, 1)
        attended = tf.tanh(tf.matmul(tf.concat([y, context], 1), weights))
        return i + 1, new.c, new.h, attended, logits.write(i, tf.matmul(attended, projection))

    first = [0, state.c, state.h, tf.zeros_like(state.h), tf.TensorArray(tf.float32, steps)]
    logits = tf.while_loop(lambda i, *_: i < steps, body, first)[4].stack()
    loss = tf.reduce_mean(cross_entropy(tf.transpose(logits, [1, 0, 2]), target))
    optimizer = tf.train.AdamOptimizer(0.01)
    clipped = [(tf.clip_by_norm(g, 1.0), v) for g, v in optimizer.compute_gradients(loss)]
    return loss, optimizer.apply_gradients(clipped), {
        source: draw.randint(0, 15, (3, 4)), target: draw.randint(0, 15, (3, 3)), lengths: [4, 2, 3]}


@program(resources=True)
def wide_and_deep(draw):
    """Feature columns: texts hashed and looked up, buckets, crosses, embeddings; FTRL beside Adagrad."""
    columns = tf2.feature_column
    age = tf.placeholder(tf.float32, [6], "age")
    work = tf.placeholder(tf.string, [6], "work")
    school = tf.placeholder(tf.string, [6], "school")
    label = tf.placeholder(tf.float32, [6, 1], "label")
    features = {"age": age, "work": work, "school": school}
    years = columns.numeric_column("age")
    jobs = columns.categorical_column_with_hash_bucket("work", 10)
    schools = columns.categorical_column_with_vocabulary_list("school", ["hs", "ba", "ms"])
    buckets = columns.bucketized_column(years, [25, 40])
    crossed = columns.crossed_column([buckets, "work", "school"], 20)
    with tf.variable_scope("wide"):
        wide = tf.feature_column.linear_model(features, [jobs, schools, buckets, crossed])
    with tf.variable_scope("deep"):
        chosen = [years, columns.embedding_column(jobs, 3), columns.indicator_column(schools)]
        hidden = dense(tf.feature_column.input_layer(features, chosen), 6, "hidden", tf.nn.relu)
        deep = dense(hidden, 1, "output")
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=wide + deep))
    train = tf.group(
        tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01).minimize(loss, var_list=tf.trainable_variables("wide")),
        tf.train.AdagradOptimizer(0.1).minimize(loss, var_list=tf.trainable_variables("deep")))
    return loss, train, {
        age: draw.randint(18, 60, 6), work: ["a", "b", "cc", "d", "a", "zz"],
        school: ["hs", "ba", "x", "ms", "ms", "hs"], label: draw.randint(0, 2, (6, 1))}


@program(resources=True)
def transformer(draw):
    """Attention to what came before, layer norms, and the embedding used again at the end."""
    size, heads = 8, 2
    words = tf.placeholder(tf.int32, [None, None], "words")
    count, length = tf.shape(words)[0], tf.shape(words)[1]

    def normalize(x, name):
        with tf.variable_scope(name):
            gain = tf.get_variable("gain", [size], initializer=tf.ones_initializer())
            shift = tf.get_variable("shift", [size], initializer=tf.zeros_initializer())
            mean, variance = tf.nn.moments(x, [-1], keepdims=True)
            return tf.nn.batch_normalization(x, mean, variance, shift, gain, 1e-5)

    def split(x):
        return tf.transpose(tf.reshape(x, [count, length, heads, size // heads]), [0, 2, 1, 3])

    table = tf.get_variable("embedding", [20, size])
    x = tf.gather(table, words) * size ** 0.5 + tf.get_variable("positions", [12, size])[:length]
    q, k, v = [split(t) for t in tf.split(tf.layers.dense(normalize(x, "norm1"), 3 * size, name="qkv"), 3, 2)]
    before = tf.matrix_band_part(tf.ones([length, length]), -1, 0)
    shares = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * 0.5 * before - 1e9 * (1 - before))
    mixed = tf.reshape(tf.transpose(tf.matmul(shares, v), [0, 2, 1, 3]), [count, length, size])
    x += tf.layers.dense(mixed, size, name="output")
    x += tf.layers.dense(tf2.nn.gelu(tf.layers.dense(normalize(x, "norm2"), 16, name="wide")), size, name="narrow")
    logits = tf.einsum("bth,vh->btv", normalize(x, "norm3"), table)
    loss = tf.reduce_mean(cross_entropy(logits[:, :-1], words[:, 1:]))
    return loss, tf.train.AdamOptimizer(0.01).minimize(loss), {words: draw.randint(0, 20, (3, 6))}


@program(resources=False)
def dcgan(draw):
    """Two networks, each with an optimizer of its own; transposed convolutions, batch norms, dropout."""
    images = tf.placeholder(tf.float32, [2, 8, 8, 1], "images")

    def generator(noise):
        with tf.variable_scope("generator"):
            x = tf.reshape(tf.layers.dense(noise, 2 * 2 * 6), [-1, 2, 2, 6])
            x = tf.nn.relu(tf.layers.batch_normalization(x, training=True))
            x = tf.layers.conv2d_transpose(x, 4, 3, 2, "same")
            x = tf.nn.relu(tf.layers.batch_normalization(x, training=True, fused=False))
            return tf.tanh(tf.layers.conv2d_transpose(x, 1, 3, 2, "same"))

    def discriminator(x, reuse):
        with tf.variable_scope("discriminator", reuse=reuse):
            x = tf.nn.leaky_relu(tf.layers.conv2d(x, 4, 3, 2, "same"))
            x = tf.layers.batch_normalization(tf.layers.conv2d(x, 6, 3, 2, "same"), training=True)
            x = tf.layers.dropout(tf.layers.flatten(tf.nn.leaky_relu(x)), 0.3, training=True, seed=8)
            return tf.layers.dense(x, 1)

    def entropy(logits, label):
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=label * tf.ones_like(logits)))

    made = generator(tf.random_uniform([2, 4], -1, 1, seed=3))
    real, fake = discriminator(images, None), discriminator(made, True)
    judged, fooled = entropy(real, 0.9) + entropy(fake, 0.0), entropy(fake, 1.0)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        optimizer = tf.train.AdamOptimizer(2e-3, beta1=0.5)
        judge = optimizer.minimize(judged, var_list=tf.trainable_variables("discriminator"))
        with tf.control_dependencies([judge]):
            optimizer = tf.train.AdamOptimizer(2e-3, beta1=0.5)
            train = optimizer.minimize(fooled, var_list=tf.trainable_variables("generator"))
    return judged + fooled, train, {images: draw.randint(-64, 64, (2, 8, 8, 1)) / 64}


@program(resources=True)
def variational_autoencoder(draw):
    x = tf.placeholder(tf.float32, [None, 10], "x")
    hidden = dense(x, 8, "encoder", tf.nn.relu)
    mean, deviation = dense(hidden, 3, "mean"), dense(hidden, 3, "deviation")
    z = mean + tf.exp(deviation) * tf.random_normal(tf.shape(mean), seed=4)
    logits = dense(dense(z, 8, "decoder", tf.nn.relu), 10, "output")
    divergence = -0.5 * tf.reduce_sum(1 + 2 * deviation - tf.square(mean) - tf.exp(2 * deviation), 1)
    wrong = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits), 1)
    loss = tf.reduce_mean(wrong + divergence)
    return loss, tf.train.AdamOptimizer(0.01).minimize(loss), {x: draw.randint(0, 64, (4, 10)) / 64}


@program(resources=True)
def deep_q(draw):
    """A network that learns from its own older self, which a condition brings up to date."""
    seen = tf.placeholder(tf.float32, [None, 3], "seen")
    done = tf.placeholder(tf.int32, [None], "done")
    reward = tf.placeholder(tf.float32, [None], "reward")

    def value(name):
        with tf.variable_scope(name):
            return dense(dense(seen, 6, "hidden", tf.tanh), 3, "output")

    online, older = value("online"), value("older")
    step = tf.train.get_or_create_global_step()
    wanted = reward + 0.9 * tf.stop_gradient(tf.reduce_max(older, 1))
    loss = tf.reduce_mean(tf.square(wanted - tf.reduce_sum(online * tf.one_hot(done, 3), 1)))
    train = tf.train.AdamOptimizer(0.01).minimize(loss, step, tf.trainable_variables("online"))
    pairs = list(zip(tf.trainable_variables("older"), tf.trainable_variables("online")))
    with tf.control_dependencies([train]):
        update = tf.cond(tf.equal(step % 5, 0), lambda: tf.group(*[a.assign(b) for a, b in pairs]), tf.no_op)
    return loss, update.op, {
        seen: draw.randint(-64, 64, (5, 3)) / 64, done: draw.randint(0, 3, 5), reward: draw.randint(-64, 64, 5) / 64}


@program(resources=False)
def autoencoder(draw):
    """Layers in two loops: a slice of one variable in each round, forth and back."""
    x = tf.placeholder(tf.float32, [None, 6], "x")
    weights = tf.get_variable("weights", [3, 6, 6], initializer=tf.glorot_uniform_initializer(seed=3))
    biases = tf.get_variable("biases", [3, 6], initializer=tf.zeros_initializer())
    encode = lambda i, h: (i + 1, tf.tanh(tf.matmul(h, weights[i]) + tf.gather(biases, i)))
    decode = lambda i, h: (i - 1, tf.tanh(tf.matmul(h, weights[i], transpose_b=True)))
    code = tf.while_loop(lambda i, h: i < 3, encode, [0, x])[1]
    decoded = tf.while_loop(lambda i, h: i >= 0, decode, [2, code])[1]
    loss = tf.reduce_mean(tf.square(decoded - x))
    return loss, tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss), {x: draw.randint(0, 64, (4, 6)) / 64}


@program(resources=False)
def partitioned(draw):
    """Variables in three parts each, the sampled softmax on them too."""
    words = tf.placeholder(tf.int32, [8], "words")
    beside = tf.placeholder(tf.int64, [8, 1], "beside")
    with tf.variable_scope("parts", partitioner=tf.fixed_size_partitioner(3)):
        inputs = tf.nn.embedding_lookup(tf.get_variable("embedding", [20, 5]), words)
        hidden = tf.layers.dense(inputs, 6, tf.nn.elu, name="hidden")
        weights = tf.get_variable("weights", [20, 6])
        biases = tf.get_variable("biases", [20], initializer=tf.zeros_initializer(), partitioner=None)
    loss = tf.reduce_mean(tf.nn.sampled_softmax_loss(weights, biases, beside, hidden, 6, 20, partition_strategy="div", seed=9))
    loss += tf.losses.get_regularization_loss()
    return loss, tf.train.AdagradOptimizer(0.5).minimize(loss), {
        words: draw.randint(0, 20, 8), beside: draw.randint(0, 20, (8, 1))}


@program(resources=True)
def estimator(draw):
    """What an Estimator builds: its Scaffold, metrics, averages, and a rate by steps. Nothing is fed."""
    step = tf.train.get_or_create_global_step()
    features = tf.constant((draw.randint(-64, 64, (20, 5)) / 64).astype(np.float32))
    labels = tf.constant(draw.randint(0, 3, 20))
    first = tf.cast(step % 5, tf.int32) * 4
    x, y = tf.slice(features, tf.stack([first, 0]), [4, 5]), tf.slice(labels, [first], [4])
    hidden = tf.layers.dense(x, 6, tf.nn.relu, kernel_regularizer=lambda w: 0.01 * tf.nn.l2_loss(w))
    hidden = tf.layers.batch_normalization(hidden, training=True)
    logits = tf.layers.dense(tf.layers.dropout(hidden, 0.25, training=True, seed=1), 3)
    tf.losses.sparse_softmax_cross_entropy(y, logits)
    loss = tf.losses.get_total_loss()
    _, accuracy = tf.metrics.accuracy(y, tf.argmax(logits, 1))
    _, auc = tf.metrics.auc(y > 0, tf.nn.softmax(logits)[:, 1], num_thresholds=5)
    rate = tf.train.piecewise_constant(step, [5, 12], [0.1, 0.05, 0.01])
    averages = tf.train.ExponentialMovingAverage(0.9, step)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS) + [accuracy, auc]):
        train = tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True).minimize(loss, step)
    with tf.control_dependencies([train]):
        train = averages.apply(tf.trainable_variables())
    return loss, train, {}


@program(resources=False)
def tagger(draw):
    """LSTM in both directions, and a conditional random field, whose sum over all ways is a loop with a cell of its own."""
    tags, words, wanted = 4, tf.placeholder(tf.int32, [None, None], "words"), tf.placeholder(tf.int32, [None, None], "tags")
    lengths = tf.placeholder(tf.int32, [None], "lengths")
    count, longest = tf.shape(words)[0], tf.shape(words)[1]
    inputs = tf.nn.embedding_lookup(tf.get_variable("embedding", [20, 5]), words)
    forth, back = tf.nn.rnn_cell.LSTMCell(4), tf.nn.rnn_cell.LSTMCell(4)
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(forth, back, inputs, lengths, dtype=tf.float32)
    scores = tf.reshape(dense(tf.reshape(tf.concat(outputs, 2), [-1, 8]), tags, "scores"), [count, longest, tags])
    ways = tf.get_variable("ways", [tags, tags])

    class Sums(tf.nn.rnn_cell.RNNCell):
        state_size = output_size = tags

        def __call__(self, x, state, scope=None):
            new = x + tf.reduce_logsumexp(tf.expand_dims(state, 2) + ways, 1)
            return new, new

    sums, _ = tf.nn.dynamic_rnn(Sums(), scores[:, 1:], tf.maximum(0, lengths - 1), scores[:, 0], dtype=tf.float32)
    last = tf.gather_nd(tf.concat([scores[:, :1], sums], 1), tf.stack([tf.range(count), lengths - 1], 1))
    mask = tf.sequence_mask(lengths, longest, tf.float32)
    own = tf.reduce_sum(tf.reduce_sum(scores * tf.one_hot(wanted, tags), 2) * mask, 1)
    steps = tf.gather(tf.reshape(ways, [-1]), wanted[:, :-1] * tags + wanted[:, 1:])
    loss = tf.reduce_mean(tf.reduce_logsumexp(last, 1) - own - tf.reduce_sum(steps * mask[:, 1:], 1))
    return loss, tf.train.AdamOptimizer(0.05).minimize(loss), {
        words: draw.randint(0, 20, (3, 5)), wanted: draw.randint(0, 4, (3, 5)), lengths: [5, 3, 4]}


@program(resources=True)
def critic(draw):
    """A Wasserstein GAN: the slope of the critic is part of its loss, so its gradient is differentiated."""
    real = tf.placeholder(tf.float32, [4, 6], "real")

    def judge(x):
        with tf.variable_scope("critic", reuse=tf.AUTO_REUSE):
            hidden = dense(dense(x, 8, "first", tf.nn.leaky_relu), 8, "second", tf.tanh)
            return dense(hidden, 1, "output")

    with tf.variable_scope("generator"):
        made = dense(dense(tf.random_normal([4, 3], seed=6), 8, "hidden", tf.nn.relu), 6, "output", tf.tanh)
    share = tf.random_uniform([4, 1], seed=7)
    mixed = share * real + (1 - share) * made
    slope = tf.gradients(judge(mixed), mixed)[0]
    steep = tf.reduce_mean(tf.square(tf.sqrt(tf.reduce_sum(tf.square(slope), 1)) - 1))
    loss = tf.reduce_mean(judge(made)) - tf.reduce_mean(judge(real)) + 10 * steep
    train = tf.train.AdamOptimizer(1e-3, 0.0, 0.9).minimize(loss, var_list=tf.trainable_variables("critic"))
    with tf.control_dependencies([train]):
        fooled = -tf.reduce_mean(judge(made))
        train = tf.train.AdamOptimizer(1e-3, 0.0, 0.9).minimize(fooled, var_list=tf.trainable_variables("generator"))
    return loss, train, {real: draw.randint(-64, 64, (4, 6)) / 64}


@program(resources=False)
def graph_attention(draw):
    """Nodes of a graph that attend to their neighbours: a sparse matrix, its sums with dense ones and its softmax."""
    nodes, x = 5, tf.placeholder(tf.float32, [5, 4], "x")
    wanted = tf.placeholder(tf.int32, [5], "wanted")
    edges = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [1, 3], [2, 2], [2, 4], [3, 1], [3, 3], [4, 2], [4, 4]], np.int64)
    beside = tf.SparseTensor(edges, tf.ones([len(edges)]), [nodes, nodes])

    def attend(x, size, name, activation):
        with tf.variable_scope(name):
            features = tf.matmul(x, tf.get_variable("weights", [int(x.shape[1]), size]))
            own, theirs = dense(features, 1, "own"), dense(features, 1, "theirs")
            scores = tf.sparse_add(beside * own, beside * tf.transpose(theirs))
            scores = tf.SparseTensor(scores.indices, tf.nn.leaky_relu(scores.values), scores.dense_shape)
            shares = tf.sparse_softmax(scores)
            kept = tf.SparseTensor(shares.indices, tf.nn.dropout(shares.values, rate=0.2, seed=3), shares.dense_shape)
            return activation(tf.sparse_tensor_dense_matmul(kept, features))

    hidden = tf.concat([attend(x, 3, "head%d" % i, tf.nn.elu) for i in range(2)], 1)
    logits = attend(tf.nn.dropout(hidden, rate=0.1, seed=4), 3, "output", tf.identity)
    loss = tf.reduce_mean(cross_entropy(logits, wanted))
    return loss, tf.train.MomentumOptimizer(0.2, 0.9).minimize(loss), {
        x: draw.randint(-64, 64, (5, 4)) / 64, wanted: draw.randint(0, 3, 5)}


@program(resources=False)
def capsules(draw):
    """Capsules with votes by agreement: tensors of five axes that are tiled, so gradients of ten."""
    x, y = tf.placeholder(tf.float32, [2, 10, 10, 1], "x"), tf.placeholder(tf.int32, [2], "y")

    def squash(s):
        squares = tf.reduce_sum(tf.square(s), 3, keepdims=True)
        return squares / (1 + squares) * s / tf.sqrt(squares + 1e-9)

    features = tf.layers.conv2d(tf.layers.conv2d(x, 8, 4, activation=tf.nn.relu), 8, 3, strides=2)
    low = squash(tf.reshape(features, [2, -1, 1, 4, 1]))
    count = int(low.shape[1])
    weights = tf.get_variable("weights", [1, count, 3, 6, 4], initializer=tf.random_normal_initializer(stddev=0.1, seed=4))
    votes = tf.matmul(tf.tile(weights, [2, 1, 1, 1, 1]), tf.tile(low, [1, 1, 3, 1, 1]))
    agreement = tf.zeros([2, count, 3, 1, 1])
    for _ in range(2):
        high = squash(tf.reduce_sum(tf.nn.softmax(agreement, axis=2) * votes, 1, keepdims=True))
        agreement += tf.reduce_sum(tf.tile(high, [1, count, 1, 1, 1]) * votes, 3, keepdims=True)
    length, wanted = tf.sqrt(tf.reduce_sum(tf.square(high), [1, 3, 4]) + 1e-9), tf.one_hot(y, 3)
    loss = tf.reduce_mean(wanted * tf.square(tf.nn.relu(0.9 - length)) + 0.5 * (1 - wanted) * tf.square(tf.nn.relu(length - 0.1)))
    mask = tf.reshape(tf.boolean_mask(tf.reshape(high, [2, 3, 6]), tf.cast(wanted, tf.bool)), [2, 6])
    loss += 0.1 * tf.reduce_mean(tf.square(dense(mask, 100, "again", tf.sigmoid) - tf.reshape(x, [2, 100])))
    return loss, tf.train.AdamOptimizer(0.003).minimize(loss), {x: draw.randint(0, 5, (2, 10, 10, 1)) / 4, y: [2, 0]}


@program(resources=True)
def glimpses(draw):
    """Attention that looks at windows of an image, and learns where from whether it was right."""
    x, y = tf.placeholder(tf.float32, [3, 10, 10, 1], "x"), tf.placeholder(tf.int32, [3], "y")
    cell, place, chances = tf.nn.rnn_cell.LSTMCell(6), tf.zeros([3, 2]), []
    state = cell.zero_state(3, tf.float32)
    with tf.variable_scope("net", reuse=tf.AUTO_REUSE):
        for i in range(3):
            window = tf.image.extract_glimpse(x, [4, 4], place * 0.5)
            seen = dense(tf.concat([tf.reshape(window, [3, 16]), place], 1), 6, "window", tf.nn.relu)
            output, state = cell(seen, state)
            mean = dense(tf.stop_gradient(output), 2, "place", tf.tanh)
            place = tf.stop_gradient(tf.clip_by_value(mean + tf.random_normal([3, 2], stddev=0.1, seed=i + 1), -1, 1))
            chances.append(-tf.reduce_sum(tf.square(place - mean), 1) / 0.02)
        logits = dense(output, 3, "output")
        hoped = tf.squeeze(dense(tf.stop_gradient(output), 1, "hoped"), 1)
    right = tf.cast(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), y), tf.float32)
    loss = tf.reduce_mean(cross_entropy(logits, y)) + tf.reduce_mean(tf.square(right - hoped))
    loss -= 0.01 * tf.reduce_mean(tf.add_n(chances) * (right - tf.stop_gradient(hoped)))
    return loss, tf.train.AdamOptimizer(0.01).minimize(loss), {x: draw.randint(0, 5, (3, 10, 10, 1)) / 4, y: [1, 0, 2]}


@program(resources=False)
def fractional(draw):
    """Pools by a factor that is no whole number."""
    x, y = tf.placeholder(tf.float32, [2, 11, 11, 2], "x"), tf.placeholder(tf.int32, [2], "y")
    kinds = dict(seed=5, deterministic=True)
    hidden = tf.layers.conv2d(x, 4, 3, padding="same", activation=tf.nn.leaky_relu)
    hidden = tf.nn.fractional_max_pool(hidden, [1, 1.44, 1.44, 1], pseudo_random=True, overlapping=True, **kinds)[0]
    hidden = tf.layers.conv2d(hidden, 4, 3, activation=tf.nn.leaky_relu)
    hidden = tf.nn.fractional_avg_pool(hidden, [1, 1.6, 1.5, 1], **kinds)[0]
    loss = tf.reduce_mean(cross_entropy(dense(tf.reshape(hidden, [2, -1]), 3, "output"), y))
    return loss, tf.train.MomentumOptimizer(0.02, 0.9).minimize(loss), {
        x: draw.randint(-2, 3, (2, 11, 11, 2)) / 2, y: [1, 2]}


@program(resources=True)
def tape(draw):
    """A controller with a memory that it reads and writes in a loop, at places it finds by content and by shifts."""
    x, wanted = tf.placeholder(tf.float32, [2, 4, 3], "x"), tf.placeholder(tf.float32, [2, 4, 3], "wanted")
    cell = tf.nn.rnn_cell.LSTMCell(5)
    with tf.variable_scope("heads"):
        key, gone, new, moves = (tf.get_variable(n, [5, 3]) for n in ("key", "gone", "new", "moves"))
        answer = tf.get_variable("answer", [8, 3])

    def step(i, state, memory, at, answers):
        seen = tf.reduce_sum(at[:, :, None] * memory, 1)
        output, state = cell(tf.concat([x[:, i], seen], 1), state)
        like = tf.einsum("bnd,bd->bn", tf.nn.l2_normalize(memory, 2), tf.nn.l2_normalize(tf.tanh(tf.matmul(output, key)), 1))
        at = tf.stack([tf.roll(tf.nn.softmax(5 * like), shift, 1) for shift in (-1, 0, 1)], 2)
        at = tf.pow(tf.reduce_sum(at * tf.nn.softmax(tf.matmul(output, moves))[:, None], 2), 1.5)
        at /= tf.reduce_sum(at, 1, keepdims=True)
        memory *= 1 - at[:, :, None] * tf.sigmoid(tf.matmul(output, gone))[:, None]
        memory += at[:, :, None] * tf.tanh(tf.matmul(output, new))[:, None]
        both = tf.concat([output, tf.reduce_sum(at[:, :, None] * memory, 1)], 1)
        return i + 1, state, memory, at, answers.write(i, tf.matmul(both, answer))

    begin = [0, cell.zero_state(2, tf.float32), tf.fill([2, 4, 3], 0.1), tf.one_hot([0, 0], 4), tf.TensorArray(tf.float32, 4)]
    answers = tf.while_loop(lambda i, *_: i < 4, step, begin)[4].stack()
    logits = tf.transpose(answers, [1, 0, 2])
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=wanted))
    return loss, tf.train.RMSPropOptimizer(0.01, momentum=0.9).minimize(loss), {
        x: draw.randint(0, 2, (2, 4, 3)), wanted: draw.randint(0, 2, (2, 4, 3))}


@program(resources=True)
def spectrogram(draw):
    """Sound by its spectrogram: frames that a window fades, which is trained, their transforms, and a layer of bands; and
    what is heard of it again beside it, by a filter of complex weights."""
    sound, wanted = tf.placeholder(tf.float32, [2, 40], "sound"), tf.placeholder(tf.int32, [2], "wanted")
    window = tf.get_variable("window", [12], initializer=tf.constant_initializer(0.5))
    frames = tf.signal.frame(sound, 12, 5) * window
    spectra = tf.signal.rfft(frames, [16])
    bands = dense(tf.reshape(tf.math.log1p(tf.abs(spectra)), [-1, 9]), 4, "bands", tf.nn.relu)
    logits = dense(tf.reshape(bands, [2, -1]), 3, "classes")
    real, imaginary = (tf.get_variable(n, [9], initializer=tf.ones_initializer()) for n in ("real", "imaginary"))
    heard = tf.signal.irfft(spectra * tf.complex(real, imaginary), [16])[..., :12]
    loss = tf.reduce_mean(cross_entropy(logits, wanted)) + tf.reduce_mean(tf.square(heard - frames))
    return loss, tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss), {
        sound: draw.randint(-64, 64, (2, 40)) / 64, wanted: draw.randint(0, 3, 2)}


@program(resources=False)
def tree(draw):
    """A network over a tree: a round of a loop is a leaf or joins two earlier ones, so a condition decides what it reads and
    puts into a TensorArray without a shape; in the loop that goes back the condition comes from a stack."""
    left, right = tf.placeholder(tf.int32, [None], "left"), tf.placeholder(tf.int32, [None], "right")
    words, leaf = tf.placeholder(tf.int32, [None], "words"), tf.placeholder(tf.bool, [None], "leaf")
    wanted, count = tf.placeholder(tf.int32, [None], "wanted"), tf.shape(words)[0]
    table, joins = tf.get_variable("table", [10, 4]), tf.get_variable("joins", [8, 4])

    def step(i, done):
        both = lambda: tf.concat([done.read(tf.gather(left, i)), done.read(tf.gather(right, i))], 1)
        word = lambda: tf.expand_dims(tf.gather(table, tf.gather(words, i)), 0)
        return i + 1, done.write(i, tf.cond(tf.gather(leaf, i), word, lambda: tf.tanh(tf.matmul(both(), joins))))

    done = tf.TensorArray(tf.float32, count, clear_after_read=False, infer_shape=False)
    done = tf.while_loop(lambda i, _: i < count, step, [0, done], parallel_iterations=1)[1]
    loss = tf.reduce_mean(cross_entropy(dense(tf.reshape(done.concat(), [-1, 4]), 3, "output"), wanted))
    return loss, tf.train.AdagradOptimizer(0.3).minimize(loss), {
        left: [-1, -1, 0, -1, 2], right: [-1, -1, 1, -1, 3], words: [1, 4, -1, 7, -1],
        leaf: np.array([True, True, False, True, False]), wanted: [0, 1, 2, 1, 0]}


def written(value):
    """As `tower run --feed` takes it, without spaces."""
    return json.dumps(value if isinstance(value, list) else value.tolist(), separators=(",", ":"))


def make(name, build, resources):
    """Writes the graph, packed; returns its row of the table in programs.h."""
    with tf.Graph().as_default():
        (tf.enable_resource_variables if resources else tf.disable_resource_variables)()
        tf.set_random_seed(11)
        loss, train, feeds = build(np.random.RandomState(7))
        scaffold = tf.train.Scaffold()  # what a MonitoredSession begins with
        scaffold.finalize()
        start = [scaffold.init_op, scaffold.local_init_op]
        meta = tf.train.export_meta_graph()
        needed = [op.name for op in [loss.op, train] + start]
        meta.graph_def.CopyFrom(tf.graph_util.extract_sub_graph(meta.graph_def, needed))
        meta.meta_info_def.ClearField("stripped_op_list")  # more bytes than the graph
        meta.ClearField("collection_def")
        with tf.Session() as session:
            for op in start:
                session.run(op)
            losses = [session.run([loss, train], feeds)[0] for _ in range(STEPS)]
    os.makedirs(os.path.join(HERE, "programs"), exist_ok=True)
    with open(os.path.join(HERE, "programs", name + ".meta.gz"), "wb") as file:
        file.write(gzip.compress(meta.SerializeToString(deterministic=True), 9, mtime=0))
    arguments = ["--init %s,%s --fetch %s --target %s" % (start[0].name, start[1].name, loss.name, train.name)]
    arguments += ["--feed '%s=%s'" % (x.op.name, written(value)) for x, value in feeds.items()]
    lines = ['    {"%s", "%s",' % (name, loss.name)]
    for i, argument in enumerate(arguments):
        lines.append("     %s%s" % (json.dumps(("" if i == 0 else " ") + argument), "" if i + 1 < len(arguments) else ","))
    numbers = ["%.9g" % x for x in losses]
    for i in range(0, STEPS, 8):
        part = ", ".join(numbers[i:i + 8])
        lines.append("     %s%s%s" % ("{" if i == 0 else " ", part, "," if i + 8 < STEPS else "},"))
    return lines + ["     %gf}," % SPREAD.get(name, 1e-5)]


# Of TensorFlow's own losses between two processors, where they differ more than that: 0.427058 and 0.427049 in step 11.
SPREAD = {"wide_and_deep": 2.5e-5}


def main():
    rows = [line for name, build, resources in PROGRAMS for line in make(name, build, resources)]
    with open(os.path.join(HERE, "programs.h"), "w") as file:
        file.write(
            "/* programs.h - written by make_programs.py with TensorFlow %s: how each of programs/ is run, and its losses. */\n"
            "static const struct {\n    const char *name, *fetched, *arguments;\n    float losses[%d], spread; /* of what a processor gives, to the loss */\n} golden_programs[] = {\n"
            "%s\n};\n" % (tf.__version__, STEPS, "\n".join(rows)))


main()
