"""Each accessor and each kind of check: passes on its own values, fails on those near them."""

import collections
import types

import pytest
import torch
from native_helpers import Tree, holds, single

from framejit.native import GuardTree

NAN = float("nan")


class Plain:
    def __init__(self):
        self.x = 1


class WithSlots:
    __slots__ = ("x",)


class Evil:
    def __eq__(self, other):
        raise RuntimeError("no comparison")

    __hash__ = None


# ---- checks ----

CHECKS = [
    # name, check, passing values, failing values
    ("type", ("type", int), [1, 10**30], [True, 1.0, None, "1"]),
    ("id", ("id", len), [len], [abs, None]),
    ("id none", ("id", None), [None], [0, False]),
    ("int", ("equals", 10**20), [10**20, int("1" + "0" * 20)], [10**20 + 1, 1e20, None]),
    ("one", ("equals", 1), [1], [True, 1.0, 2]),
    ("true", ("equals", True), [True], [False, 1, "x"]),
    ("none", ("equals", None), [None], [0, False, "None"]),
    ("str", ("equals", "añb"), ["añb", "".join(["a", "ñ", "b"])], ["anb", b"a", "añ"]),
    ("bytes", ("equals", b"ab\0c"), [bytes([97, 98, 0, 99])], [b"ab\0d", b"ab", "ab"]),
    ("float", ("equals", 0.5), [1 / 2], [0.25, 0.5j, 1]),
    ("zero", ("equals", 0.0), [0.0], [-0.0, 0]),
    ("nan", ("equals", NAN), [NAN, float("nan")], [0.0]),
    ("complex", ("equals", 1j), [complex(0, 1)], [complex(-0.0, 1), 1]),
    (
        "tuple",
        ("equals", (1, "a", (2.0, None))),
        [(1, "a", (2.0, None)), tuple([1, "a", (2.0, None)])],
        [(1, "a", (2, None)), (True, "a", (2.0, None)), (1, "a"), [1, "a", (2.0, None)]],
    ),
    ("list", ("equals", [1, 2]), [[1, 2]], [[1, 3], (1, 2), [1]]),
    ("tuple of lists", ("equals", ([1], 1)), [([1], 1)], [([2], 1), ([1], True)]),
    ("size", ("equals", torch.Size([2, 3])), [torch.Size([2, 3])], [torch.Size([2, 4]), (2, 3)]),
    ("dtype", ("equals", torch.float32), [torch.float32], [torch.float64, None]),
    (
        "device",
        ("equals", torch.device("cpu")),
        [torch.device("cpu")],
        [torch.device("meta"), "cpu"],
    ),
    ("evil", ("equals", 1), [1], [Evil()]),
    (
        "len list",
        ("len", 2),
        [[1, 2], (1, 2), {1: 1, 2: 2}, {1, 2}, frozenset("ab"), collections.OrderedDict(a=1, b=2)],
        [[1], (), {1: 1}, {1}, 2, None],
    ),
    (
        "keys",
        ("keys", ("a", 1)),
        [{"a": 0, 1: 0}, collections.OrderedDict([("a", 0), (1, 0)])],
        [
            {1: 0, "a": 0},
            {"a": 0},
            {"a": 0, True: 0},
            {"a": 0, 1: 0, 2: 0},
            ["a", 1],
            collections.OrderedDict([(1, 0), ("a", 0)]),
        ],
    ),
    ("present", ("present",), [None, 1], []),
    (
        "truthy",
        ("bool", True),
        [[1], (0,), {1: 1}, {1}, "a", 1, 0.5, True, b"x"],
        [[], (), {}, set(), "", 0, 0.0, False, None, b"", Plain()],
    ),
    ("falsy", ("bool", False), [[], {}, (), set(), "", 0, None, False], [[1], 1, Plain()]),
]


@pytest.mark.parametrize(
    "check,good,bad", [row[1:] for row in CHECKS], ids=[row[0] for row in CHECKS]
)
def test_check(check, good, bad):
    for value in good:
        tree = single([], check)
        assert holds(tree, value), value
        for wrong in bad:
            assert not holds(tree, wrong), wrong
            assert holds(tree, value)
    for wrong in bad:
        tree = single([], check)
        assert not holds(tree, wrong), wrong


@pytest.mark.parametrize(
    "check,good,bad", [row[1:] for row in CHECKS], ids=[row[0] for row in CHECKS]
)
def test_check_on_a_pinned_value(check, good, bad):
    """The same below an object that the tree owns: the value is known by a dict version."""
    holder = types.SimpleNamespace()
    tree = Tree()
    root = tree.node(-1, "const", holder)
    tree.node(tree.node(root, "dict"), "item", "v", check, capture=True)
    built = tree.build()
    for value in good:
        holder.v = value
        assert holds(built)
        for wrong in bad:
            holder.v = wrong
            assert not holds(built), wrong
            holder.v = value
            assert holds(built)
    if check[0] != "absent":
        del holder.__dict__["v"]
        assert not holds(built)


def test_absent_and_missing_captures():
    tree = single([("item", "k")], ("absent",), capture=False)
    assert holds(tree, {}) and holds(tree, {"j": 1}) and not holds(tree, {"k": None})
    captured = single([("item", "k")])
    assert captured.explain(({},)) == (1, -1)
    assert holds(captured, {"k": 1}) and not holds(captured, {}) and holds(captured, {"k": 2})


def test_every_check_but_absent_fails_on_nothing():
    for check in [row[1] for row in CHECKS] + [("function", Plain.__init__.__code__)]:
        assert not holds(single([("item", "k")], check, capture=False), {})


def test_function():
    def f():
        return 1

    def g():
        return 2

    tree = single([], ("function", f.__code__))
    assert holds(tree, f)
    assert not holds(tree, g) and not holds(tree, 3) and not holds(tree, len)
    original = f.__code__
    f.__code__ = g.__code__
    assert not holds(tree, f)
    f.__code__ = original
    assert holds(tree, f)


def test_same_and_distinct():
    tree = Tree()
    a = tree.node(-1, "slot", 0)
    b = tree.node(-1, "slot", 1, ("same", a))
    tree.node(-1, "slot", 2, ("distinct", (a, b)), capture=True)
    built = tree.build()
    x, y = [], []
    assert holds(built, x, x, y) and not holds(built, x, y, y) and not holds(built, x, x, x)
    assert holds(built, y, y, x)


def test_id_does_not_keep_the_object_alive():
    import weakref

    thing = Plain()
    reference = weakref.ref(thing)
    tree = single([], ("id", thing))
    assert holds(tree, thing)
    del thing
    assert reference() is None
    assert not holds(tree, None) and not holds(tree, Plain())


# ---- tensors ----


def test_tensor_metadata():
    base = torch.zeros(2, 3)
    tree = single([], ("tensor", base, 0))
    assert holds(tree, base) and holds(tree, torch.ones(2, 3))
    wrong = [
        torch.zeros(2, 3, dtype=torch.float64),
        torch.zeros(3, 2),
        torch.zeros(2, 3, 1),
        torch.zeros(3, 2).t(),
        torch.zeros(2, 3, requires_grad=True),
        torch.nn.Parameter(torch.zeros(2, 3), requires_grad=False),
        torch.zeros(2, 3, device="meta"),
        torch.zeros(2, 3).to_sparse(),
        torch.zeros(2, 3, dtype=torch.complex64).conj(),
        torch._neg_view(torch.zeros(2, 3)),
        torch.zeros(2, 3).numpy(),
        None,
        1,
    ]
    for value in wrong:
        assert not holds(tree, value), value
        assert holds(tree, base)


def test_tensor_keys_of_the_thread():
    x = torch.zeros(2)
    tree = single([], ("tensor", x, 0))
    with torch.inference_mode():
        inside = torch.zeros(2)
        assert not holds(tree, inside)
        assert not holds(tree, x)  # the thread excludes ADInplaceOrView
    assert holds(tree, x)


def test_tensor_dynamic():
    any_shape = single([], ("tensor", torch.zeros(2, 3), 1))
    assert holds(any_shape, torch.zeros(7, 1)) and holds(any_shape, torch.zeros(3, 2).t())
    assert not holds(any_shape, torch.zeros(7)) and not holds(any_shape, torch.zeros(7, 1).int())
    first = single([], ("tensor", torch.zeros(2, 3), 0, (0,)))
    assert holds(first, torch.zeros(9, 3)) and not holds(first, torch.zeros(9, 4))


def test_tensor_without_strides():
    sparse = torch.eye(3).to_sparse()
    tree = single([], ("tensor", sparse, 0))
    assert holds(tree, torch.eye(3).to_sparse())
    assert not holds(tree, torch.eye(4).to_sparse()) and not holds(tree, torch.eye(3))
    csr = torch.eye(3).to_sparse_csr()
    tree = single([], ("tensor", csr, 0))
    assert holds(tree, csr) and not holds(tree, sparse)


def test_tensor_subclass_with_dispatch():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        fake = torch.zeros(2, 3)
        other = torch.zeros(3, 2)
    tree = single([], ("tensor", fake, 0))
    assert holds(tree, fake) and not holds(tree, other) and not holds(tree, torch.zeros(2, 3))
    assert mode is fake.fake_mode


def test_example_tensor_is_not_kept():
    import weakref

    x = torch.zeros(3)
    reference = weakref.ref(x)
    tree = single([], ("tensor", x, 0))
    del x
    assert reference() is None and holds(tree, torch.ones(3))


# ---- accessors ----


def test_cell():
    value = [1]

    def f():
        return value

    cell = f.__closure__[0]
    tree = single([("cell", None)], ("len", 1))
    assert holds(tree, cell)
    cell.cell_contents = [2]
    assert holds(tree, cell)
    cell.cell_contents = []
    assert not holds(tree, cell)
    del cell.cell_contents
    assert not holds(tree, cell)
    assert holds(single([("cell", None)], ("absent",), capture=False), cell)
    assert not holds(tree, 5)


def test_dict_of_instance_type_and_module():
    tree = single([("dict", None), ("item", "x")], ("equals", 1))
    thing = Plain()
    assert holds(tree, thing)
    thing.x = 2
    assert not holds(tree, thing)
    assert not holds(tree, WithSlots()) and not holds(tree, 5) and not holds(tree, {"x": 1})
    assert not holds(tree, object())
    empty = Plain.__new__(Plain)
    assert not holds(tree, empty)
    empty.x = 1
    assert holds(tree, empty)
    module = types.ModuleType("m")
    module.x = 1
    assert holds(tree, module)
    cls = type("C", (), {"x": 1})
    assert holds(tree, cls)
    cls.x = 3
    assert not holds(tree, cls)
    cls.x = 1
    assert holds(tree, cls)


def test_item_never_calls_getitem():
    class Trap(dict):
        def __getitem__(self, key):
            raise AssertionError

        def __missing__(self, key):
            raise AssertionError

    tree = single([("item", "k")], ("equals", 1))
    assert holds(tree, Trap(k=1)) and not holds(tree, Trap()) and not holds(tree, [1])
    default = collections.defaultdict(list)
    assert not holds(tree, default) and not default


@pytest.mark.parametrize("key", [3, (1, 2), None, 2.5, frozenset([1])])
def test_item_with_other_keys(key):
    tree = single([("item", key)], ("equals", "v"))
    assert holds(tree, {key: "v"}) and not holds(tree, {key: "w"}) and not holds(tree, {})
    holder = {key: "v"}
    owned = Tree()
    owned.node(owned.node(-1, "const", holder), "item", key, ("equals", "v"), capture=True)
    built = owned.build()
    assert holds(built)
    holder[key] = "w"
    assert not holds(built)


def test_index():
    tree = single([("index", 1)], ("equals", 5))
    for good in ([0, 5], (0, 5), [0, 5, 6], collections.namedtuple("P", "a b")(0, 5)):
        assert holds(tree, good)
    for bad in ([5], (), [0, 6], {1: 5}, "05"):
        assert not holds(tree, bad)
    assert not holds(single([("index", -1)], ("present",)), [1])


def test_type_and_type_attr():
    class A:
        def m(self):
            return 1

    class B(A):
        pass

    tree = single([("type", None), ("type_attr", "m")], ("function", A.m.__code__))
    assert holds(tree, A()) and holds(tree, B()) and not holds(tree, 3)
    B.m = lambda self: 2
    assert not holds(tree, B()) and holds(tree, A())
    del B.m
    assert holds(tree, B())
    assert not holds(single([("type_attr", "m")], ("present",)), A())  # not a type


def test_attr_and_call():
    class C:
        @property
        def p(self):
            return [1]

        @property
        def bad(self):
            raise ValueError

    assert holds(single([("attr", "p")], ("len", 1), capture=False), C())
    assert not holds(single([("attr", "p")], ("len", 2), capture=False), C())
    assert not holds(single([("attr", "bad")], ("present",)), C())
    assert not holds(single([("attr", "nothing")], ("present",)), C())
    calls = []
    tree = single([("call", lambda v: calls.append(v) or v["k"])], ("equals", 1), capture=False)
    assert holds(tree, {"k": 1}) and not holds(tree, {}) and not holds(tree, {"k": 2})
    assert len(calls) == 12


@pytest.mark.parametrize("name", ["__closure__", "__defaults__", "__kwdefaults__", "__code__"])
def test_function_fields(name):
    y = 1

    def f(a=2, *, b=3):
        return y

    tree = single([("attr", name)])
    assert tree.check((f,))[0] is getattr(f, name) or tree.check((f,))[0] == getattr(f, name)
    assert holds(tree, f)
    assert not holds(tree, 3)
    if name == "__defaults__":
        f.__defaults__ = (7,)
        assert tree.check((f,)) == ((7,),)
        f.__defaults__ = None
        assert tree.check((f,)) == (None,)


def test_method_fields():
    thing = [1]
    method = types.MethodType(len, thing)
    assert single([("attr", "__self__")]).check((method,))[0] is thing
    assert single([("attr", "__func__")]).check((method,))[0] is len


def test_key_at():
    tree = single([("key_at", 1)], ("equals", "b"))
    assert (
        holds(tree, {"a": 1, "b": 2})
        and not holds(tree, {"b": 1, "a": 2})
        and not holds(tree, {"a": 1})
    )
    ordered = collections.OrderedDict(a=1, b=2)
    assert holds(tree, ordered)
    ordered.move_to_end("a")
    assert not holds(tree, ordered)


def test_slots_out_of_range():
    assert not holds(single([], ("present",)))
    assert holds(GuardTree([(-1, "slot", 4, [("absent",)], -1)]), 1)


# ---- form ----


@pytest.mark.parametrize(
    "nodes,error",
    [
        ([(0, "slot", 0, [], -1)], ValueError),
        ([(-1, "item", 0, [], -1)], ValueError),
        ([(-1, "slot", 0, [], -1), (0, "slot", 0, [], -1)], ValueError),
        ([(-1, "slot", "x", [], -1)], TypeError),
        ([(-1, "nonsense", 0, [], -1)], ValueError),
        ([(-1, "slot", 0, [("nonsense",)], -1)], ValueError),
        ([(-1, "slot", 0, [("type",)], -1)], ValueError),
        ([(-1, "slot", 0, [("type", 3)], -1)], TypeError),
        ([(-1, "slot", 0, [("same", 0)], -1)], ValueError),
        ([(-1, "slot", 0, [("tensor", 3, 0)], -1)], TypeError),
        ([(-1, "slot", 0, [("keys", ["a"])], -1)], TypeError),
        ([(-1, "slot", 0, [], 1)], ValueError),
        ([(-1, "slot", 0, [], 0), (-1, "slot", 1, [], 0)], ValueError),
        ([(-1, "slot", 0, [], 10**8)], ValueError),
        ([(-1, "slot", 0, ())], TypeError),
        ([(-1, "slot", 0, [], -1), (0, "item", [], [], -1)], TypeError),
        ([(-1, "slot", 0, [], -1), (0, "attr", 3, [], -1)], TypeError),
    ],
)
def test_malformed_trees(nodes, error):
    with pytest.raises(error):
        GuardTree(nodes)


def test_explain_names_the_first_failure():
    tree = Tree()
    a = tree.node(-1, "slot", 0, ("type", dict), ("len", 1))
    tree.node(a, "item", "x", ("type", int), ("equals", 3))
    built = tree.build()
    assert built.explain(({"x": 3},)) is None and built.size == 2
    assert built.explain(([],)) == (0, 0)
    assert built.explain(({},)) == (0, 1)
    assert built.explain(({"x": "a"},)) == (1, 0)
    assert built.explain(({"x": 4},)) == (1, 1)


def test_no_exception_is_left_behind():
    tree = single([("attr", "x"), ("call", lambda v: 1 / 0)], ("bool", True))
    assert tree.check((Plain(),)) is None
    assert tree.check((3,)) is None
