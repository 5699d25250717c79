"""``list[A]``, ``A | None`` and the like of a class that each call makes: of this call's class."""

import types
import typing
from collections.abc import Callable, Iterable
from typing import Generic, Optional, TypeVar

import pytest
import torch

import framejit
from checking import check

X = torch.arange(3.0)
T = TypeVar("T")


def made(before):
    class A:
        pass

    before()
    return A


def nothing():
    pass


def says():
    print(end="")


def subscripted(A):
    return list[A], tuple[A, ...], dict[str, list[A]], type[A]


def unions(A):
    return A | None, None | A, int | list[A], Optional[A], typing.Union[int, A, str]


def of_typing(A):
    return typing.Dict[str, A], typing.Callable[[A], int], typing.Callable[[int], A]


def annotated(A):
    class B:
        one: A
        more: list[A]

    return tuple(B.__annotations__.values())


def classes_in(alias):
    if isinstance(alias, type) and not isinstance(getattr(alias, "__args__", None), tuple):
        return {alias}
    if isinstance(alias, list):
        return set().union(*map(classes_in, alias))
    parts = [getattr(alias, "__origin__", None), *getattr(alias, "__args__", ())]
    return set().union(*(classes_in(part) for part in parts if part is not None))


@pytest.mark.parametrize("before", [nothing, says])
@pytest.mark.parametrize("aliases", [subscripted, unions, of_typing, annotated])
def test_aliases(aliases, before):
    def program(x):
        A = made(before)
        return x + 1, aliases(A), A

    compiled = framejit.compile(program, backend="eager")
    for _ in range(3):
        y, found, A = compiled(X)
        assert torch.equal(y, X + 1) and str(found) == str(program(X)[1])
        for alias in found:
            others = {cls for cls in classes_in(alias) if cls.__name__ == "A"}
            assert others == {A}, "it is the class of this call"


def of_abstract_classes(x):
    alias = Callable[[int, str], list[str]]
    return x + 1, alias, alias.__args__, Callable[..., str] | None, None | alias, Iterable[int]


def test_aliases_of_abstract_classes():
    check(of_abstract_classes, X, graphs=1, ops=1, fullgraph=True)


def test_objects_of_generic_classes():
    def program(x):
        class A(Generic[T]):
            def twice(self, v):
                return v * 2

        alias = A[int]
        obj = alias()
        return obj.twice(x) + 1, type(obj) is A, alias.__origin__ is A, obj.__orig_class__ == alias

    check(program, X, graphs=1, ops=2)


def test_a_class_that_makes_aliases():
    def program(x):
        class A:
            __class_getitem__ = classmethod(types.GenericAlias)

        says()
        alias = A[int]
        return x + 1, alias.__origin__ is A, alias.__args__

    check(program, X, graphs=1, ops=1)


def test_type_variables_made_by_the_program():
    def program(x):
        T = TypeVar("T")

        class A(Generic[T]):
            v: T

            def f(self, x):
                return x + 2

        return A().f(x), T.__name__, A.__parameters__ == (T,), T.__covariant__

    check(program, X, graphs=1, ops=1)
