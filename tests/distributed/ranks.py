"""Runs functions in several processes that form one group, over gloo on the loopback interface.

The processes start once for all tests; a test gives them a function of its module and gets what
each rank returned. A rank that fails, or waits for another one for too long, ends them all.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

#: How long a rank may take for one function, in seconds.
PATIENCE = 100


class Ranks:
    """``count`` processes, started when they are needed."""

    def __init__(self, count: int = 2) -> None:
        self.count = count
        self.pipes: list[Any] = []
        self.processes: list[Any] = []

    def run(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """What ``function(rank, *args)`` returned in each process."""
        if not self.processes:
            self._start()
        for pipe in self.pipes:
            pipe.send((function, args))
        answers = []
        for rank, pipe in enumerate(self.pipes):
            try:
                answered = pipe.poll(PATIENCE)
                failed, answer = pipe.recv() if answered else (True, "it gave no answer")
            except EOFError:
                failed, answer = True, "the process ended"
            if failed:
                self.close()
                pytest.fail(f"rank {rank}: {answer}", pytrace=False)
            answers.append(answer)
        return answers

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        store = os.path.join(tempfile.mkdtemp(), "store")
        for rank in range(self.count):
            ours, theirs = context.Pipe()
            args = rank, self.count, store, theirs, list(sys.path)
            process = context.Process(target=_serve, args=args, daemon=True)
            process.start()
            self.pipes.append(ours)
            self.processes.append(process)

    def close(self) -> None:
        """End the processes."""
        for process in self.processes:
            process.kill()
            process.join()
        self.pipes, self.processes = [], []


def _serve(rank: int, count: int, store: str, pipe: Any, path: list[str]) -> None:
    sys.path[:] = path
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    import torch
    import torch.distributed

    import framejit

    torch.set_num_threads(1)
    join(rank, count, store)
    framejit.config.raise_internal_errors = True
    while True:
        try:
            function, args = pipe.recv()
        except EOFError:
            return
        framejit.counters.clear()
        torch.manual_seed(0)
        try:
            pipe.send((False, function(rank, *args)))
        except BaseException:  # noqa: BLE001 - the test says so
            pipe.send((True, traceback.format_exc()))


def join(rank: int, count: int, store: str) -> None:
    """Form the group of all processes."""
    import torch.distributed

    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=count,
        timeout=timedelta(seconds=PATIENCE),
    )  # fmt: skip


@contextlib.contextmanager
def without_group(rank: int) -> Iterator[str]:
    """The processes are on their own meanwhile; gives the name of a file for a group of theirs."""
    import torch.distributed as dist

    names: list[Any] = [tempfile.mkdtemp() if rank == 0 else None]
    count = dist.get_world_size()
    dist.broadcast_object_list(names)
    dist.destroy_process_group()
    try:
        yield os.path.join(names[0], "other")
    finally:
        join(rank, count, os.path.join(names[0], "store"))
