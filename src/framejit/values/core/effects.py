"""The log of side effects: which existing objects the captured program changed, in which order.

In: notes of values that changed. Out: an ordered log that `codegen.effects` replays after the
graph, and what must hold before it is.
The new state itself lives in the values (a list's items, an object's attributes); this module keeps
the order, and the changes of globals and of torch's global state, which no value owns.
Next room: codegen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from framejit.graph.changes import Changes
from framejit.values.core.torch_function import TorchFunction

if TYPE_CHECKING:
    from framejit.values.core.base import Value
    from framejit.values.torch.hooks import Hooks


class GlobalChange(NamedTuple):
    """A global that was assigned, or deleted."""

    namespace: dict[str, Any]
    value: Value | None
    deleted: bool


class Change(NamedTuple):
    """What a program has done to something that exists outside, in words."""

    what: str  # local 'self'.calls
    line: tuple[str, int] | None  # the user's, of the first time


class Graded(NamedTuple):
    """A tensor of the graph that gets a gradient: what it is for the program, since which step."""

    value: Value
    step: int


class Effects:
    """What must be replayed: ``changed`` values in order of their first change."""

    def __init__(
        self, changes: Changes, outside: frozenset[Any] = frozenset(),
        user_line: Callable[[], tuple[str, int] | None] = lambda: None,
    ) -> None:  # fmt: skip
        self.changes = changes
        self.user_line = user_line
        #: Where what is in `changed` and `globals` was changed first.
        self.places: dict[Any, tuple[str, int] | None] = {}
        self.changed: dict[Value, None] = {}
        #: How many changes of objects and globals, and of torch's state, were noted.
        self.writes = self.settings = 0
        #: Cached functions that will run for calls which their caches do not hold.
        self.first_calls: list[Any] = []
        self.globals: dict[tuple[int, str], GlobalChange] = {}
        #: (setter of torch's global state, what it selects) -> the value before the first call.
        self.state: dict[tuple[Any, tuple[Any, ...]], Any] = {}
        #: Who is asked by ``__torch_function__``.
        self.torch_function = TorchFunction()
        #: The keys of those that were changed before, around a call that is captured alone.
        self.outside: frozenset[tuple[Any, tuple[Any, ...]]] = outside
        #: How much deeper autocast is nested than at the start.
        self.nesting = 0
        #: How deep it was nested at the start, where the program has asked: torch's cache of casts
        #: is cleared at the end of the outermost block.
        self.autocast_level: int | None = None
        #: Hooks of autograd that the program has put in place, and those that are still open.
        self.hooks: list[Hooks] = []
        self.open_hooks: list[Hooks] = []
        #: The steps in which the graph computes gradients.
        self.differentiations: list[int] = []
        #: Existing tensors whose gradient was written, or set to another tensor.
        self.given_gradient: dict[Value, None] = {}
        #: The steps that assigned gradients to tensors.
        self.gradients_assigned: dict[Value, int] = {}
        #: Those that lost it before anything was computed.
        self.released: dict[Value, None] = {}
        #: Leaves that the graph has made, by their nodes.
        self.made_leaves: dict[Any, Graded] = {}
        #: Dicts of hooks that leaves were given, which hold them.
        self.hook_dicts: dict[Value, None] = {}
        #: Results that keep their gradients, by their nodes.
        self.retaining: dict[Any, Graded] = {}
        #: Results whose hooks are traced when a gradient arrives, by their nodes.
        self.watched: dict[Any, Any] = {}
        #: Existing tensors whose ``requires_grad`` was switched or whose elements were replaced,
        #: and the steps of the first time.
        self.switched: dict[Value, int] = {}
        #: The nodes of the latter before that, and the steps.
        self.replaced: dict[Any, int] = {}
        #: The former nodes of tensors that have let go of their history, and the steps.
        self.let_go: dict[Any, int] = {}
        #: Collective operations that nobody has waited for, and since which step.
        self.unfinished: dict[Value, int] = {}
        #: Truth values that depend on data and are taken for granted; checked after the graph.
        self.expected: dict[Value, bool] = {}
        #: Calls of cached functions, with what their caches must hold for them, if they hold
        #: anything; checked before the graph.
        self.expected_in_caches: list[Any] = []
        #: Parts of the results of such calls, with the call that gives the program the object.
        self.held_by_caches: dict[Value, Any] = {}

    @property
    def count(self) -> int:
        """How many changes were noted."""
        return self.writes + self.settings

    @property
    def changed_state(self) -> frozenset[tuple[Any, tuple[Any, ...]]]:
        """What of torch's global state is not as it was at the start, perhaps."""
        return self.outside.union(self.state)

    def has_set(self, setter: Any, *selector: Any) -> bool:
        """Has this setter of torch's global state been called, perhaps?"""
        key = setter, selector
        return key in self.state or key in self.outside

    @property
    def is_clean(self) -> bool:
        """Is nothing to be replayed or checked?"""
        made = self.changed or self.globals or self.first_calls or self.expected
        return not (made or self.hooks or self.watched or self.count or self.nesting)

    def described(self) -> tuple[Change, ...]:
        """What happens to objects, globals and hooks that exist outside; not what operations of the
        graph write to tensors."""
        found = [
            Change(
                "an object" if value.source is None else value.source.name, self.places.get(value)
            )
            for value in self.changed
            if not (value.is_as_before() or (value.source is None and value.obj is None))
        ]
        found += [Change(f"global {key[1]!r}", self.places[key]) for key in self.globals]
        found += [Change("a hook of autograd", None) for _ in self.hooks]
        return tuple(found)

    def note(self, value: Value) -> None:
        """``value`` represents an object that exists outside and its state has changed."""
        if value not in self.changed:
            self.changed[value] = None
            self.places[value] = self.user_line()
        self.writes += 1
        self.changes.note()

    def store_global(self, namespace: dict[str, Any], name: str, value: Value | None) -> None:
        """Assign a global, or delete it (``value`` None)."""
        self.writes += 1
        self.changes.note()
        self.places.setdefault((id(namespace), name), self.user_line())
        self.globals[(id(namespace), name)] = GlobalChange(namespace, value, value is None)

    def globals_value(self, namespace: dict[str, Any], name: str) -> GlobalChange | None:
        """The change of this global in this capture, if there was one."""
        return self.globals.get((id(namespace), name))

    def remember_state(self, setter: Any, selector: tuple[Any, ...], value: Any) -> None:
        """``value`` is what the setter is about to change; the first one counts."""
        self.state.setdefault((setter, selector), value)
        self.settings += 1
        self.changes.note()

    def nest(self, step: int, level: int) -> None:
        """Autocast was entered (1) or left (-1), or neither, and is ``level`` blocks deep now."""
        self.nesting += step
        self.autocast_level = level - self.nesting
        self.changes.note()

    def enter_mode(self, mode: Value) -> None:
        """A mode is to see torch's functions."""
        self.torch_function.modes.append(mode)
        self.changes.note()

    def leave_mode(self) -> Value:
        """The innermost mode is left."""
        self.changes.note()
        return self.torch_function.modes.pop()

    def ask(self, state: Any) -> None:
        """From now on these are asked by torch's functions."""
        self.torch_function.state = state
        self.changes.note()

    def let_go_of_history(self, node: Any, step: int) -> None:
        """A tensor has no history any more: it has another node."""
        self.let_go[node] = step
        self.writes += 1
        self.changes.note()

    def note_watching(self) -> None:
        """A hook that is traced later was put in place, or taken away."""
        self.changes.note()

    def open(self, hooks: Hooks) -> None:
        """Hooks on saved tensors are opened."""
        self.hooks.append(hooks)
        self.open_hooks.append(hooks)
        self.changes.note()

    def close_hooks(self) -> Hooks:
        """The innermost ones are closed."""
        self.changes.note()
        return self.open_hooks.pop()

    def expect(self, value: Value, truth: bool) -> None:
        """A truth value that depends on data is taken for granted."""
        self.expected.setdefault(value, truth)
        self.changes.note()

    def expect_in_cache(self, call: Any) -> None:
        """What a cache holds for a call is taken to be what was computed."""
        self.expected_in_caches.append(call)
        self.changes.note()

    def restore_state(self) -> None:
        """Put torch's global state back to what it was before the capture changed it."""
        for (setter, selector), before in reversed(list(self.state.items())):
            setter(*selector, before)
        while self.nesting > 0:
            torch.autocast_decrement_nesting()
            self.nesting -= 1
        while self.nesting < 0:
            torch.autocast_increment_nesting()
            self.nesting += 1
