"""The object space: one class per kind of value, and the operations on them (`space.Space`).

In: Python objects and their sources. Out: values. Importing the package registers every kind of
value; it knows nothing of bytecode. Its rooms import one way: core, containers, objects, torch,
numpy, stdlib; the modules here know them all. Next room: interpreter.
"""

# ruff: noqa: F401
# isort: off
import framejit.values.numpy.arrays
import framejit.values.torch.autograd
import framejit.values.torch.autograd_functions
import framejit.values.torch.differentiation
import framejit.values.stdlib.builtin_classes
import framejit.values.stdlib.builtin_functions
import framejit.values.stdlib.cached_functions
import framejit.values.stdlib.class_questions
import framejit.values.objects.classes
import framejit.values.objects.compiled_functions
import framejit.values.core.constants
import framejit.values.containers.subclasses
import framejit.values.objects.exceptions
import framejit.values.torch.devices
import framejit.values.torch.exported_parts
import framejit.values.torch.flex_attention
import framejit.values.torch.higher_order
import framejit.values.torch.hooks
import framejit.values.stdlib.inspection
import framejit.values.stdlib.itertools_functions
import framejit.values.containers.live_dicts
import framejit.values.objects.local_classes
import framejit.values.torch.nn_modules
import framejit.values.objects.instances
import framejit.values.stdlib.operator_functions
import framejit.values.stdlib.process
import framejit.values.containers.started_iterators
import framejit.values.stdlib.stdlib_functions
import framejit.values.stdlib.warned
import framejit.values.core.symbolic
import framejit.values.torch.made_wrappers
import framejit.values.torch.opaque
import framejit.values.torch.overrides
import framejit.values.torch.subclasses
import framejit.values.torch.tensors
import framejit.values.torch.wrappers
import framejit.values.torch.torch_functions
import framejit.values.torch.torch_library
import framejit.values.torch.transform_makers
import framejit.values.torch.transforms
import framejit.values.object_space
import torch.distributed

if torch.distributed.is_available():  # some builds are without
    import framejit.values.torch.distributed
    import framejit.values.torch.dtensors
from framejit.values.stdlib import number_functions

number_functions.install()
