#!/usr/bin/env python3
"""Writes functions.tar.gz and functions.h: a SavedModel as TensorFlow 2 exports it, whose signatures are training steps
made of tf.function, and what each gives in its first steps.

The values of its variables are restored by the model's own nodes. tests/test_run_command.c runs each signature by
`tower run`.
"""
import io
import os
import tarfile
import tempfile

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 5
draw = np.random.RandomState(3)
model = tf.Module()
signatures = {}


def signature(f):
    """Registers a function of one float as a signature that gives its loss."""
    def step(x):
        return {"loss": f(x)}
    signatures[f.__name__] = tf.function(step, input_signature=[tf.TensorSpec([], name="x")]).get_concrete_function()


def variable(*shape, value=None):
    """A variable that the model saves."""
    made = tf.Variable(draw.randn(*shape).astype(np.float32) if value is None else value)
    setattr(model, "variable_%d" % len(model.variables), made)
    return made


filters, scale, mean, variance = variable(2, 2, 2, 3), variable(3), variable(3), variable(value=[1.0, 2.0, 0.5])


@signature
def normalized(x):
    """Batch normalization that keeps averages of mean and variance, as Keras has it; == that may be given any shapes."""
    with tf.GradientTape() as tape:
        images = tf.reshape(tf.sin(tf.range(96.0)), [3, 4, 4, 2]) * x
        y = tf.nn.conv2d(images, filters, 1, "SAME")
        y, new_mean, new_variance, _, _, _ = tf.raw_ops.FusedBatchNormV3(
            x=y, scale=scale, offset=[0.1, 0.2, 0.3], mean=mean, variance=variance, epsilon=0.001,
            exponential_avg_factor=0.1, is_training=True)
        loss = tf.reduce_mean(tf.nn.relu(y) ** 3)
    for v, gradient in zip([filters, scale], tape.gradient(loss, [filters, scale])):
        v.assign_sub(0.1 * gradient)
    mean.assign(new_mean)
    variance.assign(new_variance)
    return loss + tf.reduce_sum(mean) + tf.reduce_sum(tf.where(variance == new_variance, variance, -1.0))


product, count = variable(value=1.0), variable(value=0)


@signature
def decided(x):
    """Two conditions that change the same variable, one after the other."""
    def kept():
        return product.read_value()

    def changed():
        now = product * x
        product.assign(now)
        return now
    first = tf.cond(count == 2, kept, changed)
    count.assign_add(1)
    return first + 10.0 * tf.cond(count == 3, kept, changed) + 100.0 * product


state = variable(value=[1.0, 2.0])


@tf.function
def twice():
    return state * 2.0


@tf.function
def added(x):
    state.assign_add(x)
    return tf.gather(state, 0)


@tf.function
def one_round(i, total):
    return i + 1, total + tf.gather(state, 1) * tf.constant(0.5) + tf.cast(i, tf.float32)


@signature
def called(x):
    """Functions that read and write a variable in the order of their calls, also in a loop."""
    before = twice()
    state.assign_add([x, x])
    after = twice()
    given = added([x, 2 * x])
    state.assign(state * 0.5)
    _, total = tf.while_loop(lambda i, total: i < 3, one_round, [0, 0.0])
    return before[0] + 10.0 * after[1] + 100.0 * given + added([1.0, x]) + total


@function.Defun(tf.float32, tf.float32)
def quotient(a, b):
    whole = tf.floor(a / b)
    return whole, a - whole * b + tf.constant(0.25)


matrix = variable(3, 3)


@signature
def named(x):
    """A function that is called by an op of its name, in a loop whose body has a constant of its own; names of more than
    512 letters."""
    def round(i, total):
        whole, rest = (tf.ensure_shape(y, []) for y in quotient(total + x, 0.75))
        with tf.name_scope("a_scope_with_a_long_name/" * 22):
            return i + 1, tf.cond(whole > 3.0, lambda: rest * total, lambda: total + rest + tf.linalg.trace(matrix))
    _, total = tf.while_loop(lambda i, total: i < 4, round, [0, x])
    matrix.assign(matrix * 0.9)
    return total


model.table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, -1.0, empty_key=-1, deleted_key=-2)


@signature
def looked_up(x):
    """A table whose handle is made of constants; its values have the shape that they have if nothing is said."""
    known = model.table.lookup([1, 2])
    model.table.insert(tf.cast(tf.where([True, x > 0.0])[:, 0] + 1, tf.int64), tf.stack([x, 2.0 * x]) + tf.reduce_sum(known))
    return known[0] + 10.0 * known[1] + tf.cast(model.table.size(), tf.float32)


@signature
def found(x):
    """A branch in a branch, whose condition is a length that is known when the values are, and what is known before."""
    wide = tf.fill([5], product * x)
    where = tf.where(tf.sin(tf.range(9.0)) * product * x > 0.1)

    def some():
        inner = tf.where(tf.reduce_sum(where, 1) > 1)
        return tf.cond(tf.shape(inner)[0] == 4, lambda: tf.raw_ops.Shape(input=wide)[0], lambda: tf.raw_ops.Size(input=wide) + 2)
    given = tf.cond(tf.shape(where)[0] > 1, some, lambda: tf.constant(-1))
    product.assign(product * 0.7)
    return tf.cast(given, tf.float32)


model.generator = tf.random.Generator.from_seed(3)


@signature
def drawn(x):
    """Numbers of a generator, whose state is a variable."""
    chosen = tf.cast(model.generator.uniform([4], maxval=10, dtype=tf.int32), tf.float32)
    return tf.reduce_sum(model.generator.normal([3]) * x) + 10.0 * tf.reduce_sum(chosen)


kernel, shift = variable(3, 3, 2, 6), variable(6)


@tf.function(jit_compile=True)
def convolved(images, filters):
    return tf.nn.conv2d(images, filters, 1, "SAME")


@signature
def grouped(x):
    """A convolution in groups, in a function for XLA as Keras has it: TensorFlow's CPU has no other gradients of it."""
    with tf.GradientTape() as tape:
        images = tf.reshape(tf.sin(tf.range(192.0)), [3, 4, 4, 4]) * x
        y = tf.nn.relu(tf.nn.bias_add(convolved(images, kernel), shift))
        loss = tf.reduce_mean(tf.square(y - 1.0))
    for v, gradient in zip([kernel, shift], tape.gradient(loss, [kernel, shift])):
        v.assign_sub(0.1 * gradient)
    return loss


slope = variable(3)
model.optimizer = tf.keras.optimizers.Nadam(0.1)
model.optimizer.build([slope])


@signature
def optimized(x):
    """By an optimizer of Keras, whose counters and rate the model's own nodes do not restore."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(slope * x - [1.0, -2.0, 0.5]))
    model.optimizer.apply([tape.gradient(loss, slope)], [slope])
    return loss


def implemented(f, **attributes):
    return tf.function(f, experimental_attributes={"api_implements": "cubes", **attributes})


cube = implemented(lambda x: x ** 3)
cube_on_cpus = implemented(lambda x: x ** 3 + 1.0, api_preferred_device="CPU")


@signature
def implemented_twice(x):
    """A function that another is there for, on CPUs: TensorFlow chooses by the device. TFP's gamma numbers are so."""
    cube_on_cpus.get_concrete_function(x).add_to_graph()
    return cube(x)


def files_in(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names
                  if name != "fingerprint.pb")


def losses_of(step):
    return [step(x=tf.constant(0.75))["loss"].numpy() for _ in range(STEPS)]


def with_a_file(folder):
    """One variable without a name beside the file of an export, whose name is a variable of the same name there."""
    with open(folder + "/number.txt", "w") as file:
        file.write("1.5")
    told = tf.Module()
    told.weights, told.file = tf.Variable([1.0, 2.0]), tf.saved_model.Asset(folder + "/number.txt")

    def step(x):
        told.weights.assign_add([x, 1.0])
        return {"loss": tf.strings.to_number(tf.io.read_file(told.file.asset_path)) * tf.reduce_sum(told.weights)}
    step = tf.function(step, input_signature=[tf.TensorSpec([], name="x")])
    tf.saved_model.save(told, folder + "/functions/told", signatures={"told": step})
    return losses_of(tf.saved_model.load(folder + "/functions/told").signatures["told"])


def with_objects(folder):
    """Keras's variables, each of which the graph has twice: of one the function knows the object's, of the other the
    value's own, which another key has, too."""
    objects = tf.Module()
    rate, weight = keras.Variable([3.0, 4.0], name="rate"), keras.Variable([1.0, 2.0], name="weight")
    objects.values, objects.objects = [weight.value], [rate, weight]

    def step(x):
        weight.assign(weight + x)
        rate.assign(rate * 2.0 + weight)
        return {"loss": tf.reduce_sum(weight * rate)}
    step = tf.function(step, input_signature=[tf.TensorSpec([], name="x")])
    tf.saved_model.save(objects, folder + "/functions/objects", signatures={"objects": step})
    return losses_of(tf.saved_model.load(folder + "/functions/objects").signatures["objects"])


def main():
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(model, folder + "/functions", signatures=signatures)
        for name in signatures:
            rows.append((name, losses_of(tf.saved_model.load(folder + "/functions").signatures[name])))
        loaded = tf.saved_model.load(folder + "/functions")
        losses_of(loaded.signatures["optimized"])
        tf.train.Checkpoint(loaded).write(folder + "/functions/later/objects")
        later = losses_of(loaded.signatures["optimized"])
        told = with_a_file(folder)
        objects = with_objects(folder)
        with tarfile.open(os.path.join(HERE, "functions.tar.gz"), "w:gz", compresslevel=9) as archive:
            for name in files_in(folder + "/functions"):
                with open(os.path.join(folder, "functions", name), "rb") as file:
                    data = file.read()
                about = tarfile.TarInfo("functions/" + name)
                about.size = len(data)
                archive.addfile(about, io.BytesIO(data))

    def row(name, losses):
        return '{"%s", {%s}}' % (name, ", ".join("%.9g" % x for x in losses))
    with open(os.path.join(HERE, "functions.h"), "w") as file:
        file.write("/* functions.h - written by make_functions.py with TensorFlow %s: what the signatures of functions.tar.gz give. */\n"
                   "typedef struct golden_function {\n    const char *name;\n    float losses[%d];\n} golden_function;\n"
                   "static const golden_function golden_functions[] = {\n%s\n};\n"
                   "/* After functions/later/objects was restored; of functions/told; of functions/objects. */\n"
                   "static const golden_function golden_later = %s;\nstatic const golden_function golden_told = %s;\n"
                   "static const golden_function golden_objects = %s;\n"
                   % (tf.__version__, STEPS, "\n".join("    %s," % row(*r) for r in rows), row("optimized", later),
                      row("told", told), row("objects", objects)))


main()
