"""Compiled graphs that write to inputs, when inputs share memory in another way than at capture.

In: a compiled graph and its inputs. Out: a callable that notes which inputs share memory. A backend
that makes graphs functional (AOTAutograd) compiles for one such pattern; for any other the recorded
graph itself runs, operation by operation, which is right whatever aliases what. Next: codegen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

Graph = Callable[..., Any]


def elements_of(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The tensors in whose memory the elements lie: itself, or what it is made of."""
    if type(tensor) is torch.Tensor or not is_traceable_wrapper_subclass(tensor):
        return [tensor]
    with torch._C.DisableTorchFunctionSubclass():
        parts = [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]]
    tensors = [part for part in parts if isinstance(part, torch.Tensor)]
    return [element for part in tensors for element in elements_of(part)]


def sharing(
    tensors: Iterable[tuple[int, torch.Tensor]], written: frozenset[int]
) -> tuple[Any, ...]:
    """Which numbered ``tensors`` share memory with one of ``written``, and where they start: each
    position with the offset, and with its number where a tensor is made of several."""
    groups: dict[Any, dict[tuple[int, int], torch.Tensor]] = {}
    for position, tensor in tensors:
        for number, element in enumerate(elements_of(tensor)):
            try:
                key: Any = element.untyped_storage()._cdata
            except (NotImplementedError, RuntimeError):  # sparse ones and the like have no storage
                key = position, number
            groups.setdefault(key, {})[position, number] = element
    return tuple(
        tuple(
            (position, one.storage_offset(), *([number] if number else []))
            for (position, number), one in members.items()
        )
        for members in groups.values()
        if len(members) > 1 and not written.isdisjoint(position for position, _ in members)
    )


def share_parts(tensors: list[torch.Tensor], written: frozenset[int]) -> bool:
    """Does a part of one that is made of others share memory with another part or tensor, and is
    one of them ``written``?"""
    made = {i for i, one in enumerate(tensors) if is_traceable_wrapper_subclass(one)}
    found = sharing(enumerate(tensors), written) if made else ()
    return any(not made.isdisjoint(place[0] for place in group) for group in found)


def overlap(tensors: list[torch.Tensor], written: frozenset[int]) -> bool:
    """Does one of ``written`` lie in the memory of another tensor with a storage of its own? The
    tensors on arrays of numpy do."""
    spans = []
    for position, tensor in enumerate(tensors):
        try:
            storage = tensor.untyped_storage()
            start = storage.data_ptr()
        except (NotImplementedError, RuntimeError):
            continue
        spans.append((start, start + storage.nbytes(), storage._cdata, position in written))
    return any(
        one[3] and one[0] < two[1] and two[0] < one[1] and one[2] != two[2]
        for one in spans
        for two in spans
    )


def _is_foreign(tensor: torch.Tensor) -> bool:
    """Was its memory given to torch by somebody else?"""
    try:
        return not tensor.untyped_storage().resizable()
    except (NotImplementedError, RuntimeError):
        return False


class Watch(NamedTuple):
    """Plain data: which inputs are looked at on a call, and how they share memory at capture."""

    watched: tuple[int, ...]  # positions of inputs
    written: frozenset[int]  # positions in `watched`
    pattern: tuple[Any, ...]
    inputs: int
    foreign: bool  # memory that torch has not allocated


def _is_one(tensors: list[torch.Tensor]) -> bool:
    """Are the elements of all of them in one tensor?"""
    return len(tensors) < 2 and all(len(elements_of(tensor)) < 2 for tensor in tensors)


def aliases_to_watch(
    inputs: list[Any], written: list[int], fixed: list[bool], varying: list[bool]
) -> Watch | None:
    """What has to be looked at on each call of a graph that writes to ``written``; often nothing.

    Numbers come in front of the tensors; ``written``, ``fixed`` and ``varying`` are about the
    tensors. Backends take ``varying`` ones for tensors that share nothing. ``fixed`` ones belong
    to modules and stay what they are; they are not looked at again when none of the others can
    alias one of them.
    """
    symbols = len(inputs) - len(fixed)
    inputs = inputs[symbols:]
    if not written or _is_one(inputs) or all(fixed):
        return None
    wanted = frozenset(written)
    free = [position for position, known in enumerate(fixed) if not known]
    if wanted.isdisjoint(free):
        watched = [*free, *[p for p in written if fixed[p]]]
    else:
        watched = list(range(len(inputs)))
    if _is_one([inputs[position] for position in watched]):
        return None
    where = frozenset(index for index, position in enumerate(watched) if position in wanted)
    known = [(index, inputs[p]) for index, p in enumerate(watched) if not varying[p]]
    pattern = sharing(known, where)
    positions = tuple(position + symbols for position in watched)
    foreign = any(_is_foreign(inputs[position]) for position in watched)
    return Watch(positions, where, pattern, len(inputs) + symbols, foreign)


def watch_aliases(compiled: Graph, recorded: Graph, watch: Watch | None) -> Graph:
    """``compiled``, used only while inputs share memory as they did at capture."""
    if watch is None:
        return compiled
    watched, where, pattern, count, foreign = watch
    everything = len(watched) == count

    def run(*tensors: Any) -> Any:
        seen = list(tensors) if everything else [tensors[position] for position in watched]
        if sharing(enumerate(seen), where) == pattern and not (foreign and overlap(seen, where)):
            return compiled(*tensors)
        return recorded(*tensors)

    return run
