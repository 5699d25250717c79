"""Bounds on sizes: said once, and meaning the same."""

import itertools

from framejit.graph.bounds import Assumption, with_bounds
from framejit.graph.expressions import evaluate

S, T = ("load", "s"), ("load", "t")
LINE = ("model.py", 3)

CASES = [
    ([("ne", S, ("int", 1))], {"s": 1}, [("ge", S, ("int", 2))]),
    ([("ne", S, ("int", 1))], {"s": 0}, [("ne", S, ("int", 1))]),
    (
        [("ne", S, ("int", 1)), ("ge", ("mul", S, T), ("int", 2))],
        {"s": 0, "t": 0},
        [("ge", S, ("int", 2)), ("ge", T, ("int", 1))],
    ),
    ([("ge", ("mul", S, T), ("int", 7))], {"s": 2, "t": 2}, None),
    ([("gt", S, ("int", 8)), ("ge", S, ("int", 3))], {"s": 1}, [("ge", S, ("int", 9))]),
    ([("ne", S, ("int", 5)), ("eq", S, T)], {"s": 1, "t": 1}, None),
    ([("ge", S, ("int", -3))], {}, [("ge", S, ("int", -3))]),
    ([("ne", S, ("int", 1)), ("ne", S, ("int", 2))], {"s": 1}, [("ge", S, ("int", 3))]),
]


def test_bounds_mean_what_was_assumed():
    for trees, lowest, expected in CASES:
        result = [a.tree for a in with_bounds([Assumption(t, LINE) for t in trees], lowest)]
        if expected is not None:
            assert result == expected
        for s, t in itertools.product(range(12), repeat=2):
            values = {"s": s, "t": t}
            before = all(evaluate(tree, values) for tree in trees)
            before = before and all(values[name] >= low for name, low in lowest.items())
            assert before == all(evaluate(tree, values) for tree in result), (trees, values)


def test_a_bound_names_the_line_that_needs_it():
    (bound,) = with_bounds([Assumption(("ne", S, ("int", 1)), LINE)], {"s": 1})
    assert bound.line == LINE
