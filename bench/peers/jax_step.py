"""Training steps of the CIFAR-10 tutorial's network in JAX on the CPU; images are there already, made once.

    jax_step.py [--threads N] [--dtype float32|bfloat16] [--steps N]

The step is one program, compiled whole, its variables updated in place. XLA takes as many threads as the process may use
cores, so --threads binds it to so many. Prints one line of JSON."""
import argparse
import json
import os
import statistics
import time
from functools import partial

BATCH, WARM_UP, RADIUS, ALPHA = 128, 6, 4, 0.001 / 9

p = argparse.ArgumentParser()
p.add_argument("--threads", type=int, default=2)
p.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
p.add_argument("--steps", type=int, default=20)
o = p.parse_args()
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:o.threads])
os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax  # noqa: E402 (after the environment it reads)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

dtype = jnp.dtype(o.dtype)
keys = jax.random.split(jax.random.key(0), 7)
sizes = {"w1": ((5, 5, 3, 64), 0.05), "w2": ((5, 5, 64, 64), 0.05), "w3": ((2304, 384), 0.04), "w4": ((384, 192), 0.04),
         "w5": ((192, 10), 1 / 192)}
v = {n: jax.random.normal(keys[i], s) * d for i, (n, (s, d)) in enumerate(sizes.items())}
v |= {f"b{n[1]}": jnp.full(s[-1], 0.1) for n, (s, d) in sizes.items()}
images = jax.random.normal(keys[5], (BATCH, 24, 24, 3)).astype(dtype)
labels = jax.random.randint(keys[6], (BATCH,), 0, 10)


def norm(x):
    sums = lax.reduce_window(x * x, np.array(0, dtype), lax.add, (1, 1, 1, 2 * RADIUS + 1), (1, 1, 1, 1), "SAME")
    r = lax.rsqrt(1 + jnp.array(ALPHA, dtype) * sums)
    return x * (r * jnp.sqrt(r))


def conv(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pool(x):
    return lax.reduce_window(x, np.array(-np.inf, dtype), lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


def loss_of(v, x, labels):
    w = {n: value.astype(dtype) for n, value in v.items()}
    x = norm(pool(jax.nn.relu(conv(x, w["w1"]) + w["b1"])))
    x = pool(norm(jax.nn.relu(conv(x, w["w2"]) + w["b2"]))).reshape(BATCH, 2304)
    x = jax.nn.relu(x @ w["w3"] + w["b3"])
    x = jax.nn.relu(x @ w["w4"] + w["b4"])
    logits = (x @ w["w5"] + w["b5"]).astype(jnp.float32)
    entropy = -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()
    return entropy + 0.002 * ((v["w3"] ** 2).sum() + (v["w4"] ** 2).sum())


@partial(jax.jit, donate_argnums=0)
def step(v, x, labels):
    loss, gradients = jax.value_and_grad(loss_of)(v, x, labels)
    return jax.tree.map(lambda a, g: a - 0.01 * g, v, gradients), loss


v, loss = step(v, images, labels)
first = float(loss)
for _ in range(WARM_UP - 1):
    v, loss = step(v, images, labels)
    float(loss)
times = []
for _ in range(o.steps):
    begin = time.perf_counter()
    v, loss = step(v, images, labels)
    loss = float(loss)
    times.append((time.perf_counter() - begin) * 1e3)
ms = statistics.median(times)
print(json.dumps({"peer": "JAX", "version": jax.__version__, "dtype": o.dtype, "threads": o.threads,
                  "ms": round(ms, 4), "images_per_second": round(BATCH / ms * 1e3, 1), "first_loss": round(first, 4),
                  "loss": round(loss, 4)}))
