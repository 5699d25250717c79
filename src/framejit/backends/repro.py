"""A graph that a backend fails on, as a file to send to its makers.

In: the graph and its example inputs. Out: the path of a Python file that needs only torch (and the
backend): it builds the module, makes inputs of the same metadata, and calls the backend. Next:
compile.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.fx

_HEAD = '''"""The backend {name!r} failed on this graph: {error}.

Run it with `python {file}`: first as PyTorch runs it, then with the backend.
"""

import torch
from torch import device, inf, nan  # noqa: F401  (the graph may use them)


class Graph(torch.nn.Module):
'''


def save(
    gm: torch.fx.GraphModule, example_inputs: Sequence[Any], name: str, error: BaseException
) -> Path | None:
    """Write the file; None if the graph cannot be written as text of its own."""
    try:
        text = _text(gm, example_inputs, name, error)
        folder = Path(tempfile.mkdtemp(prefix="framejit_repro_"))
        path = folder / f"{re.sub(r'[^a-zA-Z0-9]+', '_', name)}.py"
        path.write_text(text.replace("{file}", path.name))
    except Exception:  # a report must never hide the error that it reports
        return None
    return path


def _text(
    gm: torch.fx.GraphModule, example_inputs: Sequence[Any], name: str, error: BaseException
) -> str:
    summary = f"{type(error).__name__}: {error}".splitlines()[0][:200].replace('"""', "'''")
    text = _HEAD.format(name=name, error=summary, file="{file}")
    constants = [(n, v) for n, v in _constants(gm) if isinstance(v, torch.Tensor)]
    if len(constants) != len(_constants(gm)):
        raise ValueError("the graph holds another graph")
    if constants:
        text += "    def __init__(self):\n        super().__init__()\n"
        for target, value in constants:
            text += f"        self.{target} = {_like(value)}\n"
        text += "\n"
    python = gm.graph.python_code("self", verbose=False)
    for imported, value in python.globals.items():
        module = getattr(value, "__name__", None)
        used = re.search(rf"\b{re.escape(imported)}\b", python.src) is not None
        if used and imported not in ("torch", "device", "inf", "nan"):
            if type(value).__name__ != "module" or module is None:
                raise ValueError(f"the graph uses {imported}, which no import leads to")
            text = text.replace("import torch\n", f"import torch\nimport {module}\n", 1)
    code = python.src.strip("\n")
    text += "\n".join(f"    {line}".rstrip() for line in code.splitlines()) + "\n\n\n"
    text += f"torch.set_grad_enabled({torch.is_grad_enabled()})\ntorch.manual_seed(0)\ninputs = [\n"
    text += "".join(f"    {_like(value)},\n" for value in example_inputs) + "]\n"
    text += "print([getattr(result, 'shape', result) for result in Graph()(*inputs)])\n\n"
    text += f"import framejit  # noqa: E402\n\ngm = torch.fx.symbolic_trace(Graph())\n"  # noqa: F541
    text += f"compiled = framejit.backends.lookup_backend({name!r})(gm, inputs)\n"
    text += "print([getattr(result, 'shape', result) for result in compiled(*inputs)])\n"
    compile(text, "repro", "exec")
    return text


def _constants(gm: torch.fx.GraphModule) -> list[tuple[str, Any]]:
    targets = [str(node.target) for node in gm.graph.find_nodes(op="get_attr")]
    return [(target, getattr(gm, target)) for target in dict.fromkeys(targets)]


def _like(value: Any) -> str:
    """An expression for a tensor of the same metadata, with other data."""
    if not isinstance(value, torch.Tensor):
        hint = getattr(getattr(value, "node", None), "hint", value)
        return repr(hint)
    shape, stride, dtype = tuple(value.shape), tuple(value.stride()), value.dtype
    shape, stride = (tuple(int(n) for n in part) for part in (shape, stride))
    made = f"torch.empty_strided({shape}, {stride}, dtype={dtype}, device={str(value.device)!r})"
    made += ".normal_()" if dtype.is_floating_point or dtype.is_complex else ".zero_()"
    return made + (".requires_grad_()" if value.requires_grad else "")
