"""Weak references that guards hold."""

import gc
import sys
import weakref
from typing import ParamSpec

import pytest

from framejit import native


class Thing:
    pass


def test_the_object_ends():
    thing = Thing()
    reference = native.GuardReference(thing)
    assert native.supports_weakrefs(thing) and reference() is thing
    assert weakref.getweakrefcount(thing) == 1
    del thing
    assert reference() is None


@pytest.mark.parametrize("make", [int, object, list, lambda: (1, 2)])
def test_objects_without_weak_references(make):
    assert not native.supports_weakrefs(make())
    with pytest.raises(TypeError, match="cannot create weak reference to"):
        native.GuardReference(make())


@pytest.mark.skipif(
    not (3, 12) <= sys.version_info < (3, 14), reason="this release clears weak references to it"
)
def test_objects_whose_end_leaves_weak_references_as_they_are():
    for made in (ParamSpec("P").args, ParamSpec("P").kwargs):
        assert not native.supports_weakrefs(made)
        with pytest.raises(TypeError):
            native.GuardReference(made)
    del made
    gc.collect()
