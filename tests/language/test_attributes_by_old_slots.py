"""Attributes of objects of C classes that look them up by the slot for names in C.

Such a class fills `tp_getattr`, which no class shows in its `__dict__`; the functions that f2py
wraps Fortran code in are of one.
"""

from __future__ import annotations

import ctypes

import pytest
import torch

import framejit
from checking import check
from framejit.report import events

_LOOK_UP = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_char_p)
_PY_TP_GETATTR = 57


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint), ("slots", ctypes.POINTER(_Slot)),
    ]  # fmt: skip


@_LOOK_UP
def look_up(obj: object, name: bytes) -> object:
    return {b"scale": 3, b"__class__": type(obj)}.get(name, "nothing")


SLOTS = (_Slot * 2)(_Slot(_PY_TP_GETATTR, ctypes.cast(look_up, ctypes.c_void_p)), _Slot(0, None))
SPEC = _Spec(b"old.Wrapped", object.__basicsize__, 0, 0, SLOTS)


@pytest.fixture
def wrapped():
    make = ctypes.pythonapi.PyType_FromSpec
    make.restype, make.argtypes = ctypes.py_object, [ctypes.POINTER(_Spec)]
    return make(ctypes.byref(SPEC))()


def reads_an_attribute(x, wrapped):
    y = x + 1
    return y * wrapped.scale


def reads_one_that_may_be_missing(x, wrapped):
    y = x + 1
    return y * 2, getattr(wrapped, "scale", None), hasattr(wrapped, "other")


@pytest.mark.parametrize("program", [reads_an_attribute, reads_one_that_may_be_missing])
def test_program(program, wrapped):
    with events.recording() as seen:
        assert_same(program, wrapped)
    reasons = {event.reason for event in seen if isinstance(event, events.GraphBreak)}
    assert "attribute 'scale' of a Wrapped object" in reasons


def assert_same(program, wrapped):
    """As `check`, which copies arguments; these cannot be copied."""
    check(lambda x: program(x, wrapped), torch.ones(2), ops=2)
    framejit.reset()
