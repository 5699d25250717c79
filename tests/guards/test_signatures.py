"""What ``inspect.signature`` gives depends on all that it reads: one thing changes, call again."""

import functools
import inspect

import pytest
import torch
from soundness import FREE, NEEDED, add, check_row

X = torch.ones(2)
ROWS = []


def made():
    """A function, one that wraps it, a class that is made with it, and an object to call."""

    def plain(self, a: int = 1, *, b=3):
        return a

    @functools.wraps(plain)
    def wrapper(*args, **kwargs):
        return plain(*args, **kwargs)

    members = {"__init__": plain, "__call__": plain, "method": plain}
    thing = type("Thing", (type("Base", (), members),), {})
    things = {"function": plain, "wrapper": wrapper, "class": thing}
    return things | {"object": object.__new__(thing), "method": object.__new__(thing).method}


def defaults(things):
    things["function"].__defaults__ = (7,)


def keyword_default(things):
    things["function"].__kwdefaults__["b"] = 7


def keyword_defaults(things):
    things["function"].__kwdefaults__ = {"b": 9}


def annotation(things):
    things["function"].__annotations__["a"] = float


def annotations(things):
    things["function"].__annotations__ = {"return": float}


def code(things):
    things["function"].__code__ = (lambda self, other, *, b: 0).__code__


def wrapped(things):
    things["function"].__wrapped__ = lambda self, other: 0


def told(things):
    things["function"].__signature__ = inspect.Signature([inspect.Parameter("own", 1)])


def told_by_class(things):
    things["class"].__signature__ = inspect.Signature([inspect.Parameter("own", 1)])


def maker(things):
    things["class"].__new__ = lambda cls, *, new: object.__new__(cls)


def an_attribute_that_tells_nothing(things):
    things["function"].other = 1


OF_FUNCTIONS = (defaults, keyword_default, keyword_defaults, annotation, annotations, code, wrapped)
CHANGES = {kind: (*OF_FUNCTIONS, told) for kind in made()}
CHANGES["class"] += (told_by_class, maker)
CHANGES["object"] += (told_by_class,)


def add_row(kind, change, expected):
    def make(w):
        things = made()
        described = things[kind]
        change_now = functools.partial(change, things)
        return lambda x: (x + 1, str(inspect.signature(described))), (X,), change_now

    # Where plain Python is asked, what comes before and after is captured.
    add(f"{change.__name__} of {kind}", expected, make, 3, table=ROWS)


for kind, changes in CHANGES.items():
    for change in changes:
        add_row(kind, change, NEEDED)
    add_row(kind, an_attribute_that_tells_nothing, FREE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_a_signature_is_made_of(row):
    check_row(row)
