"""The programs that Tower is modelled on, written anew for TensorFlow: the graphs they build, in small batches.

Each function builds into the default graph what the program of that name built: its names, scopes, devices and order. What
was in contrib (slim's prefetch_queue, the layers' batch norm) is written out, and named as it was there.
"""
import os
import re

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.disable_resource_variables()  # as until TensorFlow 1.15
tf.logging.set_verbosity(tf.logging.ERROR)


# ---- the CIFAR-10 tutorial -------------------------------------------------------------------------------------------


def tutorial_input(batch):
    files = tf.train.string_input_producer(["data_batch_%d.bin" % i for i in range(1, 6)])
    with tf.name_scope("data_augmentation"):
        _, record = tf.FixedLengthRecordReader(record_bytes=3073).read(files)
        record = tf.decode_raw(record, tf.uint8)
        label = tf.cast(tf.strided_slice(record, [0], [1]), tf.int32)
        planes = tf.reshape(tf.strided_slice(record, [1], [3073]), [3, 32, 32])
        image = tf.cast(tf.transpose(planes, [1, 2, 0]), tf.float32)
        image = tf.image.random_flip_left_right(tf.random_crop(image, [24, 24, 3]))
        image = tf.image.random_brightness(image, max_delta=63)
        image = tf.image.random_contrast(image, lower=0.2, upper=1.8)
        image = tf.image.per_image_standardization(image)
        image.set_shape([24, 24, 3])
        label.set_shape([1])
    images, labels = tf.train.shuffle_batch(
        [image, label], batch_size=batch, num_threads=16, capacity=20000 + 3 * batch, min_after_dequeue=20000)
    tf.summary.image("images", images)
    return images, tf.reshape(labels, [batch])


def on_cpu(name, shape, initializer):
    with tf.device("/cpu:0"):
        return tf.get_variable(name, shape, initializer=initializer, dtype=tf.float32)


def decayed(name, shape, stddev, decay):
    variable = on_cpu(name, shape, tf.truncated_normal_initializer(stddev=stddev))
    if decay is not None:
        tf.add_to_collection("losses", tf.multiply(tf.nn.l2_loss(variable), decay, name="weight_loss"))
    return variable


def without_tower(name):
    return re.sub("tower_[0-9]*/", "", name)


def summarize(x):
    tf.summary.histogram(without_tower(x.op.name) + "/activations", x)
    tf.summary.scalar(without_tower(x.op.name) + "/sparsity", tf.nn.zero_fraction(x))


def tutorial_network(images):
    def convolution(x, name, channels, bias):
        with tf.variable_scope(name) as scope:
            kernel = decayed("weights", [5, 5, channels, 64], 5e-2, None)
            x = tf.nn.conv2d(x, kernel, [1, 1, 1, 1], padding="SAME")
            x = tf.nn.bias_add(x, on_cpu("biases", [64], tf.constant_initializer(bias)))
            x = tf.nn.relu(x, name=scope.name)
            summarize(x)
        return x

    def dense(x, name, units):
        with tf.variable_scope(name) as scope:
            if name == "local3":
                x = tf.reshape(x, [int(images.shape[0]), -1])
            weights = decayed("weights", [int(x.shape[1]), units], 0.04, 0.004)
            biases = on_cpu("biases", [units], tf.constant_initializer(0.1))
            x = tf.nn.relu(tf.matmul(x, weights) + biases, name=scope.name)
            summarize(x)
        return x

    x = convolution(images, "conv1", 3, 0.0)
    x = tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], padding="SAME", name="pool1")
    x = tf.nn.lrn(x, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75, name="norm1")
    x = convolution(x, "conv2", 64, 0.1)
    x = tf.nn.lrn(x, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75, name="norm2")
    x = tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], padding="SAME", name="pool2")
    x = dense(dense(x, "local3", 384), "local4", 192)
    with tf.variable_scope("softmax_linear") as scope:
        weights = decayed("weights", [192, 10], 1 / 192.0, None)
        biases = on_cpu("biases", [10], tf.constant_initializer(0.0))
        x = tf.add(tf.matmul(x, weights), biases, name=scope.name)
        summarize(x)
    return x


def tutorial_loss(logits, labels):
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.cast(labels, tf.int64), logits=logits, name="cross_entropy_per_example")
    tf.add_to_collection("losses", tf.reduce_mean(each, name="cross_entropy"))
    return tf.add_n(tf.get_collection("losses"), name="total_loss")


def tutorial_optimizer(step, decay_steps):
    rate = tf.train.exponential_decay(0.1, step, decay_steps, 0.1, staircase=True)
    return tf.train.GradientDescentOptimizer(rate), rate


def cifar10_train():
    """The tutorial on one device; queues and preprocessing on the CPU."""
    step = tf.train.get_or_create_global_step()
    with tf.device("/cpu:0"):
        images, labels = tutorial_input(8)
    loss = tutorial_loss(tutorial_network(images), labels)
    optimizer, rate = tutorial_optimizer(step, 136718)
    tf.summary.scalar("learning_rate", rate)
    averages = tf.train.ExponentialMovingAverage(0.9, name="avg")
    losses = tf.get_collection("losses") + [loss]
    averaged = averages.apply(losses)
    for l in losses:
        tf.summary.scalar(l.op.name + " (raw)", l)
        tf.summary.scalar(l.op.name, averages.average(l))
    with tf.control_dependencies([averaged]):
        gradients = optimizer.compute_gradients(loss)
    applied = optimizer.apply_gradients(gradients, global_step=step)
    for variable in tf.trainable_variables():
        tf.summary.histogram(variable.op.name, variable)
    for gradient, variable in gradients:
        tf.summary.histogram(variable.op.name + "/gradients", gradient)
    with tf.control_dependencies([applied]):
        tf.train.ExponentialMovingAverage(0.9999, step).apply(tf.trainable_variables())
    tf.train.Scaffold().finalize()


def cifar10_multi_gpu_train():
    """The tutorial on two GPUs, its variables on the CPU, one queue of batches for both."""
    with tf.device("/cpu:0"):
        step = tf.get_variable("global_step", [], initializer=tf.constant_initializer(0), trainable=False)
        optimizer, rate = tutorial_optimizer(step, 136718 // 2)
        images, labels = tutorial_input(8)
        with tf.name_scope("prefetch_queue"):
            queue = tf.FIFOQueue(4, [tf.float32, tf.int32], [images.shape, labels.shape])
            tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue([images, labels])]))
            tf.summary.scalar("fraction_of_4_full", tf.cast(queue.size(), tf.float32) * (1.0 / 4))
        towers = []
        with tf.variable_scope(tf.get_variable_scope()):
            for i in range(2):
                with tf.device("/gpu:%d" % i), tf.name_scope("tower_%d" % i) as scope:
                    images, labels = queue.dequeue()
                    tutorial_loss(tutorial_network(images), labels)
                    losses = tf.get_collection("losses", scope)
                    loss = tf.add_n(losses, name="total_loss")
                    for l in losses + [loss]:
                        tf.summary.scalar(without_tower(l.op.name), l)
                    tf.get_variable_scope().reuse_variables()
                    summaries = tf.get_collection(tf.GraphKeys.SUMMARIES, scope)
                    towers.append(optimizer.compute_gradients(loss))
        mean = []
        for pairs in zip(*towers):
            stacked = tf.concat(axis=0, values=[tf.expand_dims(g, 0) for g, _ in pairs])
            mean.append((tf.reduce_mean(stacked, 0), pairs[0][1]))
        summaries.append(tf.summary.scalar("learning_rate", rate))
        for gradient, variable in mean:
            summaries.append(tf.summary.histogram(variable.op.name + "/gradients", gradient))
        applied = optimizer.apply_gradients(mean, global_step=step)
        for variable in tf.trainable_variables():
            summaries.append(tf.summary.histogram(variable.op.name, variable))
        averages = tf.train.ExponentialMovingAverage(0.9999, step)
        tf.group(applied, averages.apply(tf.trainable_variables()))
        tf.train.Saver(tf.global_variables())
        tf.summary.merge(summaries)
        tf.global_variables_initializer()


# ---- the MNIST sample ------------------------------------------------------------------------------------------------


def mnist_sample():
    """The sample of golbin's TensorFlow-Multi-GPUs on two GPUs."""
    x = tf.placeholder(tf.float32, [None, 28, 28, 1])
    y = tf.placeholder(tf.float32, [None, 10])

    def network(x, reuse):
        for name, filters in ("L1", 64), ("L2", 128), ("L2-1", 128):
            with tf.variable_scope(name, reuse=reuse):
                x = tf.layers.dropout(tf.layers.max_pooling2d(tf.layers.conv2d(x, filters, [3, 3]), [2, 2], [2, 2]), 0.7, True)
        with tf.variable_scope("L3", reuse=reuse):
            x = tf.layers.dropout(tf.layers.dense(tf.layers.flatten(x), 1024, activation=tf.nn.relu), 0.5, True)
        with tf.variable_scope("L4", reuse=reuse):
            x = tf.layers.dense(x, 256, activation=tf.nn.relu)
        with tf.variable_scope("LF", reuse=reuse):
            return tf.layers.dense(x, 10, activation=None)

    losses = []
    images, labels = tf.split(x, 2), tf.split(y, 2)
    for i in range(2):
        with tf.device(tf.DeviceSpec(device_type="GPU", device_index=i)):
            with tf.variable_scope(tf.get_variable_scope(), reuse=i > 0):
                logits = network(images[i], i > 0)
                losses.append(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=labels[i]))
    loss = tf.reduce_mean(tf.concat(losses, axis=0))
    tf.train.AdamOptimizer(learning_rate=0.001).minimize(loss, colocate_gradients_with_ops=True)
    tf.global_variables_initializer()


# ---- cifar10_estimator -----------------------------------------------------------------------------------------------


def cifar10_estimator():
    """The residual network of 8 layers on two GPUs, variables on the CPU."""
    step = tf.train.get_or_create_global_step()
    towers, moved = [], []

    def network(x):
        def convolution(x, filters, stride):
            if stride > 1:
                x = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])
            padding = "SAME" if stride == 1 else "VALID"
            return tf.layers.conv2d(x, filters, 3, stride, padding, use_bias=False)

        def normalize(x):
            return tf.layers.batch_normalization(x, momentum=0.997, epsilon=1e-5, training=True, name=next(names))

        def name_of_norms():
            i = 0
            while True:
                yield "BatchNorm_%d" % i if i else "BatchNorm"
                i += 1

        names = name_of_norms()
        x = tf.nn.relu(normalize(convolution(x / 128 - 1, 16, 1)))
        width = 16
        for filters, stride in (16, 1), (32, 2), (64, 2):
            with tf.name_scope("stage"), tf.name_scope("residual_v1"):
                before = x
                x = tf.nn.relu(normalize(convolution(x, filters, stride)))
                x = normalize(convolution(x, filters, 1))
                if width != filters:
                    more = (filters - width) // 2
                    before = tf.layers.average_pooling2d(before, stride, stride)
                    before = tf.pad(before, [[0, 0], [0, 0], [0, 0], [more, more]])
                x = tf.nn.relu(x + before)
                width = filters
        with tf.name_scope("global_avg_pool"):
            x = tf.reduce_mean(x, [1, 2])
        return tf.layers.dense(x, 11)

    with tf.device("/cpu:0"):
        images = [tf.placeholder(tf.float32, [8, 32, 32, 3]) for _ in range(2)]
        labels = [tf.placeholder(tf.int32, [8]) for _ in range(2)]
    for i in range(2):
        setter = lambda op: "/cpu:0" if op.type.startswith("Variable") else "/gpu:%d" % i
        with tf.variable_scope("resnet", reuse=bool(i)), tf.name_scope("tower_%d" % i) as scope, tf.device(setter):
            logits = network(images[i])
            {"classes": tf.argmax(logits, axis=1), "probabilities": tf.nn.softmax(logits)}
            loss = tf.losses.sparse_softmax_cross_entropy(logits=logits, labels=labels[i])
            variables = tf.trainable_variables()
            loss += 2e-4 * tf.add_n([tf.nn.l2_loss(v) for v in variables])
            towers.append((loss, tf.gradients(loss, variables)))
            if i == 0:
                moved = tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope)
    mean = []
    with tf.name_scope("gradient_averaging"):
        for variable, *gradients in zip(variables, *[g for _, g in towers]):
            with tf.device(variable.device):
                mean.append((tf.multiply(tf.add_n(gradients), 1.0 / 2), variable))
    with tf.device("/cpu:0"):
        rate = tf.train.piecewise_constant(step, [28782, 43173, 105300], [0.1, 0.01, 0.001, 0.0002])
        tf.reduce_mean([loss for loss, _ in towers], name="loss")
        optimizer = tf.train.MomentumOptimizer(learning_rate=rate, momentum=0.9)
        tf.group(optimizer.apply_gradients(mean, global_step=step), *moved)
    tf.train.Scaffold().finalize()
