"""Graph breaks anywhere: results, state, output and exceptions are eager's; graphs are counted.

A ``print`` is the break in most programs. The numbers of graphs say that what comes before and
after a break is captured, and that a break costs one break.
"""

from __future__ import annotations

import contextlib

import pytest
import torch

import framejit
from checking import check

X = torch.arange(6.0).reshape(2, 3)
POSITIVE, NEGATIVE = torch.ones(3), -torch.ones(3)


# -- 1 plain code ----------------------------------------------------------------------------------


def p001_print(x):
    y = x + 1
    print("middle")
    return y * 2


def p002_two_prints(x):
    y = x + 1
    print("a")
    z = y * 2
    print("b")
    return z - y


def p003_print_of_tensor(x):
    y = x.sum()
    print(y)
    return x * y


def p004_branch(x):
    y = x + 1
    if y.sum() > 0:
        return y * 2
    return y - 2


def p005_branch_and_join(x):
    y = x + 1
    if y.sum() > 0:
        y = y * 2
    else:
        y = y - 2
    return y.relu()


def p006_item_branch(x):
    y = x * 3
    if y.sum().item() > 100:
        y = y + 1
    return y.abs()


def p007_partial_call_arguments(x):
    def three(a, b, c):
        return a * 2 + b + c

    return three(x + 1, print("argument") or x * 2, x - 3)


def p008_partial_call_method(x):
    return (x + 1).add(x * 2).mul(print("argument") or 3)


def p009_partial_call_keywords(x):
    return torch.clamp(x + 1, min=print("low") or 0, max=4) * 2


def p010_partial_display(x):
    return [x + 1, print("in display") or x * 2, {"k": x - 1, "l": print("in dict")}]


def p011_binary_operand_on_stack(x):
    return (x + 1) * ((print("b") or x) - 2)


def p012_chained_comparison(x):
    n = 3
    if 1 < n < (print("cmp") or 5):
        return x + n
    return x - n


def p013_subscript_store(x):
    box = {}
    box[print("key") or "a"] = x + 1
    return box["a"] * 2


def p014_fstring(x):
    y = x + 1
    print(f"{y.shape} {y.sum().item():.2f}")
    return y * 2


def p015_star_call(x):
    def total(*args, **kwargs):
        return sum(args) + kwargs["k"]

    args = [x + 1, x + 2]
    return total(*args, k=print("star") or x * 3)


def p016_return_of_break(x):
    y = x + 1
    return print(y.shape), y


def p017_conditional_expression(x):
    return (x + 1 if x.sum() > 0 else x - 1) * 2


def p018_and_or(x):
    y = x + 1
    return y * 2 if x.sum() > 0 and x.max() > 4 else y * 3


def p019_assert_data(x):
    y = x + 1
    assert y.sum() > -1000, "never"
    return y * 2


def p020_walrus(x):
    if (y := x + 1).sum() > (print("w") or 0):
        return y * 2
    return y


PLAIN = [
    (p001_print, 2, 2), (p002_two_prints, 3, 3), (p003_print_of_tensor, 2, 2),
    (p004_branch, 2, None), (p005_branch_and_join, 2, None), (p006_item_branch, 2, None),
    (p007_partial_call_arguments, 2, 6), (p008_partial_call_method, 2, 4),
    (p009_partial_call_keywords, 2, 3), (p010_partial_display, 2, 3),
    (p011_binary_operand_on_stack, 2, 3), (p012_chained_comparison, 1, 1),
    (p013_subscript_store, 2, 2), (p014_fstring, 2, None), (p015_star_call, 2, None),
    (p016_return_of_break, 1, 1), (p017_conditional_expression, 2, None),
    (p018_and_or, 3, None), (p019_assert_data, 1, 4), (p020_walrus, None, None),
]  # fmt: skip


# -- 2 loops ---------------------------------------------------------------------------------------


def l001_for_range(x):
    for i in range(3):
        x = x + i
        print(i)
        x = x * 2
    return x


def l002_for_list_of_tensors(x):
    for part in [x, x + 1, x + 2]:
        x = x + part
        print("part")
    return x * 2


def l003_while(x):
    n = 0
    while n < 3:
        x = x + 1
        print("round", n)
        n += 1
    return x * 2


def l004_while_data(x):
    n = 0
    while x.sum() < 40:
        x = x + 1
        n += 1
    return x * 2, n


def l005_for_else(x):
    for i in range(2):
        x = x + 1
        print(i)
    else:
        x = x * 10
    return x


def l006_for_break_continue(x):
    for i in range(5):
        if i == 1:
            continue
        if i == 3:
            break
        x = x + 1
        print(i)
    else:
        x = x * 100
    return x - 1


def l007_nested(x):
    for i in range(2):
        x = x + i
        for j in range(2):
            print(i, j)
            x = x * 2
    return x


def l008_data_branch(x):
    for i in range(4):
        x = x + 1
        if x.sum() > 15:
            x = x * 0.5
        x = x - 0.25
    return x


def l009_enumerate(x):
    out = []
    for i, row in enumerate(x):
        out.append(row + i)
        print(i)
    return out, x * 2


def l010_zip(x):
    out = []
    for a, b in zip([1, 2, 3], [x, x + 1, x + 2]):
        out.append(a * b)
        print(a)
    return out


def l011_reversed(x):
    for i in reversed([1, 2, 3]):
        x = x * i
        print(i)
    return x


def l012_dict_items(x):
    d = {"a": 1, "b": 2}
    for k, v in d.items():
        x = x + v
        print(k)
    return x * 2


def l013_map(x):
    for i in map(lambda n: n + 1, [1, 2]):
        x = x + i
        print(i)
    return x * 2


def l014_break_out_of_two(x):
    for i in range(3):
        for j in range(3):
            x = x + 1
            print(i, j)
            if j == 1:
                break
        if i == 1:
            break
    return x * 2


def l015_return_in_loop(x):
    for i in range(5):
        x = x + 1
        print(i)
        if i == 2:
            return x * 2
    return x


def l016_iterator_of_argument(x):
    items = [x, x + 1]
    for item in iter(items):
        print("i")
        items.append(item) if len(items) < 3 else None
    return items


LOOPS = [
    (l001_for_range, None), (l002_for_list_of_tensors, None), (l003_while, None),
    (l004_while_data, None), (l005_for_else, None), (l006_for_break_continue, None),
    (l007_nested, None), (l008_data_branch, None), (l009_enumerate, None), (l010_zip, None),
    (l011_reversed, None), (l012_dict_items, None), (l013_map, None),
    (l014_break_out_of_two, None), (l015_return_in_loop, None), (l016_iterator_of_argument, None),
]  # fmt: skip


# -- 3 try -----------------------------------------------------------------------------------------


def t001_body(x):
    y = x + 1
    try:
        y = y * 2
        print("body")
        y = y + 3
    except ValueError:
        y = y - 1
    return y.relu()


def t002_handler(x):
    y = x + 1
    try:
        y = y * 2
        raise ValueError("v")
    except ValueError as error:
        y = y + 3
        print("handler", error)
        y = y * 4
    return y.relu()


def t003_else(x):
    try:
        y = x + 1
    except ValueError:
        y = x
    else:
        y = y * 2
        print("else")
        y = y * 3
    return y + 1


def t004_finally(x):
    try:
        y = x + 1
    finally:
        z = x * 2
        print("finally")
        z = z * 3
    return y + z


def t005_body_with_finally(x):
    try:
        y = x + 1
        print("body")
        y = y * 2
    finally:
        z = x * 3
    return y + z


def t006_return_in_finally(x):
    try:
        y = x + 1
        print("body")
        raise KeyError("lost")
    finally:
        return y * 2


def t007_nested(x):
    try:
        try:
            y = x + 1
            print("inner")
            raise KeyError("k")
        except ValueError:
            y = x
        finally:
            print("inner finally")
            y = y * 2
    except KeyError as error:
        print("outer", error)
        y = y + 5
    return y * 3


def t008_broken_operation_raises(x):
    y = x + 1
    try:
        y = y * 2
        int(print("text") or "abc")
        y = y * 100
    except ValueError as error:
        print(type(error).__name__)
        y = y + 3
    return y * 2


def t009_reraise(x):
    y = x + 1
    try:
        try:
            print("in")
            raise ValueError("v")
        except ValueError:
            print("handler")
            y = y * 2
            raise
    except ValueError as error:
        y = y + 1
        print(error.args)
    return y * 3


def t010_reraise_leaves(x):
    y = x + 1
    try:
        print("in", y.shape)
        raise ValueError("v")
    except ValueError:
        print("handler")
        raise


def t011_raise_from(x):
    y = x + 1
    try:
        print("in")
        raise ValueError("v")
    except ValueError as error:
        print("handler", y.shape)
        raise KeyError("k") from error


def t012_context(x):
    try:
        raise ValueError("first")
    except ValueError:
        print("handler")
        try:
            raise KeyError("second")
        except KeyError as error:
            print(repr(error.__context__))
            x = x + 1
    return x * 2


def t013_handled_inside_loop(x):
    for i in range(3):
        try:
            x = x + 1
            if i == 1:
                raise ValueError(i)
            print("ok", i)
        except ValueError as error:
            print("bad", error)
            x = x * 2
        finally:
            x = x - 0.5
    return x


def t014_break_in_finally_loop(x):
    for i in range(3):
        try:
            x = x + 1
            print(i)
            if i == 1:
                break
            continue
        finally:
            x = x * 2
            print("finally", i)
    return x


def t015_return_through_finally(x):
    log = []

    def inner(x):
        try:
            print("body")
            return x + 1
        finally:
            log.append("f")
            print("finally")

    y = inner(x * 2)
    return y * 2, log


def t016_uncaught_after_prefix(x):
    y = x + 1
    print(y.shape)
    y = y * 2
    raise RuntimeError("after")


def t017_raise_caught_by_caller(x):
    def inner(x):
        y = x + 1
        print("inner")
        raise ValueError("inner", 1)

    try:
        inner(x * 2)
    except ValueError as error:
        print("caller")
        return x * 3, error.args
    return x


def t018_handler_calls_that_break(x):
    def log(text):
        print("log", text)
        return 2

    try:
        raise ValueError("v")
    except ValueError as error:
        y = x * log(error)
    return y + 1


def t019_exception_across_break(x):
    try:
        raise ValueError("kept", x + 1)
    except ValueError as error:
        kept = error
    print("between")
    return kept.args[1] * 2


def t020_operation_error_caught(x):
    y = x + 1
    try:
        y = y @ torch.ones(7, 7)
    except RuntimeError:
        print("shapes")
        y = y * 2
    return y + 1


def t021_finally_after_error_of_broken_operation(x):
    y = x * 2
    try:
        try:
            y = y + 1
            int(print() or "abc")
        finally:
            y = y * 2
            print("finally")
    except ValueError:
        y = y - 1
    return y * 3


def t022_bare_raise_in_called_function(x):
    def again():
        print("again")
        raise

    try:
        try:
            x = x + 1
            raise KeyError("k")
        except KeyError:
            again()
    except KeyError as error:
        print(error)
    return x * 2


def t023_exc_info(x):
    import sys

    try:
        raise KeyError("k")
    except KeyError:
        print("h")
        kind = sys.exc_info()[0]
        x = x + 1
    return x, kind


TRY = [
    (t001_body, 2), (t002_handler, 2), (t003_else, 2), (t004_finally, 2),
    (t005_body_with_finally, 2), (t006_return_in_finally, 2), (t007_nested, None),
    (t008_broken_operation_raises, None), (t009_reraise, None), (t010_reraise_leaves, None),
    (t011_raise_from, None), (t012_context, None), (t013_handled_inside_loop, None),
    (t014_break_in_finally_loop, None), (t015_return_through_finally, None),
    (t016_uncaught_after_prefix, None), (t017_raise_caught_by_caller, None),
    (t018_handler_calls_that_break, None), (t019_exception_across_break, 2),
    (t020_operation_error_caught, None), (t021_finally_after_error_of_broken_operation, None),
    (t022_bare_raise_in_called_function, None), (t023_exc_info, None),
]  # fmt: skip


# -- 4 with ----------------------------------------------------------------------------------------


class Ctx:
    def __init__(self, swallow=False):
        self.log = []
        self.swallow = swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, error, traceback):
        self.log.append(("exit", None if kind is None else kind.__name__))
        return self.swallow


@contextlib.contextmanager
def printing(name):
    print("enter", name)
    try:
        yield name
    finally:
        print("leave", name)


@contextlib.contextmanager
def quiet(log):
    log.append("enter")
    try:
        yield log
    finally:
        log.append("leave")


def w001_plain(x):
    y = x + 1
    with Ctx():
        y = y * 2
        print("body")
        y = y + 3
    return y.relu()


def w002_log(x):
    with Ctx() as ctx:
        x = x * 2
        print("body", ctx.log)
        x = x + 3
    return x, ctx.log


def w003_swallows(x):
    with Ctx(swallow=True) as ctx:
        x = x * 2
        print("body")
        raise ValueError("swallowed")
    return x + 1, ctx.log


def w004_broken_operation_swallowed(x):
    with Ctx(swallow=True) as ctx:
        x = x * 2
        int(print() or "abc")
        x = x * 100
    return x + 1, ctx.log


def w005_exception_leaves(x):
    with Ctx():
        x = x * 2
        print("body")
        raise ValueError("leaves")


def w006_contextmanager(x):
    y = x + 1
    with printing("p") as name:
        y = y * 2
        print("body", name)
    return y + 1


def w007_quiet_contextmanager(x):
    log = []
    with quiet(log):
        x = x * 2
        print("body", log)
        x = x + 1
    return x, log


def w008_no_grad(x):
    with torch.no_grad():
        y = x + 1
        print(torch.is_grad_enabled())
        z = y * 2
    print(torch.is_grad_enabled())
    return z + 1, torch.is_grad_enabled()


def w009_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.T
        print(torch.is_autocast_enabled("cpu"))
        z = y @ y
    return z, torch.is_autocast_enabled("cpu")


def w010_nested(x):
    with Ctx() as a, Ctx(swallow=True) as b:
        x = x + 1
        with torch.no_grad():
            print("deep")
            x = x * 2
            raise ValueError
    return x * 3, a.log, b.log


def w011_return_inside(x):
    with torch.no_grad(), Ctx():
        y = x * 2
        print("body")
        return y + 1


def w012_suppress(x):
    with contextlib.suppress(ValueError):
        x = x + 1
        print("body")
        raise ValueError
    return x * 2


def w013_exit_prints(x):
    class Printing:
        def __enter__(self):
            print("enter")
            return self

        def __exit__(self, *error):
            print("exit", error[0])

    with Printing():
        x = x + 1
    return x * 2


def w014_error_in_no_grad(x):
    try:
        with torch.no_grad():
            x = x + 1
            print("in")
            raise ValueError
    except ValueError:
        pass
    return x * 2, torch.is_grad_enabled()


def w015_set_grad_enabled(x):
    torch.set_grad_enabled(False)
    print(torch.is_grad_enabled())
    y = x * 2
    torch.set_grad_enabled(True)
    print(torch.is_grad_enabled())
    return y + 1


def w016_exit_stack(x):
    with contextlib.ExitStack() as stack:
        ctx = stack.enter_context(Ctx())
        x = x + 1
        print("body")
        x = x * 2
    return x, ctx.log


def w017_loop_of_with(x):
    for i in range(3):
        with Ctx(swallow=True):
            x = x + 1
            print(i)
            if i == 1:
                raise ValueError
            x = x * 2
    return x


WITH = [
    (w001_plain, 2), (w002_log, 2), (w003_swallows, None),
    (w004_broken_operation_swallowed, None), (w005_exception_leaves, None),
    (w006_contextmanager, None), (w007_quiet_contextmanager, None), (w008_no_grad, 3),
    (w009_autocast, 2), (w010_nested, None), (w011_return_inside, 2), (w012_suppress, None),
    (w013_exit_prints, 2), (w014_error_in_no_grad, None), (w015_set_grad_enabled, None),
    (w016_exit_stack, None), (w017_loop_of_with, None),
]  # fmt: skip


# -- 5 calls ---------------------------------------------------------------------------------------


def c001_three_deep(x):
    def third(x):
        y = x + 3
        print("deep")
        return y * 3

    def second(x):
        return third(x + 2) * 2

    def first(x):
        return second(x + 1) - 1

    return first(x * 5) / 2


class Box:
    def __init__(self, x):
        self.before = x + 1
        print("init")
        self.after = x * 2

    @property
    def value(self):
        y = self.before * 2
        print("property")
        return y + self.after

    def method(self, k=1):
        y = self.before + k
        print("method", k)
        self.after = y
        return y * 2

    def __call__(self, x):
        print("call")
        return x + self.after

    def __add__(self, other):
        y = other * 2
        print("add")
        return y + self.after

    def __getitem__(self, key):
        y = self.before * 2
        print("item")
        return y[key]

    def __len__(self):
        print("len")
        return 3

    def __bool__(self):
        print("bool")
        return True

    def __eq__(self, other):
        print("eq")
        return True

    def __contains__(self, item):
        print("contains")
        return True

    @classmethod
    def make(cls, x):
        y = x - 1
        print("make", cls.__name__)
        return cls(y)


def c002_init(x):
    box = Box(x * 3)
    return box.before + box.after


def c003_property(x):
    box = Box(x)
    return box.value * 2


def c004_method(x):
    box = Box(x)
    return box.method(k=3) * 2, box.after


def c005_call(x):
    return Box(x)(x * 2) + 1


def c006_operator(x):
    return (Box(x) + (x * 2)) * 3


def c007_getitem(x):
    return Box(x)[0] * 3


def c008_len(x):
    return x * len(Box(x))


def c009_bool(x):
    if Box(x):
        return x + 1
    return x - 1


def c010_contains(x):
    return x + 1 if 3 in Box(x) else x


def c011_classmethod(x):
    return Box.make(x + 1).after * 2


def c012_nonlocal(x):
    count = 0

    def step(y):
        nonlocal count
        count += 1
        z = y + count
        print("count", count)
        count += 10
        return z * count

    a = step(x)
    b = step(a)
    return b, count


def c013_comprehension(x):
    return [x * i + (print(i) or 1) for i in range(3)], x + 1


def c014_comprehension_with_tensor_condition(x):
    return [row * 2 for row in x if row.sum() > 4]


def c015_dict_comprehension(x):
    y = x + 1
    return {i: y * i for i in range(3) if print(i) is None}


def c016_nested_comprehension(x):
    return [[x + i + j + (print(i, j) or 0) for j in range(2)] for i in range(2)]


def c017_generator_expression(x):
    return sum(x * i + (print(i) or 0) for i in range(3))


def c018_lambda(x):
    show = lambda t: print("lambda") or t * 2  # noqa: E731
    return show(x + 1) + 1


def c019_recursion(x):
    def down(x, n):
        if n == 0:
            print("bottom")
            return x * 2
        return down(x + n, n - 1) + 1

    return down(x, 4)


def c020_sorted_key(x):
    def key(n):
        print("key", n)
        return -n

    return x * sorted([1, 3, 2], key=key)[0]


class Noisy:
    def __setattr__(self, name, value):
        print("set", name)
        object.__setattr__(self, name, value * 2)


def c021_setattr(x):
    noisy = Noisy()
    noisy.v = x + 1
    return noisy.v - 1


def c022_getattr(x):
    class Virtual:
        def __getattr__(self, name):
            print("get", name)
            return x * 2

    return Virtual().thing + 1


def c023_decorated(x):
    def logged(function):
        def wrapper(*args, **kwargs):
            print("before")
            result = function(*args, **kwargs)
            print("after")
            return result

        return wrapper

    @logged
    def work(x, k=1):
        return x * 2 + k

    return work(x + 1, k=3) - 1


class Base:
    def __init__(self, x):
        self.base = x + 1
        print("base init")

    def f(self):
        print("base f")
        return self.base * 2


class Derived(Base):
    def __init__(self, x):
        super().__init__(x * 2)
        self.derived = x * 3

    def f(self):
        return super().f() + self.derived


def c024_super(x):
    return Derived(x).f() * 2


class Three:
    def __init__(self):
        self.n = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 3:
            raise StopIteration
        self.n += 1
        print("next", self.n)
        return self.n


def c025_iter_protocol(x):
    for i in Three():
        x = x + i
    return x * 2


def c026_generator(x):
    def gen(x):
        for i in range(3):
            y = x + i
            print("yield", i)
            yield y

    total = x
    for part in gen(x):
        total = total * part
    return total + 1


def c027_generator_consumed_across(x):
    def gen():
        for i in range(4):
            yield x + i

    g = gen()
    a = next(g)
    print("between")
    b = next(g)
    print("between")
    return a * b, list(g)


def c028_yield_from(x):
    def inner():
        yield x + 1
        print("inner")
        yield x + 2

    def outer():
        yield x
        yield from inner()

    return [y * 2 for y in outer()]


CALLS = [
    (c001_three_deep, 2), (c002_init, 2), (c003_property, 3), (c004_method, 3), (c005_call, 3),
    (c006_operator, 3), (c007_getitem, 3), (c008_len, None), (c009_bool, None),
    (c010_contains, None), (c011_classmethod, None), (c012_nonlocal, None),
    (c013_comprehension, None), (c014_comprehension_with_tensor_condition, None),
    (c015_dict_comprehension, None), (c016_nested_comprehension, None),
    (c017_generator_expression, None), (c018_lambda, 2), (c019_recursion, 2),
    (c020_sorted_key, 1), (c021_setattr, 3), (c022_getattr, None), (c023_decorated, None),
    (c024_super, None), (c025_iter_protocol, None), (c026_generator, None),
    (c027_generator_consumed_across, None), (c028_yield_from, None),
]  # fmt: skip


def ids(cases):
    return [case[0].__name__ for case in cases]


@pytest.mark.parametrize("function, graphs, ops", PLAIN, ids=ids(PLAIN))
def test_plain(function, graphs, ops):
    check(function, X, graphs=graphs, ops=ops)


@pytest.mark.parametrize(
    "function, graphs", LOOPS + TRY + WITH + CALLS, ids=ids(LOOPS + TRY + WITH + CALLS)
)
def test_program(function, graphs):
    check(function, X, graphs=graphs)
    skipped = dict(framejit.counters["skipped"])
    skipped.pop("it runs no PyTorch operation", None)  # called by an operation that broke
    assert not skipped


@pytest.mark.parametrize(
    "function, graphs", LOOPS + TRY + WITH + CALLS, ids=ids(LOOPS + TRY + WITH + CALLS)
)
def test_program_with_gradients(function, graphs):
    """The same where every operation is recorded by autograd."""
    check(function, X.clone().requires_grad_())
