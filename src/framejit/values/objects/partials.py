"""``functools.partial``: functions with arguments of their own.

In: a function value and arguments, or an existing object. Out: the value that is called with them.
Next: torch.
"""

from __future__ import annotations

import functools
from typing import Any

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.containers.mappings import DictValue, new_dict
from framejit.values.containers.sequences import TupleValue
from framejit.values.core.base import Args, Declared, Kwargs, Value
from framejit.values.core.namespaces import instance_dict, own_attribute, store_own
from framejit.values.core.registry import Result
from framejit.values.core.space import Space

#: Stands for an argument to come, since CPython 3.14.
_PLACEHOLDER = getattr(functools, "Placeholder", None)


def refuse_placeholders(args: list[Value]) -> None:
    """GraphBreak for arguments that are not those of a call."""
    if _PLACEHOLDER is not None and any(arg.realize().obj is _PLACEHOLDER for arg in args):
        raise GraphBreak("FJ0151", "a functools.partial with a Placeholder")


class PartialValue(Declared):
    """``functools.partial(function, *args, **given)``."""

    function: Value
    args: list[Value]
    given: dict[str, Value]
    source: Source | None = None
    obj: Any = None
    #: Given for existing ones, whose parts may be reached in another way as well.
    space: Space | None = None
    namespace: Any = None
    #: ``args`` and ``keywords`` as the program has read them.
    parts: dict[str, Any] = {}
    kind = functools.partial

    @property
    def kwargs(self) -> dict[str, Value]:
        """The keyword arguments, which the program may have changed."""
        keywords = self.parts.get("keywords")
        if keywords is None and self.space is not None:
            keywords = self.space.known_value(self.obj.keywords)
        if not isinstance(keywords, DictValue) or not (keywords.mutated or keywords.version):
            return self.given
        if not all(type(key) is str for key in keywords.items):
            raise GraphBreak("FJ0151", "the keywords of a functools.partial are not all strings")
        return {key: pair[1] for key, pair in keywords.items.items()}

    def call(self, space: Space, args: Args, kwargs: Kwargs) -> Result:
        refuse_placeholders(self.args)
        return space.call(self.function, [*self.args, *args], {**self.kwargs, **kwargs})

    def getattr(self, space: Space, name: str) -> Result:
        if name == "func":
            return self.function
        if name in ("args", "keywords"):
            if name not in self.parts:
                self.parts[name] = self._part(space, name)
            return self.parts[name]  # type: ignore[no-any-return]
        if name == "__dict__":
            return instance_dict(space, self)
        return own_attribute(space, self, name) or space.generic_getattr(self, name)

    def _part(self, space: Space, name: str) -> Value:
        if self.source is not None:
            part = getattr(self.obj, name)
            return space.load(self.source.child("attr", name), part).realize()
        if name == "args":
            return TupleValue(list(self.args))
        return new_dict(space, self.given)

    def setattr(self, space: Space, name: str, value: Value) -> None:
        if name in vars(functools.partial):
            raise GraphBreak("FJ0152", f"assigning {name} of a functools.partial")
        store_own(space, self, name, value)
