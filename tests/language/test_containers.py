"""Lists, tuples, dicts, sets and deques in programs: eager and compiled agree.

Each program takes a tensor first; ``fullgraph`` programs must be captured in one graph.
"""

from __future__ import annotations

import collections
import copy
import operator
import types
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
import torch

import framejit
from checking import check, check_between

Point = namedtuple("Point", "x y")


class Key:
    pass


class Config(dict):
    def __getattr__(self, name):
        return self[name]

    def __setitem__(self, key, value):
        super().__setitem__(key, (value, "set"))


class Table(dict):
    def __missing__(self, key):
        self[key] = key * 2
        return self[key]


class Stack(list):
    def push(self, value):
        self.append(value)
        return self


class Node:
    pass


class Box:
    pass


# -- lists -----------------------------------------------------------------------------------------


def list_methods(x):
    out = [x, x + 1]
    out.append(x * 2)
    out.extend([x - 1, 5])
    out.insert(0, "first")
    out.insert(-1, "near the end")
    last = out.pop()
    second = out.pop(1)
    out.reverse()
    return out, last, second, len(out)


def slices_of_lists(x):
    out = [x, 1, 2, 3, 4]
    out[1:3] = [7, 8, 9]
    out[::2] = ["a", "b", "c"]
    del out[0]
    del out[1:2]
    return out, out[::-1], out[-2:], out[10:]


def operators_of_lists(x):
    a = [1, 2]
    b = a
    a += (3,)
    b *= 2
    return a + [x], b is a, [0] * 3, 2 * [x], a == [1, 2, 3, 1, 2, 3], a < [1, 3], [] >= []


def append_to_argument(x, items):
    items.append(x + 1)
    items.append(2)
    return x


def mutate_argument_slices(x, items):
    items[0] = x
    items[1:] = [x, x]
    del items[-1]
    return len(items)


def list_sort(x):
    numbers = [3, 1, 2]
    numbers.sort()
    words = ["banana", "fig", "apple"]
    words.sort(key=len, reverse=True)
    pairs = sorted([(2, "b"), (1, "z"), (2, "a")], key=lambda p: p[0])
    return x * numbers[0], numbers, words, pairs


def sort_tensors_by_key(x):
    tensors = [x.new_ones(3), x.new_ones(1), x.new_ones(2)]
    return sorted(tensors, key=lambda t: t.shape[0]), sorted(tensors, key=len, reverse=True)


def sort_argument(x, items):
    items.sort(key=lambda v: -v)
    return x + items[0]


def list_errors(x):
    caught = []
    for action in (
        lambda: [].pop(),
        lambda: [1][5],
        lambda: [1].index(9),
        lambda: [1].remove(9),
        lambda: [1]["a".lower()],
        lambda: [1] + (2,),
        lambda: [1, "a"].sort(),
        lambda: ().index(1),
    ):
        try:
            action()
        except (IndexError, ValueError, TypeError) as error:
            caught.append((type(error).__name__, str(error)))
    return x, caught


def aliases_of_lists(x):
    inner = [x]
    outer = [inner, inner]
    outer[0].append(x + 1)
    return outer


def return_argument_list(x, items):
    items.append(x)
    return items, items[0]


def nested_arguments(x, tree):
    tree["a"][0]["b"] = x
    tree["a"].append({"c": [x, x]})
    return tree["a"][1]


def list_comprehension(x):
    return [x + i for i in range(4) if i % 2], {i: x for i in range(2)}, {i for i in range(3)}


def unpacking_into_names(x):
    a, *b, c = [1, x, 2, x, 3]
    (d, e), f = (x, 1), 2
    return a, b, c, d, e, f, [*b, *range(2)], (*b, 1), {**{"a": x}, "b": 2}


def unpack_errors(x):
    out = []
    for items in ([1], [1, 2, 3]):
        try:
            a, b = items
        except ValueError as error:
            out.append(str(error))
    return x, out


def membership_in_containers(x):
    items = [1, "a", None]
    return x + (1 in items), "b" in items, None not in items, (1, 2) in [(1, 2)]


def tensor_in_a_list_by_identity(x):
    y = x + 1
    return y in [y], [y].index(y), [y, x].count("a") if False else 0


def copies_of_lists(x):
    a = [[x], 2]
    b, c, d = a.copy(), copy.copy(a), list(a)
    b.append(1)
    return a, b, c, d, b[0] is a[0]


def list_of_argument(x, items):
    copied = list(items)
    copied.append(x)
    return copied, len(items)


def clear_and_refill(x, items):
    items.clear()
    items.extend(x for _ in range(2))
    return items


# -- tuples ----------------------------------------------------------------------------------------


def methods_of_tuples(x):
    t = (x, 1, "a")
    return t + (2,), t[1:], t * 2, t[1:].index(1), t[1:].count("a"), len(t), (1, 2) < (1, 3), t == t


def named_tuples(x):
    p = Point(x, y=2)
    q = p._replace(y=x + 1)
    a, b = q
    return p, q, a, b, p.x + p.y, p[0], p._fields, q._asdict(), isinstance(p, tuple), len(p)


def shapes_as_tuples(x):
    shape = x.shape
    rows, cols = shape
    return shape, shape[0], shape[1:], shape + (1,), rows * cols, tuple(shape), shape.numel()


def struct_sequence(x):
    result = torch.max(x, 1)
    values, indices = result
    return result.values, result.indices, result[0], values, indices


def tuple_as_key(x):
    table = {(1, "a"): x, (2, "b"): x + 1}
    return table[(1, "a")], (2, "b") in table, (3, "c") in table


# -- dicts -----------------------------------------------------------------------------------------


def dict_methods(x):
    d = {"a": x, "b": 1}
    d["c"] = 2
    d.update(b=5, e=6)
    d.update({"f": 7})
    d.setdefault("a", 9)
    d.setdefault("g", x)
    popped = d.pop("c"), d.pop("zzz", None)
    del d["e"]
    return d, popped, d.get("a"), d.get("q"), d.get("q", 3), len(d), "a" in d, "q" in d


def dict_views(x):
    d = {"a": x, "b": 2}
    keys, values, items = d.keys(), d.values(), d.items()
    d["c"] = 3
    return list(keys), list(values), list(items), len(keys), "c" in keys, d.keys() & {"a", "z"}


def dict_order(x):
    d = {"a": 1, "b": 2, "c": 3}
    d["a"] = 10
    del d["b"]
    d["b"] = 20
    return list(d), list(reversed(d)), d.popitem(), {**d, "a": x}, d | {"z": 1}


def mutate_argument_dict(x, d):
    d["new"] = x
    d["old"] = x + 1
    del d["gone"]
    return len(d)


def delete_and_store_argument(x, d):
    value = d.pop("a")
    d["a"] = value
    return list(d), x


def read_argument_dict(x, d):
    return x * d["scale"], "bias" in d, d.get("missing", 4), bool(d)


def iterate_argument_dict(x, d):
    total = x
    for key, value in d.items():
        total = total + value
    return total, list(d), max(d, key=d.get)


def keys_of_all_kinds(x):
    d = {1: "int", "1": "str", (1, 2): "tuple", None: "none", 2.5: "float", int: "class"}
    d[True] = "bool"
    d[1.0] = "float one"
    return x, d[1], list(d), d[int], d[None], len(d)


def object_keys(x):
    a, b = Key(), Key()
    d = {a: 1, b: 2}
    return x, d[a], d[b], a in d, Key() in d


def function_keys(x):
    table = {torch.relu: "relu", len: "len", object_keys: "function"}
    return x, table[torch.relu], table[len], table[object_keys]


def key_errors(x):
    out = []
    for action in (lambda: {}["a"], lambda: {}.pop("b"), lambda: {}.popitem(), lambda: {[]: 1}):
        try:
            action()
        except (KeyError, TypeError) as error:
            out.append((type(error).__name__, str(error)))
    return x, out


def changed_while_iterating(x):
    d = {"a": 1, "b": 2}
    try:
        for key in d:
            d[key + "!"] = 1
    except RuntimeError as error:
        return x, str(error), d
    return None


def ordered_dicts(x):
    d = OrderedDict([("a", x), ("b", 2), ("c", 3)])
    d.move_to_end("a")
    d.move_to_end("c", last=False)
    return d, list(d), d.popitem(last=False), d == OrderedDict(b=2, a=x), isinstance(d, dict)


def defaultdicts(x):
    d = defaultdict(list)
    d["a"].append(x)
    d["b"].append(1)
    d["a"].append(2)
    counts = defaultdict(int)
    for letter in "hello":
        counts[letter] += 1
    return dict(d), dict(counts), d.get("zzz"), len(d)


def counters_of_elements(x):
    c = collections.Counter("abracadabra")
    return x + c["a"], c["z"], c.most_common(2), sum(c.values())


def dict_fromkeys(x):
    return dict.fromkeys("ab", x), dict.fromkeys([1, 2]), OrderedDict.fromkeys("ba")


def defaultdict_argument(x, d):
    d["seen"].append(x)
    d["new"].append(1)
    return len(d)


def ordered_dict_argument(x, d):
    d["new"] = x
    d.move_to_end("a")
    return list(d)


def dict_comparison(x):
    return x, {"a": 1} == {"a": 1}, {"a": 1} != {"b": 1}, {"a": [1]} == {"a": [1]}, {} == []


def mapping_proxies(x):
    d = {"a": 1}
    proxy = types.MappingProxyType(d)
    d["b"] = 2
    return x * proxy["a"], "b" in proxy, list(proxy), len(proxy)


def keyword_arguments_as_dicts(x):
    def inner(*args, **kwargs):
        kwargs["extra"] = len(args)
        return args, kwargs

    options = {"a": x, "b": 2}
    result = inner(1, *[2, 3], **options)
    return result, options


def dict_subclass(x):
    c = Config(a=x)
    c["b"] = 2
    return c.a, c.b, dict(c), len(c), list(c.items())


def missing_hook_of_a_dict(x):
    t = Table()
    return t["ab"] + t["ab"], dict(t), x


def list_subclass(x):
    s = Stack([1]).push(x).push(2)
    return s, len(s), s[-1], isinstance(s, list), type(s).__name__


# -- sets ------------------------------------------------------------------------------------------


def sets_and_their_operators(x):
    s = {1, 2, 3}
    s.add(4)
    s.discard(9)
    s.remove(1)
    t = set([3, 4, 5])
    return s, s | t, s & t, s - t, s ^ t, 3 in s, len(s), s <= t, s.isdisjoint({7}), sorted(s), x


def set_updates(x):
    s = {"a"}
    s |= {"b", "c"}
    s -= {"a"}
    s.update("de", ["f"])
    s.intersection_update({"b", "d", "e"})
    return x, sorted(s), s == {"b", "d", "e"}, s.union([1]) >= {1}


def set_order(x):
    s = {5, 1, 100, 33}
    s.add(17)
    s.discard(1)
    return x, list(s), [v * 2 for v in s], max(s)


def frozensets(x):
    f = frozenset([1, 2])
    return x, f, {f: "key"}[frozenset([2, 1])], f | {3}, 1 in f, hash(f) == hash(frozenset({2, 1}))


def argument_set(x, s):
    s.add(9)
    s.discard(1)
    return x, 2 in s, len(s)


def set_errors(x):
    out = []
    for action in (lambda: {1}.remove(2), lambda: set().pop(), lambda: {1} | [2], lambda: {[]}):
        try:
            action()
        except (KeyError, TypeError) as error:
            out.append((type(error).__name__, str(error)))
    return x, out


def identity_sets(x):
    a, b = Node(), Node()
    seen = set()
    for node in (a, b, a):
        if node not in seen:
            seen.add(node)
    return x, len(seen), a in seen


def set_of_views(x):
    a, b = {"x": 1, "y": 2}, {"y": 3, "z": 4}
    return x, a.keys() & b.keys(), a.keys() - b.keys(), a.keys() <= {"x", "y", "w"}, set(a) ^ set(b)


# -- deques ----------------------------------------------------------------------------------------


def methods_of_deques(x):
    d = deque([1, 2, 3], maxlen=3)
    d.append(4)
    d.appendleft(0)
    d.rotate(1)
    d.extend([7])
    return x, d, d.popleft(), d.pop(), len(d), d[0], d.maxlen, list(d)


def deque_argument(x, d):
    d.append(x)
    d.popleft()
    return d[-1], len(d)


# -- more ------------------------------------------------------------------------------------------


def tree_that_is_built(x):
    return {"a": [x, (x + 1, {"b": x * 2})], "c": ({"d": [x]},)}


def deep_copies(x):
    config = {"sizes": [1, 2], "names": ("a", "b"), "nested": {"k": {1, 2}}}
    other = copy.deepcopy(config)
    other["sizes"].append(3)
    return x, config, other


def swap_arguments(x, a, b):
    a[0], b[0] = b[0], a[0]
    a.append(b)
    return x


def same_list_twice(x, a, b):
    a.append(x)
    return len(b), a is b


def delete_attribute_of_a_box(x):
    box = Box()
    box.a = x
    box.__dict__["b"] = 2
    del box.__dict__["a"]
    return box.b, "a" in box.__dict__, list(vars(box)), hasattr(box, "a")


def string_building(x):
    parts = []
    for name, value in {"rows": x.shape[0], "cols": x.shape[1]}.items():
        parts.append(f"{name}={value}")
    return x, ", ".join(parts), "%s-%d" % ("a", 3), "{:>5}|{b}".format("x", b=[1])


def dict_update_from_pairs(x):
    d = dict([("a", 1)], b=x)
    d.update(zip("cd", [3, 4]))
    d |= [("e", 5)]
    return d


def list_multiplication_aliases(x):
    rows = [[0]] * 3
    rows[0].append(x)
    return rows


def deletions_while_collecting(x, d):
    for key in [k for k in d if k.startswith("_")]:
        del d[key]
    return x, sorted(d)


def list_extended_by_itself(x):
    a = [1, 2]
    a.extend(a)
    a += a[:1]
    return x, a


def containers_kept_over_a_break(x, items):
    items.append(x)
    local = {"a": [x]}
    print("break")
    local["a"].append(x + 1)
    items.append(local["a"])
    return local, items


#: (program, operations, more arguments)
CASES = [
    (list_methods, 3), (slices_of_lists, 0), (operators_of_lists, 0), (append_to_argument, 1, [1]),
    (mutate_argument_slices, 0, [1, 2, 3]), (list_sort, 1), (sort_tensors_by_key, 3),
    (sort_argument, 1, [3, 1, 2]), (list_errors, 0), (aliases_of_lists, 1),
    (return_argument_list, 0, [torch.ones(2), 1]), (nested_arguments, 0, {"a": [{}]}),
    (list_comprehension, 2), (unpacking_into_names, 0), (unpack_errors, 0),
    (membership_in_containers, 1), (tensor_in_a_list_by_identity, 1), (copies_of_lists, 0),
    (list_of_argument, 0, [1, "a"]), (clear_and_refill, 0, [1, 2]), (methods_of_tuples, 0),
    (named_tuples, 2), (shapes_as_tuples, 0), (struct_sequence, 3), (tuple_as_key, 1),
    (dict_methods, 0), (dict_views, 0), (dict_order, 0),
    (mutate_argument_dict, 1, {"old": 1, "gone": 2}),
    (delete_and_store_argument, 0, {"a": 1, "b": 2}),
    (read_argument_dict, 1, {"scale": 3, "bias": None}),
    (iterate_argument_dict, 2, {"a": 1, "b": 2}), (keys_of_all_kinds, 0), (object_keys, 0),
    (function_keys, 0), (key_errors, 0), (changed_while_iterating, 0), (ordered_dicts, 0),
    (defaultdicts, 0), (counters_of_elements, 1), (dict_fromkeys, 0),
    (defaultdict_argument, 0, defaultdict(list, seen=[1])),
    (ordered_dict_argument, 0, OrderedDict(a=1, b=2)), (dict_comparison, 0), (mapping_proxies, 1),
    (keyword_arguments_as_dicts, 0), (dict_subclass, 0), (missing_hook_of_a_dict, 0),
    (list_subclass, 0), (sets_and_their_operators, 0), (set_updates, 0), (set_order, 0),
    (frozensets, 0), (argument_set, 0, {1, 2}), (set_errors, 0), (identity_sets, 0),
    (set_of_views, 0), (methods_of_deques, 0), (deque_argument, 0, deque([1, 2])),
    (tree_that_is_built, 2), (deep_copies, 0), (swap_arguments, 0, [1], [2]),
    (delete_attribute_of_a_box, 0), (string_building, 0), (dict_update_from_pairs, 0),
    (list_multiplication_aliases, 0), (deletions_while_collecting, 0, {"_a": 1, "b": 2}),
    (list_extended_by_itself, 0),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_program(case) -> None:
    function, ops, *args = case
    x = torch.arange(6.0).reshape(2, 3)
    check(function, x, *args, graphs=int(ops > 0), ops=ops, fullgraph=True)
    assert not framejit.counters["skipped"]


def test_same_list_passed_twice() -> None:
    shared = [1]
    check_between(same_list_twice, torch.ones(2), shared, shared, graphs=1, ops=2)
    check_between(same_list_twice, torch.ones(2), [1], [2], graphs=1, ops=2)


def test_containers_across_a_graph_break() -> None:
    check(containers_kept_over_a_break, torch.ones(2), [0], graphs=1, ops=1)


def test_argument_list_of_any_length_is_appended_to() -> None:
    """Appending looks at nothing, so a growing list is no reason to capture again."""
    import framejit.api
    from checking import CountingBackend

    backend = CountingBackend()
    compiled = framejit.api.compile(append_to_argument, backend=backend)
    items: list = []
    for _ in range(5):
        compiled(torch.ones(2), items)
    assert len(items) == 10 and len(backend.graphs) == 1


class Noted:
    """Says how it is asked."""

    asked: list = []

    def __eq__(self, other: object) -> bool:
        self.asked.append(other)
        return other == 2

    def __hash__(self) -> int:
        self.asked.append("hash")
        return 1


def test_sets_are_looked_for_as_frozensets() -> None:
    def find(x, k):
        found, s = [], {1, frozenset([3]), frozenset([4])}
        for action in (s.remove, s.discard):
            for item in ({3}, {k}, {k + 1}, [k], {4}):
                try:
                    found.append(action(item))
                except (KeyError, TypeError) as error:
                    found.append((type(error).__name__, len(s)))
        return x + 1, found, s, {4} in s

    check(find, torch.ones(2), 3, graphs=1, ops=1, fullgraph=True)


def test_an_empty_dict_does_not_hash_what_is_popped() -> None:
    def pop(x, d):
        Noted.asked = []
        found = [{}.pop(Noted(), 1), d.pop([1], 2), {1: 3}.pop(Noted(), 4)]
        for empty in ({}, OrderedDict()):
            try:
                found.append(empty.pop([], 5))
            except TypeError as error:
                found.append(str(error))
        return x + 1, found, Noted.asked

    check(pop, torch.ones(2), {}, graphs=1, ops=1)


def test_constants_that_hold_nothing() -> None:
    def find(x):
        found = []
        for container in (None, 5, "ab"):
            try:
                found.append(x.shape[0] in container)
            except TypeError as error:
                found.append(str(error))
        return x + 1, found

    compiled = framejit.compile(find, backend="eager", dynamic=True)
    for size in (2, 3, 4):
        (got, texts), (expected, wanted) = compiled(torch.ones(size)), find(torch.ones(size))
        assert torch.equal(got, expected) and texts == wanted


def test_constant_containers_are_asked_as_they_are_made() -> None:
    def membership(x, k):
        Noted.asked = []
        found = [Noted() in {1, 2, 8}, Noted() in (0, 2), Noted() in range(3), [k] in ((1,), 2)]
        for container in ({1, 2}, "abc", b"abc", 5, None):
            for item in ([k], {k: 1}, (1, [k]), x):
                try:
                    if item is not x or not isinstance(container, (set, bytes)):
                        found.append(item in container)
                except TypeError as error:
                    found.append(str(error))
        return x + 1, found, Noted.asked

    check(membership, torch.ones(2), 3, graphs=1, ops=1, fullgraph=True)


# -- views of dicts --------------------------------------------------------------------------------

SET_OPERATIONS = [
    operator.eq, operator.ne, operator.le, operator.lt, operator.ge, operator.gt,
    operator.and_, operator.or_, operator.sub, operator.xor, lambda a, b: a.isdisjoint(b),
]  # fmt: skip
VIEWS = {
    "lists": lambda: ({1: [1], 2: [2]}.items(), {2: [2], 1: [1]}.items()),
    "lists, fewer": lambda: ({1: [1]}.items(), {2: [2], 1: [1]}.items()),
    "lists, others": lambda: ({1: [1]}.items(), {1: [2]}.items()),
    "lists and a set": lambda: ({1: [1], 2: 3}.items(), {(2, 3)}),
    "lists and a longer set": lambda: ({1: 3, 2: [1]}.items(), {(1, 4), (9, 9), (8, 9)}),
    "a set and lists": lambda: ({(2, 3)}, {1: [1], 2: 3}.items()),
    "lists and an empty set": lambda: ({1: [1]}.items(), set()),
    "lists and a list": lambda: ({1: [1]}.items(), [(1, 2)]),
    "lists and a list of them": lambda: ({1: [1]}.items(), [(1, [1])]),
    "values": lambda: ({8: 1, 0: 2, 16: 1}.keys(), {1: 0, 2: 8, 3: 5, 4: 16}.values()),
    "keys": lambda: ({8: 1, 0: 2}.keys(), {0: 0, 8: 8, 3: 5}.keys()),
    "keys and items": lambda: ({8: 1, 0: 2}.keys(), {0: 0, 8: 8, 3: 5}.items()),
    "items": lambda: ({8: 1, 0: 2}.items(), {0: 2, 8: 1, 3: 5}.items()),
    "items and a list": lambda: ({8: 1, 0: 2}.items(), [(0, 2), (8, 1), (0, 2)]),
    "keys and a text": lambda: ({"a": 1, "b": 2}.keys(), "abc"),
    "keys and a number": lambda: ({"a": 1, "b": 2}.keys(), 5),
    "keys and a frozenset": lambda: ({8: 1, 0: 2}.keys(), frozenset((0, 8))),
    "keys and lists": lambda: ({8: 1, 0: 2}.keys(), [[1]]),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("operation", SET_OPERATIONS)
def test_views_as_sets(name, operation):
    """Values are hashed only where a set is made of them; the order is that of CPython's walk."""

    def program(x):
        left, right = VIEWS[name]()
        try:
            made = operation(left, right)
            return x + 1, made, list(made) if isinstance(made, set) else None
        except TypeError as error:
            return x + 1, str(error)

    check(program, torch.ones(2), graphs=1, ops=1)


def test_what_views_contain():
    def program(x, first, second):
        second[7] = [1]
        dicts = (first, second, {1: 2}, OrderedDict(a=1))
        items = ((1, 2), (1, 3), (2, 1), (1, 2, 3), 1, 2, "ab", ("a", 1), (7, 1), (7, [1]), [1, 2])
        found = [[(i in d.items(), i in d.values()) for i in items] for d in dicts]
        for item in (([], 1), ([1], 2, 3), ({},)):
            try:
                found.append(item in first.items())
            except TypeError as error:
                found.append(str(error))
        return x + 1, found

    check(program, torch.ones(2), {1: 2, "a": 1}, {1: 2, 2: 1}, graphs=1, ops=1)


@pytest.mark.parametrize(
    "bounds", [slice(None, None, 1), slice(2), slice(0, 3, 2), slice(None, None, -1)], ids=str
)
@pytest.mark.parametrize("assigned", [5, [1], [1, 2], (4, 5, 6)], ids=str)
def test_what_is_assigned_to_slices(bounds, assigned):
    def program(x):
        made = [1, 2, 3]
        try:
            made[bounds] = assigned
        except (TypeError, ValueError) as error:
            return x + 1, str(error)
        return x + 1, made

    check(program, torch.ones(2), graphs=1, ops=1)


@pytest.mark.parametrize("maxlen", [None, 0, 3])
@pytest.mark.parametrize(
    "other", [deque((5,)), [5], deque((), 2), deque(range(5)), 2, 0, -1], ids=str
)
@pytest.mark.parametrize("operation", [operator.add, operator.mul, operator.iadd, operator.imul])
def test_operators_of_deques(maxlen, other, operation):
    def program(x):
        found = []
        for left, right in ((deque((1, 2), maxlen), other), (other, deque((1, 2), maxlen))):
            try:
                made = operation(copy.copy(left), right)
                found.append((made, getattr(made, "maxlen", 0)))
            except TypeError as error:
                found.append(str(error))
        return x + 1, found

    check(program, torch.ones(2), graphs=1, ops=1)
