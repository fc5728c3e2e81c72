"""Training programs of TensorFlow 1's kinds, as large as they were used, and frozen networks: what compare.py times.

A program is a function that builds its graph and gives (what is fetched, the step or None, what is fed, images or words a
step). tests/golden/make_programs.py has the same kinds small, for their losses.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf
import tf_keras

tf.disable_v2_behavior()
PROGRAMS = {}


def program(build):
    PROGRAMS[build.__name__] = build
    return build


def dense(x, units, name, activation=None):
    return tf.layers.dense(x, units, activation, name=name)


def entropy(logits, labels):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=labels)


@program
def tutorial(draw):
    """The CIFAR-10 tutorial's network and trainer, on a batch of 128 that is fed."""
    images, labels = tf.placeholder(tf.float32, [128, 24, 24, 3]), tf.placeholder(tf.int32, [128])

    def layer(x, name, shape, deviation, bias, decay):
        weights = tf.get_variable(name + "/weights", shape, initializer=tf.truncated_normal_initializer(stddev=deviation))
        tf.add_to_collection("losses", decay * tf.nn.l2_loss(weights))
        biases = tf.get_variable(name + "/biases", shape[-1:], initializer=tf.constant_initializer(bias))
        y = tf.nn.conv2d(x, weights, [1, 1, 1, 1], "SAME") if len(shape) == 4 else tf.matmul(x, weights)
        return tf.nn.bias_add(y, biases)

    x = tf.nn.relu(layer(images, "conv1", [5, 5, 3, 64], 5e-2, 0.0, 0.0))
    x = tf.nn.lrn(tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME"), 4, 1.0, 0.001 / 9, 0.75)
    x = tf.nn.lrn(tf.nn.relu(layer(x, "conv2", [5, 5, 64, 64], 5e-2, 0.1, 0.0)), 4, 1.0, 0.001 / 9, 0.75)
    x = tf.reshape(tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME"), [128, -1])
    x = tf.nn.relu(layer(x, "local3", [2304, 384], 0.04, 0.1, 0.004))
    x = tf.nn.relu(layer(x, "local4", [384, 192], 0.04, 0.1, 0.004))
    logits = layer(x, "softmax", [192, 10], 1 / 192, 0.0, 0.0)
    loss = tf.add_n(tf.get_collection("losses") + [tf.reduce_mean(entropy(logits, labels))])
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, step)
    averages = tf.train.ExponentialMovingAverage(0.9999, step)
    with tf.control_dependencies([train]):
        train = averages.apply(tf.trainable_variables())
    return loss, train, {images: draw.randn(128, 24, 24, 3), labels: draw.randint(0, 10, 128)}, 128


@program
def language_model(draw):
    """The PTB tutorial's small model: two layers of LSTM, unrolled, 20 words of 20 sentences, 10,000 words."""
    words, following = tf.placeholder(tf.int32, [20, 20]), tf.placeholder(tf.int32, [20, 20])
    inputs = tf.nn.embedding_lookup(tf.get_variable("embedding", [10000, 200]), words)
    cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(200, forget_bias=0.0) for _ in range(2)])
    outputs, _ = tf.nn.static_rnn(cell, tf.unstack(inputs, axis=1), initial_state=cell.zero_state(20, tf.float32))
    logits = dense(tf.reshape(tf.concat(outputs, 1), [-1, 200]), 10000, "softmax")
    loss = tf.reduce_sum(entropy(logits, tf.reshape(following, [-1]))) / 20
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5)
    train = tf.train.GradientDescentOptimizer(0.1).apply_gradients(zip(gradients, variables))
    return loss, train, {words: draw.randint(0, 10000, (20, 20)), following: draw.randint(0, 10000, (20, 20))}, 400


@program
def dynamic_language_model(draw):
    """LSTM in a loop over 32 sequences of up to 35 words, of which there are 5,000, with Adam."""
    words, following = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None, None])
    lengths = tf.placeholder(tf.int32, [None])
    inputs = tf.nn.embedding_lookup(tf.get_variable("embedding", [5000, 128]), words)
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(128), inputs, lengths, dtype=tf.float32)
    losses = entropy(dense(tf.reshape(outputs, [-1, 128]), 5000, "softmax"), tf.reshape(following, [-1]))
    mask = tf.reshape(tf.sequence_mask(lengths, tf.shape(words)[1], dtype=tf.float32), [-1])
    loss = tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)
    many = draw.randint(20, 36, 32)
    many[0] = 35
    return loss, tf.train.AdamOptimizer(1e-3).minimize(loss), {
        words: draw.randint(0, 5000, (32, 35)), following: draw.randint(0, 5000, (32, 35)), lengths: many}, int(many.sum())


@program
def word2vec(draw):
    """The tutorial's: 128 pairs a step, 50,000 words, 128 wide, noise-contrastive estimation with 64 samples."""
    center, beside = tf.placeholder(tf.int32, [128]), tf.placeholder(tf.int32, [128, 1])
    table = tf.Variable(tf.random_uniform([50000, 128], -1.0, 1.0))
    weights = tf.Variable(tf.truncated_normal([50000, 128], stddev=128 ** -0.5))
    biases = tf.Variable(tf.zeros([50000]))
    inputs = tf.nn.embedding_lookup(table, center)
    loss = tf.reduce_mean(tf.nn.nce_loss(weights, biases, beside, inputs, 64, 50000))
    return loss, tf.train.GradientDescentOptimizer(1.0).minimize(loss), {
        center: draw.randint(0, 50000, 128), beside: draw.randint(0, 50000, (128, 1))}, 128


@program
def sequence_to_sequence(draw):
    """32 pairs of sentences of 20 words, of which there are 5,000; a decoder that attends, in a loop with TensorArrays."""
    size, vocabulary = 128, 5000
    source, target = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None, None])
    lengths = tf.placeholder(tf.int32, [None])
    table = tf.get_variable("embedding", [vocabulary, size])
    inputs = tf.nn.embedding_lookup(table, source)
    encoded, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(size, name="encoder"), inputs, lengths, dtype=tf.float32)
    mask = tf.sequence_mask(lengths, tf.shape(source)[1])
    cell = tf.nn.rnn_cell.LSTMCell(size, name="decoder")
    weights = tf.get_variable("attention", [2 * size, size])
    projection = tf.get_variable("projection", [size, vocabulary])
    steps = tf.shape(target)[1]
    given = tf.TensorArray(tf.float32, steps).unstack(tf.transpose(tf.nn.embedding_lookup(table, target), [1, 0, 2]))

    def body(i, c, h, attended, written):
        x = tf.concat([given.read(i), attended], 1)
        x.set_shape([None, 2 * size])
        y, new = cell(x, tf.nn.rnn_cell.LSTMStateTuple(c, h))
        scores = tf.reduce_sum(encoded * tf.expand_dims(y, 1), 2)
        shares = tf.nn.softmax(tf.where(mask, scores, tf.fill(tf.shape(scores), -1e9)))
        context = tf.reduce_sum(tf.expand_dims(shares, 2) * encoded, 1)
        attended = tf.tanh(tf.matmul(tf.concat([y, context], 1), weights))
        return i + 1, new.c, new.h, attended, written.write(i, attended)

    first = [0, state.c, state.h, tf.zeros_like(state.h), tf.TensorArray(tf.float32, steps)]
    seen = tf.while_loop(lambda i, *_: i < steps, body, first)[4].stack()
    seen = tf.reshape(tf.transpose(seen, [1, 0, 2]), [-1, size])
    loss = tf.reduce_mean(entropy(tf.matmul(seen, projection), tf.reshape(target, [-1])))
    optimizer = tf.train.AdamOptimizer(1e-3)
    clipped = [(tf.clip_by_norm(g, 1.0), v) for g, v in optimizer.compute_gradients(loss)]
    return loss, optimizer.apply_gradients(clipped), {
        source: draw.randint(0, vocabulary, (32, 20)), target: draw.randint(0, vocabulary, (32, 20)),
        lengths: draw.randint(10, 21, 32)}, 640


@program
def dcgan(draw):
    """28x28 images, 64 a step; both networks take a step of Adam."""
    images = tf.placeholder(tf.float32, [64, 28, 28, 1])
    normalize = lambda x: tf.layers.batch_normalization(x, training=True)

    def generator(noise):
        with tf.variable_scope("generator"):
            x = tf.nn.relu(normalize(tf.reshape(tf.layers.dense(noise, 7 * 7 * 128), [-1, 7, 7, 128])))
            x = tf.nn.relu(normalize(tf.layers.conv2d_transpose(x, 64, 5, 2, "same")))
            return tf.tanh(tf.layers.conv2d_transpose(x, 1, 5, 2, "same"))

    def discriminator(x, reuse):
        with tf.variable_scope("discriminator", reuse=reuse):
            x = tf.nn.leaky_relu(tf.layers.conv2d(x, 64, 5, 2, "same"))
            x = tf.nn.leaky_relu(normalize(tf.layers.conv2d(x, 128, 5, 2, "same")))
            return tf.layers.dense(tf.layers.dropout(tf.layers.flatten(x), 0.3, training=True), 1)

    def judged(logits, label):
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=label * tf.ones_like(logits)))

    made = generator(tf.random_uniform([64, 100], -1, 1))
    real, fake = discriminator(images, None), discriminator(made, True)
    wrong, fooled = judged(real, 0.9) + judged(fake, 0.0), judged(fake, 1.0)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        judge = tf.train.AdamOptimizer(2e-4, 0.5).minimize(wrong, var_list=tf.trainable_variables("discriminator"))
        train = tf.train.AdamOptimizer(2e-4, 0.5).minimize(fooled, var_list=tf.trainable_variables("generator"))
    return wrong + fooled, tf.group(judge, train), {images: draw.rand(64, 28, 28, 1) * 2 - 1}, 64


@program
def wide_and_deep(draw):
    """Feature columns over texts, 256 examples a step; FTRL beside Adagrad."""
    columns = tf2.feature_column
    age, label = tf.placeholder(tf.float32, [256]), tf.placeholder(tf.float32, [256, 1])
    work, school = tf.placeholder(tf.string, [256]), tf.placeholder(tf.string, [256])
    features = {"age": age, "work": work, "school": school}
    years = columns.numeric_column("age")
    jobs = columns.categorical_column_with_hash_bucket("work", 1000)
    schools = columns.categorical_column_with_vocabulary_list("school", ["school%d" % i for i in range(16)])
    buckets = columns.bucketized_column(years, [18, 25, 30, 35, 40, 45, 50, 55, 60, 65])
    crossed = columns.crossed_column([buckets, "work", "school"], 10000)
    with tf.variable_scope("wide"):
        wide = tf.feature_column.linear_model(features, [jobs, schools, buckets, crossed])
    with tf.variable_scope("deep"):
        chosen = [years, columns.embedding_column(jobs, 8), columns.indicator_column(schools)]
        x = tf.feature_column.input_layer(features, chosen)
        deep = dense(dense(dense(x, 100, "first", tf.nn.relu), 50, "second", tf.nn.relu), 1, "output")
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=wide + deep))
    train = tf.group(
        tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01).minimize(loss, var_list=tf.trainable_variables("wide")),
        tf.train.AdagradOptimizer(0.1).minimize(loss, var_list=tf.trainable_variables("deep")))
    return loss, train, {
        age: draw.randint(17, 80, 256), label: draw.randint(0, 2, (256, 1)),
        work: ["work%d" % i for i in draw.randint(0, 2000, 256)],
        school: ["school%d" % i for i in draw.randint(0, 20, 256)]}, 256


@program
def autoencoder(draw):
    """Eight layers of 256 in two loops, a slice of one variable in each round; 128 examples a step."""
    x = tf.placeholder(tf.float32, [None, 256])
    weights = tf.get_variable("weights", [8, 256, 256], initializer=tf.glorot_uniform_initializer())
    biases = tf.get_variable("biases", [8, 256], initializer=tf.zeros_initializer())
    encode = lambda i, h: (i + 1, tf.tanh(tf.matmul(h, weights[i]) + tf.gather(biases, i)))
    decode = lambda i, h: (i - 1, tf.tanh(tf.matmul(h, weights[i], transpose_b=True)))
    code = tf.while_loop(lambda i, h: i < 8, encode, [0, x])[1]
    loss = tf.reduce_mean(tf.square(tf.while_loop(lambda i, h: i >= 0, decode, [7, code])[1] - x))
    return loss, tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss), {x: draw.rand(128, 256)}, 128


@program
def transformer(draw):
    """Two layers of an encoder, 4 heads of 32, over 32 sentences of 64 words, of which there are 5,000; with Adam."""
    size, heads, length = 128, 4, 64
    words, following = tf.placeholder(tf.int32, [32, length]), tf.placeholder(tf.int32, [32, length])

    def normalize(x, name):
        with tf.variable_scope(name):
            scale = tf.get_variable("scale", [size], initializer=tf.ones_initializer())
            offset = tf.get_variable("offset", [size], initializer=tf.zeros_initializer())
        mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
        return (x - mean) * tf.rsqrt(variance + 1e-6) * scale + offset

    def split(x):
        return tf.transpose(tf.reshape(x, [32, length, heads, size // heads]), [0, 2, 1, 3])

    def attend(x, name):
        q, k, v = [split(dense(x, size, name + n)) for n in "qkv"]
        shares = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * (size // heads) ** -0.5)
        context = tf.matmul(tf.nn.dropout(shares, keep_prob=0.9), v)
        return dense(tf.reshape(tf.transpose(context, [0, 2, 1, 3]), [32, length, size]), size, name + "o")

    positions = tf.get_variable("positions", [length, size])
    x = tf.nn.embedding_lookup(tf.get_variable("embedding", [5000, size]), words) * size ** 0.5 + positions
    for i in range(2):
        x = normalize(x + attend(x, "attention%d" % i), "first%d" % i)
        inner = dense(dense(x, 4 * size, "wide%d" % i, tf.nn.relu), size, "narrow%d" % i)
        x = normalize(x + inner, "second%d" % i)
    loss = tf.reduce_mean(entropy(dense(tf.reshape(x, [-1, size]), 5000, "softmax"), tf.reshape(following, [-1])))
    return loss, tf.train.AdamOptimizer(1e-3).minimize(loss), {
        words: draw.randint(0, 5000, (32, length)), following: draw.randint(0, 5000, (32, length))}, 32 * length


@program
def bidirectional_gru(draw):
    """64 sentences of up to 40 words are put into one of 5 classes by loops in both directions; with clipped Adam."""
    words, lengths, labels = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])
    inputs = tf.nn.embedding_lookup(tf.get_variable("embedding", [10000, 64]), words)
    cells = [tf.nn.rnn_cell.GRUCell(64, name=name) for name in ("there", "back")]
    _, states = tf.nn.bidirectional_dynamic_rnn(cells[0], cells[1], inputs, lengths, dtype=tf.float32)
    loss = tf.reduce_mean(entropy(dense(tf.concat(states, 1), 5, "classes"), labels))
    optimizer = tf.train.AdamOptimizer(1e-3)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    train = optimizer.apply_gradients(zip(tf.clip_by_global_norm(gradients, 5)[0], variables))
    many = draw.randint(10, 41, 64)
    many[0] = 40
    return loss, train, {words: draw.randint(0, 10000, (64, 40)), lengths: many, labels: draw.randint(0, 5, 64)}, int(many.sum())


@program
def text_cnn(draw):
    """Kim's network for sentences: 64 of 56 words, windows of 3, 4 and 5 words, 100 filters each."""
    words, labels = tf.placeholder(tf.int32, [64, 56]), tf.placeholder(tf.int32, [64])
    x = tf.expand_dims(tf.nn.embedding_lookup(tf.get_variable("embedding", [18000, 128]), words), -1)
    pooled = []
    for window in (3, 4, 5):
        h = tf.layers.conv2d(x, 100, [window, 128], activation=tf.nn.relu, name="window%d" % window)
        pooled.append(tf.nn.max_pool(h, [1, 57 - window, 1, 1], [1, 1, 1, 1], "VALID"))
    h = tf.nn.dropout(tf.reshape(tf.concat(pooled, 3), [64, 300]), keep_prob=0.5)
    loss = tf.reduce_mean(entropy(dense(h, 2, "classes"), labels))
    return loss, tf.train.AdamOptimizer(1e-3).minimize(loss), {
        words: draw.randint(0, 18000, (64, 56)), labels: draw.randint(0, 2, 64)}, 64


@program
def deep_q(draw):
    """A step of learning by reward: 32 moves of a pole on a cart, two layers of 64, a network that follows."""
    state, after = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 4])
    action, reward, done = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])

    def network(x, name):
        with tf.variable_scope(name):
            return dense(dense(dense(x, 64, "first", tf.nn.relu), 64, "second", tf.nn.relu), 2, "values")

    values, later = network(state, "online"), network(after, "target")
    chosen = tf.reduce_sum(values * tf.one_hot(action, 2), 1)
    goal = reward + 0.99 * (1 - done) * tf.reduce_max(later, 1)
    loss = tf.losses.huber_loss(tf.stop_gradient(goal), chosen)
    train = tf.train.AdamOptimizer(1e-3).minimize(loss, var_list=tf.trainable_variables("online"))
    with tf.control_dependencies([train]):
        train = tf.group(*[b.assign(0.99 * b + 0.01 * a) for a, b in zip(
            tf.trainable_variables("online"), tf.trainable_variables("target"))])
    return loss, train, {state: draw.randn(32, 4), after: draw.randn(32, 4), action: draw.randint(0, 2, 32),
                         reward: draw.rand(32), done: draw.randint(0, 2, 32)}, 32


@program
def matrix_factorization(draw):
    """Stars that 6,000 people gave to 4,000 films, 256 a step: 64 numbers each, lazy Adam on the rows in question."""
    people, films, stars = tf.placeholder(tf.int32, [256]), tf.placeholder(tf.int32, [256]), tf.placeholder(tf.float32, [256])
    factors = [tf.nn.embedding_lookup(tf.get_variable(name, [many, 64]), which)
               for name, many, which in (("people", 6000, people), ("films", 4000, films))]
    biases = [tf.nn.embedding_lookup(tf.get_variable(name, [many]), which)
              for name, many, which in (("person", 6000, people), ("film", 4000, films))]
    guess = tf.reduce_sum(factors[0] * factors[1], 1) + biases[0] + biases[1] + tf.get_variable("mean", [])
    loss = tf.reduce_mean(tf.square(guess - stars)) + 0.02 * sum(tf.nn.l2_loss(x) for x in factors + biases) / 256
    return loss, tf.train.AdamOptimizer(1e-3).minimize(loss), {
        people: draw.randint(0, 6000, 256), films: draw.randint(0, 4000, 256), stars: draw.randint(1, 6, 256)}, 256


@program
def parsed_lines(draw):
    """256 lines of ten numbers and a word are taken apart; a branch of the step is taken by what they say."""
    lines = tf.placeholder(tf.string, [256])
    fields = tf.decode_csv(lines, [[0.0]] * 10 + [[""]])
    words = tf.string_to_hash_bucket_fast(fields[10], 1000)
    x = tf.concat([tf.stack(fields[:10], 1), tf.nn.embedding_lookup(tf.get_variable("words", [1000, 16]), words)], 1)
    x = tf.cond(tf.reduce_mean(x) > 0, lambda: tf.nn.dropout(x, keep_prob=0.9), lambda: x)
    x = tf.layers.batch_normalization(dense(x, 64, "first", tf.nn.relu), training=True)
    logits = dense(dense(x, 32, "second", tf.nn.relu), 1, "output")
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.expand_dims(fields[0], 1), logits=logits))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    return loss, train, {lines: [",".join(["%.3f" % v for v in draw.rand(10)] + ["word%d" % draw.randint(0, 3000)])
                                 for _ in range(256)]}, 256


@program
def tiny_rounds(draw):
    """A loop of 10^5 rounds, of an addition and a comparison."""
    most = tf.placeholder(tf.int32, [])
    return tf.while_loop(lambda i: i < most, lambda i: i + 1, [0]), None, {most: np.int32(100000)}, 100000


def network(name, model, batch, side=224):
    def build(draw):
        tf_keras.backend.set_learning_phase(0)
        made = getattr(tf_keras.applications, model)(weights=None, input_shape=(side, side, 3))
        return made.output, None, {made.input: draw.rand(batch, side, side, 3)}, batch

    PROGRAMS["%s_%d" % (name, batch)] = build


def detector(batch):
    """As SSD has it: MobileNet's maps, boxes and scores for anchors of two of them, and the best boxes of each class."""

    def build(draw):
        tf_keras.backend.set_learning_phase(0)
        body = tf_keras.applications.MobileNet(weights=None, include_top=False, input_shape=(224, 224, 3))
        maps = [body.get_layer("conv_pw_11_relu").output, body.output]
        boxes = tf.concat([tf.reshape(tf.layers.conv2d(m, 6 * 4, 3, padding="same"), [-1, int(m.shape[1]) ** 2 * 6, 4])
                           for m in maps], 1)
        scores = tf.nn.sigmoid(tf.concat([tf.reshape(tf.layers.conv2d(m, 6 * 20, 3, padding="same"),
                                                     [-1, int(m.shape[1]) ** 2 * 6, 20]) for m in maps], 1))
        corner = tf.constant(draw.rand(int(boxes.shape[1]), 2).astype(np.float32) * 0.8)
        found = tf.concat([corner + boxes[0, :, :2] * 0.1, corner + 0.2 + boxes[0, :, 2:] * 0.1], 1)
        chosen = [tf.image.non_max_suppression(found, scores[0, :, c], 10, 0.5, 0.4) for c in range(20)]
        return tf.concat([tf.gather(found, c) for c in chosen], 0), None, {body.input: draw.rand(batch, 224, 224, 3)}, batch

    PROGRAMS["detector_%d" % batch] = build


for count in (1, 16):
    network("mobilenet_v1", "MobileNet", count)
    network("mobilenet_v2", "MobileNetV2", count)
    network("mobilenet_v3", "MobileNetV3Large", count)
    network("inception_v3", "InceptionV3", count, 299)
    network("inception_resnet_v2", "InceptionResNetV2", count, 299)
    network("resnet50_v1", "ResNet50", count)
    network("resnet50_v2", "ResNet50V2", count)
detector(1)
