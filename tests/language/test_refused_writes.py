"""What may not be written or deleted: for many kinds of objects and names, the program gets
CPython's error, and the object stays as it was."""

import collections
import types
from collections import OrderedDict
from dataclasses import KW_ONLY, InitVar, dataclass

import pytest
import torch

from checking import check

X = torch.arange(3.0)
NAMES = (
    "__class__", "__doc__", "__name__", "__init__", "__new__", "__setattr__", "__getattribute__",
    "__hash__", "__call__", "__get__", "__slots__", "__weakref__", "__init_subclass__", "missing",
)  # fmt: skip


class Slotted:
    number = 1
    __slots__ = ("slot",)


class Guarded:
    number = 1
    __slots__ = ()

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


class Own:
    number = 1


Pair = collections.namedtuple("Pair", "left right")


def made():
    """An object of each kind, anew."""

    def function(a):
        return a

    return {
        "function": function, "method": Own().__init__, "generator": (i for i in (1, 2)),
        "iterator": iter([1]), "range": range(3), "list": [1], "dict": {}, "text": "s",
        "number": 1, "tuple": (1,), "slice": slice(1), "view": {}.keys(), "slots": Slotted(),
        "guarded slots": Guarded(), "named tuple": Pair(1, 2), "counter": collections.Counter(),
    }  # fmt: skip


def written(thing, write):
    found = []
    for name in NAMES:
        try:
            write(thing, name)
            found.append(name)
        except (AttributeError, TypeError) as error:
            found.append((name, type(error).__name__, str(error)))
    return found


def store(thing, name):
    setattr(thing, name, 3)


@pytest.mark.parametrize("kind", made())
@pytest.mark.parametrize("write", [store, delattr], ids=["store", "delete"])
def test_names_of(kind, write):
    def program(x):
        y = x + 1
        return written(made()[kind], write), y * 2

    check(program, X, graphs=2, ops=2)


@pytest.mark.parametrize("write", [store, delattr], ids=["store", "delete"])
@pytest.mark.parametrize(
    "thing", [Slotted(), Guarded(), Pair(1, 2)], ids=lambda t: type(t).__name__
)
def test_names_of_an_object_without_a_dict(thing, write):
    def program(x):
        found = []
        for name in (*NAMES[3:], "number", "_fields", "count"):
            try:
                write(thing, name)
            except AttributeError as error:
                found.append(str(error))
        return found, x + 1

    check(program, X, graphs=1, ops=1)


def test_the_class_of_a_function_made_inside():
    def program(x):
        def inner(a):
            return a

        found = []
        for kind in (Own, 3, types.FunctionType):
            try:
                inner.__class__ = kind
            except TypeError as error:
                found.append(str(error))
        return inner(x) + 1, found, vars(inner)

    check(program, X, graphs=1, ops=1)


def test_what_annotates_a_function_is_callable():
    def program(x):
        def inner(a: int):
            return a

        y = x + 1
        try:
            inner.__annotate__ = 3
        except TypeError as error:
            return str(error), y
        return inner.__annotate__, y

    check(program, X, graphs=1, ops=1)


def test_names_deleted_from_a_module_made_inside():
    def program(x):
        module = types.ModuleType("math")
        module.pi = 3
        del module.pi
        found = hasattr(module, "pi"), hasattr(module, "sin")
        del module.__name__
        try:
            found = (*found, module.pi)
        except AttributeError as error:
            found = (*found, str(error))
        return x + 1, hasattr(module, "__name__"), found

    check(
        program, X, calls=1, graphs=1, ops=1
    )  # each call makes another module, which is known by identity


@pytest.mark.parametrize("view", [iter, OrderedDict.items, OrderedDict.values, reversed])
@pytest.mark.parametrize("change", [
    lambda made: made.update(new=1), OrderedDict.clear, OrderedDict.popitem,
    lambda made: made.move_to_end("a"), lambda made: (made.clear(), made.update(a=1)),
])  # fmt: skip
def test_ordered_dicts_that_change_in_a_loop(view, change):
    def program(x):
        made, seen = OrderedDict(a=1, b=2, c=3), []
        try:
            for key in view(made):
                seen.append(key)
                change(made)
        except RuntimeError as error:
            seen.append(str(error))
        return x + 1, seen, list(made)

    check(program, X, graphs=1, ops=1)


class Group(ExceptionGroup):
    pass


class Both(BaseExceptionGroup, ValueError):
    pass


class Any(BaseExceptionGroup):
    pass


@pytest.mark.parametrize("kind", [ExceptionGroup, Group, Both, Any, BaseExceptionGroup])
@pytest.mark.parametrize("inside", [KeyboardInterrupt, ValueError])
def test_what_a_group_may_hold(kind, inside):
    def program(x):
        y = x + 1
        try:
            made = kind("text", [inside()])
        except TypeError as error:
            return y, str(error)
        return y, repr(made), type(made), made.message

    check(program, X, graphs=1, ops=1)


def test_fields_of_a_dataclass_made_inside_that_are_none():
    def program(x):
        @dataclass
        class Local:
            number: int
            given: InitVar[int] = 3
            _: KW_ONLY
            last: int = 4

            def __post_init__(self, given):
                self.sum = self.number + given

        made = Local(1, last=5)
        return x + made.sum, made.last

    check(program, X, graphs=1, ops=1)
