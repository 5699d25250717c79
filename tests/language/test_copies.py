"""Copies of objects: what the program defines of them is asked wherever `copy` looks for it."""

import copy

import pytest
import torch

from checking import check, said

X = torch.arange(3.0)


class Plain:
    def __init__(self):
        self.v, self.l = 1, [1]


class AnyName(Plain):
    def __getattr__(self, name):
        return 5


class DeepByName(Plain):
    def __getattr__(self, name):
        if name == "__deepcopy__":
            return lambda memo: "deep"
        raise AttributeError(name)


class EveryName(Plain):
    def __getattribute__(self, name):
        return [7] if name == "__dict__" else object.__getattribute__(self, name)


class DeepOfItsOwn(Plain):
    def __init__(self):
        super().__init__()
        self.__deepcopy__ = lambda memo: "own"


class ReducedOfItsOwn(Plain):
    def __init__(self):
        super().__init__()
        self.__reduce_ex__ = lambda protocol: "itself"


class CopiedByMeta(type):
    def __getattr__(cls, name):
        if name == "__copy__":
            return lambda obj: "by its metaclass"
        raise AttributeError(name)


class OfMeta(Plain, metaclass=CopiedByMeta):
    pass


class OtherNames(Plain):
    others = {"w": "v"}

    def __getattribute__(self, name):
        if name != "others" and name in super().__getattribute__("others"):
            name = super().__getattribute__("others")[name]
        return super().__getattribute__(name)


class NotesNames(Plain):
    asked = []

    def __getattribute__(self, name):
        NotesNames.asked.append(name)
        return super().__getattribute__(name)


class Empty:
    asked = []

    def __getattribute__(self, name):
        Empty.asked.append(name)
        return super().__getattribute__(name)


def copied(how, o):
    made = said(how, o)
    if type(made) is not type(o):
        return made
    return made.v, made is o, made.l is o.l


def copies(x, kind):
    o = kind()
    return x + 1, copied(copy.copy, o), copied(copy.deepcopy, o)


KINDS = [AnyName, DeepByName, EveryName, DeepOfItsOwn, ReducedOfItsOwn, OfMeta]


@pytest.mark.parametrize("kind", KINDS)
def test_objects_that_say_how_they_are_copied(kind):
    check(copies, X, kind, graphs=1, ops=1)


def names_asked_for(x, kind, how):
    kind.asked.clear()
    o = kind()
    first = how(o)
    second = how(first)
    return x + 1, first is o, first is second, list(kind.asked)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", [NotesNames, Empty])
def test_names_that_copies_ask_for(kind, how):
    check(names_asked_for, X, kind, how, graphs=1, ops=1, fullgraph=True)


def test_objects_with_other_names():
    def renamed(x, o):
        made = copy.deepcopy(o)
        made.w = 3
        made.l.append(made.v)
        return x * made.w, made.v, o.v, o.w, made.l, o.l, made.__dict__

    check(copies, X, OtherNames, graphs=1, ops=1, fullgraph=True)
    check(renamed, X, OtherNames(), graphs=1, ops=1, fullgraph=True)


def test_objects_that_say_nothing():
    check(copies, X, Plain, graphs=1, ops=1, fullgraph=True)
