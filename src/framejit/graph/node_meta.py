"""`node.meta` of captured nodes: a dict whose expensive values are made when they are read.

In: per key a value, or a `Pending` that makes it. Out: what every reader of ``node.meta`` expects:
``example_value`` is a FakeTensor and ``stack_trace`` a string. A graph that nobody inspects (the
eager backend) never pays for them. Copies share what is pending.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

_Mapping: Any = MutableMapping  # its methods have other types than those of dict


class NodeMeta(_Mapping, dict[str, Any]):
    """A dict with entries that are computed on first read.

    The methods that are not here are those of `MutableMapping`, which ask these.
    """

    __slots__ = ("_pending",)

    _pending: dict[str, Callable[[], Any]]

    def __init__(self, pending: dict[str, Callable[[], Any]], *args: Any, **values: Any) -> None:
        dict.__init__(self, *args, **values)
        self._pending = pending

    __getitem__ = dict.__getitem__  # asks `__missing__`

    def __missing__(self, key: str) -> Any:
        make = self._pending.get(key)
        if make is None:
            raise KeyError(key)
        self[key] = value = make()
        return value

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key) or key in self._pending

    def __setitem__(self, key: str, value: Any) -> None:
        self._pending.pop(key, None)
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: str) -> None:
        if self._pending.pop(key, None) is None or dict.__contains__(self, key):
            dict.__delitem__(self, key)

    def copy(self) -> NodeMeta:
        return NodeMeta(dict(self._pending), dict.items(self))

    __copy__ = copy

    def __len__(self) -> int:
        return dict.__len__(self) + len(self._pending)

    def __iter__(self) -> Iterator[str]:
        while self._pending:
            self.__missing__(next(iter(self._pending)))
        return dict.__iter__(self)

    def __or__(self, other: Any) -> Any:
        return dict(self) | other

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (dict, (dict(self),))
