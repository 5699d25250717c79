"""Every kind of callable that `compile` accepts, and the object the user gets for it (D9).

In: a function, method, partial, callable instance or ``nn.Module``, and its `Settings`. Out: the
same kind of object, compiled: a function stays a function to the eye, a module stays an instance of
its class with the same ``__dict__``. Nothing is wrapped in Python on the way of a call.
Next room: api.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import operator
import os
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from framejit import config
from framejit.classes import is_compiled_from
from framejit.native import CompiledFunction, GuardReference
from framejit.regions import disabled_function
from framejit.report import messages
from framejit.settings import Settings
from framejit.torchcompat.releases import is_tested

try:
    from framejit.bytecode.release import tables as _tables  # noqa: F401
except ImportError:  # no tables for this Python release: everything runs eagerly
    _supported = False
    CompiledFrame: Any = CompiledFunction  # type: ignore[no-redef]
    Compiler: Any = object  # type: ignore[no-redef]
else:
    from framejit.background.deferred import Background
    from framejit.compiled_frame import CompiledFrame
    from framejit.compiler import Compiler
    from framejit.preparing import prepare
    from framejit.values.core.knowledge import Way, known_callable
    from framejit.values.core.polyfills import calling, forward_of

    _supported = True

#: The compilers that are alive, for `reset`.
compilers: weakref.WeakSet[Compiler] = weakref.WeakSet()


#: What `config.share_entries` shares; each keeps what the ids in its key are of.
_shared: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()


def supported() -> bool:
    """Can this Python release be compiled for? Warns once if not, or if torch is untested."""
    if not _supported:
        messages.warn_unsupported_release()
    elif not is_tested():
        messages.warn_untested_torch()
    return _supported


def new_compiler(settings: Settings) -> Compiler:
    """A compiler of its own: two ``compile`` calls never share an entry or a limit (D10)."""
    function = settings.compiler_function()
    later = None
    if settings.background:
        options = None if settings.options is None else dict(settings.options)
        later = Background(settings.name, settings.mode, options, function)
    compiler = Compiler(
        function,
        settings.name,
        fullgraph=settings.fullgraph,
        dynamic=settings.dynamic,
        later=later,
        recompile_limit=settings.recompile_limit,
    )
    compilers.add(compiler)
    return compiler


def compile_callable(target: Any, settings: Settings) -> Any:
    """The compiled counterpart of ``target``.

    Raises TypeError when ``target`` is not something that can be compiled.
    """
    _require_callable(target)
    if not supported():
        return target
    cls = type(target)  # isinstance() would ask the user's `__class__`
    if issubclass(cls, torch.nn.Module):
        return compile_module(target, settings)
    if issubclass(cls, CompiledFunction):
        target = target.function
        cls = type(target)
    if issubclass(cls, types.FunctionType):
        replaced = known_callable(target).way in (Way.REPLACED, Way.REPLACED_CODE)
        return compile_function(_python_function(target) if replaced else target, settings)
    if issubclass(cls, types.MethodType):
        return _bound(compile_callable(target.__func__, settings), target.__self__)
    if cls is functools.partial:
        inner = compile_callable(target.func, settings)
        partial = functools.partial(inner)
        # The keywords themselves: what is changed in them holds for both.
        partial.__setstate__((inner, target.args, target.keywords, {}))  # type: ignore[attr-defined]
        for name, method in _METHODS.items():
            setattr(partial, name, functools.partial(method, partial))
        return partial
    call = cls.__call__
    if isinstance(call, types.FunctionType):
        return _bound(_compile_call(call, settings), target)
    return compile_function(_python_function(target), settings)


def _bound(compiled: Any, receiver: Any) -> types.MethodType:
    if isinstance(compiled, CompiledCallable):
        compiled.receiver = receiver
    return types.MethodType(compiled, receiver)


def _require_callable(target: Any) -> None:
    cls = type(target)
    if issubclass(cls, (staticmethod, classmethod)):
        raise TypeError(
            f"model is a {cls.__name__} object: put @{cls.__name__} above framejit's decorator"
            " [FJ0210]"
        )
    if issubclass(cls, type):
        raise TypeError(
            f"model is the class {target.__qualname__}: compile an instance of it, or its methods"
            " [FJ0210]"
        )
    if not callable(target):
        raise TypeError(
            f"model must be a function, a method, a callable or an nn.Module, "
            f"not an instance of {type(target).__name__} [FJ0210]"
        )


class CompiledCallable(CompiledFrame):
    """What `compile` returns for a function. Copying and pickling treat it like a function."""

    settings: Settings
    __wrapped__: types.FunctionType
    #: For a compiled module's call: the module.
    module: weakref.ref[torch.nn.Module] | None = None
    #: The package of ``compile(package=...)`` or `packaged`.
    file: Any = None
    #: For a compiled method: what it is bound to.
    receiver: Any = None

    def save_package(
        self, path: str | os.PathLike[str] | None = None, *, key: bytes | None = None
    ) -> None:
        """Write everything that is compiled by now into one file.

        Another process loads it with `load_package` and then neither traces nor compiles what is
        in it. The file appears complete or not at all. Parameters are not stored. With ``key`` the
        file is signed (HMAC-SHA256). Without ``path``, what is new goes into the file of
        ``compile(package=...)`` or `packaged`, next to what it holds for other objects. Raises
        exc.PackageError if there is nothing to be saved.
        """
        from framejit import package  # not needed by programs without packages

        if path is not None:
            package.save(path, [self.member()], key)
        elif self.file is not None:
            self.file.use_key(key)
            self.file.save_news()
        else:
            raise TypeError("path must be given where no package= is [FJ0210]")

    def load_package(
        self,
        path: str | os.PathLike[str],
        *,
        key: bytes | None = None,
        skip_source_check: bool = False,
    ) -> Any:
        """Use what another process compiled; calls that nothing fits are compiled as usual.

        A package is code: load only files that you would also run. With ``key``, only a file that
        was signed with it is loaded; without it, nothing protects against a forged file
        (``config.package_key_file`` makes a key necessary in the whole process).
        ``skip_source_check`` accepts one that was made from another version of the source, with a
        warning. Returns the compiled object. Raises exc.PackageError for a
        file that is damaged or was made for something else; then nothing has changed.
        """
        from framejit import package  # not needed by programs without packages

        member = self.member()
        reader = package.opened(path, key)
        package.load(reader, package.rows_for(reader, member), member, skip_source_check)
        return self if self.receiver is None else types.MethodType(self, self.receiver)

    def prepare(self, *args: Any, **kwargs: Any) -> Any:
        """Compile for a call with these arguments before it can be made; nothing is executed.

        The arguments, and the parameters of a module, may be on meta, or fake: the entry is for
        real tensors of the same kind, on the device where fake ones say they are; what is on meta
        stands for tensors on the device of the others, else on the CPU. It is for the state of
        torch (`torch.no_grad`, autocast) at this call. What needs the content of tensors is a graph
        break, up to which the call is prepared. Returns the compiled object. Raises
        exc.PrepareError where only plain Python runs, and what capturing or the backend raises.
        """
        module = None if self.module is None else self.module()
        bound = [one for one in (module, self.receiver) if one is not None][:1]
        prepare(self, [*bound, *args], kwargs)
        return self if self.receiver is None else types.MethodType(self, self.receiver)

    def member(self) -> Any:
        """What packages are told of it."""
        from framejit.package import Member  # not needed by programs without packages

        module = None if self.module is None else self.module()
        return Member(self, module, self.settings.stable)

    # As those of the function that is compiled.
    __code__ = property(operator.attrgetter("function.__code__"))
    __defaults__ = property(operator.attrgetter("function.__defaults__"))
    __kwdefaults__ = property(operator.attrgetter("function.__kwdefaults__"))
    __closure__ = property(operator.attrgetter("function.__closure__"))
    __globals__ = property(operator.attrgetter("function.__globals__"))

    def _annotate(self, annotations: Any) -> None:
        self.function.__annotations__ = annotations

    # Those of this class are in the way where `functools.update_wrapper` only copies a function
    # that makes them.
    __annotations__ = property(operator.attrgetter("function.__annotations__"), _annotate)

    def __repr__(self) -> str:
        return f"<compiled function {self.__wrapped__.__qualname__}>"

    def __copy__(self) -> CompiledCallable:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledCallable:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        """By name, as functions are; one that no name leads to is compiled again on loading."""
        original = self.__wrapped__
        found: Any = sys.modules.get(original.__module__)
        for part in original.__qualname__.split("."):
            found = getattr(found, part, None)
        if found is self:
            return original.__qualname__
        return (compile_callable, (original, self.settings))


def compile_function(function: types.FunctionType, settings: Settings) -> CompiledCallable:
    """A compiled function with the name, signature, docstring and attributes of ``function``."""
    key = (id(function), settings.key)
    if config.share_entries and (known := _shared.get(key)) is not None:
        return known
    compiled = new_compiler(settings).compiled_function(function, kind=CompiledCallable)
    assert isinstance(compiled, CompiledCallable)
    functools.update_wrapper(compiled, function)
    compiled.settings = settings
    if config.share_entries:
        _shared[key] = compiled
    return compiled


def _compile_call(call: Any, settings: Settings) -> CompiledCallable:
    """The ``__call__`` of a class; when it is replaced there, the new one is used."""
    if not isinstance(call, types.FunctionType):
        return compile_function(_python_function(call), settings)
    compiled = compile_function(call, settings)
    compiled.stands_for_call = True
    return compiled


def compiled_function_of(compiled: Any) -> CompiledCallable | None:
    """The compiled function behind whatever `compile_callable` made; None on a release of Python
    for which nothing is compiled."""
    while not isinstance(compiled, CompiledCallable):
        if isinstance(compiled, torch.nn.Module):
            compiled = type(compiled).__call__
        elif isinstance(compiled, types.MethodType):
            compiled = compiled.__func__
        elif isinstance(compiled, functools.partial):
            compiled = compiled.func
        else:
            return None
    return compiled


def _python_function(target: Callable[..., Any]) -> types.FunctionType:
    """A Python function that calls ``target``, which is written in C or represents an operation."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    functools.update_wrapper(call, target)
    name = str(getattr(target, "__name__", type(target).__name__))
    module = getattr(target, "__module__", None) or type(target).__module__
    assert isinstance(call, types.FunctionType)
    call.__code__ = call.__code__.replace(  # what reports name as its place
        co_filename=f"<{module}.{name}>", co_name=name, co_qualname=name, co_firstlineno=1
    )
    return call


# -- modules ---------------------------------------------------------------------------------------


class _Link(NamedTuple):
    """What the class of a compiled module knows: the original, and how to make such a module."""

    original: torch.nn.Module
    again: Callable[[Any], torch.nn.Module]


class _SharedSlot:
    """A slot of a compiled module: that of the original."""

    __slots__ = ("descriptor", "original")

    def __init__(self, descriptor: Any, original: torch.nn.Module) -> None:
        self.descriptor = descriptor
        self.original = original

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        return self.descriptor.__get__(None if module is None else self.original, owner)

    def __set__(self, module: Any, value: Any) -> None:
        self.descriptor.__set__(self.original, value)

    def __delete__(self, module: Any) -> None:
        self.descriptor.__delete__(self.original)


class _Silent:
    """The first base of a class while it is made: nobody notices the new class. Its memory layout
    is that of ordinary classes, so that it can be taken away again."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        pass


def compile_module(module: torch.nn.Module, settings: Settings) -> torch.nn.Module:
    """An instance of a subclass of ``module``'s class that shares its ``__dict__``.

    Calling it runs compiled code in which ``self`` is ``module`` itself.
    """
    module = original_module(module)
    call = _compile_call(type(module).__call__, settings)
    call.module = GuardReference(module)
    call.target = call.target._replace(label=type(module).__qualname__)
    again = functools.partial(compile_module, settings=settings)
    made = _shadow(module, types.MethodType(call, module), again)
    forward = getattr(type(module), "forward", None)
    if isinstance(forward, types.FunctionType) and forward is not torch.nn.Module.forward:
        type(made).forward = _compile_forward(module, forward, settings)  # type: ignore[method-assign]
    return made


def _compile_forward(
    module: torch.nn.Module, forward: types.FunctionType, settings: Settings
) -> types.FunctionType:
    """``compiled.forward``: the module's, compiled, without its hooks; whatever the class has. A
    plain function, as torch.compile asks the ``forward`` of a module for its file."""
    compiled = compile_function(forward_of(module), settings)
    functools.update_wrapper(compiled, forward)
    compiled.target = compiled.target._replace(label=forward.__qualname__)
    return functools.update_wrapper(calling(compiled), forward)  # type: ignore[return-value]


def disable_module(module: torch.nn.Module) -> torch.nn.Module:
    """Like `compile_module`, but calling it runs plain Python, at any depth."""
    module = original_module(module)
    call = disabled_function(_call_of(module))
    return _shadow(module, types.MethodType(call, module), disable_module)


def original_module(module: torch.nn.Module) -> torch.nn.Module:
    """The module that a compiled module was made from; any other module itself."""
    link = type(module).__dict__.get("_framejit_link")
    return module if link is None else link.original


def _call_of(module: torch.nn.Module) -> types.FunctionType:
    call = type(module).__call__
    return call if isinstance(call, types.FunctionType) else _python_function(call)


def _shadow(
    module: torch.nn.Module, call: types.MethodType, again: Callable[[Any], torch.nn.Module]
) -> torch.nn.Module:
    """Another object for the same module: only calling, copying and pickling differ."""
    cls = type(module)
    namespace: dict[str, Any] = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__call__": call,
        "__wrapped__": module,
        "__copy__": _copy_module,
        "__deepcopy__": _deepcopy_module,
        "__reduce_ex__": _reduce_module,
        "_framejit_link": _Link(module, again),
    }
    if cls.__eq__ is object.__eq__ and cls.__hash__ is object.__hash__:
        # Tables of the program and of libraries know modules by identity.
        namespace["__eq__"] = types.MethodType(is_compiled_from, module)
        namespace["__hash__"] = module.__hash__
    if isinstance(call.__func__, CompiledCallable):
        namespace |= {name: method for name, method in _METHODS.items() if not hasattr(cls, name)}
    if hasattr(cls, "__del__"):
        namespace["__del__"] = lambda self: None  # the original's runs once, when the original dies
    for owner in reversed(cls.__mro__):
        for name, raw in vars(owner).items():
            if isinstance(raw, types.MemberDescriptorType):
                namespace[name] = _SharedSlot(raw, module)
            elif isinstance(namespace.get(name), _SharedSlot):
                del namespace[name]
    shadow = object.__new__(_subclass(cls, namespace))
    object.__setattr__(shadow, "__dict__", module.__dict__)
    return shadow


def _subclass(cls: type, namespace: dict[str, Any]) -> Any:
    """A subclass of ``cls`` under the same name, without running its ``__init_subclass__``.

    Registries of subclasses must not see it, and it has no keywords of a ``class`` statement.
    """
    bases = (_Silent, cls)
    try:
        made = type(cls)(cls.__name__, bases, namespace)
    except TypeError:  # the metaclass wants keywords
        made = type.__new__(type(cls), cls.__name__, bases, namespace)
    with contextlib.suppress(TypeError):
        made.__bases__ = (cls,)
    return made


def _method(name: str) -> Callable[..., Any]:
    """A method of `CompiledCallable` for what is called through one."""
    method = getattr(CompiledCallable, name)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if name == "prepare" and type(self) is functools.partial:
            args, kwargs = (*self.args, *args), {**self.keywords, **kwargs}
        done = method(compiled_function_of(self), *args, **kwargs)
        return None if done is None else self

    return functools.update_wrapper(call, method, ("__name__", "__doc__"), ())


_METHODS = {name: _method(name) for name in ("save_package", "load_package", "prepare")}


def _copy_module(self: torch.nn.Module) -> torch.nn.Module:
    link = type(self).__dict__["_framejit_link"]
    return link.again(copy.copy(link.original))


def _deepcopy_module(self: torch.nn.Module, memo: dict[int, Any]) -> torch.nn.Module:
    link = type(self).__dict__["_framejit_link"]
    copied = memo[id(self)] = link.again(copy.deepcopy(link.original, memo))
    return copied


def _reduce_module(self: torch.nn.Module, protocol: Any) -> Any:
    link = type(self).__dict__["_framejit_link"]
    return (link.again, (link.original,))
