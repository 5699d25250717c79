"""Processes of one group compile the same, or say what differs: `config.ranks_agree`.

In: a graph that a capture hands to its backend, on every rank. Out: the same graph, once all ranks
have come to the like of it; sizes that differ from rank to rank vary in all of them. Otherwise one
error, which names the function, the rank and the difference. The ranks talk through the store of
the process group, not by collective operations, which the program may be in the middle of. Next:
misses, compiler.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
import re
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.fx

from framejit import config
from framejit.exc import RanksDisagree
from framejit.graph.metadata import Composition
from framejit.graph.symbol_nodes import symbolic_inputs
from framejit.report import events

if TYPE_CHECKING:
    from framejit.compiled_frame import CompiledFrame

#: Seconds between two looks whether the others have come: the first, and the longest.
_PAUSE, _LONGEST_PAUSE = 0.002, 0.1
#: How many differences of one kind a message lists.
_SHOWN = 3
_PLACE = re.compile(r'File "(.*)", line (\d+), in ')

#: What is done before this process waits for others, which may wait for it otherwise.
before_waiting: list[Callable[[], None]] = []
#: The group that was there when ranks last agreed, and how often they have.
_group: Callable[[], Any] = lambda: None
_number = 0


def agreeing() -> bool:
    """Are there other ranks to agree with?"""
    if not config.ranks_agree:
        return False
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return False
    return distributed.get_world_size() > 1 and not _is_fake(_store())


def _next_number() -> int:
    """What all ranks of a group do equally often."""
    global _group, _number
    world = torch.distributed.group.WORLD
    if _group() is not world:
        _group, _number = weakref.ref(world), 0
    _number += 1
    return _number


def _store() -> Any:
    """What the processes of the default group share."""
    from torch.distributed.distributed_c10d import _get_default_store  # seldom needed

    return _get_default_store()


def _is_fake(store: Any) -> bool:
    """Are the other ranks made up? Then it is of no class that could hold anything."""
    return type(getattr(store, "underlying_store", store)) is torch.distributed.Store


def captured(
    capture: Callable[..., Any], compiled: CompiledFrame, slots: tuple[Any, ...], driver: Any,
    met: list[events.Ended],
) -> Any:  # fmt: skip
    """What ``capture`` makes of a call, which is the like on every rank. ``met``: the breaks that
    it meets. Raises RanksDisagree."""
    if not agreeing():
        return capture(compiled.target, slots, driver, compiled.policy)
    agreement = _Agreement(compiled, slots, met, driver.compile_graph)
    driver = dataclasses.replace(driver, compile_graph=agreement.compile_graph)
    try:
        while True:
            try:
                return capture(compiled.target, slots, driver, compiled.policy)
            except _SizesDiffer:
                met.clear()
    except RanksDisagree:
        raise
    except Exception as error:  # also what this rank goes on from as plain Python
        _Exchange().say({"failed": f"{type(error).__name__}: {_first_line(error)}"})
        raise


class CompiledElsewhere(BaseException):
    """Another rank has put the entry in the package that they share. No error of the program's."""

    def __init__(self, entry: Any) -> None:
        super().__init__()
        self.entry = entry


class _SizesDiffer(Exception):
    """Capture again: sizes that other ranks have are among those that were seen now."""


class _Graph(NamedTuple):
    """What ranks compare. Numbers in a graph, the sizes of parameters and the values of guards are
    not part of it: programs make them differ on purpose."""

    name: str
    place: str
    #: Where what is captured ends, if that is a break.
    ends: list[str]
    #: Of each operation its target.
    operations: list[str]
    #: Of each tensor that is no parameter its name and its sizes, a text for one that varies.
    inputs: list[tuple[str, list[int | str]]]


class _Agreement:
    """One capture, which every rank makes."""

    def __init__(
        self, compiled: CompiledFrame, slots: tuple[Any, ...], met: list[events.Ended],
        compile_graph: Callable[..., Any],
    ) -> None:  # fmt: skip
        self._compiled, self._slots = compiled, slots
        self._met = met
        self._compile_graph = compile_graph
        #: Does this capture know already which sizes other ranks have?
        self._knows_sizes = False

    def compile_graph(self, module: torch.fx.GraphModule, examples: list[Any]) -> Any:
        """The backend, once all ranks have this graph."""
        graph = self._described(module, examples)
        text = json.dumps(graph)
        digest = hashlib.sha256(text.encode()).hexdigest()
        for begin_to_wait in before_waiting:
            begin_to_wait()
        exchange = _Exchange()
        said = exchange.everybody({"digest": digest}, graph)
        if any(one["digest"] != digest for one in said):
            told = {"graph": graph, "seen": self._sizes_seen(), "lines": _lines(module)}
            self._settle(exchange, said, told)
        self._take_turn()
        return self._compile_graph(module, examples)

    def _take_turn(self) -> None:
        """Where ranks share a package, one of them compiles for the others."""
        compiler = self._compiled.compiler
        if compiler.turns is None:
            return
        compiler.turns.begin(wait=True)
        if compiler.library is not None:
            entry = compiler.library.entry_for(self._compiled, self._slots)
            if entry is not None:
                raise CompiledElsewhere(entry)

    def _described(self, module: torch.fx.GraphModule, examples: Sequence[Any]) -> _Graph:
        target = self._compiled.target
        place = f"{_short(target.code.co_filename)}:{target.line}{target.place}"
        ends = [f"{_short(one.filename)}:{one.line}: {one.reason}" for one in self._met[-1:]]
        operations = [_operation(node) for node in _nodes(module)]
        return _Graph(target.name, place, ends, operations, _inputs(module, examples))

    def _sizes_seen(self) -> list[Any]:
        """Of each tensor that was looked at: what is known of its sizes, and what they are now."""
        tensors = self._compiled.policy.seen.tensors
        return [
            [name, one.sizes, [sizes[-1] for sizes in one.histories], one.strides]
            for (name, _), one in tensors.items()
            if all(type(sizes[-1]) is int for sizes in one.histories)
        ]

    def _settle(self, exchange: _Exchange, said: list[Any], told: dict[str, Any]) -> None:
        """Some graphs differ: raise what that means."""
        digests = [one["digest"] for one in said]
        exchange.publish(told)
        #: The first rank with each of the different graphs.
        first = {digest: digests.index(digest) for digest in dict.fromkeys(digests)}
        texts = {rank: exchange.published(rank, self._compiled) for rank in first.values()}
        graphs = {rank: _Graph(*text["graph"]) for rank, text in texts.items()}
        names = {(graph.name, graph.place) for graph in graphs.values()}
        sizes = {json.dumps(graph.inputs) for graph in graphs.values()}
        may_vary = self._compiled.policy.dynamic is not False and config.automatic_dynamic
        if len(names) == 1 and len(sizes) > 1 and may_vary and not self._knows_sizes:
            self._knows_sizes = True
            seen = self._compiled.policy.seen
            seen.on_all_ranks([texts[first[digest]]["seen"] for digest in digests])
            raise _SizesDiffer
        base = first[digests[exchange.rank]]
        raise RanksDisagree(self._difference(base, graphs, texts, exchange.rank))

    def _difference(
        self, base: int, graphs: dict[int, _Graph], texts: dict[int, Any], rank: int
    ) -> str:
        """What this rank compiles and one that differs from it, the first if possible, in words."""
        other = next(rank for rank in graphs if rank != base)
        found = _in_words(
            graphs[base], graphs[other], (rank, other),
            (texts[base]["lines"], texts[other]["lines"]),
        )  # fmt: skip
        shown = f"{_shown(self._compiled)} is not compiled alike on ranks {rank} and {other}"
        return "\n  ".join([f"{shown}:", *found])


class _Exchange:
    """What the ranks say to each other about one graph, through the store."""

    def __init__(self) -> None:
        self._store = _store()
        self._number = _next_number()
        self.rank, self.count = torch.distributed.get_rank(), torch.distributed.get_world_size()

    def _key(self, rank: int, kind: str, before: int = 0) -> str:
        return f"framejit/{self._number - before}/{kind}/{rank}"

    def say(self, message: dict[str, Any]) -> None:
        """Tell whoever asks. That nobody can be told is no error."""
        with contextlib.suppress(RuntimeError):  # DistError is one
            self._store.set(self._key(self.rank, "said"), json.dumps(message))

    def everybody(self, message: dict[str, Any], graph: _Graph) -> list[Any]:
        """What all ranks say, in their order. Raises RanksDisagree where one says nothing, or that
        it has failed."""
        self.say(message)
        shown = f"{graph.name} ({graph.place})"
        said = [json.loads(one) for one in self._wait([*range(self.count)], "said", shown)]
        self._forget()
        for rank, one in enumerate(said):
            if "failed" in one:
                raise RanksDisagree(
                    f"{shown} is not compiled alike: rank {rank} cannot compile: {one['failed']}"
                )
        return said

    def _forget(self) -> None:
        """All ranks have come here, so they have read what was said before."""
        with contextlib.suppress(RuntimeError):  # not every store can
            for kind in ("said", "more"):
                self._store.delete_key(self._key(self.rank, kind, before=1))

    def publish(self, content: Any) -> None:
        """Have something ready for ranks that want to know more."""
        text = base64.b64encode(zlib.compress(json.dumps(content).encode())).decode()
        self._store.set(self._key(self.rank, "more"), text)

    def published(self, rank: int, compiled: CompiledFrame) -> Any:
        """What another rank has ready."""
        (text,) = self._wait([rank], "more", _shown(compiled))
        return json.loads(zlib.decompress(base64.b64decode(text)))

    def _wait(self, ranks: Sequence[int], kind: str, shown: str) -> list[bytes]:
        """What these ranks have written. It is looked for again and again, so that the program can
        be interrupted."""
        until, pause = time.monotonic() + config.ranks_agree_seconds, _PAUSE
        keys = [self._key(rank, kind) for rank in ranks]
        try:
            while not self._store.check(keys):
                if time.monotonic() > until:
                    raise self._missing(ranks, kind, shown)
                time.sleep(pause)
                pause = min(pause * 1.5, _LONGEST_PAUSE)
            return [self._store.get(key) for key in keys]
        except RanksDisagree:
            raise
        except RuntimeError as error:
            raise RanksDisagree(
                f"{shown} is to be compiled on all ranks, and the store of the process group "
                f"cannot be reached any more: {_first_line(error)}"
            ) from error

    def _missing(self, ranks: Sequence[int], kind: str, shown: str) -> RanksDisagree:
        late = [rank for rank in ranks if not self._store.check([self._key(rank, kind)])]
        named = f"rank {late[0]} has" if len(late) == 1 else f"ranks {_listed(late)} have"
        return RanksDisagree(
            f"rank {self.rank} compiles {shown}, and {named} compiled nothing for "
            f"{config.ranks_agree_seconds} seconds: their calls fit what they have, come from a "
            "package, or do not come here"
        )


# -- graphs ----------------------------------------------------------------------------------------


def _nodes(module: torch.fx.GraphModule) -> Iterator[torch.fx.Node]:
    """The operations of a graph, and of those that it calls."""
    for one in module.modules():
        if isinstance(one, torch.fx.GraphModule):
            yield from (node for node in one.graph.nodes if node.op.startswith("call"))


def _operation(node: torch.fx.Node) -> str:
    if node.op != "call_function":
        return f"{node.op.removeprefix('call_')} {node.target}"
    return str(node._pretty_print_target(node.target))


def _inputs(
    module: torch.fx.GraphModule, examples: Sequence[Any]
) -> list[tuple[str, list[int | str]]]:
    """Names and sizes of what a graph is called with, parameters aside."""
    nodes, known = module.graph.find_nodes(op="placeholder"), symbolic_inputs(module)
    pairs = [
        (str(node.target), one)
        for node, one in zip(nodes, examples, strict=True)
        if isinstance(one, torch.Tensor)
    ]
    found: list[tuple[str, list[int | str]]] = []
    for number, (name, tensor) in enumerate(pairs):
        if isinstance(tensor, torch.nn.Parameter):
            continue
        meta = None if known is None else known.metas[number]
        shape = meta.size if isinstance(meta, Composition) else (meta or tensor).shape
        found.append((name, [size if isinstance(size, int) else str(size) for size in shape]))
    return found


def _lines(module: torch.fx.GraphModule) -> list[str]:
    """Of each operation the user's line."""
    found = []
    for node in _nodes(module):
        places = _PLACE.findall(node.stack_trace or "")
        found.append(f" ({_short(places[-1][0])}:{places[-1][1]})" if places else "")
    return found


# -- words -----------------------------------------------------------------------------------------


def _shown(compiled: CompiledFrame) -> str:
    name, filename, line = compiled.target.shown.values()
    return f"{name} ({filename}:{line})"


def _first_line(error: Exception) -> str:
    first = (str(error).splitlines() or [""])[0]
    return first.removesuffix(f" [{getattr(error, 'identifier', '')}]").rstrip(":")


def _short(filename: str) -> str:
    """Ranks may have a program in different folders."""
    return os.path.basename(filename)


def _listed(ranks: Sequence[int]) -> str:
    more = "" if len(ranks) <= 2 * _SHOWN else f" and {len(ranks) - 2 * _SHOWN} more"
    return ", ".join(map(str, ranks[: 2 * _SHOWN])) + more


def _in_words(
    one: _Graph, other: _Graph, ranks: tuple[int, int], lines: tuple[list[str], list[str]]
) -> list[str]:
    """In what two graphs differ."""
    here, there = f"rank {ranks[0]}", f"rank {ranks[1]}"
    if (one.name, one.place) != (other.name, other.place):
        return [f"{there} compiles {other.name} ({other.place}) instead"]
    found = []
    pairs = itertools.zip_longest(
        zip(one.operations, lines[0], strict=True), zip(other.operations, lines[1], strict=True)
    )
    for number, (left, right) in enumerate(pairs, 1):
        if left is None or right is None or left[0] != right[0]:
            shown = ["the end" if side is None else "".join(side) for side in (left, right)]
            found.append(f"operation {number} is {shown[0]} on {here}, {shown[1]} on {there}")
            break
    if one.ends != other.ends:
        ends = [f"a break at {end[0]}" if end else "the end" for end in (one.ends, other.ends)]
        found.append(f"it goes on to {ends[0]} on {here}, to {ends[1]} on {there}")
    sizes = dict(other.inputs)
    changed = [(name, size) for name, size in one.inputs if sizes.get(name, size) != size]
    for name, size in changed[:_SHOWN]:
        texts = [" x ".join(map(str, some)) for some in (size, sizes[name])]
        found.append(f"{name} is {texts[0]} on {here}, {texts[1]} on {there}")
    return found or ["they have other tensors as inputs"]
