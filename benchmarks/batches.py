"""A zoo of programs at one batch size after another: is it right, what is compiled again?

    python benchmarks/batches.py --path FOLDER                     # a folder with zoo.py
    python benchmarks/batches.py --path FOLDER --cases hf/bert hf/vilt --further 0

Each program is called at its first batch size (twice), its second, its third and, by framejit only,
at further ones; each result is compared with eager mode. Counted are the graphs that each size
adds, by framejit and by torch.compile. The end lists every program that compiles a graph again more
than once, again at the third size, or more graphs than torch.compile does.
"""

from __future__ import annotations

import argparse
import json
import random
from typing import Any

import cases
import numpy
import torch

import models

# on the path since cases was imported
from checking import CountingBackend, Outcome, compare_outcomes

FURTHER = (4, 6, 7, 8, 10, 11, 12, 13, 14, 17)


def calls_of(case: Any, compile_: Any, sizes: list[int], after: Any) -> list[Outcome]:
    """What a program does, called at one size after the other; ``after`` each call."""
    function = case.build(sizes[0])[0]
    if hasattr(function, "apply_compile"):  # it says what of it is compiled
        function.apply_compile(compile_)
    else:
        function = compile_(function)
    outcomes = []
    for size in sizes:
        _, args, kwargs = case.build(size)
        torch.manual_seed(7)
        random.seed(7)
        numpy.random.seed(7)
        with torch.set_grad_enabled(case.kind not in ("eval", "gen")):
            outcomes.append(Outcome(function, args, kwargs))
        after()
    return outcomes


def measure(case: Any, compiler: str, further: tuple[int, ...]) -> dict[str, Any]:
    """The graphs that each call adds, and the first difference to eager mode."""
    torch.set_num_threads(1)
    first, *others = case.batches
    sizes = [first, first, *others, *(size for size in further if others)]
    eager = calls_of(case, lambda function: function, sizes, lambda: None)
    backend, made = CountingBackend(), list[int]()
    got = calls_of(
        case, lambda function: cases.compile_with(compiler, function, backend), sizes,
        lambda: made.append(len(backend.graphs) - sum(made)),
    )  # fmt: skip
    wrong = ""
    for size, one, two in zip(sizes, eager, got, strict=True):
        try:
            compare_outcomes(one, two)
        except Exception as error:  # how they differ, in words
            wrong = wrong or f"size {size}: {str(error) or repr(error)}"
    return {"graphs": made, "wrong": wrong}


def judged(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """What is not as it should be."""
    if "error" in ours or ours["wrong"]:
        return [ours.get("error") or ours["wrong"]]
    made = ours["graphs"]
    first, second, third = made[0], sum(made[1:3]), sum(made[3:4])
    found = []
    if second > max(first, 1):
        found.append("more than one at the second size")
    if third:
        found.append("one at the third size")
    peer = theirs.get("graphs", [0])
    if peer[0] and second + third > sum(peer[1:4]):  # else it has captured nothing
        found.append("more than torch.compile")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--path", required=True, help="where zoo.py lies")
    parser.add_argument("--cases", nargs="*", help="some of the programs")
    parser.add_argument("--further", type=int, default=len(FURTHER), help="how many further sizes")
    parser.add_argument("--compilers", nargs="*", default=cases.COMPILERS)
    parser.add_argument("--out", help="a file for the figures, a line of JSON per program")
    options = parser.parse_args()
    models.zoo(options.path)
    import transformers  # noqa: F401 - once, not in each process
    import zoo  # type: ignore[import-not-found]

    remarks = []
    names = options.cases or zoo.CASES
    for name in names:
        case, found = zoo.CASES[name], {}
        for compiler in options.compilers:
            further = FURTHER[: options.further] if compiler == "framejit" else ()
            found[compiler] = cases.in_fork(
                lambda c=case, k=compiler, f=further: measure(c, k, f)  # type: ignore[misc]
            )
        ours = found.get("framejit", {"graphs": [0], "wrong": ""})
        theirs = found.get("torch.compile", {})
        remark = ", ".join(judged(ours, theirs))
        line = f"{name:32} " + "   ".join(
            f"{compiler} {figures.get('graphs') or figures.get('error')}"
            for compiler, figures in found.items()
        )
        print(line, remark, flush=True)
        if options.out:
            with open(options.out, "a") as file:
                file.write(json.dumps({"case": name, **found, "remark": remark}) + "\n")
        if remark:
            remarks.append(f"{line} {remark}")
    print(f"\n{len(names) - len(remarks)} of {len(names)} programs as they should be; the others:")
    print(*remarks, sep="\n")


if __name__ == "__main__":
    main()
