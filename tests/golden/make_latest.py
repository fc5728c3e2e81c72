#!/usr/bin/env python3
"""Writes latest.txt: rare ops of TensorFlow 2's programs whose inputs are lists or variables, and gradients of linear
algebra, in small programs exported and run by TensorFlow, for tests/test_shapes.c."""

from graph_cases import begin, differentiate, eighths, holder, np, of, program, raw, tf, words
from op_cases import f32, i32, i64

begin("latest.txt", __file__, 9)

# ---- combinations of ragged, sparse and dense columns ----

FED = {"numbers": i64([1, 2, 3]), "ends": i64([0, 2, 3]), "letters": words("a", "b", "c"), "letter_ends": i64([0, 1, 3]), "int_ends": i32([0, 1, 3]),
       "places": i64([[0, 0], [1, 0], [1, 1]]), "cells": words("x", "y", "z"), "size": i64([2, 2]),
       "table": i64([[7, 8], [9, 10]])}
COLUMNS = {"n": ("R", "numbers", "ends"), "l": ("R", "letters", "letter_ends"), "i": ("R", "letters", "int_ends"), "s": ("S", "places", "cells", "size"),
           "d": ("D", "table")}


def crossing(columns, hashed=False, buckets=0, splits=tf.int64):
    def build():
        held = {k: holder(tf.as_dtype("string" if v.dtype == object else v.dtype), [None] * v.ndim, k)
                for k, v in FED.items() if any(k in COLUMNS[c] for c in columns)}
        of_kind = {kind: [[held[name] for name in COLUMNS[c][1:]] for c in columns if COLUMNS[c][0] == kind]
                   for kind in "RSD"}
        return list(raw.RaggedCross(
            ragged_values=[v for v, _ in of_kind["R"]], ragged_row_splits=[s for _, s in of_kind["R"]],
            sparse_indices=[i for i, _, _ in of_kind["S"]], sparse_values=[v for _, v, _ in of_kind["S"]],
            sparse_shape=[s for _, _, s in of_kind["S"]], dense_inputs=[d for d, in of_kind["D"]],
            input_order="".join(COLUMNS[c][0] for c in columns), hashed_output=hashed, num_buckets=buckets,
            hash_key=956888297470, out_values_type=tf.int64 if hashed else tf.string, out_row_splits_type=splits))
    return build


def fed(columns, **changed):
    return {**{k: v for k, v in FED.items() if any(k in COLUMNS[c] for c in columns)}, **changed}


program("cross_ragged", crossing("nl"), fed("nl"), (fed("nl", ends=i64([0, 1, 2, 3])), "rows"))
program("cross_all", crossing("sid", splits=tf.int32), fed("sid"))
program("cross_hashed", crossing("nls", hashed=True), fed("nls"))
program("cross_buckets", crossing("dl", hashed=True, buckets=100), fed("dl"))
program("cross_dense", crossing("d"), fed("d"), fed("d", table=np.zeros((2, 0), np.int64)))

# ---- a generator that ops move on themselves ----


def drawing(draw):
    def build():
        # TensorFlow's binomial op leaves a state alone whose memory is still a constant's, and draws the same twice
        first = tf.cast(tf.random.uniform([3]), tf.int64) + [5, 1, 7]
        state = tf.get_variable("state", initializer=first, use_resource=True)
        drawn = draw(resource=state.handle, algorithm=1)
        with tf.control_dependencies([drawn]):
            return [drawn, state.read_value()]
    return build


for dtype in (tf.float32, tf.float64, tf.float16):
    for name, op in (("uniform", raw.StatefulUniform), ("normal", raw.StatefulStandardNormalV2),
                     ("truncated", raw.StatefulTruncatedNormal)):
        program("kept_%s_%s" % (name, dtype.name), drawing(lambda **r: op(shape=tf.constant([5], tf.int32), dtype=dtype, **r)),
                {}, {}, init=True)
for dtype in (tf.int32, tf.int64):
    program("kept_int_" + dtype.name,
            drawing(lambda **r: raw.StatefulUniformInt(shape=[2, 3], minval=tf.constant(-5, dtype),
                                                       maxval=tf.constant(100, dtype), **r)), {}, {}, init=True)
for dtype in (tf.uint64, tf.uint32, tf.int64, tf.int32):
    program("kept_words_" + dtype.name, drawing(lambda **r: raw.StatefulUniformFullInt(shape=[3], dtype=dtype, **r)), {},
            {}, init=True)
for counts, shape in (([5.0, 100.0], [3, 2]), (100.0, [2]), ([1.0, 2.0, 30.0], [7, 3])):
    program("kept_binomial_%d" % len(shape) + str(shape[0]),
            drawing(lambda **r: raw.StatefulRandomBinomial(shape=shape, counts=tf.constant(counts), probs=tf.constant(0.4),
                                                           dtype=tf.int32, **r)), {}, {}, init=True)
