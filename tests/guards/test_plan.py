"""From facts to native checks: order, captures, relations, and what is said about them."""

import gc
import types
import weakref

import pytest
import torch

from framejit.guards import build_plan
from framejit.guards.texts import text_of
from framejit.native import GlobalState, GuardTree
from framejit.source import Source


class Thing:
    pass


def slot(index=0, name="x"):
    return Source(None, "slot", index, f"L[{name!r}]")


def tree_of(plan):
    return GuardTree(plan.nodes)


def test_only_nodes_that_carry_something_become_nodes():
    root = slot()
    root.child("dict").child("item", "a").add_fact("EQUALS_MATCH", 1)
    root.child("dict").child("item", "b").child("index", 0)  # loaded, never relied on
    plan = build_plan([root])
    assert [s.name for s in plan.sources] == ["L['x']", "L['x'].__dict__", "L['x'].a"]
    assert sum(map(len, plan.checked)) == 1
    assert plan.captures == []


def test_nothing_assumed_nothing_checked():
    assert build_plan([slot(), slot(1, "y")]).nodes == []


def test_parents_come_first_and_captures_are_numbered_in_order():
    root = slot()
    for name in ("w", "b"):
        root.child("dict").child("item", name).captured = True
    plan = build_plan([root])
    assert all(parent < i for i, (parent, *_) in enumerate(plan.nodes))
    assert [s.name for s in plan.captures] == ["L['x'].w", "L['x'].b"]
    thing = Thing()
    thing.w, thing.b = "weight", "bias"
    assert tree_of(plan).check((thing,)) == ("weight", "bias")


def test_arguments_are_checked_before_constants():
    constant = Source(None, "const", {"n": 1}, "globals of here")
    constant.child("item", "n").add_fact("EQUALS_MATCH", 1)
    argument = slot()
    argument.add_fact("EQUALS_MATCH", 2)
    plan = build_plan([constant, argument])
    assert plan.sources[0] is argument


FUNCTION = lambda: 1
TENSOR = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("kind", "payload", "good", "bad"),
    [
        ("TYPE_MATCH", Thing, Thing(), 1),
        ("ID_MATCH", FUNCTION, FUNCTION, lambda: 1),
        ("EQUALS_MATCH", (1, "a"), (1, "a"), (1, "b")),
        ("LEN_MATCH", 2, [1, 2], [1]),
        ("DICT_KEYS", ("a", "b"), {"a": 1, "b": 2}, {"b": 1, "a": 2}),
        ("PRESENT", None, 1, None),
        ("FUNCTION_MATCH", FUNCTION.__code__, types.FunctionType(FUNCTION.__code__, {}), print),
        ("TENSOR_MATCH", TENSOR, torch.zeros(2, 3), torch.zeros(2, 4)),
        ("TENSOR_MATCH", (TENSOR, 1), torch.zeros(5, 4), torch.zeros(2, 4, 1)),
        ("BOOL_MATCH", True, [1], []),
    ],
)
def test_every_kind_of_fact_is_checked(kind, payload, good, bad):
    root = slot()
    root.add_fact(kind, payload)
    plan = build_plan([root])
    tree = tree_of(plan)
    assert tree.check((good,)) is not None
    if kind == "PRESENT":
        assert tree.check(()) is None
        return
    assert tree.check((bad,)) is None
    assert tree.explain((bad,)) == (0, 0)
    assert "it was " in plan.explain(tree, (bad,))


def test_absent():
    root = slot()
    root.child("dict").child("item", "hook").add_fact("ABSENT")
    plan = build_plan([root])
    tree, thing = tree_of(plan), Thing()
    assert tree.check((thing,)) == ()
    thing.hook = print
    assert tree.check((thing,)) is None
    assert plan.explain(tree, (thing,)) == (
        "local 'x'.__dict__['hook'] ABSENT: it was not there, now it is function print; "
        "to avoid it, set it before the first call"
    )


@pytest.mark.parametrize("first", [0, 1])
def test_relations_stand_on_the_later_node(first):
    roots = [slot(0, "a"), slot(1, "b")]
    roots[first].add_fact("SAME_OBJECT", roots[1 - first])
    plan = build_plan(roots)
    assert [len(node[3]) for node in plan.nodes] == [0, 1]
    tree, thing = tree_of(plan), Thing()
    assert tree.check((thing, thing)) is not None
    assert tree.check((thing, Thing())) is None
    assert "the same object as local 'a'" in plan.explain(tree, (thing, Thing()))


def test_a_relation_reaches_sources_that_no_root_leads_to():
    a, b = slot(0, "a"), slot(1, "b")
    b.add_fact("DISTINCT", (a, a.child("dict").child("item", "other")))
    plan = build_plan([b])
    tree, thing, other = tree_of(plan), Thing(), Thing()
    thing.other = other
    assert tree.check((thing, Thing())) is not None
    assert tree.check((thing, thing)) is None
    assert tree.check((thing, other)) is None


def test_an_object_related_to_itself_needs_no_check():
    a = slot()
    a.add_fact("SAME_OBJECT", a)
    assert not any(build_plan([a]).checked)


def test_guards_are_printed_in_the_documented_form():
    x, me = slot(0, "a"), slot(1, "self")
    x.add_fact("TENSOR_MATCH", torch.ones(4, 8), (__file__, 1))
    layer = me.child("dict").child("item", "_modules").child("item", "encoder")
    layer.child("dict").child("item", "training").add_fact("ID_MATCH", True)
    weight = layer.child("dict").child("item", "_parameters").child("item", "weight")
    weight.add_fact("TENSOR_MATCH", torch.nn.Parameter(torch.ones(2)))
    layer.child("dict").child("item", "_buffers").child("item", "weight").add_fact("ABSENT")
    names = Source(None, "const", {"torch": torch, "f": FUNCTION}, "globals")
    names.child("item", "torch").add_fact("ID_MATCH", torch)
    names.child("item", "f").add_fact("FUNCTION_MATCH", FUNCTION.__code__)
    others = Source(None, "const", {"f": FUNCTION, "a b": 1}, "globals of package.module")
    others.child("item", "f").add_fact("FUNCTION_MATCH", FUNCTION.__code__)
    others.child("item", "f").child("attr", "__defaults__").add_fact("EQUALS_MATCH", (1,))
    others.child("item", "a b").add_fact("EQUALS_MATCH", 1)
    lines = build_plan([x, me, names, others]).describe()
    assert lines == [
        "local 'a' TENSOR_MATCH Tensor float32[4, 8] on cpu"
        '  # test_plan.py:1: """From facts to native checks: order, captures, relations, '
        'and what is said about them."""',
        "local 'self'.encoder.training EQUALS_MATCH True",
        "local 'self'.encoder.weight TENSOR_MATCH Parameter float32[2] on cpu with requires_grad",
        "local 'self'.encoder._buffers['weight'] ABSENT",
        "global 'torch' MODULE_MATCH",
        "global 'f' FUNCTION_MATCH",
        "global package.module.f FUNCTION_MATCH",
        "global package.module.f.__defaults__ EQUALS_MATCH (1,)",
        "global package.module['a b'] EQUALS_MATCH 1",
    ]


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (torch.ones(5, 8), "it was of size 4 at dimension 0, now it is of size 5"),
        (torch.ones(4, 8, dtype=torch.int64), "it was dtype float32, now it is dtype int64"),
        (torch.ones(4, 8, requires_grad=True), "it was without requires_grad, now it is with "),
        (torch.ones(4), "it was of shape [4, 8], now it is of shape [4]"),
        (torch.ones(8, 4).t(), "it was of strides (8, 1), now it is of strides (1, 4)"),
        (torch.ones(4, 8, device="meta"), "it was device cpu, now it is device meta"),
        (torch.nn.Parameter(torch.ones(4, 8)), "it was a Tensor, now it is a Parameter"),
        (3, "it was Tensor float32[4, 8] on cpu, now it is 3"),
    ],
)
def test_tensor_guards_say_what_differs(now, words):
    root = slot()
    root.add_fact("TENSOR_MATCH", torch.ones(4, 8))
    plan = build_plan([root])
    tree = tree_of(plan)
    plan.settle()
    assert words in plan.explain(tree, (now,))


def test_explanations_name_the_users_line():
    root = slot()
    root.add_fact("EQUALS_MATCH", 2, (__file__, 1))
    plan = build_plan([root])
    text = plan.explain(tree_of(plan), (3,))
    assert text.startswith("local 'x' EQUALS_MATCH: it was 2, now it is 3 (assumed at test_plan")
    assert plan.explain(tree_of(plan), (2,)) == ""


def test_global_state_is_explained_in_words():
    plan = build_plan([slot()])
    plan.state = GlobalState()
    tree = GuardTree(plan.nodes, plan.state)
    with torch.no_grad():
        assert tree.check((1,)) is None
        assert "it was grad mode on, now it is grad mode off" in plan.explain(tree, (1,))


def test_a_missing_captured_value_is_explained():
    root = slot()
    root.child("dict").child("item", "w").captured = True
    plan = build_plan([root])
    assert plan.explain(tree_of(plan), (Thing(),)) == (
        "local 'x'.w: it was there, now it is gone; to avoid it, leave it in place"
    )


def test_a_path_that_broke_is_explained():
    root = slot()
    root.child("index", 3).add_fact("EQUALS_MATCH", 1)
    plan = build_plan([root])
    assert "now it is gone" in plan.explain(tree_of(plan), ([],))


def test_a_settled_plan_keeps_nothing_of_the_user_alive():
    thing, tensor = Thing(), torch.ones(3)
    root = slot()
    root.add_fact("ID_MATCH", thing)
    root.child("dict").child("item", "t").add_fact("TENSOR_MATCH", tensor)
    plan = build_plan([root])
    before = plan.describe()
    tree = tree_of(plan)
    plan.settle()
    assert plan.describe() == before
    gone = weakref.ref(thing), weakref.ref(tensor)
    del thing, tensor
    gc.collect()
    assert [ref() for ref in gone] == [None, None]
    assert "no longer exists" in plan.explain(tree, (Thing(),))


def test_texts_run_no_user_code_and_show_no_addresses():
    class Loud:
        def __repr__(self):
            raise AssertionError("the user's __repr__ ran")

    root = slot()
    root.add_fact("ID_MATCH", Loud())
    plan = build_plan([root])
    text = "\n".join(plan.describe()) + plan.explain(tree_of(plan), (Loud(),))
    assert "0x" not in text and "Loud object" in text


def test_texts_of_sets_are_in_order():
    assert text_of(set(range(12))) == "{0, 1, 10, 11, 2, 3, 4, 5, ...}"
    assert text_of(list(range(12))) == "[0, 1, 2, 3, 4, 5, 6, 7, ...]"
    assert text_of(frozenset("dcba")) == "frozenset({'a', 'b', 'c', 'd'})"
    assert text_of((1,)) == "(1,)"


def shared_by(count):
    """So many lists below one argument, of all of which the very same is assumed."""
    first = slot()
    first.add_fact("TYPE_MATCH", list)
    first.add_fact("LEN_MATCH", 1)
    facts, keys = tuple(first.facts), frozenset(first.fact_keys)
    root = slot()
    sources = [root.child("index", number) for number in range(count)]
    for source in sources:
        source.facts, source.fact_keys = facts, keys
    return root, sources


def test_what_sources_share_is_checked_of_each():
    root, sources = shared_by(3)
    plan = build_plan([root])
    assert len({id(node.checks) for node in plan.nodes if node.checks}) == 1
    tree = tree_of(plan)
    assert tree.check(([[1], [2], [3]],)) == ()
    for number in range(3):
        given = [[1], [2], [3]]
        given[number] = [1, 2]
        assert tree.check((given,)) is None
        assert f"'x'[{number}] LEN_MATCH" in plan.explain(tree, (given,))
    plan.settle()
    assert [guard.kind for guard in plan.guards()] == ["TYPE_MATCH", "LEN_MATCH"] * 3
    assert all(not source.facts for source in sources)


def test_a_further_fact_is_about_one_of_those_that_share():
    root, (first, second, third) = shared_by(3)
    second.child("index", 0).add_fact("EQUALS_MATCH", 2)
    second.add_fact("TYPE_MATCH", list)  # known
    third.add_fact("SAME_OBJECT", first)
    assert (len(first.facts), len(second.facts), len(third.facts)) == (2, 2, 3)
    tree = tree_of(build_plan([root]))
    one = [1]
    assert tree.check(([one, [2], one],)) == ()
    assert tree.check(([one, [3], one],)) is None
    assert tree.check(([[1], [2], one],)) is None
    assert tree.check(([one, one, one],)) is None


def test_a_relation_to_those_that_share_is_a_check_of_one():
    root, (first, second, third) = shared_by(3)
    late = Source(None, "slot", 1, "L['y']")
    late.add_fact("TYPE_MATCH", list)
    late.add_fact("DISTINCT", (second,))
    first.add_fact("DISTINCT", (third,))  # the check is on the later one, which shares its facts
    tree = tree_of(build_plan([root, late]))
    one, two, three = [1], [2], [3]
    assert tree.check(([one, two, three], one)) == ()
    assert tree.check(([one, one, three], two)) == ()
    assert tree.check(([one, two, three], two)) is None
    assert tree.check(([one, two, one], three)) is None
