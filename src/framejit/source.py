"""Where a value came from: how to load it again, what is assumed about it, its stable name.

In: the root slots of a frame. Out: a tree of `Source` nodes that grows while a frame is captured;
each node carries the facts (guards) that the capture relied on and whether the generated function
needs the value ("capture"). The tree *is* the guard plan: `guards.plan` walks it, the native check
executes it, and nothing else ever loads a user's value again. Next room: native.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence, Set
from typing import Any, NamedTuple


class Fact(NamedTuple):
    """One assumption about a source. ``kind`` is a name of `guards.kinds`; ``payload`` is data."""

    kind: str
    payload: Any
    line: tuple[str, int] | None  # the user's file and line that relied on it


#: Kinds of facts whose payload is one of the user's objects.
_BY_IDENTITY = frozenset({"ID_MATCH", "TYPE_MATCH", "FUNCTION_MATCH"})

#: What all sources have that nothing else is known of; nobody writes to these.
_NO_FACTS: tuple[Fact, ...] = ()
_NO_KEYS: frozenset[Any] = frozenset()
_NO_CHILDREN: dict[Any, Source] = {}


class Source:
    """One node: ``accessor`` applied to ``base``'s value. Children are interned, so the same path
    is the same object and comparing sources is comparing identities.

    Accessors (``key`` in brackets): slot (index), const (the object itself), cell (), dict (),
    item (key of a dict), key_at, value_at (positions in a dict), index (position in list/tuple),
    type (), type_attr (name, raw MRO lookup), attr (name; C-level attributes that run no user
    code, and what modules say), proxied () of a mapping proxy, call (a Python function of the
    value).
    """

    __slots__ = (
        "_name", "_root", "accessor", "base", "captured", "children", "fact_keys", "facts", "key",
        "label", "layers", "read",
    )  # fmt: skip

    def __init__(self, base: Source | None, accessor: str, key: Any, label: str = "") -> None:
        self.base = base
        self.accessor = accessor
        self.key = key
        self.label = label
        #: For reading: `child` adds to them.
        self.children = _NO_CHILDREN
        #: What `add_fact` has noted, in a list; or a tuple that many sources share, of which the
        #: very same is assumed (`grafting`), nothing of it about other sources.
        self.facts: Sequence[Fact] = _NO_FACTS
        self.fact_keys: Set[Any] = _NO_KEYS
        self.captured = False
        #: Slots of continuations: the layers that end with them (`values.ends`).
        self.layers: Container[int] = ()
        #: Was it found to be there, whatever it is?
        self.read = False
        self._name: str | None = None
        self._root: Source | None = None if base is None else base._root or base

    def child(self, accessor: str, key: Any = None) -> Source:
        """The source reached from this one; made once per path."""
        # Keys that compare equal but differ in type (1, True, 1.0) are the same dict key, so they
        # may share a node; unhashable keys never occur (dict keys, names, indices, functions).
        slot = (accessor, key)
        node = self.children.get(slot)
        if node is None:
            label = ""
            if accessor == "item" and _is_object(key):  # named by its place among those looked at
                kind = getattr(key, "__qualname__", type(key).__name__)
                number = sum(1 for sibling in self.children.values() if sibling.label)
                label = f"<{kind} {number}>"
            node = self.first_child(slot, label)
        return node

    def first_child(self, slot: tuple[str, Any], label: str = "") -> Source:
        """The same where it is known not to be made, with the label that it needs, if any."""
        if self.children is _NO_CHILDREN:
            self.children = {}
        node = self.children[slot] = Source(self, slot[0], slot[1], label)
        return node

    @property
    def root(self) -> Source:
        """The slot or constant that the path starts at."""
        return self if self._root is None else self._root

    def add_fact(self, kind: str, payload: Any = None, line: tuple[str, int] | None = None) -> None:
        """Record an assumption once; ``payload`` is compared by identity when it is unhashable."""
        token: tuple[str, Any, Any]
        try:
            if kind in _BY_IDENTITY:  # no user's __hash__ or __eq__ may run
                token = (kind, id(payload), None)
            elif kind == "TENSOR_MATCH" and type(payload) is not tuple:
                token = (kind, None, None)  # one tensor is here, and others may speak for it
            else:
                token = (kind, payload, type(payload))
            if token in self.fact_keys:
                return
        except TypeError:
            token = (kind, id(payload), None)
            if token in self.fact_keys:
                return
        facts, keys = self.facts, self.fact_keys
        if type(facts) is not list or type(keys) is not set:
            self.facts, self.fact_keys = facts, keys = list(facts), set(keys)
        keys.add(token)
        facts.append(Fact(kind, payload, line))

    def forget(self) -> None:
        """Take the tree below apart: nothing in it is needed any more."""
        todo = [self]
        while todo:
            source = todo.pop()
            todo += source.children.values()
            let_go([source])

    @property
    def name(self) -> str:
        """Stable, readable: ``L['self'].encoder.layer[0].weight``. No ids, no counters.

        Globals of the compiled function are ``G['scale']``, those of another module, builtins
        included, are ``G[torch.nn.functional].linear``.
        """
        if self._name is None:
            self._name = self._spelled()
        return self._name

    def _spelled(self) -> str:
        base = self.base
        if base is None:
            return self.label
        accessor, key = self.accessor, self.key
        if accessor == "item":
            if base.accessor == "item" and base.key in ("_parameters", "_buffers", "_modules"):
                owner = base.base
                if owner is not None and owner.accessor == "dict" and isinstance(key, str):
                    parent = owner.base.name if owner.base is not None else owner.label
                    return f"{parent}.{key}" if key.isidentifier() else f"{parent}[{key}]"
            if base.accessor == "dict" and isinstance(key, str) and base.base is not None:
                return f"{base.base.name}.{key}"
            if base.accessor == "const" and base.label.startswith("globals"):
                module = base.label.removeprefix("globals").removeprefix(" of ")
                if not module:
                    return f"G[{key!r}]"
                return f"G[{module}].{key}" if str(key).isidentifier() else f"G[{module}][{key!r}]"
            return f"{base.name}[{self.label or repr(key)}]"
        if accessor == "index":
            return f"{base.name}[{key}]"
        if accessor in ("key_at", "value_at"):
            shown = base.name if accessor == "key_at" else f"{base.name}.values()"
            return f"list({shown})[{key}]"
        if accessor in ("cell", "proxied"):
            return base.name
        if accessor == "dict":
            return f"{base.name}.__dict__"
        if accessor == "type":
            return f"type({base.name})"
        if accessor in ("attr", "type_attr"):
            return f"{base.name}.{key}"
        return f"{getattr(key, '__name__', key)}({base.name})"

    def __repr__(self) -> str:
        return f"<Source {self.name}>"


def let_go(sources: Iterable[Source]) -> None:
    """Nothing that is assumed of these is needed any more, nor what is below them."""
    for source in sources:
        source.facts, source.fact_keys, source.children = _NO_FACTS, _NO_KEYS, _NO_CHILDREN


def _is_object(key: Any) -> bool:
    """A dict key whose text is an address or long (a parameter in an optimizer's state)."""
    return type(key).__repr__ is object.__repr__ or hasattr(key, "__dict__")
