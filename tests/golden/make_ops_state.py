#!/usr/bin/env python3
"""Writes ops_state.txt: updates of variables run by TensorFlow, for tests/test_ops_state.c.

The first inputs of a case are variables, as many as it has outputs: these are the variables' values afterwards. Numbers
are written in full, because updates are expected to agree to the bit.
"""
import numpy as np

import op_cases
from op_cases import Cases, tf

op_cases._number = lambda x: repr(float(x)) if x.dtype.kind in "fV" else str(int(x))
cases = Cases("ops_state.txt")
FLOATS = (tf.float32, tf.float64, tf.float16, tf.bfloat16)
INTEGERS = (tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8)


def run(op, variables, others, **attrs):
    """others: what follows the variables, in the order of the op's arguments."""
    held = {name: tf.Variable(value) for name, value in variables.items()}
    handles = {name: v.handle for name, v in held.items()}
    given = {name: tf.constant(value) for name, value in others.items()}
    getattr(tf.raw_ops, op)(**handles, **given, **attrs)
    cases.write(op, {**variables, **others, **attrs}, [v.numpy() for v in held.values()])


def normal(dtype, n=9, positive=False):
    values = cases.random.standard_normal(n)
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
            most = min(t.max, 2**50)  # the reader counts in doubles; smaller types wrap around
            run(op, dict(resource=np.asarray([most, t.min if t.size < 8 else -most, most, 5, 0], t.as_numpy_dtype)),
                dict(value=np.asarray([1, 1, most, 3, 2], t.as_numpy_dtype)))
