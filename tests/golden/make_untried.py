#!/usr/bin/env python3
"""Writes untried.txt: what programs of TensorFlow 1 do that nobody had tried here, in small programs exported and run by
TensorFlow, for tests/test_shapes.c."""

from graph_cases import begin, differentiate, eighths, holder, of, once_more, program, raw, tf
from op_cases import f32

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
