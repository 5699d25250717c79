"""Calls that were recorded, and are repeated instead of executed again (D16).

In: a call that is to be inlined. Out: its result, if a call that was recorded fits; else nothing,
and it is inlined. A recording is a capture of the call alone: the arguments are roots, what is
found out about them and everything else are facts on sources, what is computed is a graph of its
own. Where the facts hold for another call's arguments, that call would do the very same, so its
operations are recorded again with its own tensors (`graph.fragment`), and the facts are noted where
it would have noted them (`grafting`). Next: loop.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any, NamedTuple

import torch

from framejit import config, native
from framejit.classes import is_known_by_identity
from framejit.directives import is_region
from framejit.exc import GraphBreak
from framejit.graph.builder import GraphBuilder
from framejit.graph.composites import Template, template_of
from framejit.graph.fragment import can_be_repeated
from framejit.graph.global_state import current
from framejit.graph.operation import Operation
from framejit.graph.repeats import Repeat
from framejit.interpreter import forced
from framejit.interpreter.call_arguments import Arguments, Copies, Undescribed
from framejit.interpreter.frame import Frame
from framejit.interpreter.grafting import Facts, Spoiled
from framejit.interpreter.outcomes import Restart, Returned
from framejit.interpreter.repeating import Repetition, Unreturnable, computed_nodes, returned
from framejit.values.core.base import CallRequest, Unmaterialisable, Value
from framejit.values.core.space import Space
from framejit.values.object_space import ObjectSpace

#: Calls of fewer instructions are inlined: repeating them is no faster.
_FEWEST_STEPS = 60
#: A call is recorded where repeating it is expected to spare so many instructions: that is what
#: recording costs, beyond inlining, and more.
_PRICE = 1000
#: So many calls, the first two included, and any recording pays.
_ENOUGH = 2 + _PRICE // _FEWEST_STEPS + 1
#: So often somebody may look inside of calls that are one operation each, before they are none.
_MOST_LOOKS = 3
#: So many different recordings are made of calls whose arguments look alike.
_MOST_ALIKE = 8
#: Of what modules hold, what their likeness looks at.
_TENSORS = (torch.Tensor, torch.nn.Parameter)


class CallRecording:
    """A call that was captured alone. ``space`` is its world, ``value`` what it returned.

    Raises Unreturnable where that cannot be made again.
    """

    def __init__(self, space: Space, copies: Copies, value: Value) -> None:
        self.space = space
        self.copies = copies
        self.value = value
        self.state = native.GlobalState()
        #: In how many blocks of autocast it was captured, where it depends on that.
        self.autocast_level = space.effects.autocast_level
        if self.autocast_level is not None:
            self.state.require_autocast_level(self.autocast_level)
        self.facts = Facts(space, set(returned(value, set(copies.values))))
        #: If it can be one operation where it is repeated.
        self.template = template_of(space.builder, computed_nodes(value, set(copies.values)))
        #: Was an operation recorded where a ``try`` or ``with`` of its own meets its errors?
        self.covered: bool = space.running.covered  # type: ignore[attr-defined]

    def close(self) -> None:
        """The capture is over."""
        _close(self.space)


class _Kind:
    """What is known of the calls of one function on objects of one class."""

    __slots__ = (
        "alike", "count", "made", "marked", "met", "recordings", "refused", "repeated", "steps",
    )  # fmt: skip

    def __init__(self, marked: bool) -> None:
        #: Did the user say that they repeat?
        self.marked = marked
        #: How many calls there were, and the most instructions that one took.
        self.count = self.steps = 0
        #: How many were recorded, and how many repeated.
        self.made = self.repeated = 0
        #: By the keys of their arguments; what fitted last comes first.
        self.recordings: dict[Any, list[CallRecording]] = {}
        #: The keys with the arguments' likeness: how often each was met, and recorded.
        self.met: Counter[Any] = Counter()
        self.alike: Counter[Any] = Counter()
        self.refused: set[Any] = set()

    def is_worth_it(self, key: Any, beside: int) -> bool:
        """Will a recording pay, as far as can be told from the calls so far, and from how many
        objects of the same class stand beside the call's own?"""
        if key in self.refused or self.alike[key] >= _MOST_ALIKE:
            return False
        if self.marked:
            return True
        if self.made >= 2 and self.repeated < 3 * self.made:  # they hardly come again
            return False
        met = self.met[key]  # this call included; as many again may come as came before it
        return met > 1 and max(beside - met, met - 2) * self.steps >= _PRICE


class _About(NamedTuple):
    """Of what kind a call is, and what users read of it."""

    kind: Any
    #: The class's or function's name.
    name: str
    #: Did the user say that such calls repeat?
    marked: bool


class _Inlined(NamedTuple):
    """A call that is inlined: of what kind it is, more if what it computes may become a region, and
    the last operation before it."""

    kind: Any
    about: _About | None
    last: Operation | None


class Recordings:
    """The recordings of one capture."""

    def __init__(self) -> None:
        #: How many calls were repeated, by the name of the class or function.
        self._repeated: Counter[str] = Counter()
        #: Of what kind the call is that is being captured alone.
        self._within: _Kind | None = None
        self._kinds: dict[Any, _Kind] = {}
        self._made: list[CallRecording] = []
        #: By the ids of modules, which outlive the capture.
        self._likenesses: dict[int, int] = {}
        #: The call that is about to be inlined.
        self._about: _About | None = None
        #: Per kind: the nodes that each call has recorded.
        self._calls: dict[_About, list[list[Any]]] = {}

    def close(self) -> None:
        """The capture is over: let go of the user's objects."""
        for recording in self._made:
            recording.close()
        self._made.clear()
        self._kinds.clear()
        self._calls.clear()

    @property
    def used(self) -> bool:
        """Has a call been repeated?"""
        return bool(self._repeated)

    def repeated(self) -> tuple[tuple[str, int], ...]:
        """Which calls were not executed, those of calls that were not executed left out."""
        return tuple(self._repeated.items())

    def repeats(self) -> list[Repeat]:
        """Which nodes each call of those that were made several times has recorded. What makes a
        call that the user said repeats, repeats: of that call only the first ones are known."""
        marked = {
            node
            for about, calls in self._calls.items() if about.marked
            for nodes in calls for node in nodes
        }  # fmt: skip
        return [
            Repeat(
                about.name, calls,
                about.marked or any(not marked.isdisjoint(nodes) for nodes in calls),
            )
            for about, calls in self._calls.items() if len(calls) > 1
        ]  # fmt: skip

    def entered(
        self, frame: Frame, request: CallRequest, caller: Frame, builder: GraphBuilder
    ) -> None:
        """A call is inlined, after what is in the graph."""
        subject = _subject(request)
        frame.subject = subject or caller.subject
        kind_of = _kind_of(request)
        if subject is not caller.subject or subject is None or self._kinds[kind_of].marked:
            sequence = builder.sequence
            frame.kind = _Inlined(kind_of, self._about, sequence[-1] if sequence else None)

    def left(self, frame: Frame, steps: int, builder: GraphBuilder) -> None:
        """It has returned, after so many instructions and with operations in the graph."""
        kind = self._kinds[frame.kind.kind]
        kind.steps = max(kind.steps, steps)
        if frame.kind.about is not None:
            nodes = [operation.node for operation in builder.since(frame.kind.last)]
            self._note_call(frame.kind.about, nodes)

    def _note_call(self, about: _About, nodes: list[Any]) -> None:
        if self._within is None and nodes:
            self._calls.setdefault(about, []).append(nodes)

    def instead(self, vm: Any, request: CallRequest) -> Value | None:
        """The result of a call, if it can be repeated or recorded."""
        self._about = None
        subject, kind_of = _subject(request), _kind_of(request)
        kind = self._kinds.get(kind_of)
        if kind is None:
            kind = self._kinds[kind_of] = _Kind(_is_marked(request))
        if not kind.marked and subject is not None and subject is vm.frame.subject:
            return None  # part of a call that is looked at as a whole
        kind.count += 1
        if kind.count > 1 and kind.steps < _FEWEST_STEPS and not kind.marked:
            return None
        if not _is_plain(request) or not _is_possible(vm):
            return None
        about = self._about = _About(kind_of, _name_of(request), kind.marked)
        try:
            arguments = Arguments(vm.space, request.slots)
        except Undescribed:
            return None
        where = current(), vm.space.effects.changed_state
        known = kind.recordings.setdefault((arguments.key, where), [])
        for number, recording in enumerate(known):
            value = self._repeat(vm, recording, arguments, about)
            if value is not None:
                kind.repeated += 1
                known.insert(0, known.pop(number))
                return value
        likeness = tuple([self._likeness(root.obj) for root in arguments.roots.values()])
        key = arguments.key, likeness, where
        kind.met[key] += 1
        # What is called once in a call that is being recorded is part of that.
        part = self._within is not None and kind.count <= self._within.count
        if part or not kind.is_worth_it(key, self._beside(vm.space, request)):
            return None
        recorded, outer = None, self._within
        self._within = kind
        try:
            recorded = self._record(vm, request, arguments)
        finally:
            self._within, self._about = outer, about
        if recorded is None:
            kind.refused.add(key)
            return None
        known.insert(0, recorded)
        kind.alike[key] += 1
        kind.made += 1
        kind.repeated += 1
        return self._repeat(vm, recorded, arguments, about)

    def _likeness(self, obj: Any) -> int:
        """Equal for modules that are likely to be recorded alike: of the same classes, with
        parameters and buffers of the same sizes; 0 for other objects. A guess, nothing relies on
        it."""
        if not issubclass(type(obj), torch.nn.Module):
            return 0
        known = self._likenesses.get(id(obj))
        if known is None:
            members = object.__getattribute__(obj, "__dict__")
            found: list[Any] = [type(obj)]
            for which in ("_parameters", "_buffers"):
                held = members.get(which)
                for name, part in held.items() if type(held) is dict else ():
                    if type(part) in _TENSORS:
                        found += name, part.shape, part.dtype
            self._likenesses[id(obj)] = 0  # it may contain itself
            modules = members.get("_modules")
            for part in modules.values() if type(modules) is dict else ():
                found.append(self._likeness(part))
            known = hash(tuple(found))
            self._likenesses[id(obj)] = known
        return known

    def _beside(self, space: Space, request: CallRequest) -> int:
        """How many objects like the call's own are in the container that it is in, if not more than
        it takes for a recording to pay."""
        first: Any = request.slots[0] if request.slots else None
        source = None if first is None else first.source
        if source is None or source.base is None:
            return 0
        container = getattr(space.preloaded(source.base), "obj", None)
        parts = container.values() if type(container) is dict else container
        if type(container) not in (dict, list, tuple):
            return 0
        own, likeness = type(first.obj), self._likeness(first.obj)
        some = itertools.islice(parts or (), 100)
        alike = (part for part in some if type(part) is own and self._likeness(part) == likeness)
        return sum(1 for _ in itertools.islice(alike, _ENOUGH))

    def _record(self, vm: Any, request: CallRequest, arguments: Arguments) -> CallRecording | None:
        """Capture the call alone; None if it does anything but compute its result."""
        outer = vm.space
        task = outer.task._replace(
            may_expect=False, recordings=None, alone=True, outside=outer.effects.changed_state
        )
        builder = GraphBuilder(outer.builder.world.symbols_if_any)
        space = ObjectSpace(builder, outer.policy, task)
        copies = Copies(space, arguments)
        inner = vm.beside(space)
        function = request.function
        try:
            frame = inner.make_frame(function.code, copies.slots, function.globals, None)
            outcome = inner.capture(frame)
        except (GraphBreak, Unmaterialisable):
            outcome = None
        finally:
            done = space.effects.is_clean and space.is_repeatable
            space.effects.restore_state()
        whole = isinstance(outcome, Returned) and done and not inner.suspended
        if not (whole and copies.unchanged() and can_be_repeated(builder)):
            _close(space)
            return None
        try:
            recording = CallRecording(space, copies, outcome.value)
        except Unreturnable:
            _close(space)
            return None
        self._made.append(recording)
        return recording

    def _repeat(
        self, vm: Any, recording: CallRecording, arguments: Arguments, about: _About
    ) -> Value | None:
        """The result of the call, if the recording fits: all of its facts hold."""
        if not recording.state.check():
            return None
        objects = recording.facts.hold(vm.space, arguments.objects)
        if objects is None:
            return None
        if self._within is None:
            self._repeated[about.name] += 1
        if recording.autocast_level is not None:
            vm.space.effects.nest(0, recording.autocast_level)
        try:
            graft = recording.facts.graft(vm.space, arguments, objects)
            again = Repetition(vm.space, recording.space, recording.copies, arguments, graft)
            template = _template(recording, vm.space)
            self._note_call(about, again.operations(vm.trace_of_call(), template))
        except Spoiled as problem:  # half of it is done
            raise Restart(vm.root_step, GraphBreak("FJ0161", str(problem)))
        vm.repeated(recording.covered)
        return again.result(recording.value)


def _template(recording: CallRecording, space: Space) -> Template | None:
    """The recording as one operation, if it can be one where the program is now."""
    template, builder = recording.template, space.builder
    if template is None or space.task.alone or builder.looked_inside >= _MOST_LOOKS:
        return None
    # Of what may raise in a ``try`` the graph must know.
    return None if template.raises and builder.leader.in_try() else template


def _close(space: Space) -> None:
    """Let go of the user's objects, those that facts hold included."""
    roots = [*space.slot_roots, *space.const_roots.values()]
    space.close()
    for root in roots:
        root.forget()


def _subject(request: CallRequest) -> Any:
    """Where the object comes from whose method is called."""
    slots = request.slots
    first = slots[0] if slots else None
    return None if first is None else first.source


def _kind_of(request: CallRequest) -> Any:
    cls = _class_of_first(request)
    function = request.function
    code, namespace = id(function.code), id(function.globals)
    return code, namespace, id(type(None) if issubclass(cls, torch.Tensor) else cls)


def _class_of_first(request: CallRequest) -> type:
    """Of the first argument, as far as it is an object that exists outside of the capture;
    isinstance() would ask the object for its `__class__`."""
    first: Any = request.slots[0] if request.slots else None
    return type(None if first is None else first.obj)


def _is_marked(request: CallRequest) -> bool:
    """Did the user say that such calls repeat, of the function or of what a module computes?"""
    if is_region(request.function.obj):
        return True
    cls = _class_of_first(request)
    if not issubclass(cls, torch.nn.Module):
        return False
    return is_region(next(c.__dict__["forward"] for c in cls.__mro__ if "forward" in c.__dict__))


def _name_of(request: CallRequest) -> str:
    """For people: the object's class, or the function."""
    cls = _class_of_first(request)
    return cls.__name__ if issubclass(cls, torch.nn.Module) else request.function.code.co_name


def _is_plain(request: CallRequest) -> bool:
    """Is the result what the frame returns, and nothing else to be done? Recordings are kept by
    class."""
    special = request.result or request.names or request.missing or request.reads
    usual = special is None and not request.operator
    return usual and is_known_by_identity(_class_of_first(request))


def _is_possible(vm: Any) -> bool:
    """Does the program stand where a call means the same as anywhere else?"""
    space = vm.space
    if vm.handled is not None or vm.suspended or vm.before_saving is not None:
        return False
    if space.transforms or space.user_keys or space.class_writes or space.local_classes:
        return False
    if config.capture_scalar_outputs or config.capture_dynamic_output_shape_ops:
        return False  # sizes may depend on data
    effects = space.effects
    hooked = effects.open_hooks or effects.hooks or effects.watched
    usual = space.torch_function.is_usual and not (hooked or effects.switched)
    return usual and forced.active is None
