"""What Inductor compiled, as plain parts: the wrapper's code, shared objects, constants, a plan.

In: the callable that Inductor returned. Out: bytes from which `inductor_runtime` makes an equal
callable without importing Inductor; or None when it does something that the runtime does not know
(GPU kernels, outputs that alias inputs, tensor subclasses, ...): the saved graph is then compiled
again. Nothing here changes Inductor's objects.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import json
import marshal
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from framejit import tensor_file
from framejit.graph.errors import begins_at

from . import inductor_runtime as runtime
from .context import preserved_state
from .repeatable import Found, UnknownObjects, donated, search


def serialize(compiled: Any, gm: torch.fx.GraphModule, metadata: Any) -> dict[str, bytes] | None:
    """The parts of what ``gm`` was compiled to (forward and backward), or None.

    ``metadata`` is AOTAutograd's, which the runtime of an inference graph does not hold. It is None
    for what was in AOTAutograd's cache; then the cache has it.
    """
    try:
        found = search(compiled)
        if any(backward.compiled_bw is None for backward in found.backwards):
            _compile_backward(found.backwards)
            found = search(compiled)
        if not found.metadata:
            found.metadata.append(metadata or _cached_metadata(compiled))
        plan, graphs = _plan(found, len(gm.graph.find_nodes(op="placeholder")))
        if "training" in plan:
            plan["training"]["place"] = begins_at(gm)
        parts: dict[str, bytes] = {}
        for role, graph in graphs.items():
            plan[role] = _graph_parts(graph, role, parts)
    except UnknownObjects:
        return None
    return {"plan": json.dumps(plan).encode(), **parts}


def _cached_metadata(compiled: Any) -> Any:
    entry = getattr(compiled, "serialize", None)
    if entry is None:
        raise UnknownObjects
    return entry().runtime_metadata


def _compile_backward(backwards: list[Any]) -> None:
    """Nobody has called ``backward()`` yet, but the next process may."""
    for one in backwards:
        if one.compiled_bw is None:
            try:
                with preserved_state():
                    one.get_or_compile(saved_tensors_use_once=True)
            except Exception as error:  # what Inductor raises would be raised on backward()
                raise UnknownObjects from error


# -- AOTAutograd's part ----------------------------------------------------------------------------


def _plan(found: Found, n_inputs: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """What happens around the graphs, and the graphs by role."""
    metadata = list({id(meta): meta for meta in found.metadata}.values())
    if len(metadata) != 1:
        raise UnknownObjects
    meta = metadata[0]
    # Otherwise AOTAutograd has merged arguments that are the same or views of each other.
    _require(len(meta.input_info) == n_inputs)
    _require(not meta.mutated_inp_runtime_indices and not meta.num_intermediate_bases)
    _require(not meta.tokens and not meta.is_rng_op_functionalized)
    _require(not meta.num_backward_tokens and not meta.num_graphsafe_rng_states)
    plain = {"PlainTensorMeta"}
    for metas in (meta.subclass_inp_meta, meta.subclass_fw_graph_out_meta):
        _require({type(one).__name__ for one in metas} <= plain)
    outputs = []
    for number, info in enumerate(meta.output_info):
        kind = info.output_type.name
        _require(kind in ("non_alias", "unsafe_view_alias", "custom_function_view", "is_input"))
        if kind == "is_input":
            outputs.append([number, info.base_idx])
    plan: dict[str, Any] = {
        "version": runtime.VERSION,
        "returns": meta.num_forward_returns,
        "grad_mode": meta.grad_enabled_mutation,
        "inputs_returned": outputs,
        "versions": list(meta.mutated_graph_handled_indices_seen_by_autograd),
    }
    by_role: dict[str, Any] = {}
    for graph in found.graphs:
        backward = graph.fx_kwargs.get("is_backward")
        role = "backward" if backward else "forward"
        _require(by_role.setdefault(role, graph) is graph)
    if not found.graphs and not meta.output_info:
        return plan | {"forward": None}, {}  # only the grad mode is changed: nothing to compile
    _require("forward" in by_role)
    if not by_role["forward"].fx_kwargs.get("is_inference"):
        _require("backward" in by_role and len(found.functions) == len(found.backwards) == 1)
        plan["training"] = _training(meta, donated(found.backwards[0]))
    return plan, by_role


def _require(holds: bool) -> None:
    if not holds:
        raise UnknownObjects


def _training(meta: Any, may_write: list[int]) -> dict[str, Any]:
    """How an autograd function passes values between its forward and its backward graph."""
    slices = [
        meta.tensors_saved_for_backwards_with_vc_check_slice,
        meta.tensors_saved_for_backwards_no_vc_check_slice,
        meta.symints_saved_for_backwards_slice,
    ]
    _require(not meta.num_opaque_objects_saved_for_bw)
    _require(not meta.indices_of_inputs_that_requires_grad_with_mutations_in_bw)
    surviving = [
        number
        for number, info in enumerate(meta.output_info)
        if info.output_type.name != "is_input"
        and issubclass(info.raw_type, torch.Tensor)
        and info.requires_grad_for_backward
    ]
    _require(len(surviving) == len(meta.subclass_tangent_meta))
    tangents = []
    for number, one in zip(surviving, meta.subclass_tangent_meta, strict=True):
        _require(type(one).__name__ == "PlainTensorMeta")
        memory = one.memory_format
        if memory.memory_format is not None:
            layout: Any = str(memory.memory_format).removeprefix("torch.")
        else:
            layout = [[int(n) for n in memory.size], [int(n) for n in memory.stride]]
        tangents.append([number, layout])
    return {
        "saved": [[part.start, part.stop] for part in slices],
        "unsafe_views": list(meta.unsafe_view_out_indices),
        "not_differentiable": [
            n for n, info in enumerate(meta.output_info) if not info.requires_grad
        ],
        "tangents": tangents,
        "donated": may_write,
        "deterministic": meta.deterministic,
        "inputs_require_grad": any(info.requires_grad for info in meta.input_info),
    }


# -- Inductor's part -------------------------------------------------------------------------------


def _graph_parts(graph: Any, role: str, parts: dict[str, bytes]) -> dict[str, Any]:
    """Add the parts of one compiled graph; returns their names."""
    _require(set(graph.device_types) <= {"cpu"} and not graph.frozen_param_names)
    _require(not graph.torchbind_constants and not graph.inputs_to_check)
    _require(not graph.opaque_value_type_classes)
    tree = ast.parse(graph.source_code)
    kernels = _take_kernels(tree)
    loaded = _loaded_module(graph)
    names: dict[str, list[str]] = {}
    for name in kernels:
        module = getattr(getattr(loaded, name, None), "__self__", None)
        file = getattr(module, "__file__", None)
        _require(file is not None)
        try:
            data = Path(str(file)).read_bytes()
        except FileNotFoundError as error:  # somebody has cleared Inductor's cache since
            raise UnknownObjects from error
        part = f"so {hashlib.sha256(data).hexdigest()[:24]}"
        parts[part] = data
        names[name] = [part, getattr(module, "member", "kernel")]
    _check_names(tree, {*kernels, *(graph.constants or ())})
    code = compile(tree, "<inductor>", "exec", dont_inherit=True)
    parts[f"{role}.code"] = marshal.dumps(code)
    constants = dict(graph.constants or {})
    for value in constants.values():
        _require(tensor_file.saveable(value) and value.device.type == "cpu")
    if constants:
        parts[f"{role}.constants"] = tensor_file.dump([c.detach() for c in constants.values()])
    return {"kernels": names, "constants": list(constants)}


def _loaded_module(graph: Any) -> types.ModuleType:
    """The module that Inductor made of the wrapper's code."""
    from torch._inductor.codecache import PyCodeCache  # imported already: it made the graph

    for module in PyCodeCache.modules:
        if getattr(module, "key", None) == graph.cache_key:
            return module
    raise UnknownObjects


def _take_kernels(tree: ast.Module) -> list[str]:
    """Remove imports, the compiling of kernels and the benchmark from the wrapper's code."""
    kernels: list[str] = []
    kept: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom, ast.If, ast.Delete)):
            continue
        if isinstance(statement, ast.FunctionDef) and statement.name in (
            "benchmark_compiled_module", "get_args",
        ):  # fmt: skip
            continue
        text = ast.unparse(statement)[:400]
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if "async_compile.cpp_pybinding(" in text:
                kernels.append(name)
                continue
            if name in runtime.PROVIDED or name == "async_compile":
                continue
        if isinstance(statement, ast.Expr) and "async_compile" in text:
            continue
        _require("async_compile" not in text)
        kept.append(statement)
    tree.body = kept
    return kernels


def _check_names(tree: ast.Module, known: Iterable[str]) -> None:
    """Everything that the code reads must be there when it runs."""
    available = {*known, *runtime.PROVIDED, *dir(builtins)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            available.add(node.name)
        elif isinstance(node, ast.arg):
            available.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            available.add(node.id)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            _require(node.id in available)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "extern_kernels":
                _require(hasattr(runtime.ExternKernels, node.attr))
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            raise UnknownObjects
