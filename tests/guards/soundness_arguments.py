"""Rows of the soundness table: arguments, containers, tensors' metadata and aliasing."""

import collections

import torch
from soundness import ALLOWED, FREE, NEEDED, add, row

X = torch.arange(6.0).reshape(2, 3)


def argument(name, expected, function, old, new):
    """A row in which an argument is replaced."""
    add(f"argument_{name}", expected, lambda w: (function, (X, old()), lambda: (X, new())))


def changed(name, expected, function, old, change):
    """A row in which an argument is changed in place."""

    def make(w):
        value = old()
        return function, (X, value), lambda: change(value) and None

    add(f"container_{name}", expected, make)


# -- plain arguments ------------------------------------------------------------------------------

argument("int", NEEDED, lambda x, k: x * k, lambda: 2, lambda: 3)
argument("int_carried", FREE, lambda x, k: (x + 1, k), lambda: 2, lambda: 3)
argument("str_carried", FREE, lambda x, k: (x + 1, {"k": k}), lambda: "a", lambda: "b")
argument("int_to_str_carried", FREE, lambda x, k: (x + 1, [k]), lambda: 2, lambda: "b")
argument("object_carried", FREE, lambda x, k: (x + 1, k), lambda: None, lambda: ValueError)
argument("unused", FREE, lambda x, k: x + 1, lambda: 2, lambda: "b")
argument("int_to_tensor", NEEDED, lambda x, k: x * k, lambda: 2, lambda: torch.ones(3))
argument("none_to_tensor", NEEDED, lambda x, k: x if k is None else x * k, lambda: None, lambda: X)
argument("is_none_only", NEEDED, lambda x, k: x if k is None else x * 2, lambda: 1, lambda: None)
argument("is_none_of_ints", ALLOWED, lambda x, k: x if k is None else x * 2, lambda: 1, lambda: 2)
argument("truth_of_int", ALLOWED, lambda x, k: x if k else x * 2, lambda: 1, lambda: 2)
argument("type_of", NEEDED, lambda x, k: x if isinstance(k, int) else -x, lambda: 1, lambda: 1.5)
argument("range_equal", NEEDED, lambda x, k: x * k.stop, lambda: range(0, 5, 2),
         lambda: range(0, 6, 2))  # fmt: skip
argument("slice_equal", NEEDED, lambda x, k: (x + 1, str(k)), lambda: slice(0, 1),
         lambda: slice(False, True))  # fmt: skip
argument("slice_equal_float", NEEDED, lambda x, k: (x + 1, str(k)), lambda: slice(0, 0.0),
         lambda: slice(0, -0.0))  # fmt: skip
argument("slice_start_only", FREE, lambda x, k: x[k.start], lambda: slice(0, 1),
         lambda: slice(0, 2))  # fmt: skip
argument("slice_carried", FREE, lambda x, k: (x + 1, k), lambda: slice(0, 1), lambda: slice(0, 2))
argument("frozenset_order", NEEDED, lambda x, k: (x + 1, list(k)), lambda: frozenset([8, 16]),
         lambda: frozenset([16, 8]))  # fmt: skip
argument("list_length", NEEDED, lambda x, k: x * len(k), lambda: [1, 2], lambda: [1, 2, 3])
argument("list_length_only", FREE, lambda x, k: x * len(k), lambda: [1, 2], lambda: [3, 4])
argument("list_one_element", FREE, lambda x, k: x * k[0], lambda: [1, 2], lambda: [1, 9])
argument("dict_other_value", FREE, lambda x, k: x * k["a"], lambda: {"a": 1, "b": 2},
         lambda: {"a": 1, "b": 3})  # fmt: skip
argument("dict_other_key", ALLOWED, lambda x, k: x * k["a"], lambda: {"a": 1, "b": 2},
         lambda: {"a": 1, "c": 3})  # fmt: skip
argument("dict_order", NEEDED, lambda x, k: x * list(k.values())[0], lambda: {"a": 1, "b": 2},
         lambda: {"b": 2, "a": 1})  # fmt: skip
argument("ordered_dict_order", NEEDED, lambda x, k: x * list(k.values())[0],
         lambda: collections.OrderedDict(a=1, b=2),
         lambda: collections.OrderedDict(b=2, a=1))  # fmt: skip
argument("dict_to_subclass", NEEDED, lambda x, k: x * k["z"] if "z" in k else x,
         lambda: {"a": 1}, lambda: collections.defaultdict(int, z=4))  # fmt: skip
argument("missing_key_added", NEEDED, lambda x, k: x * k.get("z", 5), lambda: {}, lambda: {"z": 2})
argument("tuple_content", NEEDED, lambda x, k: x * k[1], lambda: (1, 2), lambda: (1, 3))
argument("set_member", NEEDED, lambda x, k: x * (2 if 3 in k else 4), lambda: {3}, lambda: {4})
argument("range", NEEDED, lambda x, k: x * sum(k), lambda: range(3), lambda: range(4))
argument("key_true_or_one", NEEDED, lambda x, k: x * (2 if list(k)[0] is True else 3),
         lambda: {True: 1}, lambda: {1: 1})  # fmt: skip

# -- containers changed in place ------------------------------------------------------------------

changed(
    "list_setitem", NEEDED, lambda x, k: x * k[0], lambda: [1, 2], lambda k: k.__setitem__(0, 5)
)
changed("list_append", NEEDED, lambda x, k: x * sum(k), lambda: [1, 2], lambda k: k.append(3))
changed("list_append_unread", ALLOWED, lambda x, k: x * k[0], lambda: [1, 2], lambda k: k.append(3))
changed("list_reverse", NEEDED, lambda x, k: x * k[0], lambda: [1, 2], lambda k: k.reverse())
changed("list_clear", NEEDED, lambda x, k: x * (len(k) + 1), lambda: [1, 2], lambda k: k.clear())
changed("nested_list", NEEDED, lambda x, k: x * k[0][0], lambda: [[1], 2],
        lambda k: k[0].__setitem__(0, 4))  # fmt: skip
changed("list_of_dict", NEEDED, lambda x, k: x * k[0]["a"], lambda: [{"a": 1}],
        lambda k: k[0].update(a=4))  # fmt: skip
changed("tuple_of_list", NEEDED, lambda x, k: x * k[0][0], lambda: ([1],),
        lambda k: k[0].__setitem__(0, 4))  # fmt: skip
changed("dict_setitem", NEEDED, lambda x, k: x * k["a"], lambda: {"a": 1}, lambda k: k.update(a=2))
changed("dict_pop", NEEDED, lambda x, k: x * k.get("a", 7), lambda: {"a": 1}, lambda k: k.pop("a"))
changed("dict_reordered", NEEDED, lambda x, k: x * list(k)[0], lambda: {1: 1, 2: 2},
        lambda k: k.update({1: k.pop(1)}))  # fmt: skip
changed("ordered_dict_moved", NEEDED, lambda x, k: x * list(k)[0],
        lambda: collections.OrderedDict({1: 1, 2: 2}),
        lambda k: k.move_to_end(1))  # fmt: skip
changed("set_add", NEEDED, lambda x, k: x * sum(k), lambda: {1, 2}, lambda k: k.add(3))
changed("deque_append", NEEDED, lambda x, k: x * sum(k), lambda: collections.deque([1, 2]),
        lambda k: k.append(3))  # fmt: skip
changed("deque_rotate", NEEDED, lambda x, k: x * k[0], lambda: collections.deque([1, 2]),
        lambda k: k.rotate(1))  # fmt: skip
changed("defaultdict", NEEDED, lambda x, k: x * len(k), lambda: collections.defaultdict(int, a=1),
        lambda k: k["b"])  # fmt: skip
changed("default_factory", NEEDED, lambda x, k: x * k.copy()["zz"],
        lambda: collections.defaultdict(lambda: 2),
        lambda k: setattr(k, "default_factory", lambda: 3))  # fmt: skip
changed("counter", NEEDED, lambda x, k: x * k["a"], lambda: collections.Counter("aab"),
        lambda k: k.update("a"))  # fmt: skip
changed("list_of_tensors_setitem", FREE, lambda x, k: x * k[0], lambda: [torch.ones(3)],
        lambda k: k.__setitem__(0, torch.zeros(3)))  # fmt: skip
changed("dict_of_tensors_setitem", FREE, lambda x, k: x * k["a"], lambda: {"a": torch.ones(3)},
        lambda k: k.update(a=torch.zeros(3)))  # fmt: skip
changed("list_filled_only", FREE, lambda x, k: k.clear() or x + 1, lambda: [], lambda k: None)


class Mapping(dict):
    extra = 1


changed("dict_subclass_attribute", NEEDED, lambda x, k: x * k.extra, lambda: Mapping(a=1),
        lambda k: setattr(k, "extra", 3))  # fmt: skip
changed("dict_subclass_item", NEEDED, lambda x, k: x * k["a"], lambda: Mapping(a=1),
        lambda k: k.update(a=3))  # fmt: skip


class Items(list):
    pass


changed("list_subclass_item", NEEDED, lambda x, k: x * k[0], lambda: Items([1]),
        lambda k: k.__setitem__(0, 3))  # fmt: skip


@row(NEEDED)
def list_argument_aliasing(w):
    a, b = [1], [1]

    def f(x, p, q):
        p[0] = 7
        return x * q[0]

    return f, (X, a, b), lambda: (X, a, a)


@row(NEEDED)
def object_identity(w):
    a, b = [1], [1]
    return lambda x, p, q: x * (2 if p is q else 3), (X, a, b), lambda: (X, a, a)


@row(NEEDED)
def object_identity_lost(w):
    a, b = [1], [1]
    return lambda x, p, q: x * (2 if p is q else 3), (X, a, a), lambda: (X, a, b)


# -- tensors --------------------------------------------------------------------------------------

T = {
    "dtype": lambda t: t.double(), "shape": lambda t: torch.ones(1, 3),
    "rank": lambda t: torch.ones(3), "strides": lambda t: t.t().contiguous().t(),
    "requires_grad": lambda t: t.clone().requires_grad_(),
    "parameter": lambda t: torch.nn.Parameter(t), "scalar": lambda t: torch.tensor(2.0),
    "device": lambda t: t.to("meta"), "conj": lambda t: torch.conj(t.to(torch.complex64)),
    "sparse": lambda t: t.to_sparse(),
}  # fmt: skip


def _read_everything(x, y):
    kind = type(y).__name__
    if y.is_sparse or y.device.type == "meta":
        return kind, y.is_sparse, str(y.dtype)
    sizes = y.shape, y.stride(), y.dtype, y.requires_grad, y.ndim
    return x * y, sizes, kind, y.is_conj(), y.is_contiguous()


for _name, _change in T.items():
    add(
        f"tensor_{_name}", NEEDED,
        lambda w, change=_change: (
            _read_everything, (X, X + 1), lambda: (X, change(torch.ones(2, 3))),
        ),
        4,
    )  # fmt: skip


class Sub(torch.Tensor):
    pass


@row(NEEDED, after=3)
def tensor_subclass(w):
    return lambda x, y: (x + y).clone(), (X, X), lambda: (X, X.as_subclass(Sub))


@row(FREE)
def tensor_content(w):
    return lambda x: x * 2, (X,), lambda: (X + 1,)


@row(FREE)
def tensor_storage_offset(w):
    base = torch.arange(7.0)
    return lambda x: x * 2, (base[:6],), lambda: (base[1:],)


@row(NEEDED)
def tensor_storage_offset_read(w):
    base = torch.arange(7.0)
    return lambda x: x * (2 + x.storage_offset()), (base[:6],), lambda: (base[1:],)


@row(NEEDED)
def tensor_is_leaf(w):
    leaf = torch.ones(3, requires_grad=True)
    return lambda x, y: x * (2 if y.is_leaf else 3), (X, leaf), lambda: (X, leaf * 2)


@row(NEEDED)
def tensor_is_inference(w):
    with torch.inference_mode():
        special = torch.ones(3)
    return lambda x, y: x * (2 if y.is_inference() else 3), (X, torch.ones(3)), lambda: (X, special)


@row(NEEDED)
def tensor_is_shared(w):
    shared = torch.ones(3).share_memory_()
    return lambda x, y: x * (2 if y.is_shared() else 3), (X, torch.ones(3)), lambda: (X, shared)


@row(NEEDED)
def tensor_grad_is_none(w):
    leaf = torch.ones(3, requires_grad=True)
    return (
        lambda x, y: x * (2 if y.grad is None else 3), (X, leaf), lambda: leaf.sum().backward()
    )  # fmt: skip


@row(NEEDED)
def tensor_attribute(w):
    t = torch.ones(3)
    t.scale = 2
    return lambda x, y: x * y.scale, (X, t), lambda: setattr(t, "scale", 3)


@row(NEEDED)
def tensor_attribute_added(w):
    t = torch.ones(3)
    return lambda x, y: x * getattr(y, "scale", 2), (X, t), lambda: setattr(t, "scale", 3)


@row(ALLOWED)
def tensor_aliasing_appears(w):
    def f(x, a, b):
        a.add_(1)
        return x * b

    a, b = torch.ones(3), torch.ones(3)
    return f, (X, a, b), lambda: (X, a, a)


@row(ALLOWED)
def tensor_aliasing_disappears(w):
    def f(x, a, b):
        a.add_(1)
        return x * b

    a, b = torch.ones(3), torch.ones(3)
    return f, (X, a, a), lambda: (X, a, b)


@row(ALLOWED)
def tensor_aliasing_read_only(w):
    a, b = torch.ones(3), torch.ones(3)
    return lambda x, a, b: x * a + b, (X, a, b), lambda: (X, a, a)


@row(NEEDED)
def tensor_identity(w):
    a, b = torch.ones(3), torch.ones(3)
    return lambda x, a, b: x * (2 if a is b else 3), (X, a, b), lambda: (X, a, a)


@row(ALLOWED)
def tensor_views_of_one_storage(w):
    base = torch.ones(6)

    def f(x, a, b):
        a.add_(1)
        return x * b

    return f, (X, torch.ones(3), torch.ones(3)), lambda: (X, base[:3], base[1:4])


@row(ALLOWED)
def tensor_list_aliasing(w):
    def f(x, ts):
        ts[0].mul_(2)
        return x * ts[1]

    a, b = torch.ones(3), torch.ones(3)
    return f, (X, [a, b]), lambda: (X, [a, a])


@row(FREE)
def tensor_no_longer_the_global(w):
    a, b = torch.ones(3), torch.ones(3)
    return lambda x, y: x * y, (X, a), lambda: (X, b)


@row(NEEDED)
def tensor_data_dtype(w):
    t = torch.nn.Parameter(torch.ones(3), requires_grad=False)
    return lambda x, y: x * y, (X, t), lambda: setattr(t, "data", torch.ones(3).double())


@row(NEEDED)
def tensor_data_shape(w):
    t = torch.ones(3)
    return lambda x, y: x * y, (X, t), lambda: setattr(t, "data", torch.ones(1))


@row(NEEDED)
def tensor_resized(w):
    t = torch.ones(1)

    def change():
        t.resize_(3)
        t.fill_(2)

    return lambda x, y: x * y, (X, t), change


@row(NEEDED)
def tensor_requires_grad_in_place(w):
    t = torch.ones(3)
    return lambda x, y: x * y, (X, t), lambda: t.requires_grad_()


@row(NEEDED)
def tensor_transposed_in_place(w):
    t = torch.arange(9.0).reshape(3, 3).clone()
    return lambda x, y: x @ y, (X, t), lambda: t.t_()
