"""Programs that others have written, as they are: the same answers, and in how many graphs?

The samples of torch's own tests (`torch.testing._internal`): every operator of ``op_db``, and its
``hop_db``, ``custom_op_db`` and ``autograd_function_db``. Each sample runs forward and, where it
can be differentiated, backward; as plain Python, and compiled with a backend that runs graphs as
they are, twice. Everything is compared exactly: results, what they share, strides, arguments that
were written to, gradients, errors.

    python benchmarks/suites.py                       all of it (hours)
    python benchmarks/suites.py op_db --every 5       each fifth operator
    python benchmarks/suites.py op_db --only linalg   those with this in their name, again
    python benchmarks/suites.py op_db --problems      those that were not as they should be, again

What is not one graph is tried again as programs that want it captured would be run: with
``capture_scalar_outputs`` and ``capture_dynamic_output_shape_ops``. The suite ``timm_models`` has
one of each architecture (`model_suite`). The suites einops, accelerate and tensordict are the tests
of these libraries that compile something, from the folder that ``--tests`` names (`outside`).

A process runs a few operators; what it has found is kept in build/suites.jsonl, so a run that was
interrupted goes on where it was (``--again`` begins anew). ``--write`` writes docs/suites.json, of
which docs/make_suites.py makes the page.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import datetime
import importlib
import json
import os
import select
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import outside
import torch

ROOT = Path(__file__).parents[1]
FOUND = ROOT / "build" / "suites.jsonl"
RESULTS = ROOT / "docs" / "suites.json"
SUITES = {
    "op_db": "torch.testing._internal.common_methods_invocations",
    "hop_db": "torch.testing._internal.hop_db",
    "custom_op_db": "torch.testing._internal.custom_op_db",
    "autograd_function_db": "torch.testing._internal.autograd_function_db",
    "timm_models": "model_suite",
}
#: So many operators run in one process, each for at most so many seconds.
CHUNK = 25
PATIENCE = 240
#: So many samples of an operator, taken evenly from all that it has.
SAMPLES = 6
DTYPES = (torch.float32, torch.float64, torch.complex64, torch.int64, torch.bool, torch.uint8)


def operators(suite: str) -> list[Any]:
    """What a suite consists of, in its order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: list[Any] = getattr(importlib.import_module(SUITES[suite]), suite)
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.testing._internal") and hasattr(module, "wrapper_set_seed"):
            module.wrapper_set_seed = called  # type: ignore[attr-defined]
    return found


def called(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """In place of a call with a seed of torch's tests, which set it inside of what is compiled:
    here it is set outside (`outcome_of`)."""
    return function(*args, **kwargs)


def name_of(operator: Any) -> str:
    """An operator's name, with that of the variant."""
    variant = operator.variant_test_name
    return f"{operator.name}.{variant}" if variant else str(operator.name)


# -- one operator ----------------------------------------------------------------------------------


def samples_of(operator: Any) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Arguments, and keyword arguments."""
    if hasattr(operator, "samples"):
        yield from operator.samples()
        return
    dtypes = operator.supported_dtypes("cpu")
    dtype = next((one for one in (*DTYPES, *dtypes) if one in dtypes), None)
    if dtype is None:  # it is for accelerators
        return
    numbers = dtype.is_floating_point or dtype.is_complex
    gradients = numbers and operator.supports_autograd
    torch.manual_seed(0)
    found = list(operator.sample_inputs("cpu", dtype, requires_grad=gradients))
    step = max(1, len(found) // SAMPLES)
    for sample in found[::step][:SAMPLES]:
        yield [sample.input, *sample.args], dict(sample.kwargs)


def tensors_in(found: Any) -> list[torch.Tensor]:
    """The tensors in a structure."""
    leaves = torch.utils._pytree.tree_leaves(found)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def copied(arguments: Any) -> Any:
    """The same with new tensors. Those that are no leaves of autograd's graph cannot be copied, nor
    can those without a storage."""
    memo = {
        id(t): t.detach().clone().requires_grad_(t.requires_grad)
        for t in tensors_in(arguments)
        if not t.is_leaf or t.layout is not torch.strided
    }
    return copy.deepcopy(arguments, memo)


def outcome_of(function: Callable[..., Any], arguments: Any) -> dict[str, Any]:
    """What a call returns or raises, its arguments afterwards, and their gradients."""
    args, kwargs = copied(arguments)
    given = [t for t in tensors_in([args, kwargs]) if t.requires_grad]
    torch.manual_seed(1)
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "args": (args, kwargs)}
    outcome = {"result": result, "args": (args, kwargs)}
    results = [t for t in tensors_in(result) if t.requires_grad]
    if given and results:
        torch.manual_seed(2)
        with contextlib.suppress(RuntimeError):  # not implemented, say
            outcome["gradients"] = torch.autograd.grad(
                results, given, [torch.ones_like(one) for one in results], allow_unused=True
            )
    return outcome


def difference(expected: Any, got: Any) -> str:
    """What differs between two outcomes; empty if nothing does."""
    from framejit.audit.comparison import Comparison, Difference, Tolerance

    try:
        Comparison(Tolerance(0, 0), consume=True).compare(expected, got, "outcome")
    except Difference as found:
        return str(found)
    return ""


def tried(function: Callable[..., Any], arguments: Any) -> dict[str, Any]:
    """One sample: what differs, how many graphs it takes, and why more than one."""
    import framejit
    from framejit.report import events

    graphs: list[Any] = []

    def backend(module: Any, examples: list[Any]) -> Any:
        graphs.append(module)
        return module

    expected = outcome_of(function, arguments)
    repeatable = not difference(expected, outcome_of(function, arguments))
    compiled = framejit.compile(function, backend=backend)
    kinds = (events.GraphBreak, events.FrameSkipped, events.InternalFailure)
    with events.recording(*kinds) as met:
        outcomes = [outcome_of(compiled, arguments) for _ in range(2)]
    differs = ""
    for outcome in outcomes if repeatable else ():
        differs = differs or difference(expected, outcome)
    reasons = sorted({f"{type(one).__name__}: {one.reason}" for one in met})
    return {
        "differs": differs,
        "repeatable": repeatable,
        "raises": "error" in expected,
        "graphs": len(graphs),
        "reasons": reasons,
    }


def run_operator(operator: Any) -> dict[str, Any]:
    """What becomes of an operator's samples, in short; of those that break, also with the options
    by which numbers and sizes that depend on data are captured."""
    from framejit import config

    found = run_samples(operator)
    if found.get("whole", 0) < found.get("samples", 0):
        with config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
            found["with options"] = run_samples(operator)
    return found


def run_samples(operator: Any) -> dict[str, Any]:
    """Run an operator's samples as the options are now."""
    found: dict[str, Any] = collections.Counter()
    reasons: collections.Counter[str] = collections.Counter()
    differences: list[str] = []
    function = operator.op

    def program(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    for args, kwargs in samples_of(operator):
        one = tried(program, (args, kwargs))
        found["samples"] += 1
        found["equal"] += not one["differs"]
        found["unrepeatable"] += not one["repeatable"]
        found["raises"] += one["raises"]
        found["whole"] += one["graphs"] <= 1 and not one["reasons"]
        reasons.update(one["reasons"])
        if one["differs"]:
            differences.append(one["differs"])
    return {**found, "reasons": dict(reasons), "differences": differences[:3]}


def child(suite: str, positions: list[int]) -> None:
    """Run these operators; one line each."""
    sys.path.insert(0, str(ROOT / "src"))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what programs print is none of our answers
    warnings.simplefilter("ignore")
    known = operators(suite)
    for position in positions:
        started = time.perf_counter()
        try:
            found = run_operator(known[position])
        except Exception as error:
            found = {"failed": f"{type(error).__name__}: {error}"[:500]}
        found |= {"suite": suite, "name": name_of(known[position]), "position": position}
        found["seconds"] = round(time.perf_counter() - started, 1)
        print(json.dumps(found), file=out, flush=True)


# -- all of them -----------------------------------------------------------------------------------


def lines_of(process: subprocess.Popen[str], patience: float) -> Iterator[str]:
    """The lines of a process until it ends, or says nothing for so many seconds."""
    assert process.stdout is not None
    while select.select([process.stdout], [], [], patience)[0]:
        line = process.stdout.readline()
        if not line:
            return
        yield line


def run_chunk(suite: str, positions: list[int], names: list[str]) -> Iterator[dict[str, Any]]:
    """Run operators in processes: one that ends its process, or the time, has failed."""
    rest = list(positions)
    while rest:
        command = [sys.executable, __file__, suite, "--child", *map(str, rest)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            for line in lines_of(process, PATIENCE):
                rest.pop(0)
                yield json.loads(line)
        finally:
            process.kill()
            status = process.wait()
        if rest:
            why = f"the process ended with {status}" if status != -9 else "it takes too long"
            lost = rest.pop(0)
            yield {"suite": suite, "name": names[lost], "position": lost, "failed": why}


def known_results() -> dict[tuple[str, str], dict[str, Any]]:
    """What was found so far, the newest for each operator."""
    lines = FOUND.read_text().splitlines() if FOUND.exists() else []
    return {(one["suite"], one["name"]): one for one in map(json.loads, lines)}


def run(suite: str, every: int, only: str, again: bool, problems: bool) -> None:
    """Run what is not known yet, and say what is not as it should be."""
    names = [name_of(one) for one in operators(suite)]
    known = {} if again or only else known_results()
    if problems:
        known = {key: one for key, one in known.items() if not problem_of(one)}
    wanted = [
        position for position, name in enumerate(names)
        if position % every == 0 and only in name and (suite, name) not in known
    ]  # fmt: skip
    FOUND.parent.mkdir(exist_ok=True)
    done = 0
    with FOUND.open("a") as file:
        chunk = 5 if suite == "timm_models" else CHUNK
        for start in range(0, len(wanted), chunk):
            for found in run_chunk(suite, wanted[start : start + chunk], names):
                print(json.dumps(found), file=file, flush=True)
                done += 1
                if problem := problem_of(found):
                    print(f"{done}/{len(wanted)} {found['name']}: {problem}", flush=True)


def problem_of(found: dict[str, Any]) -> str:
    """What is not as it should be; empty if all is well."""
    if "failed" in found:
        return str(found["failed"]).partition(". ")[0][:160]
    for one in (found, found.get("with options", {})):
        if one.get("differences"):
            return f"DIFFERS: {one['differences'][0]}"
    if not_applicable(found):
        return ""
    found = found.get("with options", found)
    if found.get("whole", 0) < found.get("samples", 0):
        return "; ".join(found["reasons"]) or "fake tensors do not do for it"
    return ""


def not_applicable(found: dict[str, Any]) -> bool:
    """Has it no samples for CPUs, or does plain Python raise for all of them?"""
    samples = found.get("samples", 0)
    return "failed" not in found and samples == found.get("raises", 0)


def is_the_same(found: dict[str, Any]) -> bool:
    """Do all samples what plain Python does, with either options?"""
    both = (found, found.get("with options", found))
    return all(one["equal"] == one["samples"] for one in both)


def summary() -> dict[str, Any]:
    """What the page says: figures for each suite, and what is not as it should be."""
    import framejit

    by_suite: dict[str, list[dict[str, Any]]] = {}
    for one in known_results().values():
        by_suite.setdefault(one["suite"], []).append(one)
    made: dict[str, Any] = {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "framejit": framejit.__version__,
        "torch": torch.__version__.partition("+")[0],
        "python": ".".join(map(str, sys.version_info[:2])),
        "suites": {},
        "outside": outside.known_results(),
    }
    for suite in SUITES:
        found = sorted(by_suite.get(suite, []), key=lambda one: one["position"])
        if not found:
            continue
        ran = [one for one in found if "failed" not in one and not not_applicable(one)]
        best = [one.get("with options", one) for one in ran]
        made["suites"][suite] = {
            "operators": len(operators(suite)),
            "tried": len(found),
            "ran": len(ran),
            "samples": sum(one["samples"] for one in ran),
            "equal": sum(map(is_the_same, ran)),
            "whole": sum(one["whole"] == one["samples"] for one in ran),
            "whole with options": sum(one["whole"] == one["samples"] for one in best),
            "not applicable": sum(map(not_applicable, found)),
            "problems": {one["name"]: problem_of(one) for one in found if problem_of(one)},
        }
    return made


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "suites", nargs="*", default=list(SUITES), metavar="suite",
        help=", ".join([*SUITES, *outside.LIBRARIES]),
    )  # fmt: skip
    parser.add_argument("--every", type=int, default=1, help="one of so many operators only")
    parser.add_argument("--only", default="", help="operators with this in their name")
    parser.add_argument("--tests", type=Path, help="where the tests of other libraries are")
    parser.add_argument("--again", action="store_true", help="also what is known already")
    parser.add_argument("--problems", action="store_true", help="also what was not as it should be")
    parser.add_argument("--write", action="store_true", help="write docs/suites.json, run nothing")
    parser.add_argument("--child", nargs="+", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.suites[0], given.child)
    elif given.write:
        RESULTS.write_text(json.dumps(summary(), indent=1) + "\n")
    else:
        for suite in given.suites:
            if suite in outside.LIBRARIES:
                outside.run(suite, given.tests)
                continue
            run(suite, given.every, given.only, given.again, given.problems)


if __name__ == "__main__":
    main()
