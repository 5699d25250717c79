"""Which backend runs a recorded graph fastest, and correctly.

In: a `Subgraph` and candidates. Out: an `Outcome` per candidate. Each is compiled, then compared
with PyTorch's own operators (results, written inputs, gradients; on the recorded inputs and on
others), and only those that pass are timed: in turn, so that noise hits all alike. Next: winners.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.utils._pytree import tree_flatten

from framejit.backends import configured_backend, list_backends
from framejit.backends.compile import compile_graph
from framejit.backends.context import preserved_state

if TYPE_CHECKING:
    from framejit.autotune.subgraphs import Subgraph

REFERENCE = "eager"
#: A sample calls a graph as often as takes this many seconds, so that the clock is exact enough.
_SAMPLE = 1e-3
_CALLS = 1000
#: How often the samples of those are taken that noise does not allow to tell apart.
_ROUNDS = 5
#: Relative to the largest magnitude of a result.
_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3, torch.bfloat16: 3e-2, torch.float16: 1e-2}


class Candidate(NamedTuple):
    """A backend with a mode, written ``backend`` or ``backend:mode``."""

    backend: str
    mode: str | None = None

    @classmethod
    def parse(cls, text: str) -> Candidate:
        """Raises exc.UnknownBackend or ValueError for what cannot be used."""
        name, _, mode = text.strip().partition(":")
        made = cls(name, mode or None)
        configured_backend(name, made.mode)
        return made

    def __str__(self) -> str:
        return self.backend if self.mode is None else f"{self.backend}:{self.mode}"


class Outcome(NamedTuple):
    """``seconds`` per call (None: not timed, because of ``problem``); for training graphs, forward
    and backward together."""

    candidate: Candidate
    seconds: float | None
    problem: str = ""


class Result(NamedTuple):
    """One graph's outcomes, eager first."""

    subgraph: Subgraph
    outcomes: list[Outcome]

    @property
    def timed(self) -> dict[str, float]:
        """Seconds by candidate, of those that passed."""
        return {str(o.candidate): o.seconds for o in self.outcomes if o.seconds is not None}

    @property
    def winner(self) -> str | None:
        """The fastest; None if not even eager ran."""
        timed = self.timed
        return min(timed, key=timed.__getitem__) if timed else None

    def speedup(self, name: str) -> float | None:
        """How many times as fast as eager a candidate is; None where one of both has no time."""
        timed = self.timed
        return timed[REFERENCE] / timed[name] if REFERENCE in timed and name in timed else None


def default_candidates(device: str = "cpu") -> list[Candidate]:
    """Every installed backend that is not for debugging."""
    only_on_gpus = () if device == "cuda" else ("cudagraphs", "tensorrt")
    names = [name for name in list_backends() if name not in ("autotuned", *only_on_gpus)]
    return [Candidate(name) for name in names]


def try_all(
    subgraph: Subgraph,
    candidates: Sequence[Candidate],
    repeats: int = 15,
    step: Callable[[str], None] = lambda what: None,
) -> Result:
    """Time eager and every candidate on one graph; ``step`` is told what is being done."""
    with preserved_state(), subgraph.settings():
        try:
            checks = [_Check(subgraph, scale) for scale in (1.0, 0.875)]
        except Exception as error:
            problem = f"PyTorch's own operators fail: {_short(error)}"
            return Result(subgraph, [Outcome(Candidate(REFERENCE), None, problem)])
        order = [Candidate(REFERENCE), *[c for c in candidates if c != Candidate(REFERENCE)]]
        runs: dict[Candidate, _Run] = {}
        problems: dict[Candidate, str] = {}
        for candidate in order:
            step(str(candidate))
            try:
                run = _compiled(subgraph, candidate)
                problem = next(filter(None, [check.wrong(run) for check in checks]), "")
            except Exception as error:
                problem = f"it fails: {_short(error)}"
            if problem:
                problems[candidate] = problem
            else:
                runs[candidate] = run
        step("timing")
        seconds = _timed(subgraph, runs, repeats)
    outcomes = [Outcome(c, seconds.get(c), problems.get(c, "")) for c in order]
    return Result(subgraph, outcomes)


def _short(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else '(no message)'}"[:200]


_Run = Callable[..., Any]


def _compiled(subgraph: Subgraph, candidate: Candidate) -> _Run:
    backend = configured_backend(candidate.backend, candidate.mode)
    return compile_graph(backend, str(candidate), subgraph.module(), subgraph.inputs())


# -- what a call leaves behind ---------------------------------------------------------------------


def _call(subgraph: Subgraph, run: _Run, leaves: list[Any]) -> tuple[list[Any], list[Any]]:
    """Results and gradients of one call; in training a backward pass belongs to it, and inputs that
    come from other operations do so here, too."""
    inner = subgraph.inner if subgraph.training else ()
    given = [
        value.clone() if number in inner and value.requires_grad else value
        for number, value in enumerate(leaves)
    ]
    results, _ = tree_flatten(run(*given))
    ends = [r for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
    if not subgraph.training or not ends:
        return results, []
    starts = [x for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad]
    grads = torch.autograd.grad(ends, starts, [torch.ones_like(r) for r in ends], allow_unused=True)
    return results, list(grads)


class _Check:
    """What eager computes from certain inputs, to compare with."""

    def __init__(self, subgraph: Subgraph, scale: float) -> None:
        self._subgraph = subgraph
        self._scale = scale
        self._expected = self._everything(subgraph.module().forward, 0)
        again = self._everything(subgraph.module().forward, 1)
        #: Random numbers come out otherwise in each compiler: then only kinds are compared.
        self._random = _difference(self._expected, again, exact=True) != ""

    def _everything(self, run: _Run, seed: int) -> list[Any]:
        leaves = self._subgraph.inputs(self._scale)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            results, grads = _call(self._subgraph, run, leaves)
        return [*results, *grads, *leaves]

    def wrong(self, run: _Run) -> str:
        """How the candidate differs, in a few words; "" if it does not."""
        text = _difference(self._expected, self._everything(run, 0), kinds_only=self._random)
        return text and f"wrong: {text}"


def _difference(
    expected: list[Any], got: list[Any], exact: bool = False, kinds_only: bool = False
) -> str:
    if len(expected) != len(got):
        return f"{len(got)} values instead of {len(expected)}"
    for number, (one, two) in enumerate(zip(expected, got, strict=True)):
        if text := _different(one, two, exact, kinds_only):
            return f"value {number} {text}"
    return ""


def _different(one: Any, two: Any, exact: bool, kinds_only: bool) -> str:
    tensors = isinstance(one, torch.Tensor), isinstance(two, torch.Tensor)
    if not all(tensors):
        same = not any(tensors) and one == two
        return "" if same else f"is {two!r:.40} instead of {one!r:.40}"
    if (one.shape, one.dtype, one.device) != (two.shape, two.dtype, two.device):
        return f"is {_words(two)} instead of {_words(one)}"
    if kinds_only or one.numel() == 0:
        return ""
    one, two = one.detach(), two.detach()
    if not one.is_floating_point() and not one.is_complex():
        return "" if torch.equal(one, two) else "differs"
    largest = one[one.isfinite()].abs().max().item() if one.isfinite().any() else 0.0
    tolerance = 0.0 if exact else _TOLERANCE.get(one.dtype, 1e-3) * max(largest, 1e-6)
    if torch.allclose(two, one, rtol=0.0, atol=tolerance, equal_nan=True):
        return ""
    off = (two - one).abs().nan_to_num(float("inf")).max().item()
    return f"is off by {off:.2g}, of {largest:.2g}"


def _words(value: torch.Tensor) -> str:
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)} on {value.device}"


# -- time ------------------------------------------------------------------------------------------


def _timed(subgraph: Subgraph, runs: dict[Candidate, _Run], repeats: int) -> dict[Candidate, float]:
    """Median seconds per call; samples are taken in turn, in changing order. After ``repeats`` of
    everybody's come more of those whose samples overlap with the fastest's."""
    inputs = {candidate: subgraph.inputs() for candidate in runs}
    counts = {c: _calls_per_sample(subgraph, run, inputs[c]) for c, run in runs.items()}
    samples: dict[Candidate, list[float]] = {candidate: [] for candidate in runs}
    order = list(runs)
    for _ in range(_ROUNDS):
        for turn in range(repeats):
            first = turn % max(len(order), 1)
            for c in order[first:] + order[:first]:
                samples[c].append(_sample(subgraph, runs[c], inputs[c], counts[c]) / counts[c])
        order = _near_the_fastest({candidate: samples[candidate] for candidate in order})
        if len(order) < 2:
            break
    return {candidate: statistics.median(all_) for candidate, all_ in samples.items()}


def _near_the_fastest(samples: dict[Candidate, list[float]]) -> list[Candidate]:
    """Those whose faster quarter reaches into the slower quarter of the fastest."""
    if not samples:
        return []
    fastest = min(samples.values(), key=statistics.median)
    limit = sorted(fastest)[len(fastest) * 3 // 4]
    return [c for c, all_ in samples.items() if sorted(all_)[len(all_) // 4] <= limit]


def _calls_per_sample(subgraph: Subgraph, run: _Run, inputs: list[Any]) -> int:
    for _ in range(2):  # warm
        _sample(subgraph, run, inputs, 1)
    seconds = _sample(subgraph, run, inputs, 1)
    return max(1, min(_CALLS, int(_SAMPLE / max(seconds, 1e-9))))


def _sample(subgraph: Subgraph, run: _Run, inputs: list[Any], count: int) -> float:
    on_gpu = subgraph.device == "cuda"
    if on_gpu:
        torch.cuda.synchronize()
    call = (lambda: _call(subgraph, run, inputs)) if subgraph.training else (lambda: run(*inputs))
    started = time.perf_counter()
    for _ in range(count):
        call()
    if on_gpu:
        torch.cuda.synchronize()
    return time.perf_counter() - started
