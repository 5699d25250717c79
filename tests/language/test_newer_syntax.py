"""Programs in the syntax of CPython 3.12 and 3.13: as in eager, where the release can read them."""

from __future__ import annotations

import ast
import linecache

import pytest
import torch

from checking import check, check_between

X = torch.arange(3.0)
PROGRAMS: dict[str, tuple[str, int, int]] = {}


def program(text: str, graphs: int, ops: int) -> None:
    """``text`` defines ``program(x)``, which is captured in so many graphs and operations."""
    name = text.partition("# ")[2].partition("\n")[0]
    PROGRAMS[name] = text, graphs, ops


program(
    """# generic functions and classes
def first[T](items: list[T]) -> T:
    return items[0]

class Box[T: (int, float), *Ts, **P]:
    def __init__(self, content: T) -> None:
        self.content = content

    def map[U](self, function) -> U:
        return Box(function(self.content))

def program(x):
    box = Box(first([x, x + 1])).map(lambda content: content * 2)
    return box.content + 1, type(box).__name__, len(Box.__type_params__), first.__name__
""", 1, 3,
)  # fmt: skip
program(
    """# classes with a parameter
class Box[T]:
    scale: T = 2

class Boxes(Box[int]):
    def times(self, x):
        return x * self.scale

def program(x):
    return Boxes().times(x), issubclass(Boxes, Box), Boxes.__orig_bases__[0].__args__
""", 1, 1,
)  # fmt: skip
program(
    """# aliases of types
type Pair[T] = tuple[T, T]
type Number = int | float

def program(x):
    return x + 1, Pair.__name__, isinstance(3, Number.__value__), Number.__value__
""", 1, 1,
)  # fmt: skip
program(
    """# generic functions made by the program
def program(x):
    y = x + 1

    def twice[T](given: T) -> T:
        return given * 2

    return twice(y), twice.__name__, len(twice.__type_params__)
""", 2, 2,
)  # fmt: skip
program(
    """# generic classes made by the program
def program(x):
    y = x + 1

    class Kept[T]:
        def __init__(self, given: T):
            self.given = given

    return Kept(y).given * 2, Kept.__name__, str(Kept[int].__args__)
""", 2, 2,
)  # fmt: skip
program(
    """# aliases made by the program
def program(x):
    y = x + 1
    type Small = list[int]
    type Large[T] = dict[str, T]
    return y * 2
""", 2, 2,
)  # fmt: skip
program(
    """# quotes and lines within f-strings
def program(x):
    names = {"a": 1, "b": 2}
    text = f"{names["a"]} {f"{f"{names["b"]:>{3}}"}"} {", ".join(names)} {'\\n'!r}"
    longer = f"{
        len(names)  # how many
    }{x.ndim=}{'nested {'}"
    return x * len(text), text, longer
""", 1, 1,
)  # fmt: skip
program(
    """# comprehensions that share a name
def program(x):
    i = "outside"
    plain = [x + i for i in range(2)]
    made = [lambda: i for i in range(3)]
    again = [i for i in range(2) if i]
    pairs = {i: [j * i for j in range(i)] for i in range(3)}
    return plain, [one() for one in made], again, pairs, i
""", 1, 2,
)  # fmt: skip
program(
    """# breaks in comprehensions that share a name
def said(value):
    print(end="")
    return value

def program(x):
    plain = [said(x + i) for i in range(2)]
    made = [(said(i), lambda: i) for i in range(2)]
    after = [said(x * i) for i in range(2)]
    return plain, [(n, one()) for n, one in made], after
""", 4, 4,
)  # fmt: skip
program(
    """# an error leaves a comprehension
def program(x):
    i = 5
    try:
        [10 // i for i in (2, 1, 0)]
    except ZeroDivisionError as error:
        return x + i, str(error)
""", 1, 1,
)  # fmt: skip
program(
    """# classes in comprehensions and in scopes of parameters
def program(x):
    class Body:
        factor = 3
        tripled = [factor for _ in range(1)] if False else [3]
        def scaled[T](self, given: T) -> T:
            return given * self.factor
    return Body().scaled(x), Body.tripled
""", 1, 1,
)  # fmt: skip
program(
    """# defaults of parameters
class Box[T = int]:
    content: T

def program(x):
    return x + 1, Box.__type_params__[0].__default__, Box.__static_attributes__
""", 1, 1,
)  # fmt: skip


def made(name):
    """The function ``program``; its lines are found."""
    text = PROGRAMS[name][0]
    try:
        ast.parse(text)
    except SyntaxError:
        pytest.skip("this release of CPython cannot read it")
    file = f"<{name}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    names = {"__name__": "newer_syntax"}
    exec(compile(text, file, "exec", dont_inherit=True), names)
    return names["program"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    _, graphs, ops = PROGRAMS[name]
    check(made(name), X, graphs=graphs, ops=ops)


@pytest.mark.parametrize("name", PROGRAMS)
def test_between_operations(name):
    check_between(made(name), X, ops=PROGRAMS[name][2] + 2)
