#!/usr/bin/env python3
"""Writes untried.txt: what programs of TensorFlow 1 do that nobody had tried here, in small programs exported and run by
TensorFlow, for tests/test_shapes.c."""

import os
import pathlib

os.environ["TF_USE_LEGACY_KERAS"] = "1" # tf.layers wants the Keras of before

import tensorflow as tf2
from graph_cases import begin, differentiate, eighths, holder, np, of, once_more, program, raw, reseed, tf, words
from op_cases import f32, i32

begin("untried.txt", __file__, 1)

# ---- batch normalization of volumes ----

for training in (True, False):
    given = dict(scale=[1.5, 0.5], offset=[0.25, -1.0], epsilon=0.01, data_format="NDHWC", is_training=training)
    given.update(dict(mean=[], variance=[]) if training else dict(mean=[0.5, -0.25], variance=[2.0, 0.5]))
    norm = of(lambda x: raw.FusedBatchNormV3(x=x, **given)[0] ** 2, 5)
    for name, how in (("grad", differentiate), ("grad_grad", once_more)):
        how("%s_volume_%s" % (name, training), norm, {"x": eighths(2, 2, 3, 2, 2)})
    program(
        "volume_%s" % training,
        lambda: list(raw.FusedBatchNormV3(x=holder(tf.float32, [None, None, None, None, 2], "x"), **given))[: 3 if training else 1],
        {"x": eighths(2, 2, 3, 2, 2)},
    )

# ---- a step that never runs: what it comes after does all the same ----


def never(computed):
    """The side of a Switch that is not taken has no value, so neither has the step that waits for it."""

    def build():
        x = holder(tf.float32, [None], "x")
        v = tf.get_variable("v", initializer=2.0)
        nothing = tf.identity(raw.Switch(data=x, pred=True).output_false)
        add = tf.assign_add(v, tf.reduce_sum(computed(x)))
        with tf.control_dependencies([add]):
            behind = tf.identity(nothing)
        return {"": [tf.group(behind)], "value": [v]}

    return build


feeds = {"x": f32([1, -3, 0.5])}
for name, computed in (("", tf.square), ("_of_a_count", lambda x: tf.boolean_mask(x, x > 0)),
                       ("_of_growth", lambda x: tf.while_loop(lambda a: tf.size(a) < 5, lambda a: tf.concat([a, a], 0), [x],
                                                              shape_invariants=[tf.TensorShape([None])]))):
    program("never" + name, never(computed), (feeds, ""), (feeds, "value"), (feeds, ""), (feeds, "value"), init=True)

# ---- random numbers of keys and counters, as initializers of TensorFlow 2 have them ----

for dtype, ops in (
    (tf.float32, ("Uniform", "Normal", "Truncated")),
    (tf.float64, ("Uniform", "Normal", "Truncated")),
    (tf.float16, ("Uniform", "Normal")),
    (tf.int32, ("Int", "FullInt")),
    (tf.int64, ("Int", "FullInt")),
    (tf.uint32, ("FullInt",)),
    (tf.uint64, ("FullInt",)),
):

    def drawn():
        seed = holder(tf.int64, [2], "seed")
        key, counter, alg = raw.StatelessRandomGetKeyCounterAlg(seed=seed)
        given = dict(shape=holder(tf.int32, [None], "shape"), key=key, counter=counter, alg=alg, dtype=dtype)
        limits = dict(minval=tf.cast(3, dtype), maxval=tf.cast(100, dtype))
        made = {
            "Uniform": lambda: raw.StatelessRandomUniformV2(**given),
            "Normal": lambda: raw.StatelessRandomNormalV2(**given),
            "Truncated": lambda: raw.StatelessTruncatedNormalV2(**given),
            "FullInt": lambda: raw.StatelessRandomUniformFullIntV2(**given),
            "Int": lambda: raw.StatelessRandomUniformIntV2(**{k: v for k, v in given.items() if k != "dtype"}, **limits),
        }
        same = [raw.StatelessRandomUniformFullInt(shape=given["shape"], seed=seed, dtype=dtype)] if "FullInt" in ops else []
        return [made[op]() for op in ops] + same + [key, counter]

    program(
        "keyed_" + dtype.name,
        drawn,
        {"seed": np.array([7, -12], np.int64), "shape": np.array([2, 5], np.int32)},
        {"seed": np.array([1 << 40, 3], np.int64), "shape": np.array([0], np.int32)},
    )


def initialized():
    """Layers' initializers where only eager execution is off."""
    layer = tf.layers.Dense(3, kernel_initializer=tf2.initializers.glorot_uniform(seed=4))
    y = layer(holder(tf.float32, [None, 2], "x"))
    rest = [tf.Variable(make((2, 3))) for make in (tf2.initializers.he_normal(seed=1), tf2.initializers.Orthogonal(seed=2))]
    return [y] + [v.read_value() for v in rest]


program("initializers", initialized, {"x": eighths(2, 2)}, init=True)
program("no_such_algorithm", lambda: [raw.StatelessRandomUniformV2(shape=[2], key=tf.constant([1], tf.uint64),
                                                                   counter=tf.constant([1, 2], tf.uint64),
                                                                   alg=holder(tf.int32, [], "alg"))],
        {"alg": np.int32(1)}, {"alg": np.int32(3)}, ({"alg": np.int32(9)}, "alg"))

for dtype in (tf.float32, tf.float64, tf.float16):
    program(
        "classes_" + dtype.name,
        lambda: [raw.StatelessMultinomial(logits=holder(dtype, [None, None], "logits"), num_samples=5,
                                          seed=holder(tf.int64, [2], "seed"), output_dtype=tf.int32)],
        {"logits": eighths(3, 4).astype(dtype.as_numpy_dtype), "seed": np.array([7, -12], np.int64)},
    )

# ---- rare arithmetic ----

for op in ("BesselI0", "BesselI1"):
    f = of(lambda x: getattr(raw, op)(x=x), 1)
    x = np.array([-40, -3.5, -1, -0.125, 0, 0.5, 2, 7, 31], np.float32)
    program(op, lambda: [f()[1]], {"x": x})
    differentiate("grad_" + op, f, {"x": x[1:-1]})

for given in (True, False):
    f = of(lambda x: raw.QuantizeAndDequantizeV4(input=x, input_min=-1.25, input_max=1.0, range_given=given, num_bits=4), 2)
    feeds = {"x": eighths(4, 3)}
    program("quantized_%s" % given, lambda: [f()[1]], feeds)
    differentiate("grad_quantized_%s" % given, f, feeds)
program(
    "grad_quantized_slices",
    lambda: list(raw.QuantizeAndDequantizeV4Grad(gradients=holder(tf.float32, [None, 3], "dy"), axis=1,
                                                 input=holder(tf.float32, [None, 3], "x"), input_min=[-1.0, -0.5, -2.0],
                                                 input_max=[1.0, 0.25, 1.5])),
    {"x": eighths(4, 3), "dy": eighths(4, 3)},
)

for op in ("Max", "Min"):
    for dtype in (tf.float32, tf.int32, tf.float16):
        program(
            "scattered_%s_%s" % (op.lower(), dtype.name),
            lambda: [getattr(raw, "TensorScatter" + op)(tensor=holder(dtype, [None, 2], "x"), updates=holder(dtype, [None, 2], "u"),
                                                        indices=holder(tf.int32, [None, 1], "i"))],
            {"x": (8 * eighths(4, 2)).astype(dtype.as_numpy_dtype), "i": np.array([[2], [0], [2]], np.int32),
             "u": (8 * eighths(3, 2)).astype(dtype.as_numpy_dtype)},
            ({"x": np.zeros((4, 2), dtype.as_numpy_dtype), "i": np.array([[4]], np.int32),
              "u": np.zeros((1, 2), dtype.as_numpy_dtype)}, "indices[0]"),
        )
    differentiate(
        "grad_scattered_" + op.lower(),
        of(lambda x: getattr(raw, "TensorScatter" + op)(tensor=x, indices=[[2], [0], [2]], updates=2 * x[:3] - 1), 2),
        {"x": np.array([[1, 0.5], [2, 3], [1, 1], [0, -1]], np.float32)},
    )
    for resource in (False, True):

        def changed():
            v = tf.get_variable("v", initializer=[1.0, -2.0, 3.0], use_resource=resource)
            to = dict(indices=[[2], [1]], updates=[2.5, 0.0])
            change = (getattr(raw, "ResourceScatterNd" + op)(ref=v.handle, **to) if resource
                      else getattr(raw, "ScatterNd" + op)(ref=v._ref(), **to))
            return {"": [change if resource else change.op], "value": [v.read_value() if resource else v.value()]}

        program("places_%s_%s" % (op.lower(), resource), changed, ({}, ""), ({}, "value"), init=True)

# ---- counts ----

for name, dtype, index, binary in (("float", tf.float32, tf.int32, False), ("double_binary", tf.float64, tf.int64, True),
                                   ("int64", tf.int64, tf.int64, False)):

    def counted():
        return [raw.DenseBincount(input=holder(index, None, "x"), size=tf.constant(4, index), binary_output=binary,
                                  weights=holder(dtype, None, "w"))]

    def counts(x, weights):
        return {"x": np.array(x, index.as_numpy_dtype), "w": np.array(weights, dtype.as_numpy_dtype)}

    program(
        "counts_" + name,
        counted,
        counts([1, 2, 2, 9], []),
        counts([1, 2, 2, 9], [5, 1, 2, 3]),
        counts([[1, 1], [0, 3]], [[1, 2], [3, 4]]),
        counts([[1, 1], [7, 3]], []),
        counts([], []),
        (counts([1, -2], []), "must be non-negative"),
    )
program("counts_of_a_matrix", lambda: [raw.Bincount(arr=holder(tf.int32, None, "x"), size=4, weights=holder(tf.float32, None, "w"))],
        {"x": np.array([[1, 2], [2, 9]], np.int32), "w": f32([[1, 2], [3, 4]])})
for i, axis in enumerate((1, -2, [0], [0, 1])):
    program("sparse_sum_%d" % i, lambda: [raw.SparseReduceSum(input_indices=[[0, 1], [1, 0], [1, 2]], input_shape=[2, 3],
                                                                 input_values=holder(tf.float32, [3], "v"),
                                                                 reduction_axes=axis)], {"v": eighths(3)})

# ---- a loop in a branch, and its gradient: the stacks' handles come to it through the branch's Switch ----


def branch_with_a_loop():
    x, v = holder(tf.float32, [None], "x"), tf.get_variable("v", initializer=[0.5, -1.5, 2.0])
    y = tf.cond(x[0] > 0, lambda: x * v,
                lambda: tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.tanh(a * v)), [0, x])[1])
    return [y] + tf.gradients(tf.reduce_sum(y), v)


program("loop_in_a_branch", branch_with_a_loop, {"x": f32([-1, 0.5, 2])}, {"x": f32([1, 0.5, 2])}, init=True)

# ---- axes by their letters, as TensorFlow's optimizer of layouts leaves them in graphs ----

for name, dtype, src, dst, *values in (
    ("nchw", tf.int32, "NHWC", "NCHW", [7, 1, 2, 3], [[1, 2], [3, 4], [5, 6], [7, 8]], [5, 6], [[1, 2], [3, 4]]),
    ("hwnc", tf.int64, "NCHW", "HWNC", [7, 1, 2, 3], [5, 6]),
    ("volume", tf.int32, "NDHWC", "NCDHW", [7, 1, 2, 3, 4], [4, 5, 6]),
):
    program("vector_" + name, lambda: [raw.DataFormatVecPermute(x=holder(dtype, None, "x"), src_format=src, dst_format=dst)],
            *[{"x": np.array(v, dtype.as_numpy_dtype)} for v in values],
            ({"x": np.array([1] * 7, dtype.as_numpy_dtype)}, "for the format"))
    program("axes_" + name, lambda: [raw.DataFormatDimMap(x=holder(dtype, None, "x"), src_format=src, dst_format=dst)],
            {"x": np.array([[0, 3], [-1, 2]], dtype.as_numpy_dtype)}, {"x": np.array(-2, dtype.as_numpy_dtype)})


def names_read():
    queue = tf.FIFOQueue(3, tf.string, [[]])
    add = queue.enqueue_many([["a", "some/file"]])
    key, value = tf.IdentityReader().read(queue)
    return {"": [add], "read": [key, value]}


program("names_as_records", names_read, {}, ({}, "read"), ({}, "read"))

# ---- a training that begins with another one's checkpoint, of another vocabulary ----


def warm_start():
    old, now, saved = ("test_shapes_" + name for name in ("old.txt", "now.txt", "saved"))
    files = [tf.io.write_file(old, "the\nof\r\nand\nto\n"), tf.io.write_file(now, "x\nto\nnew\nthe\nof")]
    save = raw.SaveV2(prefix=saved, tensor_names=["m"], shape_and_slices=[""], tensors=[tf.reshape(tf.range(8.0), [4, 2])])
    rows, present = raw.GenerateVocabRemapping(new_vocab_file=now, old_vocab_file=old, new_vocab_offset=1, num_new_vocab=3,
                                               old_vocab_size=3)
    given = dict(ckpt_path=saved, old_tensor_name="m", num_rows=3, initializing_values=holder(tf.float32, [None], "x"))
    columns = holder(tf.int64, [None], "columns")
    wider = raw.LoadAndRemapMatrix(row_remapping=rows, col_remapping=columns, num_cols=3, **given)
    same = raw.LoadAndRemapMatrix(row_remapping=tf.constant([3, -1, 0], tf.int64), col_remapping=tf.constant([], tf.int64),
                                  num_cols=2, **given)
    return {"": files + [save], "rows": [rows, present], "wider": [wider], "same": [same]}


columns = np.array([1, -1, 0], np.int64)
program("warm_start", warm_start, {}, ({}, "rows"), ({"x": eighths(7), "columns": columns}, "wider"),
        ({"x": eighths(2)}, "same"), ({"x": eighths(3)}, "same", "initial"), ({"x": eighths(1)}, "same", "initial"),
        ({"x": eighths(7), "columns": np.array([1, 1, 0], np.int64)}, "wider", "twice"))


def imported_twice():
    """A SavedModel's main op and its collection of initializers fill the same table, once each."""
    table = raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name="jobs")
    fill = raw.LookupTableImportV2(table_handle=table, keys=["a", "b"], values=tf.constant([4, 5], tf.int64))
    found = raw.LookupTableFindV2(table_handle=table, keys=holder(tf.string, [None], "x"),
                                  default_value=tf.constant(-1, tf.int64))
    return {"": [fill], "found": [found]}


program("imported_twice", imported_twice, {}, {}, ({"x": np.array([b"b", b"c"], object)}, "found"))

# ---- references that branches pass on ----


def updated_in_branches(loop):
    """What a condition gives of a variable is read after its update, and orders a loop behind it."""

    def build():
        x, v = holder(tf.float32, [], "x"), tf.get_variable("v", initializer=1.0)
        up = tf.cond(x > 3, lambda: tf.assign_add(v, x), lambda: tf.assign_sub(v, 1.0))
        if not loop:
            return [up + 0.5]
        with tf.control_dependencies([up]):
            return [tf.while_loop(lambda i: i < x, lambda i: i + 1.0, [0.0]) + up]
    return build


for loop in (False, True):
    program("updated_in_branches_%s" % loop, updated_in_branches(loop), {"x": np.float32(4)}, {"x": np.float32(2)}, init=True)


def learned_after_a_branch():
    """A loop's gradient under a control input from a branch that updates a variable."""
    x, v = holder(tf.float32, [3], "x"), tf.get_variable("v", initializer=[0.5, -1.5, 2.0])
    count = tf.get_variable("count", initializer=0.0)
    rounds, y = tf.while_loop(lambda i, a: i < 6, lambda i, a: (i + 1, a * 1.25 + v), [0, x])
    with tf.control_dependencies([y]):
        up = tf.cond(rounds > 3, lambda: tf.assign_add(count, tf.cast(rounds, tf.float32)), lambda: tf.assign_sub(count, 1.0))
    with tf.control_dependencies([up]):
        gradient = tf.gradients(tf.reduce_sum(y * y), v)
    return gradient + [tf.identity(up)]


program("learned_after_a_branch", learned_after_a_branch, {"x": f32([0.5, 0.25, -1])}, {"x": f32([1, 0, 2])}, init=True)

# ---- lists and arrays of tensors, without a loop ----


def lists():
    shape, values = holder(tf.int32, [None], "shape"), holder(tf.float32, [None, None], "values")
    count, at = holder(tf.int32, [], "count"), holder(tf.int32, [], "at")
    rows, more = holder(tf.int32, [None], "rows"), holder(tf.float32, [None], "more")
    given = dict(element_shape=shape, element_dtype=tf.float32)
    empty = raw.TensorListReserve(element_shape=shape, num_elements=count, element_dtype=tf.float32)
    made = raw.TensorListFromTensor(tensor=values, element_shape=shape)
    one = raw.TensorListSetItem(input_handle=empty, index=at, item=more)
    placed = raw.TensorListScatterIntoExistingList(input_handle=made, tensor=values, indices=rows)
    scattered = raw.TensorListScatterV2(tensor=values, indices=rows, element_shape=shape, num_elements=count)
    grown = raw.TensorListPushBack(input_handle=made, tensor=more)
    shorter, popped = raw.TensorListPopBack(input_handle=grown, **given)
    cut = raw.TensorListSplit(tensor=values, element_shape=[-1, 2], lengths=tf.cast(rows, tf.int64))
    joined = raw.TensorListConcatLists(input_a=made, input_b=grown, element_dtype=tf.float32)
    return [
        raw.TensorListStack(input_handle=one, num_elements=-1, **given),
        raw.TensorListStack(input_handle=placed, num_elements=-1, **given),
        raw.TensorListGather(input_handle=scattered, indices=rows, **given),
        raw.TensorListGetItem(input_handle=grown, index=at, **given),
        popped,
        raw.TensorListLength(input_handle=shorter),
        raw.TensorListConcatV2(input_handle=cut, element_shape=[-1, 2], leading_dims=np.int64([]),
                               element_dtype=tf.float32)[0],
        raw.TensorListStack(input_handle=joined, num_elements=-1, **given),
        raw.TensorListLength(input_handle=raw.TensorListResize(input_handle=made, size=count)),
        raw.TensorListElementShape(input_handle=made, shape_type=tf.int32),
    ]


def arrays():
    values, at = holder(tf.float32, [None, None], "values"), holder(tf.int32, [], "at")
    count, rows, more = holder(tf.int32, [], "count"), holder(tf.int32, [None], "rows"), holder(tf.float32, [None], "more")
    def array():
        return raw.TensorArrayV3(size=count, dtype=tf.float32, dynamic_size=True, clear_after_read=False)
    a, b = array(), array()
    scattered = raw.TensorArrayScatterV3(handle=a[0], indices=rows, value=values, flow_in=a[1])
    written = raw.TensorArrayWriteV3(handle=a[0], index=at, value=more, flow_in=scattered)
    cut = raw.TensorArraySplitV3(handle=b[0], value=more, lengths=np.int64([1, 1]), flow_in=b[1])
    gradient = raw.TensorArrayGradV3(handle=a[0], flow_in=written, source="gradients")
    return [
        raw.TensorArrayReadV3(handle=a[0], index=at, flow_in=written, dtype=tf.float32),
        raw.TensorArrayGatherV3(handle=a[0], indices=rows, flow_in=written, dtype=tf.float32),
        raw.TensorArrayConcatV3(handle=b[0], flow_in=cut, dtype=tf.float32)[0],
        raw.TensorArraySizeV3(handle=a[0], flow_in=written),
        raw.TensorArraySizeV3(handle=gradient[0], flow_in=gradient[1]),
    ]


feeds = {"values": eighths(2, 2), "rows": np.int32([1, 0]), "more": eighths(2), "at": np.int32(1), "count": np.int32(2)}
program("arrays_without_a_loop", arrays, dict(feeds, rows=np.int32([0, 2])))
program("lists_without_a_loop", lists, dict(feeds, shape=np.int32([2]), rows=np.int32([1, 1])),
        dict(feeds, shape=np.int32([2]), rows=np.int32([0, 2]), count=np.int32(3)))

# ---- variables that grow ----

reseed(53)


def growing(shape, dtype=tf.float32, first=((0, 2),)):
    return tf2.Variable(np.zeros(*first, dtype.as_numpy_dtype), shape=shape, dtype=dtype, use_resource=True)


def give(v, value):
    return raw.AssignVariableOp(resource=v.handle, value=value)


def grows():
    """Behind its assignment a step sees the new shape, before it the one of the step before."""
    x = holder(tf.float32, [None, 2], "x")
    v = growing([None, 2])
    before = v.read_value()
    with tf.control_dependencies([before]):
        assign = give(v, tf.concat([before, x], 0))
    with tf.control_dependencies([assign]):
        after = v.read_value()
        loss = tf.reduce_sum(after * after)
        fetched = [before, after, tf.shape(after), tf.reduce_mean(after, 0), loss, tf.gradients(loss, after)[0]]
    return {"": fetched, "only": [assign], "look": [v.read_value() * 1.0], "shape": [raw.VariableShape(input=v.handle)]}


program("variable_grows", grows, *[{"x": eighths(n, 2)} for n in (1, 2, 0)], ({}, "look"), ({"x": eighths(1, 2)}, "only"),
        ({}, "look"), ({}, "shape"), ({"x": eighths(3, 2)}, ""), init=True)


def grows_twice():
    x = holder(tf.float32, [None], "x")
    v = growing(tf.TensorShape(None), first=((0,),))
    one = give(v, tf.concat([v.read_value(), x], 0))
    with tf.control_dependencies([one]):
        between = v.read_value()
        two = give(v, tf.stack([between, between * 2.0]))
    with tf.control_dependencies([two]):
        shape, last = tf.shape(v.read_value()), v.read_value()
        three = give(v, last[0, :2])
    with tf.control_dependencies([three]):
        return [between, shape, last, v.read_value()]


program("variable_grows_and_shrinks", grows_twice, *[{"x": eighths(n)} for n in (3, 2, 2, 0)], init=True)


def grows_in_branch():
    x, p = holder(tf.float32, [None, 2], "x"), holder(tf.bool, [], "p")
    v, n = growing([None, 2]), tf2.Variable(0, use_resource=True)

    def more():
        with tf.control_dependencies([give(v, tf.concat([v.read_value(), x], 0)),
                                      raw.AssignAddVariableOp(resource=n.handle, value=1)]):
            return tf.reduce_sum(v.read_value())

    total = tf.cond(p, more, lambda: tf.constant(-1.0))
    with tf.control_dependencies([total]):
        return [total, v.read_value(), n.read_value()]


program("variable_grows_in_branch", grows_in_branch, *[{"x": eighths(k, 2), "p": np.array(p)} for k, p in
                                                       ((1, True), (2, False), (2, True), (1, False))], init=True)


def grows_by_values():
    x, keep = holder(tf.string, [None], "x"), holder(tf.bool, [None], "keep")
    v = tf2.Variable(np.zeros((0,), object), shape=[None], dtype=tf.string, use_resource=True)
    with tf.control_dependencies([give(v, tf.boolean_mask(x, keep))]):
        return [v.read_value(), tf.size(v.read_value())]


program("variable_of_texts_grows", grows_by_values, {"x": words("a", "bc"), "keep": np.array([True, True])},
        {"x": words("a", "bc"), "keep": np.array([False, False])}, {"x": words("d", "e"), "keep": np.array([False, True])},
        init=True)


def grows_by_reference():
    x = holder(tf.float32, [None, 2], "x")
    v = tf.Variable(tf.zeros([0, 2]), validate_shape=False)
    bigger = tf.assign(v, tf.concat([v, x], 0), validate_shape=False)
    with tf.control_dependencies([bigger]):
        total = tf.reduce_sum(v.read_value(), 0)
    return {"": [bigger, total], "look": [v]}


program("reference_grows", grows_by_reference, *[{"x": eighths(n, 2)} for n in (1, 2, 0)], ({}, "look"), init=True)
program("variable_grows_wrongly", lambda: [give(growing([None, 2]), holder(tf.float32, None, "x"))],
        {"x": eighths(3, 2)}, init=True)

# ---- eigenvalues of any matrix, roots and logarithms; vectors by what they do, for their phases are nobody's ----


def cast(a, dtype):
    return np.asarray(a).astype(dtype.as_numpy_dtype)


def eig(dtype, values):
    def build():
        x = holder(dtype, [None, None, None], "a")
        e, v = raw.Eig(input=x, Tout=values)
        off = tf.abs(tf.matmul(tf.cast(x, values), v) - v * tf.expand_dims(e, -2))
        alone = raw.Eig(input=x, Tout=values, compute_v=False)[0]
        return [tf.sort(tf.abs(e)), tf.reduce_sum(e, -1), tf.reduce_sum(e * e * e, -1), off,
                tf.reduce_sum(tf.square(tf.abs(v)), -2), tf.sort(tf.abs(alone))]
    return build


plain = eighths(2, 5, 5)
wheel = np.roll(np.eye(5), 1, 1)[None]  # all values are roots of one
triangle = np.triu(np.arange(1.0, 10).reshape(1, 3, 3))
for dtype, values in ((tf.float32, tf.complex64), (tf.float64, tf.complex128), (tf.complex64, tf.complex64),
                      (tf.complex128, tf.complex128)):
    given = plain + 1j * eighths(2, 5, 5) if dtype.is_complex else plain
    program("eig_" + dtype.name, eig(dtype, values), {"a": cast(given, dtype)}, {"a": cast(wheel, dtype)},
            {"a": cast(triangle, dtype)}, {"a": cast(np.zeros((2, 1, 1)), dtype)}, {"a": cast(np.zeros((0, 3, 3)), dtype)},
            ({"a": cast(np.full((1, 2, 2), np.nan), dtype)}, "Eigen decomposition was not successful"))
    program("eig_of_triangles_" + dtype.name,
            lambda: [raw.Eig(input=holder(dtype, [None, None, None], "a"), compute_v=False, Tout=values)[0]],
            {"a": cast(triangle, dtype)})
    positive = np.matmul(given, np.conj(np.swapaxes(given, -1, -2))) + np.eye(5)
    turned = np.array([[[0.0, 1.0, 0.5], [-1.0, 0.25, 0.0], [0.0, 0.0, 2.0]]])
    root = lambda: [raw.MatrixSquareRoot(input=holder(dtype, [None, None, None], "a"))]
    program("root_" + dtype.name, root, {"a": cast(positive, dtype)}, {"a": cast(turned, dtype)},
            {"a": cast(triangle, dtype)}, {"a": cast(np.zeros((1, 2, 2)), dtype)},
            {"a": cast([[[-1.0, 0.0], [0.0, 4.0]]], dtype)})
    if dtype.is_complex:
        program("logarithm_" + dtype.name, lambda: [raw.MatrixLogarithm(input=holder(dtype, [None, None, None], "a"))],
                {"a": cast(positive, dtype)}, {"a": cast(given, dtype)}, {"a": cast(triangle, dtype)},
                {"a": cast(np.eye(3)[None], dtype)}, {"a": cast(np.eye(2)[None] * 1e-20, dtype)},
                {"a": cast([[[1.0, 100.0], [0.0, 1.0]]], dtype)})

# ---- letters that repeat in a result, and matrices that are repeated for batches ----

for name, equation, feeds in (
    ("one", "i->ii", ["second"]), ("thrice", "i->iii", ["second"]), ("between", "ij->jij", ["first"]),
    ("diagonals", "ii,jj->iijj", ["first", "first"]), ("product", "ij,jk->kik", ["first", "first"]),
    ("dots", "...i->...ii", ["first"]),
):
    given = {"first": eighths(3, 3), "second": eighths(3)}
    program("einsum_" + name,
            lambda: [raw.Einsum(inputs=[holder(tf.float32, [None] * given[f].ndim, "%s%d" % (f, i))
                                        for i, f in enumerate(feeds)], equation=equation)],
            {"%s%d" % (f, i): given[f] for i, f in enumerate(feeds)})
triangles = eighths(2, 1, 3, 3) + 3 * np.eye(3, dtype=np.float32)
for name, op, a, b in (("triangles", raw.MatrixTriangularSolve, triangles, eighths(4, 3, 2)),
                       ("triangle", raw.MatrixTriangularSolve, triangles[0, 0], eighths(2, 3, 2)),
                       ("sides", raw.MatrixTriangularSolve, triangles, eighths(3, 2)),
                       ("bands", raw.BandedTriangularSolve, np.abs(triangles[:, :, :2]) + 1, eighths(4, 3, 2)),
                       ("band", raw.BandedTriangularSolve, np.abs(triangles[0, 0, :2]) + 1, eighths(2, 3, 2))):
    for turned in (True, False):
        solve = lambda a, b: op(matrix=a, rhs=b, lower=not turned, adjoint=turned)
        program("repeated_%s_%s" % (name, turned), lambda: [solve(holder(tf.float32, None, "a"), holder(tf.float32, None, "b"))],
                {"a": a, "b": b})
        differentiate("grad_repeated_right_%s_%s" % (name, turned), of(lambda x: solve(tf.constant(a), x), b.ndim), {"x": b})
        x = lambda: holder(tf.float32, [None] * (a.ndim - 2) + list(a.shape[-2:]), "x")
        differentiate("grad_repeated_%s_%s" % (name, turned), lambda: (lambda x: (x, solve(x, tf.constant(b))))(x()), {"x": a})

# ---- variables that Switches look at themselves, and what else a program may have ----


def decided_by_variables():
    """A condition of two Switches, then the variable changes, then another; and a Switch that passes a variable on."""
    v = tf.get_variable("v", initializer=True, use_resource=False)
    w = tf.get_variable("w", initializer=[1.0, 2.0], use_resource=False)
    x = holder(tf.float32, [2], "x")
    switch = lambda op, *given: tf.get_default_graph().create_op(op, list(given), None).outputs

    def choose(a, b):
        a, b = switch("Switch", a, v._ref()), switch("Switch", b, v._ref())
        return raw.Merge(inputs=[a[0] + b[0], a[1] * b[1]]).output

    first = choose(x * 2.0, x + 1.0)
    with tf.control_dependencies([first]):
        change = tf.assign(v, tf.logical_not(v))
    with tf.control_dependencies([change]):
        second = choose(x * 3.0, x - 1.0)
        off, on = switch("RefSwitch", w._ref(), v._ref())
        third = raw.Merge(inputs=[off + 1.0, on * 3.0]).output
    return [first, second, third]


program("decided_by_variables", decided_by_variables, {"x": f32([1, 2])}, {"x": f32([3, -5])}, {"x": f32([1, 2])}, init=True)
program("snapshot", lambda: [raw.Snapshot(input=holder(tf.float32, [None], "x")) * 2], {"x": f32([1, 2, 3])})
for dtype, values in ((tf.float16, [1 / 3, 1e-5, 60000, -np.inf, -0.0]), (tf.bfloat16, [1 / 3, 1e-5, 60000, np.nan]),
                      (tf.complex64, [1.5 + 2j, -2.25 - 1e30j, 1 / 3]), (tf.complex128, [1.5 + 2j, 1 / 3 - 1e-9j])):
    for name, how in (("plain", {}), ("short", dict(shortest=True)), ("wide", dict(width=9, precision=2, fill="0")),
                      ("scientific", dict(scientific=True))):
        program("text_of_%s_%s" % (dtype.name, name),
                lambda: [tf.strings.as_string(tf.cast(holder(tf.complex128 if dtype.is_complex else tf.float64, [None], "x"), dtype), **how)],
                {"x": np.array(values, np.complex128 if dtype.is_complex else np.float64)})
program("text_of_text", lambda: [raw.AsString(input=holder(tf.string, [None], "x"))], {"x": words("a", "", "b\0c")})
program("rates_of_sounds",
        lambda: [raw.AudioSummaryV2(tag="a", tensor=[[0.5, -1.0]], sample_rate=holder(tf.float32, [], "x"))],
        {"x": f32(0.001)}, {"x": f32(44100.5)}, {"x": f32(3e9)}, ({"x": f32(5e9)}, "sample_rate must be"),
        ({"x": f32(0)}, "sample_rate must be"))
program("normalized_nothing",
        lambda: list(raw.FusedBatchNormV3(x=holder(tf.float32, [None, 2, 2, 2], "x"), scale=holder(tf.float32, [2], "s"),
                                          offset=[0.0, 1.0], mean=[0.5, 1.0], variance=[1.0, 2.0], is_training=False)[:3]),
        {"x": np.zeros((0, 2, 2, 2), np.float32), "s": f32([1, 2])})

for left in pathlib.Path().glob("test_shapes_*"): # what the programs have written
    left.unlink()
