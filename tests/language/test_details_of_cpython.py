"""What CPython does on the side: contexts and names of errors, the order of comparisons, whom it
asks for a class, what it refuses and in which words."""

from __future__ import annotations

import collections
import copy
import decimal
import functools
import random
import typing
import weakref

import numpy
import pytest
import torch

import framejit
from checking import CountingBackend, check

X = torch.arange(3.0)


class Plain:
    """No attributes of its own."""


def message(function, *args):
    """What the call raises, or what it returns."""
    try:
        return function(*args)
    except Exception as error:  # noqa: BLE001 - it is what is compared
        return type(error).__name__, str(error)


# -- errors --------------------------------------------------------------------------------------


def bad_device(x):
    try:
        x = x + torch.zeros(3, device=torch.device("nowhere"))
    except RuntimeError as error:
        return x + 1, str(error)[:30]
    return x


def names_of_errors(x):
    one = Plain()
    seen = []
    for place, name in ((one, "foo"), (0, "bar"), (Plain, "foo"), ([], "x"), (x, "foo"), ("a", "")):
        try:
            getattr(place, name)
        except AttributeError as error:
            seen.append((error.name, error.obj is place))
    try:
        one.missing
    except AttributeError as error:
        seen.append((error.name, error.obj is one))
    try:
        one.missing()
    except AttributeError as error:
        seen.append((error.name, error.obj is one))
    try:
        del one.missing
    except AttributeError as error:
        seen.append((error.name, error.obj))
    try:
        no_such_name  # noqa: B018, F821
    except NameError as error:
        seen.append(error.name)
    return x + 1, seen


def names_of_errors_of_the_users(x):
    class Hooks:
        @property
        def held(self):
            raise AttributeError("mine")

        def __getattr__(self, name):
            raise AttributeError("no " + name)

        def above(self):
            return super().nothing

    one, seen = Hooks(), []
    for read in (lambda: one.held, lambda: one.other, lambda: getattr(one, "a"), one.above):  # noqa: B009
        try:
            read()
        except AttributeError as error:
            kind = type(error.obj).__name__
            seen.append((str(error), error.name, kind, error.__context__))
    return x + 1, seen


def unbound_names(x):
    def free():
        return late

    def local():
        if x is None:
            mine = 1
        return mine

    seen = []
    for function in (free, local):
        try:
            function()
        except NameError as error:
            seen.append((str(error), error.name))
    late = 1
    return x + late, seen


def object_of_an_error_over_a_break(x):
    try:
        (0).nothing  # noqa: B018
    except AttributeError as error:
        kept = error
    print("break")
    return x + 1, kept.name, kept.obj


def context_after_a_break(x):
    try:
        try:
            raise KeyError(1)
        except KeyError:
            made = ValueError("a")
            print("break")
            raise made
    except ValueError as error:
        return x + 1, repr(error.__context__)


def no_cycle_of_contexts(x):
    try:
        try:
            raise KeyError(1)
        except KeyError as first:
            try:
                raise ValueError(2)
            except ValueError as error:
                second = error
                raise first  # noqa: B904
    except KeyError as error:
        return x + 1, repr(error.__context__), repr(second.__context__)


def context_of_an_existing_error(x):
    existing = KeyError(3)
    print("break")
    try:
        try:
            raise ValueError(1)
        except ValueError:
            raise existing  # noqa: B904
    except KeyError as error:
        return x + 1, repr(error.__context__)


def super_without_arguments(x):
    def plain(a):
        return super().foo

    def nothing():
        return super().foo

    class Some:
        def deleted(self):
            del self
            return super().foo

        @staticmethod
        def static():
            return super().foo

        @staticmethod
        def other(a):
            return super().foo

    seen = [message(plain, 1), message(nothing), message(Some().deleted), message(Some.static)]
    return x + 1, [*seen, message(Some.other, 1), message(super, Some, 1)]


def super_without_arguments_after_a_break(x):
    def nothing():
        print(end="")
        return super().foo

    class Some:
        @staticmethod
        def static():
            print(end="")
            return super().foo

    return x + 1, message(nothing), message(Some.static)


class Read:
    @property
    def held(self):
        return 1

    @held.setter
    def held(self, value):
        pass

    @property
    def fixed(self):
        return 1


def errors_of_properties(x):
    class Inner(Read):
        own = property()

    seen = []
    for one in (Read(), Inner()):
        seen.append(message(setattr, one, "fixed", 1))
        seen.append(message(delattr, one, "held"))
    return x + 1, seen, message(getattr, Inner(), "own")


def objects_made_by_the_wrong_class(x):
    class Names(dict):
        pass

    seen = [
        message(object.__new__, cls) for cls in (int, list, str, Names, Exception, torch.Tensor, 3)
    ]
    seen += [message(tuple.__new__, list), message(int.__new__, bool), message(list.__new__, list)]
    seen.append(message(object.__new__))
    return x + 1, seen, type(dict.__new__(Names)).__name__, int.__new__(int, 3)


def what_index_does_not_find(x):
    return x + 1, message(collections.deque([1]).index, 5), message([1].index, 5)


# -- who is asked --------------------------------------------------------------------------------


class Watching:
    """Notes what is read of it."""

    log: typing.ClassVar[list] = []

    def __init__(self):
        self.a = 1

    def __getattribute__(self, name):
        Watching.log.append(name)
        return object.__getattribute__(self, name)


WATCHING = Watching()


def own_getattribute_is_asked(x):
    Watching.log.clear()
    y = x + 1
    one = WATCHING
    print("break")
    y = y + one.a
    return y + Watching().a, isinstance(one, int), isinstance(one, Watching), list(Watching.log)


class Meta(type):
    log: typing.ClassVar[list] = []

    def __getattr__(cls, name):
        Meta.log.append(name)
        raise AttributeError(name)


class OfMeta(metaclass=Meta):
    a = 1


OF_META = OfMeta()


def getattr_of_the_metaclass(x):
    Meta.log.clear()
    one, other = OfMeta(), OF_META
    print("break")
    one.b = other.b = 3
    return x + one.b + OfMeta.a, list(Meta.log), hasattr(OfMeta, "nothing"), list(Meta.log)


class Claims:
    asked = 0

    @property
    def __class__(self):
        Claims.asked += 1
        return int


def claims_a_class(x):
    Claims.asked = 0
    one = Claims()
    kinds = isinstance(one, int), isinstance(one, Claims), isinstance(one, (str, float))
    return x + 1, kinds, type(one) is Claims, Claims.asked


def _proxy_of_nothing():
    return weakref.proxy(Plain())


NOTHING = _proxy_of_nothing()


def proxy_of_nothing(x):
    y = x + 1
    try:
        NOTHING.a  # noqa: B018
    except ReferenceError as error:
        return y + 2, str(error)
    return y


class Typed(typing.TypedDict):
    a: int


def typed_dict_is_called(x):
    made = Typed(a=1)
    return x + made["a"], type(made), made


# -- sorting -------------------------------------------------------------------------------------


class Ordered:
    """Notes what it is compared with."""

    log: typing.ClassVar[list] = []

    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        Ordered.log.append((self.value, other.value))
        return self.value < other.value


def order_of_comparisons(x):
    Ordered.log.clear()
    draw = random.Random(0)
    for count in (0, 1, 2, 5, 12, 70):
        numbers = [draw.randrange(20) for _ in range(count)]
        sorted([Ordered(n) for n in numbers])
        sorted(numbers, key=Ordered, reverse=True)
    return x + 1, list(Ordered.log)


def list_is_empty_while_it_is_sorted(x):
    numbers, seen = [3, 1, 2], []

    def key(value):
        seen.append(list(numbers))
        return value

    numbers.sort(key=key)
    return x + 1, numbers, seen


def list_changes_while_it_is_sorted(x):
    numbers = [3, 1, 2]

    def key(value):
        numbers.append(value)
        return value

    return x + 1, message(lambda: numbers.sort(key=key)), numbers


def list_is_left_half_sorted(x):
    mixed, halves = [3, 1, 2, "a", 5], [3, 1, 2]

    def key(value):
        return 1 / (value - 2)

    return x + 1, message(mixed.sort), mixed, message(lambda: halves.sort(key=key)), halves


# -- containers with methods of their own --------------------------------------------------------


class Loud(list):
    def __iter__(self):
        print("iter")
        return super().__iter__()

    def __reversed__(self):
        print("reversed")
        return super().__reversed__()


class LoudDict(dict):
    def __iter__(self):
        print("iter")
        return super().__iter__()

    def keys(self):
        print("keys")
        return super().keys()

    def items(self):
        print("items")
        return super().items()


class QuietDict(dict):
    def keys(self):
        print("keys")
        return super().keys()

    def __getitem__(self, key):
        print("item")
        return super().__getitem__(key)


def list_subclasses_with_their_own_iter(x):
    a, b = Loud([1, 2])
    first, *rest = Loud([1, 2])
    loop = [v for v in Loud([3])]
    backwards = reversed(Loud([1, 2, 3]))
    next(backwards)
    print("break")
    return x + a + b, first, rest, loop, list(backwards), tuple(Loud([4]))


def dict_subclasses_with_their_own_keys(x):
    loud, quiet = LoudDict(a=1, b=2), QuietDict(a=1)
    walk = iter(loud)
    next(walk)
    print("break")
    made = {**loud}, {**quiet}, dict(**quiet), list(loud.items()), list(loud.keys())
    return x + 1, made, list(walk), [*loud]


class LoudSet(set):
    def __iter__(self):
        print("iter")
        return super().__iter__()


class LoudDeque(collections.deque):
    def __iter__(self):
        print("iter")
        return super().__iter__()


def existing_containers_are_looked_at(x, numbers, unique, queue):
    y = x + len(numbers) + len(unique) + len(queue)
    total = list.__getitem__(numbers, 0) + queue[0]
    for number in set.__iter__(unique):
        total = total + number
    walk = list.__iter__(numbers)
    next(walk)
    print("break")
    return y + total, next(walk)


def test_existing_containers_are_not_asked() -> None:
    check(
        existing_containers_are_looked_at,
        X,
        Loud([1, 2]),
        LoudSet({1, 2}),
        LoudDeque([1, 2]),
        graphs=2,
    )


def attributes_in_a_format(x):
    one = Plain()
    one.space, one.value = 3, [1, "b"]
    classes = "{c.__class__.__name__} {c.__doc__} {1.__class__} {0[0].__class__}", ([x], 1)
    texts = classes[0].format(*classes[1], c=one), "{0.space:>4} {0.value[1]!r}".format(one)
    return x + 1, texts, message("{0.nothing}".format, one), "{0.__dict__}".format(one)


# -- tensors -------------------------------------------------------------------------------------


def operations_that_return_their_argument(x):
    z = x * 2
    same = torch.nn.functional.dropout(x, training=False), torch.nn.functional.dropout(x, p=0.0)
    others = torch.nn.functional.alpha_dropout(x, training=False), torch.dropout(z, 0.5, False)
    kept = torch.nn.functional.relu(z, inplace=True), torch.positive(x), torch.add(x, 1, out=z)
    seen = [value is x for value in (*same, *others, *kept)]
    seen += [value is z for value in (*same, *others, *kept)]
    eval_ = torch.nn.Dropout(0.5).eval()
    drawn = torch.nn.functional.dropout(x, 0.5) is x, torch.nn.functional.relu(z) is z
    return eval_(z) is z, seen, drawn, same[0] + 1, x.contiguous() is x, x.double() is x


def tensor_of_a_part_of_an_array(x):
    array = numpy.arange(6.0)
    parts = torch.from_numpy(array[2:]), torch.as_tensor(array[3:])
    return x + 1, [(part.storage_offset(), part * 2) for part in parts]


def test_tensor_of_a_part_of_an_array() -> None:
    check(tensor_of_a_part_of_an_array, X, graphs=3)


ONE_GRAPH = [
    bad_device, names_of_errors, names_of_errors_of_the_users, unbound_names,
    object_of_an_error_over_a_break, context_after_a_break, no_cycle_of_contexts,
    context_of_an_existing_error, super_without_arguments, errors_of_properties,
    objects_made_by_the_wrong_class, what_index_does_not_find, getattr_of_the_metaclass,
    claims_a_class, typed_dict_is_called, order_of_comparisons, list_is_empty_while_it_is_sorted,
    list_changes_while_it_is_sorted, list_is_left_half_sorted, list_subclasses_with_their_own_iter,
    dict_subclasses_with_their_own_keys, attributes_in_a_format,
    operations_that_return_their_argument,
]  # fmt: skip
TWO_GRAPHS = [own_getattribute_is_asked, proxy_of_nothing]


@pytest.mark.parametrize("program", ONE_GRAPH)
def test_one_graph(program) -> None:
    check(program, X, graphs=1)


def test_super_without_arguments_behind_a_break() -> None:
    assert check(super_without_arguments_after_a_break, X).ops == 1


@pytest.mark.parametrize("program", TWO_GRAPHS)
def test_two_graphs(program) -> None:
    check(program, X, graphs=2)


def texts_of_decimals(x):
    third = decimal.Decimal(1) / decimal.Decimal(3)
    return x + 1, str(third), f"{third:.2f}", str(decimal.Decimal("1e50") * 1)


def test_context_of_decimals() -> None:
    """The numbers depend on a context that may be another one at the next call."""
    backend = CountingBackend()
    compiled = framejit.compile(texts_of_decimals, backend=backend)
    for precision, rounding in ((28, decimal.ROUND_HALF_EVEN), (5, decimal.ROUND_UP)):
        with decimal.localcontext() as context:
            context.prec, context.rounding, context.capitals = precision, rounding, 0
            assert compiled(X)[1:] == texts_of_decimals(X)[1:]
    assert len(backend.graphs) == 2


# -- single dispatch -----------------------------------------------------------------------------


def dispatcher_made_and_filled(x):
    @functools.singledispatch
    def kind(value):
        return 0

    before = kind(1)

    @kind.register
    def _(value: int):
        return 1

    kind.register(str, lambda value: 2)
    return x + kind(1) + kind("a") + before


def filled_meanwhile():
    """A program that registers a case between two calls."""

    @functools.singledispatch
    def kind(value):
        return "other"

    def program(x):
        before = kind("a"), kind(1)
        kind.register(int, lambda value: "int")
        return x + 1, before, kind(1), kind(True), kind(2.5)

    return program


def methods_filled_meanwhile():
    """The same for a method."""

    class Kinds:
        @functools.singledispatchmethod
        def kind(self, value):
            return "other"

    def program(x):
        kinds = Kinds()
        before = kinds.kind(1)
        Kinds.kind.register(int, lambda self, value: "int")
        return x + 1, before, kinds.kind(1), kinds.kind("a")

    return program


def test_dispatcher_made_in_the_program() -> None:
    check(dispatcher_made_and_filled, X, graphs=1)


@pytest.mark.parametrize("make", [filled_meanwhile, methods_filled_meanwhile])
def test_dispatcher_filled_meanwhile(make) -> None:
    check(make(), X, make=make, graphs=1)


# -- what operations return ----------------------------------------------------------------------


class Undecided:
    def __divmod__(self, other):
        return NotImplemented

    def __rdivmod__(self, other):
        return NotImplemented


class Decided(Undecided):
    def __rdivmod__(self, other):
        return "reflected"


class Number(int):
    def __rdivmod__(self, other):
        return "number"


def divmod_of_all_kinds(x):
    objects = [Undecided(), Decided(), Number(7), 2, 1.5, 1j, "a", None, [1], {1}]
    return x + 1, [message(divmod, a, b) for a in objects for b in objects]


def keywords_of_a_partial(x):
    made = functools.partial(dict, 1, a=1)
    named, positional = made.keywords, made.args
    named["b"] = x
    nested = functools.partial(made, c=3)
    copied = copy.copy(nested)
    named["a"] = 2
    return x + 1, made, named, positional, nested, copied


def keywords_of_a_partial_are_called(x):
    made = functools.partial(dict, a=1)
    made.keywords["b"] = 2
    first = made()
    del made.keywords["a"]
    print(first)
    made.keywords["c"] = 3
    return x + 1, made, first, made(d=4)


def defaultdicts_without_a_factory(x):
    made = collections.defaultdict(list, a=[1]).fromkeys("ab", x)
    return x + 1, made, collections.defaultdict(None, {"b": 1}), collections.defaultdict(None)


class Reads:
    @property
    def value(self):
        print("property")
        raise AttributeError("no value")

    def __get__(self, one, cls):
        print("descriptor")
        raise AttributeError("no member")


class Holds:
    member = Reads()

    def __getattribute__(self, name):
        if name == "other":
            print("hook")
            raise AttributeError("no other")
        return super().__getattribute__(name)


def names_of_errors_over_breaks(x):
    seen = []
    for one, name in ((Reads(), "value"), (Holds(), "member"), (Holds(), "other")):
        try:
            getattr(one, name)
        except AttributeError as error:
            seen.append((str(error), error.name, error.obj is one))
    return x + 1, seen


def arguments_that_vars_and_format_refuse(x):
    seen = []
    for value in (1, 1j, "a", [1], (1, 2), None, len, range(3), object()):
        seen.append(message(vars, value))
        for wrong in (None, 2, 1j, [1], int):
            seen.append(message(format, value, wrong))
    return x + 1, seen


@pytest.mark.parametrize("program", [
    divmod_of_all_kinds, arguments_that_vars_and_format_refuse, keywords_of_a_partial_are_called,
    defaultdicts_without_a_factory, names_of_errors_over_breaks,
], ids=lambda program: program.__name__)  # fmt: skip
def test_what_operations_return(program) -> None:
    check(program, X, graphs=1)


def test_keywords_of_a_partial_are_one_object() -> None:
    compiled = framejit.compile(keywords_of_a_partial, backend="eager", fullgraph=True)
    _, made, named, positional, nested, copied = compiled(X)
    assert made.keywords is named and made.args is positional
    assert named == {"a": 2, "b": X} and list(named) == ["a", "b"]
    for other in (nested, copied):
        assert other.keywords == {"a": 1, "b": X, "c": 3} and other.args == (1,)


def test_frozensets_of_equal_decimals_are_told_apart() -> None:
    def f(x, numbers):
        return x + 1, str(numbers)

    backend = CountingBackend()
    compiled = framejit.compile(f, backend=backend, fullgraph=True)
    for text in ("1.0", "1.00", "1.0"):
        numbers = frozenset([decimal.Decimal(text)])
        assert compiled(X, numbers)[1] == f(X, numbers)[1]
    assert len(backend.graphs) == 3 and backend.ops == 3


@pytest.mark.parametrize("expression", [
    "[1].__rmul__({})", "[1].__mul__(2.5)", "(1,).__rmul__('a')", "[1].__imul__({})",
    "[1].__add__({})", "(1,).__add__([])", "[x].__mul__(None)", "[x].__add__(x)",
    "collections.deque([1]).__add__([])", "collections.deque([1]).__mul__([])",
    "OfList([1]).__rmul__([])", "OfList([1]).__add__({})", "OfList([1]) + {}", "{} + OfList([1])",
    "None * OfList([1])", "{1}.__or__([])", "{}.__or__([])", "[1].__add__(OfList([2]))",
])  # fmt: skip
def test_operators_of_sequences_as_methods(expression):
    """They raise where the operator would ask the other operand."""
    namespace = {"collections": collections, "OfList": OfList}
    text = f"""def program(x):
    try:
        return {expression}, x + 1
    except TypeError as error:
        return str(error), x + 1
"""
    exec(text, namespace)
    check(namespace["program"], torch.ones(2), graphs=1, ops=1)


class OfList(list):
    pass
