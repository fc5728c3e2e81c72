#!/usr/bin/env python3
"""Writes record.h: the network of the CIFAR-10 speed record (src/models/airbench.c), an eighth as wide, trained for 20
steps by PyTorch, for tests/test_models.c and tests/card/test_cuda_models.c.

What is compared is a whole step: whitening layer, GELU, batch normalization without a scale, smoothed labels, Muon for
filters, momentum as Nesterov has it with weight decay for the rest, each with a rate of its own that falls in a line;
images reflected at their borders, shifted, and flipped in every other epoch, as the record does it.
Images, labels and first values come from a formula that the tests have too (`noise`); DRAWS is what the trainer's stream
of seed 7 gives in two epochs of 160 examples (record_draws.txt): which image, how many pixels below
and to the right of its corner the crop has its own, and whether that is then flipped. Losses are added up over a batch, as the record does it: Tower takes means,
and rates that are as many times as large as a batch.

Muon's rate is a quarter of the record's. At its own, with batches this small, a hundred millionth in a value grows to a
hundredth of the loss within 20 steps, in PyTorch too, because here and there it decides which of a pool's values is greatest.

The same is then run in float64: how far PyTorch itself strays from it in float32 is the measure for everyone else.

Then evaluation by several views of each image, as the record's `infer` has it: mirrored, and shifted by one pixel too.
"""
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

STEPS, BATCH, SIDE, EXAMPLES, SAMPLES, LOOKED_AT = 20, 16, 32, 160, 8, 12
SEED = 10005  # with it no maximum of a pool is so close to another that rounding decides
WIDTHS = (8, 32, 32)
MOMENTUM, EPSILON, SMOOTHING = 0.6, 1e-12, 0.2
BIAS_RATE, HEAD_RATE, MUON_RATE, DECAY = 0.053, 0.67, 0.06, 2e-6 * BATCH
BIAS_STEPS = 10  # that the biases of the first layer are trained
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
DRAWS = np.loadtxt(os.path.join(os.path.dirname(__file__), "record_draws.txt"), np.int64)


def noise(stream, count):
    """Multiples of 2^-15 in [-1, 1), the same on every machine."""
    x = np.arange(count, dtype=np.uint32) + np.uint32((stream + SEED) * 0x9E3779B9 % 2**32)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    x ^= x >> np.uint32(16)
    return (x >> np.uint32(16)).astype(np.float32) / np.float32(32768) - np.float32(1)


def examples():
    """Bytes of noise, with three bright rows that tell the class."""
    images = ((noise(1000, EXAMPLES * SIDE * SIDE * 3) + 1) * 128).astype(np.uint8).reshape(EXAMPLES, SIDE, SIDE, 3)
    labels = np.arange(EXAMPLES) * 7 % 10
    for image, label in zip(images, labels):
        image[3 * label : 3 * label + 3] = 255 - image[3 * label : 3 * label + 3] // 4
    return images, labels


def distorted(images, draws):
    """As CifarLoader: reflected by two pixels, cropped, flipped."""
    padded = F.pad(torch.tensor(images).permute(0, 3, 1, 2).double(), (2,) * 4, "reflect")
    result = []
    for index, top, left, flip in draws:
        image = padded[index, :, 2 + top : 2 + top + SIDE, 2 + left : 2 + left + SIDE]
        result.append(image.flip(-1) if flip else image)
    return torch.stack(result).permute(0, 2, 3, 1).numpy()


def filters(number, inputs, outputs):
    """Ones that pass channels on, with noise; [kh,kw,C,K] as Tower has them."""
    values = noise(100 + number, 9 * inputs * outputs).reshape(3, 3, inputs, outputs) / np.float32(2 * (9 * inputs) ** 0.5)
    for c in range(min(inputs, outputs)):
        values[1, 1, c, c] += 1
    return values


def orthogonal(g):
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.reshape(len(g), -1)
    x = x / (x.norm() + 1e-7)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    for _ in range(3):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return (x.T if tall else x).reshape(g.shape)


class Record:
    def __init__(self, dtype):
        def parameter(values, trained=True):
            return torch.tensor(values, dtype=dtype, requires_grad=trained)

        self.dtype, self.training = dtype, True
        whiten = noise(107, 2 * 2 * 3 * 24).reshape(2, 2, 3, 24) / np.float32(2)
        self.whiten, self.bias = parameter(whiten.transpose(3, 2, 0, 1), False), parameter(np.zeros(24))
        self.convs, self.betas, self.moving = [], [], []
        inputs = 24
        for width in WIDTHS:
            for _ in range(2):
                self.convs.append(parameter(filters(len(self.convs), inputs, width).transpose(3, 2, 0, 1).copy()))
                self.betas.append(parameter(np.zeros(width)))
                self.moving.append([torch.zeros(width, dtype=dtype), torch.ones(width, dtype=dtype)])
                inputs = width
        self.head = parameter(noise(106, inputs * 10).reshape(inputs, 10).T.copy())

    def activate(self, x, i):
        x = F.batch_norm(x, *self.moving[i], None, self.betas[i], self.training, 1 - MOMENTUM, EPSILON)
        return F.gelu(x)

    def standardize(self, images):
        x = torch.tensor(images).to(self.dtype) / 255
        x = (x - torch.tensor(MEAN, dtype=self.dtype)) / torch.tensor(DEVIATION, dtype=self.dtype)
        return x.permute(0, 3, 1, 2)

    def logits(self, x):
        x = F.gelu(F.conv2d(x, self.whiten, self.bias))
        for i in range(0, len(self.convs), 2):
            x = self.activate(F.max_pool2d(F.conv2d(x, self.convs[i], padding="same"), 2), i)
            x = self.activate(F.conv2d(x, self.convs[i + 1], padding="same"), i + 1)
        x = F.max_pool2d(x, 3).flatten(1)
        return x @ self.head.T / x.shape[1]

    def loss(self, images, labels):
        x = self.logits(self.standardize(images))
        return F.cross_entropy(x, torch.tensor(labels), label_smoothing=SMOOTHING, reduction="sum")


def train(dtype):
    images, labels = examples()
    network = Record(dtype)
    groups = [dict(params=[network.bias], lr=BIAS_RATE, weight_decay=DECAY / BIAS_RATE),
              dict(params=network.betas, lr=BIAS_RATE, weight_decay=DECAY / BIAS_RATE),
              dict(params=[network.head], lr=HEAD_RATE, weight_decay=DECAY / HEAD_RATE)]
    sgd = torch.optim.SGD(groups, momentum=0.85, nesterov=True)
    gathered = [torch.zeros_like(w) for w in network.convs]
    first = [group["lr"] for group in sgd.param_groups]
    losses = []
    for step in range(STEPS):
        draws = DRAWS[step * BATCH : (step + 1) * BATCH]
        loss = network.loss(distorted(images, draws), labels[draws[:, 0]])
        sgd.zero_grad()
        for w in network.convs:
            w.grad = None
        loss.backward()
        with torch.no_grad():
            decay = sum(g["weight_decay"] / 2 * (p * p).sum() for g in sgd.param_groups for p in g["params"])
        losses.append((loss + decay).item() / BATCH)
        for i, group in enumerate(sgd.param_groups):
            group["lr"] = first[i] * max(0, 1 - step / (STEPS if i else BIAS_STEPS))
        sgd.step()
        with torch.no_grad():
            for w, sum_ in zip(network.convs, gathered):
                sum_.mul_(0.6).add_(w.grad)
                w.mul_(len(w) ** 0.5 / w.norm())
                w.add_(orthogonal(w.grad + 0.6 * sum_), alpha=-MUON_RATE * (1 - step / STEPS))
    values = [w.detach().permute(2, 3, 1, 0).numpy() for w in network.convs]
    values += [v.detach().numpy() for v in [network.head.T, network.bias] + network.betas]
    values += [v.numpy() for pair in network.moving for v in pair]
    return np.array(losses), values


def infer(network, x, level):
    """The record's, with its words: the weights of views."""

    def infer_mirror(inputs):
        return 0.5 * network.logits(inputs) + 0.5 * network.logits(inputs.flip(-1))

    if level < 2:
        return infer_mirror(x) if level else network.logits(x)
    padded = F.pad(x, (1,) * 4, "reflect")
    translated = [infer_mirror(padded[:, :, 0:32, 0:32]), infer_mirror(padded[:, :, 2:34, 2:34])]
    return 0.5 * infer_mirror(x) + 0.5 * torch.stack(translated).mean(0)


def look():
    """Logarithms of the probabilities that a network of first values, with other moments, gives the first images."""
    network = Record(torch.float64)
    network.training = False
    with torch.no_grad():
        network.bias += torch.tensor(noise(108, 24)) / 4
        for i, (mean, variance) in enumerate(network.moving):
            mean += torch.tensor(noise(110 + i, len(mean))) / 8
            variance += torch.tensor(noise(120 + i, len(variance))) / 2
        x = network.standardize(examples()[0][:LOOKED_AT])
        return [F.log_softmax(infer(network, x, level), 1).numpy() for level in range(3)]


def digest(values):
    """Euclidean norm, then values from all over."""
    flat = np.asarray(values, np.float64).ravel()
    places = [k * (flat.size - 1) // (SAMPLES - 1) for k in range(SAMPLES)]
    return [np.sqrt(np.sum(flat * flat))] + [flat[p] for p in places]


def numbers(values):
    return "{" + ", ".join("%.9g" % v for v in np.ravel(values)) + "}"


def error(values, truth):
    """The greatest error, as a part of the root mean square of what is right."""
    pairs = [(np.asarray(a, np.float64), np.asarray(b)) for a, b in zip(values, truth)]
    return max(np.max(np.abs(a - b)) / np.sqrt(np.mean(b * b)) for a, b in pairs)


torch.use_deterministic_algorithms(True)
losses, values = train(torch.float32)
true_losses, true_values = train(torch.float64)
if len(sys.argv) > 1:
    print(np.stack([losses, true_losses, (losses - true_losses) / true_losses], 1))
    sys.exit()
names = ["block%d/conv%d/kernel" % (b, c) for b in (1, 2, 3) for c in (1, 2)] + ["head/kernel", "whiten/bias"]
norms = ["block%d/norm%d" % (b, c) for b in (1, 2, 3) for c in (1, 2)]
names += [n + "/beta" for n in norms] + [n + part for n in norms for part in ("/moving_mean", "/moving_variance")]
with open(os.path.join(os.path.dirname(__file__), "record.h"), "w") as out:
    out.write(f"/* Made by make_record.py with PyTorch {torch.__version__.split('+')[0]}; do not edit. */\n")
    out.write(f"enum {{ RECORD_STEPS = {STEPS}, RECORD_BATCH = {BATCH}, RECORD_EXAMPLES = {EXAMPLES}, "
              f"RECORD_VALUES = {len(names)}, RECORD_SAMPLES = {SAMPLES}, RECORD_LOOKED_AT = {LOOKED_AT} }};\n")
    out.write(f"/* PyTorch's own float32 strays so far from its float64: losses {error([losses / true_losses], [np.ones(STEPS)]):.1e}, "
              f"values {error(values, true_values):.1e}. */\n")
    out.write("/* With weight decay, as a trainer says it. */\n")
    out.write(f"static const double record_losses[RECORD_STEPS] = {numbers(true_losses)};\n")
    out.write("/* After the last step: the norm of a variable, and values from all over. */\n")
    out.write("static const struct record_value {\n    const char *name;\n    double norm, samples[RECORD_SAMPLES];\n} "
              "record_values[RECORD_VALUES] = {\n")
    for name, value in zip(names, true_values):
        d = digest(value)
        out.write(f'    {{"{name}", {d[0]:.9g}, {numbers(d[1:])}}},\n')
    out.write("};\n")
    out.write("/* Which example the trainer's stream of seed 7 gives next, by how much it is shifted, whether it is flipped. */\n")
    draws = ", ".join("{" + ", ".join(map(str, draw)) + "}" for draw in DRAWS)
    out.write(f"static const int record_draws[RECORD_STEPS * RECORD_BATCH][4] = {{{draws}}};\n")
    out.write("/* Logarithms of probabilities, by one view of each image, by two and by six. */\n")
    views = ", ".join(numbers(v) for v in look())
    out.write(f"static const double record_views[3][RECORD_LOOKED_AT * 10] = {{{views}}};\n")
