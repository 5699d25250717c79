"""What a compiler has compiled in the background: graphs now, their entries a moment later.

In: a graph that a capture hands to the backend, and the entry that was made with the graph as it
is. Out: the compiled graph in its place. Sizes about which the backend assumed more than the
capture get an entry of their own, in front of the one that runs the graph as it is. Next: the room
itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import pickle
import threading
import time
import types
import weakref
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import torch.fx

from framejit import native
from framejit.backends import sharing
from framejit.backends.compile import tell_refused
from framejit.backends.exclusive import exclusive
from framejit.capture.graphs import GraphCall
from framejit.capture.target import Target
from framejit.codegen.function import GRAPH
from framejit.collection import ImportsGrowOld
from framejit.compiled_frame import CompiledFrame, Origin
from framejit.graph import slow_imports
from framejit.graph.alike import description
from framejit.graph.expressions import Tree
from framejit.graph.lazy import operation_count
from framejit.graph.silence import remembering
from framejit.guards.plan import Plan
from framejit.package.descriptions import Unsaveable
from framejit.report import events, messages

from .captures import captures
from .crew import Crew, crew
from .job import Compiled, Input, TorchSettings, encode, in_thread, inputs_of, settings_now

#: Seconds that a fork waits for modules to be imported.
_LONGEST_FORK = 30.0


class _Postponed(NamedTuple):
    """A graph that runs as it is, and what was known when it was handed to the backend."""

    target: Target
    inputs: list[Input]
    settings: TorchSettings
    key: Hashable | None


class Background:
    """The backend of one compiler, in another process."""

    def __init__(
        self, backend: str, mode: str | None, options: dict[str, Any] | None,
        function: Callable[..., Any],
    ) -> None:  # fmt: skip
        self.spelling = backend, mode, options
        #: The same backend here, which makes a callable of what the other process has compiled.
        self.function = function
        self._postponed: weakref.WeakKeyDictionary[torch.fx.GraphModule, _Postponed] = (
            weakref.WeakKeyDictionary()
        )

    def entry_for(
        self, compiled: CompiledFrame, slots: tuple[Any, ...], make: Callable[[], Any]
    ) -> Any:
        """An entry for a call, which ``make`` makes, if there is time for it; else None."""
        if self.is_loading():
            compiled.left("FJ0306", "modules that captures need are being imported")
            captures().rest(compiled)
            return None
        return captures().entry_for(compiled, slots, make)

    def rest(self, compiled: CompiledFrame) -> None:
        """It runs as plain Python for now, and so does what it calls."""
        captures().rest(compiled)

    def postpone(self, target: Target, module: torch.fx.GraphModule, examples: list[Any]) -> bool:
        """May ``module`` run as it is until it is compiled?"""
        inputs = inputs_of(examples)
        if inputs is None:
            return False
        settings = settings_now()
        key = self._key(description(module, examples), settings)
        self._postponed[module] = _Postponed(target, inputs, settings, key)
        return True

    def _key(self, described: Hashable | None, settings: TorchSettings) -> Hashable | None:
        """Equal for graphs that are compiled to the same; None if this one is like no other."""
        if described is None or self.spelling[2]:
            return None
        configurations = pickle.dumps(settings.configurations)
        return self.spelling[:2], settings[:-1], configurations, described

    def load(self) -> None:
        """Import what takes long, of which a capture was in need."""
        _imports.begin()

    def is_loading(self) -> bool:
        """Is that still going on?"""
        return _imports.begun and not _imports.done

    def is_done(self, compiler: Any) -> bool:
        """Is nothing left to do for it?"""
        return captures().is_done(compiler) and crew().wait(compiler, 0)

    def added(self, compiled: CompiledFrame, entry: Any) -> None:
        """There is a new entry: have its graph compiled if that was postponed."""
        origin = compiled.origins.get(id(entry))
        if isinstance(origin, Origin) and origin.call is not None:
            postponed = self._postponed.pop(origin.call.module, None)
            if postponed is not None:
                compiled.origins[id(entry)] = origin._replace(postponed=True)
                upgrade = _Upgrade(self, postponed, compiled, entry, origin.call)
                if not crew().add(upgrade):
                    upgrade.failed("no thread can be started")


def wait(owner: object = None, timeout: float | None = None) -> bool:
    """Wait until nothing is left to do, for a compiler if given; False if ``timeout`` seconds were
    not enough."""
    until = None if timeout is None else time.monotonic() + timeout
    if not captures().finish(owner, until):
        return False
    return crew().wait(owner, None if until is None else max(until - time.monotonic(), 0))


class _Imports:
    """What takes long to import, and a capture may be in need of, imported once."""

    owner: object = None
    begun = False
    done = False

    def run(self, crew: Crew) -> None:
        """In the crew's thread."""
        with ImportsGrowOld(), remembering():
            for name in (*slow_imports.MODULES, *slow_imports.LATER):
                with contextlib.suppress(Exception):  # whoever needs it will be told
                    importlib.import_module(name)
        self.done = True

    def begin(self) -> None:
        """Have it done."""
        if not self.begun:
            self.begun = True
            if not crew().add(self):
                self.run(crew())

    def before_fork(self) -> None:
        """A child would wait for ever for a module that a thread is importing: it has none."""
        until = time.monotonic() + _LONGEST_FORK
        in_thread_of_crew = threading.current_thread() is crew().thread
        while self.begun and not self.done and not in_thread_of_crew and time.monotonic() < until:
            time.sleep(0.01)

    def after_fork(self) -> None:
        """In a child: nobody is importing."""
        self.begun = self.done


_imports = _Imports()
os.register_at_fork(
    before=lambda: _imports.before_fork(), after_in_child=lambda: _imports.after_fork()
)


class _Upgrade:
    """Compile the graph of an entry, and put what comes of it in its place."""

    def __init__(
        self, background: Background, postponed: _Postponed, compiled: CompiledFrame, entry: Any,
        call: GraphCall,
    ) -> None:  # fmt: skip
        self.background = background
        self.postponed = postponed
        self.compiled = weakref.ref(compiled)
        self.entry = entry
        self.call = call
        self.owner: object = compiled.compiler

    def run(self, crew: Crew) -> None:
        """In the crew's thread."""
        try:
            if self._is_wanted():
                self._compile(crew)
        except Unsaveable as error:
            self.failed(f"it refers to {error}")
        except Exception as error:
            self.failed(f"{type(error).__name__}: {error}")

    def _is_wanted(self) -> CompiledFrame | None:
        """The frame, if it still has the entry."""
        compiled = self.compiled()
        there = compiled is not None and any(one is self.entry for one in compiled.entries)
        return compiled if there else None

    @property
    def _plan(self) -> Plan | None:
        compiled = self.compiled()
        return None if compiled is None else compiled.plans.get(id(self.entry))

    def _compile(self, crew: Crew) -> None:
        target, inputs, settings, key = self.postponed
        background, module = self.background, self.call.module
        shown = {**target.shown, "backend": background.spelling[0]}
        operations = operation_count(module)
        shared = sharing.find(key, background.function, module)
        if shared is not None:
            self._put_in_place(shared, [])
            events.emit(events.GraphReused(**shown, operations=operations))
            return
        plan, started = self._plan, time.perf_counter()
        message = encode(
            background.spelling, module, inputs, settings, target.namespace,
            None if plan is None else plan.shapes,
        )  # fmt: skip
        events.emit(events.BackendStart(**shown, operations=operations))
        done: Compiled = crew.ask(message)
        for reason in done.refused:
            tell_refused(module, shown, reason)
        if done.parts is None:
            if not done.refused:
                self.failed(done.problem)
            return
        with in_thread(settings):  # what runs it asks whether there is autocast around it
            run = background.function.deserialize(done.parts, lambda: module)  # type: ignore[attr-defined]
        if run is None:
            self.failed("what it is compiled to cannot be given to another process")
            return
        sharing.keep(key, run, module)
        self._put_in_place(run, done.assumed)
        seconds = time.perf_counter() - started
        count = len(module.graph.find_nodes(op="placeholder"))
        known = {**shown, "operations": operations, "inputs": count}
        events.emit(events.GraphCompiled(**known, seconds=seconds))

    def _put_in_place(self, run: Callable[..., Any], assumed: list[Tree]) -> None:
        compiled = self._is_wanted()
        if compiled is None:
            return
        graph = self.call.care.around(run, self.call.module)
        call = dataclasses.replace(self.call, compiled=run)
        with exclusive():  # calls that nothing fits wait here
            if not assumed:
                self.entry.function.__globals__[GRAPH] = graph
                origin = compiled.origins[id(self.entry)]
                compiled.origins[id(self.entry)] = origin._replace(call=call, postponed=False)
            elif self._is_wanted():
                self._put_in_front(compiled, graph, call, assumed)

    def _put_in_front(
        self, compiled: CompiledFrame, graph: Callable[..., Any], call: GraphCall,
        assumed: list[Tree],
    ) -> None:  # fmt: skip
        """An entry with more guards, for the sizes that were assumed."""
        entry, plan = self.entry, compiled.plans[id(self.entry)]
        origin = compiled.origins[id(entry)]
        stricter = plan.assuming(assumed)
        tree = native.GuardTree(entry.tree.export(), entry.tree.state, stricter.program)
        old = entry.function
        function = types.FunctionType(
            old.__code__, {**old.__globals__, GRAPH: graph}, old.__name__, old.__defaults__
        )
        made = native.Entry(tree, function, entry.layout)
        compiled.plans[id(made)] = stricter
        compiled.origins[id(made)] = origin._replace(call=call, postponed=False)
        entries = compiled.entries
        compiled.clear_entries()
        for one in (made, *entries):
            compiled.add_entry(one)

    def failed(self, reason: str) -> None:
        """The entry goes on with the graph as it is, and says so."""
        shown, name = self.postponed.target.shown, self.background.spelling[0]
        events.emit(events.BackendFailed(**shown, backend=name, reason=reason))
        messages.warn_background(name, **shown, reason=reason)
