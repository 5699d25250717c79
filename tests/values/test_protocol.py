"""Values keep to the protocol: operations take what the table says, and nothing else is asked."""

import inspect

import pytest

import framejit
from framejit.values.core.base import Value
from framejit.values.core.operations import OPERATIONS
from framejit.values.object_space import ObjectSpace


def classes(cls=Value):
    yield cls
    for inner in cls.__subclasses__():
        yield from classes(inner)


def positional(function):
    """How many arguments it takes, without ``self``: those that it must, and all."""
    found = list(inspect.signature(function).parameters.values())[1:]
    return sum(one.default is one.empty for one in found), len(found)


def test_the_space_offers_every_operation():
    assert not framejit.is_compiling()
    for name, (operands, _) in OPERATIONS.items():
        least, most = positional(inspect.getattr_static(ObjectSpace, name))
        assert least <= operands <= most, name


@pytest.mark.parametrize("cls", sorted(set(classes()), key=lambda cls: cls.__qualname__),
                         ids=lambda cls: cls.__qualname__)  # fmt: skip
def test_a_class_of_values(cls):
    assert "__slots__" in vars(cls), "instances would have a __dict__"
    for name in OPERATIONS:
        if name in vars(cls) and name in vars(Value):
            (least, most), (asked, _) = positional(vars(cls)[name]), positional(vars(Value)[name])
            assert least <= asked <= most, name
    optional = {"binary_op": 5, "compare_op": 3, "call_method": 4, "hash_key": 1, "to_fx": 1}
    for name, given in optional.items():
        if cls is not Value and name in vars(cls):
            least, most = positional(vars(cls)[name])
            assert least <= given <= most, name
