"""`node.meta` of captured nodes: a dict whose expensive values are made when they are read.

In: per key a value, or a `Pending` that makes it. Out: what every reader of ``node.meta`` expects:
``example_value`` is a FakeTensor and ``stack_trace`` a string. A graph that nobody inspects (the
eager backend) never pays for them. Copies share what is pending.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


class NodeMeta(dict[str, Any]):
    """A dict with entries that are computed on first read."""

    __slots__ = ("_pending",)

    _pending: dict[str, Callable[[], Any]]

    def __init__(self, pending: dict[str, Callable[[], Any]], *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        self._pending = pending

    def _resolve(self) -> None:
        while self._pending:
            self.__missing__(next(iter(self._pending)))

    def __missing__(self, key: str) -> Any:
        make = self._pending.get(key)
        if make is None:
            raise KeyError(key)
        value = make()
        self._pending.pop(key, None)
        super().__setitem__(key, value)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self._pending

    def __setitem__(self, key: str, value: Any) -> None:
        self._pending.pop(key, None)
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        if self._pending.pop(key, None) is None or super().__contains__(key):
            super().__delitem__(key)

    def pop(self, key: str, *default: Any) -> Any:
        if key in self._pending:
            self.__missing__(key)
        return super().pop(key, *default)

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key in self:
            return self[key]
        self[key] = default
        return default

    def update(self, *args: Any, **values: Any) -> None:
        for key, value in dict(*args, **values).items():
            self[key] = value

    def clear(self) -> None:
        self._pending.clear()
        super().clear()

    def copy(self) -> NodeMeta:
        return NodeMeta(dict(self._pending), super().items())

    __copy__ = copy

    def __len__(self) -> int:
        return super().__len__() + len(self._pending)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[str]:
        self._resolve()
        return super().__iter__()

    def keys(self) -> Any:
        self._resolve()
        return super().keys()

    def values(self) -> Any:
        self._resolve()
        return super().values()

    def items(self) -> Any:
        self._resolve()
        return super().items()

    def __eq__(self, other: object) -> bool:
        self._resolve()
        return super().__eq__(other)

    def __or__(self, other: Any) -> Any:
        self._resolve()
        return dict(super().items()) | other

    def __repr__(self) -> str:
        self._resolve()
        return super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        self._resolve()
        return (dict, (dict(super().items()),))
