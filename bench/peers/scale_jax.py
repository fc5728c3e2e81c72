"""Tracing and compiling of bench/scale.c's chain in JAX: layers of an 8x8 product, a sum and tanh, with gradients and descent.

    scale_jax.py LAYERS...

For each number of layers prints one line of JSON: seconds for the first call of the jitted step, which traces and
compiles, and for the second. The loop over layers is unrolled, as in the graph; lax.scan would make it one layer."""
import json
import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax  # noqa: E402 (after the environment it reads)
import jax.numpy as jnp  # noqa: E402

sys.setrecursionlimit(10**6)


def loss(weights):
    x = jnp.zeros([8, 8])
    for w in weights:
        x = jnp.tanh(x @ w + jnp.zeros([8, 8]))
    return jnp.mean(x)


@jax.jit
def step(weights):
    return [w - 0.01 * g for w, g in zip(weights, jax.grad(loss)(weights))]


for layers in map(int, sys.argv[1:]):
    weights = [jnp.full([8, 8], 0.1) for _ in range(layers)]
    times = [time.perf_counter()]
    for _ in range(2):
        jax.block_until_ready(step(weights))
        times.append(time.perf_counter())
    print(json.dumps({"layers": layers, "first_call_s": round(times[1] - times[0], 3),
                      "call_s": round(times[2] - times[1], 4)}), flush=True)
