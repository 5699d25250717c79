"""Builtin and library functions of constants against CPython's own."""

from __future__ import annotations

import copy
import functools
import itertools
import math
import operator
from collections import deque

import pytest
import torch
from values_helpers import compare_call, existing, new_space, plain, symbolic

from framejit.exc import GraphBreak
from framejit.values.core.base import Raised
from framejit.values.core.registry import LOOKASIDES

CALLS = [
    (len, [1, 2]), (len, 5), (len, "abc"), (len,), (len, {}, 1), (isinstance, 1, int),
    (isinstance, True, int), (isinstance, 1, str), (isinstance, 1, (str, int)),
    (isinstance, 1, 5), (isinstance, 1, (str, (float, int))), (isinstance, 1, int | None),
    (isinstance, None, int | None), (issubclass, bool, int), (issubclass, 1, int),
    (issubclass, bool, 1), (isinstance, [], list), (isinstance, {}, dict), (callable, len),
    (callable, 5), (hash, 5), (hash, []), (hash, (1, 2)), (sum, [1, 2, 3]), (sum, [1.5, 2], 3),
    (sum, ["a"], ""), (sum, ["a"]), (sum, [[1], [2]], []), (sum, 5), (min, [3, 1, 2]),
    (max, [3, 1, 2]), (min, []), (max, 1, 2), (min, 1), (max, 1, "a"), (max, "a", "b"),
    (min, [True, 0, 1.0]), (any, [0, 1]), (any, []), (all, [1, 0]), (all, []), (all, 5),
    (sorted, [3, 1, 2]), (sorted, "cab"), (sorted, [1, "a"]), (sorted, 5), (abs, -3), (abs, "a"),
    (abs, -2.5), (round, 2.567, 1), (round, 2.5), (round, "a"), (divmod, 7, 2), (divmod, 7, 0),
    (pow, 2, 3), (pow, 2, 3, 5), (pow, 2, -1, 5), (int, "12"), (int, "x"), (int, 3.7), (int,),
    (int, "ff", 16), (float, "1.5"), (float, "x"), (float,), (bool,), (bool, []), (bool, [0]),
    (bool, 0), (complex, 1, 2), (str, 5), (str,), (str, [1, "a"]), (repr, "a"), (repr, (1,)),
    (format, 3.14159, ".2f"), (format, 5), (ord, "a"), (ord, "ab"), (chr, 97), (hex, 255),
    (bin, 5), (list,), (list, "ab"), (list, (1, 2)), (list, 5), (tuple,), (tuple, [1, 2]),
    (tuple, 5), (range, 3), (range, 1, 10, 3), (range, 1, 2, 0), (range, "a"), (range,),
    (range, 1.5), (slice, 1), (enumerate, "ab"), (enumerate, [5, 6], 3), (zip, [1, 2], "ab"),
    (zip,), (zip, [1, 2], "abc"), (zip, 5), (zip, [], 5), (reversed, [1, 2, 3]),
    (reversed, (1, 2)), (reversed, range(3)), (reversed, {"a": 1}), (reversed, 5),
    (reversed, "ab"), (iter, [1]), (iter, 5), (next, [1]), (next, 5), (ascii, "ä"),
    (deque, [1, 2, 3], 2), (deque,), (deque, [1], -1), (bytes, 3), (getattr, 5, "real"),
    (getattr, 5, "zzz", 1), (hasattr, 5, "real"), (hasattr, 5, "zzz"), (getattr, 5, 5),
    (operator.add, 1, 2), (operator.getitem, [1, 2], 1), (operator.contains, [1], 1),
    (operator.not_, []), (operator.truth, [1]), (operator.index, 5), (operator.index, 1.5),
    (operator.concat, [1], [2]), (operator.countOf, [1, 1, 2], 1), (operator.neg, 3),
    (operator.lt, 1, 2), (operator.is_, None, None),
    (math.sqrt, 4), (math.sqrt, -1), (math.sqrt, "a"), (math.prod, [2, 3]), (math.floor, 2.5),
    (math.prod, []), (math.fsum, [0.1] * 10), (math.gcd, 4, 6), (math.isclose, 1.0, 1.0),
    (math.log, 8, 2), (math.inf.is_integer,) if False else (math.ceil, 1.2),
    (itertools.chain, [1], "ab"), (itertools.chain,), (itertools.chain.from_iterable, [[1], [2]]),
    (itertools.islice, "abcdefg", 3), (itertools.islice, "abcdefg", 1, 6, 2),
    (itertools.islice, "abc", 1, None), (itertools.islice, "abc", -1),
    (itertools.product, [1, 2], "ab"), (itertools.permutations, [1, 2, 3], 2),
    (itertools.combinations, [1, 2, 3], 2), (itertools.combinations_with_replacement, "ab", 2),
    (itertools.permutations, "abc"), (itertools.combinations, "ab", -1),
    (itertools.repeat, 1, 3), (itertools.repeat, 1, -3), (copy.copy, [1, [2]]),
    (copy.deepcopy, [1, [2], {"a": [3]}]), (copy.copy, {"a": 1}), (copy.copy, 5),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=lambda c: f"{c[0].__name__}{c[1:]}")
def test_call(call: tuple) -> None:
    compare_call(*call)


def test_keyword_arguments() -> None:
    compare_call(max, [], default=3)
    compare_call(max, 1, 2, default=3)
    compare_call(sorted, [3, 1, 2], reverse=True)
    compare_call(sum, [1], start=5)
    compare_call(zip, [1, 2], [3], strict=True)
    compare_call(zip, [1], [3, 4], strict=True)
    compare_call(zip, [1, 2], [3, 4], strict=True)
    compare_call(enumerate, [1], start=4)
    compare_call(itertools.product, [0, 1], repeat=2)
    compare_call(int, "12", base=8)
    compare_call(round, number=2.55, ndigits=1)
    compare_call(len, obj=3)


def test_lists_seen_through_iterators() -> None:
    space = new_space()
    value = symbolic(space, [1, 2])
    iterator = space.iter(value)
    assert plain(space, space.next(iterator)) == 1
    value.do_append(space, space.constant(3))
    assert [plain(space, i) for i in space.items(iterator)] == [2, 3]
    value.do_append(space, space.constant(4))
    assert space.next(iterator) is None  # exhausted for good


def test_zip_consumes_like_cpython() -> None:
    space = new_space()
    first, second = space.iter(symbolic(space, [1, 2, 3])), space.iter(symbolic(space, [4]))
    zipped = LOOKASIDES[zip](space, [first, second], {})
    assert plain(space, zipped)[2] == [(1, 4)]
    assert plain(space, first)[2] == [3]


def test_tee_and_count() -> None:
    space = new_space()
    pair = LOOKASIDES[itertools.tee](space, [symbolic(space, [1, 2])], {})
    assert [plain(space, i)[2] for i in pair.items] == [[1, 2], [1, 2]]
    count = LOOKASIDES[itertools.count](space, [space.constant(3)], {})
    cut = LOOKASIDES[itertools.islice](space, [count, space.constant(2)], {})
    assert plain(space, cut)[2] == [3, 4]


def test_next_raises_stop_iteration() -> None:
    space = new_space()
    with pytest.raises(Raised) as caught:
        LOOKASIDES[next](space, [space.iter(symbolic(space, []))], {})
    assert caught.value.value.python_type() is StopIteration


def test_partial() -> None:
    space = new_space()
    real = functools.partial(max, 5, default=1)
    value = existing(space, real).realize()
    assert plain(space, value.getattr(space, "args")) == (5,)
    made = LOOKASIDES[functools.partial](space, [symbolic(space, max), space.constant(3)], {})
    assert plain(space, space.now(made.call(space, [space.constant(7)], {}))) == 7


def test_getters() -> None:
    space = new_space()
    getter = LOOKASIDES[operator.itemgetter](space, [space.constant(1)], {})
    assert plain(space, space.now(getter.call(space, [symbolic(space, [5, 6])], {}))) == 6
    real = existing(space, operator.attrgetter("real", "imag")).realize()
    assert plain(space, space.now(real.call(space, [space.constant(5)], {}))) == (5, 0)
    caller = existing(space, operator.methodcaller("split", ","), "m").realize()
    assert plain(space, space.now(caller.call(space, [space.constant("a,b")], {}))) == ["a", "b"]


@pytest.mark.parametrize("function", [print, id, locals, dir, input])
def test_refused(function: object) -> None:
    space = new_space()
    with pytest.raises(GraphBreak):
        LOOKASIDES[function](space, [space.constant(1)], {})


def test_hash_of_text_holds_for_this_process() -> None:
    space = new_space()
    assert plain(space, LOOKASIDES[hash](space, [space.constant("a")], {})) == hash("a")
    (source,) = [s for root in space.const_roots.values() for s in root.children.values()]
    (fact,) = source.facts
    assert (source.accessor, fact.kind) == ("call", "EQUALS_MATCH")


def test_isinstance_of_tensors_and_abstract_classes() -> None:
    import collections.abc as abc
    import numbers

    for obj, cls in [
        ([], abc.Sequence), ([], abc.Mapping), ({}, abc.Mapping), (1, numbers.Number),
        ((), abc.Iterable), (len, abc.Callable), ("a", abc.Hashable),
    ]:  # fmt: skip
        compare_call(isinstance, obj, cls)
    space = new_space()
    for tensor in (torch.ones(2), torch.nn.Parameter(torch.ones(2))):
        for cls in (torch.Tensor, torch.nn.Parameter, torch.nn.Module):
            args = [existing(space, tensor, "t"), existing(space, cls, "c")]
            got = plain(space, LOOKASIDES[isinstance](space, args, {}))
            assert got is isinstance(tensor, cls), (type(tensor), cls)


def test_conversion_of_a_tensor_is_a_break() -> None:
    space = new_space()
    for function in (int, float, bool):
        with pytest.raises(GraphBreak):
            LOOKASIDES[function](space, [existing(space, torch.ones(1), "t")], {})


def test_deepcopy_keeps_sharing() -> None:
    space = new_space()
    inner = symbolic(space, [1])
    outer = symbolic(space, [])
    outer.do_append(space, inner)
    outer.do_append(space, inner)
    copied = LOOKASIDES[copy.deepcopy](space, [outer], {})
    assert copied.items[0] is copied.items[1] and copied.items[0] is not inner
