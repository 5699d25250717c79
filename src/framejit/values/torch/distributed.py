"""What a program asks about its process groups, and its collectives.

In: calls of `torch.distributed`. Most of what asks about ranks, sizes and meshes is Python that is
traced through; here is what its objects in C++ answer, with a guard on the answer.
Next room: graph.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _resolve_process_group
from torch.distributed.device_mesh import DeviceMesh
from torch.nn.parallel import DistributedDataParallel

from framejit.exc import GraphBreak
from framejit.graph.buckets import bucket_limits
from framejit.values.core import polyfills
from framejit.values.core.base import Args, Declared, Kwargs, Value
from framejit.values.core.constants import PURE_TYPES, ConstantValue, wrap_identity
from framejit.values.core.registry import (
    LOOKASIDES,
    NAMED_LOOKASIDES,
    Result,
    lookaside,
    refuses,
    wraps,
)
from framejit.values.core.space import Space
from framejit.values.objects.functions import BoundBuiltin, call_polyfill, function_value
from framejit.values.torch.tensors import TensorValue


class Asked(NamedTuple):
    """The answer of a process group to one question, which stays the same as long as it lives."""

    name: str

    def __repr__(self) -> str:
        return f"{self.name} of "

    def __call__(self, group: Any) -> Any:
        answer = getattr(group, self.name)
        return answer() if callable(answer) else answer


def _answers(name: str, question: Callable[..., Any]) -> None:
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        group = args[0].realize()
        if group.source is None or group.obj is None or len(args) > 1 or kwargs:
            raise GraphBreak("FJ0136", f"{name} of a {group.describe()}")
        return space.load(group.source.child("call", Asked(name)), Asked(name)(group.obj))

    LOOKASIDES[question] = handler


refuses("FJ0126", {
    DistributedDataParallel._pre_forward: "buffers are exchanged before the module runs",
    DistributedDataParallel._post_forward: "the reducer is prepared after the module has run",
})  # fmt: skip
# Processes that wait for each other in a circle must not have their order changed by a compiler.
refuses("FJ0125", dict.fromkeys(
    (dist.isend, dist.irecv, dist.batch_isend_irecv), "data is sent from one process to another"
))  # fmt: skip
for _name in ("rank", "size", "name", "_get_backend_name"):
    _answers(_name, getattr(dist.ProcessGroup, _name))
for _name in ("group_name", "group_desc", "bound_device_id"):
    _answers(_name, getattr(dist.ProcessGroup, _name).fget)
isinstance(None, dist.ProcessGroup)  # the first such question sets a global of torch's
PURE_TYPES.add(dist.ReduceOp.RedOpType)
wraps(dist.ReduceOp.RedOpType)(wrap_identity)


class Resolved(NamedTuple):
    """The process group of a name; None once there is no such group."""

    name: str

    def __repr__(self) -> str:
        return f"group {self.name} of "

    def __call__(self, resolve: Any) -> Any:
        try:
            return resolve(self.name)
        except Exception:
            return None


@lookaside(_resolve_process_group)
def _resolve(space: Space, args: Args, kwargs: Kwargs) -> Result:
    name = args[0].realize()
    known = Resolved(name.as_python())(_resolve_process_group) if name.is_constant else None
    if known is None or kwargs:
        raise GraphBreak("FJ0136", f"the process group of a {name.describe()}")
    asked = space.const_source(_resolve_process_group, "groups by name")
    return space.load(asked.child("call", Resolved(name.as_python())), known)


@lookaside(DeviceMesh.__getitem__)
def _part(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """A part of a mesh, by names of its own dimensions: it is equal in each call."""
    mesh, key = (one.realize() for one in args)
    known, names = mesh.obj, key.as_python() if key.is_constant else key
    wanted = names if isinstance(names, tuple) else (names,)
    own = known is not None and set(known.mesh_dim_names or ())
    if mesh.source is None or not own or not all(isinstance(n, str) and n in own for n in wanted):
        raise GraphBreak("FJ0131", "a part of a DeviceMesh is made")
    space.guard(mesh.source, "ID_MATCH", known)
    try:
        part = known[names]
    except Exception as error:
        raise GraphBreak("FJ0131", f"a part of a DeviceMesh is made: {error}")
    return space.load(space.const_source(part, f"part {names} of a mesh"), part)


@lookaside(dist.is_available)
def _is_available(space: Space, args: Args, kwargs: Kwargs) -> Value:
    return ConstantValue(dist.is_available())


@lookaside(DistributedDataParallel._inside_ddp_forward)
def _inside_forward(space: Space, args: Args, kwargs: Kwargs) -> Result:
    module = args[0].realize().obj
    if isinstance(module, DistributedDataParallel):
        space.builder.bucket_limits = bucket_limits(module)
    return space.call(space.class_value(contextlib.nullcontext), [], {})


def _fully_sharded(space: Space, args: Args, kwargs: Kwargs) -> Result:
    raise GraphBreak("FJ0126", "parameters of a sharded module are gathered or let go")


# What `fully_shard` runs around modules; its modules are slow to import.
_SHARDED = "torch.distributed.fsdp._fully_shard._fsdp_common"
NAMED_LOOKASIDES[_SHARDED, "_dynamo_disable.<locals>.wrapper"] = _fully_sharded


# -- collective operations ------------------------------------------------------------------------


class WorkValue(Declared):
    """What an asynchronous collective operation returns; the same graph waits for it."""

    output: TensorValue
    started: Value
    step: int
    kind = dist.Work

    def getattr(self, space: Space, name: str) -> Result:
        if name != "wait":
            raise GraphBreak("FJ0125", f"attribute {name!r} of what a collective operation returns")
        return BoundBuiltin(self, name)

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        if args or kwargs:
            raise GraphBreak("FJ0125", "waiting for a collective operation with a timeout")
        if space.effects.unfinished.pop(self, None) is not None:
            _finish(space, self.started, self.output)
        return ConstantValue(True)


def _finish(space: Space, started: Value, output: TensorValue) -> None:
    space.now(call_polyfill(space, polyfills.finish, [started, output]))


def _plain(space: Space, value: Value) -> TensorValue:
    """A tensor that is exchanged as it is, and without a gradient."""
    tensor = value.realize()
    if not isinstance(tensor, TensorValue):
        raise GraphBreak("FJ0125", f"a collective operation on a {tensor.describe()}")
    meta = tensor.metadata()
    if meta.requires_grad and torch.is_grad_enabled():
        raise GraphBreak("FJ0125", "a collective operation on a tensor that requires a gradient")
    in_order = space.now(tensor.call_method(space, "is_contiguous", [], {}))
    if meta.dtype.is_complex or not space.truth(in_order):
        raise GraphBreak("FJ0125", "a collective operation on a complex or strided tensor")
    return tensor


def _reduction(value: Value) -> Value:
    op = value.realize()
    if op.python_type() is not dist.ReduceOp.RedOpType or op.as_python() not in _REDUCTIONS:
        raise GraphBreak("FJ0125", f"a collective operation that reduces by a {op.describe()}")
    return ConstantValue(_REDUCTIONS[op.as_python()])


def _named(space: Space, function: Any, args: Args, kwargs: Kwargs) -> tuple[Kwargs, Value]:
    """The arguments of a collective operation by name, and the group that it works in."""
    importlib.import_module(_OPERATORS)
    try:
        named = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError as error:
        raise GraphBreak("FJ0125", f"{function.__name__}() is called with others: {error}")
    finder = function_value(space, polyfills.group_of)
    group = space.call_now(finder, [named.get("group", ConstantValue(None))])
    if group.is_none():
        raise GraphBreak("FJ0125", f"{function.__name__}() of a group that it only waits for")
    return named, group


@lookaside(dist.all_gather)
def _all_gather(space: Space, args: Args, kwargs: Kwargs) -> Result:
    named, group = _named(space, dist.all_gather, args, kwargs)
    source = _plain(space, named["tensor"])
    outputs = [_plain(space, output) for output in space.items(named["tensor_list"])]
    known = source.metadata()
    looks = {(one.metadata().dtype, one.metadata().shape) for one in outputs}
    if looks != {(known.dtype, known.shape)} or "async_op" in named:
        raise GraphBreak("FJ0125", "all_gather() of tensors that are not alike, or async_op=")
    size = space.call_now(space.getattr_now(group, "size"), []).realize()
    if len(outputs) != size.as_python():
        raise GraphBreak("FJ0125", "all_gather() to fewer or more tensors than there are processes")
    call = [group, named["tensor_list"], source]
    return space.call(function_value(space, polyfills.all_gather_to_list), call, {})


def _collective(function: Any, start: Any, parameters: str) -> None:
    """A call of ``function`` becomes the operator that ``start`` calls, and a copy of what that
    returns to the program's tensor. Of its ``parameters``, the first one is this tensor."""
    names = parameters.split()

    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        named, group = _named(space, function, args, kwargs)
        default = {"op": ConstantValue(dist.ReduceOp.SUM)}
        given = [named.get(n, default.get(n, ConstantValue(None))) for n in names]
        given = [_reduction(v) if n == "op" else v for n, v in zip(names, given, strict=True)]
        tensors = [_plain(space, v) for n, v in zip(names, given, strict=True) if n in _TENSORS]
        output = tensors[0]
        if any(t.metadata().dtype is not output.metadata().dtype for t in tensors):
            raise GraphBreak("FJ0125", f"{function.__name__}() of tensors of different dtypes")
        if start in _PARTS:
            many, few = tensors if start is polyfills.all_gather else reversed(tensors)
            fitting = call_polyfill(space, polyfills.fits, [group, many, few])
            if not space.truth(space.now(fitting)):
                raise GraphBreak("FJ0125", f"{function.__name__}() of tensors that do not fit")
        later = space.truth(named.get("async_op", ConstantValue(False)))
        if later and space.task.alone:  # who repeats the call would not know what is unfinished
            raise GraphBreak("FJ0125", f"{function.__name__}() that is to be waited for")
        started = space.now(call_polyfill(space, start, [group, *given]))
        if not later:
            _finish(space, started, output)
            return ConstantValue(None)
        work = WorkValue(output, started, space.step)
        space.effects.unfinished[work] = space.step
        return work

    LOOKASIDES[function] = handler


#: Where the operators are defined; slow to import.
_OPERATORS = "torch.distributed._functional_collectives"
_TENSORS = frozenset({"tensor", "input", "output", "input_tensor", "output_tensor"})
_PARTS = polyfills.all_gather, polyfills.reduce_scatter
_REDUCTIONS = {
    getattr(dist.ReduceOp, name): name.lower()
    for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")
}
for _names, _start, _parameters in (
    ("all_reduce", polyfills.all_reduce, "tensor op"),
    ("broadcast", polyfills.broadcast, "tensor src group_src"),
    ("all_gather_into_tensor all_gather_single _all_gather_base", polyfills.all_gather,
     "output_tensor input_tensor"),
    ("reduce_scatter_tensor reduce_scatter_single _reduce_scatter_base", polyfills.reduce_scatter,
     "output input op"),
    ("all_to_all_single", polyfills.all_to_all,
     "output input output_split_sizes input_split_sizes"),
):  # fmt: skip
    for _name in _names.split():
        if (_function := getattr(dist.distributed_c10d, _name, None)) is not None:
            _collective(_function, _start, _parameters)
