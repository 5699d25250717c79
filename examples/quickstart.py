"""A tour in two parts: the three graphs of a small function, then BERT through Inductor.

Run it with ``make demo``. Part one shows what framejit captures: a function with a data-dependent
branch becomes three graphs, shown as tables. Part two compiles a 12-layer BERT with random weights,
for inference and for one training step, and compares with eager PyTorch and ``torch.compile`` in
the same run.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

warnings.filterwarnings("ignore")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# No images here: a torchvision that does not fit this torch must not stop transformers.
sys.modules.setdefault("torchvision", None)  # type: ignore[arg-type]

import torch  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import framejit  # noqa: E402

console = Console(highlight=False, width=None if sys.stdout.isatty() else 100)

# -- part one: what is captured ------------------------------------------------------------------


def toy_example(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def show_graphs() -> None:
    console.rule("[bold]1. One function, three graphs")
    console.print(
        "[dim]def[/] toy_example(a, b):\n"
        "    x = a / (torch.abs(a) + 1)\n"
        "    [dim]if[/] b.sum() < 0:      [dim]# depends on data: Python decides[/]\n"
        "        b = b * -1\n"
        "    [dim]return[/] x * b\n"
    )
    graphs: list[torch.fx.GraphModule] = []

    def my_compiler(
        gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]
    ) -> Callable[..., Any]:
        graphs.append(gm)
        return gm.forward

    different = 0
    with framejit.optimize(my_compiler):
        for _ in range(100):
            a, b = torch.randn(10), torch.randn(10)
            result = toy_example(a, b)
            with framejit.disable():
                different += not torch.equal(result, toy_example(a, b))
    for number, gm in enumerate(graphs, 1):
        console.print(graph_table(gm, f"graph {number}"))
    console.print(
        f"100 calls with random inputs: [bold]{len(graphs)}[/] graphs compiled, "
        f"{different} results that differ from eager.\n"
    )


def graph_table(gm: torch.fx.GraphModule, title: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in ("opcode", "name", "target", "args"):
        table.add_column(column, no_wrap=column != "args")
    for node in gm.graph.nodes:
        target = node._pretty_print_target(node.target)
        table.add_row(node.op, node.name, target, str(node.args))
    return table


# -- part two: a real model ----------------------------------------------------------------------


def bert() -> torch.nn.Module:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        num_hidden_layers=12,
        hidden_size=128,
        intermediate_size=256,
        num_attention_heads=4,
        vocab_size=1000,
        hidden_dropout_prob=0.0,  # so that training steps can be compared number by number
        attention_probs_dropout_prob=0.0,
    )
    return BertModel(config).eval()


@contextlib.contextmanager
def progress(what: str) -> Iterator[None]:
    """A spinner with the seconds, on a terminal; a line of text elsewhere."""
    if not console.is_terminal:
        console.print(f"  {what} ...")
        yield
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        bar.add_task(what)
        yield


def median_times(calls: dict[str, Callable[[], Any]], rounds: int = 40) -> dict[str, float]:
    """Milliseconds per call; the candidates take turns, so that noise hits all of them alike."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            started = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - started) * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def first_call(compiled: Callable[[], Any], what: str) -> float:
    """Seconds of the first call, with Inductor's caches on disk empty."""
    from torch._inductor.utils import fresh_cache

    with progress(what), fresh_cache():
        started = time.perf_counter()
        compiled()
        return time.perf_counter() - started


#: Compiles a function; for eager mode: leaves it alone.
Compiler = Callable[[Callable[..., Any]], Callable[..., Any]]
#: Makes what is compared of a model, its input and a compiler.
Maker = Callable[[torch.nn.Module, torch.Tensor, Compiler], Callable[[], Any]]


def capture_seconds(make: Maker, tokens: torch.Tensor) -> tuple[float, float]:
    """First-call time without a real backend: (framejit, torch.compile), each on its own copy."""
    with progress("capturing with both front ends, backend 'eager'"):
        seconds = []
        for compiler in (framejit.compile, torch.compile):
            run = make(bert(), tokens, functools.partial(compiler, backend="eager"))
            gc.collect()  # Inductor leaves much behind; that must not hit one side by chance
            started = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - started)
    return seconds[0], seconds[1]


def largest_difference(left: Any, right: Any) -> float:
    pairs = zip(left, right, strict=True)
    return max(((a - b).abs().max().item() for a, b in pairs), default=0.0)


def forward(model: torch.nn.Module, tokens: torch.Tensor, compiler: Compiler) -> Callable[[], Any]:
    compiled = compiler(model)

    def run() -> list[torch.Tensor]:
        with torch.no_grad():
            return [compiled(tokens).last_hidden_state]

    return run


def training_step(
    model: torch.nn.Module, tokens: torch.Tensor, compiler: Compiler
) -> Callable[[], Any]:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    @compiler
    def train_step(tokens: torch.Tensor) -> torch.Tensor:
        loss = model(tokens).last_hidden_state.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return lambda: [train_step(tokens)]


def compare(title: str, make: Maker) -> None:
    """Compile one way of running BERT, check it, time it, print the table."""
    console.print(f"[bold]{title}[/]")
    tokens = torch.randint(0, 1000, (2, 32), generator=torch.Generator().manual_seed(1))
    eager_model = bert()
    eager = make(eager_model, tokens, lambda function: function)
    eager()  # compared are second calls: a training step changes the model
    wanted = [tensor.clone() for tensor in eager()]

    framejit.counters.clear()
    ours = make(bert(), tokens, functools.partial(framejit.compile, backend="inductor"))
    our_first = first_call(ours, "framejit: capturing, and compiling with Inductor")
    graphs = framejit.counters["stats"]["unique_graphs"]
    breaks = sum(framejit.counters["graph_break"].values())
    difference = largest_difference(wanted, ours())

    theirs = make(bert(), tokens, functools.partial(torch.compile, backend="inductor"))
    their_first = first_call(theirs, "torch.compile: the same")
    their_difference = largest_difference(wanted, theirs())

    our_capture, their_capture = capture_seconds(make, tokens)
    with progress("timing"):
        for call in (eager, ours, theirs) * 3:
            call()
        times = median_times({"eager": eager, "framejit": ours, "torch.compile": theirs})

    table = Table()
    for column in ("", "eager", "framejit", "torch.compile"):
        table.add_column(column, justify="right" if column else "left")
    table.add_row("graphs (breaks)", "-", f"{graphs} ({breaks})", "")
    table.add_row("capture, s", "-", f"{our_capture:.2f}", f"{their_capture:.2f}")
    table.add_row("first call with Inductor, s", "-", f"{our_first:.1f}", f"{their_first:.1f}")
    table.add_row("steady state, ms per call", *[f"{value:.2f}" for value in times.values()])
    table.add_row(
        "speed-up over eager",
        "1.00",
        *[f"{times['eager'] / times[name]:.2f}" for name in ("framejit", "torch.compile")],
    )
    table.add_row(
        "largest difference to eager", "0", f"{difference:.1e}", f"{their_difference:.1e}"
    )
    console.print(table)
    console.print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--graphs-only", action="store_true", help="leave out the BERT part")
    arguments = parser.parse_args()
    started = time.perf_counter()
    console.print(
        f"framejit {framejit.__version__} on torch {torch.__version__}, "
        f"{torch.get_num_threads()} threads\n"
    )
    show_graphs()
    if not arguments.graphs_only:
        console.rule("[bold]2. BERT: 12 layers, hidden size 128, random weights, Inductor")
        with progress("importing transformers, and Inductor with torch.compile"):
            bert()
            # Starts the compiler's worker processes, which both sides use.
            torch.compile(lambda x: x.sin() + 1)(torch.ones(8))
        compare("inference", forward)
        compare("one training step", training_step)
    console.print(f"done in {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
