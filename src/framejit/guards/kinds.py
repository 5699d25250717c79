"""The kinds of facts: one row per kind, with its native check and its words.

In: a fact's payload. Out: the tuple that the native guard tree executes, the text that printouts
show, and a payload that keeps nothing of the user's alive. `KINDS` is compared at import with the
list of kinds that values may use and with the list of checks that the native tree knows.
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

#: What the value layer may write into `Fact.kind`.
FACT_KINDS = frozenset(
    {
        "TYPE_MATCH", "ID_MATCH", "EQUALS_MATCH", "LEN_MATCH", "DICT_KEYS", "ABSENT", "PRESENT",
        "FUNCTION_MATCH", "TENSOR_MATCH", "SAME_OBJECT", "DISTINCT", "BOOL_MATCH",
    }
)  # fmt: skip
#: What facts are checked with (native/guard_checks.h).
NATIVE_CHECKS = frozenset(
    {
        "type", "id", "equals", "len", "keys", "absent", "present", "function", "tensor", "same",
        "distinct", "bool",
    }
)  # fmt: skip


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


KINDS: dict[str, Kind] = {
    "TYPE_MATCH": Kind(
        "type", _one("type"), _type_text, lambda value: _type_text(type(value)), weakly
    ),
    "ID_MATCH": Kind("id", _one("id"), _id_text, text_of, weakly),
    "EQUALS_MATCH": Kind("equals", _one("equals"), text_of, text_of, _same),
    "LEN_MATCH": Kind("len", _one("len"), lambda n: f"length {n}", _length_text, _same),
    "DICT_KEYS": Kind("keys", _one("keys"), lambda k: f"keys {text_of(k)}", _keys_text, _same),
    "ABSENT": Kind("absent", lambda _: ("absent",), lambda _: "not there", text_of, _same),
    "PRESENT": Kind("present", lambda _: ("present",), lambda _: "there", text_of, _same),
    "FUNCTION_MATCH": Kind("function", _one("function"), text_of, _code_of, weakly),
    "TENSOR_MATCH": Kind("tensor", _tensor_check, _tensor_text, text_of, _remember_tensor),
    "SAME_OBJECT": Kind(
        "same",
        None,
        lambda source: f"the same object as {shown_name(source)}",
        lambda _: "another object",
        _same,
    ),
    "DISTINCT": Kind(
        "distinct",
        None,
        lambda ss: "not the object " + " or ".join(map(shown_name, ss)),
        lambda _: "that very object",
        _same,
    ),
    "BOOL_MATCH": Kind(
        "bool", _one("bool"), _true, _truth_text, _same
    ),
}


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


#: What a user can write to avoid a recompile, by the kind of the guard that failed. For tensors it
#: depends on what differs (`TensorText.difference`); this is for what is no tensor any more.
REMEDIES: dict[str, Callable[[Any], str]] = {
    "EQUALS_MATCH": _value_remedy,
    "BOOL_MATCH": lambda _: "let it be empty (or false) in all calls, or in none",
    "TENSOR_MATCH": lambda _: "pass a tensor in all calls",
    "LEN_MATCH": lambda _: "keep the number of elements constant, or stack them into one tensor",
    "DICT_KEYS": lambda _: "keep the keys and their order constant",
    "TYPE_MATCH": lambda _: "pass objects of one class",
    "ID_MATCH": _object_remedy,
    "FUNCTION_MATCH": lambda _: "pass functions with the same code",
    "ABSENT": lambda _: "set it before the first call",
    "PRESENT": lambda _: "leave it in place",
    "SAME_OBJECT": lambda _: _ONE_OBJECT,
    "DISTINCT": lambda _: _ONE_OBJECT,
}

#: The kind of problem that each failure is (`report.problems`).
IDENTIFIERS: dict[str, str] = {
    "TENSOR_MATCH": "FJ0401", "EQUALS_MATCH": "FJ0402", "TYPE_MATCH": "FJ0403",
    "ID_MATCH": "FJ0404", "FUNCTION_MATCH": "FJ0404",
    "LEN_MATCH": "FJ0405", "DICT_KEYS": "FJ0405", "ABSENT": "FJ0405", "PRESENT": "FJ0405",
    "SAME_OBJECT": "FJ0408", "DISTINCT": "FJ0408", "BOOL_MATCH": "FJ0402",
}  # fmt: skip

RELATIONS = frozenset(name for name, kind in KINDS.items() if kind.check is None)


def _verify() -> None:
    odd = (FACT_KINDS ^ set(KINDS)) | (NATIVE_CHECKS ^ {row.native for row in KINDS.values()})
    odd |= (set(REMEDIES) ^ FACT_KINDS) | (set(IDENTIFIERS) ^ FACT_KINDS)
    if odd:
        raise AssertionError(f"guards.kinds is not complete: {sorted(odd)}")


_verify()

_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)


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
    remedy = REMEDIES[kind](payload)
    if kind == "TENSOR_MATCH" and isinstance(value, torch.Tensor):
        then = payload if isinstance(payload, TensorText) else _remember_tensor(payload)
        return then.difference(TensorText.of(value))
    if kind == "EQUALS_MATCH":
        payload, value = _where_they_differ(payload, value)
    before, now = row.expected(payload), row.found(value)
    if kind in ("EQUALS_MATCH", "ID_MATCH") and type(payload) is not type(value):
        remedy = REMEDIES["TYPE_MATCH"](payload)
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
