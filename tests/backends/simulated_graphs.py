"""CUDA graphs as far as a CPU can have them: operations are recorded with their memory, and done
again on the same memory. Recording computes nothing, as on a GPU."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class _Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.operations, self.undo = [], []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        for position, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = kwargs.get(argument.name) if argument.kwarg_only else args[position]
                for tensor in tree_leaves(value):
                    self.undo.append((tensor, tensor.clone()))
        result = func(*args, **kwargs)
        self.operations.append((func, args, kwargs, result))
        return result


class _Recording:
    def __init__(self, operations):
        self.operations = operations

    def replay(self):
        for func, args, kwargs, before in self.operations:
            given = {t.untyped_storage().data_ptr() for t in tree_leaves((args, kwargs))
                     if isinstance(t, torch.Tensor)}  # fmt: skip
            after = func(*args, **kwargs)
            for old, new in zip(tree_leaves(before), tree_leaves(after)):
                if isinstance(old, torch.Tensor):
                    if old.untyped_storage().data_ptr() not in given:
                        old.copy_(new)
                else:
                    assert old == new, f"{func} gives another number now"


class Simulated:
    device_type = "cpu"

    def __init__(self):
        self.warm, self.recorded, self.operations = 0, 0, []

    def warm_up(self, run):
        self.warm += 1
        return run()

    def record(self, run):
        self.recorded += 1
        random = torch.get_rng_state()
        with _Recorder() as recorder:
            result = run()
        for tensor, before in reversed(recorder.undo):
            tensor.copy_(before)
        torch.set_rng_state(random)
        for _, args, kwargs, made in recorder.operations:
            given = {id(t) for t in tree_leaves((args, kwargs))}
            for tensor in tree_leaves(made):  # nothing was computed
                if isinstance(tensor, torch.Tensor) and id(tensor) not in given:
                    if tensor._base is None and tensor.is_floating_point():
                        _poison(tensor, args, kwargs)
        self.operations.append(len(recorder.operations))
        return _Recording(recorder.operations), result


def _poison(tensor, args, kwargs):
    given = {t.untyped_storage().data_ptr() for t in tree_leaves((args, kwargs))
             if isinstance(t, torch.Tensor)}  # fmt: skip
    if tensor.untyped_storage().data_ptr() not in given and tensor.numel():
        tensor.untyped_storage().fill_(0xFF)
