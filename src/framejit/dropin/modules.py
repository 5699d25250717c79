"""What programs that know ``torch.compile`` ask compiled objects: ``_orig_mod`` and its like.

In: what `framejit.compile` returned. Out: the same with those attributes. Compiled modules also
answer to the class that ``torch.compile`` gives its modules, once the program has imported it.
Next: compiling.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import torch

from framejit.callables import compile_module, compiled_function_of, original_module
from framejit.settings import Settings

_PREFIX = "_orig_mod."


def known_to_programs(made: Any, given: Any) -> Any:
    """``made`` of ``given``, with the attributes that programs look for."""
    if isinstance(made, torch.nn.Module) and is_compiled_module(made):
        return _module(made)
    inner = compiled_function_of(made)
    if inner is not None and made is not given:
        inner._torchdynamo_orig_callable = getattr(given, "__func__", given)  # type: ignore[attr-defined]
    return made


def is_compiled_module(module: Any) -> bool:
    """Is this a module that `framejit.compile` has returned?"""
    cls = type(module)
    return issubclass(cls, torch.nn.Module) and "_framejit_link" in cls.__dict__


def _again(module: torch.nn.Module, settings: Settings) -> torch.nn.Module:
    """What copies, and those that are loaded, are made with."""
    return _module(compile_module(module, settings))


def _module(made: torch.nn.Module) -> torch.nn.Module:
    cls: Any = type(made)
    inner = compiled_function_of(made)
    if inner is not None:
        again = functools.partial(_again, settings=inner.settings)
        cls._framejit_link = cls._framejit_link._replace(again=again)
    cls._orig_mod = cls._torchdynamo_orig_callable = property(original_module)
    cls.__setattr__ = _set_attribute
    cls.load_state_dict = _load_state_dict
    return made


def _set_attribute(self: Any, name: str, value: Any) -> None:
    """``compiled._orig_mod = module``: it is the compiled counterpart of that module now."""
    if name != "_orig_mod":
        super(type(self), self).__setattr__(name, value)
    elif value is not original_module(self):
        other = type(self)._framejit_link.again(value)
        object.__setattr__(self, "__class__", type(other))
        object.__setattr__(self, "__dict__", other.__dict__)


def _load_state_dict(self: Any, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Also from a module of ``torch.compile``, whose names begin with ``_orig_mod.``"""
    if state_dict and all(name.startswith(_PREFIX) for name in state_dict):
        renamed = type(state_dict)()  # type: ignore[call-arg]
        renamed.update({name.removeprefix(_PREFIX): x for name, x in state_dict.items()})  # type: ignore[attr-defined]
        state_dict = renamed
    return super(type(self), self).load_state_dict(state_dict, *args, **kwargs)


def recognising(original: type) -> type:
    """A class in the place of ``original``, the peer's: compiled modules are instances of it, as
    those of the original are."""

    class Recognising(type(original)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, original) or is_compiled_module(instance)

    namespace = {"__module__": original.__module__, "__qualname__": original.__qualname__}
    made: type = Recognising(original.__name__, (original,), namespace)
    return made
