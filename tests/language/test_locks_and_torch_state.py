"""Locks, random generators, gradient flags and inference mode in captured code: the operations
inside, after and around them are captured."""

from __future__ import annotations

import threading

import pytest
import torch

import framejit
from checking import CountingBackend, Outcome, check, compare_outcomes
from threads import in_thread, in_threads

LOCK, RLOCK = threading.Lock(), threading.RLock()
WEIGHT = torch.nn.Parameter(torch.ones(2))


def lock_in_with(x):
    y = x + 1
    with LOCK:
        y = y * 2
        print(LOCK.locked())
        y = y + 1
    print(LOCK.locked())
    return y.sin()


def reentrant_lock(x):
    y = x + 1
    with RLOCK:
        with RLOCK:
            y = y * 2
        y = y + 1
    return y.sin()


def acquire_and_release(x):
    LOCK.acquire()
    try:
        y = x * 2
    finally:
        LOCK.release()
    return y + 1


def error_under_a_lock(x):
    try:
        with LOCK:
            y = x * 2
            float("a" * int(y.numel()))
    except ValueError as error:
        print(error, LOCK.locked())
        y = y + 1
    return y.sin()


def guarded(x):
    with LOCK:
        return x * 2


def lock_in_a_callee(x):
    y = guarded(x + 1)
    return guarded(y + 1) + 1


def lock_that_is_not_acquired(x):
    with LOCK:
        if LOCK.acquire(blocking=False):
            x = x * 3
        x = x + 1
    return x.cos()


def condition_in_with(x):
    condition = threading.Condition()
    with condition:
        x = x * 2
        condition.notify_all()
        x = x + 1
    return x.cos()


def lock_in_a_generator(x):
    generator = torch.Generator().manual_seed(3)
    y = x + 1
    return y + torch.rand(2, generator=generator)


def manual_seed_of_the_program(x):
    y = x + 1
    torch.manual_seed(3)
    return y + torch.rand(2)


def fork_rng(x):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        y = torch.rand(2) + x
    return y * 2 + torch.rand(2)


def state_of_the_generator(x):
    state = torch.get_rng_state()
    y = torch.rand(2) + x
    torch.set_rng_state(state)
    return y * 2 + torch.rand(2)


def requires_grad_as_it_is(x):
    WEIGHT.requires_grad_()
    y = (x * 2).requires_grad_(False)
    return y * WEIGHT.requires_grad_(requires_grad=True)


def requires_grad_is_changed(x):
    y = (x + 1).detach().requires_grad_()
    return (y * 2).sum(), y.requires_grad


def frozen_and_back(x):
    WEIGHT.requires_grad_(False)
    y = x * WEIGHT
    print(y.requires_grad)
    WEIGHT.requires_grad_(True)
    return y + x * WEIGHT


def data_of_a_parameter(x):
    y = x + 1
    y.data.add_(1)
    y.data = y.data * 2
    return y * 3


def inference_mode(x):
    with torch.inference_mode():
        y = x * 2 + 1
        print(y.is_inference(), torch.is_inference_mode_enabled())
    return y.clone() + 1


@torch.inference_mode()
def inference_mode_decorator(x):
    return x * 2 + 1


def tolist_of_a_tensor(x):
    y = x + 1
    first, second = y.tolist()
    return y * first + second


def autograd_grad(x):
    x = x.detach().requires_grad_()
    y = (x**2).sum()
    (gradient,) = torch.autograd.grad(y, x)
    return gradient * 2


def backward_of_a_loss(x):
    w = torch.ones(2, requires_grad=True)
    (w * x).sum().backward()
    return w.grad * 2


PROGRAMS = [
    (lock_in_with, 4, 4), (reentrant_lock, 4, 4), (acquire_and_release, 2, 2),
    (error_under_a_lock, 2, 3), (lock_in_a_callee, 5, 5), (lock_that_is_not_acquired, 2, 2),
    (condition_in_with, 3, 3), (lock_in_a_generator, 2, 2), (manual_seed_of_the_program, 2, 3),
    (fork_rng, 2, 5), (state_of_the_generator, 2, 5), (requires_grad_as_it_is, 1, 2),
    (requires_grad_is_changed, 2, 4), (frozen_and_back, 2, 4), (data_of_a_parameter, 2, 6),
    (inference_mode, 2, 4), (inference_mode_decorator, 1, 2), (tolist_of_a_tensor, 2, 3),
    (autograd_grad, 1, 7), (backward_of_a_loss, 1, 7),
]  # fmt: skip


@pytest.mark.parametrize(("program", "graphs", "ops"), PROGRAMS)
def test_locks_and_state_of_torch(program, graphs, ops) -> None:
    counting = CountingBackend()
    compiled = framejit.compile(program, backend=counting)
    sides = []
    for call in (program, compiled, compiled):
        torch.manual_seed(0)
        outcome = Outcome(call, (torch.ones(2),), {})
        assert outcome.error is None and WEIGHT.requires_grad and not LOCK.locked()
        sides.append((outcome, torch.rand(1)))
    for ours in sides[1:]:
        compare_outcomes(sides[0][0], ours[0])
        assert torch.equal(sides[0][1], ours[1]), "the random state"
    assert (len(counting.graphs), counting.ops) == (graphs, ops)


def test_two_threads_and_one_lock() -> None:
    """What is done under the lock is done by one thread at a time."""
    counts = {"now": 0, "most": 0}

    @framejit.disable
    def busy(step):
        counts["now"] += step
        counts["most"] = max(counts["most"], counts["now"])

    def work(x):
        with LOCK:
            busy(1)
            for _ in range(20):
                x = x + 1
            busy(-1)
        return x * 2

    counting = CountingBackend()
    compiled = framejit.compile(work, backend=counting)
    compiled(torch.zeros(2))
    results = []
    in_threads(lambda _: results.extend(compiled(torch.zeros(2)) for _ in range(50)), range(3))
    assert counts == {"now": 0, "most": 1} and len(results) == 150
    assert all(torch.equal(result, torch.full((2,), 40.0)) for result in results)
    assert (len(counting.graphs), counting.ops) == (2, 21)


OF_A_THREAD = threading.local()


def test_attributes_of_a_thread() -> None:
    """Each thread finds its own; they are read in the graph's frame, and checked in each call."""

    def read(x):
        return x + OF_A_THREAD.value + getattr(OF_A_THREAD, "missing", 1)

    counting = CountingBackend()
    compiled = framejit.compile(read, backend=counting, fullgraph=True)
    results = []

    def work(value):
        OF_A_THREAD.value = value
        results.append((compiled(torch.zeros(2)), read(torch.zeros(2))))
        if value == 2:
            OF_A_THREAD.missing = 5
            results.append((compiled(torch.zeros(2)), read(torch.zeros(2))))

    for value in (1, 2, 1):
        in_thread(work, value)
    assert len(results) == 4 and all(torch.equal(ours, theirs) for ours, theirs in results)


class Counting(threading.local):
    def __init__(self):
        self.n, self.seen = 3, []

    @property
    def doubled(self):
        return self.n * 2


COUNTING = Counting()


def counts_depth(x, k):
    OF_A_THREAD.depth = getattr(OF_A_THREAD, "depth", 0) + 1
    try:
        y = x * OF_A_THREAD.depth
        COUNTING.n += k
        COUNTING.seen.append(k)
        COUNTING.last = y
        y = y + COUNTING.n + COUNTING.doubled
    finally:
        OF_A_THREAD.depth -= 1
    del COUNTING.last
    try:
        del OF_A_THREAD.last
    except AttributeError as error:
        return y, str(error), list(vars(COUNTING)), COUNTING.seen, OF_A_THREAD.__dict__["depth"]


def test_attributes_of_a_thread_change() -> None:
    counting = CountingBackend()
    compiled = framejit.compile(counts_depth, backend=counting, fullgraph=True)
    results = {counts_depth: [], compiled: []}

    def work(function, depth):
        OF_A_THREAD.depth = depth
        for k in (1, 2, 3):
            results[function].append(str(function(torch.ones(2), k)))
        results[function].append((OF_A_THREAD.depth, vars(COUNTING)))

    for depth in (0, 4, 0):
        for function in results:
            in_thread(work, function, depth)
    assert results[compiled] == results[counts_depth]
    assert len(counting.graphs) <= 3, "compiled again in each thread"


def test_inference_mode_costs_two_breaks() -> None:
    """One where it is entered and one where it is left; what is between them is a graph."""

    def program(x):
        y = x + 1
        with torch.inference_mode():
            z = y * 2
        return (x * 3).sum(), z, z.is_inference(), torch.is_inference_mode_enabled()

    framejit.counters.clear()
    check(program, torch.ones(2), graphs=3, ops=4)
    assert framejit.counters["graph_break"] == {"inference mode is entered or left": 2}


def test_the_dict_of_a_thread() -> None:
    class Local(threading.local):
        pass

    local = Local()

    def read(x):
        return x + 1, "n" in vars(local), "n" in local.__dict__, getattr(local, "n", 0)

    compiled = framejit.compile(read, backend="eager")
    for change in (lambda: None, lambda: setattr(local, "n", 5), lambda: delattr(local, "n")):
        change()
        assert compiled(torch.ones(1))[1:] == read(torch.ones(1))[1:]


@pytest.mark.parametrize(
    ("setter", "wrong"),
    [
        (torch.set_default_dtype, (torch.int32,)),
        (torch.set_autocast_dtype, ("cpu", 3)),
        (torch.set_autocast_enabled, ("no such device", True)),
    ],
)
def test_states_that_are_refused(setter, wrong) -> None:
    """The program sees the setter's error, in one graph."""

    def program(x):
        y = x * 2
        try:
            setter(*wrong)
        except (TypeError, RuntimeError) as error:
            return y + 1, type(error), str(error)
        return y

    check(program, torch.ones(2), graphs=1, ops=2)
