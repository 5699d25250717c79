"""The programs that continuations are tested with: ``PROGRAMS`` maps a name to (function, args).

Every function appends what it does to ``LOG``; the tests compare result, log and exception.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass

from bytecode_generated import GENERATED
from bytecode_registry import LOG, PROGRAMS, Manager, Picky, note, program, show


@program(4)
def for_else(n):
    s = 0
    for i in range(n):
        if i == 2:
            s += note(100)
        s += i
    else:
        s += 1000
    return s


@program(4)
def nested_for(n):
    out = []
    for i in range(n):
        for j, k in zip(range(i), "abc"):
            if j == 2:
                break
            if i == j:
                continue
            out.append((i, j, k, note(7)))
    return out


@program(Picky(3))
@program(Picky(5))
def for_iterator_raises(items):
    seen = []
    try:
        for item in items:
            seen.append(item)
    except LookupError as error:
        seen.append(str(error))
    return seen


@program(3)
def while_loop(a):
    while True:
        a -= 1
        if note(a) < 0:
            break
    else:
        a = 100
    while a < 3:
        a += 1
    return a


@program(1)
def with_plain(x):
    with Manager("a"):
        y = note(3)
        note(y)
        z = y + x
    return z


@program(1)
def with_two_swallow(x):
    with Manager("a") as a, Manager("b", True):
        y = note(3)
        raise ValueError(y)
    return ("swallowed", a.name)


@program(1)
def with_raises(x):
    with Manager("a"):
        y = note(3)
        raise KeyError(y)


@program(3)
def with_return_in_loop(n):
    for i in range(n):
        with Manager("m%d" % i, True) as m:
            if i == 1:
                return (m.name, i)
            1 / i
    return None


@program(0)
@program(1)
@program("x")
def try_except_finally(x):
    try:
        y = 1 / note(x)
        return y
    except ZeroDivisionError as e:
        return ("caught", str(e), x)
    except (TypeError, KeyError):
        y = "type"
    else:
        y = "else"
    finally:
        note("finally")
    return y


@program(1)
def inside_except(x):
    try:
        raise ValueError("v")
    except ValueError as e:
        y = note(5)
        a = sys.exc_info()[0].__name__
        try:
            raise
        except ValueError as e2:
            b = str(e2), e2 is e
    return y, a, b, sys.exc_info()[0]


@program()
def nested_handlers():
    try:
        try:
            try:
                raise ValueError("one")
            except ValueError:
                note(repr(sys.exc_info()[1]))
                try:
                    raise KeyError("two")
                except KeyError as k:
                    note(repr(sys.exc_info()[1]))
                    note(repr(k.__context__))
                    try:
                        {}["three"]
                    except KeyError:
                        note(repr(sys.exc_info()[1].__context__))
                    note(repr(sys.exc_info()[1]))
                    raise
        finally:
            note(repr(sys.exc_info()[1]))
    except KeyError as final:
        note(repr(final.__context__))
        return repr(final)


@program(1)
def except_chain(x):
    try:
        raise ValueError("v")
    except ValueError:
        note(5)
        raise KeyError("k")


@program(1)
def except_cause(x):
    try:
        raise ValueError("v")
    except ValueError as v:
        raise KeyError("k") from v


@program()
def raise_nothing():
    raise


@program(1)
def finally_exceptional(x):
    try:
        try:
            raise ValueError("v")
        finally:
            y = note(4)
            note("f")
    except ValueError as e:
        return y, str(e)


@program(1)
def finally_overrides(x):
    for i in range(3):
        try:
            if i == 1:
                continue
            raise ValueError(i)
        except ValueError:
            pass
        finally:
            note(i)
            if i == 2:
                return "over"


@program(3)
def except_in_loop(n):
    out = []
    for i in range(n):
        try:
            out.append(10 // (i - 1))
        except ZeroDivisionError:
            out.append(None)
            continue
        finally:
            out.append("f")
    return out


@program(1)
def except_group(x):
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError as e:
        note(len(e.exceptions))
    except* TypeError:
        note("t")
    return x


@program([1])
def call_forms(a):
    r = [show(a, note(1), note(2), k=len([a]))]
    r.append(show(1, b=note(2), k=a, z=3))
    r.append(show(*[1, note(2)], **{"k": note(3)}))
    r.append(show(*a, 5, *(6, 7), q=1, **{"w": 2}))
    r.append("{}-{}".format(a, note("m")).upper())
    return r


@program()
def call_duplicate_keyword():
    try:
        show(**{"a": 1}, **{"a": note(2)})
    except TypeError as error:
        return str(error)


@program()
def call_star_bad():
    with contextlib.suppress(TypeError):
        show(1, *note(2))
    return 1


@program(1, 2, 3, 4, k=5, z=6)
def all_argument_kinds(a, b=1, *rest, k=2, m=7, **others):
    note((a, b, rest, k, m, others))
    del b
    try:
        return b  # noqa: F821
    except UnboundLocalError as error:
        return str(error)


@program(1)
def closure(a):
    z = a

    def increment():
        nonlocal z
        z += 1
        return z

    increment()
    y = note(10)
    increment()
    h = lambda q=y, *, r=2: (z, a, y, q, r)
    return h(), z, a, sorted(locals())


def make_free():
    w = 5
    late: int

    def inner(q: int, r=3):
        nonlocal w
        w += 1
        r = note(2)
        w += r
        note(sorted(locals().items()))
        try:
            late
        except NameError:  # the message differs in continuations: all their cells are own cells
            note("late")
        f = lambda: (w, q)  # noqa: F821
        del q
        try:
            f()
        except NameError as error:
            note(str(error))
        try:
            return q
        except NameError as error:
            note(str(error))
        return w

    def later():
        nonlocal late
        late = 1

    return inner


PROGRAMS["free_variables"] = (make_free, None, {})


@program(0)
@program(1)
def unbound(a):
    y = note(1)
    if a:
        q = 1
    try:
        return q
    except NameError as e:
        r = str(e)
    if not a:
        q2 = 5
    return r, y


@program(4)
def comprehensions(n):
    x = "keep"
    a = [x + 1 for x in range(n) if x != 1]
    b = {k: [j for j in range(k)] for k in range(n)}
    c = {k % 2 for k in a}
    d = [(y := 3), y * 2]
    fs = [lambda: (x, n, k) for k in range(n)]
    return a, b, c, d, x, [f() for f in fs]


@program(4, "given")
def comprehensions_with_one_name(n, z):
    a = [x for x in range(n)]
    fs = [lambda: (x, z) for x in range(n)]
    gs = [lambda: (z, y) for z in range(n) for y in range(z)]
    return a, [f() for f in fs], [g() for g in gs], z, [[x for x in range(x)] for x in a]


@program(0)
@program(1)
def comprehension_raises(n):
    kept = None
    if n:
        x = kept = "assigned"
    try:
        a = [(lambda: x, 6 // (2 - x)) for x in range(4)]
    except ZeroDivisionError as error:
        note(str(error))
        a = [kept]
    try:
        return a, [[note(x) for x in range(2) if x / 0] for y in a], x
    except ArithmeticError:
        note("again")
    return x


def make_comprehension_code():
    """The function behind a list comprehension, as the interpreter inlines it."""

    def outer(n):
        return [[x, y, n] for x in range(n) if x != 1 for y in range(x)]

    from types import FunctionType

    code = next((c for c in outer.__code__.co_consts if hasattr(c, "co_code")), None)
    if code is None:  # comprehensions are part of the function
        return lambda items: [[x, y, 3] for x in items if x != 1 for y in range(x)]
    closure = tuple(type(make_cell(3))(3) for _ in code.co_freevars)
    return FunctionType(code, globals(), "comp", None, closure)


def make_cell(value):
    return (lambda: value).__closure__[0]


PROGRAMS["comprehension_code"] = (make_comprehension_code, lambda: (iter(range(4)),), {})


@program(1)
def formatting(a):
    return f"{a!r:>5} {note(2):03d} {a} {'x'!s} {'é'!a}" + "%s" % a


@program(4)
@program(0)
def chained_comparison(a):
    return 1 < note(2) < a, (a or note("or")) and note("and"), not a, -a, +a, ~a, a is None


@program(4)
def subscripts(a):
    d = {}
    d["x"], d[note(1)] = a, a
    d["x"] += note(3)
    d["x"] -= 1
    del d[1]
    e = list(range(9))
    e[1:3] = [7]
    e[::2], f = [0] * len(e[::2]), e[-1:]
    first, *middle, last = e
    g = {**d, "k": 1}, {*e}, [*e, 1]
    return d, e, f, first, middle, last, 3 in e, 3 not in e, (1, 2) + (3,), g


@program()
def operators():
    a, b = 13, 3
    r = [a + b, a - b, a * b, a / b, a // b, a % b, a**b, a << b, a >> b, a & b, a | b, a ^ b]
    # fmt: off
    a += b; a -= 1; a *= b; a //= 2; a **= 2; a %= 97; a <<= 2; a >>= 1; a |= 5; a &= 63; a ^= 9  # noqa: E702
    # fmt: on
    r += [a, a < b, a <= b, a == b, a != b, a > b, a >= b, a is b, a is not b]
    a /= b
    return r, a


@dataclass
class Place:
    x: int
    y: int


@program({"k": [1, 2, 3]})
@program({"k": 1})
@program([1, 2])
@program(Place(1, 2))
@program(Place(3, 4))
@program(7)
@program("other")
def matching(a):
    match a:
        case {"k": [x, *r], **rest} if note(True):
            return x, r, rest
        case [p, q]:
            return p + q
        case Place(1, y=b):
            return b
        case Place(x=u, y=v):
            return u, v
        case int(n):
            return n
    return "none"


@program(1)
def global_missing(a):
    y = note(1)
    return undefined_name  # noqa: F821


@program(5)
def globals_store(a):
    global stored
    stored = a
    b = stored + 1
    del stored
    try:
        return stored
    except NameError as error:
        return str(error), b


@program(1)
def asserting(a):
    with contextlib.suppress(AssertionError):
        for i in range(3):
            assert i != note(1), "no"
            note(i)
    return i


@program(1)
def importing(a):
    import os.path as p
    from math import floor, pi

    try:
        from math import nothing_like_this
    except ImportError as e:
        return p.__name__, floor(pi), type(e).__name__
    return nothing_like_this


@program(Picky(0))
@program(Picky(1))
def attributes(p):
    a = p.method(1)
    b = p.thing
    p.x = 1
    del p.y
    try:
        p.no_such_method(2)
    except AttributeError as e:
        a += (str(e),)
    try:
        p.no_store = 3
    except AttributeError as e:
        a += (str(e),)
    try:
        c = p + 0
    except ZeroDivisionError as e:
        c = str(e)
    d = p + 3
    e = "yes" if p == 1 else "no"
    f = p and 1
    g = p or 2
    h = 1 if not p else 0
    i = None if p is None else 5
    j = i if i is not None else 6
    return a, b("q"), c, d, e, f is p, g is p, h, i, j


@program(Picky("bad"))
def truth_raises(p):
    out = []
    for _ in range(2):
        try:
            if p:
                out.append(1)
        except ArithmeticError as e:
            out.append(str(e))
        try:
            out.append(p or 1)
        except ArithmeticError as e:
            out.append(str(e))
        try:
            while not p:
                pass
        except ArithmeticError:
            out.append(sys.exc_info()[0])
    return out


@program(1)
def class_inside(a):
    class Inner(Manager):
        b = a

        def get(self):
            return super().__init__("q"), a, __class__.__name__

    return Inner("n").get(), Inner.b


class Base:
    def method(self, x):
        return ("base", x)


class Derived(Base):
    def method(self, x):
        y = note(1)
        note(sorted(k for k in locals()))
        return super().method(x + y)

    def method_with_cell(self, x):
        f = lambda: self
        z = super().method(x)
        return z, f() is self, __class__.__name__


PROGRAMS["super_call"] = (Derived.method, (Derived(), 2), {})
PROGRAMS["super_call_cell"] = (Derived.method_with_cell, (Derived(), 2), {})


@program(2)
def locals_seen(a):
    b = a + 1
    before = dict(locals())
    c = b
    del b
    for i in range(2):
        note(dict(locals()))
    try:
        raise ValueError
    except ValueError:
        note(sorted(locals()))
    return before, sorted(locals())


@program([1, 2, 3, 4, 5, 6])
def unpack_many(values):
    a, b, c, d, e, f = values
    first, *some, g, h, i, last = range(9)
    note((a, f, some))
    return b, c, d, e, first, g, h, i, last


for _name, _source in GENERATED.items():
    exec(compile(_source, __file__, "exec"), globals())
    PROGRAMS[_name] = (globals()[_name], (1,), {})


def load(name):
    """``(function, args, kwargs)`` of one program, with fresh state and an empty log."""
    function, args, kwargs = PROGRAMS[name]
    if function in (make_free, make_comprehension_code):
        function = function()
    if args is None:
        args = (9,)
    elif callable(args):
        args = args()
    elif isinstance(args, tuple) and len(args) == 1 and isinstance(args[0], (dict, list)):
        args = (type(args[0])(args[0]),)
    LOG.clear()
    return function, args, kwargs
