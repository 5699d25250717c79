"""Backend 'inductor', the default: TorchInductor, for inference and for training.

In: a captured graph, and ``mode`` / ``options`` as `torch.compile` takes them. Out: what Inductor's
`compile_fx` makes, which goes through AOTAutograd and the min-cut partitioner itself.
`compile_fx` imports torch._dynamo (2 s in all): imported when the first graph is compiled.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import logging
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_origin

import torch
import torch.fx
from torch._guards import TracingContext

from ..collection import rare_collection
from ..graph.lazy import lazy_graph_modules
from ..graph.outlining import has_regions
from ..graph.second_order import inner_graph
from . import inductor_kernels
from .context import aot_settings, patched
from .dividing import divided, owned_copy
from .handles import with_handles
from .inductor_passes import settings_with_passes
from .inlining import inlined, kept_copy
from .registry import register_backend
from .result_strides import Layouts, OtherStrides, check_layouts, lay_out_results, recorded_layouts
from .separate import separate_results
from .shared_forwards import share_forwards
from .written_in_regions import write_in_regions

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "lite")


#: What AOTAutograd found out about a graph, by the compiled graph; for `serialize`.
_metadata: weakref.WeakKeyDictionary[Callable[..., Any], Any] = weakref.WeakKeyDictionary()
#: What was not compiled here: the parts that it came in.
_parts: weakref.WeakKeyDictionary[Callable[..., Any], Mapping[str, Any]] = (
    weakref.WeakKeyDictionary()
)


class InductorBackend:
    """TorchInductor: generates fused kernels; takes ``mode`` and ``options``.

    Equal settings make equal backends. Raises ValueError for an unknown mode or option or an
    option's value of the wrong type.
    """

    #: A subgraph that is called several times is compiled once.
    regions = True

    def __init__(self, mode: str | None = None, options: dict[str, Any] | None = None) -> None:
        if mode is not None and options:
            raise ValueError("give either mode= or options=, not both [FJ0213]")
        self.mode = mode
        self.options = dict(options or {})
        self.config_patches: dict[str, Any] = {}
        if mode is not None and mode != "default":
            self.config_patches.update(_mode_options(mode))
        if self.options:
            self.config_patches.update(_checked_options(self.options))
        self.__name__ = "inductor"

    @property
    def keeps_inputs(self) -> bool:
        """Does compiled code hold parameters, or the addresses at which they are?"""
        from torch._inductor import config  # slow optional dependency

        patches = self.config_patches
        return bool(
            patches.get("triton.cudagraphs", config.triton.cudagraphs)
            or patches.get("freezing", config.freezing)
        )

    def configured(self, mode: str | None, options: dict[str, Any] | None) -> InductorBackend:
        """The same backend with other settings."""
        return InductorBackend(mode, options)

    def __call__(
        self,
        gm: torch.fx.GraphModule,
        example_inputs: Sequence[torch.Tensor],
        mode: str | None = None,
        options: dict[str, Any] | None = None,
    ) -> Callable[..., Any]:
        if mode is not None or options:
            return InductorBackend(mode, options)(gm, example_inputs)
        if any(isinstance(x, torch.Tensor) and (x.is_neg() or x.is_conj()) for x in example_inputs):
            return gm.forward  # Inductor reads the memory without looking at these bits

        def compile_graph(gm: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
            # compile_fx changes the graph it is given; ours is still shown to people afterwards.
            try:
                return self._compile(owned_copy(gm), inputs, recorded_layouts(gm))
            except OtherStrides:
                owned = owned_copy(gm)
                lay_out_results(owned)
                return self._compile(owned, inputs, [])

        return divided(compile_graph, gm, list(example_inputs))

    def _compile(
        self, gm: torch.fx.GraphModule, inputs: Sequence[Any], layouts: Layouts
    ) -> Callable[..., Any]:
        # Slow optional dependency, see above.
        from torch._inductor.compile_fx import compile_fx

        _mark_static_inputs(gm, inputs)
        context = TracingContext.get()
        before = context.fw_metadata  # of the graph of whoever compiles this one
        patches = settings_with_passes(self.config_patches)
        if has_regions(gm):
            from .inductor_regions import settings_for_regions  # a part of Inductor's

            patches = settings_for_regions(patches)
        settings = torch.compiler.config
        # A graph from the cache is not looked at: it must be one that was.
        tag = f"{settings.cache_key_tag} laid out" if any(layouts) else settings.cache_key_tag
        with (
            patched(settings, cache_key_tag=tag), aot_settings(donate=True, generators=True),
            lazy_graph_modules(), rare_collection(),
        ):  # fmt: skip
            inner = functools.partial(_compile_inner, layouts)
            compiled: Any = compile_fx(gm, inputs, inner_compile=inner, config_patches=patches)
        # compile_fx wraps its result so that torch._dynamo leaves it alone (2 us a call).
        unwrapped: Callable[..., Any] = getattr(compiled, "_torchdynamo_orig_callable", compiled)
        metadata = context.fw_metadata
        if metadata is before:  # AOTAutograd had it in its cache
            metadata = None
        with contextlib.suppress(TypeError):  # an object that cannot be referred to weakly
            _metadata[unwrapped] = metadata
        return unwrapped

    def serialize(self, compiled: Any, gm: torch.fx.GraphModule) -> dict[str, bytes] | None:
        """For packages: what Inductor compiled, if it can run without Inductor."""
        from .inductor_artifact import serialize  # only programs that save need it

        compiled = inner_graph(compiled)
        if compiled in _parts:
            return {name: bytes(part) for name, part in _parts[compiled].items()}
        return serialize(compiled, gm, _metadata[compiled]) if compiled in _metadata else None

    def deserialize(
        self, parts: Mapping[str, Any], module: Callable[[], torch.fx.GraphModule]
    ) -> Callable[..., Any] | None:
        """The way back from `serialize`, in another process."""
        from .inductor_runtime import deserialize  # only programs that load need it

        made = deserialize(parts, module)
        if made is not None:
            _parts[inner_graph(made)] = parts
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InductorBackend) and self.config_patches == other.config_patches

    def __hash__(self) -> int:
        return hash(("inductor", tuple(sorted(self.config_patches))))

    def __repr__(self) -> str:
        return f"<backend inductor {self.config_patches or ''}>".replace(" >", ">")


def _compile_inner(
    layouts: Layouts, gm: torch.fx.GraphModule, inputs: Sequence[Any], **options: Any
) -> Any:
    """One graph of AOTAutograd's. Regions that Inductor cannot compile are compiled flat: that may
    be found out when the backward graph is compiled, after forward has run."""
    if not options.get("is_backward"):
        check_layouts(gm, layouts)
    with contextlib.ExitStack() as stack:
        if with_handles(gm):  # another mesh may be equal, and the cache would give it for this one
            from torch._inductor import config  # slow optional dependency

            stack.enter_context(patched(config, fx_graph_cache=False, fx_graph_remote_cache=False))
        stack.enter_context(rare_collection())  # a backward graph may come by itself
        return _compile_in_regions(gm, inputs, **options)


def _compile_in_regions(gm: torch.fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Any:
    if not has_regions(gm):
        return _compile_one(gm, inputs, **options)
    kept = kept_copy(gm)  # what Inductor is given it changes
    try:
        if options.get("is_inference"):  # perhaps with gradients in it, for which regions save
            separate_results(gm)
        share_forwards(gm)
        write_in_regions(gm)
        return _compile_one(gm, inputs, **options)
    except Exception:
        return _compile_one(inlined(kept), inputs, **options)


def _compile_one(gm: torch.fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Any:
    """The key of Inductor's cache does not say what a backward graph may write to: the same graph
    would come back for a program that still needs it."""
    # Slow optional dependency, see above.
    from torch._inductor.compile_fx import compile_fx_inner

    _describe_keys_for_logs_alone()
    with inductor_kernels.together():
        if not options.get("is_backward"):
            return compile_fx_inner(gm, inputs, **options)
        config, metadata = torch.compiler.config, TracingContext.get().fw_metadata
        tag = f"{config.cache_key_tag} writes {metadata and metadata.bw_donated_idxs}"
        with patched(config, cache_key_tag=tag):
            return compile_fx_inner(gm, inputs, **options)


@functools.cache
def _describe_keys_for_logs_alone() -> None:
    """Inductor says in words what each key of its cache is made of, and pickles the graph and every
    input once more for that, which only logs show: a fourteenth of what it takes to compile one
    more layer of a BERT."""
    from torch._inductor.codecache import FxGraphCachePickler, log  # slow optional dependency
    from torch._logging._internal import trace_log

    describe = FxGraphCachePickler.debug_lines

    def described(pickler: Any, details: Any) -> list[str]:
        logged = log.isEnabledFor(logging.DEBUG) or bool(trace_log.handlers)
        if logged or type(pickler) is not FxGraphCachePickler:
            return describe(pickler, details)
        return []

    setattr(FxGraphCachePickler, "debug_lines", described)  # noqa: B010 (a method)


def _mark_static_inputs(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> None:
    """Tell Inductor which inputs stay at their address (parameters), so that its CUDA graphs
    read them in place instead of copying them on each call."""
    placeholders = gm.graph.find_nodes(op="placeholder")
    if not any(isinstance(value, torch.Tensor) and value.is_cuda for value in inputs):
        return
    if len({id(value) for value in inputs}) != len(inputs):
        return  # AOTAutograd would want to guard on the duplicates
    for node, value in zip(placeholders, inputs, strict=True):
        node._dynamo_source = None  # type: ignore[attr-defined]
        if isinstance(value, torch.nn.Parameter):
            node.meta["tensor_dict"] = {"_dynamo_static_input_type": "unguarded"}
    gm.__dict__["_param_name_to_source"] = {}
    gm.meta["dynamo_compile_id"] = None  # present: the marks above count


def _mode_options(mode: str) -> dict[str, Any]:
    if mode not in MODES:
        raise ValueError(f"there is no mode {mode!r}. Known: {', '.join(MODES)} [FJ0213]")
    from torch._inductor import list_mode_options  # slow optional dependency

    options: dict[str, Any] = list_mode_options(mode)
    return options


def _checked_options(options: dict[str, Any]) -> dict[str, Any]:
    from torch._inductor import config  # slow optional dependency

    known = config.get_config_copy()  # type: ignore[attr-defined]
    checked: dict[str, Any] = {}
    for name, value in options.items():
        attribute = name.replace("-", "_")
        if attribute not in known:
            close = difflib.get_close_matches(attribute, known, n=3)
            guess = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
            raise ValueError(f"Inductor has no option {name!r}.{guess} [FJ0213]")
        wanted = config.get_type(attribute)  # type: ignore[attr-defined]
        if get_origin(wanted) is None and not isinstance(value, wanted):
            raise ValueError(
                f"Inductor's option {name!r} is a {type(known[attribute]).__name__}, "
                f"not a {type(value).__name__} [FJ0213]"
            )
        checked[attribute] = value
    return checked


inductor = register_backend(InductorBackend(), name="inductor")
