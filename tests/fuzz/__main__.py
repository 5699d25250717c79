"""``python tests/fuzz FIRST LAST [--mode MODE] [--shrink N]``: run the fuzzer over seeds."""

from __future__ import annotations

import argparse
import collections
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from reached import report_symbolic, trace_captures  # noqa: E402
from runner import MODES, run  # noqa: E402
from shrinker import shrink  # noqa: E402

from programs import program_of  # noqa: E402


def main() -> int:
    """Print failures and totals; the result is the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--mode", choices=MODES, default="plain")
    parser.add_argument("--shrink", type=int, default=0, help="make so many failures small")
    parser.add_argument("--stop", action="store_true", help="end at the first failure")
    parser.add_argument("--show", action="store_true", help="print the programs")
    parser.add_argument("--coverage", action="store_true", help="trace captures, too")
    options = parser.parse_args()
    traced = trace_captures() if options.coverage else None
    failures = skipped = raised = calls = graphs = late = 0
    reasons: collections.Counter[str] = collections.Counter()
    breaks: collections.Counter[str] = collections.Counter()
    start = time.time()
    for seed in range(options.first, options.last):
        program = program_of(seed)
        if options.show:
            print(program.own, *program.calls, sep="\n")
        report = run(program, options.mode, seed)
        skipped += bool(report.skipped)
        raised += report.raised
        late += report.late
        calls += report.calls
        graphs += report.graphs
        reasons.update(report.skipped)
        breaks.update(report.breaks)
        if report.failure:
            failures += 1
            lines = report.failure.splitlines()
            print(f"seed {seed}: {report.signature}: {' '.join(lines[:3])[:300]}", flush=True)
            if "crash" in report.signature or "raised" in report.signature:
                print("   ", lines[-1][:300])
            if failures <= options.shrink:
                small = shrink(program, options.mode, seed)
                print(small.text, flush=True)
            if options.stop:
                return 1
    if traced is not None:
        report_symbolic(traced)
    count = options.last - options.first
    print(
        f"{count} programs, {calls} calls ({raised} raise), {graphs} graphs, {failures} failures, "
        f"{late} errors behind a write, "
        f"{skipped} with skipped frames, {time.time() - start:.0f} s"
    )
    print("skipped:", reasons.most_common(10))
    print("breaks:", breaks.most_common(25))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
