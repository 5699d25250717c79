"""The fake tensors of one capture: made late, cheaply, and related as the real ones are.

In: real tensors (graph inputs) and `Example`s. Out: `FakeTensor`s of one `FakeTensorMode`. A plain
tensor is built straight from its metadata (10 us; `FakeTensorMode.from_tensor` takes 90 to 600);
views and unusual tensors go the long way, so that in-place operations on a view reach its base.
The mode is a `StaticMode`, which imports neither sympy nor torch._dynamo.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import _disable_current_modes, is_traceable_wrapper_subclass

from ..exc import GraphBreak
from . import slow_imports
from .errors import first_line
from .metadata import Composition, Example, TensorMeta, describe, join
from .ragged import is_ragged_class
from .silence import quiet
from .static_mode import StaticMode
from .tensor_class import own_methods

if TYPE_CHECKING:
    from .symbols import Symbols

_Parameter = torch.nn.Parameter
#: How a view was made: with gradients switched on, or off.
_CREATED = {
    torch._C._autograd.CreationMeta.DEFAULT: True,
    torch._C._autograd.CreationMeta.NO_GRAD_MODE: False,
}


class FakeWorld:
    """Fake tensors of one graph."""

    def __init__(self, symbols: Symbols | None = None) -> None:
        self._mode: FakeTensorMode | None = None
        self._symbols = symbols
        # Real tensors by identity, kept alive so that no identity is used twice.
        self._inputs: dict[int, tuple[torch.Tensor, Example]] = {}

    @property
    def mode(self) -> FakeTensorMode:
        if self._mode is None:
            self._mode = StaticMode()
            if self._symbols is not None:
                self._symbols.attach(self._mode)
        return self._mode

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """The state in which operations on fake tensors run."""
        mode = self.mode
        if self._symbols is None:
            with quiet, mode, own_methods():
                yield
            return
        # Composite operators in C++ want sizes that are numbers; their Python forms do not.
        from torch._dispatch.python import enable_python_dispatcher  # imports functorch

        with quiet, mode, own_methods(), enable_python_dispatcher():
            yield

    @property
    def symbols(self) -> Symbols:
        """The symbols for sizes that vary; asking for them makes symbolic sizes possible."""
        if self._symbols is None:
            slow_imports.about_to_import("torch.fx.experimental.symbolic_shapes")
            from .symbols import Symbols  # imports sympy

            self._symbols = Symbols()
            if self._mode is not None:
                self._symbols.attach(self._mode)
        return self._symbols

    @property
    def symbols_if_any(self) -> Symbols | None:
        return self._symbols

    def forget_input(self, tensor: torch.Tensor) -> None:
        """What was made of one of the user's tensors is not what it is."""
        self._inputs.pop(id(tensor), None)

    def as_met(self) -> Callable[[], bool]:
        """What tells, now and when they are forgotten here, whether the user's tensors look as they
        did when they were met."""
        met = list(self._inputs.values())
        return lambda: all(_looks_like(tensor, example.born) for tensor, example in met)

    def forget_inputs(self) -> None:
        """Let go of the user's tensors; no more inputs will be added."""
        self._inputs.clear()
        if self._mode is not None:
            forget_described(self._mode)

    # -- inputs

    def example_of(self, tensor: torch.Tensor) -> Example:
        """The example of a real tensor, the same one each time.

        Raises GraphBreak for tensors that have no fake twin.
        """
        known = self._inputs.get(id(tensor))
        if known is not None:
            return known[1]
        example = Example(self, _describe_real(tensor))
        self.attach(example, tensor)
        return example

    def symbolic_example(
        self, tensor: torch.Tensor, shape: tuple[Any, ...], stride: tuple[Any, ...]
    ) -> Example:
        """The example of a real tensor some of whose sizes are symbols; they may vary."""
        example = Example(self, _describe_real(tensor).resized(shape, stride))
        self.attach(example, tensor)
        return example

    @staticmethod
    def check_varying(tensor: torch.Tensor) -> None:
        """May sizes of a real tensor vary? Asked before there are symbols for them, of which
        nothing takes back what is assumed. Raises GraphBreak."""
        if not _describe_real(tensor).is_plain:
            raise GraphBreak("FJ0114", "the sizes of an unusual tensor cannot vary")

    def imagined(self, shape: list[int], stride: list[int], like: torch.Tensor) -> Example:
        """The example of a tensor that nobody has made, of the dtype and device of another."""
        with self.mode:
            fake = torch.empty_strided(shape, stride, dtype=like.dtype, device=like.device)
        example = Example(self, describe_fake(fake))
        example._fake = fake
        return example

    def composed(self, tensor: torch.Tensor, parts: dict[str, Example]) -> Example:
        """The example of a tensor made of others, some of whose sizes are symbols: it is made of
        theirs in the same way."""
        names, context = tensor.__tensor_flatten__()  # type: ignore[attr-defined]
        known = {name: parts[name] for name in names}
        size, stride, grad = tensor.size(), tensor.stride(), tensor.requires_grad
        how = Composition(type(tensor), context, size, stride, grad, known)
        with isolated(), self.running():
            fake = self.compose(how, {name: part.fake for name, part in known.items()})
        example = Example(self, describe_fake(fake))
        example._fake, example.composition = fake, how
        self._inputs[id(tensor)] = (tensor, example)
        join([example, *parts.values()])
        return example

    @staticmethod
    def compose(how: Composition, inner: dict[str, torch.Tensor]) -> torch.Tensor:
        """The fake tensor that is made of these."""
        size = how.size
        if is_ragged_class(how.cls):
            source: Any = inner.get("_lengths", inner["_offsets"])
            dim = how.context["ragged_idx"]
            size = (*size[:dim], source.get_nested_int(), *size[dim + 1 :])
        made: torch.Tensor = how.cls.__tensor_unflatten__(inner, how.context, size, how.stride)
        if how.requires_grad and not made.requires_grad:
            made.requires_grad_()
        return made

    def attach(self, example: Example, tensor: torch.Tensor) -> None:
        """Decide how the fake twin of ``tensor`` is made. Only unusual ones are made at once,
        so that no example keeps a user's tensor alive."""
        meta = example.born
        base = tensor._base if tensor._is_view() else None
        if base is not None and base.is_nested:  # which part it is, only the offsets say
            if id(base) in self._inputs:
                join([self._inputs[id(base)][1], example])
            base = None
        simple = meta.is_plain and (meta.is_leaf or not meta.requires_grad)
        if meta.symbolic:
            if base is not None and id(base) in self._inputs:
                join([self._inputs[id(base)][1], example])
        elif base is not None or not simple:
            if base is not None:
                # The view's fake must be a view of the fake that the base has.
                base_example = self.example_of(base)
                example._fake = self._view(base_example, meta, tensor)
                if example._fake is None:
                    self.mode.fake_tensor_converter.set_tensor_memo(base, base_example.fake)  # type: ignore[arg-type]
                join([base_example, example])
            if example._fake is None:
                example._fake = self.convert(tensor)
            if not meta.is_plain:
                # Unusual dispatch keys are compared between fakes only.
                example.meta = example.born = describe_fake(example._fake)
        self._inputs[id(tensor)] = (tensor, example)

    def _view(self, base: Example, meta: TensorMeta, tensor: torch.Tensor) -> torch.Tensor | None:
        """The fake twin of a usual view, made without torch's converter, which imports sympy."""
        born, made = base.born, torch._C._autograd._get_creation_meta(tensor)
        grad = _CREATED.get(made)
        if grad is None or meta.keys is not None or born.keys is not None:
            return None
        if meta.requires_grad or born.requires_grad or meta.dtype != born.dtype:
            return None
        with isolated(), torch.set_grad_enabled(grad), self.mode:
            return torch.as_strided(base.fake, meta.shape, meta.stride, meta.storage_offset)

    def convert(self, tensor: torch.Tensor) -> torch.Tensor:
        """`FakeTensorMode.from_tensor`, with its refusals as graph breaks, and what the class of a
        tensor made of others raises when it makes one of what it has told."""
        try:
            return self.mode.from_tensor(tensor, static_shapes=True)
        except GraphBreak:
            raise
        except Exception as error:
            raise GraphBreak(
                "FJ0114", f"this tensor cannot be traced: {first_line(error)}"
            ) from error

    # -- everything else

    def materialize(self, example: Example) -> torch.Tensor:
        """Make the fake tensor of an example that has none, with whatever its recipe needs."""
        recipe = example.recipe
        if recipe is None:
            fake = example._fake = self.build(example.born)
            return fake
        recipe.run()
        assert example._fake is not None
        return example._fake

    def materialize_for_reader(self, example: Example) -> torch.Tensor:
        """`materialize` for code that reads ``example_value`` later, under whatever modes."""
        if example._fake is not None:
            return example._fake
        with isolated():
            return self.materialize(example)

    def build(self, meta: TensorMeta) -> torch.Tensor:
        """A new fake tensor with these facts that shares memory with nothing."""
        inference = meta.keys == "inference"
        if torch.is_inference_mode_enabled() != inference:
            with torch.inference_mode(inference):
                return self.build(meta)
        if meta.requires_grad and not meta.is_leaf:
            # Without a mode the device would be asked for through code that imports sympy.
            with torch.enable_grad(), self.mode:
                return _WithGradientFunction.apply(_anchor(), self, meta)
        return self._build_leaf(meta, meta.requires_grad)

    def _build_leaf(self, meta: TensorMeta, requires_grad: bool) -> torch.Tensor:
        mode = self.mode
        guard = torch._C._DisableTorchDispatch()  # a mode of a caller must not see this tensor
        offset = meta.storage_offset
        if offset:
            pairs = zip(meta.shape, meta.stride, strict=True)
            length = offset + 1 + sum((n - 1) * s for n, s in pairs if type(n) is not int or n)
            storage = torch.empty(length, dtype=meta.dtype, device="meta")
            data = storage.as_strided(meta.shape, meta.stride, offset).detach()
        else:
            data = torch.empty_strided(meta.shape, meta.stride, dtype=meta.dtype, device="meta")
        fake = FakeTensor(
            mode,
            data,
            meta.device,
            requires_grad=requires_grad,
            _is_param=issubclass(meta.python_type, _Parameter),
        )
        del guard
        return fake


def forget_described(mode: FakeTensorMode) -> None:
    """Let a mode refer to none of the user's tensors any more, be it weakly: torch refuses to swap
    such tensors, as ``Module.to`` does with those that are made of others."""
    mode.fake_tensor_converter.meta_converter.describer.lookup_tensor.clear()


class _WithGradientFunction(torch.autograd.Function):
    """Gives a fake tensor a ``grad_fn``, so that it is no leaf, without running an operation."""

    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, world: FakeWorld, meta: TensorMeta) -> torch.Tensor:
        return world._build_leaf(meta, False)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise AssertionError("fake tensors of a capture are never differentiated")


_anchors: list[torch.Tensor] = []


def _anchor() -> torch.Tensor:
    if not _anchors:
        _anchors.append(torch.zeros((), requires_grad=True))
    return _anchors[0]


@contextlib.contextmanager
def isolated() -> Any:
    """No modes, no torch functions, no autocast: as if no user code were active."""
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        yield


def _describe_real(tensor: torch.Tensor) -> TensorMeta:
    """The metadata of a tensor of the user's. GraphBreak if it has no fake twin."""
    python_type = type(tensor)
    usual = python_type is torch.Tensor or python_type is _Parameter
    if not usual:
        _check_type(tensor, python_type)
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        raise GraphBreak("FJ0115", "the tensor is being transformed by torch.func")
    wraps = not usual and is_traceable_wrapper_subclass(tensor)
    if not (wraps or issubclass(python_type, _Parameter)):  # operations see a plain tensor
        python_type = torch.Tensor
    return describe(tensor, python_type, {} if wraps else plain_keys(tensor.device))


def _looks_like(tensor: torch.Tensor, known: TensorMeta) -> bool:
    """Has a tensor this metadata? False as well for unusual ones, which are not compared."""
    try:
        now = _describe_real(tensor)
    except GraphBreak:
        return False
    if now is known or not (known.symbolic and known.is_plain):
        return now is known
    met = known.resized(_as_met(known.shape), _as_met(known.stride))
    names = [field.name for field in dataclasses.fields(TensorMeta) if field.name != "symbolic"]
    return all(getattr(now, name) == getattr(met, name) for name in names)


def _as_met(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes that vary, as they were when the tensor was met."""
    return tuple([size if isinstance(size, int) else int(size.node.hint) for size in sizes])


def _check_type(tensor: torch.Tensor, python_type: Any) -> None:
    name = python_type.__name__
    if isinstance(tensor, FakeTensor):
        raise GraphBreak("FJ0115", "the program runs on fake tensors already")
    if is_traceable_wrapper_subclass(tensor):
        return
    if torch.nn.parameter.is_lazy(tensor):
        raise GraphBreak("FJ0113", f"{name} has no shape before the module's first call")
    if python_type.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        raise GraphBreak("FJ0113", f"the tensor subclass {name} changes what operations mean")


_plain_keys: dict[tuple[str, bool], dict[int, str | None]] = {}


def plain_keys(device: torch.device, mode: FakeTensorMode | None = None) -> dict[int, str | None]:
    """Raw dispatch key sets of plain tensors on this type of device: real ones, or fakes of a
    mode."""
    kind = (device.type, mode is not None)
    if kind not in _plain_keys:
        known: dict[int, str | None] = {}
        for inference in (False, True):
            with isolated(), torch.inference_mode(inference):
                plain = torch.empty(0, device="meta" if mode is not None else device)
                if mode is not None:
                    plain = FakeTensor(mode, plain, device)
            keys = torch._C._dispatch_keys(plain).raw_repr()
            known[keys] = "inference" if inference else None
        _plain_keys[kind] = known
    return _plain_keys[kind]


def describe_fake(fake: torch.Tensor) -> TensorMeta:
    """The metadata of a fake tensor, comparable with that of real ones."""
    if not isinstance(fake, FakeTensor):  # made of fakes
        return describe(fake, type(fake), {})
    python_type = _Parameter if getattr(fake, "_is_param", False) else torch.Tensor
    return describe(fake, python_type, plain_keys(fake.fake_device, fake.fake_mode))
