"""numpy in compiled functions: arrays and tensors in one graph, results as numpy's own."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import framejit
from checking import Comparison, CountingBackend, check
from framejit import config


def f32():
    return np.arange(12, dtype=np.float32).reshape(3, 4) - 5


def i64():
    return np.arange(12).reshape(3, 4) - 5


def x34():
    return torch.arange(12.0).reshape(3, 4) - 5


def operators_of_arrays(a):
    return a + 1, 1 - a, a * a, a / 2, a % 3, a**2, -a, abs(a), a > 0, a == 1, ~(a > 0)


def operators_of_arrays_of_ints(a):
    return a + 1, a / 2, a / a.max(), 7 // (a * a + 1).max(), a & 3, a | 1, a << 1, 2.5 * a


def reductions_of_floats(a):
    return a.sum(), a.sum(0), a.mean(), a.max(), a.min(axis=1), a.std(), a.argmax(), a.cumsum()


def reductions_of_ints(a):
    return a.sum(), a.mean(), a.max(), a.var(0), a.any(), a.all(), a.prod(), np.sqrt(a * a)


def indexing_of_arrays(a):
    return a[0], a[0, 1], a[:, 1], a[1:, ::2], a[..., 0], a[[0, 2]], a[-1, -1], a[0, ..., 1]


def assignment_to_elements(a):
    a[0] = 1
    a[1, 2] = 7
    a[:, 3] = a[:, 0]
    a[a > 3] = 0
    return a


def assignment_that_overlaps(a):
    a[1:] = a[:-1]
    a[1:] += a[:-1]
    return a.sum()


def attributes_of_arrays(a):
    same = a.dtype == np.float32, a.dtype == "float32", np.float64 == a.dtype
    return a.shape, a.ndim, a.size, a.dtype, a.itemsize, a.T, len(a), a.strides, same


def views_and_copies(a):
    b, c, d = a.reshape(-1), a.T, a.astype(np.float32)
    b[0], c[1, 1], d[0] = 100, 50, 9
    return a, b, c, d


def functions_of_numpy(a):
    return (
        np.sin(a), np.maximum(a, 0), np.where(a > 0, a, 0), np.concatenate([a, a]),
        np.stack([a, a]), np.einsum("ij,kj->ik", a, a), np.sum(a, axis=1, keepdims=True),
        np.linalg.norm(a), np.sort(a), np.clip(a, -1, 1), np.zeros_like(a), np.tile(a, 2),
        np.array([a, a]),
    )  # fmt: skip


def new_arrays(x):
    made = np.zeros((2, 3)), np.ones(3, dtype=np.float32), np.arange(5), np.linspace(0, 1, 5)
    return *made, np.eye(3), np.full((2, 2), 7), np.array([[1, 2], [3, 4]], dtype=np.float32)


def numbers_only(x):
    wide = x.reshape(int(np.prod(x.shape)))
    return wide / np.sqrt(x.shape[-1]), x * np.float64(2.0), np.float32(3) * 2, np.dtype("float32")


def memory_is_shared(x):
    a = x.numpy()
    a[0] = 7
    x[1] = 3
    y = torch.from_numpy(a)
    y[2, 0] = -1
    return a, y, x.sum(), x.numpy() is a


def tensors_of_arrays(a):
    kept = torch.from_numpy(a)
    copied = torch.tensor(a)
    a[0] = 9
    return kept, copied, torch.as_tensor(a, dtype=torch.float64), torch.tensor(a.sum())


def scalars_do_not_change(a):
    total = first = a.sum()
    total += 1
    corner = a[0, 0]
    a[0, 0] = 55
    kinds = isinstance(total, np.floating), isinstance(a, np.ndarray), type(a) is np.ndarray
    return first, total, corner, total > 0, 2 * total, a * total, kinds


def iteration_over_arrays(a):
    one, two, three = a
    return one + two, [row.sum() for row in a], three, list(range(len(a)))


def operators_in_place(a):
    b = a
    a += 1
    a *= 2
    b /= 2
    np.add(a, 1, out=a)
    np.sin(a, out=b)
    return b is a


def dtypes_of_arrays(a):
    half = a.astype(np.float16)
    return half + 1.5, half * np.float32(2), half.sum() + 1, a + np.int8(1), a * np.float64(2)


def complex_arrays(a):
    c = a * 1j + 1
    return c * 2, c.real, c.imag, np.conj(c), abs(c)


def condition_on_an_array(a):
    b = a * 2
    if b.sum() > 0:
        return b + 1
    return b - 1


def numbers_are_taken_out(a):
    b = a + 1
    return b.tolist(), b * 2


def random_numbers_are_numpys(a):
    np.random.seed(3)
    return a + np.random.rand(3, 4).astype(np.float32)


def functions_that_are_not_alike(a):
    b = a * 2
    return np.flip(b) + 1, np.sign(b)


def error_of_numpys(a):
    b = a + 1
    try:
        return b.reshape(5, 5)
    except ValueError as error:
        return str(error), b * 2


def mixed_with_tensors(x, a):
    y = torch.relu(x) @ torch.from_numpy(a).T
    return np.exp(y.numpy()).sum(0), y


def dtype_of_the_result_differs(a):
    narrow = a.astype(np.uint8)
    return narrow.sum(), narrow + 1


#: program -> (what makes its arguments, graphs, operations).
PROGRAMS = {
    operators_of_arrays: (f32, 1, 20), operators_of_arrays_of_ints: (i64, 2, 15),
    reductions_of_floats: (f32, 1, 9), reductions_of_ints: (i64, 1, 11),
    indexing_of_arrays: (f32, 1, 10), assignment_to_elements: (f32, 1, 8),
    assignment_that_overlaps: (f32, 1, 11), attributes_of_arrays: (f32, 1, 1),
    views_and_copies: (f32, 1, 7), functions_of_numpy: (f32, 1, 20), new_arrays: (x34, 1, 14),
    numbers_only: (x34, 1, 3), memory_is_shared: (x34, 2, 6), tensors_of_arrays: (f32, 1, 6),
    scalars_do_not_change: (f32, 1, 11), iteration_over_arrays: (f32, 1, 10),
    operators_in_place: (f32, 1, 19), dtypes_of_arrays: (f32, 1, 15), complex_arrays: (f32, 1, 10),
    condition_on_an_array: (f32, 2, 7), numbers_are_taken_out: (f32, 2, 4),
    random_numbers_are_numpys: (f32, 1, 2), functions_that_are_not_alike: (f32, 1, 2),
    error_of_numpys: (f32, 2, 4), dtype_of_the_result_differs: (i64, 2, 3),
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program(program):
    make, graphs, ops = PROGRAMS[program]
    check(program, make(), graphs=graphs, ops=ops)


def test_tensors_and_arrays_in_one_graph():
    check(mixed_with_tensors, x34(), f32(), graphs=1, ops=7)


def tensor_and_array_of_one_memory(x):
    return x, torch.from_numpy(x.numpy())


def parts_of_an_array(x):
    y = x * 2
    return y, torch.from_numpy(y.numpy()[::2]), torch.as_tensor(y.numpy().T)


def array_made_by_numpy(x):
    a = np.abs(x.numpy())
    return torch.from_numpy(a), torch.from_numpy(a), torch.from_numpy(a[:2])


def tensor_of_a_copy_is_written(x):
    y = torch.from_numpy(np.ascontiguousarray(x.numpy()))
    y += 1
    return x, y, y[1:], y.T


def storage_of_a_reshaped_array(x):
    y = torch.from_numpy(np.abs(x.numpy()).reshape(4, 3).T)
    return y, y[1:], torch.as_tensor(np.abs(x.numpy()), dtype=torch.float64)


def storages(tensors):
    found = [tensor.untyped_storage() for tensor in tensors]
    known = [storage._cdata for storage in found]
    return [known.index(one) for one in known], [storage.nbytes() for storage in found]


@pytest.mark.parametrize("backend", ["aot_eager", CountingBackend()], ids=["aot", "counting"])
@pytest.mark.parametrize("program, graphs, ops", [
    (tensor_and_array_of_one_memory, 1, 1), (parts_of_an_array, 2, 5), (array_made_by_numpy, 2, 4),
    (tensor_of_a_copy_is_written, 2, 4), (storage_of_a_reshaped_array, 1, 9),
])  # fmt: skip
def test_tensors_of_arrays_have_storages_of_their_own(program, graphs, ops, backend):
    check(program, x34(), graphs=graphs, ops=ops)
    compiled = framejit.compile(program, backend=backend)
    for _ in range(2):
        got, expected = compiled(x34()), program(x34())
        assert storages(got) == storages(expected)
        for one, two in zip(copy.deepcopy(got), expected, strict=True):
            assert torch.equal(one, two)


def overlapping(a, b):
    a[1:] += 1
    b *= 2
    return a.sum() + b.sum()


@pytest.mark.parametrize("backend", ["aot_eager", CountingBackend()], ids=["aot", "counting"])
def test_arrays_may_lie_in_each_others_memory(backend):
    def calls():
        a = np.arange(6.0)
        yield a, np.arange(6.0)
        yield a, a[1:]
        yield a, a[::2]
        yield a[2:], a
        tensor = torch.arange(6.0, dtype=torch.float64)
        yield tensor.numpy(), tensor

    compiled = framejit.compile(overlapping, backend=backend)
    for got, expected in zip(calls(), calls(), strict=True):
        assert float(compiled(*got)) == float(overlapping(*expected))
        for one, two in zip(got, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(two))


def test_whose_memory_an_array_uses():
    existing = np.arange(6.0)

    def f(x):
        own = np.arange(6.0)
        part = own[1:3]
        return x + 1, part.base is own, np.zeros(2).base is None, existing[:2].base is existing

    compiled = framejit.compile(f, backend="eager")
    for _ in range(2):
        assert compiled(torch.ones(2))[1:] == f(torch.ones(2))[1:] == (True, True, True)


def test_what_is_guarded_of_an_array():
    backend = CountingBackend()
    compiled = framejit.compile(lambda a: a * 2 + 1, backend=backend)
    met = [np.zeros(3), np.zeros(3, np.float32), np.zeros((2, 2)), np.zeros(4), np.zeros(9)]
    counts = []
    for array in [*met, *met]:
        Comparison().compare(array * 2 + 1, compiled(array), "result")
        counts.append(len(backend.graphs))
    assert counts == [1, 2, 3, 4, 4] + [4] * 5
    for odd in (np.zeros(9)[::-2], np.zeros(3, dtype=">f8"), np.broadcast_to(1.0, (3,))):
        assert np.array_equal(compiled(odd), odd * 2 + 1)
        assert type(compiled(odd)) is type(odd * 2 + 1)


def test_scalars_are_told_apart_by_class_and_bits():
    backend = CountingBackend()
    program = lambda s, a: (s * 2, a * s)  # noqa: E731
    compiled = framejit.compile(program, backend=backend)
    array = np.ones(2, np.float32)
    met = [
        np.float64(2.0), 2.0, np.float32(2.0), np.int64(2), 2, np.bool_(True), np.float64("nan"),
        np.float64(0.0), np.float64(-0.0),
    ]  # fmt: skip
    for _ in range(2):
        for scalar in met:
            for expected, got in zip(program(scalar, array), compiled(scalar, array), strict=True):
                assert (type(got), repr(got)) == (type(expected), repr(expected)), scalar
        assert len(backend.graphs) == len(met)


TABLE = np.ones(3, dtype=np.float32)


def test_an_array_in_a_global_is_read_on_each_call(monkeypatch):
    backend = CountingBackend()
    compiled = framejit.compile(lambda x: torch.from_numpy(TABLE) * x, backend=backend)
    x = torch.ones(3)
    assert compiled(x).tolist() == [1, 1, 1]
    TABLE[0] = 7
    assert compiled(x).tolist() == [7, 1, 1]
    monkeypatch.setitem(globals(), "TABLE", np.full(3, 9, dtype=np.float32))
    assert compiled(x).tolist() == [9, 9, 9]
    assert len(backend.graphs) == 1


def test_default_dtypes_of_torch_are_not_numpys():
    program = lambda a: ((a @ a) / 3, np.arange(2) / 2, np.array([1.0, 2.0]))  # noqa: E731
    compiled = framejit.compile(program, backend="eager", fullgraph=True)
    eye = np.eye(2, dtype=np.float32)
    for dtype in (torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        try:
            for one, two in zip(program(eye), compiled(eye), strict=True):
                Comparison().compare(one, two, "result")
        finally:
            torch.set_default_dtype(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert framejit.compile(lambda a: a @ a, backend="eager")(eye).dtype == np.float32


BESIDE_CONTAINERS = [
    (np.int64(1), [-1, 1]), (np.int64(1), (1, 2)), (np.bool_(True), [True, False]),
    (np.float64(2), [2.0, 3]), (np.int64(2), {2}), (np.int64(2), {2: 1}), (np.int64(1), [1]),
]  # fmt: skip


@pytest.mark.parametrize("scalar, container", BESIDE_CONTAINERS)
def test_scalars_beside_containers_give_arrays(scalar, container):
    def program(x, one, other):
        x = x + 1
        compared = one == other, other == one, one != other
        try:
            return x, compared, one < other, one in [other], one + other
        except (TypeError, ValueError) as error:
            return x, compared, str(error)

    framejit.reset()
    check(program, torch.ones(1), scalar, container, ops=1, graphs=1)
    said = "numpy makes an array of a container beside one of its scalars"
    assert said in framejit.counters["graph_break"]


def test_conversions_that_fail_raise_as_in_eager_mode():
    def program(x):
        try:
            return x.numpy()
        except (RuntimeError, TypeError) as error:
            return str(error)

    with config.patch(raise_internal_errors=True):
        for x in (torch.ones(2, requires_grad=True), torch.ones(2, dtype=torch.bfloat16)):
            assert framejit.compile(program, backend="eager")(x) == program(x)


@pytest.mark.slow
def test_inductor():
    compiled = framejit.compile(scalars_do_not_change, backend="inductor")
    one, two = f32(), f32()
    Comparison().compare(scalars_do_not_change(one), compiled(two), "result")
    Comparison().compare(one, two, "argument")


@pytest.mark.parametrize("value", [True, False])
def test_a_bool_of_numpy_beside_a_tensor(value):
    flag = np.bool_(value)

    def function(x):
        y = x + 1
        return y * flag, flag * y, y + flag, y == flag, y.float() - flag

    check(function, torch.tensor([1, 2]), graphs=2, ops=2)


@pytest.mark.parametrize("size", [(0,), (0, 2), (2, 0), (1, 2)])
def test_arrays_without_elements_have_strides_of_zero(size):
    def function(x):
        array = x.numpy() * 2
        tensors = torch.tensor(array), torch.as_tensor(array), torch.from_numpy(array)
        return array.strides, x + 1, tensors

    check(function, torch.ones(size), graphs=2)


def test_iterators_read_the_array_when_they_are_asked():
    def function(x):
        array = np.arange(4.0)
        one, two, rows = iter(array), reversed(array), iter(np.ones((2, 2)))
        got = [next(one), next(two)]
        array[1], array[2] = 7, 8
        left = one.__length_hint__()
        return *got, next(one), next(two), left, type(one).__name__, [*rows][1].sum(), one, x + 1

    def listed(x):
        *most, one, after = function(x)
        return *most, type(one).__name__, list(one), after

    check(listed, torch.ones(2), graphs=1, ops=20)


def test_arrays_without_dimensions_are_not_iterated():
    def function(x):
        for array in np.zeros(3).sum(), np.zeros(()):
            try:
                iter(array)
            except TypeError as error:
                x = x + len(str(error))
        return x

    check(function, torch.ones(2), graphs=1, ops=5)


@pytest.mark.parametrize("rows", [slice(0), slice(1), slice(2)])
def test_strides_of_arrays_with_and_without_elements(rows):
    def function(x):
        part = x[rows].numpy()
        return part.strides, part.T.strides, x.numpy()[rows].strides, x + 1

    check(function, torch.ones(2, 3), graphs=4 if rows == slice(0) else 1, ops=6)


def test_parts_without_elements_keep_their_strides():
    def function(x):
        part = x.numpy()[:0]
        return part, part[:, 1:], x[:0].numpy().T, x + 1

    def strides(x):
        *parts, after = function(x)
        return [part.strides for part in parts], after

    def outside(x):
        *parts, after = compiled(x)
        return [part.strides for part in parts], after

    compiled = framejit.compile(function, backend="eager")
    assert repr(outside(torch.ones(2, 3))) == repr(strides(torch.ones(2, 3)))


def test_objects_among_the_arguments_are_not_their_classes():
    class Stack(list):
        pass

    def function(x):
        stack = Stack([2, 2])
        return np.sum(stack), type(np.max(stack)), np.array(stack).shape, x + 1

    check(function, torch.ones(2), graphs=1, ops=1)


@pytest.mark.parametrize("scalar, ops", [
    (np.bool_(True), (1, 0, 0)), (np.float32(1.5), (4, 0, 0)), (np.complex64(1 + 2j), (1, 0, 0)),
    (np.float64(2.5), (4, 1, 0)), (np.int32(1), (4, 1, 1)),
])  # fmt: skip
def test_scalars_are_what_torch_takes_them_for(scalar, ops):
    """It refuses some of them in some places, and takes numpy's bool for a float."""

    def filled(x, v):
        return torch.full((2,), v), torch.where(x > 0, x, v), x.clamp(min=v)

    def compared(x, v):
        return x == v, torch.add(x, v), v - x

    def assigned(x, v):
        x[0] = v
        return x

    def indexed(x, v):
        return x[v]

    captured = not isinstance(scalar, (np.bool_, np.complex64))
    for x in (torch.arange(3.0), torch.arange(3)):
        check(compared, x, scalar, graphs=int(captured), ops=3 * captured)
        for function, count in zip((filled, assigned, indexed), ops, strict=True):
            check(function, x, scalar, graphs=int(count > 0), ops=count)


def test_whole_numbers_of_numpy_where_an_index_is_needed():
    def f(x, n):
        try:
            return x + 1, str(range(n)), [1, 2, 3][n], "a" * n, list(range(0, 9, n))
        except TypeError as error:
            return error

    for n in (np.int64(2), np.uint8(1)):
        check(f, torch.ones(2), n, graphs=1, ops=1, fullgraph=True)


OWNED = {
    "product": lambda a: a * 2, "two": lambda a: (a + 1, a.sum(0)), "copy": lambda a: a.copy(),
    "concatenated": lambda a: np.concatenate([a, a]), "zeros": lambda a: (np.zeros(3) + a, 1),
    "in place": lambda a: np.negative(a).__iadd__(1), "twice": lambda a: [b := a * 2, b],
    "where": lambda a: np.where(a > 1, a, 0), "attribute": lambda a: {"k": a.T * 2},
}  # fmt: skip


@pytest.mark.parametrize("name", OWNED)
def test_new_arrays_own_their_data(name):
    f = OWNED[name]
    for make in (lambda: np.arange(3.0), lambda: np.ones((1, 3))[:, ::-1].copy(), lambda: STEPS):
        if name == "concatenated" and make() is STEPS:
            continue
        found = []
        for function in (f, framejit.compile(f, backend="eager", fullgraph=True)):
            result = function(make())
            parts = list(result.values()) if isinstance(result, dict) else result
            parts = [parts] if isinstance(parts, np.ndarray) else list(parts)
            found.append([
                (p.tolist(), p.strides, p.base is None, p.flags.owndata, p is parts[0])
                for p in parts if isinstance(p, np.ndarray)
            ])  # fmt: skip
        assert found[0] == found[1]


STEPS = np.lib.stride_tricks.as_strided(np.arange(3.0), (1, 3), (80, 8))


def test_arrays_and_parts_share_memory():
    def f(a):
        b = a * 2
        return b, b[1:], torch.from_numpy(b), b.T

    result = framejit.compile(f, backend="eager", fullgraph=True)(np.arange(3.0))
    result[0][:] = 7
    assert all(part.tolist() == [7.0] * len(part) for part in result)
    made = framejit.compile(lambda a: a * 2, backend="eager")(np.arange(3.0))
    made.resize(5, refcheck=False)
    assert made.tolist() == [0, 2, 4, 0, 0]


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_numpys_error_state():
    def divided(a):
        return a / 0

    def inside(a):
        with np.errstate(divide="raise"):
            try:
                return a / 0
            except FloatingPointError as error:
                return str(error)

    def outcome(function):
        try:
            return str(function(np.ones(2)))
        except FloatingPointError as error:
            return str(error)

    compiled = [framejit.compile(one, backend="eager") for one in (divided, inside)]
    for state in ("ignore", "raise", "warn", "call"):
        reported = []
        with np.errstate(all=state, call=lambda *given: reported.append(given)):
            found = [outcome(function) for function in (*compiled, divided, inside)]
        assert found[:2] == found[2:]
        assert len(reported) == (2 if state == "call" else 0)


def test_arrays_of_any_tensor():
    def run(x, y):
        made = x.numpy(force=True), (y * 2).numpy(force=True), y.numpy(force=True)
        made[2][0] = 5
        return (*made, x.detach().numpy(force=False), y + 1)

    check(run, torch.ones(2, requires_grad=True), torch.ones(2), graphs=1, fullgraph=True)


def test_arrays_of_scalars_of_numpy():
    def run(x):
        made = np.array([np.float64(1.5), np.float64(2), 3]), np.asarray([np.float64(0.5)])
        return x + torch.from_numpy(made[0]), made

    check(run, torch.ones(3), graphs=1, fullgraph=True)
    check(
        lambda x: (x + 1, np.array([np.float32(1.5)]), np.array(np.float32(2))),
        torch.ones(2),
        graphs=1,
    )
