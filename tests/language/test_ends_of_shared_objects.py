"""A variable that nothing reads any more keeps its object over a graph break: something else may
hold the object, too, and the program may refer to it weakly there and let go of it."""

from __future__ import annotations

import weakref

import pytest
import torch

from checking import check

x = torch.tensor([1.0, -2.0])
HELD: list = []


class Box:
    def __init__(self, value=None):
        self.value = value


class Loud:
    def __del__(self):
        print("end")


def weak_value(x):
    box = Box()
    boxes = [box]
    print()
    known = weakref.WeakValueDictionary()
    known["k"] = boxes.pop()
    print()
    return len(known), x + 1


def callback_of_a_weak_reference(x):
    box = Box()
    boxes = [box]
    print()
    reference = weakref.ref(boxes.pop(), lambda _: print("gone"))
    print("after")
    return reference() is None, x + 1


def weak_key(x):
    box = Box()
    boxes = {"a": box}
    print()
    known = weakref.WeakKeyDictionary()
    known[boxes.pop("a")] = 1
    print()
    return len(known), x + 1


def weak_set(x):
    box = Box()
    boxes = (box,)
    print()
    known = weakref.WeakSet()
    known.add(boxes[0])
    boxes = None
    print()
    return len(known), x + 1, boxes


def finalizer_of_an_object(x):
    box = Box()
    boxes = [box]
    print()
    weakref.finalize(boxes[0], print, "gone")
    boxes = None
    print("after")
    return x + 1, boxes


def held_by_an_attribute(x):
    box = Box()
    outer = Box(box)
    print()
    reference = weakref.ref(outer.value)
    outer = None
    print()
    return reference() is None, x + 1, outer


def held_by_two_variables(x):
    box = Box()
    other = box
    boxes = [box]
    print()
    reference = weakref.ref(boxes[0])
    boxes = box = None
    print()
    return reference() is None, x + 1, boxes, box


def held_by_a_set(x):
    numbers = {1, 2}
    sets = [numbers]
    print()
    reference = weakref.ref(sets.pop())
    print()
    return reference() is None, x + 1


def class_that_gets_a_finalizer(x):
    box = Box()
    boxes = [box]
    print()
    boxes[0].__class__ = Loud
    boxes = None
    print("after")
    return x + 1, boxes


def held_by_a_global(x):
    box = Box()
    HELD.append(box)
    print()
    reference = weakref.ref(HELD.pop())
    print()
    return reference() is None, x + 1


def held_by_nobody_seen(x):
    box = HELD[0]
    y = box.value * 2
    print()
    reference = weakref.ref(HELD.pop())
    print()
    return reference() is None, x + y


def dropped_in_a_callee(x):
    def callee(boxes):
        box = boxes[0]  # noqa: F841
        print()
        reference = weakref.ref(boxes.pop())
        print()
        return reference() is None

    return callee([Box()]), x + 1


def dropped_over_two_breaks(x):
    box = Box()
    boxes = [box]
    print()
    y = x + 1
    known = weakref.WeakValueDictionary()
    print()
    known["k"] = boxes.pop()
    print()
    return len(known), y


PROGRAMS = [
    (weak_value, 1), (callback_of_a_weak_reference, 1), (weak_key, 1), (weak_set, 1),
    (finalizer_of_an_object, 1), (held_by_an_attribute, 1), (held_by_two_variables, 1),
    (held_by_a_set, 1), (class_that_gets_a_finalizer, 1), (held_by_a_global, 1),
    (dropped_in_a_callee, 1), (dropped_over_two_breaks, 1),
]  # fmt: skip


@pytest.mark.parametrize(("program", "graphs"), PROGRAMS)
def test_program(program, graphs) -> None:
    check(program, x, graphs=graphs, ops=1)


def test_an_object_of_others() -> None:
    def program(x):
        HELD.append(Box(3))
        return held_by_nobody_seen(x)

    check(program, x, graphs=1, ops=1)


def with_an_iterator(x):
    known = weakref.WeakValueDictionary()
    items = iter([Box(1), Box(2)])
    y = x + 1
    for item in items:
        known[item.value] = item
        item = None
        print(len(known))
    return y, len(known), item, items


def test_an_iterator_that_has_ended_holds_nothing() -> None:
    check(lambda x: with_an_iterator(x)[:3], x, graphs=1, ops=1)
