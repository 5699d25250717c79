"""What one compiled function or continuation holds: entries, their origins, why it is left alone.

In: a `Target` and the compiler that it belongs to. Out: a `CompiledFrame`, the object that the
native dispatch calls. Next room: misses.
"""

from __future__ import annotations

import inspect
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from framejit import config, directives, native
from framejit.bytecode.decode import decode
from framejit.capture.graphs import GraphCall
from framejit.capture.target import Caller, Target
from framejit.graph.stand_ins import StandIns
from framejit.guards.plan import Failure, Plan
from framejit.guards.standing_in import as_given
from framejit.interruptions import interrupts
from framejit.peer import is_machinery
from framejit.report import events, messages
from framejit.shapes import profile
from framejit.shapes.policy import NumberSeen, Policy, Seen
from framejit.source import Source
from framejit.values.core import inline_policy
from framejit.values.core.effects import Change

if TYPE_CHECKING:
    from framejit.compiler import Compiler


class Origin(NamedTuple):
    """What an entry was made from, besides its guards: for saving it."""

    call: GraphCall | None
    executed: dict[types.CodeType, str]
    text: str = ""  # of the generated function
    lines: dict[str, set[int]] = {}  # that were captured, if somebody wanted to know
    operations: int = 0
    broke: events.Ended | None = None
    changes: tuple[Change, ...] = ()
    #: Does its graph run as it is, because the backend works in the background, or has failed
    #: there?
    postponed: bool = False


class CompiledFrame(native.CompiledFunction):
    """A compiled function or continuation: the native dispatch object and what it captures."""

    target: Target
    compiler: Compiler
    plans: dict[int, Any]
    origins: dict[int, Origin]
    hooked: bool
    #: Continuations of this one and of a caller, by caller.
    joined: dict[Caller, CompiledFrame]
    #: Why it runs as plain Python, if it does.
    skipped: events.FrameSkipped | events.RecompileLimit | None
    #: What varied from call to call, and its name in profiles.
    policy: Policy
    profile_key: str
    #: The same as plain Python, made when a graph has raised.
    plain: Callable[..., Any] | None
    #: Was it called once, as plain Python, before anything was compiled (`config.eager_first`)?
    met: bool
    #: How often what was compiled was forgotten.
    emptied: int
    #: How often a truth value was not the one that had been taken for granted.
    refuted: int
    #: How many calls ran as plain Python since the next one can be captured whole (`NotYet`).
    waited: int

    def __set_name__(self, owner: type, name: str) -> None:
        """A class makes class methods of these by itself, but only of plain functions."""
        if name in ("__init_subclass__", "__class_getitem__"):
            setattr(owner, name, classmethod(self))

    def setup(self, compiler: Compiler, target: Target, hooked: bool) -> None:
        """Fill in what the native constructor does not know."""
        self.compiler = compiler
        self.target = target
        self.plans = {}
        self.origins = {}
        self.hooked = hooked
        if target.point is not None and not target.callers:
            self.variables = len(decode(target.code).slot_names)
        self.joined = {}
        self.emptied = 0
        self.plain = None
        self.refuted = self.waited = 0
        self.met = False
        self.skipped = None
        self.start_over()

    def start_over(self) -> None:
        """Forget what is compiled, and what was seen to vary."""
        self.drop_entries()
        self.joined.clear()
        self.policy = Policy(self.compiler.dynamic, Seen())
        self.profile_key = ""
        self.consider()

    def consider(self) -> None:
        """Nothing is compiled yet: is there a reason to leave it alone?"""
        self.run_only = self.ask_always = False
        function: Any = self.function
        if function is None:
            self.skipped = None
        elif decode(function.__code__).is_generator:
            reason = "generators and coroutines run as plain Python"
            if self.compiler.fullgraph:
                name, filename, line = self.target.shown.values()
                raise messages.graph_break_error("FJ0301", reason, "", (filename, line, name))
            self.skip("FJ0301", reason)
        elif is_machinery(function, asked_for=not self.hooked):
            self.skip("FJ0303", "it was made by torch.compile, which compiles what is inside")
            self.context = None
        elif (mark := directives.mark_of(function)) in ("disable", "skip"):
            code = getattr(inspect.unwrap(function), "__code__", None)  # none: written in C
            place = ("", 0) if code is None else (code.co_filename, code.co_firstlineno)
            self.skip("FJ0306", f"it is marked with framejit.{mark}, or the like", place)
        else:
            self.skipped = None

    def remember(self) -> None:
        """Before the first capture: what earlier runs say about this code."""
        if not self.profile_key:
            target = self.target
            module = str(target.namespace.get("__name__"))
            self.profile_key = profile.frame_key(target.code, module, target.place)
            library = self.compiler.library
            told = None if library is None else library.profile
            profile.start(self.profile_key, self.policy.seen, told)

    def meet(self, slots: tuple[Any, ...]) -> None:
        """A call runs as plain Python, and its arguments count among those that were seen."""
        self.met = True
        self.remember()
        seen, names = self.policy.seen, decode(self.target.code).slot_names
        for index, (name, value) in enumerate(zip(names, slots, strict=False)):
            known = Source(None, "slot", index, f"L[{name!r}]").name
            if type(value) in (torch.Tensor, torch.nn.Parameter):
                seen.tensor(known, tuple(value.shape), value.stride())
            elif type(value) in (int, float):
                seen.numbers.setdefault((known, type(value).__name__), NumberSeen(value))

    def recode(self, function: types.FunctionType) -> None:
        """Its code is no longer what it was."""
        label = self.target.label
        self.target = Target(function.__code__, function.__globals__, None, label=label)
        self.start_over()

    def has_code_of(self, target: Target) -> bool:
        """Is it still what ``target`` says it is?"""
        function: Any = self.function
        return self.target is target and (function is None or target.is_start_of(function))

    def drop_entries(self) -> None:
        """Forget what is compiled."""
        self.emptied += 1
        self.clear_entries()
        self.plans.clear()
        self.origins.clear()

    def set_aside(self) -> Callable[[], None]:
        """Forget what is compiled until the result is called."""
        entries, joined = self.entries, {**self.joined}
        plans, origins, state = {**self.plans}, {**self.origins}, (self.skipped, self.run_only)
        self.drop_entries()
        self.joined.clear()
        self.consider()

        def put_back() -> None:
            self.drop_entries()
            for entry in entries:
                self.add_entry(entry)
            self.plans.update(plans)
            self.origins.update(origins)
            self.joined.update(joined)
            self.skipped, self.run_only = state

        return put_back

    def left(self, identifier: str, reason: str) -> None:
        """A call runs as plain Python: whoever follows what happens wants to know."""
        if events.followed():
            shown = self.target.shown
            if self.skipped is not None:
                shown |= {"filename": self.skipped.filename, "line": self.skipped.line}
            events.emit(events.CallSkipped(**shown, reason=reason, identifier=identifier))

    def wait(self, reason: str) -> None:
        """This call runs as plain Python, for the next one to be captured whole."""
        self.waited += 1
        self.left("FJ0306", reason)

    def failures(self, slots: tuple[Any, ...], stand_ins: StandIns | None = None) -> list[Any]:
        """Why the entries do not fit a call; last: the one that fits best."""
        seen_as = None if stand_ins is None else stand_ins.of
        found = [
            _failure(plan, self.tree_for(entry, slots, stand_ins), slots, seen_as)
            for entry in self.entries
            if (plan := self.plans.get(id(entry))) is not None
        ]
        return sorted(found, key=lambda failure: failure.checked)

    def tree_for(
        self, entry: native.Entry, slots: tuple[Any, ...], stand_ins: StandIns | None
    ) -> native.GuardTree:
        """The guards of an entry, for a call with tensors that have no content yet."""
        plan = self.plans.get(id(entry))
        if stand_ins is None or plan is None:
            return entry.tree
        nodes = as_given(entry.tree.export(), plan.values_in(slots), stand_ins)
        return native.GuardTree(nodes, entry.tree.state, plan.program)

    def described(self, entry: native.Entry) -> events.EntryAdded:
        """An entry for reports."""
        origin = self.origins.get(id(entry))
        operations = 0 if origin is None else origin.operations
        return events.EntryAdded(
            **self.target.shown, operations=operations, detail=_detail(self, id(entry))
        )

    def skip(self, identifier: str, reason: str, place: tuple[str, int] | None = None) -> None:
        """Run as plain Python from now on. ``place``: the user's, if it is not the code's. What was
        told of it before a reset is not told again."""
        self.run_only = True
        told = self.skipped is not None and self.skipped.reason == reason
        shown = self.target.shown
        if place is not None:
            shown |= {"filename": place[0], "line": place[1]}
        self.skipped = events.FrameSkipped(**shown, reason=reason, identifier=identifier)
        if not told:
            events.emit(self.skipped)


def _failure(
    plan: Plan, tree: native.GuardTree, slots: tuple[Any, ...],
    seen_as: Callable[[Any], Any] | None,
) -> Failure:  # fmt: skip
    """Why an entry does not fit a call. That it cannot be put into words is no error of the call's:
    its values may be any objects."""
    try:
        return plan.failure(tree, slots, seen_as)
    except Exception as error:
        if config.raise_internal_errors or interrupts(error):
            raise
        what = f"a guard fails, and saying which raised {type(error).__name__}"
        return Failure("FJ0403", what)


def _detail(compiled: CompiledFrame, key: int) -> Callable[[], events.EntryDetail | None]:
    """What reports show of an entry, while it exists."""
    known = weakref.ref(compiled)

    def detail() -> events.EntryDetail | None:
        alive = known()
        origin = None if alive is None else alive.origins.get(key)
        if alive is None or not isinstance(origin, Origin):
            return None
        graph = None if origin.call is None else origin.call.module
        functions = [
            (code.co_filename, code.co_firstlineno, code.co_qualname)
            for code, module in origin.executed.items()
            if not inline_policy.is_library(module)
        ]
        return events.EntryDetail(
            alive.target.code, graph, origin.text, alive.plans[key].guards(), origin.lines,
            functions,
        )  # fmt: skip

    return detail
