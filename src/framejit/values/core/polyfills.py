"""Builtin and library functions written in Python, traced through like the user's own code.

In: a call of a C function that itself calls user code, or that makes a lazy iterator. Out: frames
that the interpreter inlines, so that a graph break inside a user's callback can be continued.
Everything here also runs as plain Python, with the semantics of the original.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_unflatten

#: Some builds of torch are without.
c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
_MISSING = object()


# -- modules ------------------------------------------------------------------------------------


def calling(compiled: Any) -> Any:
    """A plain function that calls ``compiled``."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return compiled(*args, **kwargs)

    return call


def no_context() -> Iterator[None]:
    """What `contextlib.contextmanager` makes a block of that does nothing."""
    yield


def forward_of(original: torch.nn.Module) -> types.FunctionType:
    """``forward`` of a module's compiled counterpart."""

    def forward(module: torch.nn.Module, /, *args: Any, **kwargs: Any) -> Any:
        return type(original).forward(original, *args, **kwargs)

    return forward  # type: ignore[return-value]


# -- autograd -----------------------------------------------------------------------------------


def accumulate(leaves: list[torch.Tensor], gradients: list[torch.Tensor]) -> None:
    """What ``backward`` does with the gradients of leaves."""
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    for leaf, gradient in zip(leaves, gradients, strict=True):
        if leaf.grad is None:
            leaf.grad = gradient
        else:
            leaf.grad.add_(gradient)
    torch._C._set_grad_enabled(before)


def accumulate_with_history(leaves: list[Any], gradients: list[Any], stored: Any) -> None:
    """What ``backward(create_graph=True)`` does with the gradients of leaves."""
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(True)
    for leaf, gradient in zip(leaves, gradients, strict=True):
        if gradient is not None:
            leaf.grad = stored(leaf, gradient) if leaf.grad is None else leaf.grad + gradient
    torch._C._set_grad_enabled(before)


def retain(results: list[torch.Tensor], gradients: list[torch.Tensor]) -> None:
    """What ``backward`` does with the gradients of results that keep them."""
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    for result, gradient in zip(results, gradients, strict=True):
        if result.grad is None:
            result.grad = gradient.clone(memory_format=torch.contiguous_format)
        else:
            result.grad = result.grad + gradient
    torch._C._set_grad_enabled(before)


def with_zeros(gradients: Any, inputs: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Gradients, zeros for those that are None."""
    pairs = zip(gradients, inputs, strict=True)
    return tuple([torch.zeros_like(tensor) if g is None else g for g, tensor in pairs])


def changed_by_hooks(gradient: torch.Tensor, hooks: list[Any]) -> torch.Tensor:
    """What the hooks of a leaf make of its gradient."""
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    for hook in hooks:
        changed = hook(gradient)
        if changed is not None:
            gradient = changed
    torch._C._set_grad_enabled(before)
    return gradient


def seen_by_hooks(gradient: torch.Tensor, hooks: list[Any]) -> Any:
    """What the hooks of a result make of its gradient. Those of autograd's nodes take and return
    tuples."""
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    for hook, of_node in hooks:
        changed = hook((gradient,), (gradient,)) if of_node else hook(gradient)
        if changed is not None:
            gradient = changed[0] if of_node else changed
    torch._C._set_grad_enabled(before)
    return gradient


def call_last_hooks(leaf: torch.Tensor, hooks: list[Any]) -> list[Any]:
    """The hooks that see a leaf once its gradient is stored."""
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    results = [hook(leaf) for hook in hooks]
    torch._C._set_grad_enabled(before)
    return results


# -- collective operations --------------------------------------------------------------------


def group_of(group: Any) -> Any:
    """The group that a collective operation works in; None where it does something else."""
    group = c10d._get_default_group() if group is None else group
    waits = c10d._rank_not_in_group(group) or group in c10d._world.pg_coalesce_state
    return None if waits else group


def fits(group: Any, many: torch.Tensor, few: torch.Tensor) -> bool:
    """Is one tensor as large as those of all processes together, one after the other?"""
    return few.dim() > 0 and many.shape == (few.size(0) * group.size(), *few.shape[1:])


def all_reduce(group: Any, output: torch.Tensor, op: str) -> torch.Tensor:
    return torch.ops._c10d_functional.all_reduce(output, op, group.group_name)


def broadcast(group: Any, output: torch.Tensor, src: Any, group_src: Any) -> torch.Tensor:
    rank = c10d._canonicalize_group_rank(group, src, group_src)
    return torch.ops._c10d_functional.broadcast(output, rank, group.group_name)


def all_gather(group: Any, output: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    gather = torch.ops._c10d_functional.all_gather_into_tensor
    return gather(source, group.size(), group.group_name)


def reduce_scatter(group: Any, output: torch.Tensor, source: torch.Tensor, op: str) -> torch.Tensor:
    scatter = torch.ops._c10d_functional.reduce_scatter_tensor
    return scatter(source, op, group.size(), group.group_name)


def all_to_all(
    group: Any, output: torch.Tensor, source: torch.Tensor, received: Any, sent: Any
) -> torch.Tensor:
    sizes = [
        splits or [tensor.size(0) // group.size()] * group.size()
        for tensor, splits in ((output, received), (source, sent))
    ]
    return torch.ops._c10d_functional.all_to_all_single(source, *sizes, group.group_name)


def all_gather_to_list(group: Any, outputs: list[torch.Tensor], source: torch.Tensor) -> None:
    """``all_gather`` of tensors that are alike."""
    flat = source.reshape(-1)
    gathered = flat.new_empty(group.size() * flat.numel())
    c10d.all_gather_into_tensor(gathered, flat, group)
    for output, part in zip(outputs, gathered.chunk(group.size()), strict=True):
        output.copy_(part.view(output.shape))


def finish(started: torch.Tensor, output: torch.Tensor) -> None:
    """Wait for a collective operation; its result goes to the program's own tensor."""
    output.copy_(torch.ops._c10d_functional.wait_tensor(started).view(output.shape))


# -- torch functions ------------------------------------------------------------------------------


def call_override(name: str, told: tuple[Any, ...], by_mode: bool, overriding: Any) -> Any:
    """What torch does with a call of the function ``name`` that the innermost mode, or the classes
    of these arguments, override: they are ``told`` the function, the classes and the arguments."""
    asked = ""
    if by_mode:
        mode = torch._C._pop_torch_function_stack()
        try:
            result = mode.__torch_function__(*told)
        finally:
            torch._C._push_on_torch_function_stack(mode)
        if result is not NotImplemented:
            return result
        asked += f"  - mode object {mode!r}\n"
    for argument in overriding:
        result = argument.__torch_function__(*told)
        if result is not NotImplemented:
            return result
        asked += f"  - tensor subclass {type(argument)!r}\n"
    raise TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned "
        f"NotImplemented:\n\n{asked}\nFor more information, try re-running with "
        "TORCH_LOGS=not_implemented"
    )


def call_operator_override(*call: Any) -> Any:
    """The same for operators: the other operand may handle what these refuse."""
    try:
        return call_override(*call)
    except TypeError:
        return NotImplemented


# -- sorting and choosing ---------------------------------------------------------------------


def sort_order(order: list[int], keys: list[Any], reverse: bool) -> None:
    """Sort positions by their keys; CPython's own sort asks for the comparisons of a capture."""
    order.sort(key=keys.__getitem__, reverse=reverse)


def sort_list(items: list[Any], key: Callable[[Any], Any] | None, reverse: bool) -> None:
    """``items.sort(key=key, reverse=reverse)``; meanwhile the list is empty."""
    saved = items[:]
    order = list(range(len(saved)))
    items.clear()
    try:
        sort_order(order, saved if key is None else [key(item) for item in saved], reverse)
        if items:
            raise ValueError("list modified during sort")
    finally:
        items[:] = [saved[i] for i in order]


def sort_new(items: list[Any], key: Callable[[Any], Any] | None, reverse: bool) -> list[Any]:
    """``sorted(items, key=key, reverse=reverse)``; ``items`` is a list of our own."""
    sort_list(items, key, reverse)
    return items


def extreme_by_key(least: bool, iterable: Any, key: Callable[[Any], Any], default: Any) -> Any:
    """``min`` or ``max`` of ``iterable`` with ``key=``; ``default`` is a tuple of at most one."""
    items = iter(iterable)
    for best in items:  # noqa: B007 - it is the first one
        break
    else:  # not where StopIteration is handled, which would be the error's context
        return default[0] if default else min(()) if least else max(())
    extreme = key(best)
    for item in items:
        value = key(item)
        if value < extreme if least else value > extreme:
            best, extreme = item, value
    return best


# -- functools --------------------------------------------------------------------------------


def reduce(
    function: Callable[[Any, Any], Any], iterable: Iterable[Any], initial: Any = _MISSING, /
) -> Any:
    """``functools.reduce``."""
    iterator = iter(iterable)
    if initial is _MISSING:
        total = next(iterator, _MISSING)
        if total is _MISSING:
            raise TypeError("reduce() of empty iterable with no initial value")
    else:
        total = initial
    for item in iterator:
        total = function(total, item)
    return total


class CompareKey:
    """What ``functools.cmp_to_key(compare)`` makes of each element."""

    def __init__(self, compare: Callable[[Any, Any], Any], obj: Any) -> None:
        self.compare = compare
        self.obj = obj

    def order(self, other: Any) -> Any:
        if not isinstance(other, CompareKey):
            raise TypeError("other argument must be K instance")
        return self.compare(self.obj, other.obj)

    def __lt__(self, other: Any) -> bool:
        return self.order(other) < 0

    def __gt__(self, other: Any) -> bool:
        return self.order(other) > 0

    def __le__(self, other: Any) -> bool:
        return self.order(other) <= 0

    def __ge__(self, other: Any) -> bool:
        return self.order(other) >= 0

    def __eq__(self, other: Any) -> bool:
        return self.order(other) == 0


def cmp_to_key(mycmp: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """``functools.cmp_to_key``."""

    def make(obj: Any) -> CompareKey:
        return CompareKey(mycmp, obj)

    return make


def single_dispatch_method(method: Any, obj: Any, cls: Any = None) -> Any:
    """``functools.singledispatchmethod.__get__`` without a cache, which keeps ``obj`` weakly."""
    dispatcher, function = method.dispatcher, method.func
    name = getattr(function, "__name__", "singledispatchmethod method")

    def _method(*args: Any, **kwargs: Any) -> Any:
        if not args:
            raise TypeError(f"{name} requires at least 1 positional argument")
        return dispatcher.dispatch(args[0].__class__).__get__(obj, cls)(*args, **kwargs)

    _method.__isabstractmethod__ = method.__isabstractmethod__  # type: ignore[attr-defined]
    _method.register = method.register  # type: ignore[attr-defined]
    functools.update_wrapper(_method, function)
    return _method


# -- collections ------------------------------------------------------------------------------


def count_elements(mapping: Any, iterable: Iterable[Any]) -> None:
    """``collections._count_elements``, which Counter uses."""
    get = mapping.get
    for element in iterable:
        mapping[element] = get(element, 0) + 1


# -- heapq and bisect -------------------------------------------------------------------------


def _define(name: str, compiled: str) -> None:
    """Define here what a module of the standard library has in Python for functions in C."""
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.loader is not None
    module, before = importlib.util.module_from_spec(spec), sys.modules.get(compiled)
    sys.modules[compiled] = None  # type: ignore[assignment]
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[compiled]
        if before is not None:
            sys.modules[compiled] = before
    for name, function in vars(module).items():
        if isinstance(function, types.FunctionType):
            code = function.__code__.replace(co_filename=__file__)
            made = types.FunctionType(code, globals(), name, function.__defaults__)
            made.__kwdefaults__ = function.__kwdefaults__
            globals()[name] = made


_define("heapq", "_heapq")
_define("bisect", "_bisect")


# -- operator ---------------------------------------------------------------------------------


def get_items(obj: Any, keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """``operator.itemgetter(*keys)(obj)`` with more than one key."""
    return tuple([obj[key] for key in keys])


# -- torch.autograd.Function ------------------------------------------------------------------


class FunctionContext:
    """What ``forward`` and ``backward`` see as ``ctx`` while they are traced."""

    def __init__(self, *args: Any) -> None:
        self._tensors: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._materializes = True
        self.needs_input_grad = tuple(
            [isinstance(a, torch.Tensor) and a.requires_grad for a in args]
        )

    def save_for_backward(self, *tensors: Any) -> None:
        self._tensors = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        return self._tensors

    saved_variables = saved_tensors

    def save_for_forward(self, *tensors: Any) -> None:
        return None

    def mark_dirty(self, *tensors: Any) -> None:
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        self._materializes = value


def function_forward(cls: Any, context: Any, *args: Any) -> Any:
    """What ``autograd.Function.apply`` calls."""
    with torch.no_grad():
        if cls.setup_context is torch.autograd.function._SingleLevelFunction.setup_context:
            return cls.forward(context, *args)
        output = cls.forward(*args)
        cls.setup_context(context, args, output)
        return output


def function_backward(cls: Any, context: Any, *gradients: Any) -> Any:
    """What autograd calls with the gradients of the outputs."""
    with torch.no_grad():
        return cls.backward(context, *gradients)


# -- operations with a number that is read out of a tensor -------------------------------------


def addcdiv(self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    """``Tensor.addcdiv`` with a number that is read: in single precision for shorter dtypes."""
    if self.dtype.itemsize > 2:
        return self + tensor1 * value / tensor2
    return (self.float() + tensor1.float() * value / tensor2.float()).to(self.dtype)


def addcdiv_(self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    """``Tensor.addcdiv_`` with a number that is read."""
    if self.dtype.itemsize > 2:
        return self.add_(tensor1 * value / tensor2)
    return self.copy_(addcdiv(self, tensor1, tensor2, value))


def addcmul(self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    """``Tensor.addcmul`` with a number that is read: in single precision for shorter dtypes."""
    if self.dtype.itemsize > 2:
        return self + tensor1 * value * tensor2
    return (self.float() + tensor1.float() * value * tensor2.float()).to(self.dtype)


def addcmul_(self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    """``Tensor.addcmul_`` with a number that is read."""
    if self.dtype.itemsize > 2:
        return self.add_(tensor1 * value * tensor2)
    return self.copy_(addcmul(self, tensor1, tensor2, value))


def scaled_lists(tensors: Any, firsts: Any, seconds: Any, values: Any, method: str) -> Any:
    """``torch._foreach_addcdiv`` and its like with a list of numbers, some of which are read."""
    rows = zip(tensors, firsts, seconds, values, strict=True)
    return tuple([getattr(one, method)(first, second, value=v) for one, first, second, v in rows])


def scale_lists(tensors: Any, firsts: Any, seconds: Any, values: Any, method: str) -> Any:
    """The same in place."""
    scaled_lists(tensors, firsts, seconds, values, method)
    return tensors


def first_of(value: Any, *rest: Any) -> Any:
    """Its first argument."""
    return value


def call_with(function: Any, args: Any, kwargs: Any) -> Any:
    """A call with the arguments as they are."""
    return function(*args, **kwargs)


def call_flat(function: Any, spec: Any, *flat: Any, **kwargs: Any) -> Any:
    """A call with arguments in the structure that ``spec`` says."""
    return function(*tree_unflatten(list(flat), spec), **kwargs)


def call_with_one(function: Any, argument: Any) -> Any:
    """A call with one argument."""
    return function(argument)


def round_trip(pack: Any, unpack: Any, saved: Any) -> Any:
    """What becomes of a tensor that is saved for backward under hooks."""
    return unpack(pack(saved))


def new_handle(self: Any, hooks_dict: Any, number: Any, extra_dict: Any = None) -> None:
    """``RemovableHandle.__init__`` with the number of the handle."""
    self.hooks_dict_ref = weakref.ref(hooks_dict)
    self.id = number
    self.extra_dict_ref = ()
    if isinstance(extra_dict, dict):
        self.extra_dict_ref = (weakref.ref(extra_dict),)
    elif isinstance(extra_dict, list):
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra_dict)
