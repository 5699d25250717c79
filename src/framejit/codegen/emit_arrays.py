"""Tensors of the graph, arrays and dtypes of numpy to expressions.

In: values of `values.tensors` and `values.arrays`. Out: a result of the graph, an array on the
memory of a tensor, or a numpy scalar of what is in it. Next: codegen.effects.
"""

from __future__ import annotations

import ast

from framejit.codegen.emit import EMITTERS, Emitter, builds, call, name
from framejit.codegen.emit_containers import fill_namespace
from framejit.values.core.constants import ConstantValue, OpaqueValue
from framejit.values.numpy.array_calls import ArrayValue
from framejit.values.numpy.arrays import DTypeValue, ScalarValue
from framejit.values.torch.tensors import TensorValue

EMITTERS[ScalarValue] = EMITTERS[OpaqueValue]
EMITTERS[DTypeValue] = EMITTERS[ConstantValue]


@builds(TensorValue)
def _tensor(out: Emitter, value: TensorValue) -> ast.expr:
    made = name(out.output(value))
    if value.namespace is not None:
        out.made[value] = made
        fill_namespace(out, made, value)
    return made


@builds(ArrayValue)
def _array(out: Emitter, value: ArrayValue) -> ast.expr:
    helper = "scalar" if value.is_scalar else "own_array" if value.owns else "array"
    return out.keep(value, "array", call(out.helper(helper), out.value(value.tensor)))
