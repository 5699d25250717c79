"""Small builders for the tests of the native room."""

import gc
import os

import torch

from framejit.native import CompiledFunction, Entry, GlobalState, GuardTree

#: Under AddressSanitizer, which holds back freed memory: addresses are not used again.
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")

# dict access of an nn.Module's emptiness-guarded hooks
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Tree:
    """Collects nodes; `node` returns the index."""

    def __init__(self):
        self.nodes = []
        self.captures = 0

    def node(self, parent, accessor, key=None, *checks, capture=False):
        index = -1
        if capture:
            index, self.captures = self.captures, self.captures + 1
        self.nodes.append((parent, accessor, key, list(checks), index))
        return len(self.nodes) - 1

    def build(self, state=None):
        return GuardTree(list(self.nodes), state)


def module_tree(module, *, root="slot"):
    tree = Tree()

    def walk(mod, node):
        d = tree.node(node, "dict")
        tree.node(d, "item", "training", ("equals", mod.training))
        tree.node(d, "item", "forward", ("absent",))
        for hook in HOOKS:
            tree.node(d, "item", hook, ("len", 0))
        p = tree.node(d, "item", "_parameters", ("keys", tuple(mod._parameters)))
        for name, value in mod._parameters.items():
            if value is not None:
                tree.node(p, "item", name, ("tensor", value, 0), capture=True)
        m = tree.node(d, "item", "_modules", ("keys", tuple(mod._modules)))
        for name, value in mod._modules.items():
            walk(value, tree.node(m, "item", name, ("type", type(value))))
        t = tree.node(node, "type")
        tree.node(t, "type_attr", "forward", ("function", type(mod).forward.__code__))

    walk(module, tree.node(-1, root, 0 if root == "slot" else module, ("type", type(module))))
    return tree.build()


def single(accessor_chain, *checks, capture=True):
    """A tree of one path: slot 0, then each (accessor, key)."""
    tree = Tree()
    node = tree.node(
        -1,
        "slot",
        0,
        *(checks if not accessor_chain else ()),
        capture=capture and not accessor_chain,
    )
    for i, (accessor, key) in enumerate(accessor_chain):
        last = i == len(accessor_chain) - 1
        node = tree.node(node, accessor, key, *(checks if last else ()), capture=capture and last)
    return tree.build()


def holds(tree, *slots):
    """Checks three times, so that the record of the first check is used; all must agree."""
    results = [tree.check(slots) for _ in range(3)]
    by_value = tree.explain(slots) is None
    for result in results:
        assert (result is not None) == by_value, (results, tree.explain(slots))
    if results[0] is not None:
        for result in results[1:]:
            assert all(a is b for a, b in zip(results[0], result))
    return by_value


def compiled_of(function, result, *, slots, checks=(), context=None, miss=None):
    """A CompiledFunction with one entry that accepts everything and runs `result`."""
    compiled = CompiledFunction(function, miss, context=context)
    tree = GuardTree([(-1, "slot", i, [], -1) for i in range(slots)])
    compiled.add_entry(Entry(tree, result))
    return compiled


def resident_kib():
    gc.collect()
    if SANITIZED:
        return 0
    with open(f"/proc/{os.getpid()}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


__all__ = [
    "GlobalState",
    "GuardTree",
    "SANITIZED",
    "Tree",
    "compiled_of",
    "holds",
    "module_tree",
    "resident_kib",
    "single",
    "torch",
]
