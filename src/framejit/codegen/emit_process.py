"""Values of `values.process` to expressions: addresses and context variables.

In: values. Out: expressions that ask at run time. Next: codegen.effects.
"""

from __future__ import annotations

import ast

from framejit.codegen.emit import Emitter, call, emits
from framejit.values.core.base import Unmaterialisable
from framejit.values.stdlib.process import ContextTokenValue, IdentityValue


@emits(IdentityValue)
def _identity(out: Emitter, value: IdentityValue) -> ast.expr:
    function = out.constant(value.function)
    if value.target is None:
        return call(function)
    return out.keep(value, "id", call(function, out.value(value.target)))


@emits(ContextTokenValue)
def _context_token(out: Emitter, value: ContextTokenValue) -> ast.expr:
    pending = value.variable.pending
    if value not in pending:
        raise Unmaterialisable(value.step, "the token of an assignment that was taken back")
    for token in pending:  # in their order: each token remembers the value before it
        if token not in out.made:
            setter = ast.Attribute(out.value(token.variable), "set", ast.Load())
            out.keep(token, "token", call(setter, out.value(token.value)))
    return out.made[value]
