"""Training steps of ResNet-44 for CIFAR-10 in PyTorch on the CPU; images are there already, made once.

    pytorch_resnet_step.py [--threads N] [--steps N]

Images lie channels last. Prints one line of JSON; processor_ms is the time of all processors in a step. Run it with a
malloc that keeps its pages (see ../../scripts/bench)."""
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

BATCH, WARM_UP, BLOCKS = 128, 3, 7

p = argparse.ArgumentParser()
p.add_argument("--threads", type=int, default=2)
p.add_argument("--steps", type=int, default=10)
o = p.parse_args()
torch.set_num_threads(o.threads)
torch.manual_seed(0)


def conv(channels, filters, stride):
    return nn.Conv2d(channels, filters, 3, stride, 1, bias=False)


class Block(nn.Module):
    def __init__(self, channels, filters, stride):
        super().__init__()
        self.conv1, self.norm1 = conv(channels, filters, stride), nn.BatchNorm2d(filters)
        self.conv2, self.norm2 = conv(filters, filters, 1), nn.BatchNorm2d(filters)
        self.stride, self.more = stride, (filters - channels) // 2

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        y = self.norm2(self.conv2(y))
        if self.more:
            x = F.pad(F.avg_pool2d(x, self.stride), (0, 0, 0, 0, self.more, self.more))
        return F.relu(y + x, inplace=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = conv(3, 16, 1), nn.BatchNorm2d(16)
        stages, channels = [], 16
        for filters, stride in ((16, 1), (32, 2), (64, 2)):
            for i in range(BLOCKS):
                stages.append(Block(channels, filters, 1 if i else stride))
                channels = filters
        self.stages, self.dense = nn.Sequential(*stages), nn.Linear(channels, 11)

    def forward(self, x):
        return self.dense(self.stages(F.relu(self.norm(self.conv(x)), inplace=True)).mean((2, 3)))


net = Net().to(memory_format=torch.channels_last)
images = torch.randn(BATCH, 3, 32, 32).to(memory_format=torch.channels_last)
labels = torch.randint(0, 10, (BATCH,))
sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=2e-4, foreach=True)


def step():
    loss = F.cross_entropy(net(images), labels)
    sgd.zero_grad(set_to_none=True)
    loss.backward()
    sgd.step()
    return loss.item()


first = step()
for _ in range(WARM_UP - 1):
    step()
times, processor_times = [], []
for _ in range(o.steps):
    begin, processor = time.perf_counter(), time.process_time()
    loss = step()
    times.append((time.perf_counter() - begin) * 1e3)
    processor_times.append((time.process_time() - processor) * 1e3)
ms = statistics.median(times)
print(json.dumps({"peer": "PyTorch", "version": torch.__version__, "threads": o.threads, "ms": round(ms, 4),
                  "processor_ms": round(statistics.median(processor_times), 4),
                  "images_per_second": round(BATCH / ms * 1e3, 1), "first_loss": round(first, 4),
                  "loss": round(loss, 4)}))
