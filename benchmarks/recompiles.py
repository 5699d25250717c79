"""How often graph modules write and compile their Python code while BERT trains through Inductor.

Counted are real recompiles, of everybody's graph modules, in the first training step: with plain
`fx.GraphModule`s everywhere (PyTorch's own lazy ones switched off), and with framejit's lazy ones.
Each count is made in a process of its own, with empty caches.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from typing import Any

import cases
import torch


def plain_modules() -> None:
    """As if there were no lazy graph modules at all."""
    from torch._dynamo import config

    from framejit.backends import aot, inductor
    from framejit.graph import builder, nested

    config.use_lazy_graph_module = False
    aot.lazy_graph_modules = contextlib.nullcontext
    for room in (inductor, builder, nested):
        room.LazyGraphModule = torch.fx.GraphModule  # type: ignore[misc,assignment]


def count(lazy: bool) -> dict[str, float]:
    """Recompiles and the seconds they took, in one training step."""
    from torch._functorch import config as aot_config
    from torch._inductor import config as inductor_config

    import framejit

    inductor_config.force_disable_caches = True
    aot_config.enable_autograd_cache = False
    if not lazy:
        plain_modules()
    recompile = torch.fx.GraphModule.recompile
    found = {"recompiles": 0.0, "seconds": 0.0}

    def counted(self: Any) -> Any:
        found["recompiles"] += 1
        started = time.perf_counter()
        try:
            return recompile(self)
        finally:
            found["seconds"] += time.perf_counter() - started

    torch.fx.GraphModule.recompile = counted  # type: ignore[method-assign]
    torch.manual_seed(0)
    model, args, kwargs = cases.bert2_training()
    result = framejit.compile(model.train())(*args, **kwargs)
    next(iter(result.values())).float().square().mean().backward()
    return found


def measure(kind: str) -> dict[str, float]:
    """`count` in a new process."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", __file__, kind], stdout=subprocess.PIPE, text=True,
            check=True, env={**cases.os.environ, "TORCHINDUCTOR_CACHE_DIR": cache},
        )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(count(sys.argv[1] == "lazy")))
        sys.exit()
    plain, lazy = measure("plain"), measure("lazy")
    for name, found in (("plain", plain), ("lazy", lazy)):
        number, seconds = found["recompiles"], found["seconds"]
        print(f"{name:6} {number:5.0f} real recompiles, {seconds:.2f} s in them")
    print(f"{plain['recompiles'] / lazy['recompiles']:.0f} times fewer")
