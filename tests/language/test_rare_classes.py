"""Classes whose own methods hide those of their metaclasses, whose special attributes are of
unusual kinds, or that cannot be keys; aliases; what happens when the last reference goes."""

import builtins
import enum
import importlib
import sys
import types
from typing import Generic, ParamSpec, TypeVar

import pytest
import torch

import framejit
from checking import check
from framejit.report import events

X = torch.arange(3.0)


class Flags(enum.Flag):
    A, B = 1, 2


class Words(str, enum.Enum):
    A = "a"


MEMBERS = [Flags.A, Words.A, "A", "a", "zz", []]


@pytest.mark.filterwarnings("ignore:in 3.12")
@pytest.mark.parametrize("cls", [Flags, Words])
@pytest.mark.parametrize("item", range(len(MEMBERS)))
def test_what_enums_contain(cls, item):
    item = MEMBERS[item]

    def program(x):
        y = x + 1
        try:
            return y, item in cls
        except TypeError as error:
            return y, str(error)

    check(program, X, graphs=1, ops=1)


def test_members_of_enums_of_strings_by_name():
    check(lambda x: (x + 1, Words["A"], Flags["B"]), X, graphs=1, ops=1, fullgraph=True)


def test_generators_that_return_when_they_are_closed():
    def program(x):
        def generator():
            try:
                yield x
            except GeneratorExit:
                return 3

        running = generator()
        next(running)
        return running.close(), x + 1, running.close()

    check(program, X, graphs=1, ops=1, fullgraph=True)


class MatchedByNumber:
    __match_args__ = 5


class MatchedByList:
    __match_args__ = ["a"]  # noqa: RUF012
    a = 1


class MatchedByOther:
    __match_args__ = ("a", 3)
    a = 1


@pytest.mark.parametrize("cls", [MatchedByNumber, MatchedByList, MatchedByOther])
def test_class_patterns_with_bad_match_args(cls):
    subject = cls()

    def program(x):
        y = x + 1
        try:
            match subject:
                case cls(a, b):
                    return y
                case _:
                    return y * 2
        except TypeError as error:
            return y - 1, str(error)

    check(program, X, graphs=2, ops=2)


@pytest.mark.filterwarnings("ignore:.*NotImplemented")
def test_not_implemented_as_a_truth_value():
    def program(x):
        y = x + 1
        try:
            return y * 2 if NotImplemented else y
        except TypeError as error:
            return y * 3, str(error)

    check(program, X, graphs=2, ops=2)


class ComparesOnly(type):
    def __eq__(cls, other):
        return cls is other


class Hashes(type):
    def __eq__(cls, other):
        print("compared", cls.__name__)
        return cls is other

    def __hash__(cls):
        print("hashed", cls.__name__)
        return 1


def made_of(meta):
    class Holder(metaclass=meta):
        factor = 2

        def __init__(self, value):
            self.value = value

        def double(self, x):
            return x * self.factor

        def __add__(self, other):
            return self.value + other

    class Other(Holder):
        def double(self, x):
            return super().double(x) + 1

    return Holder, Other


@pytest.mark.parametrize("meta", [ComparesOnly, Hashes], ids=lambda meta: meta.__name__)
def test_classes_that_cannot_be_keys(meta):
    Holder, Other = made_of(meta)

    def program(x):
        y = x + 1
        made = Holder(3)
        box = [made, {"other": Other(4)}, (Holder, Other)]
        box[0].value += 1
        y = box[1]["other"].double(y)
        kinds = isinstance(made, Holder), issubclass(Other, Holder), type(made) is Other
        return made.double(y), kinds, made + 1, y * 3, [o.value for o in (made, *box[:1])]

    check(program, X, graphs=4, ops=5)


@pytest.mark.parametrize("meta", [ComparesOnly, Hashes], ids=lambda meta: meta.__name__)
def test_objects_whose_class_cannot_be_a_key(meta):
    Holder, Other = made_of(meta)
    first, box = Holder(3), {"other": Other(4), "kinds": (Holder, Other)}

    def program(x):
        y = x + first.value
        z = box["other"].double(y)
        made = box["kinds"][1](7)
        return z, made.double(z), first + 1, type(made) is Other, [o.value for o in (first, made)]

    check(program, X, graphs=3, ops=5)


class Nothing:
    __contains__ = None
    __len__ = None
    __iter__ = None


def test_special_methods_that_are_none():
    def program(x):
        found, nothing = [], Nothing()
        for question in (lambda: 1 in nothing, lambda: len(nothing), lambda: list(nothing)):
            try:
                found.append(question())
            except TypeError as error:
                found.append(str(error))
        return x + 1, found

    check(program, X, graphs=1, ops=1, fullgraph=True)


def test_super_with_keywords():
    def program(x):
        try:
            super(type=int)  # noqa: UP008
        except TypeError as error:
            return x + 1, str(error)

    check(program, X, graphs=1, ops=1, fullgraph=True)


T = TypeVar("T")


class Box(Generic[T]):
    size = 1


class Aliased:
    size = 1
    __class_getitem__ = classmethod(types.GenericAlias)


def test_aliases_have_the_attributes_of_their_classes():
    numbers, boxes, aliased = list[int], Box[int], Aliased[int]

    def program(x):
        names = [alias.__name__ for alias in (numbers, aliased)]
        has = hasattr(numbers, "append"), hasattr(numbers, "nothing"), hasattr(aliased, "more")
        return x + boxes.size + aliased.size, names, has, numbers.__origin__, numbers.__args__

    check(program, X, graphs=1, ops=2, fullgraph=True)
    compiled = check_again(program)
    Aliased.size, Box.size, Aliased.more = 3, 4, 5
    try:
        assert str(compiled(X)) == str(program(X))
    finally:
        Aliased.size, Box.size = 1, 1
        del Aliased.more


def check_again(program):
    """``program``, compiled and called."""
    compiled = framejit.compile(program, backend="eager")
    compiled(X)
    return compiled


def test_numbers_that_overflow_after_they_are_looked_at():
    def program(x, n):
        return x + 1, n**70, n * 1.5e308

    compiled = framejit.compile(program, backend="eager")
    for n in (1, 2, 3, 4):
        assert str(compiled(X, n)) == str(program(X, n))
    assert not framejit.counters["internal_error"]


class Noted:
    def __init__(self, ended):
        self.ended = ended

    def __del__(self):
        self.ended.append(1)


def test_the_end_of_objects_whose_address_was_taken():
    def program(x):
        ended = []
        noted = Noted(ended)
        address = id(noted)
        noted = None
        return len(ended), x + 1, type(address)

    check(program, X, calls=1, graphs=1)


def test_the_end_of_objects_that_existed_and_whose_address_was_taken():
    def program(x, make):
        y, ended = x + 1, []
        held = [make(ended)]
        address = id(held[0])
        held.clear()
        return len(ended), y * 2, type(address)

    check(program, X, Noted, calls=1, graphs=2)


@pytest.fixture
def own_name():
    yield "name_of_this_test"
    vars(builtins).pop("name_of_this_test", None)


def test_names_that_the_program_adds_to_the_builtins(own_name):
    def program(x):
        y = x + 1
        builtins.name_of_this_test = 4
        found = [name_of_this_test]  # noqa: F821
        builtins.name_of_this_test = 5
        found.append(name_of_this_test)  # noqa: F821
        del builtins.name_of_this_test
        try:
            found.append(name_of_this_test)  # noqa: F821
        except NameError as error:
            found.append(str(error))
        return y * 2, found

    check(program, X, graphs=2, ops=2)


def test_builtins_that_the_program_replaces_for_a_while():
    def program(x):
        y = x + 1
        before = builtins.oct  # nothing else needs it, should it stay replaced
        builtins.oct = lambda *args: "replaced"
        try:
            found = oct(8)
        finally:
            builtins.oct = before
        return y * 2, found, oct(8)

    check(program, X, graphs=1)


def test_modules_that_the_program_takes_out_of_those_that_are_loaded():
    module = types.ModuleType("module_of_this_test")

    def program(x):
        y = x + 1
        sys.modules["module_of_this_test"] = module
        import module_of_this_test as found

        del sys.modules["module_of_this_test"]
        try:
            importlib.import_module("module_of_this_test")
        except ImportError as error:
            return y * 2, found is module, str(error)

    check(program, X, graphs=2)


@pytest.mark.skipif(
    "strict" not in (map.__text_signature__ or ""), reason="this release has no strict map()"
)
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("started", [False, True])
def test_maps_whose_iterables_must_end_together(count, started):
    def program(x, make):
        y = x + 1
        pairs = (
            make(range(count))
            if started
            else map(lambda a, b: a - b, range(count), (1, 2), strict=True)
        )
        try:
            return y, list(pairs)
        except ValueError as error:
            return y, str(error)

    def make(numbers):
        return map(lambda a, b: a - b, numbers, (1, 2), strict=True)

    check(program, X, framejit.disable(make) if started else None, ops=1)


def test_what_an_attribute_in_c_makes_at_each_read():
    parameters = ParamSpec("parameters")

    def program(x, parameters):
        return x + 1, parameters.args.__origin__ is parameters

    check(program, X, parameters, graphs=1, ops=1)


class Endless:
    def __len__(self):
        return len(self)

    def __iter__(self):
        return iter(self)

    def __eq__(self, other):
        return self == other

    def __hash__(self):
        return hash(self)


def test_special_methods_that_call_themselves_without_end():
    def program(x):
        found = []
        for use in (len, iter, hash, Endless().__eq__):
            try:
                use(Endless())
            except RecursionError as error:
                found.append(type(error))
        return x + 1, found

    with events.recording(events.CaptureStart) as captures:
        check(program, X, graphs=1, ops=1)
    assert len(captures) < 20, "each of a thousand calls is captured anew"
