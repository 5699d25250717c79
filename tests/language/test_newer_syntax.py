"""Programs in the syntax of CPython 3.12 to 3.14, and what ``locals()`` is there: as in eager,
where the release can read them."""

from __future__ import annotations

import ast
import functools
import linecache
import sys

import pytest
import torch

import framejit
from checking import CountingBackend, check, check_between

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
    """# generic classes whose base looks at new classes
def program(x):
    y = x + 1
    made = []

    class Base:
        def __init_subclass__(cls, **kwargs):
            made.append((cls.__name__, kwargs))
            super().__init_subclass__()

    class Box[T](Base, kind=3):
        pass

    return y * 2, made, Box.__parameters__ == Box.__type_params__
""", 2, 2,
)  # fmt: skip
program(
    """# a variable around a generic class that has no value yet
def program(x):
    y = x + 1
    said = []
    try:
        class Box[T]:
            content: int = later
    except NameError as error:
        said.append((str(error), error.name))
    later = 3
    return y * 2, said, later
""", 2, 2,
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
program(
    """# except without parentheses
def program(x):
    try:
        assert x.shape[0] == 4
    except AssertionError, KeyError:
        x = x + 1
    return x * 2
""", 1, 2,
)  # fmt: skip
program(
    """# annotations that are looked up when they are asked for
def program(x):
    def scaled(value: Later, factor: int = 2) -> Later:
        return value * factor

    class Later:
        field: Later

    try:
        raise ValueError
    except ValueError, KeyError:
        return scaled(x), scaled.__annotations__["factor"], scaled.__defaults__
""", 1, 1,
)  # fmt: skip
program(
    """# template strings
def program(x):
    number, y = 3, x + 1
    text = t"a{number}b{number!r:>5}"
    return y * 2, text.strings, text.values, [i.expression for i in text.interpolations]
""", 2, 2,
)  # fmt: skip

program(
    """# parameters of types are looked at
def program(x):
    def f[T: (int, str)](a: T, b: T = 2) -> T:
        return a * b
    T, = f.__type_params__
    return f(x), T.__name__, T.__constraints__, f.__annotations__["a"] is T
""", 1, 1,
)  # fmt: skip
program(
    """# bounds are computed late
def program(x):
    bound = int
    def f[T: bound](a: T) -> T:
        return a + 1
    bound = str
    return f(x), f.__type_params__[0].__bound__
""", 1, 1,
)  # fmt: skip
program(
    """# aliases are computed late
def program(x):
    n = int
    type A = list[n]
    n = str
    return x + 1, A.__value__, repr(A), A.__name__
""", 1, 1,
)  # fmt: skip
program(
    """# parameters of aliases
def program(x):
    type A[T] = list[T]
    return x + 1, A.__type_params__[0].__name__, str(A[int]), str(A.__value__)
""", 1, 1,
)  # fmt: skip
program(
    """# objects of generic classes
def program(x):
    class B[T]:
        def get(self, v: T) -> T:
            return v * 2
        @classmethod
        def make[U](cls, v: U) -> "B":
            b = cls(); b.v = v
            return b
    b = B[int]()
    c = B.make(x)
    return b.get(x), c.v + 1, B.__type_params__[0].__name__, b.__orig_class__.__args__
""", 1, 2,
)  # fmt: skip
program(
    """# defaults of all kinds of parameters
def program(x):
    def f[T = int, *Ts = *tuple[int, str], **P = [int]](a: T): return a + 1
    made = f.__type_params__
    return f(x), made[0].__default__, [q.has_default() for q in made]
""", 1, 1,
)  # fmt: skip
program(
    """# generic functions made in a loop
def program(x):
    fs = []
    for i in range(3):
        def f[T](a: T) -> T:
            return a + i
        fs.append(f)
    return [f(x) for f in fs], fs[0].__type_params__ == fs[1].__type_params__
""", 1, 3,
)  # fmt: skip
program(
    """# generic classes in generic methods
def program(x):
    class Outer[T]:
        def m[U](self, a: T, b: U):
            class Inner[V](Outer[V]):
                def g(self, v): return v * 3
            names = [t.__name__ for t in Inner.__type_params__]
            return Inner().g(a), names, Inner.__bases__[0].__name__
    return Outer().m(x, 1)
""", 1, 1,
)  # fmt: skip
program(
    """# decorated generic functions
def deco(f):
    f.marked = True
    return f
def program(x):
    @deco
    def f[T](a: T, *, k: T = 3) -> T: return a * k
    return f(x), f.marked, f.__kwdefaults__, f.__qualname__, f.__module__
""", 1, 1,
)  # fmt: skip
program(
    """# super() in generic classes
class Base:
    def f(self, x): return x + 1
def program(x):
    class A[T](Base):
        def f(self, x): return super().f(x) * 2
        @property
        def n(self): return super().__init__ is not None
    return A().f(x), A().n
""", 1, 2,
)  # fmt: skip
program(
    """# parameters of types after a break
def program(x):
    def f[T](a: T) -> T: return a + 1
    y = f(x)
    T = f.__type_params__[0]
    print(end="")
    z = y * 2
    if f.__annotations__["a"] is T:
        z = z + 1
    return z, T.__name__, f.__annotations__["return"] is T
""", 2, 3,
)  # fmt: skip
program(
    """# generic classes after a break
def program(x):
    class A[T]:
        def g(self, v: T): return v * 2
    y = A().g(x)
    print(end="")
    z = A().g(y)
    print(end="")
    return A().g(z) + 1, A.__type_params__[0].__name__
""", 3, 4,
)  # fmt: skip

#: Where ``locals()`` is a copy, and what frames give writes the variables.
COPIES = type((lambda: sys._getframe().f_locals)()) is not dict
if COPIES:
    program(
        """# each locals() is another dict
def program(x):
    y = x + 1
    before = locals()
    y = y * 2
    after = locals()
    before["y"] = 5
    return y, list(before), list(after), before["y"], after["y"], before is after
""", 2, 2,
    )  # fmt: skip
    program(
        """# what is written into locals() stays there
def program(x):
    n = 1
    locals()["n"] = 2
    d = locals()
    d["new"] = 3
    return x * n, "new" in locals(), sorted(d)
""", 1, 1,
    )  # fmt: skip
    program(
        """# variables are written through f_locals
import sys
def program(x):
    n = 1
    d = sys._getframe().f_locals
    n = 2
    d["n"] = d["n"] + 5
    d["extra"] = 1
    return x * n, d["n"], "extra" in locals(), type(d).__name__, len(d)
""", 0, 0,
    )  # fmt: skip
    program(
        """# variables of a caller are written
import sys
def write():
    sys._getframe(1).f_locals["n"] = 4
def program(x):
    n = 1
    y = x + 1
    write()
    return y * n, n
""", 1, 1,
    )  # fmt: skip
    program(
        """# exec() changes no variables
def program(x):
    n = 3
    exec("n = 7")
    m = eval("n + 1")
    d = {}
    exec("z = n * 2", globals(), d)
    return x * n, m, d
""", 0, 0,
    )  # fmt: skip
    program(
        """# exec() in what locals() has given
def program(x):
    n = 3
    d = locals()
    exec("n = 7", None, d)
    return x * n, d["n"], eval("n")
""", 1, 1,
    )  # fmt: skip
    program(
        """# locals() of generators
def program(x):
    def gen():
        a = 1
        yield locals()
        b = 2
        yield locals()
    r = [sorted(d) for d in gen()]
    l = list(gen())
    return x + 1, r, l[0] is l[1]
""", 1, 1,
    )  # fmt: skip
    program(
        """# locals() with cells
def program(x):
    n = 1
    def inner():
        nonlocal n
        n += 1
        return sorted(locals()), n
    d = locals()
    r = inner()
    del n
    return x + 1, sorted(d), d["n"], r[0], "n" in locals()
""", 1, 1,
    )  # fmt: skip
else:
    program(
        """# each locals() is the same dict
def program(x):
    y = x + 1
    before = locals()
    before["extra"] = 3
    y = y * 2
    after = locals()
    return y, sorted(after), after["extra"], before is after, "after" in vars()
""", 1, 1,
    )  # fmt: skip
    program(
        """# locals() in a loop
def program(x):
    y, found = x * 2, []
    for i in range(2):
        locals()[f"extra{i}"] = i
        found.append(locals())
    return y + 1, sorted(found[0]), found[0] is found[1]
""", 1, 1,
    )  # fmt: skip
    program(
        """# a variable that exec() makes is among locals()
def program(x):
    y = x + 1
    exec("extra = 3")
    y = y * 2
    return y, sorted(locals()), eval("extra")
""", 1, 1,
    )  # fmt: skip
    program(
        """# dir() brings what locals() has given up to date
def program(x):
    def inner(y):
        z = y + 1
        d = locals()
        w = z * 2
        names = dir()
        return w, names, sorted(d)
    return inner(x)
""", 1, 1,
    )  # fmt: skip
    program(
        """# exec() in a namespace of its own, and a single locals()
def program(x):
    y = x + 1
    exec("extra = 3", {})
    y = y * 2
    d = locals()
    return y + 1, sorted(d), "extra" in d
""", 3, 3,
    )  # fmt: skip

if hasattr(functools, "Placeholder"):
    program(
        """# a Placeholder as a keyword argument
import functools
def program(x):
    y = x + 1
    try:
        functools.partial(max, key=functools.Placeholder)
    except TypeError as error:
        return y * 2, str(error)
""", 2, 2,
    )  # fmt: skip


if hasattr(functools.wraps, "__annotate__"):
    program(
        """# annotations of a class, before their variables have values
def program(x):
    y = x + 1
    class Box:
        content: later = 5
    said = []
    for ask in (lambda: Box.__annotations__, lambda: Box.__annotate__(1)):
        try:
            ask()
        except NameError as error:
            said.append((type(error), str(error), error.name))
    later = int
    return y * 2, said, Box.__annotations__
""", 2, 2,
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
    text, _, ops = PROGRAMS[name]
    # frames that are looked at run as they are
    seen = "f_locals" in text or 'exec("n = 7")' in text or not COPIES and "locals()" in text
    check_between(made(name), X, ops=None if seen else ops + 2)


@pytest.mark.skipif(not hasattr(program, "__annotate__"), reason="CPython 3.14 has __annotate__")
def test_functions_that_get_other_annotations():
    def run(compiled):
        def given(a: int): ...
        def computed(a: int): ...

        def change(x):
            given.__annotations__ = {"b": str}
            computed.__annotate__ = lambda form: {"c": form}
            return x + 1, given.__annotations__, given.__annotate__, computed.__annotations__

        return [compiled(change)(X)[1:] for _ in range(2)]

    backend = CountingBackend()
    assert run(functools.partial(framejit.compile, backend=backend)) == run(lambda change: change)
    assert len(backend.graphs) >= 1
