"""Sixty small programs whose inputs change their sizes.

Each is a function and a maker of its inputs from two sizes. `test_programs` compares with eager at
random sizes; `docs/shapes.md` lists the guards that each one gets.
"""

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F


class Program(NamedTuple):
    function: Any
    make: Any


PROGRAMS: dict[str, Program] = {}


def program(make):
    def register(function):
        PROGRAMS[function.__name__] = Program(function, make)
        return function

    return register


def rand(*shape):
    return torch.randn(*shape)


def one(n, m):
    return (rand(n, m),)


def two(n, m):
    return rand(n, m), rand(n, m)


# -- arithmetic on sizes ---------------------------------------------------------------------------


@program(one)
def size_in_result(x):
    return x * 2, x.shape[0], x.size(1) + 1


@program(one)
def scale_by_size(x):
    return x / x.shape[0]


@program(one)
def flatten_by_product(x):
    return x.view(x.shape[0] * x.shape[1])


@program(one)
def view_minus_one(x):
    return x.reshape(-1, x.shape[0])


@program(one)
def numel_and_dim(x):
    return x + x.numel(), x.dim()


@program(one)
def half_size(x):
    return x[: x.shape[0] // 2]


@program(one)
def ceil_division(x):
    return x.new_zeros(-(-x.shape[0] // 3)), x + 1


@program(one)
def math_ceil(x):
    return x.new_ones(math.ceil(x.shape[0] / 3)), x + 1


@program(one)
def math_floor(x):
    return x.new_ones(math.floor(x.shape[0] / 2)), x + 1


@program(one)
def size_modulo(x):
    return x + x.shape[0] % 3


@program(one)
def size_power(x):
    return x * x.shape[0] ** 2


@program(one)
def float_of_size(x):
    return x * (1.0 / math.sqrt(x.shape[1]))


@program(one)
def int_of_ratio(x):
    return x[: int(x.shape[0] * 0.5)]


@program(one)
def min_of_sizes(x):
    return x[: min(x.shape[0], 5)]


@program(one)
def max_of_sizes(x):
    return x.new_zeros(max(x.shape[0], x.shape[1])), x + 1


@program(one)
def divmod_of_size(x):
    q, r = divmod(x.shape[0], 2)
    return x * q + r


@program(one)
def sum_of_sizes(x):
    return x + sum(x.shape)


@program(one)
def absolute_difference(x):
    return x * abs(x.shape[0] - x.shape[1])


# -- conditions ------------------------------------------------------------------------------------


@program(one)
def condition_holds(x):
    return x + 1 if x.shape[0] > 2 else x - 1


@program(one)
def condition_flips(x):
    return x + 1 if x.shape[0] > 8 else x - 1


@program(one)
def condition_on_two(x):
    return x.t() if x.shape[0] < x.shape[1] else x


@program(one)
def chained_condition(x):
    return x * 2 if 1 < x.shape[0] < 100 else x


@program(one)
def even_or_odd(x):
    return x + 1 if x.shape[0] % 2 == 0 else x - 1


@program(one)
def equality_of_sizes(x):
    return x @ x if x.shape[0] == x.shape[1] else x


@program(one)
def assert_on_size(x):
    assert x.shape[0] >= 2, "too small"
    return x * 3


@program(one)
def conditional_expression_value(x):
    big = x.shape[0] >= 4
    return x + 1, big


@program(one)
def and_or(x):
    if x.shape[0] > 1 and (x.shape[1] > 1 or x.shape[0] > 50):
        return x + 1
    return x


@program(one)
def early_return(x):
    if x.shape[0] > 1000:
        return x
    return x.sum(0)


# -- loops -----------------------------------------------------------------------------------------


@program(lambda n, m: (rand(3, m),))
def loop_over_fixed_dim(x):
    total = x[0]
    for i in range(1, x.shape[0]):
        total = total + x[i]
    return total


@program(one)
def loop_over_size(x):
    total = x[0]
    for i in range(1, x.shape[0]):
        total = total + x[i]
    return total


@program(one)
def while_halving(x):
    n = x.shape[0]
    steps = 0
    while n > 4:
        n, steps = n // 2, steps + 1
    return x + steps


@program(lambda n, m: ([rand(n, m), rand(n, m)],))
def loop_over_list(xs):
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


@program(lambda n, m: ([rand(n), rand(m), rand(n + m)],))
def ragged_list(xs):
    return [x * x.shape[0] for x in xs]


@program(lambda n, m: ([rand(n), rand(m)],))
def pad_ragged_list(xs):
    longest = max(x.shape[0] for x in xs)
    return torch.stack([F.pad(x, (0, longest - x.shape[0])) for x in xs])


# -- slices and indices ----------------------------------------------------------------------------


@program(one)
def slice_from_end(x):
    return x[1:-1] if x.shape[0] > 2 else x


@program(one)
def slice_by_symbolic_bounds(x):
    return x[x.shape[0] // 2 : x.shape[0] - 1]


@program(lambda n, m: (rand(12, 4), n))
def slice_by_argument(x, n):
    return x[:n]


@program(lambda n, m: (rand(12, 4), n))
def index_by_argument(x, n):
    return x[n - 1]


@program(one)
def last_row(x):
    return x[-1], x[x.shape[0] - 1]


@program(one)
def strided_slice(x):
    return x[::2]


@program(one)
def split_in_half(x):
    return x.split(x.shape[0] // 2 + 1, 0)[0]


@program(one)
def narrow_by_size(x):
    return x.narrow(0, 1, x.shape[0] - 1)


@program(one)
def windows(x):
    return x.unfold(0, 2, 1).mean(-1)


@program(one)
def roll_by_size(x):
    return torch.roll(x, x.shape[0] // 2, 0)


# -- making tensors --------------------------------------------------------------------------------


@program(one)
def arange_of_size(x):
    return x + torch.arange(x.shape[1])


@program(lambda n, m: (rand(3), n))
def arange_of_argument(x, n):
    return torch.arange(n) * x.sum()


@program(one)
def zeros_like_shape(x):
    return torch.zeros(x.shape) + x


@program(one)
def causal_mask(x):
    n = x.shape[0]
    return torch.ones(n, n).tril().bool()


@program(one)
def linspace_of_size(x):
    return torch.linspace(0, 1, x.shape[0]) + x[:, 0]


@program(one)
def one_hot_positions(x):
    return torch.eye(x.shape[0]) @ x


# -- broadcasting and shapes -----------------------------------------------------------------------


@program(two)
def same_sizes(x, y):
    return x + y


@program(lambda n, m: (rand(n, 1), rand(1, m)))
def broadcast_ones(x, y):
    return x + y


@program(lambda n, m: (rand(n, m), rand(m)))
def broadcast_row(x, y):
    return x * y


@program(lambda n, m: (rand(n, m), rand(m, n)))
def matrix_product(x, y):
    return x @ y


@program(two)
def concatenate(x, y):
    return torch.cat([x, y], 0)


@program(one)
def expand_by_size(x):
    return x[:1].expand(x.shape[0], x.shape[1]) + 0


@program(one)
def transpose_and_view(x):
    return x.t().contiguous().view(x.shape[1], x.shape[0])


@program(one)
def pad_to_multiple(x):
    return F.pad(x, (0, -x.shape[1] % 4))


@program(lambda n, m: (rand(1, 2, n, m),))
def interpolate_twice(x):
    return F.interpolate(x, scale_factor=2)


@program(lambda n, m: (rand(1, 2, n, m),))
def interpolate_to_size(x):
    return F.interpolate(x, size=(x.shape[2] * 2, 7))


@program(lambda n, m: (rand(1, 2, n + 4, m + 4),))
def pool(x):
    return F.max_pool2d(x, 2)


@program(lambda n, m: (rand(2, n, 8),))
def attention(x):
    heads = x.view(x.shape[0], x.shape[1], 2, 4).transpose(1, 2)
    scores = heads @ heads.transpose(-1, -2) / math.sqrt(heads.shape[-1])
    return (scores.softmax(-1) @ heads).transpose(1, 2).reshape(x.shape)


# -- numbers ---------------------------------------------------------------------------------------


@program(lambda n, m: (rand(3), n, m / 7))
def int_and_float_arguments(x, n, f):
    return x * n + f, n * 2, f + 0.5


@program(lambda n, m: (rand(3), {"n": n, "deep": [m]}))
def numbers_in_containers(x, options):
    return x * options["n"] + options["deep"][0]


@program(lambda n, m: (rand(3), n))
def int_to_float(x, n):
    return x * float(n) / (n + 1)
