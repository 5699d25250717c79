"""Rows of the soundness table: torch's global state and its modes."""

import torch
from soundness import ALLOWED, FREE, NEEDED, add, row
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

X = torch.arange(6.0).reshape(2, 3)
W = torch.ones(3, requires_grad=True)


def multiply(x):
    return x * W


def make_new(x):
    return x + torch.ones(3) * torch.zeros(2, 3).device.type.__len__(), torch.ones(1).dtype


def matrix(x):
    return x @ torch.ones(3, 2)


class Double(TorchFunctionMode):
    factor = 2

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * self.factor if func is torch.sin else result


class Pass(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.ops.aten.sin.default else result


def mode(name, expected, function, manager, after=1):
    """A row in which a context is entered after the first calls."""

    def make(w):
        return function, (X,), lambda: w.enter(manager()) and None

    add(f"mode_{name}", expected, make, after)


mode("no_grad", NEEDED, multiply, torch.no_grad)
mode("inference_mode", NEEDED, multiply, torch.inference_mode)
mode(
    "grad_enabled_read", NEEDED, lambda x: x * (2 if torch.is_grad_enabled() else 3), torch.no_grad
)
mode("enable_grad_when_enabled", FREE, multiply, torch.enable_grad)
mode("autocast", NEEDED, matrix, lambda: torch.autocast("cpu", torch.bfloat16))
mode("autocast_read", NEEDED, lambda x: x * (2 if torch.is_autocast_enabled("cpu") else 3),
     lambda: torch.autocast("cpu", torch.bfloat16))  # fmt: skip
mode("autocast_disabled", ALLOWED, matrix, lambda: torch.autocast("cpu", enabled=False))
mode("default_device", NEEDED, lambda x: torch.ones(2).device.type, lambda: torch.device("meta"))
mode("default_device_cpu", ALLOWED, make_new, lambda: torch.device("cpu"))
# Under a mode that changes what functions mean, plain Python runs.
mode("torch_function_mode", ALLOWED, lambda x: torch.sin(x), Double)
mode("torch_dispatch_mode", NEEDED, lambda x: torch.sin(x), Pass, after=3)
mode("torch_function_disabled", ALLOWED, multiply, torch._C.DisableTorchFunctionSubclass)
mode("anomaly", ALLOWED, multiply, torch.autograd.detect_anomaly)
mode("saved_tensors_hooks", ALLOWED, multiply,
     lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t))  # fmt: skip
mode("profiler", ALLOWED, multiply, lambda: torch.profiler.profile())
mode("sdpa_backend", ALLOWED,
     lambda x: torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]),
     lambda: torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH))  # fmt: skip


@row(NEEDED)
def autocast_dtype(w):
    w.enter(torch.autocast("cpu", torch.bfloat16))
    return matrix, (X,), lambda: w.enter(torch.autocast("cpu", torch.float16)) and None


@row(FREE)
def autocast_same_again(w):
    w.enter(torch.autocast("cpu", torch.bfloat16))
    return matrix, (X,), lambda: w.enter(torch.autocast("cpu", torch.bfloat16)) and None


@row(NEEDED)
def inference_mode_left(w):
    manager = torch.inference_mode()
    manager.__enter__()
    left = []
    w.undo(lambda: left or manager.__exit__(None, None, None))

    def change():
        manager.__exit__(None, None, None)
        left.append(1)

    return multiply, (X,), change


@row(NEEDED)
def default_dtype(w):
    w.undo(torch.set_default_dtype, torch.get_default_dtype())
    return make_new, (X,), lambda: torch.set_default_dtype(torch.float64)


@row(NEEDED)
def default_dtype_read(w):
    w.undo(torch.set_default_dtype, torch.get_default_dtype())
    return (
        lambda x: x.to(torch.get_default_dtype()),
        (X,),
        lambda: torch.set_default_dtype(torch.float64),
    )


@row(NEEDED)
def set_default_device(w):
    w.undo(torch.set_default_device, None)
    return lambda x: torch.ones(2).device.type, (X,), lambda: torch.set_default_device("meta")


@row(NEEDED)
def deterministic(w):
    w.undo(torch.use_deterministic_algorithms, False)

    def f(x):
        return x * (2 if torch.are_deterministic_algorithms_enabled() else 3)

    return f, (X,), lambda: torch.use_deterministic_algorithms(True)


@row(NEEDED)
def deterministic_warn_only(w):
    torch.use_deterministic_algorithms(True)
    w.undo(torch.use_deterministic_algorithms, False)

    def f(x):
        return x * (2 if torch.is_deterministic_algorithms_warn_only_enabled() else 3)

    return f, (X,), lambda: torch.use_deterministic_algorithms(True, warn_only=True)


@row(FREE)
def thread_count(w):
    w.undo(torch.set_num_threads, torch.get_num_threads())
    return multiply, (X,), lambda: torch.set_num_threads(3 - min(2, torch.get_num_threads()))


@row(NEEDED)
def thread_count_read(w):
    w.undo(torch.set_num_threads, torch.get_num_threads())
    torch.set_num_threads(1)
    return (
        lambda x: x * torch.get_num_threads(),
        (X,),
        lambda: torch.set_num_threads(2),
    )


@row(NEEDED)
def matmul_precision_read(w):
    w.undo(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
    return (
        lambda x: x * len(torch.get_float32_matmul_precision()), (X,),
        lambda: torch.set_float32_matmul_precision("medium") or None,
    )  # fmt: skip


@row(FREE)
def random_seed(w):
    return lambda x: x + torch.rand(3), (X,), lambda: torch.manual_seed(7) and None


@row(NEEDED)
def backend_flag_read(w):
    w.undo(setattr, torch.backends.mkldnn, "enabled", torch.backends.mkldnn.enabled)
    return (
        lambda x: x * (2 if torch.backends.mkldnn.enabled else 3),
        (X,),
        lambda: torch._C._set_mkldnn_enabled(not torch._C._get_mkldnn_enabled()),
    )
