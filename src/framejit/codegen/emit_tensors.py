"""Tensors to expressions.

In: results of the graph, and what the program did with them. Out: their names; a leaf of autograd
is made of its elements, which the graph returns detached. Next: codegen.effects.
"""

from __future__ import annotations

import ast

import torch

from framejit.codegen.emit import Emitter, builds, call, name
from framejit.codegen.emit_containers import fill_namespace
from framejit.codegen.emit_objects import set_attributes, write_attributes
from framejit.values.torch.leaves import final_gradient
from framejit.values.torch.ragged import RaggedSize
from framejit.values.torch.tensors import TensorValue
from framejit.values.torch.wrappers import WrapperValue


@builds(TensorValue)
def _tensor(out: Emitter, value: TensorValue) -> ast.expr:
    is_leaf = _is_leaf(out, value)
    if is_leaf or value.cls is not torch.Tensor:
        _settle(out, value, "new_leaf", out.cls(value.cls), ast.Constant(is_leaf))
    return _with_attributes(out, value)


@builds(WrapperValue)
def _wrapper(out: Emitter, value: WrapperValue) -> ast.expr:
    is_leaf = _is_leaf(out, value)
    if is_leaf or value.is_parameter:
        _settle(
            out, value, "leaf_of_parts", ast.Constant(value.is_parameter), ast.Constant(is_leaf)
        )
    slots = value.settle(out.space)
    made = _with_attributes(out, value)
    if slots:
        out.later((value, "slots"), lambda: write_attributes(out, made, value, slots))
    out.last(lambda: _share_parts(out, value, made))
    return made


def _share_parts(out: Emitter, value: WrapperValue, made: ast.expr) -> None:
    """Its parts are the very objects that the program has, or had before."""
    parts = {
        key: part
        for key, part in value.shared_parts(out.space).items()
        if part.source is not None or part in out.made
    }
    if parts:
        write_attributes(out, made, value, parts)


def _is_leaf(out: Emitter, value: TensorValue) -> bool:
    return value.node in out.space.effects.made_leaves


def _settle(out: Emitter, value: TensorValue, helper: str, *arguments: ast.expr) -> None:
    """A result becomes what the program made of it, once."""
    result = out.output(value)
    if result not in out.leaves:
        out.leaves.add(result)
        leaf = call(out.helper(helper), name(result), *arguments)
        out.computations.append(ast.Assign([ast.Name(result, ast.Store())], leaf))


def _with_attributes(out: Emitter, value: TensorValue) -> ast.expr:
    made = out.made[value] = name(out.output(value))
    if value.namespace is not None:
        fill_namespace(out, made, value)
    attributes = dict(value.hook_dicts or {})
    gradient = final_gradient(out.space, value)
    if gradient is not None:
        attributes["grad"] = gradient
    if attributes:
        out.later((value, "grad"), lambda: set_attributes(out, made, attributes))
    return made


@builds(RaggedSize)
def _ragged_size(out: Emitter, value: RaggedSize) -> ast.expr:
    """The tensor is asked."""
    asked = ast.Attribute(out.value(value.tensor), "size", ast.Load())
    return out.keep(value, "size", call(asked, ast.Constant(value.dim)))
