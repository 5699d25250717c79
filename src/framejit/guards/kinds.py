"""The kinds of facts: one row per kind, with its native check and its words.

In: a fact's payload. Out: the tuple that the native guard tree executes, the text that printouts
show, and a payload that keeps nothing of the user's alive. `KINDS` is compared at import with the
list of checks that the native tree knows.
Next: plan.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from framejit import native
from framejit.guards.texts import GONE, TensorText, Weak, shown_name, text_of


class Kind(NamedTuple):
    """How facts of one kind are checked, printed and remembered."""

    native: str
    #: payload -> the native check. For relations: the function is None, `plan` knows node numbers.
    check: Callable[[Any], tuple[Any, ...]] | None
    #: payload -> what must be the case; completes "it was ...".
    expected: Callable[[Any], str]
    #: value -> what is the case now, in the same terms.
    found: Callable[[Any], str]
    #: payload -> a payload for printing that keeps no object of the user alive.
    remember: Callable[[Any], Any]
    #: payload -> what a user can write to avoid a recompile when the guard fails.
    remedy: Callable[[Any], str]
    #: The kind of problem that a failure is (`report.problems`).
    identifier: str


def _same(payload: Any) -> Any:
    return payload


def weakly(payload: Any) -> Any:
    """An object held weakly, if that is possible."""
    try:
        return Weak(native.GuardReference(payload))
    except TypeError:
        return payload


def _one(native: str) -> Callable[[Any], tuple[Any, ...]]:
    return lambda payload: (native, payload)


def _tensor_check(payload: Any) -> tuple[Any, ...]:
    # (example,) | (example, flags) | (example, flags, dimensions whose size may vary)
    return ("tensor", *payload) if type(payload) is tuple else ("tensor", payload, 0)


def _remember_tensor(payload: Any) -> Any:
    return TensorText.of(payload[0] if type(payload) is tuple else payload)


def _tensor_text(payload: Any) -> str:
    return str(payload if isinstance(payload, TensorText) else _remember_tensor(payload))


def _type_text(cls: Any) -> str:
    if cls is GONE:
        return repr(cls)
    module = cls.__module__
    return cls.__qualname__ if module == "builtins" else f"{module}.{cls.__qualname__}"


def _id_text(payload: Any) -> str:
    return repr(payload) if payload is GONE else text_of(payload)


def _length_text(value: Any) -> str:
    bases: tuple[Any, ...] = (tuple, list, dict, set, frozenset, str, bytes)
    for base in bases:
        if isinstance(value, base):
            return f"length {base.__len__(value)}"
    return text_of(value)


def _keys_text(value: Any) -> str:
    return f"keys {text_of(tuple(value))}" if isinstance(value, dict) else text_of(value)


def _code_of(value: Any) -> str:
    return text_of(value.__code__ if isinstance(value, types.FunctionType) else value)


def _true(value: Any) -> str:
    return "true" if value else "false or empty"


def _truth_text(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return text_of(value)
    try:
        return _true(bool(value))
    except Exception:  # whatever the user's __bool__ raises
        return text_of(value)


_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
_CONSTANT = "keep it constant, or compile one function per value"
_ONE_OBJECT = "pass the same object in both places in all calls, or in none"


def _value_remedy(payload: Any) -> str:
    if type(payload) in (int, float):
        return "pass it as a tensor, or keep it constant"
    return _CONSTANT


def _object_remedy(payload: Any) -> str:
    if payload is None or isinstance(payload, (bool, enum.Enum, torch.dtype, torch.layout)):
        return _CONSTANT
    if isinstance(payload, _FUNCTIONS):
        return "pass the same function in all calls"
    return "make it once and pass the same object in all calls"


def _says(text: str) -> Callable[[Any], str]:
    return lambda _: text


KINDS: dict[str, Kind] = {
    "TYPE_MATCH": Kind(
        "type", _one("type"), _type_text, lambda value: _type_text(type(value)), weakly,
        _says("pass objects of one class"), "FJ0403",
    ),
    "ID_MATCH": Kind("id", _one("id"), _id_text, text_of, weakly, _object_remedy, "FJ0404"),
    "EQUALS_MATCH": Kind(
        "equals", _one("equals"), text_of, text_of, _same, _value_remedy, "FJ0402"
    ),
    "LEN_MATCH": Kind(
        "len", _one("len"), lambda n: f"length {n}", _length_text, _same,
        _says("keep the number of elements constant, or stack them into one tensor"), "FJ0405",
    ),
    "DICT_KEYS": Kind(
        "keys", _one("keys"), lambda k: f"keys {text_of(k)}", _keys_text, _same,
        _says("keep the keys and their order constant"), "FJ0405",
    ),
    "ABSENT": Kind(
        "absent", lambda _: ("absent",), _says("not there"), text_of, _same,
        _says("set it before the first call"), "FJ0405",
    ),
    "PRESENT": Kind(
        "present", lambda _: ("present",), _says("there"), text_of, _same,
        _says("leave it in place"), "FJ0405",
    ),
    "FUNCTION_MATCH": Kind(
        "function", _one("function"), text_of, _code_of, weakly,
        _says("pass functions with the same code"), "FJ0404",
    ),
    "TENSOR_MATCH": Kind(  # what to do depends on what differs (`TensorText.difference`)
        "tensor", _tensor_check, _tensor_text, text_of, _remember_tensor,
        _says("pass a tensor in all calls"), "FJ0401",
    ),
    "SAME_OBJECT": Kind(
        "same", None, lambda source: f"the same object as {shown_name(source)}",
        _says("another object"), _same, _says(_ONE_OBJECT), "FJ0408",
    ),
    "DISTINCT": Kind(
        "distinct", None, lambda ss: "not the object " + " or ".join(map(shown_name, ss)),
        _says("that very object"), _same, _says(_ONE_OBJECT), "FJ0408",
    ),
    "APART": Kind(
        "apart", None, lambda ss: "not one of " + ", ".join(map(shown_name, ss[:3]))
        + (f" and {len(ss) - 3} more" if len(ss) > 3 else ""),
        _says("one of them"), _same, _says(_ONE_OBJECT), "FJ0408",
    ),
    "LEAF": Kind(
        "leaf", _one("leaf"),
        lambda hooks: "a leaf, apart from hooks" if hooks else "a leaf without hooks",
        _says("the result of an operation, or a tensor with hooks"), _same,
        _says("register hooks before the first call"), "FJ0409",
    ),
    "BOOL_MATCH": Kind(
        "bool", _one("bool"), _true, _truth_text, _same,
        _says("let it be empty (or false) in all calls, or in none"), "FJ0402",
    ),
}  # fmt: skip

RELATIONS = frozenset(name for name, kind in KINDS.items() if kind.check is None)


#: Of tensors in packages, which have no example: see `package.entries`.
_METADATA = "metadata"

_checked_with = {_METADATA, *[row.native for row in KINDS.values()]}
if _checked_with != native.CHECKS:
    raise AssertionError(f"guards.kinds is not complete: {sorted(_checked_with ^ native.CHECKS)}")


def shown_kind(kind: str, payload: Any) -> str:
    """The name under which a guard is printed; for identity it says what is identical."""
    if kind != "ID_MATCH":
        return kind
    cls = type(payload)  # isinstance() would ask the user's `__class__`
    if issubclass(cls, types.ModuleType):
        return "MODULE_MATCH"
    if issubclass(cls, _FUNCTIONS):
        return "FUNCTION_MATCH"
    if payload is None or cls in (bool, torch.dtype, torch.layout):
        return "EQUALS_MATCH"
    return kind


def differences(kind: str, payload: Any, value: Any) -> tuple[str, str, str]:
    """(what it was, what it is now, what to do about it) for a failed guard."""
    row = KINDS[kind]
    remedy = row.remedy(payload)
    if kind == "TENSOR_MATCH" and isinstance(value, torch.Tensor):
        then = payload if isinstance(payload, TensorText) else _remember_tensor(payload)
        return then.difference(TensorText.of(value))
    if kind == "EQUALS_MATCH":
        payload, value = _where_they_differ(payload, value)
    before, now = row.expected(payload), row.found(value)
    if kind in ("EQUALS_MATCH", "ID_MATCH") and type(payload) is not type(value):
        remedy = KINDS["TYPE_MATCH"].remedy(payload)
    if before == now:
        now = f"another {now.removeprefix('an ').removeprefix('a ').removeprefix('the ')}"
    return before, now, remedy


def _where_they_differ(then: Any, now: Any) -> tuple[Any, Any]:
    """The parts of nested tuples that differ first, if what is shown of them does not tell."""
    while type(then) is type(now) is tuple and len(then) == len(now):
        shown = text_of(then)
        if shown != text_of(now) and " ... " not in shown:
            break
        pairs = zip(then, now, strict=True)
        differing = (two for two in pairs if two[0] is not two[1] and _unequal(*two))
        then, now = next(differing, (None, None))
    return then, now


def _unequal(one: Any, two: Any) -> bool:
    return isinstance(one, type) or type(one) is not type(two) or one != two
