"""One entry as data: its guards, its generated function, its graph, its breaks; and back.

In: an entry of a compiled frame. Out: JSON and parts. The other way: an entry that waits until a
call comes whose arguments its guards accept; then its names are looked up, the guard tree is made
and checked, and only then is anything of it executed. Next: library.
"""

from __future__ import annotations

import builtins
import functools
import json
import marshal
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch.utils._device import DeviceContext

from framejit import native, tensor_file
from framejit.bytecode.continuations import FramePoint
from framejit.capture.generating import UnlessWritten, when_written
from framejit.capture.graphs import GraphCall
from framejit.codegen.function import GRAPH, SETTLED
from framejit.codegen.runtime import HELPERS
from framejit.compiled_frame import CompiledFrame
from framejit.compiler import Break, Compiler
from framejit.graph.bounds import Assumption
from framejit.graph.expressions import postfix
from framejit.graph.lazy import operation_count
from framejit.graph.stand_ins import StandIns
from framejit.guards.kinds import KINDS, RELATIONS
from framejit.guards.plan import Plan, value_at
from framejit.guards.shapes import ShapePlan
from framejit.guards.standing_in import as_given
from framejit.guards.texts import TensorText
from framejit.package import naming
from framejit.package.container import Reader
from framejit.package.data import Codes, Decoder, Encoder
from framejit.package.descriptions import Home, Json, Unsaveable, describe
from framejit.package.graphs import (
    Sizes,
    as_tuples,
    decode_care,
    decode_graph,
    encode_care,
    encode_graph,
    encode_sizes,
)
from framejit.source import Fact, Source

_DEOPTIMISE = "fj:deoptimise"
_OWN_NAMES = frozenset({GRAPH, SETTLED, _DEOPTIMISE, "__builtins__", "__name__"})
#: Accessors whose key is data; the keys of the others are plain numbers or nothing.
_KEYED = frozenset({"item", "call", "attr", "type_attr"})


class _Symbol(NamedTuple):
    """What `graph.symbols.Symbol` is, without the libraries that it needs."""

    name: str
    source: Source
    kind: str
    dim: int


# -- saving ----------------------------------------------------------------------------------------


def encode_entry(
    compiled: CompiledFrame, entry: Any, label: str, home: Home, codes: Codes
) -> tuple[Json, dict[str, bytes]]:
    """A row for the manifest and the parts of one entry; ``label`` is part of their names.

    Raises Unsaveable.
    """
    origin = compiled.origins.get(id(entry))
    plan = compiled.plans.get(id(entry))
    if plan is None or origin is None:
        raise Unsaveable("an entry whose origin is not known")
    encoder = Encoder(home, codes)
    nodes = _encode_nodes(entry.tree, plan, encoder)
    flags, modes, hooks = entry.tree.state.export()  # of modes, only blocks of devices are captured
    if hooks:
        raise Unsaveable("saved-tensor hooks are part of its state")
    names = {
        name: _encode_name(compiled, name, obj, encoder)
        for name, obj in entry.function.__globals__.items()
        if name not in _OWN_NAMES
    }
    parts: dict[str, bytes] = {"code": marshal.dumps(entry.function.__code__)}
    graph: Json = None
    if origin.call is not None:
        inputs = _encode_inputs(origin.call, plan, nodes, encoder)
        graph, made = _encode_graph_call(compiled.compiler, origin.call, inputs, encoder)
        parts |= made
    data = {
        "nodes": nodes,
        "labels": [source.label for source in plan.sources],
        "facts": [[_encode_fact(fact) for fact in facts] for facts in plan.checked],
        "state": [flags, [encoder.value(mode.device) for mode in modes]],
        "names": names,
        "layout": entry.layout,
        "writes": isinstance(entry.function.__globals__.get(_DEOPTIMISE), UnlessWritten),
        "graph": graph,
        "shapes": _encode_shapes(plan),
        "late": encoder.late,
        "line": compiled.target.code.co_firstlineno,
    }
    encoder.settle(entry.tree.export(), nodes)
    parts["entry"] = json.dumps(data).encode()
    row = {"label": label, "guards": plan.describe(), "operations": 0, "backend": None}
    if origin.call is not None:
        row["operations"] = operation_count(origin.call.module)
        row["backend"] = compiled.compiler.backend_name
        row["artifact"] = graph["artifact"]
    return row, {_labelled(name, label): part for name, part in parts.items()}


def _labelled(name: str, label: str) -> str:
    """The name of an entry's part in the file: "graph" is "graph 3", "artifact code" is
    "artifact 3 code"."""
    kind, *rest = name.split(" ")
    return " ".join([kind, label, *rest])


def _encode_nodes(tree: Any, plan: Plan, encoder: Encoder) -> list[Json]:
    try:
        exported = tree.export()
    except LookupError as error:
        raise Unsaveable("an object that no longer exists") from error
    rows: list[Json] = []
    for number, (parent, accessor, key, checks, capture) in enumerate(exported):
        encoder.source = plan.sources[number]
        if accessor == "const":
            key = encoder.start(key)
        elif accessor in _KEYED:
            key = encoder.value(key)
        done = [_encode_check(check, number, encoder) for check in checks]
        rows.append([parent, accessor, key, done, capture])
    encoder.source = None
    return rows


def _encode_check(check: tuple[Any, ...], node: int, encoder: Encoder) -> Json:
    kind, *payload = check
    if kind in ("type", "id"):
        data = encoder.pinned(payload[0])
        encoder.seen(data, node, "type" if kind == "type" else "value")
        return [kind, data]
    if kind == "metadata":
        cls = encoder.pinned(payload[0])
        encoder.seen(cls, node, "type")
        *numbers, sizes, strides = payload[1]
        return [kind, cls, [*numbers, list(sizes), list(strides)]]
    if kind == "function":  # the code of the function that is found there, if it does the same
        return [kind, naming.code_hash(payload[0])]
    if kind in ("equals", "keys"):
        return [kind, encoder.value(payload[0])]
    if kind in ("absent", "present", "len", "bool", "same", "distinct", "apart", "leaf"):
        return [kind, *payload]
    raise Unsaveable(f"a guard of kind {kind!r}")


def _encode_shapes(plan: Plan) -> Json:
    """The checks on sizes that vary: for the native tree, and for messages."""
    shapes = plan.shapes
    if shapes is None or plan.program is None:
        return None
    position = {id(source): number for number, source in enumerate(plan.sources)}
    return {
        "program": plan.program,
        "symbols": [[s.name, position[id(s.source)], s.kind, s.dim] for s in shapes.inputs],
        "checks": [[check.tree, check.line] for check in shapes.checks],
        "captured": shapes.captured,
    }


def _encode_fact(fact: Fact) -> Json:
    text = list(fact.payload) if isinstance(fact.payload, TensorText) else None
    return [fact.kind, fact.line, text]


def _encode_name(compiled: CompiledFrame, name: str, obj: Any, encoder: Encoder) -> Json:
    helper = name.removeprefix("fj:")
    if helper in HELPERS and HELPERS[helper] is obj:
        return ["helper", helper]
    if isinstance(obj, types.FunctionType):
        recipe = compiled.compiler.breaks.get(obj)
        if recipe is not None:
            point, namespace, variant, seen = recipe
            number = encoder.codes.add(point.code, str(namespace.get("__name__")))
            layout = [sorted(point.bound), sorted(point.nulls), point.explicit_depth]
            owner = encoder.dictionary(namespace)
            return ["break", number, owner, point.index, *layout, variant, seen]
    if isinstance(obj, types.MethodType) and obj == compiled.compiler.answer:
        return ["answer"]
    if type(obj) in (list, dict, set):  # changes to it must be seen by everybody who has it
        return ["value", encoder.pinned(obj)]
    return ["value", encoder.value(obj)]


def _encode_inputs(call: GraphCall, plan: Plan, nodes: list[Json], encoder: Encoder) -> list[Json]:
    """Where the inputs of a graph come from."""
    position = {id(source): number for number, source in enumerate(plan.sources)}
    inputs: list[Json] = []
    for source in call.inputs:
        if source.base is None and source.accessor == "slot":
            inputs.append(["slot", source.key])
        elif source.base is None:
            inputs.append(["const", encoder.pinned(source.key)])
        else:
            inputs.append(["capture", nodes[position[id(source)]][4]])
    return inputs


def _encode_graph_call(
    compiler: Compiler, call: GraphCall, inputs: list[Json], encoder: Encoder
) -> tuple[Json, dict[str, bytes]]:
    """A graph and how it is called, and the parts with its nodes, constants and artefacts."""
    parts = {"graph": json.dumps(encode_graph(call.module, encoder)).encode()}
    if encoder.tensors:
        parts["constants"] = tensor_file.dump(encoder.tensors)
    artifact: list[str] | None = None
    serialize = getattr(compiler.backend, "serialize", None)
    if serialize is not None:
        made: Mapping[str, bytes] | None = serialize(call.compiled, call.module)
        if made is not None:
            artifact = sorted(made)
            parts |= {f"artifact {name}": data for name, data in made.items()}
    return {
        "inputs": inputs, "artifact": artifact, "care": encode_care(call.care, encoder),
        "constants": bool(encoder.tensors), "sizes": encode_sizes(call.module, encoder),
    }, parts  # fmt: skip


# -- loading ---------------------------------------------------------------------------------------


class WaitingEntry:
    """A saved entry; `bind` makes it a real one for a call that its guards accept."""

    def __init__(
        self,
        reader: Reader,
        row: Json,
        home: Home,
        code_at: Callable[[int], types.CodeType],
        codes: list[Json],
    ) -> None:
        self.reader = reader
        self.row = row
        self.label: str = row["label"]
        self.operations: int = row["operations"]
        self.broke = None  # a package does not say where its graphs break
        self.guards: tuple[str, ...] = tuple(row["guards"])
        self.home = home
        #: The table of code objects that the entry's numbers are for; they start at ``base``.
        self.codes = codes
        self._code_at = code_at

    @functools.cached_property
    def data(self) -> Json:
        """The entry's own part, parsed when it is needed first."""
        return self.reader.json(f"entry {self.label}")

    def code_at(self, number: int) -> types.CodeType:
        """The code object that the entry knows under that number."""
        return self._code_at(self.row.get("base", 0) + number)

    def copied(self, label: str, codes: Codes) -> tuple[Json, dict[str, bytes]]:
        """Row and parts for another package, whose table of code objects is ``codes``."""
        row, parts = copied_entry(self.reader, self.row, label)
        return {**row, "base": row.get("base", 0) + codes.append(self.codes)}, parts

    def bind(self, compiled: CompiledFrame, slots: tuple[Any, ...]) -> Any:
        """The entry, if its guards hold for ``slots``; else None.

        Raises PackageError when it names something that this process does not have.
        """
        bound = _Bound(self, compiled, slots)
        nodes = bound.nodes() if bound.find_late() else None
        if nodes is None:
            return None
        tree = bound.tree(nodes)
        captures = tree.check(slots)
        if captures is None:
            return None
        function = bound.function(captures)
        if bound.assumed:  # by the backend, which compiled the graph again
            tree = bound.tree(nodes)
            if tree.check(slots) is None:
                return None
        layout = self.data["layout"]
        entry = native.Entry(tree, function, layout and (tuple(layout[0]), tuple(layout[1])))
        compiled.plans[id(entry)] = plan = bound.plan()
        plan.backend = compiled.compiler.backend_name
        plan.line = (compiled.target.code.co_filename, compiled.target.line)
        compiled.origins[id(entry)] = self  # type: ignore[assignment]
        return entry

    def explain(
        self, compiled: CompiledFrame, slots: tuple[Any, ...], stand_ins: StandIns | None = None
    ) -> str:
        """Why `bind` returns None; empty if it does not, or will not once content has come."""
        bound = _Bound(self, compiled, slots)
        if not bound.find_late():
            return "an object that the guards compare with is another one now"
        if (nodes := bound.nodes()) is None:
            return bound.changed
        plan = bound.plan()
        if stand_ins is not None:
            nodes = as_given(nodes, plan.values_in(slots), stand_ins)
        return plan.explain(bound.tree(nodes), slots)


_PART_KINDS = frozenset({"entry", "code", "graph", "constants", "artifact"})


def copied_entry(reader: Reader, row: Json, label: str) -> tuple[Json, dict[str, bytes]]:
    """Row and parts of a saved entry under another label."""
    parts = {}
    for name in reader.part_sizes:
        kind, number, *rest = name.split(" ")
        if number == row["label"] and kind in _PART_KINDS:
            parts[_labelled(" ".join([kind, *rest]), label)] = bytes(reader.part(name))
    return {**row, "label": label}, parts


def _decode_name(compiled: CompiledFrame, spec: Json, decoder: Decoder) -> Any:
    kind, *rest = spec
    if kind == "helper":
        return HELPERS[rest[0]]
    if kind == "answer":
        return compiled.compiler.answer
    if kind == "break":
        number, owner, index, bound, nulls, depth, variant, seen = rest
        point = FramePoint(
            decoder.code_at(number), index, frozenset(bound), frozenset(nulls), depth
        )
        namespace = decoder.value(owner)
        return compiled.compiler.break_function(Break(point, namespace, variant, seen))
    return decoder.value(rest[0])


class _Bound:
    """A waiting entry together with the values of one call of ``compiled``."""

    def __init__(
        self, waiting: WaitingEntry, compiled: CompiledFrame, slots: tuple[Any, ...]
    ) -> None:
        self.reader, self.label, self.data = waiting.reader, waiting.label, waiting.data
        self.compiled = compiled
        self.slots = slots
        self.decoder = Decoder(waiting.home, waiting.code_at)
        self.changed = ""
        #: Of sizes that vary, by a backend that compiled the graph again.
        self.assumed: list[Assumption] = []
        self._sources: list[Source | None] = [None] * len(self.data["nodes"])

    def source(self, number: int) -> Source:
        """The source of a guard node. LookupError: it needs a late object that is not known."""
        known = self._sources[number]
        if known is None:
            parent, accessor, key, _, _ = self.data["nodes"][number]
            if accessor in _KEYED or accessor == "const":
                key = self.decoder.value(key)
            base = self.source(parent) if parent >= 0 else None
            known = Source(base, accessor, key, self.data["labels"][number])
            self._sources[number] = known
        return known

    def find_late(self) -> bool:
        """Find every object without a name at one of its places; its content must be the same."""
        missing = dict(enumerate(self.data["late"]))
        while missing:
            found = {
                number: candidate
                for number, late in missing.items()
                if (candidate := self._candidate(late)) is not None
            }
            if not found:
                return False
            for number, (obj,) in found.items():
                if any(obj is other for other in self.decoder.late.values()):
                    return False  # two objects have become one
                self.decoder.late[number] = obj
                del missing[number]
        return True

    def _candidate(self, late: Json) -> tuple[Any] | None:
        for where, how in late["at"]:
            try:
                if type(where) is list:
                    exists, value = True, self.decoder.value(where)
                else:
                    exists, value = value_at(self.source(where), self.slots)
            except LookupError:
                continue
            if not exists:
                continue
            obj = value
            if how != "value":
                obj = type(value) if how == "type" else naming.attribute(value, "__dict__")
            try:
                if describe(obj, self.decoder.home) == late["is"]:
                    return (obj,)
            except Unsaveable:
                continue
        return None

    def nodes(self) -> list[Any] | None:
        """The node list for the native tree; None if a function does something else now."""
        made = []
        for number, (parent, _, _, checks, capture) in enumerate(self.data["nodes"]):
            source = self.source(number)
            decoded = []
            for check in checks:
                if check[0] == "function":
                    code = self._code_at(number, check[1])
                    if code is None:
                        return None
                    decoded.append(("function", code))
                else:
                    decoded.append(self._check(check))
            made.append((parent, source.accessor, source.key, decoded, capture))
        return made

    def _code_at(self, number: int, wanted: str) -> types.CodeType | None:
        source = self.source(number)
        _, function = value_at(source, self.slots)
        code = getattr(function, "__code__", None)
        if isinstance(code, types.CodeType) and naming.code_hash(code) == wanted:
            return code
        self.changed = f"{source.name} is another function now"
        return None

    def _check(self, check: Json) -> tuple[Any, ...]:
        kind, *payload = check
        if kind == "metadata":
            *numbers, sizes, strides = payload[1]
            return kind, self.decoder.value(payload[0]), (*numbers, tuple(sizes), tuple(strides))
        if kind in ("distinct", "apart"):
            return kind, tuple(payload[0])
        if kind in ("type", "id", "equals", "keys"):
            return kind, self.decoder.value(payload[0])
        return (kind, *payload)

    @functools.cached_property
    def state(self) -> Any:
        """torch's global state that the entry was made for."""
        flags, devices = self.data["state"]
        blocks = tuple([DeviceContext(device) for device in self.decoder.values(devices)])
        return native.GlobalState(flags, blocks)

    def tree(self, nodes: list[Any]) -> native.GuardTree:
        """The native checks."""
        return native.GuardTree(nodes, self.state, self.program())

    def program(self) -> Any:
        """The checks on sizes that vary, in native form."""
        shapes = self.data["shapes"]
        if shapes is None:
            return None
        inputs, checks, captured = shapes["program"]
        steps = [[as_tuples(step) for step in check] for check in checks]
        position = {symbol[0]: number for number, symbol in enumerate(shapes["symbols"])}
        steps += [postfix(assumption.tree, position) for assumption in self.assumed]
        return [tuple(row) for row in inputs], steps, captured

    def shapes(self) -> ShapePlan | None:
        """The same for printing, and for compiling again."""
        shapes = self.data["shapes"]
        if shapes is None:
            return None
        symbols: Any = {
            name: _Symbol(name, self.source(node), kind, dim)
            for name, node, kind, dim in shapes["symbols"]
        }
        checks = [
            Assumption(as_tuples(tree), None if line is None else tuple(line))
            for tree, line in shapes["checks"]
        ]
        return ShapePlan(symbols, checks + self.assumed, shapes["captured"])

    def plan(self) -> Plan:
        """For printing and explaining."""
        sources = [self.source(number) for number in range(len(self._sources))]
        checked = []
        for (_, _, _, checks, _), facts in zip(self.data["nodes"], self.data["facts"], strict=True):
            made = []
            for check, (kind, line, text) in zip(checks, facts, strict=True):
                payload: Any = None
                if text is not None:
                    payload = _tensor_text(text)
                elif kind in RELATIONS:
                    nodes = check[1]
                    single = isinstance(nodes, int)
                    payload = sources[nodes] if single else tuple([sources[n] for n in nodes])
                elif len(check) > 1 and check[0] != "function":
                    payload = KINDS[kind].remember(self._check(check)[1])
                made.append(Fact(kind, payload, None if line is None else tuple(line)))
            checked.append(made)
        plan = Plan([], sources, checked, [], self.shapes(), self.program())
        plan.state = self.state
        return plan

    # -- what runs

    def function(self, captures: tuple[Any, ...]) -> types.FunctionType:
        """The generated function; ``captures`` is what the guards have loaded."""
        target, compiler = self.compiled.target, self.compiled.compiler
        code = marshal.loads(self.reader.part(f"code {self.label}"))
        assert isinstance(code, types.CodeType)
        moved = target.code.co_firstlineno - self.data["line"]
        code = code.replace(
            co_filename=target.code.co_filename, co_firstlineno=max(code.co_firstlineno + moved, 1)
        )
        namespace: dict[str, Any] = {
            name: _decode_name(self.compiled, spec, self.decoder)
            for name, spec in self.data["names"].items()
        }
        namespace["__builtins__"] = builtins
        namespace["__name__"] = "framejit.generated"
        if self.data["graph"] is not None:
            again = compiler.deoptimise(self.compiled)
            again = when_written(again) if self.data["writes"] else again
            namespace[_DEOPTIMISE] = again
            # Asked of what writes only, which never runs again.
            namespace[SETTLED] = functools.partial(bool, True)
            namespace[GRAPH] = self._graph(captures)
        return types.FunctionType(code, namespace, code.co_name)

    def _graph(self, captures: tuple[Any, ...]) -> Callable[..., Any]:
        # What stays with the graph must not hold `self`, and with it the arguments of this call.
        saved, decoder, reader, label = self.data["graph"], self.decoder, self.reader, self.label

        @functools.cache
        def module() -> torch.fx.GraphModule:
            if saved["constants"]:
                decoder.tensors = tensor_file.load(reader.part(f"constants {label}"))
            return decode_graph(reader.json(f"graph {label}"), decoder)

        run: Callable[..., Any] | None = None
        deserialize = getattr(self.compiled.compiler.backend, "deserialize", None)
        if saved["artifact"] is not None and deserialize is not None:
            parts = {name: reader.part(f"artifact {label} {name}") for name in saved["artifact"]}
            run = deserialize(parts, module)
        if run is None:
            run = self._compiled_again(module(), captures)
        care = decode_care(saved["care"], decoder)
        return care.around(run, lambda *args: module()(*args), module)

    def _compiled_again(
        self, module: torch.fx.GraphModule, captures: tuple[Any, ...]
    ) -> Callable[..., Any]:
        """What the backend makes of the saved graph for this call."""
        saved, shapes, sizes = self.data["graph"], self.shapes(), None
        examples = [self._input(kind, which, captures) for kind, which in saved["inputs"]]
        if saved["sizes"] is not None and shapes is not None:
            sizes = Sizes(saved["sizes"], shapes, self.decoder)
            examples = sizes.inputs(module, examples)
        run = self.compiled.compiler.run_backend(self.compiled.target, module, examples)
        if sizes is not None:
            self.assumed = sizes.news()
        return run

    def _input(self, kind: str, which: Any, captures: tuple[Any, ...]) -> Any:
        if kind == "slot":
            return self.slots[which]
        return captures[which] if kind == "capture" else self.decoder.value(which)


def _tensor_text(data: Json) -> TensorText:
    cls, dtype, device, shape, stride, *rest = data
    strides = None if stride is None else tuple(stride)
    return TensorText(cls, dtype, device, tuple(shape), strides, *rest)
