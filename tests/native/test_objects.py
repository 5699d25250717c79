"""What generated functions do natively: attributes, dicts, new objects, random numbers."""

from collections import OrderedDict, defaultdict

import pytest
import torch

from framejit import native
from framejit.native import DELETED


class Strict:
    __slots__ = ("__dict__", "slot")

    def __setattr__(self, name, value):
        raise AssertionError("the class's own rule must not be asked")


def test_attributes_are_set_and_deleted_behind_the_class():
    thing = Strict()
    native.set_attributes(thing, ("slot", "a", "b"), 1, 2, 3)
    native.set_attributes(thing, ("a", "slot", "never"), DELETED, 5, DELETED)
    assert vars(thing) == {"b": 3} and thing.slot == 5


def test_attributes_that_cannot_be_set():
    with pytest.raises(AttributeError):
        native.set_attributes(object(), ("a",), 1)
    for thing in (int, type("C", (), {})):  # classes have a rule of their own
        with pytest.raises(TypeError):
            native.set_attributes(thing, ("a",), 1)
    for arguments in [(), (1,), (Strict(), ["a"], 1), (Strict(), ("a",)), (Strict(), (), 1)]:
        with pytest.raises(TypeError):
            native.set_attributes(*arguments)


class Ordered(OrderedDict):
    def __setitem__(self, key, value):
        raise AssertionError("the class's own rule must not be asked")

    __delitem__ = None


@pytest.mark.parametrize("kind", [dict, OrderedDict, Ordered, lambda: defaultdict(list)])
def test_dicts_are_written_in_order(kind):
    target = kind()
    assert native.write_dict(target, ("b", 1, "a", 2, "c", 3)) is target
    native.write_dict(target, ("b", DELETED, "never", DELETED, "d", 4, "a", 5))
    assert list(target.items()) == [("a", 5), ("c", 3), ("d", 4)]


def test_errors_of_keys_go_on():
    class Key:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            raise ValueError("no")

    first, second = Key(), Key()
    with pytest.raises(ValueError):
        native.write_dict({first: 1}, (second, 2))
    with pytest.raises(ValueError):
        native.write_dict({first: 1}, (second, DELETED))
    for arguments in [(), ({},), ([], ()), ({}, []), ({}, (1,)), ({}, (), ())]:
        with pytest.raises(TypeError):
            native.write_dict(*arguments)


class Asked:
    def __init__(self, name):
        self.name = name

    def __hash__(self):
        raise AssertionError("not asked")

    def __eq__(self, other):
        raise AssertionError("not asked")


def test_containers_are_filled_with_known_hashes():
    a, b = Asked("a"), Asked("b")
    known = (a, 1, b, 1)
    filled = native.with_hashes(known, native.write_dict, {}, (a, 1, (b, a), 2, b, 3, a, 4, 1, 5))
    assert list(filled.values()) == [4, 2, 3, 5]
    native.with_hashes(known, native.write_dict, filled, (a, DELETED))
    assert [type(key) for key in filled] == [tuple, Asked, int]
    made = native.with_hashes((a, -1, b, 1 << 70), frozenset, [a, b, a])
    assert len(made) == 2 and hash(made) == hash(frozenset([-2, hash(1 << 70)]))
    found = set()
    native.with_hashes(known, set.update, found, [a, b])
    native.with_hashes(known, set.discard, found, a)
    assert [key.name for key in found] == ["b"]
    for obj in (a, b):  # the class is as it was
        with pytest.raises(AssertionError):
            hash(obj)
        with pytest.raises(AssertionError):
            obj == 1  # noqa: B015
    with pytest.raises(KeyError):
        native.with_hashes(known, dict.pop, {}, a)
    for arguments in [(), ((a,), set, []), ([], set, []), ((a, "1"), set, [])]:
        with pytest.raises(TypeError):
            native.with_hashes(*arguments)


def test_new_objects():
    class Number(int):
        def __new__(cls):
            raise AssertionError("not asked")

    made = native.new_object(Number, int, 7)
    assert type(made) is Number and made == 7
    assert type(native.new_object(Ordered, OrderedDict)) is Ordered
    assert type(native.new_object(Strict, object)) is Strict
    with pytest.raises(TypeError):  # it would be an int without a value
        native.new_object(Number, object)
    for arguments in [(), (int,), (int, 3)]:
        with pytest.raises(TypeError):
            native.new_object(*arguments)


@pytest.mark.parametrize("size", [3, 20, 700])
def test_random_numbers_come_again(size):
    torch.manual_seed(3)
    torch.randn(1)  # half of a pair is kept
    state, before = native.cpu_random_state(), torch.get_rng_state()
    drawn = torch.randn(size), torch.rand(size, dtype=torch.float64), torch.randn(1)
    native.restore_cpu_random_state(state)
    assert torch.equal(torch.get_rng_state(), before)
    again = torch.randn(size), torch.rand(size, dtype=torch.float64), torch.randn(1)
    assert all(map(torch.equal, drawn, again))
    for bad in (None, before):
        with pytest.raises(ValueError):
            native.restore_cpu_random_state(bad)
