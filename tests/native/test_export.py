"""Guard trees and global states taken apart and put together again are the same."""

import gc
import operator

import pytest
import torch

from framejit.native import GlobalState, GuardTree

f = lambda x: x + 1  # noqa: E731


class Thing:
    pass


THING = Thing()

#: check, value that passes, value that does not.
CHECKS = [
    (("type", int), 1, 1.0),
    (("id", THING), THING, Thing()),
    (("equals", (1, "a")), (1, "a"), (1, "b")),
    (("len", 2), [1, 2], [1]),
    (("keys", ("a", "b")), {"a": 1, "b": 2}, {"b": 1, "a": 2}),
    (("present",), 1, None),
    (("function", f.__code__), f, lambda x: x),
    (("bool", 1), [1], []),
    (("tensor", torch.ones(2, 3)), torch.zeros(2, 3), torch.zeros(3, 2)),
    (("tensor", torch.ones(2, 3)), torch.zeros(2, 3), torch.zeros(3, 2).t()),
    (("tensor", torch.ones(2, 3)), torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.int64)),
    (("tensor", torch.ones(2, 3)), torch.zeros(2, 3), torch.zeros(2, 3).requires_grad_()),
    (("tensor", torch.ones(2, 3)), torch.zeros(2, 3), torch.nn.Parameter(torch.zeros(2, 3))),
    (("tensor", torch.ones(2, 3), 1), torch.zeros(5, 3), torch.zeros(5)),
    (("tensor", torch.ones(2, 3), 0, (0,)), torch.zeros(5, 3), torch.zeros(5, 4)),
    (("tensor", torch.ones(2, 3).to_sparse()), torch.ones(2, 3).to_sparse(), torch.ones(2, 3)),
]


def again(tree):
    state = tree.state
    return GuardTree(tree.export(), None if state is None else GlobalState(*state.export()))


@pytest.mark.parametrize(("check", "good", "bad"), CHECKS)
def test_a_check_is_the_same_again(check, good, bad):
    tree = GuardTree([(-1, "slot", 0, [check], 0)])
    for one in (tree, again(tree), again(again(tree))):
        assert one.check((good,)) == (good,) or one.check((good,))[0] is good
        assert bad is None or one.check((bad,)) is None
    assert again(tree).export() == tree.export()


def test_relations_accessors_and_captures_are_the_same_again():
    nodes = [
        (-1, "slot", 0, [], -1),
        (0, "item", "a", [("absent",)], -1),
        (0, "item", "b", [("present",)], 1),
        (-1, "slot", 1, [("same", 2)], -1),
        (-1, "slot", 2, [("distinct", (2, 3))], 0),
        (-1, "const", {"k": 5}, [], -1),
        (5, "item", "k", [("equals", 5)], 2),
        (4, "call", operator.not_, [("id", False)], -1),
    ]
    tree = GuardTree(nodes)
    assert tree.export() == nodes
    shared = [0]
    for one in (tree, again(tree)):
        assert one.check(({"b": shared}, shared, "x")) == ("x", shared, 5)
        assert one.check(({"b": shared}, [0], "x")) is None
        assert one.check(({"b": shared}, shared, shared)) is None
        assert one.check(({"a": 1, "b": shared}, shared, "x")) is None


def test_a_dead_object_is_an_error():
    thing = Thing()
    tree = GuardTree([(-1, "slot", 0, [("id", thing)], -1)])
    del thing
    gc.collect()
    with pytest.raises(LookupError):
        tree.export()


def test_the_global_state_is_the_same_again():
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        state = GlobalState()
    copy = GlobalState(*state.export()[:2])
    assert copy.export() == state.export()
    assert not copy.check()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert copy.check()
    with torch.device("meta"):
        modes = GlobalState()
        assert GlobalState(*modes.export()[:2]).check()
    with torch.device("cpu"):
        assert not GlobalState(*modes.export()[:2]).check()


@pytest.mark.parametrize(("flags", "modes"), [({}, ()), ({"grad": "yes"}, ())])
def test_incomplete_states_are_refused(flags, modes):
    with pytest.raises((KeyError, TypeError)):
        GlobalState(flags, modes)


@pytest.mark.parametrize(
    "metadata", [None, (), (1,) * 12, (0, 6, 0, -1, 0, 0, 1, 0, 1, 2, (1,), ())]
)
def test_malformed_metadata_is_refused(metadata):
    with pytest.raises((TypeError, ValueError)):
        GuardTree([(-1, "slot", 0, [("metadata", torch.Tensor, metadata)], -1)])
