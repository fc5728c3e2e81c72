"""Training steps of the CIFAR-10 tutorial's network in PyTorch on the CPU; images are there already, made once.

    pytorch_step.py [--threads N] [--dtype float32|bfloat16] [--steps N] [--lrn library|band] [--compile]
    pytorch_step.py --ranks 2 --threads 1      two processes, whose gradients meet by DistributedDataParallel over gloo
    mpirun -n 2 pytorch_step.py --mpi --threads 1      by an MPI_Iallreduce each as they are made, as Horovod does

--lrn library is PyTorch's own local response normalization; band computes its window sums as a product with a banded
matrix, a 1x1 convolution, which its own tensors make faster. Prints one line of JSON. Run it with a malloc that keeps its pages (see ../../scripts/bench)."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

BATCH, WARM_UP, RADIUS, ALPHA = 128, 6, 4, 0.001 / 9

p = argparse.ArgumentParser()
p.add_argument("--threads", type=int, default=2)
p.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
p.add_argument("--steps", type=int, default=20)
p.add_argument("--lrn", choices=["library", "band"], default="library")
p.add_argument("--compile", action="store_true")
p.add_argument("--ranks", type=int, default=1)
p.add_argument("--mpi", action="store_true")
o = p.parse_args()

# Each of several processes has as many cores of its own as it has threads.
if o.ranks > 1 and "RANK" not in os.environ:
    world = {**os.environ, "WORLD_SIZE": str(o.ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29400"}
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env={**world, "RANK": str(r)}) for r in range(o.ranks)]
    sys.exit(max([r.wait() for r in ranks]))
rank = int(os.environ.get("RANK", 0))
comm = None
if o.mpi:
    from mpi4py import MPI
    comm = MPI.COMM_WORLD
    rank, o.ranks = comm.Get_rank(), comm.Get_size()
elif o.ranks > 1:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[rank * o.threads:(rank + 1) * o.threads])
    torch.distributed.init_process_group("gloo")
torch.set_num_threads(o.threads)
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 5, padding=2)
        self.conv2 = nn.Conv2d(64, 64, 5, padding=2)
        self.local3 = nn.Linear(2304, 384)
        self.local4 = nn.Linear(384, 192)
        self.softmax_linear = nn.Linear(192, 10)
        i = torch.arange(64)
        band = ((i[:, None] - i[None, :]).abs() <= RADIUS).float() * ALPHA
        self.register_buffer("band", band.reshape(64, 64, 1, 1).contiguous(memory_format=torch.channels_last))
        self.register_buffer("one", torch.ones(64))

    def norm(self, x):
        if o.lrn == "library":
            return F.local_response_norm(x, 2 * RADIUS + 1, alpha=0.001, beta=0.75, k=1.0)
        d = F.conv2d(x * x, self.band, self.one)
        r = torch.rsqrt(d)
        return x * (r * torch.sqrt(r))

    def forward(self, x):
        x = self.norm(F.max_pool2d(F.relu_(self.conv1(x)), 3, 2, ceil_mode=True))
        x = F.max_pool2d(self.norm(F.relu_(self.conv2(x))), 3, 2, ceil_mode=True)
        x = F.relu_(self.local3(x.flatten(1)))
        return self.softmax_linear(F.relu_(self.local4(x)))


net = Net().to(memory_format=torch.channels_last)
images = torch.randn(BATCH, 3, 24, 24).to(memory_format=torch.channels_last)
labels = torch.randint(0, 10, (BATCH,))
decayed = [net.local3.weight, net.local4.weight]
others = [w for w in net.parameters() if all(w is not d for d in decayed)]
# The decay of the tutorial, 0.004 w w / 2, as the optimizer's; its moving averages are left out.
sgd = torch.optim.SGD([{"params": decayed, "weight_decay": 0.004}, {"params": others}], lr=0.01, foreach=True)
forward = torch.compile(net) if o.compile else net
if comm is None and o.ranks > 1:
    forward = nn.parallel.DistributedDataParallel(forward)
under_way = []
if comm:
    def send(w):
        under_way.append((w, comm.Iallreduce(MPI.IN_PLACE, w.grad.detach().permute(*sorted(
            range(w.dim()), key=lambda i: -w.grad.stride(i))).numpy())))
    for weight in net.parameters():
        weight.register_post_accumulate_grad_hook(send)


def step():
    if o.dtype == "bfloat16":
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = forward(images)
        loss = F.cross_entropy(logits.float(), labels)
    else:
        loss = F.cross_entropy(forward(images), labels)
    sgd.zero_grad(set_to_none=True)
    loss.backward()
    for w, request in under_way:
        request.Wait()
        w.grad /= o.ranks
    under_way.clear()
    sgd.step()
    return loss.item()


first = step()
for _ in range(WARM_UP - 1):
    step()
times = []
for _ in range(o.steps):
    begin = time.perf_counter()
    loss = step()
    times.append((time.perf_counter() - begin) * 1e3)
ms = statistics.median(times)
if rank == 0:
    print(json.dumps({"peer": "PyTorch", "version": torch.__version__, "dtype": o.dtype, "threads": o.threads,
                      "ranks": o.ranks, "ms": round(ms, 4), "images_per_second": round(o.ranks * BATCH / ms * 1e3, 1),
                      "first_loss": round(first, 4), "loss": round(loss, 4)}))
if comm is None and o.ranks > 1:
    torch.distributed.destroy_process_group()
