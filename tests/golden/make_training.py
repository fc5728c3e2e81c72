#!/usr/bin/env python3
"""Writes training.h: the CIFAR-10 tutorial trained for 20 steps by TensorFlow, for tests/test_training.c.

The network, its losses, the averaging of towers, gradient descent with a staircase and the moving averages are written
down once more, in TensorFlow's own words. Images, labels and first weights come from a formula that the test has too
(`noise`), so that the golden file holds results alone.

The same is then run in float64: how far TensorFlow itself strays from it in float32 is the measure for everyone else.
"""
import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
STEPS, BATCH, SAMPLES = 20, 4, 8
RATE, DECAY_STEPS, DECAY = 0.03, 8, 0.5
SEED = 0  # among the best of thirty: the decisions of ReLUs and pools stay far from ties
# name, shape, spread of the first values
VARIABLES = [
    ("conv1/weights", (5, 5, 3, 64), 0.08), ("conv1/biases", (64,), 0.05),
    ("conv2/weights", (5, 5, 64, 64), 0.08), ("conv2/biases", (64,), 0.05),
    ("local3/weights", (2304, 384), 0.06), ("local3/biases", (384,), 0.05),
    ("local4/weights", (384, 192), 0.08), ("local4/biases", (192,), 0.05),
    ("softmax_linear/weights", (192, 10), 0.08), ("softmax_linear/biases", (10,), 0.05),
]


def noise(stream, count):
    """Multiples of 2^-15 in [-1, 1), the same on every machine."""
    x = np.arange(count, dtype=np.uint32) + np.uint32((stream + 10000 * SEED) * 0x9E3779B9 % 2**32)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    x ^= x >> np.uint32(16)
    return (x >> np.uint32(16)).astype(np.float32) / np.float32(32768) - np.float32(1)


def first_value(i):
    name, shape, spread = VARIABLES[i]
    return (noise(100 + i, int(np.prod(shape))) * np.float32(spread)).reshape(shape)


def batch(step):
    """Two channels of noise and a bright stripe that tells the class, so that there is something to learn."""
    images = noise(1000 + step, BATCH * 24 * 24 * 3).reshape(BATCH, 24, 24, 3) * np.float32(0.5)
    labels = np.array([(step * BATCH + k) * 7 % 10 for k in range(BATCH)], np.int32)
    for k in range(BATCH):
        images[k, 2 * labels[k] + 2, :, :] += np.float32(1)
    return images, labels


def lrn(x):
    if x.dtype == tf.float32:
        return tf.nn.lrn(x, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75)
    c = x.shape[-1]
    band = np.abs(np.arange(c)[:, None] - np.arange(c)[None, :]) <= 4
    sums = tf.tensordot(x * x, tf.constant(band.astype(np.float64)), 1)
    return x * (1 + 0.001 / 9.0 * sums)**-0.75


def note_margin(distances, x):
    """How far the closest decision of a ReLU or pool is from its tie, as a part of the usual size of x."""
    tf.add_to_collection("margins", tf.reduce_min(distances) / tf.sqrt(tf.reduce_mean(x * x)))


def relu(x):
    note_margin(tf.abs(x), x)
    return tf.nn.relu(x)


def pool(x):
    window, stride = [1, 3, 3, 1], [1, 2, 2, 1]
    cells = tf.image.extract_patches(x, window, stride, [1, 1, 1, 1], "SAME")
    cells = tf.transpose(tf.reshape(cells, [-1, 9, x.shape[-1]]), [0, 2, 1])
    best = tf.math.top_k(cells, 2).values
    note_margin(tf.where(best[..., 0] > 0, best[..., 0] - best[..., 1], tf.ones_like(best[..., 0])), x)
    return tf.nn.max_pool(x, window, stride, "SAME")


def loss_of(images, labels, dtype):
    def variable(i, decay=0.0):
        scope, name = VARIABLES[i][0].split("/")
        with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
            v = tf.get_variable(name, dtype=dtype, initializer=first_value(i).astype(dtype), use_resource=True)
        if decay:
            tf.add_to_collection("losses", tf.multiply(tf.nn.l2_loss(v), decay))
        return v

    x = tf.nn.conv2d(images, variable(0), [1, 1, 1, 1], "SAME")
    x = relu(tf.nn.bias_add(x, variable(1)))
    x = lrn(pool(x))
    x = tf.nn.conv2d(x, variable(2), [1, 1, 1, 1], "SAME")
    x = lrn(relu(tf.nn.bias_add(x, variable(3))))
    x = tf.reshape(pool(x), [x.shape[0], -1])
    x = relu(tf.matmul(x, variable(4, 0.004)) + variable(5))
    x = relu(tf.matmul(x, variable(6, 0.004)) + variable(7))
    x = tf.matmul(x, variable(8)) + variable(9)
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)
    tf.add_to_collection("losses", tf.reduce_mean(entropy))


def average(towers):
    means = []
    for pairs in zip(*towers):
        grads = [tf.expand_dims(g, 0) for g, _ in pairs]
        means.append((tf.reduce_mean(tf.concat(grads, 0), 0), pairs[0][1]))
    return means


def train(num_towers, dtype):
    """Losses [STEPS, towers], gradients of the first step, variables and averages after the last."""
    share = BATCH // num_towers
    with tf.Graph().as_default(), tf.Session() as session:
        images = tf.placeholder(dtype, [BATCH, 24, 24, 3])
        labels = tf.placeholder(tf.int32, [BATCH])
        step = tf.train.get_or_create_global_step()
        rate = tf.cast(tf.train.exponential_decay(RATE, step, DECAY_STEPS, DECAY, staircase=True), dtype)
        sgd = tf.train.GradientDescentOptimizer(rate)
        losses, grads = [], []
        for t in range(num_towers):
            with tf.name_scope("tower_%d" % t) as scope:
                mine = slice(t * share, (t + 1) * share)
                loss_of(images[mine], labels[mine], dtype)
                losses.append(tf.add_n(tf.get_collection("losses", scope)))
                grads.append(sgd.compute_gradients(losses[-1]))
        mean = average(grads)
        apply = sgd.apply_gradients(mean, global_step=step)
        averages = tf.train.ExponentialMovingAverage(0.9999, step)
        with tf.control_dependencies([apply]):
            train_op = averages.apply(tf.trainable_variables())
        names = [v.op.name for v in tf.trainable_variables()]
        assert names == [v[0] for v in VARIABLES], names
        session.run(tf.global_variables_initializer())
        trace, first, margin = [], None, tf.reduce_min(tf.get_collection("margins"))
        closest = np.inf
        for i in range(STEPS):
            x, y = batch(i)
            fetches = [losses, [g for g, _ in mean], margin, train_op]
            values, gradients, close, _ = session.run(fetches, {images: x, labels: y})
            trace.append(values)
            closest = min(closest, close)
            first = first or gradients
        return (np.array(trace), first, session.run(tf.trainable_variables()),
                session.run([averages.average(v) for v in tf.trainable_variables()]), closest)


def places(count):
    return [k * (count - 1) // (SAMPLES - 1) for k in range(SAMPLES)]


def digest(values):
    """Euclidean norm, then values from all over."""
    flat = np.asarray(values, np.float64).ravel()
    return [np.sqrt(np.sum(flat * flat))] + [flat[p] for p in places(flat.size)]


def numbers(values):
    return "{" + ", ".join("%.9g" % v for v in np.ravel(values)) + "}"


def error(values, truth):
    """The greatest error, as a part of the root mean square of what is right."""
    pairs = [(np.asarray(a, np.float64), np.asarray(b)) for a, b in zip(values, truth)]
    return max(np.max(np.abs(a - b)) / np.sqrt(np.mean(b * b)) for a, b in pairs)


out = ["/* training.h - made by make_training.py with TensorFlow %s; do not edit. */" % tf.__version__, "",
       "enum { STEPS = %d, BATCH = %d, SAMPLES = %d, VARIABLES = %d };" % (STEPS, BATCH, SAMPLES, len(VARIABLES)),
       "#define NOISE_SEED %du" % (10000 * SEED % 2**32),
       "static const float first_rate = %gf, rate_decay = %gf;" % (RATE, DECAY),
       "static const double decay_steps = %d;" % DECAY_STEPS, "",
       "static const struct {", "    const char *name;", "    float spread; /* of the first values */",
       "} golden_variables[VARIABLES] = {"]
out += ['    {"%s", %gf},' % (name, spread) for name, _, spread in VARIABLES]
out += ["};", "", "/* A Euclidean norm, and values at the places k * (elements - 1) / (SAMPLES - 1). */",
        "typedef struct digest {", "    double norm, samples[SAMPLES];", "} digest;", "",
        "static const struct golden {", "    int towers;", "    double losses[STEPS][2]; /* of each tower */",
        "    digest gradients[VARIABLES]; /* averaged over towers, of the first step */",
        "    digest variables[VARIABLES], averages[VARIABLES]; /* after the last */", "} golden_training[] = {"]
for towers in (1, 2):
    results, exact = train(towers, np.float32), train(towers, np.float64)
    strayed = ", ".join("%s %.1e" % (what, error([a] if what == "losses" else a, [b] if what == "losses" else b))
                        for what, a, b in zip(("losses", "gradients", "variables", "averages"), results, exact))
    print("%d towers: TensorFlow's float32 strays from its float64 by: %s; closest decision %.1e"
          % (towers, strayed, exact[4]))
    out += ["    {", "        %d, /* TensorFlow's float32 strays from its float64 by: %s */"
            % (towers, strayed),
            "        {" + ",\n         ".join(numbers(row) for row in results[0]) + "},"]
    for group in results[1:4]:
        digests = [digest(v) for v in group]
        out.append("        {" + ",\n         ".join("{%.9g, %s}" % (d[0], numbers(d[1:])) for d in digests) + "},")
    out.append("    },")
out += ["};", ""]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "training.h"), "w") as file:
    file.write("\n".join(out))
