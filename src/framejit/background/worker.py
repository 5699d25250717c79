"""The process that compiles: ``python -m framejit.background.worker HANDLE``.

In: jobs, through a pipe. Out: what each was compiled to. It runs until the pipe is closed, gives
way to whoever else wants the processor, and prints nothing to standard output. Next: crew.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from framejit.backends import configured_backend
from framejit.backends.compile import compile_graph
from framejit.background.job import Compiled, Job, applied, decoded

#: How much less of the processor it wants than others do.
_NICENESS = 10


def compiled(job: Job) -> Compiled:
    """A job, done."""
    backend = configured_backend(job.backend, job.mode, job.options)
    refused: list[str] = []
    with applied(job.settings):
        module, examples, sizes = decoded(job)
        run = compile_graph(backend, job.backend, module, examples, refused=refused.append)
        parts: dict[str, bytes] | None = backend.serialize(run, module)  # type: ignore[attr-defined]
    assumed = [] if sizes is None else [assumption.tree for assumption in sizes.news()]
    if parts is None:
        problem = "what it is compiled to cannot be given to another process"
        return Compiled(None, assumed, problem, tuple(refused))
    return Compiled(parts, assumed, refused=tuple(refused))


def answer(message: bytes) -> bytes:
    """What is sent back for a message; an error is the problem in one line."""
    try:
        done: Any = compiled(pickle.loads(message))
    except Exception as error:  # whatever the backend, or a module of the program's, may raise
        cause = error.__cause__ or error
        first = (str(cause).splitlines() or [""])[0]
        done = Compiled(None, [], f"{type(cause).__name__}: {first}")
    return pickle.dumps(done)


def main(arguments: list[str]) -> None:
    """Work until there is nobody left to work for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the program
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    sys.stdout = sys.stderr
    pipe = Connection(int(arguments[0]))
    with contextlib.suppress(EOFError, OSError):
        sys.path[:] = pickle.loads(pipe.recv_bytes())
        while True:
            pipe.send_bytes(answer(pipe.recv_bytes()))


if __name__ == "__main__":
    main(sys.argv[1:])
