"""Makes docs/suites.md from docs/suites.json, which ``benchmarks/suites.py --write`` writes.

python docs/make_suites.py            writes the page
python docs/make_suites.py --check    exit status 1 when the page is not current
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pages import write_or_check

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "suites.json"
PAGE = ROOT / "docs" / "suites.md"

HEAD = """# Suites of others

Made by `python docs/make_suites.py` from what `python benchmarks/suites.py` found on {date} with
framejit {framejit}, torch {torch} and Python {python}; do not edit. The samples of torch's own
tests run forward and backward, as plain Python and compiled with a backend that runs graphs as they
are. *The same*: results, strides, what shares memory, arguments that were written to, gradients and
errors of all samples are exactly those of plain Python. *One graph*: so is each sample captured;
*with options*: with `capture_scalar_outputs` and `capture_dynamic_output_shape_ops`, with which
what is not one graph was tried again. Suites of models have one of each architecture, run forward.

| suite | operators | tried | samples | the same | one graph | with options |
|---|---|---|---|---|---|---|
"""

OUTSIDE = """
## Tests of other libraries

The tests of these libraries that compile something, from their packages as they are, once with
`torch.compile` and once after `framejit.install()`. Skipped are those that the libraries skip where
there is no accelerator or no download. The package of transformers has no tests of models, and
there is no source package of tensordict.

| library | tests run | pass with `torch.compile` | pass with framejit | skipped |
|---|---|---|---|---|"""


def share(count: int, total: int) -> str:
    """A number, and how much of all that is; never rounded up to all of it."""
    if not total:
        return "-"
    return f"{count} ({int(1000 * count / total) / 10:g} %)"


def row(name: str, found: dict) -> str:
    """The row of a suite."""
    ran = found["ran"]
    cells = [
        f"`{name}`", str(found["operators"]), str(found["tried"]), str(found["samples"]),
        *[share(found[which], ran) for which in ("equal", "whole", "whole with options")],
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def details(name: str, found: dict) -> list[str]:
    """What is not as it should be."""
    lines = [f"\n## {name}\n"]
    if found["not applicable"]:
        lines.append(
            f"Without: {found['not applicable']} that have no samples for CPUs, or only such that "
            "plain Python raises for, or that are too large.\n"
        )
    if not found["problems"]:
        return [*lines, "All that were tried are the same, in one graph."]
    lines += ["| operator | what is not as it should be |", "|---|---|"]
    for operator, problem in found["problems"].items():
        text = problem.replace("|", "\\|").replace("\n", " ")
        lines.append(f"| `{operator}` | {text} |")
    return lines


def outside(found: dict) -> list[str]:
    """The table of tests of other libraries."""
    lines = [OUTSIDE]
    for name, one in found.items():
        cells = [f"`{name}`", *[str(one[key]) for key in ("tests", "torch", "framejit", "skipped")]]
        lines.append(f"| {' | '.join(cells)} |")
    problems = [
        (name, test, why) for name, one in found.items() for test, why in one["problems"].items()
    ]
    if problems:
        lines += [
            "\n| library | test that passes with `torch.compile` alone | why |",
            "|---|---|---|",
        ]
        lines += [f"| {name} | `{test}` | {why} |" for name, test, why in problems]
    return lines


def page(results: dict) -> str:
    """The text of the page."""
    suites = results["suites"].items()
    lines = [HEAD.format(**results) + "\n".join(row(*suite) for suite in suites)]
    for suite in suites:
        lines += details(*suite)
    if results.get("outside"):
        lines += outside(results["outside"])
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page(json.loads(RESULTS.read_text()))))
