"""Captured graphs as files, and back.

In: a graph with its inputs. Out: ``KEY.json`` (nodes, the user's line, torch's settings) and
``KEY.safetensors`` (inputs, constants); a `Subgraph` made from them can be compiled and run.
Nothing is pickled. Next: trial.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.fx

from framejit import tensor_file
from framejit.exc import PackageError
from framejit.files import replacing
from framejit.graph.errors import begins_at
from framejit.package.data import Decoder, Encoder
from framejit.package.descriptions import Home, Json, Unsaveable
from framejit.package.graphs import decode_graph, encode_graph

__all__ = ["Subgraph", "Unsaveable", "current_settings", "graph_key", "load", "save"]

VERSION = 1


def current_settings() -> Json:
    """Torch's settings that decide what a graph computes."""
    devices = [d for d in ("cpu", "cuda") if torch.is_autocast_enabled(d)]
    return {
        "grad": torch.is_grad_enabled(),
        "autocast": [[d, str(torch.get_autocast_dtype(d)).removeprefix("torch.")] for d in devices],
    }


def graph_key(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> str | None:
    """The same for the same graph on inputs of the same kind, in every process; None for a graph
    that has no text of its own."""
    try:
        return _encoded(gm, inputs, current_settings())[0]
    except Unsaveable:
        return None


def _encoded(
    gm: torch.fx.GraphModule, inputs: Sequence[Any], settings: Json
) -> tuple[str, Json, Encoder]:
    """Key, graph and encoder. Raises Unsaveable."""
    encoder = Encoder(Home({}), _NoCodes())  # type: ignore[arg-type]
    graph = encode_graph(gm, encoder)
    if encoder.late:
        raise Unsaveable("an object that no import leads to")
    constants = [_kind(value) for value in encoder.tensors]
    described = [_nameless(graph), constants, _kinds(gm, inputs), settings]
    text = json.dumps(described, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16], graph, encoder


def _nameless(graph: Json) -> Json:
    """What a graph computes, whatever its inputs and attributes are called."""
    attributes = {name: number for number, name in enumerate(graph["attributes"])}
    rows = []
    for op, _, target, args, named in graph["nodes"]:
        if op == "placeholder":
            target = None
        elif op == "get_attr":
            target = attributes[target]
        rows.append([op, target, args, named])
    values = graph["attributes"].values()
    return [rows, [[v[0], _nameless(v[1])] if v[0] == "graph" else v for v in values]]


class _NoCodes:
    def add(self, code: Any, module: str) -> int:
        raise Unsaveable("a code object")


def _kinds(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> list[str]:
    """Of which kind each input is; sizes that vary by the names of their symbols."""
    if all(isinstance(value, torch.Tensor) for value in inputs):
        return [_kind(value) for value in inputs]
    placeholders = gm.graph.find_nodes(op="placeholder")
    known = [node.meta.get("example_value") for node in placeholders]
    return [
        _kind(value if like is None else like) for like, value in zip(known, inputs, strict=True)
    ]


def _kind(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return f"{type(value).__name__} {value}"
    strides = tuple(value.stride()) if value.layout is torch.strided else ()
    return f"{value.dtype} {value.device} {tuple(value.shape)} {strides} {value.requires_grad}"


def save(folder: Path, gm: torch.fx.GraphModule, inputs: Sequence[Any], settings: Json) -> Path:
    """Write a graph, unless the folder has it; its path. Raises Unsaveable, OSError."""
    key, graph, encoder = _encoded(gm, inputs, settings)
    path = folder / f"{key}.json"
    if path.exists():
        return path
    rows: list[Json] = []
    for value in inputs:
        if not isinstance(value, torch.Tensor):  # a symbol; its value of now
            rows.append(["number", value.node.hint if _symbolic(value) else value])
        elif not tensor_file.saveable(value):
            raise Unsaveable(f"a tensor of class {type(value).__qualname__}, {value.dtype}")
        else:
            rows.append(["tensor", encoder.tensor(value)[1], value.is_leaf])
    data = {
        "framejit subgraph": VERSION, "key": key, "line": begins_at(gm), "settings": settings,
        "inputs": rows, "graph": graph,
        "text": [line for line in str(gm.graph).splitlines() if line],
    }  # fmt: skip
    with replacing(path.with_suffix(".safetensors")) as file:
        file.write(tensor_file.dump(encoder.tensors))
    with replacing(path) as file:  # last: it says that all is there
        file.write(json.dumps(data, indent=1).encode())
    return path


def _symbolic(value: Any) -> bool:
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


# -- and back --------------------------------------------------------------------------------------


class Subgraph:
    """One recorded graph: ``key``, ``line`` (the user's), ``training`` (gradients are wanted),
    ``operations`` (their number). Raises PackageError for a file that `record` did not write."""

    def __init__(self, path: Path) -> None:
        try:
            data = json.loads(path.read_bytes())
            if data["framejit subgraph"] != VERSION:
                raise PackageError("it was written by another release of framejit")
            self.key: str = data["key"]
            self.line: str = data["line"]
            self._data = data
            held = path.with_suffix(".safetensors").read_bytes()
            self._tensors = tensor_file.load(memoryview(bytearray(held)))
            rows = data["graph"]["nodes"]
            self.operations = sum(row[0].startswith("call") for row in rows)
            self._grad: bool = data["settings"]["grad"]
            self._autocast = [(d, getattr(torch, t)) for d, t in data["settings"]["autocast"]]
            given = [self._tensors[row[1]] for row in data["inputs"] if row[0] == "tensor"]
        except PackageError as error:
            raise PackageError(f"{path} cannot be used: {error}") from error
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise PackageError(f"{path} is no recorded graph: {reason}") from error
        self.training = self._grad and any(value.requires_grad for value in given)
        self.device = given[0].device.type if given else "cpu"

    def module(self) -> torch.fx.GraphModule:
        """The graph, made anew: backends may change it."""
        decoder = Decoder(Home({}), _no_code)
        decoder.tensors = [value.detach().clone() for value in self._tensors]
        return decode_graph(self._data["graph"], decoder)

    def inputs(self, scale: float = 1.0) -> list[Any]:
        """Fresh inputs as recorded; those of floating point times ``scale``."""
        made: list[Any] = []
        for row in self._data["inputs"]:
            if row[0] == "number":
                made.append(row[1])
                continue
            value = self._tensors[row[1]].detach()
            copy = torch.empty_strided(
                value.shape, value.stride(), dtype=value.dtype, device=value.device
            ).copy_(value)
            if scale != 1.0 and value.is_floating_point():
                copy.mul_(scale)
            copy.requires_grad_(self._tensors[row[1]].requires_grad)
            made.append(copy)
        return made

    @property
    def inner(self) -> list[int]:
        """Which inputs are results of other differentiable operations: they may be written to."""
        return [
            number for number, row in enumerate(self._data["inputs"])
            if row[0] == "tensor" and not row[2]
        ]  # fmt: skip

    @contextlib.contextmanager
    def settings(self) -> Iterator[None]:
        """Torch's settings as they were when the graph was recorded."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.set_grad_enabled(self._grad))
            for device, dtype in self._autocast:
                stack.enter_context(torch.autocast(device, dtype=dtype))
            yield


def _no_code(number: int) -> Any:
    raise PackageError("a recorded graph holds no code")


def load(folder: str | os.PathLike[str]) -> list[Subgraph]:
    """The recorded graphs in a folder, in the order of their keys. Raises PackageError, OSError."""
    return [Subgraph(path) for path in sorted(Path(folder).glob("*.json")) if _is_ours(path)]


def _is_ours(path: Path) -> bool:
    return len(path.stem) == 16 and path.with_suffix(".safetensors").exists()
