"""A graph as a message: what another process compiles, for what inputs, under which settings.

In: a recorded graph with its inputs. Out: bytes without a tensor of the program's but the graph's
own constants; and in the other process the graph with inputs of the same kind, whose content nobody
has set. Next: worker, deferred.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import importlib
import json
import marshal
import pickle
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.fx

from framejit import tensor_file
from framejit.graph import global_state
from framejit.graph.bounds import Assumption
from framejit.graph.expressions import Tree
from framejit.guards.shapes import ShapePlan
from framejit.package.data import Codes, Decoder, Encoder
from framejit.package.descriptions import Home, Json, Unsaveable
from framejit.package.graphs import Sizes, decode_graph, encode_graph, encode_sizes
from framejit.source import Source

#: Configurations of torch's that programs change, where they are loaded.
_CONFIGURATIONS = ("torch._inductor.config", "torch._functorch.config", "torch.compiler.config")


class Input(NamedTuple):
    """A tensor without its content. Inputs of one ``storage`` share memory."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    storage: int
    nbytes: int
    requires_grad: bool
    is_leaf: bool
    is_parameter: bool
    is_inference: bool


class TorchSettings(NamedTuple):
    """What torch is set to where a graph starts."""

    state: tuple[Any, ...]  # of `global_state.GlobalState`
    devices: tuple[torch.device, ...]
    deterministic: tuple[bool, bool]
    matmul_precision: str
    onednn: bool
    threads: int
    configurations: Mapping[str, dict[str, Any]]


class Symbol(NamedTuple):
    """What `graph.symbols.Symbol` is, for one input of the shape checks."""

    name: str
    source: Source
    kind: str
    dim: int


class SentSymbol(NamedTuple):
    """The same for another process: equal ``number``s are one source."""

    name: str
    number: int
    label: str
    kind: str
    dim: int


class Job(NamedTuple):
    """What the other process is sent."""

    backend: str
    mode: str | None
    options: dict[str, Any] | None
    #: Graph and sizes as JSON text, as packages have them.
    graph: str
    codes: list[Json]
    constants: bytes
    home: str
    inputs: list[Input]
    settings: TorchSettings
    sizes: str
    #: The inputs of the shape checks, and what is assumed of them.
    symbols: list[SentSymbol]
    checks: list[Tree]


class Compiled(NamedTuple):
    """What it sends back: the parts that its backend can give away, and what those assume of sizes
    that vary, beyond what the capture did. Without parts, ``problem`` says why. ``refused``: why
    AOTAutograd cannot trace the graph, or parts of it, which run as they are."""

    parts: dict[str, bytes] | None
    assumed: list[Tree]
    problem: str = ""
    refused: tuple[str, ...] = ()


def inputs_of(examples: Sequence[Any]) -> list[Input] | None:
    """The tensors among the inputs of a graph; None if another process cannot have their like."""
    storages: dict[int, int] = {}
    inputs = []
    for value in examples:
        if not isinstance(value, torch.Tensor):
            continue  # a number that varies
        plain = type(value) in (torch.Tensor, torch.nn.Parameter) and value.device.type == "cpu"
        if not plain or value.layout is not torch.strided or value.is_neg() or value.is_conj():
            return None
        storage = value.untyped_storage()
        number = storages.setdefault(storage._cdata, len(storages))
        inputs.append(
            Input(
                value.dtype, tuple(value.shape), value.stride(), int(value.storage_offset()),
                number, storage.nbytes(), value.requires_grad, value.is_leaf,
                isinstance(value, torch.nn.Parameter), value.is_inference(),
            )
        )  # fmt: skip
    return inputs


def make_inputs(inputs: Sequence[Input]) -> list[torch.Tensor]:
    """Tensors of that kind. Their memory is not written to, so large ones take none."""
    storages: dict[int, torch.UntypedStorage] = {}
    made = []
    for one in inputs:
        storage = storages.get(one.storage)
        if storage is None:
            storage = storages[one.storage] = torch.UntypedStorage(one.nbytes)
        with torch.inference_mode(one.is_inference), torch.enable_grad():
            tensor = torch.empty(0, dtype=one.dtype)
            tensor.set_(storage, one.offset, one.shape, one.stride)
            if one.is_parameter:
                tensor = torch.nn.Parameter(tensor, one.requires_grad)
            elif one.requires_grad:
                tensor.requires_grad_()
                if not one.is_leaf:
                    tensor = tensor.as_strided(one.shape, one.stride, one.offset)
        made.append(tensor)
    return made


def settings_now() -> TorchSettings:
    """What torch is set to now."""
    state = global_state.current()
    loaded: dict[str, Any] = {
        name: sys.modules[name] for name in _CONFIGURATIONS if name in sys.modules
    }
    return TorchSettings(
        dataclasses.astuple(state),
        global_state.default_devices(),
        (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        torch.get_float32_matmul_precision(),
        torch._C._get_mkldnn_enabled(),
        torch.get_num_threads(),
        {name: config.save_config_portable() for name, config in loaded.items()},
    )


@contextlib.contextmanager
def applied(settings: TorchSettings) -> Iterator[None]:
    """A block under these settings, in a process that has none of its own."""
    deterministic, warn_only = settings.deterministic
    torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
    torch.set_float32_matmul_precision(settings.matmul_precision)
    torch._C._set_mkldnn_enabled(settings.onednn)
    torch.set_num_threads(settings.threads)
    for name, values in settings.configurations.items():
        importlib.import_module(name).load_config(values)  # type: ignore[attr-defined]
    before = global_state.default_devices()
    global_state.set_default_devices(settings.devices)
    try:
        with global_state.GlobalState(*settings.state).applied():
            yield
    finally:
        global_state.set_default_devices(before)


@contextlib.contextmanager
def in_thread(settings: TorchSettings) -> Iterator[None]:
    """A block under those of the settings that are the thread's own."""
    state = global_state.GlobalState(*settings.state)
    state.default_dtype = torch.get_default_dtype()
    with state.applied():
        yield


def encode(
    backend: tuple[str, str | None, dict[str, Any] | None],
    module: torch.fx.GraphModule,
    inputs: list[Input],
    settings: TorchSettings,
    namespace: dict[str, Any],
    shapes: ShapePlan | None,
) -> bytes:
    """The message. Raises Unsaveable."""
    home = Home(namespace)
    encoder = Encoder(home, Codes())
    graph = encode_graph(module, encoder)
    sizes = encode_sizes(module, encoder)
    if encoder.late:
        raise Unsaveable(f"an object that has no name ({encoder.late[0]['is']})")
    symbols, checks = [], []
    if shapes is not None:
        numbers: dict[int, int] = {}
        for one in shapes.inputs:
            number = numbers.setdefault(id(one.source), len(numbers))
            symbols.append(SentSymbol(one.name, number, one.source.name, one.kind, one.dim))
        checks = [check.tree for check in shapes.checks]
    constants = tensor_file.dump(encoder.tensors) if encoder.tensors else b""
    job = Job(
        *backend, json.dumps(graph), encoder.codes.rows, constants, home.name, inputs, settings,
        json.dumps(sizes), symbols, checks,
    )  # fmt: skip
    return pickle.dumps(job)


class _Home(dict[str, Any]):
    """The names of a module of the program's, which is imported for the first one that is asked
    for."""

    def __missing__(self, name: str) -> Any:
        module = self["__name__"]
        if module == "__main__":
            raise KeyError(name)
        return vars(importlib.import_module(module))[name]


def decoded(job: Job) -> tuple[torch.fx.GraphModule, list[Any], Sizes | None]:
    """The graph of a job, what it is called with, and the sizes among that which vary."""

    def code_at(number: int) -> types.CodeType:
        code = marshal.loads(base64.b64decode(job.codes[number]["code"]))
        assert isinstance(code, types.CodeType)
        return code

    decoder = Decoder(Home(_Home(__name__=job.home)), code_at)
    if job.constants:
        decoder.tensors = tensor_file.load(memoryview(bytearray(job.constants)))
    module = decode_graph(json.loads(job.graph), decoder)
    examples: list[Any] = make_inputs(job.inputs)
    saved = json.loads(job.sizes)
    if saved is None:
        return module, examples, None
    sources: dict[int, Source] = {}
    symbols: dict[str, Any] = {}
    for name, number, label, kind, dim in job.symbols:
        source = sources.setdefault(number, Source(None, "slot", number, label))
        symbols[name] = Symbol(name, source, kind, dim)
    plan = ShapePlan(symbols, [Assumption(tree, None) for tree in job.checks], list(symbols))
    sizes = Sizes(saved, plan, decoder)
    return module, sizes.inputs(module, examples), sizes
