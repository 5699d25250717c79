"""Training steps of a data-parallel model, with all that framejit keeps on disk, and a compiled
function in which the processes talk.

    KILLED=where RANK=0 WORLD_SIZE=2 python killed.py folder backend

The process of rank 1 ends abruptly in the middle of a capture, of a backend, of a backend for the
function, or of writing a file; where ``KILLED`` is empty, it does not.
"""

import os
import signal
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import framejit
from framejit.backends.registry import lookup_backend

FOLDER, BACKEND = sys.argv[1:]


def end(where):
    """End abruptly, if it is here."""
    if where == os.environ["KILLED"] and dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        framejit.comptime(lambda context: end("capture"))
        return self.two(torch.relu(self.one(x)))


def ending(where):
    """The backend, with an end before it returns; itself, if there is none."""

    def backend(module, inputs):
        compiled = lookup_backend(BACKEND)(module, inputs)
        end(where)
        return compiled

    return backend if where == os.environ["KILLED"] else BACKEND


def added(x):
    y = x * 2
    dist.all_reduce(y)  # the others are asked here
    return y + 1


def half(file):
    """In the place of `os.fsync`: half of a file has been written."""
    os.ftruncate(file, os.fstat(file).st_size // 2)
    end("files")


def main():
    if "MASTER_ADDR" in os.environ:  # torchrun
        dist.init_process_group("gloo")
    else:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        store = f"file://{os.environ['STORE']}"
        dist.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
    torch.manual_seed(0)
    model = Model()
    compiled = framejit.compile(model, backend=ending("backend"))
    package = os.path.join(FOLDER, f"model-{dist.get_rank()}.package")
    if os.path.exists(package):
        compiled.load_package(package)
    training = DistributedDataParallel(compiled)
    for size in (4, 5):  # the second one is noted in the profile
        x = torch.randn(size, 8)
        training(x).square().mean().backward()
    torch.testing.assert_close(training(x), model(x))
    if dist.get_rank() == 1 and os.environ["KILLED"] == "files":
        os.fsync = half
    if BACKEND == "inductor":
        compiled.save_package(package)
    total = framejit.compile(added, backend=ending("collective"), fullgraph=True)(x)
    torch.testing.assert_close(total, added(x))
    print("done, whole:", bool(total.sum()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
