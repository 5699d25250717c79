"""What an operation returns, found out without computing it.

In: a function or method name with `Example`s and constants as arguments. Out: the same structure
that the operation returns, with `Example`s for tensors, plus whether it mutates or draws random
numbers. A process-wide cache is keyed by metadata; a miss runs the operation on fake tensors and
*observes* what it did (aliases, mutations, randomness): there are no lists of operation names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from ..exc import GraphBreak
from .errors import as_graph_break, name_of
from .fakes import FakeWorld, describe_fake, isolated
from .global_state import GlobalState
from .holding import Holding, described
from .idle_dropouts import operand_of_idle, returned
from .metadata import Example, TensorMeta, join
from .observer import Observer, memory_of

#: The cache is dropped as a whole when it grows beyond this many entries.
MAX_ENTRIES = 1 << 16
#: Pending views of views deeper than this are made at once, so that recursion stays shallow.
MAX_DEPTH = 50

#: Constants whose type and value identify them in a cache key.
_CONSTANTS = frozenset(
    {bool, int, float, complex, str, bytes, type(None), type(Ellipsis), torch.dtype, torch.device}
    | {torch.layout, torch.memory_format, torch.qscheme, type(NotImplemented)}
)


class Effects(NamedTuple):
    """What an operation does besides returning something."""

    #: Which tensor arguments are written to, by position among all tensors in the arguments.
    writes: tuple[int, ...]
    random: bool
    #: It may raise an exception that depends on data.
    raises: bool = False
    #: It writes content, not only how a tensor looks at it (``t_()``).
    content: bool = False
    #: It exchanges data with other processes, which wait for it.
    exchanges: bool = False
    #: Autograd does not count what it writes (`_version`).
    uncounted: bool = False


class _Same(NamedTuple):
    """In a template: the n-th tensor argument itself."""

    position: int


class _Const(NamedTuple):
    """In a template: something that is no tensor."""

    value: Any


class _Outcome(NamedTuple):
    """What the cache knows. ``single`` is the metadata of the usual result, one new tensor;
    else ``template`` describes the result's structure. ``aliases``: the result shares memory with
    arguments. ``replay``: the operation must run for real every time."""

    effects: Effects
    single: TensorMeta | None
    template: Any
    aliases: bool
    replay: bool


_cache: dict[tuple[Any, ...], _Outcome] = {}


class CacheStatistics:
    """A counter for tests."""

    hits = 0


def clear_cache() -> None:
    """Forget all metadata (tests; after custom operators were re-registered)."""
    _cache.clear()


@dataclasses.dataclass(slots=True, eq=False)
class Call:
    """One operation with its arguments; runs again when a pending alias is needed."""

    world: FakeWorld
    target: Any
    args: Any
    kwargs: Any
    state: GlobalState
    result: Any = None

    def run(self) -> None:
        """Run on fake tensors, and hand them to the examples of ``result``."""
        args, kwargs = lower(self.args), lower(self.kwargs)
        with isolated(), self.state.applied(), self.world.running():
            result = invoke(self.target, args, kwargs)
        assign(self.result, result)


def propagate(
    world: FakeWorld,
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    state: GlobalState,
) -> tuple[Any, Effects]:
    """The result of ``target(*args, **kwargs)``, a method's name if ``target`` is a string,
    under ``state``, which is what torch is in now.

    Raises GraphBreak when the result depends on data, PropagationError when the operation raises.
    """
    parts: list[Any] = [target, state]
    tensors: list[Example] = []
    known = _collect(args, parts, tensors)
    for name, value in kwargs.items():
        parts.append(name)
        known = _collect(value, parts, tensors) and known
    found, key = None, None
    if known and state.cacheable and _is_library_function(target):
        if len(tensors) > 1:
            _add_alias_pattern(tensors, parts)
        key = tuple(parts)
        try:
            found = _cache.get(key)
        except TypeError:  # something in it has no hash
            key = None
    if found is None or found.replay:
        call = Call(world, target, args, kwargs, state)
        outcome, result = _run(call, tensors, found)
        if key is not None and found is None:
            if len(_cache) >= MAX_ENTRIES:
                _cache.clear()
            _cache[key] = outcome
        return result, outcome.effects
    CacheStatistics.hits += 1
    if found.single is not None:
        return Example(world, found.single), found.effects
    if not found.aliases:
        return _instantiate(world, found.template, tensors, None), found.effects
    call = Call(world, target, args, kwargs, state)
    fresh: list[Example] = []
    call.result = _instantiate(world, found.template, tensors, call, fresh)
    if fresh:
        join(tensors + fresh)
        if fresh[0].depth > MAX_DEPTH:
            call.run()
            for example in fresh:
                example.depth = 0
    return call.result, found.effects


# -- cache keys


def _collect(value: Any, parts: list[Any], tensors: list[Example]) -> bool:
    """Append what identifies ``value`` to a key. False if something in it is unknown."""
    kind = type(value)
    if kind is Example:
        parts.append(value.meta)
        tensors.append(value)
        return value.cacheable
    if kind in _CONSTANTS:
        parts.append(kind)
        parts.append(value)
        return True
    if kind is slice:
        value = (value.start, value.stop, value.step)
    elif isinstance(value, dict):
        value = [*value, *value.values()]
    elif not isinstance(value, (tuple, list)):
        return False
    parts.append(kind)
    parts.append(len(value))
    known = True
    for item in value:
        known = _collect(item, parts, tensors) and known
    return known


def _add_alias_pattern(tensors: list[Example], parts: list[Any]) -> None:
    """Distinguish f(x, x) and f(x, view of x) from f(x, y)."""
    groups = [id(tensor) if tensor.group is None else id(tensor.group) for tensor in tensors]
    if len(set(groups)) == len(groups):
        return
    identities = [id(tensor) for tensor in tensors]
    parts.append(tuple(groups.index(group) for group in groups))
    parts.append(tuple(identities.index(identity) for identity in identities))


_BUILTIN_TYPES = (
    type(torch.abs),
    type(torch.Tensor.abs),
    torch._ops.OpOverload,
    torch._ops.OpOverloadPacket,
)


def _called(target: Any) -> Any:
    return target.function if type(target) is Holding else target


def _is_library_function(target: Any) -> bool:
    """Whether the result depends on arguments and global state only: not for a user's function."""
    if isinstance(target, (str, *_BUILTIN_TYPES)):
        return True
    module = getattr(target, "__module__", None) or ""
    return module.startswith("torch.") or module in ("torch", "_operator")


# -- results from the cache


def _instantiate(
    world: FakeWorld,
    template: Any,
    tensors: list[Example],
    call: Call | None,
    fresh: list[Example] | None = None,
) -> Any:
    kind = type(template)
    if kind is TensorMeta:
        example = Example(world, template, call)
        if fresh is not None:
            example.depth = 1 + max([t.depth for t in tensors if t._fake is None], default=0)
            fresh.append(example)
        return example
    if kind is _Same:
        return tensors[template.position]
    if kind is _Const:
        return template.value
    items = [_instantiate(world, item, tensors, call, fresh) for item in template]
    return like(template, items)


def like(container: Any, items: Sequence[Any]) -> Any:
    """``items`` in the kind of sequence that ``container`` is (named tuples and structseqs too)."""
    kind = type(container)
    if kind is tuple or kind is list:
        return kind(items)
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


# -- running on fake tensors


def _run(call: Call, tensors: list[Example], known: _Outcome | None) -> tuple[_Outcome, Any]:
    """Run on fake tensors; learn the outcome, or trust ``known``; refresh what was mutated."""
    world, target = call.world, call.target
    related = _related(tensors)
    for example in related:
        if example._fake is None:  # pending aliases must see the tensors as they were until now
            world.materialize(example)
    fakes = [example.fake for example in tensors]
    memory = [memory_of(fake) for fake in fakes]
    made_of = [_made_of(fake) for example, fake in zip(tensors, fakes, strict=True)
               if example.meta.wraps]  # fmt: skip
    observer = Observer()
    random_state = torch.default_generator.get_state()
    fake_args, fake_kwargs = lower(call.args), lower(call.kwargs)
    try:
        if known is None or known.effects.random:
            with world.running(), observer:
                raw = invoke(target, fake_args, fake_kwargs)
        else:
            with world.running():
                raw = invoke(target, fake_args, fake_kwargs)
    except Exception as error:
        refresh(related)
        raise as_graph_break(target, error) from error
    finally:
        if observer.random:
            torch.default_generator.set_state(random_state)
    for fake, *before in made_of:
        if _made_of(fake)[1:] != tuple(before):  # backends would not do that to the real one
            name = type(fake).__name__
            raise GraphBreak("FJ0113", f"{name_of(target)} puts other parts into a {name}")
    # Views of an argument change only when something is written.
    changed = refresh(related if observer.written or known is not None else tensors)
    if [memory_of(fake) for fake in fakes] != memory:  # set_() or .data: who shares is open again
        join(tensors)
    writes = tuple(
        [
            position
            for position, example in enumerate(tensors)
            if memory[position] in observer.written or any(example is other for other in changed)
        ]
    )
    reader = _Reader(world, target, tensors, fakes, set(memory))
    template, result = reader.read(raw)
    effects = Effects(
        writes, observer.random, observer.raises or not _is_library_function(_called(target)),
        observer.content, observer.exchanges, bool(writes) and not observer.counted,
    ) if known is None else known.effects  # fmt: skip
    aliases = reader.aliases
    if aliases and reader.fresh:
        call.result = result
        for example in reader.fresh:
            example.recipe = call
        join(tensors + reader.fresh)
    replay = bool(writes) or not reader.cacheable or not reader.found_tensor
    single = template if isinstance(template, TensorMeta) and not (aliases or replay) else None
    return _Outcome(effects, single, template, aliases, replay), result


@dataclasses.dataclass(slots=True, eq=False)
class _Reader:
    """Turns what came back from fake tensors into a template and examples."""

    world: FakeWorld
    target: Any
    tensors: list[Example]
    fakes: list[torch.Tensor]
    memory: set[int]
    seen: list[tuple[torch.Tensor, Example]] = dataclasses.field(default_factory=list)
    fresh: list[Example] = dataclasses.field(default_factory=list)
    aliases: bool = False
    cacheable: bool = True
    found_tensor: bool = False

    def read(self, value: Any) -> tuple[Any, Any]:
        if isinstance(value, torch.Tensor):
            return self._read_tensor(value)
        if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
            pairs = [self.read(item) for item in value]
            if pairs:
                templates, results = zip(*pairs, strict=True)
                return like(value, templates), like(value, results)
        return _Const(value), value

    def _read_tensor(self, value: torch.Tensor) -> tuple[Any, Any]:
        self.found_tensor = True
        for index, fake in enumerate(self.fakes):
            if value is fake:
                self.aliases = True
                return _Same(index), self.tensors[index]
        for fake, example in self.seen:
            if value is fake:
                self.cacheable = False  # one new tensor returned twice: rare, keep identities
                return example.meta, example
        if not (isinstance(value, FakeTensor) or is_traceable_wrapper_subclass(value)):
            raise GraphBreak(
                "FJ0121", f"{name_of(self.target)} returned a tensor that was not traced"
            )
        meta = describe_fake(value)
        memory = memory_of(value)
        if memory in self.memory or not meta.is_plain:
            self.aliases = True  # or is rebuilt in the same way: unusual keys need the operation
        self.memory.add(memory)
        example = Example(self.world, meta)
        example._fake = value
        if meta.wraps or value.constant is not None or meta.symbolic:  # type: ignore[attr-defined]
            example.cacheable = False
            self.cacheable = False
        self.fresh.append(example)
        self.seen.append((value, example))
        return meta, example


def _made_of(fake: Any) -> tuple[Any, ...]:
    """A tensor that is made of others, which these are, and what else it says of itself."""
    names, context = fake.__tensor_flatten__()
    return fake, {name: id(getattr(fake, name)) for name in names}, described(context)


def _related(tensors: list[Example]) -> list[Example]:
    """The arguments and everything that may share memory with them, once each."""
    if not any(tensor.group for tensor in tensors):
        return tensors
    related: dict[int, Example] = {}
    for tensor in tensors:
        for member in tensor.sharing:
            related[id(member)] = member
    return list(related.values())


def refresh(examples: list[Example]) -> list[Example]:
    """Read the metadata of fakes again. Returns those that an operation has changed."""
    changed: list[Example] = []
    for example in examples:
        fake = example._fake
        assert fake is not None
        meta = describe_fake(fake)
        if meta is not example.meta and not _same(example.meta, meta):
            example.meta, example.changed = meta, True
            example.cacheable = example.cacheable and not meta.symbolic
            changed.append(example)
    return changed


def _same(old: TensorMeta, new: TensorMeta) -> bool:
    """Equality where interning does not help: symbolic sizes, subclasses of Parameter."""
    for name in TensorMeta.__slots__:
        before, after = getattr(old, name), getattr(new, name)
        if name == "python_type":
            if not issubclass(before, after):
                return False
        elif name in ("shape", "stride", "storage_offset"):
            if str(before) != str(after):  # comparing symbolic sizes would add guards
                return False
        elif before != after:
            return False
    return True


def invoke(target: Any, args: Any, kwargs: Any) -> Any:
    if type(target) is str:
        return getattr(args[0], target)(*args[1:], **kwargs)
    operand = operand_of_idle(target, args, kwargs)
    if operand is not None:
        return returned(target, operand, args, kwargs)
    return target(*args, **kwargs)


def lower(value: Any) -> Any:
    """The same arguments with fake tensors in place of examples."""
    kind = type(value)
    if kind is Example:
        return value.fake
    if kind is slice:
        return slice(lower(value.start), lower(value.stop), lower(value.step))
    if isinstance(value, dict):
        return {name: lower(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)) and kind is not torch.Size:
        return like(value, [lower(item) for item in value])
    return value


def assign(result: Any, raw: Any) -> None:
    """Give the fakes in ``raw`` to the examples at the same places in ``result``."""
    if isinstance(result, Example):
        if result._fake is None:
            result._fake = raw
    elif isinstance(result, (tuple, list)):
        for item, raw_item in zip(result, raw, strict=True):
            assign(item, raw_item)
