"""The fast path finds exactly what a check by value finds, whatever was changed."""

import collections
import gc
import random
import sys
import threading
import types
import weakref

import pytest
import torch
from native_helpers import SANITIZED, GuardTree, Tree, holds, module_tree, single
from torch import nn


def fast(tree, *slots):
    """Makes a record and makes sure that it is used: no further check by value."""
    assert tree.check(slots) is not None
    assert tree.check(slots) is not None
    before = tree.full_checks
    assert tree.check(slots) is not None
    assert tree.full_checks == before
    return tree


def net():
    return nn.Sequential(
        nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3), nn.Dropout()), nn.Linear(3, 1)
    )


ROOTS = ["slot", "const"]


def args(model, root):
    return (model,) if root == "slot" else ()


@pytest.mark.parametrize("root", ROOTS)
def test_module_hit_is_fast_and_captures_parameters(root):
    model = net()
    tree = module_tree(model, root=root)
    fast(tree, *args(model, root))
    assert [id(p) for p in tree.check(args(model, root))] == [id(p) for p in model.parameters()]


def set_class_attribute(m):
    nn.BatchNorm1d.forward, old = (lambda self, x: x), nn.BatchNorm1d.forward
    return lambda: (
        setattr(nn.BatchNorm1d, "forward", old)
        if "forward" in vars(nn.BatchNorm1d) and old is not nn.modules.batchnorm._BatchNorm.forward
        else delattr(nn.BatchNorm1d, "forward")
    )


def new_dict(m):
    old = m[0].__dict__
    m[0].__dict__ = {**old, "training": False}

    def undo():
        m[0].__dict__ = old

    return undo


def changed_class(m):
    class Other(nn.Linear):
        pass

    m[0].__class__ = Other
    return lambda: setattr(m[0], "__class__", nn.Linear)


def hook(m):
    handle = m[1][0].register_forward_hook(lambda *a: None)
    return handle.remove


def param_dtype(m):
    old = m[2].weight.data
    m[2].weight.data = old.double()

    def undo():
        m[2].weight.data = old

    return undo


def param_shape(m):
    old = m[2].weight.data
    m[2].weight.data = torch.zeros(1, 4)

    def undo():
        m[2].weight.data = old

    return undo


def requires_grad(m):
    m[2].weight.requires_grad_(False)
    return lambda: m[2].weight.requires_grad_(True)


def patched_method(m):
    m[2].forward = lambda x: x
    return lambda: delattr(m[2], "forward")


def replaced_submodule(m):
    old = m[1]
    m[1] = nn.ReLU()

    def undo():
        m[1] = old

    return undo


def added_submodule(m):
    m[1].add_module("x", nn.ReLU())
    return lambda: delattr(m[1], "x")


def removed_parameter(m):
    old = m[0].bias
    m[0].bias = None

    def undo():
        m[0].bias = old

    return undo


def reordered_modules(m):
    first = m._modules.pop("0")
    m._modules["0"] = first

    def undo():
        for key in ("1", "2"):
            m._modules[key] = m._modules.pop(key)

    return undo


def method_code(m):
    function = nn.Dropout.forward
    old = function.__code__
    function.__code__ = (lambda self, input: input).__code__

    def undo():
        function.__code__ = old

    return undo


def eval_mode(m):
    m.eval()
    return m.train


BREAKING = [
    set_class_attribute,
    new_dict,
    changed_class,
    hook,
    param_dtype,
    param_shape,
    requires_grad,
    patched_method,
    replaced_submodule,
    added_submodule,
    removed_parameter,
    reordered_modules,
    method_code,
    eval_mode,
]


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("change", BREAKING, ids=lambda f: f.__name__)
def test_changes_of_a_module_are_noticed_and_undone(change, root):
    model = net()
    tree = module_tree(model, root=root)
    slots = args(model, root)
    for _ in range(4):  # later rounds meet records that repair themselves
        fast(tree, *slots)
        undo = change(model)
        try:
            assert tree.explain(slots) is not None
            assert tree.check(slots) is None
            assert tree.check(slots) is None
        finally:
            undo()
        assert tree.check(slots) is not None
        assert [id(p) for p in tree.check(slots)] == [id(p) for p in model.parameters()]


@pytest.mark.parametrize("root", ROOTS)
def test_replaced_parameter_is_captured(root):
    model = net()
    tree = module_tree(model, root=root)
    for _ in range(5):
        fast(tree, *args(model, root))
        model[0].weight = nn.Parameter(torch.ones(3, 2))
        gc.collect()
        assert tree.check(args(model, root))[0] is model[0].weight
        model[0]._parameters = dict(model[0]._parameters)
        assert tree.check(args(model, root))[0] is model[0].weight
        model[0].__dict__ = dict(model[0].__dict__)
        assert tree.check(args(model, root))[0] is model[0].weight


def test_train_eval_does_not_stay_slow():
    model = net()
    tree = module_tree(model, root="const")
    for _ in range(30):
        tree.check(())
        model.eval()
        model.train()
    before = tree.full_checks
    for _ in range(20):
        model.eval()
        model.train()
        assert tree.check(()) is not None
    assert tree.full_checks == before  # repaired in place


def test_a_store_of_what_is_there_already_changes_nothing():
    model = net()
    tree = fast(module_tree(model, root="const"))
    before = tree.full_checks
    for layer in model.modules():
        object.__setattr__(layer, "training", layer.training)
        vars(layer)["training"] = layer.training
        assert tree.check(()) is not None
    assert tree.full_checks == before


def test_busy_globals_do_not_force_full_checks():
    module = types.ModuleType("busy")
    exec(
        "scale = 2.0; flag = True; name = 'x'; size = (1, 2); counter = 0; table = {'k': 1}\n"
        "def helper(): pass",
        module.__dict__,
    )
    tree = Tree()
    root = tree.node(-1, "const", module.__dict__)
    tree.node(root, "item", "scale", ("equals", 2.0))
    tree.node(root, "item", "flag", ("equals", True))
    tree.node(root, "item", "name", ("equals", "x"))
    tree.node(root, "item", "size", ("equals", (1, 2)))
    tree.node(root, "item", "missing", ("absent",))
    tree.node(root, "item", "helper", ("function", module.helper.__code__))
    tree.node(tree.node(root, "item", "table"), "item", "k", ("equals", 1), capture=True)
    built = tree.build()
    for i in range(10):
        module.counter = i
        assert built.check(()) == (1,)
    before = built.full_checks
    for i in range(50):
        module.counter = i
        module.scale = float("2." + "0" * (i % 5))  # equal, another object
        assert built.check(()) == (1,)
    assert built.full_checks == before
    for name, value in [
        ("scale", 3.0),
        ("flag", False),
        ("missing", 0),
        ("helper", lambda: 1),
        ("table", {}),
        ("table", {"k": 2}),
        ("size", [1, 2]),
    ]:
        old = module.__dict__.get(name, holds)
        setattr(module, name, value)
        assert built.check(()) is None, name
        delattr(module, name) if old is holds else setattr(module, name, old)
        assert built.check(()) == (1,)
    module.table["k"] = 5
    assert built.check(()) is None
    module.table = {"k": 1}
    assert built.check(()) == (1,)


@pytest.mark.parametrize("value", [3, "s", (1,), [1], {"a": 1}, None, types.SimpleNamespace(x=1)])
def test_captured_global_of_a_watched_dict_is_current(value):
    holder = {"v": value, "other": 0}
    tree = Tree()
    tree.node(tree.node(-1, "const", holder), "item", "v", capture=True)
    built = tree.build()
    for i in range(6):
        assert built.check(())[0] is holder["v"]
        holder["other"] = i + 1000
        assert built.check(())[0] is holder["v"]
        holder["v"] = type(value)(value) if isinstance(value, (list, dict)) else [i]
        assert built.check(())[0] is holder["v"]
        holder["v"] = value


def test_list_items():
    layers = [types.SimpleNamespace(k=i) for i in range(3)]
    tree = Tree()
    root = tree.node(-1, "const", layers, ("len", 3))
    for i in range(3):
        d = tree.node(tree.node(root, "index", i, ("type", types.SimpleNamespace)), "dict")
        tree.node(d, "item", "k", ("equals", i), capture=True)
    built = fast(tree.build())
    layers[1] = types.SimpleNamespace(k=5)
    assert built.check(()) is None
    layers[1] = types.SimpleNamespace(k=1)
    assert built.check(()) == (0, 1, 2)
    layers.append(1)
    assert built.check(()) is None
    layers.pop()
    assert built.check(()) == (0, 1, 2)
    layers[0], layers[2] = layers[2], layers[0]
    assert built.check(()) is None


def test_cell_contents():
    class Model:
        pass

    model = Model()
    model.k = 1

    def f():
        return model

    tree = Tree()
    cells = f.__closure__
    closure = tree.node(tree.node(-1, "const", f), "attr", "__closure__")
    contents = tree.node(tree.node(closure, "index", 0), "cell", None, ("type", Model))
    tree.node(tree.node(contents, "dict"), "item", "k", ("equals", 1), capture=True)
    built = fast(tree.build())
    model = Model()
    gc.collect()
    assert built.check(()) is None
    model.k = 1
    assert built.check(()) == (1,)
    cells[0].cell_contents = None
    assert built.check(()) is None
    del cells[0].cell_contents
    assert built.check(()) is None


def test_class_attribute_and_bases():
    class Base:
        a = 1

    class Mixin:
        pass

    class C(Base):
        pass

    tree = Tree()
    t = tree.node(tree.node(-1, "slot", 0), "type")
    tree.node(t, "type_attr", "a", ("equals", 1))
    tree.node(t, "type_attr", "b", ("absent",))
    tree.node(tree.node(t, "dict"), "item", "a", ("absent",))
    built = fast(tree.build(), C())
    thing = C()
    fast(built, thing)
    for target, name in [(C, "a"), (Base, "b"), (C, "b")]:
        setattr(target, name, 2)
        assert built.check((thing,)) is None
        delattr(target, name)
        assert built.check((thing,)) is not None
    Mixin.a = 3
    C.__bases__ = (Mixin, Base)
    assert built.check((thing,)) is None
    del Mixin.a
    assert built.check((thing,)) is not None


def test_slot_roots_alternate_without_full_checks():
    layers = [nn.Linear(2, 2) for _ in range(12)]
    tree = module_tree(layers[0])
    for _ in range(3):
        for layer in layers:
            assert tree.check((layer,))[0] is layer.weight
    before = tree.full_checks
    for layer in layers * 3:
        assert tree.check((layer,))[0] is layer.weight
    assert tree.full_checks == before
    layers[5].training = False
    assert tree.check((layers[5],)) is None and tree.check((layers[6],)) is not None


def test_many_short_lived_roots():
    tree = module_tree(nn.Linear(2, 2))
    for i in range(300):
        layer = nn.Linear(2, 2)
        if i % 7 == 0:
            layer.eval()
        result = tree.check((layer,))
        assert (result is None) == (i % 7 == 0)
        assert result is None or (result[0] is layer.weight and result[1] is layer.bias)
        assert tree.record_count <= 16


def test_address_reuse_of_a_root():
    """A new object at the address of the dead root must not be taken for it."""

    class Thing:
        pass

    tree = single([("dict", None), ("item", "k")], ("equals", 1))
    seen = set()
    for i in range(200):
        thing = Thing()
        thing.k = i % 2
        seen.add(id(thing))
        assert (tree.check((thing,)) is not None) == (i % 2 == 1)
        del thing
    assert SANITIZED or len(seen) < 100  # addresses were reused, or the test shows nothing


def test_nothing_is_kept_alive():
    model = net()
    references = [weakref.ref(m) for m in model.modules()] + [
        weakref.ref(p) for p in model.parameters()
    ]
    tree = module_tree(model, root="slot")
    fast(tree, model)
    big = torch.zeros(3)
    listed = single([("index", 0)])
    fast(listed, [big])
    reference = weakref.ref(big)
    del model, big
    gc.collect()
    assert [r() for r in references] == [None] * len(references)
    assert reference() is None
    assert tree.check((nn.Linear(1, 1),)) is None


def test_fresh_containers_of_tensors():
    tree = Tree()
    root = tree.node(-1, "slot", 0, ("type", dict), ("keys", ("a", "b")))
    a = tree.node(root, "item", "a", ("tensor", torch.zeros(2), 0), capture=True)
    pair = tree.node(root, "item", "b", ("type", tuple), ("len", 2))
    tree.node(pair, "index", 0, ("tensor", torch.zeros(2), 0), ("distinct", (a,)), capture=True)
    tree.node(pair, "index", 1, ("same", a))
    built = tree.build()
    for _ in range(3):
        x, y = torch.zeros(2), torch.ones(2)
        result = built.check(({"a": x, "b": (y, x)},))
        assert result[0] is x and result[1] is y
    assert built.full_checks == 1  # the containers are new each time, and still no full check
    assert built.check(({"a": x, "b": (y, y)},)) is None
    assert built.check(({"a": x, "b": (x, x)},)) is None
    assert built.check(({"b": (y, x), "a": x},)) is None
    assert built.check(({"a": x, "b": [y, x]},)) is None


def test_a_relation_compares_the_objects_of_this_call():
    """One side of it has children, so its object is pinned; another pair is as good."""

    class Thing:
        pass

    tree = Tree()
    first = tree.node(-1, "slot", 0)
    second = tree.node(-1, "slot", 1, ("same", first))
    attributes = tree.node(second, "dict", None)
    tree.node(attributes, "item", "k", ("equals", 1))
    built = tree.build()
    for _ in range(3):
        thing, other = Thing(), Thing()
        thing.k = other.k = 1
        assert built.check((thing, thing)) is not None
        assert built.check((thing, thing)) is not None
        assert built.check((thing, other)) is None


def test_late_steps_see_every_call():
    class Model:
        def __init__(self):
            self.k = 1
            self.items = [1, 2]

        @property
        def p(self):
            return types.SimpleNamespace(v=self.k)

    model = Model()
    tree = Tree()
    root = tree.node(-1, "const", model)
    d = tree.node(root, "dict")
    items = tree.node(d, "item", "items", ("equals", [1, 2]), capture=True)
    p = tree.node(root, "attr", "p", ("type", types.SimpleNamespace))
    tree.node(tree.node(p, "dict"), "item", "v", ("equals", 1), capture=True)
    tree.node(root, "call", lambda m: m.items, ("same", items))
    built = fast(tree.build())
    model.items.append(3)
    assert built.check(()) is None
    model.items.pop()
    assert built.check(()) == ([1, 2], 1)
    model.k = 2
    assert built.check(()) is None
    model.k = 1
    assert built.check(())[0] is model.items


def test_python_code_in_a_check_changes_the_world():
    """A guard that frees what later guards were about to follow."""
    holder = types.SimpleNamespace(inner=types.SimpleNamespace(v=1))
    switch = [False]

    def meddle(value):
        if switch[0]:
            holder.inner = types.SimpleNamespace(v=7)
            gc.collect()
        return True

    tree = Tree()
    d = tree.node(tree.node(-1, "const", holder), "dict")
    meddled = tree.node(d, "item", "inner")
    tree.node(meddled, "call", meddle, ("bool", True))
    inner = tree.node(meddled, "dict")
    tree.node(inner, "item", "v", ("present",), capture=True)
    built = tree.build()
    for _ in range(5):
        switch[0] = False
        holder.inner = types.SimpleNamespace(v=1)
        fast(built)
        switch[0] = True
        built.check(())
        built.check(())


def test_reentrant_check():
    tree_box = []
    depth = []

    def again(value):
        if len(depth) < 3:
            depth.append(1)
            tree_box[0].check((value,))
            depth.pop()
        return True

    tree_box.append(single([("call", again)], ("bool", True)))
    for _ in range(5):
        assert tree_box[0].check(([],)) is not None


def test_ordered_dict_order():
    ordered = collections.OrderedDict(a=1, b=2)
    tree = Tree()
    tree.node(-1, "const", ordered, ("keys", ("a", "b")))
    built = tree.build()
    fast(built)
    ordered.move_to_end("a")
    assert built.check(()) is None
    ordered.move_to_end("b")
    assert built.check(()) is not None


def test_garbage_collection_of_cycles():
    class Holder:
        pass

    holder = Holder()
    tree = GuardTree(
        [
            (-1, "const", holder, [("equals", holder)], -1),
            (0, "dict", None, [], -1),
            (1, "item", "x", [], 0),
        ]
    )
    holder.x = tree
    assert tree.check(()) is not None
    reference = weakref.ref(holder)
    del holder, tree
    gc.collect()
    assert reference() is None


def test_threads():
    model = net()
    tree = module_tree(model)
    stop, errors = threading.Event(), []

    def work():
        while not stop.is_set():
            result = tree.check((model,))
            if result is not None and len(result) != 6:
                errors.append(result)

    threads = [threading.Thread(target=work) for _ in range(3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for t in threads:
            t.start()
        for i in range(400):
            model[0].weight = nn.Parameter(torch.zeros(3, 2))
            model.eval()
            model.train()
            model[1] = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout())
    finally:
        stop.set()
        for t in threads:
            t.join()
        sys.setswitchinterval(interval)
    assert not errors and tree.check((model,)) is not None


# ---- differential: random changes, record against value ----


class Thing:
    k = 0


class Other(Thing):
    pass


def random_value(rng, depth):
    kinds = ["int", "float", "str", "none", "tensor"]
    if depth:
        kinds += ["list", "tuple", "dict", "thing", "odict"] * 2
    kind = rng.choice(kinds)
    if kind == "list":
        return [random_value(rng, depth - 1) for _ in range(rng.randrange(3))]
    if kind == "tuple":
        return tuple(random_value(rng, depth - 1) for _ in range(rng.randrange(3)))
    if kind == "dict":
        return {k: random_value(rng, depth - 1) for k in rng.sample("abc", rng.randrange(4))}
    if kind == "odict":
        return collections.OrderedDict(
            (k, random_value(rng, depth - 1)) for k in rng.sample("abc", rng.randrange(4))
        )
    if kind == "thing":
        thing = rng.choice([Thing, Other])()
        for k in rng.sample("abc", rng.randrange(4)):
            setattr(thing, k, random_value(rng, depth - 1))
        return thing
    return {
        "int": lambda: rng.randrange(300, 303),
        "float": lambda: rng.choice([0.0, -0.0, 1.5]),
        "str": lambda: rng.choice("xyz") * 3,
        "none": lambda: None,
        "tensor": lambda: torch.zeros(rng.randrange(1, 3)),
    }[kind]()


def describe(tree, parent, value, rng, accessor, key):
    """Adds nodes and checks that hold for `value` now."""
    node = tree.node(
        parent,
        accessor,
        key,
        *([("type", type(value))] if rng.random() < 0.7 else []),
        capture=rng.random() < 0.3,
    )
    checks = tree.nodes[node][3]
    if isinstance(value, torch.Tensor):
        checks.append(("tensor", value, 0))
    elif isinstance(value, (int, float, str, type(None))):
        if rng.random() < 0.7:
            checks.append(("equals", value))
    elif isinstance(value, (list, tuple)):
        checks.append(("len", len(value)))
        for i, item in enumerate(value):
            describe(tree, node, item, rng, "index", i)
    elif isinstance(value, dict):
        if rng.random() < 0.5:
            checks.append(("keys", tuple(value)))
        for k, item in value.items():
            describe(tree, node, item, rng, "item", k)
        if "c" not in value:
            tree.node(node, "item", "c", ("absent",))
    elif isinstance(value, Thing):
        d = tree.node(node, "dict")
        for k, item in vars(value).items():
            describe(tree, d, item, rng, "item", k)
        t = tree.node(node, "type")
        tree.node(t, "type_attr", "k", ("equals", 0))


def containers(value, found):
    if isinstance(value, (list, dict, Thing)):
        found.append(value)
    children = (
        value
        if isinstance(value, (list, tuple))
        else value.values()
        if isinstance(value, dict)
        else vars(value).values()
        if isinstance(value, Thing)
        else ()
    )
    for child in children:
        containers(child, found)
    return found


def mutate(value, rng):
    """Changes one thing; returns how to undo it."""
    target = rng.choice(containers(value, []))
    if isinstance(target, list):
        if target and rng.random() < 0.6:
            i = rng.randrange(len(target))
            old = target[i]
            target[i] = random_value(rng, 1)
            return lambda: target.__setitem__(i, old)
        target.append(1)
        return target.pop
    if isinstance(target, Thing):
        choice = rng.random()
        if choice < 0.2:
            old = target.__class__
            target.__class__ = Other if old is Thing else Thing
            return lambda: setattr(target, "__class__", old)
        if choice < 0.4:
            old = target.__dict__
            target.__dict__ = dict(old)
            return (
                (lambda: setattr(target, "__dict__", old)) if rng.random() < 0.5 else (lambda: None)
            )
        if choice < 0.5:
            cls = rng.choice([Thing, Other])
            cls.k = 1
            return lambda: setattr(cls, "k", 0)
        target = target.__dict__
    key = rng.choice("abcd")
    missing = object()
    old = target.get(key, missing)
    items = list(target.items())
    if old is not missing and rng.random() < 0.3:
        del target[key]
    else:
        target[key] = random_value(rng, 1)

    def undo():
        target.clear()
        target.update(items)

    return undo


@pytest.mark.parametrize("seed", range(60))
def test_random_changes(seed):
    rng = random.Random(seed)
    root = Thing()
    for k in "abc":
        setattr(root, k, random_value(rng, 3))
    tree = Tree()
    describe(tree, -1, root, rng, *(("const", root) if seed % 2 else ("slot", 0)))
    built = tree.build()
    slots = () if seed % 2 else (root,)

    def agree():
        reference = GuardTree(list(tree.nodes)).check(slots)
        for _ in range(2):
            result = built.check(slots)
            assert (result is None) == (reference is None), (built.explain(slots), result)
            if result is not None:
                assert all(a is b for a, b in zip(result, reference))
        return reference is not None

    assert agree()
    passed = 0
    for _ in range(120):
        undo = [mutate(root, rng) for _ in range(rng.choice([1, 1, 2]))]
        agree()
        for step in reversed(undo):
            step()
        passed += agree()
    assert passed > 3


# ---- what only one mechanism protects ----


def closure_with(value):
    def f():
        return value

    return f


@pytest.mark.parametrize("watched", [False, True])
def test_address_reuse_of_a_function(watched):
    """A closure is read once per pinned function, so another function there must be noticed."""
    tree = Tree()
    holder = {}
    if watched:
        root = tree.node(tree.node(-1, "const", holder), "item", "f")
    else:
        root = tree.node(-1, "slot", 0)
    cell = tree.node(tree.node(root, "attr", "__closure__"), "index", 0)
    tree.node(cell, "cell", None, capture=True)
    built = tree.build()
    addresses, kept = set(), []
    for i in range(300):
        function = closure_with(i)
        addresses.add(id(function))
        kept.append(function.__closure__)  # what is followed by mistake is alive and wrong
        holder["f"] = function
        slots = () if watched else (function,)
        for _ in range(3):
            holder["other"] = i
            assert built.check(slots) == (i,)
        holder["f"] = None
        del function, slots
    assert SANITIZED or len(addresses) < 100


def test_class_of_a_pinned_instance():
    class Other(nn.Linear):
        pass

    layer = nn.Linear(1, 1)
    holder = types.SimpleNamespace(layer=layer)
    tree = Tree()
    d = tree.node(tree.node(-1, "const", holder), "dict")
    tree.node(d, "item", "layer", ("type", nn.Linear))
    built = fast(tree.build())
    layer.__class__ = Other
    assert built.check(()) is None
    layer.__class__ = nn.Linear
    assert built.check(()) is not None


def test_class_of_a_module():
    module = types.ModuleType("m")

    class Special(types.ModuleType):
        pass

    built = fast(GuardTree([(-1, "const", module, [("type", types.ModuleType)], -1)]))
    module.__class__ = Special
    assert built.check(()) is None


def test_cell_contents_while_the_old_lives():
    thing = types.SimpleNamespace(k=1)
    f = closure_with(thing)
    tree = Tree()
    closure = tree.node(tree.node(-1, "const", f), "attr", "__closure__")
    contents = tree.node(tree.node(closure, "index", 0), "cell")
    tree.node(tree.node(contents, "dict"), "item", "k", ("equals", 1), capture=True)
    built = fast(tree.build())
    f.__closure__[0].cell_contents = types.SimpleNamespace(k=2)
    assert built.check(()) is None and thing.k == 1
    f.__closure__[0].cell_contents = thing
    assert built.check(()) == (1,)


def test_world_changes_between_check_and_record():
    first, second = types.SimpleNamespace(v=1), types.SimpleNamespace(v=7)
    holder = types.SimpleNamespace(inner=first)
    tree = Tree()
    d = tree.node(tree.node(-1, "const", holder), "dict")
    inner = tree.node(tree.node(d, "item", "inner"), "dict")
    tree.node(inner, "item", "v", ("equals", 1), capture=True)
    tree.node(tree.node(-1, "slot", 0), "call", lambda change: change() is None, ("bool", True))
    built = tree.build()
    assert built.check((lambda: setattr(holder, "inner", second),)) == (1,)
    assert built.check((lambda: None,)) is None
    holder.inner = first
    assert built.check((lambda: None,)) == (1,)
