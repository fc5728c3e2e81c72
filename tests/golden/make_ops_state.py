#!/usr/bin/env python3
"""Writes ops_state.txt: updates of variables run by TensorFlow, for tests/test_ops_state.c.

The first inputs of a case are variables, as many as it has outputs: these are the variables' values afterwards.
"""
import numpy as np

from op_cases import Cases, tf

cases = Cases("ops_state.txt", __file__)
random = np.random.default_rng(5)
FLOATS = (tf.float32, tf.float64, tf.float16, tf.bfloat16)
INTEGERS = (tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8)


def run(op, variables, others, **attrs):
    """others: what follows the variables, in the order of the op's arguments."""
    held = {name: tf.Variable(value) for name, value in variables.items()}
    handles = {name: v.handle for name, v in held.items()}
    given = {name: tf.constant(value) for name, value in others.items()}
    getattr(tf.raw_ops, op)(**handles, **given, **attrs)
    cases.case(op, expected=[v.numpy() for v in held.values()], **variables, **others, **attrs)


def normal(dtype, n=9, positive=False):
    values = random.standard_normal(n)
    return (np.abs(values) if positive else values).astype(dtype.as_numpy_dtype)


def number(dtype, value):
    return np.asarray(value, dtype.as_numpy_dtype)


for t in FLOATS:
    run("ResourceApplyGradientDescent", dict(var=normal(t)), dict(alpha=number(t, 0.1), delta=normal(t)))
    for nesterov in (False, True):
        run("ResourceApplyMomentum", dict(var=normal(t), accum=normal(t)),
            dict(lr=number(t, 0.1), grad=normal(t), momentum=number(t, 0.9)), use_nesterov=nesterov)
        run("ResourceApplyAdam", dict(var=normal(t), m=normal(t), v=normal(t, positive=True)),
            dict(beta1_power=number(t, 0.9**3), beta2_power=number(t, 0.99**3), lr=number(t, 0.01),
                 beta1=number(t, 0.9), beta2=number(t, 0.99), epsilon=number(t, 1e-4), grad=normal(t)),
            use_nesterov=nesterov)
    run("ResourceApplyRMSProp", dict(var=normal(t), ms=normal(t, positive=True), mom=normal(t)),
        dict(lr=number(t, 0.01), rho=number(t, 0.9), momentum=number(t, 0.5), epsilon=number(t, 1e-3),
             grad=normal(t)))
for t in FLOATS + INTEGERS:
    for op in ("AssignAddVariableOp", "AssignSubVariableOp"):
        if t in FLOATS:
            run(op, dict(resource=normal(t)), dict(value=normal(t)))
        else:
            run(op, dict(resource=np.asarray([t.max, t.min, t.max, 5, 0], t.as_numpy_dtype)),  # they wrap around
                dict(value=np.asarray([1, 1, t.max, 3, 2], t.as_numpy_dtype)))
for t in FLOATS + (tf.int32, tf.int64):
    for op in ("ResourceScatterAdd", "ResourceScatterSub", "ResourceScatterUpdate"):  # row 2 is named twice
        rows = (random.standard_normal((4, 3)) * 8).astype(t.as_numpy_dtype)
        updates = (random.standard_normal((2, 2, 3)) * 8).astype(t.as_numpy_dtype)
        indices = np.asarray([[2, 0], [2, 3]], np.int64 if t == tf.float64 else np.int32)
        run(op, dict(resource=rows), dict(indices=indices, updates=updates))
        run(op, dict(resource=rows), dict(indices=indices, updates=number(t, 3)))  # into every place of each row
