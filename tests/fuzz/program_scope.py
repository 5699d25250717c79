"""Which variables a random program may use at a place, and of what kind they are."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class Scope:
    """The variables of one function; ``parent`` is the function around it."""

    def __init__(self, parent: Scope | None = None, method_of: str = "") -> None:
        self.parent = parent
        self.method_of = method_of
        #: (name, kind) of what is bound here at the current place.
        self.bound: list[tuple[str, str]] = []
        #: Names that only a comprehension or lambda binds: never assigned by a statement.
        self.fixed: set[str] = set()
        self.loops = 0
        self.depth = 0 if parent is None else parent.depth + 1
        self.returns = "any"
        self.generator = False

    def own(self, kind: str) -> list[str]:
        """Variables of a kind that statements here may assign."""
        return [name for name, its in self.bound if its == kind and name not in self.fixed]

    def readable(self, kind: str) -> list[str]:
        """Variables of a kind that expressions here may read."""
        names = [name for name, its in self.bound if its == kind]
        return names + (self.parent.readable(kind) if self.parent is not None else [])

    def bind(self, name: str, kind: str) -> None:
        """``name`` has a value from here on."""
        self.unbind(name)
        self.bound.append((name, kind))

    def unbind(self, name: str) -> None:
        """``name`` has no value from here on."""
        self.bound = [pair for pair in self.bound if pair[0] != name]

    @contextlib.contextmanager
    def block(self, keep: bool = False) -> Iterator[None]:
        """A block that may not run: what it binds is not known after it."""
        before = list(self.bound)
        yield
        if not keep:
            kept = set(self.bound)
            self.bound = [pair for pair in before if pair in kept]

    @contextlib.contextmanager
    def inner(self, *variables: tuple[str, str]) -> Iterator[None]:
        """The variables of a comprehension or lambda."""
        before, fixed = list(self.bound), set(self.fixed)
        self.bound = self.bound + list(variables)
        self.fixed |= {name for name, _ in variables}
        yield
        walrus = [p for p in self.bound if p not in before and p not in variables]
        self.bound, self.fixed = before, fixed
        del walrus
