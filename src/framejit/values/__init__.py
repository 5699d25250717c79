"""The object space: one class per kind of value, and the operations on them (`space.Space`).

In: Python objects and their sources. Out: values. Importing the package registers every kind of
value; it knows nothing of bytecode. Next room: interpreter.
"""

from __future__ import annotations

from framejit.values import (
    arrays,
    autograd,
    builtin_classes,
    builtin_functions,
    cached_functions,
    class_questions,
    classes,
    compiled_functions,
    constants,
    containers,
    exceptions,
    higher_order,
    hooks,
    inspection,
    itertools_functions,
    live_dicts,
    local_classes,
    nn_modules,
    objects,
    operator_functions,
    process,
    started_iterators,
    stdlib_functions,
    symbolic,
    tensors,
    torch_functions,
    torch_library,
    transforms,
)

constants.install_fallback_rules()
symbolic.install()

__all__ = [
    "arrays",
    "autograd",
    "builtin_classes",
    "builtin_functions",
    "cached_functions",
    "class_questions",
    "classes",
    "compiled_functions",
    "constants",
    "containers",
    "exceptions",
    "higher_order",
    "hooks",
    "inspection",
    "itertools_functions",
    "live_dicts",
    "local_classes",
    "nn_modules",
    "objects",
    "operator_functions",
    "process",
    "started_iterators",
    "stdlib_functions",
    "symbolic",
    "tensors",
    "torch_functions",
    "torch_library",
    "transforms",
]
