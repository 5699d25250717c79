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


def print_between_two_operations(x):
    y = x + 1
    print("middle")
    return y * 2


def two_prints_between_operations(x):
    y = x + 1
    print("a")
    z = y * 2
    print("b")
    return z - y


def print_of_a_tensor(x):
    y = x.sum()
    print(y)
    return x * y


def branch_on_data_that_returns(x):
    y = x + 1
    if y.sum() > 0:
        return y * 2
    return y - 2


def branch_on_data_that_joins(x):
    y = x + 1
    if y.sum() > 0:
        y = y * 2
    else:
        y = y - 2
    return y.relu()


def branch_on_an_item(x):
    y = x * 3
    if y.sum().item() > 100:
        y = y + 1
    return y.abs()


def break_among_arguments(x):
    def three(a, b, c):
        return a * 2 + b + c

    return three(x + 1, print("argument") or x * 2, x - 3)


def break_among_arguments_of_a_method(x):
    return (x + 1).add(x * 2).mul(print("argument") or 3)


def break_among_keyword_arguments(x):
    return torch.clamp(x + 1, min=print("low") or 0, max=4) * 2


def break_inside_displays(x):
    return [x + 1, print("in display") or x * 2, {"k": x - 1, "l": print("in dict")}]


def break_in_the_second_operand(x):
    return (x + 1) * ((print("b") or x) - 2)


def break_in_a_chained_comparison(x):
    n = 3
    if 1 < n < (print("cmp") or 5):
        return x + n
    return x - n


def break_in_the_key_of_a_store(x):
    box = {}
    box[print("key") or "a"] = x + 1
    return box["a"] * 2


def item_in_an_f_string(x):
    y = x + 1
    print(f"{y.shape} {y.sum().item():.2f}")
    return y * 2


def break_in_a_call_with_stars(x):
    def total(*args, **kwargs):
        return sum(args) + kwargs["k"]

    args = [x + 1, x + 2]
    return total(*args, k=print("star") or x * 3)


def result_of_a_break_is_returned(x):
    y = x + 1
    return print(y.shape), y


def conditional_expression_on_data(x):
    return (x + 1 if x.sum() > 0 else x - 1) * 2


def and_of_two_conditions_on_data(x):
    y = x + 1
    return y * 2 if x.sum() > 0 and x.max() > 4 else y * 3


def assert_about_data(x):
    y = x + 1
    assert y.sum() > -1000, "never"
    return y * 2


def break_beside_an_assignment_expression(x):
    if (y := x + 1).sum() > (print("w") or 0):
        return y * 2
    return y


PLAIN = [
    (print_between_two_operations, 2, 2), (two_prints_between_operations, 3, 3),
    (print_of_a_tensor, 2, 2), (branch_on_data_that_returns, 2, 4),
    (branch_on_data_that_joins, 2, 5), (branch_on_an_item, 2, 3), (break_among_arguments, 2, 6),
    (break_among_arguments_of_a_method, 2, 4), (break_among_keyword_arguments, 2, 3),
    (break_inside_displays, 2, 3), (break_in_the_second_operand, 2, 3),
    (break_in_a_chained_comparison, 1, 1), (break_in_the_key_of_a_store, 2, 2),
    (item_in_an_f_string, 2, 3), (break_in_a_call_with_stars, 2, 6),
    (result_of_a_break_is_returned, 1, 1), (conditional_expression_on_data, 2, 4),
    (and_of_two_conditions_on_data, 3, 6), (assert_about_data, 1, 4),
    (break_beside_an_assignment_expression, 3, 4),
]  # fmt: skip


# -- 2 loops ---------------------------------------------------------------------------------------


def for_over_a_range(x):
    for i in range(3):
        x = x + i
        print(i)
        x = x * 2
    return x


def for_over_a_list_of_tensors(x):
    for part in [x, x + 1, x + 2]:
        x = x + part
        print("part")
    return x * 2


def while_that_counts(x):
    n = 0
    while n < 3:
        x = x + 1
        print("round", n)
        n += 1
    return x * 2


def while_about_data(x):
    n = 0
    while x.sum() < 40:
        x = x + 1
        n += 1
    return x * 2, n


def for_with_else(x):
    for i in range(2):
        x = x + 1
        print(i)
    else:
        x = x * 10
    return x


def for_with_continue_and_break(x):
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


def loop_in_a_loop(x):
    for i in range(2):
        x = x + i
        for j in range(2):
            print(i, j)
            x = x * 2
    return x


def branch_on_data_in_a_loop(x):
    for i in range(4):
        x = x + 1
        if x.sum() > 15:
            x = x * 0.5
        x = x - 0.25
    return x


def for_over_enumerate(x):
    out = []
    for i, row in enumerate(x):
        out.append(row + i)
        print(i)
    return out, x * 2


def for_over_zip(x):
    out = []
    for a, b in zip([1, 2, 3], [x, x + 1, x + 2]):
        out.append(a * b)
        print(a)
    return out


def for_over_reversed(x):
    for i in reversed([1, 2, 3]):
        x = x * i
        print(i)
    return x


def for_over_items_of_a_dict(x):
    d = {"a": 1, "b": 2}
    for k, v in d.items():
        x = x + v
        print(k)
    return x * 2


def for_over_map(x):
    for i in map(lambda n: n + 1, [1, 2]):
        x = x + i
        print(i)
    return x * 2


def out_of_two_loops(x):
    for i in range(3):
        for j in range(3):
            x = x + 1
            print(i, j)
            if j == 1:
                break
        if i == 1:
            break
    return x * 2


def return_from_a_loop(x):
    for i in range(5):
        x = x + 1
        print(i)
        if i == 2:
            return x * 2
    return x


def list_that_grows_under_its_iterator(x):
    items = [x, x + 1]
    for item in iter(items):
        print("i")
        items.append(item) if len(items) < 3 else None
    return items


LOOPS = [
    (for_over_a_range, 4, 6), (for_over_a_list_of_tensors, 3, 5), (while_that_counts, 4, 4),
    (while_about_data, 4, 9), (for_with_else, 3, 3), (for_with_continue_and_break, 3, 3),
    (loop_in_a_loop, 4, 5), (branch_on_data_in_a_loop, 4, 13), (for_over_enumerate, 3, 6),
    (for_over_zip, 3, 5), (for_over_reversed, 3, 3), (for_over_items_of_a_dict, 3, 3),
    (for_over_map, 3, 3), (out_of_two_loops, 4, 4), (return_from_a_loop, 4, 4),
    (list_that_grows_under_its_iterator, 1, 1),
]  # fmt: skip


# -- 3 try -----------------------------------------------------------------------------------------


def print_in_try(x):
    y = x + 1
    try:
        y = y * 2
        print("body")
        y = y + 3
    except ValueError:
        y = y - 1
    return y.relu()


def print_in_except(x):
    y = x + 1
    try:
        y = y * 2
        raise ValueError("v")
    except ValueError as error:
        y = y + 3
        print("handler", error)
        y = y * 4
    return y.relu()


def print_in_else_of_try(x):
    try:
        y = x + 1
    except ValueError:
        y = x
    else:
        y = y * 2
        print("else")
        y = y * 3
    return y + 1


def print_in_finally(x):
    try:
        y = x + 1
    finally:
        z = x * 2
        print("finally")
        z = z * 3
    return y + z


def print_in_try_before_finally(x):
    try:
        y = x + 1
        print("body")
        y = y * 2
    finally:
        z = x * 3
    return y + z


def return_in_finally(x):
    try:
        y = x + 1
        print("body")
        raise KeyError("lost")
    finally:
        return y * 2


def try_in_try(x):
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


def broken_operation_raises(x):
    y = x + 1
    try:
        y = y * 2
        int(print("text") or "abc")
        y = y * 100
    except ValueError as error:
        print(type(error).__name__)
        y = y + 3
    return y * 2


def raised_again_and_caught(x):
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


def raised_again_and_leaves(x):
    y = x + 1
    try:
        print("in", y.shape)
        raise ValueError("v")
    except ValueError:
        print("handler")
        raise


def raise_from_after_a_break(x):
    y = x + 1
    try:
        print("in")
        raise ValueError("v")
    except ValueError as error:
        print("handler", y.shape)
        raise KeyError("k") from error


def context_of_an_error_after_a_break(x):
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


def try_in_a_loop(x):
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


def break_statement_through_finally(x):
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


def return_through_finally(x):
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


def error_after_a_break_leaves(x):
    y = x + 1
    print(y.shape)
    y = y * 2
    raise RuntimeError("after")


def error_of_a_callee_is_caught(x):
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


def handler_calls_what_breaks(x):
    def log(text):
        print("log", text)
        return 2

    try:
        raise ValueError("v")
    except ValueError as error:
        y = x * log(error)
    return y + 1


def error_kept_over_a_break(x):
    try:
        raise ValueError("kept", x + 1)
    except ValueError as error:
        kept = error
    print("between")
    return kept.args[1] * 2


def error_of_an_operation_is_caught(x):
    y = x + 1
    try:
        y = y @ torch.ones(7, 7)
    except RuntimeError:
        print("shapes")
        y = y * 2
    return y + 1


def finally_after_the_error_of_a_broken_operation(x):
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


def bare_raise_in_a_callee(x):
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


def exc_info_after_a_break(x):
    import sys

    try:
        raise KeyError("k")
    except KeyError:
        print("h")
        kind = sys.exc_info()[0]
        x = x + 1
    return x, kind


TRY = [
    (print_in_try, 2, 4), (print_in_except, 2, 5), (print_in_else_of_try, 2, 4),
    (print_in_finally, 2, 4), (print_in_try_before_finally, 2, 4), (return_in_finally, 2, 2),
    (try_in_try, 3, 4), (broken_operation_raises, 2, 4), (raised_again_and_caught, 3, 4),
    (raised_again_and_leaves, 1, 1), (raise_from_after_a_break, 1, 1),
    (context_of_an_error_after_a_break, 1, 2), (try_in_a_loop, 4, 7),
    (break_statement_through_finally, 4, 4), (return_through_finally, 3, 3),
    (error_after_a_break_leaves, 2, 2), (error_of_a_callee_is_caught, 2, 3),
    (handler_calls_what_breaks, 1, 2), (error_kept_over_a_break, 2, 2),
    (error_of_an_operation_is_caught, 2, 4), (finally_after_the_error_of_a_broken_operation, 3, 5),
    (bare_raise_in_a_callee, 2, 2), (exc_info_after_a_break, 1, 1),
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


def print_in_with(x):
    y = x + 1
    with Ctx():
        y = y * 2
        print("body")
        y = y + 3
    return y.relu()


def print_of_what_with_returns(x):
    with Ctx() as ctx:
        x = x * 2
        print("body", ctx.log)
        x = x + 3
    return x, ctx.log


def with_swallows_an_error(x):
    with Ctx(swallow=True) as ctx:
        x = x * 2
        print("body")
        raise ValueError("swallowed")
    return x + 1, ctx.log


def with_swallows_the_error_of_a_broken_operation(x):
    with Ctx(swallow=True) as ctx:
        x = x * 2
        int(print() or "abc")
        x = x * 100
    return x + 1, ctx.log


def error_leaves_with(x):
    with Ctx():
        x = x * 2
        print("body")
        raise ValueError("leaves")


def generator_manager_that_prints(x):
    y = x + 1
    with printing("p") as name:
        y = y * 2
        print("body", name)
    return y + 1


def generator_manager_that_is_quiet(x):
    log = []
    with quiet(log):
        x = x * 2
        print("body", log)
        x = x + 1
    return x, log


def print_in_no_grad(x):
    with torch.no_grad():
        y = x + 1
        print(torch.is_grad_enabled())
        z = y * 2
    print(torch.is_grad_enabled())
    return z + 1, torch.is_grad_enabled()


def print_in_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.T
        print(torch.is_autocast_enabled("cpu"))
        z = y @ y
    return z, torch.is_autocast_enabled("cpu")


def with_in_with(x):
    with Ctx() as a, Ctx(swallow=True) as b:
        x = x + 1
        with torch.no_grad():
            print("deep")
            x = x * 2
            raise ValueError
    return x * 3, a.log, b.log


def return_from_with(x):
    with torch.no_grad(), Ctx():
        y = x * 2
        print("body")
        return y + 1


def error_that_suppress_swallows(x):
    with contextlib.suppress(ValueError):
        x = x + 1
        print("body")
        raise ValueError
    return x * 2


def exit_that_prints(x):
    class Printing:
        def __enter__(self):
            print("enter")
            return self

        def __exit__(self, *error):
            print("exit", error[0])

    with Printing():
        x = x + 1
    return x * 2


def error_in_no_grad(x):
    try:
        with torch.no_grad():
            x = x + 1
            print("in")
            raise ValueError
    except ValueError:
        pass
    return x * 2, torch.is_grad_enabled()


def prints_between_set_grad_enabled(x):
    torch.set_grad_enabled(False)
    print(torch.is_grad_enabled())
    y = x * 2
    torch.set_grad_enabled(True)
    print(torch.is_grad_enabled())
    return y + 1


def print_under_an_exit_stack(x):
    with contextlib.ExitStack() as stack:
        ctx = stack.enter_context(Ctx())
        x = x + 1
        print("body")
        x = x * 2
    return x, ctx.log


def with_in_a_loop(x):
    for i in range(3):
        with Ctx(swallow=True):
            x = x + 1
            print(i)
            if i == 1:
                raise ValueError
            x = x * 2
    return x


WITH = [
    (print_in_with, 2, 4), (print_of_what_with_returns, 2, 2), (with_swallows_an_error, 2, 2),
    (with_swallows_the_error_of_a_broken_operation, 2, 2), (error_leaves_with, 1, 1),
    (generator_manager_that_prints, 3, 3), (generator_manager_that_is_quiet, 2, 2),
    (print_in_no_grad, 3, 5), (print_in_autocast, 2, 5), (with_in_with, 2, 5),
    (return_from_with, 2, 4), (error_that_suppress_swallows, 2, 2), (exit_that_prints, 2, 2),
    (error_in_no_grad, 2, 4), (prints_between_set_grad_enabled, 2, 3),
    (print_under_an_exit_stack, 2, 2), (with_in_a_loop, 4, 5),
]  # fmt: skip


# -- 5 calls ---------------------------------------------------------------------------------------


def print_three_calls_deep(x):
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


def print_in_init(x):
    box = Box(x * 3)
    return box.before + box.after


def print_in_a_property(x):
    box = Box(x)
    return box.value * 2


def print_in_a_method(x):
    box = Box(x)
    return box.method(k=3) * 2, box.after


def print_in_dunder_call(x):
    return Box(x)(x * 2) + 1


def print_in_an_operator(x):
    return (Box(x) + (x * 2)) * 3


def print_in_getitem(x):
    return Box(x)[0] * 3


def print_in_len(x):
    return x * len(Box(x))


def print_in_bool(x):
    if Box(x):
        return x + 1
    return x - 1


def print_in_contains(x):
    return x + 1 if 3 in Box(x) else x


def print_in_a_classmethod(x):
    return Box.make(x + 1).after * 2


def print_between_writes_of_a_nonlocal(x):
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


def print_in_a_list_comprehension(x):
    return [x * i + (print(i) or 1) for i in range(3)], x + 1


def comprehension_with_a_condition_on_data(x):
    return [row * 2 for row in x if row.sum() > 4]


def print_in_a_dict_comprehension(x):
    y = x + 1
    return {i: y * i for i in range(3) if print(i) is None}


def print_in_a_nested_comprehension(x):
    return [[x + i + j + (print(i, j) or 0) for j in range(2)] for i in range(2)]


def print_in_a_generator_expression(x):
    return sum(x * i + (print(i) or 0) for i in range(3))


def print_in_a_lambda(x):
    show = lambda t: print("lambda") or t * 2  # noqa: E731
    return show(x + 1) + 1


def print_at_the_bottom_of_a_recursion(x):
    def down(x, n):
        if n == 0:
            print("bottom")
            return x * 2
        return down(x + n, n - 1) + 1

    return down(x, 4)


def print_in_a_key_of_sorted(x):
    def key(n):
        print("key", n)
        return -n

    return x * sorted([1, 3, 2], key=key)[0]


class Noisy:
    def __setattr__(self, name, value):
        print("set", name)
        object.__setattr__(self, name, value * 2)


def print_in_setattr(x):
    noisy = Noisy()
    noisy.v = x + 1
    return noisy.v - 1


def print_in_getattr(x):
    class Virtual:
        def __getattr__(self, name):
            print("get", name)
            return x * 2

    return Virtual().thing + 1


def print_in_a_decorator(x):
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


def print_around_super(x):
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


def print_in_dunder_next(x):
    for i in Three():
        x = x + i
    return x * 2


def print_in_a_generator(x):
    def gen(x):
        for i in range(3):
            y = x + i
            print("yield", i)
            yield y

    total = x
    for part in gen(x):
        total = total * part
    return total + 1


def prints_between_steps_of_a_generator(x):
    def gen():
        for i in range(4):
            yield x + i

    g = gen()
    a = next(g)
    print("between")
    b = next(g)
    print("between")
    return a * b, list(g)


def print_under_yield_from(x):
    def inner():
        yield x + 1
        print("inner")
        yield x + 2

    def outer():
        yield x
        yield from inner()

    return [y * 2 for y in outer()]


CALLS = [
    (print_three_calls_deep, 2, 8), (print_in_init, 2, 4), (print_in_a_property, 3, 5),
    (print_in_a_method, 3, 5), (print_in_dunder_call, 3, 5), (print_in_an_operator, 3, 6),
    (print_in_getitem, 3, 5), (print_in_len, 3, 3), (print_in_bool, 3, 3),
    (print_in_contains, 3, 3), (print_in_a_classmethod, 3, 5),
    (print_between_writes_of_a_nonlocal, 3, 4), (print_in_a_list_comprehension, 4, 7),
    (comprehension_with_a_condition_on_data, 3, 8), (print_in_a_dict_comprehension, 4, 4),
    (print_in_a_nested_comprehension, 5, 12), (print_in_a_generator_expression, 0, 0),
    (print_in_a_lambda, 2, 3), (print_at_the_bottom_of_a_recursion, 2, 9),
    (print_in_a_key_of_sorted, 1, 1), (print_in_setattr, 3, 3), (print_in_getattr, 2, 2),
    (print_in_a_decorator, 3, 4), (print_around_super, 3, 6), (print_in_dunder_next, 3, 3),
    (print_in_a_generator, 2, 2), (prints_between_steps_of_a_generator, 2, 2),
    (print_under_yield_from, 2, 4),
]  # fmt: skip


def ids(cases):
    return [case[0].__name__ for case in cases]


@pytest.mark.parametrize("function, graphs, ops", PLAIN, ids=ids(PLAIN))
def test_plain(function, graphs, ops):
    check(function, X, graphs=graphs, ops=ops)


@pytest.mark.parametrize(
    "function, graphs, ops", LOOPS + TRY + WITH + CALLS, ids=ids(LOOPS + TRY + WITH + CALLS)
)
def test_program(function, graphs, ops):
    check(function, X, graphs=graphs, ops=ops)
    skipped = dict(framejit.counters["skipped"])
    skipped.pop("it runs no PyTorch operation", None)  # called by an operation that broke
    assert not skipped


@pytest.mark.parametrize(
    "function, graphs, ops", LOOPS + TRY + WITH + CALLS, ids=ids(LOOPS + TRY + WITH + CALLS)
)
def test_program_with_gradients(function, graphs, ops):
    """The same where every operation is recorded by autograd."""
    check(function, X.clone().requires_grad_(), graphs=graphs, ops=ops)
