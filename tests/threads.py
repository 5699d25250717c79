"""Threads of tests: all of them end, and what one raises is raised here.

In: what to do, and what to do it with. Out: what the threads returned. A thread that does not end
fails the test.
"""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def in_threads(
    work: Callable[[Any], Any], arguments: Iterable[Any], switching: float | None = None,
    seconds: float = 100,
) -> list[Any]:  # fmt: skip
    """Call ``work`` with each of the arguments in a thread of its own, all at once. ``switching``:
    seconds after which a thread lets another one go on. ``seconds``: how long each may take."""
    arguments = [*arguments]
    results, errors = [None] * len(arguments), []
    start = threading.Barrier(len(arguments))

    def run(number: int, argument: Any) -> None:
        start.wait()
        try:
            results[number] = work(argument)
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [
        threading.Thread(target=run, args=numbered, daemon=True)
        for numbered in enumerate(arguments)
    ]
    with contextlib.nullcontext() if switching is None else _switching_every(switching):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds)
            assert not thread.is_alive(), "deadlock"
    if errors:
        raise errors[0]
    return results


@contextlib.contextmanager
def _switching_every(seconds: float) -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """What ``function(*args)`` returns in another thread."""
    return in_threads(lambda _: function(*args), [None])[0]
