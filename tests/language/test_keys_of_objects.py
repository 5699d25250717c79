"""Objects as keys of existing dicts and sets: found by where they are, and kept by no guard."""

from __future__ import annotations

import collections
import gc
import weakref

import pytest
import torch

import framejit
from checking import CountingBackend, check

x = torch.tensor([1.0, 2.0])


class Node:
    def __init__(self, value=None):
        self.value = value


class Slotted:
    __slots__ = ("value",)


def weak_keys(x):
    node = Node()
    cache = weakref.WeakKeyDictionary({node: 5})
    y = x * 2
    node = None
    return y, node, len(cache)


def weak_keys_of_a_comprehension(x):
    kept = {"a": Node()}
    cache = weakref.WeakKeyDictionary({node: 1 for node in kept.values()})
    print("break")
    del kept["a"]
    return x * 2, len(cache)


def deleted_key(x):
    node = Node()
    d, cache = {node: x}, weakref.WeakKeyDictionary({node: 1})
    print("break")
    y = d[node] + 1
    del d[node]
    del node
    return y, len(cache)


def cleared_dict(x):
    node = Node()
    d, r = {node: 1}, weakref.ref(node)
    print("break")
    y = x + d[node]
    d.clear()
    node = None
    return y, node, r() is None


def cleared_set(x):
    node = Node()
    s, r = {node}, weakref.ref(node)
    print("break")
    y = x + (node in s)
    s.clear()
    node = None
    return y, node, r() is None


def tuple_as_key(x):
    node = Node()
    key = (node, 1)
    d, r = {key: 3}, weakref.ref(node)
    print("break")
    y = x + d[key]
    d.clear()
    node = key = None
    return y, node, key, r() is None


def keys_without_weak_references(x):
    key = Slotted()
    key.value = Node()
    r, d = weakref.ref(key.value), {key: 1, 2: 3}
    print("break")
    y = x + d[key]
    d.clear()
    key = None
    return y, key, r() is None


def deleted_tuple(x):
    node = Node()
    d = {(node, 1): 3, (node, 2): 4, "a": 5}
    print("break")
    del d[(node, 1)]
    return x + len(d), [key if type(key) is str else key[1] for key in d]


def deleted_address(x):
    node = Node()
    d = {id(node): 3, "a": 5}
    print("break")
    del d[id(node)]
    return x + len(d), list(d)


def key_moved_to_another_dict(x):
    one, two = Node(1), Node(2)
    d = {one: 3, two: 5}
    print("break")
    y = x + d.pop(one)
    d[one] = 8
    return y, [(key.value, item) for key, item in d.items()]


def many_keys(x):
    d = {Node(i): i for i in range(12)}
    s = {Node(i) for i in range(12)}
    print("break")
    y = x + sum(key.value * item for key, item in d.items())
    return y + sum(node.value for node in s)


def keys_of_mixed_kinds(x):
    node = Node()
    d = {None: 1, 1: node, node: 2, 2.5: 3, (1, 2): 5}
    print("break")
    return [key for key in d if key is not node], x + d[node] + d[2.5], d[(1, 2)], d[None]


def keys_of_ordered_dicts(x):
    d = collections.OrderedDict([(Node(1), 1), (Node(2), 2)])
    print("break")
    return [(key.value, item) for key, item in d.items()], x + 1, next(reversed(d)).value


def objects_in_frozensets(x):
    d = {frozenset([Node]): 1, (Node, frozenset([NODES[0]])): 2}
    print("break")
    return x + d[frozenset([Node])] + d[(Node, frozenset([NODES[0]]))]


def set_of_all_kinds(x):
    node = Node("n")
    s = {node, "a", 3}
    print("break")
    s.discard(node)
    return x + len(s), sorted(map(str, s))


NODES = [Node(1), Node(2)]
#: (program, graphs)
PROGRAMS = [
    (weak_keys, 1), (weak_keys_of_a_comprehension, 1), (cleared_set, 1),
    (tuple_as_key, 1), (keys_without_weak_references, 1), (deleted_tuple, 1),
    (deleted_address, 1), (keys_of_ordered_dicts, 1), (objects_in_frozensets, 1),
]  # fmt: skip


@pytest.mark.parametrize(("program", "graphs"), PROGRAMS)
def test_program(program, graphs) -> None:
    check(program, x, graphs=graphs)


#: Compiled for these objects, or for the order in which a set lists them.
@pytest.mark.parametrize(
    "program",
    [
        deleted_key,
        cleared_dict,
        key_moved_to_another_dict,
        many_keys,
        keys_of_mixed_kinds,
        set_of_all_kinds,
    ],
)
def test_look_for_an_object(program) -> None:
    check(program, x, graphs=1, calls=1)


WEAK = weakref.WeakKeyDictionary({NODES[0]: 1.0, NODES[1]: 2.0})
HOLDER = Node(NODES[0])


def test_another_key_of_a_weak_dict() -> None:
    """Both are in it: the entry of one is not that of the other."""
    compiled = framejit.compile(lambda x: x + WEAK[HOLDER.value], backend="eager")
    for node, expected in zip([*NODES, *NODES], [1.0, 2.0, 1.0, 2.0], strict=True):
        HOLDER.value = node
        assert torch.equal(compiled(x), x + expected)


def live(kind):
    gc.collect()
    return sum(type(thing) is kind for thing in gc.get_objects())


@pytest.mark.parametrize("program", [weak_keys, cleared_dict, cleared_set, deleted_tuple])
def test_no_entry_keeps_a_key(program) -> None:
    before, compiled = live(Node), framejit.compile(program, backend="eager")
    with framejit.config.patch(recompile_limit=200):
        for _ in range(100):
            compiled(x)
    assert live(Node) == before


def test_functions_that_were_called_are_let_go() -> None:
    def program(x):
        shift = lambda y: y + 1  # noqa: E731
        references.append(weakref.ref(shift))
        print(end="")
        return shift(x)

    references = []
    compiled = framejit.compile(program, backend="eager")
    for _ in range(3):
        compiled(x)
    gc.collect()
    assert [r() for r in references] == [None] * 3


class Plain:
    pass


def looked_up(x, d, key):
    return x + d[key], key in d


def local_class_over_a_break(x, *_):
    class Local:
        pass

    d = {Local: 1}
    print(end="")
    return x + d[Local], len(d)


@pytest.mark.parametrize("program", [looked_up, local_class_over_a_break])
def test_another_object_in_each_call(program) -> None:
    """After a while captures do not depend on which object it is."""
    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend)
    for number in range(30):
        key = Plain()
        args = torch.ones(1), {key: 1, Plain(): 2}, key
        assert compiled(*args) == program(*args)
        if number == 20:
            captured = len(backend.graphs)
    assert len(backend.graphs) == captured <= 18
    with pytest.raises(KeyError):
        framejit.compile(looked_up, backend=backend)(torch.ones(1), {}, Plain())


class Modular(int):
    def __eq__(self, other):
        return int(self) % 3 == int(other) % 3

    def __hash__(self):
        return int(self) % 3


class OwnHash(int):
    __eq__ = int.__eq__

    def __hash__(self):
        return 5


class OwnEqual(int):
    __hash__ = int.__hash__

    def __eq__(self, other):
        return int(self) % 3 == int(other) % 3


class Number(int):
    """An int by another name."""


@pytest.mark.parametrize("cls", [Modular, OwnHash, OwnEqual, Number])
def test_numbers_of_the_programs_own(cls):
    def program(x, one, four, again):
        made = {one: 1}
        made[four] = 2
        made[again] = 3
        return x + len(made), list(made.values()), one in made, cls(7) in made, 4 in {one, four}

    check(program, torch.ones(2), cls(1), cls(4), cls(1), graphs=1, ops=1)


class Equal:
    """Equal to everything that has its hash."""

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return self.number

    def __eq__(self, other):
        return True


def in_dicts(x, one):
    key, made = Equal(hash(one)), {one: 2}
    made[key] = 3
    return {one: 1}.get(key), {key: 1}.get(one), list(made.values()), {one: 1} == {key: 1}


def in_sets(x, one):
    key, made = Equal(hash(one)), {one}
    made.discard(key)
    return key in {one}, len({one, key}), made, len({one} & {key}), {one} <= {key}


def in_parts_of_keys(x, one):
    key = Equal(hash(one))
    return (key,) in {(one,)}, (one,) in {(key,): 1}, frozenset([one]) == frozenset([key])


def by_its_address(x, one):
    return Equal(id(one)) in {one}, {one: 1}.get(Equal(id(one)))


@pytest.mark.parametrize("program", [in_dicts, in_sets, in_parts_of_keys, by_its_address])
@pytest.mark.parametrize("one", [Plain, Plain(), len, torch.ones(2), Equal.__eq__])
def test_hash_of_another_object(program, one):
    def run(x, one):
        y = x + 1
        return y, program(x, one), y * 2

    check(run, torch.ones(3), one, graphs=2, ops=2)
