"""Arrays and dtypes of numpy to expressions.

In: values of `values.arrays`. Out: an array on the memory of a tensor, or a numpy scalar of what is
in it. Next: codegen.effects.
"""

from __future__ import annotations

import ast

from framejit.codegen.emit import EMITTERS, Emitter, builds, call
from framejit.values.core.constants import ConstantValue, OpaqueValue
from framejit.values.numpy.array_calls import ArrayValue
from framejit.values.numpy.arrays import DTypeValue, ScalarValue

EMITTERS[ScalarValue] = EMITTERS[OpaqueValue]
EMITTERS[DTypeValue] = EMITTERS[ConstantValue]


@builds(ArrayValue)
def _array(out: Emitter, value: ArrayValue) -> ast.expr:
    helper = "scalar" if value.is_scalar else "own_array" if value.owns else "array"
    return out.keep(value, "array", call(out.helper(helper), out.value(value.tensor)))
