"""Calls with objects that the text of a graph cannot spell: the node's target holds them.

In: a function, its arguments with `Place` where a tensor or a number of the graph goes. Out: a
callable for a node. Two of them are equal if they do the same. Next room: builder.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import torch

from .opaque import is_handle_class


class Place(NamedTuple):
    """The n-th argument of the node."""

    number: int


class Holding:
    """A function that is called with the arguments of a node and with what it holds.

    Containers are made anew for each call, so what is done to them is not seen by the next one.
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> None:
        self.function = function
        self.__name__: str = getattr(function, "__name__", type(function).__name__)
        self.__qualname__ = self.__name__
        self._args, self._kwargs = args, kwargs
        self._key = function, described(args), described(kwargs)

    @property
    def parts(self) -> tuple[Any, ...]:
        """What it is made of again: the function, and the templates of its arguments."""
        return self.function, self._args, self._kwargs

    def __call__(self, *given: Any) -> Any:
        args = [_filled(arg, given) for arg in self._args]
        return self.function(*args, **_filled(self._kwargs, given))

    def __eq__(self, other: object) -> bool:
        return type(other) is Holding and other._key == self._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __deepcopy__(self, memo: Any) -> Holding:
        return self

    def __repr__(self) -> str:
        return f"<{self.__name__} with objects>"


def _filled(template: Any, given: tuple[Any, ...]) -> Any:
    kind = type(template)
    if kind is Place:
        return given[template.number]
    if kind is dict:
        return {key: _filled(part, given) for key, part in template.items()}
    if kind is tuple or kind is list or kind is torch.Size:
        return kind([_filled(part, given) for part in template])
    return template


class _Same:
    """An object, equal to itself alone."""

    def __init__(self, obj: Any) -> None:
        self._obj = obj

    def __eq__(self, other: object) -> bool:
        return type(other) is _Same and other._obj is self._obj

    def __hash__(self) -> int:
        return id(self._obj)


def described(template: Any) -> Hashable:
    """Something that is equal for templates which give the same."""
    kind = type(template)
    if kind is dict:
        return kind, tuple([(key, described(part)) for key, part in template.items()])
    if kind is tuple or kind is list or kind is torch.Size:
        return kind, tuple(map(described, template))
    if kind in (float, complex):
        return kind, repr(template)  # -0.0 and nan
    unequal = kind.__eq__ is object.__eq__ or kind.__hash__ is None
    if unequal or is_handle_class(kind):
        return _Same(template)
    return kind, template
