"""A tiny interpreter of canonical instructions with real objects.

It executes a function up to a step; the tests then go on in a native continuation and compare with
the plain run. Running it to the end checks `decode` against CPython itself.
"""

from __future__ import annotations

import builtins
import operator
from types import CellType, FunctionType

from framejit.bytecode.decode import decode
from framejit.bytecode.frame_point import FramePoint


class Null:
    def __repr__(self):
        return "NULL"


NULL = Null()
UNBOUND = object()

_NAMES = "add sub mul truediv floordiv mod pow matmul lshift rshift and_ or_ xor".split()
_SIGNS = "+ - * / // % ** @ << >> & | ^".split()
_BINARY = {sign: getattr(operator, name) for sign, name in zip(_SIGNS, _NAMES)}
_INPLACE = {sign: getattr(operator, "i" + name.strip("_")) for sign, name in zip(_SIGNS, _NAMES)}
_COMPARE = {
    sign: getattr(operator, name)
    for sign, name in zip("< <= == != > >=".split(), "lt le eq ne gt ge".split())
}


class Reraise(Exception):
    def __init__(self, error):
        self.error = error


def under(handled, function, *args):
    """Call ``function`` while ``handled`` is being handled."""
    if handled is None:
        return function(*args)
    traceback, context = handled.__traceback__, handled.__context__
    try:
        raise handled
    except BaseException:
        handled.__traceback__, handled.__context__ = traceback, context
        return function(*args)


def contents(cell):
    """What a cell holds, or UNBOUND."""
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


class Machine:
    """The frame of one call. ``run(steps)`` executes; ``finished`` says that it has returned."""

    def __init__(self, function, args, kwargs=None):
        self.code = function.__code__
        self.info = decode(self.code)
        self.globals = function.__globals__
        self.slots = [UNBOUND] * len(self.info.slot_names)
        self.bind(function, args, kwargs or {})
        self.closure = function.__closure__ or ()
        self.stack = []
        self.handled = None
        self.index = 0
        self.finished = False
        self.result = None
        self.raised = 0  # how many exceptions were raised so far

    def bind(self, function, args, kwargs):
        code, args = self.code, list(args)
        names = code.co_varnames[: code.co_argcount]
        values = dict(zip(names, args))
        rest = tuple(args[len(names) :])
        keyword_names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        extra = {}
        for name, value in kwargs.items():
            (values if name in keyword_names else extra)[name] = value
        defaults = function.__defaults__ or ()
        for name, value in zip(names[len(names) - len(defaults) :], defaults):
            values.setdefault(name, value)
        for name, value in (function.__kwdefaults__ or {}).items():
            values.setdefault(name, value)
        ordered = [values[name] for name in keyword_names]
        if code.co_flags & 4:
            ordered.append(rest)
        if code.co_flags & 8:
            ordered.append(extra)
        assert len(ordered) == self.info.n_args
        self.slots[: len(ordered)] = ordered

    # -- the interface to continuations ------------------------------------------------------------

    @property
    def instruction(self):
        return self.info.instructions[self.index]

    def point(self):
        bound = frozenset(i for i, v in enumerate(self.slots) if v is not UNBOUND)
        nulls = frozenset(i for i, v in enumerate(self.stack) if v is NULL)
        return FramePoint(self.code, self.index, bound, nulls)

    def state(self):
        """The arguments of a continuation at `point`."""
        stack = list(self.stack)
        exc_slots = self.info.exc_slots[self.index]
        for level, position in enumerate(exc_slots):
            inner = exc_slots[level + 1 : level + 2]
            stack[position] = self.stack[inner[0]] if inner else self.handled
        slots = [None if v is UNBOUND else v for v in self.slots]
        return slots + [v for v in stack if v is not NULL]

    def run(self, steps=-1):
        while steps and not self.finished:
            self.step()
            steps -= 1
        return self.result

    def step(self):
        instruction = self.instruction
        assert len(self.stack) == self.info.depth[self.index], instruction
        handler = self.info.handlers[self.index]
        self.index += 1
        try:
            getattr(self, instruction.op)(instruction)
            return
        except Reraise as reraise:
            error = reraise.error
        except BaseException as raised:
            error = raised
        self.raised += 1
        if handler is None:
            self.finished = True
            raise error
        del self.stack[handler.depth :]
        if handler.push_lasti:
            self.push(instruction.offset // 2)
        self.push(error)
        self.index = handler.target

    # -- helpers -----------------------------------------------------------------------------------

    def push(self, value):
        self.stack.append(value)

    def pop(self):
        value = self.stack.pop()
        assert value is not NULL
        return value

    def popn(self, count):
        values = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        assert NULL not in [v for v in values if v is NULL]
        return values

    def invoke(self, function, *args, **kwargs):
        if function is super and not args:
            first = self.slots[0]
            if 0 in self.info.cell_slots:
                first = first.cell_contents
            cell = self.slots[self.info.slot_names.index("__class__")]
            return super(cell.cell_contents, first)
        if function is locals:
            return self.locals()
        return under(self.handled, lambda: function(*args, **kwargs))

    def locals(self):
        result = {}
        for slot, (name, value) in enumerate(zip(self.info.slot_names, self.slots)):
            if value is UNBOUND:
                continue
            if slot in self.info.cell_slots and type(value) is CellType:
                value = contents(value)
                if value is UNBOUND:
                    continue
            result[name] = value
        return result

    def jump_if(self, i, condition):
        if condition:
            self.index = i.target

    # -- prologue, constants, variables ------------------------------------------------------------

    def COPY_FREE_VARS(self, i):
        assert i.arg == len(self.closure)
        self.slots[self.info.free_start :] = self.closure

    def MAKE_CELL(self, i):
        value = self.slots[i.arg]
        self.slots[i.arg] = CellType() if value is UNBOUND else CellType(value)

    def LOAD_CONST(self, i):
        assert i.arg < 0 or i.value is self.code.co_consts[i.arg]
        self.push(i.value)

    def LOAD_FAST(self, i):
        assert i.value == self.info.slot_names[i.arg]
        value = self.slots[i.arg]
        if value is UNBOUND:
            raise UnboundLocalError(
                f"cannot access local variable '{i.value}' where it is not associated with a value"
            )
        self.push(value)

    def LOAD_FAST_AND_CLEAR(self, i):
        value = self.slots[i.arg]
        self.push(NULL if value is UNBOUND else value)
        self.slots[i.arg] = UNBOUND

    def STORE_FAST(self, i):
        value = self.stack.pop()
        self.slots[i.arg] = UNBOUND if value is NULL else value

    def DELETE_FAST(self, i):
        self.LOAD_FAST(i)
        self.pop()
        self.slots[i.arg] = UNBOUND

    def LOAD_CLOSURE(self, i):
        self.push(self.slots[i.arg])

    def LOAD_DEREF(self, i):
        assert i.value == self.info.slot_names[i.arg]
        value = contents(self.slots[i.arg])
        if value is not UNBOUND:
            self.push(value)
        elif i.arg >= self.info.free_start:
            raise NameError(
                f"cannot access free variable '{i.value}' where it is not associated with a value "
                "in enclosing scope"
            )
        else:
            raise UnboundLocalError(
                f"cannot access local variable '{i.value}' where it is not associated with a value"
            )

    def STORE_DEREF(self, i):
        self.slots[i.arg].cell_contents = self.pop()

    def DELETE_DEREF(self, i):
        self.LOAD_DEREF(i)
        self.pop()
        del self.slots[i.arg].cell_contents

    def LOAD_GLOBAL(self, i):
        if i.arg:
            self.push(NULL)
        if i.value in self.globals:
            self.push(self.globals[i.value])
        elif hasattr(builtins, i.value):
            self.push(getattr(builtins, i.value))
        else:
            raise NameError(f"name '{i.value}' is not defined")

    def STORE_GLOBAL(self, i):
        self.globals[i.value] = self.pop()

    def DELETE_GLOBAL(self, i):
        del self.globals[i.value]

    # -- the stack ---------------------------------------------------------------------------------

    def POP_TOP(self, i):
        self.stack.pop()

    def PUSH_NULL(self, i):
        self.push(NULL)

    def COPY(self, i):
        self.push(self.stack[-i.arg])

    def SWAP(self, i):
        self.stack[-1], self.stack[-i.arg] = self.stack[-i.arg], self.stack[-1]

    # -- operators ---------------------------------------------------------------------------------

    def unary(self, function):
        self.push(self.invoke(function, self.pop()))

    def UNARY_NEGATIVE(self, i):
        self.unary(operator.neg)

    def UNARY_POSITIVE(self, i):
        self.unary(operator.pos)

    def UNARY_INVERT(self, i):
        self.unary(operator.invert)

    def UNARY_NOT(self, i):
        self.unary(operator.not_)

    def TO_BOOL(self, i):
        self.unary(bool)

    def BINARY_OP(self, i):
        right, left = self.pop(), self.pop()
        self.push(self.invoke((_INPLACE if i.arg else _BINARY)[i.value], left, right))

    def COMPARE_OP(self, i):
        right, left = self.pop(), self.pop()
        self.push(self.invoke(_COMPARE[i.value], left, right))

    def IS_OP(self, i):
        right, left = self.pop(), self.pop()
        self.push((left is right) ^ bool(i.arg))

    def CONTAINS_OP(self, i):
        right, left = self.pop(), self.pop()
        self.push(self.invoke(lambda: left in right) ^ bool(i.arg))

    def BINARY_SUBSCR(self, i):
        key, container = self.pop(), self.pop()
        self.push(self.invoke(lambda: container[key]))

    def STORE_SUBSCR(self, i):
        key, container, value = self.pop(), self.pop(), self.pop()
        self.invoke(operator.setitem, container, key, value)

    def DELETE_SUBSCR(self, i):
        key, container = self.pop(), self.pop()
        self.invoke(operator.delitem, container, key)

    # -- attributes, imports -----------------------------------------------------------------------

    def LOAD_ATTR(self, i):
        self.push(self.invoke(getattr, self.pop(), i.value))

    def LOAD_METHOD(self, i):
        bound = self.invoke(getattr, self.pop(), i.value)
        self.push(NULL)
        self.push(bound)

    def LOAD_ATTR_TO_CALL(self, i):
        self.LOAD_ATTR(i)

    def CALL_SUPER(self, i):
        function, cls, owner = self.popn(3)
        if function is super or i.arg:
            self.push(self.invoke(function, cls, owner))
        else:
            self.push(self.invoke(function))

    def STORE_ATTR(self, i):
        owner, value = self.pop(), self.pop()
        self.invoke(setattr, owner, i.value, value)

    def DELETE_ATTR(self, i):
        self.invoke(delattr, self.pop(), i.value)

    def IMPORT_NAME(self, i):
        names, level = self.pop(), self.pop()
        self.push(self.invoke(__import__, i.value, self.globals, None, names, level))

    def IMPORT_FROM(self, i):
        try:
            self.push(self.invoke(getattr, self.stack[-1], i.value))
        except AttributeError:
            module = self.stack[-1]
            place = getattr(module, "__file__", "unknown location")
            raise ImportError(
                f"cannot import name {i.value!r} from {module.__name__!r} ({place})"
            ) from None

    # -- control flow ------------------------------------------------------------------------------

    def JUMP(self, i):
        self.index = i.target

    def POP_JUMP_IF_TRUE(self, i):
        self.jump_if(i, self.invoke(bool, self.pop()))

    def POP_JUMP_IF_FALSE(self, i):
        self.jump_if(i, not self.invoke(bool, self.pop()))

    def POP_JUMP_IF_NONE(self, i):
        self.jump_if(i, self.pop() is None)

    def POP_JUMP_IF_NOT_NONE(self, i):
        self.jump_if(i, self.pop() is not None)

    def jump_or_pop(self, i, condition):
        self.jump_if(i, condition)
        if not condition:
            self.pop()

    def JUMP_IF_TRUE_OR_POP(self, i):
        self.jump_or_pop(i, self.invoke(bool, self.stack[-1]))

    def JUMP_IF_FALSE_OR_POP(self, i):
        self.jump_or_pop(i, not self.invoke(bool, self.stack[-1]))

    def GET_ITER(self, i):
        self.unary(iter)

    def FOR_ITER(self, i):
        end = object()
        value = self.invoke(next, self.stack[-1], end)
        if value is end:
            self.pop()
            self.index = i.target
        else:
            self.push(value)

    def RETURN_VALUE(self, i):
        self.result = self.pop()
        assert not self.stack
        self.finished = True

    # -- calls and functions -----------------------------------------------------------------------

    def CALL(self, i):
        values = self.popn(i.arg)
        function = self.pop_callable(values)
        split = len(values) - len(i.value)
        kwargs = dict(zip(i.value, values[split:]))
        self.push(self.invoke(function, *values[:split], **kwargs))

    def pop_callable(self, values):
        """What is called, from below its arguments: NULL is below or above it, or it has `self`."""
        above, below = self.stack.pop(), self.stack.pop()
        if below is NULL:
            return above
        if above is not NULL:
            values.insert(0, above)
        return below

    def CALL_FUNCTION_EX(self, i):
        kwargs = self.pop() if i.arg & 1 else {}
        args = list(self.pop())
        function = self.pop_callable(args)
        self.push(self.invoke(function, *args, **kwargs))

    def MAKE_FUNCTION(self, i):
        code = self.pop()
        closure = self.pop() if i.arg & 8 else None
        annotate = self.pop() if i.arg & 16 else None
        annotations = self.pop() if i.arg & 4 else ()
        kwdefaults = self.pop() if i.arg & 2 else None
        defaults = self.pop() if i.arg & 1 else None
        function = FunctionType(code, self.globals, code.co_name, defaults, closure)
        function.__qualname__ = code.co_qualname
        function.__kwdefaults__ = kwdefaults
        function.__annotations__ = dict(zip(annotations[::2], annotations[1::2]))
        if annotate is not None:
            function.__annotate__ = annotate
        self.push(function)

    def LOAD_BUILD_CLASS(self, i):
        self.push(builtins.__build_class__)

    # -- building ----------------------------------------------------------------------------------

    def BUILD_TUPLE(self, i):
        self.push(tuple(self.popn(i.arg)))

    def BUILD_LIST(self, i):
        self.push(self.popn(i.arg))

    def BUILD_SET(self, i):
        self.push(set(self.popn(i.arg)))

    def BUILD_MAP(self, i):
        values = self.popn(2 * i.arg)
        self.push(dict(zip(values[::2], values[1::2])))

    def BUILD_CONST_KEY_MAP(self, i):
        keys = self.pop()
        self.push(dict(zip(keys, self.popn(i.arg))))

    def BUILD_STRING(self, i):
        self.push("".join(self.popn(i.arg)))

    def BUILD_SLICE(self, i):
        self.push(slice(*self.popn(i.arg)))

    def FORMAT_VALUE(self, i):
        spec = self.pop() if i.arg & 4 else ""
        convert = (lambda x: x, str, repr, ascii)[i.arg & 3]
        value = self.pop()
        self.push(self.invoke(lambda: format(convert(value), spec)))

    def LIST_TO_TUPLE(self, i):
        self.unary(tuple)

    def LIST_APPEND(self, i):
        value = self.pop()
        self.stack[-i.arg].append(value)

    def SET_ADD(self, i):
        value = self.pop()
        self.stack[-i.arg].add(value)

    def MAP_ADD(self, i):
        value, key = self.pop(), self.pop()
        self.stack[-i.arg][key] = value

    def LIST_EXTEND(self, i):
        value = self.pop()
        self.invoke(self.stack[-i.arg].extend, value)

    def SET_UPDATE(self, i):
        value = self.pop()
        self.invoke(self.stack[-i.arg].update, value)

    DICT_UPDATE = SET_UPDATE

    def DICT_MERGE(self, i):
        value = self.pop()
        target = self.stack[-i.arg]
        function = next(
            f for f in (self.stack[-i.arg - 2], self.stack[-i.arg - 3]) if f is not NULL
        )
        for key in value:
            if key in target:
                raise TypeError(
                    f"{function.__module__}.{function.__qualname__}() got multiple values for "
                    f"keyword argument '{key}'"
                )
            target[key] = value[key]

    def UNPACK_SEQUENCE(self, i):
        value = self.pop()
        items = self.invoke(list, value)
        if len(items) < i.arg:
            raise ValueError(f"not enough values to unpack (expected {i.arg}, got {len(items)})")
        if len(items) > i.arg:
            raise ValueError(f"too many values to unpack (expected {i.arg})")
        self.stack += reversed(items)

    def UNPACK_EX(self, i):
        before, after = i.arg & 0xFF, i.arg >> 8
        items = self.invoke(list, self.pop())
        split = len(items) - after
        self.stack += reversed([*items[:before], items[before:split], *items[split:]])

    # -- exceptions --------------------------------------------------------------------------------

    def LOAD_COMMON_CONSTANT(self, i):
        self.push(i.value)

    def LOAD_ASSERTION_ERROR(self, i):
        self.push(AssertionError)

    def RAISE_VARARGS(self, i):
        if i.arg == 0:
            if self.handled is None:
                raise RuntimeError("No active exception to reraise")
            raise Reraise(self.handled)
        cause = self.pop() if i.arg == 2 else UNBOUND
        error = self.pop()

        def throw():
            if cause is UNBOUND:
                raise error
            raise error from cause

        under(self.handled, throw)

    def RERAISE(self, i):
        raise Reraise(self.pop())

    def PUSH_EXC_INFO(self, i):
        error = self.pop()
        self.push(self.handled)
        self.push(error)
        self.handled = error

    def POP_EXCEPT(self, i):
        self.handled = self.stack.pop()

    def CHECK_EXC_MATCH(self, i):
        kind = self.pop()
        self.push(isinstance(self.stack[-1], kind))

    def CHECK_EG_MATCH(self, i):
        kind, error = self.pop(), self.pop()
        if isinstance(error, BaseExceptionGroup):
            match, rest = error.split(kind)
        elif isinstance(error, kind):
            match, rest = ExceptionGroup("", [error]), None
        else:
            match, rest = None, error
        self.push(rest)
        self.push(match)
        if match is not None:
            self.handled = match

    def PREP_RERAISE_STAR(self, i):
        errors, original = self.pop(), self.pop()
        left = [error for error in errors if error is not None]
        assert len(left) <= 1
        self.push(left[0] if left else None)

    def BEFORE_WITH(self, i):
        manager = self.pop()
        cls = type(manager)
        self.push(cls.__exit__.__get__(manager, cls))
        self.push(self.invoke(cls.__enter__, manager))

    def LOAD_SPECIAL(self, i):
        manager = self.pop()
        cls = type(manager)
        self.push(getattr(cls, i.value).__get__(manager, cls))
        self.push(NULL)

    def WITH_EXCEPT_START(self, i):
        error = self.stack[-1]
        leave = self.stack[-4 - i.arg]
        self.push(self.invoke(leave, type(error), error, error.__traceback__))

    # -- match -------------------------------------------------------------------------------------

    def GET_LEN(self, i):
        self.push(len(self.stack[-1]))

    def MATCH_MAPPING(self, i):
        self.push(isinstance(self.stack[-1], dict))

    def MATCH_SEQUENCE(self, i):
        self.push(isinstance(self.stack[-1], (list, tuple, range)))

    def MATCH_KEYS(self, i):
        keys, subject = self.stack[-1], self.stack[-2]
        found = all(key in subject for key in keys)
        self.push(tuple(subject[key] for key in keys) if found else None)

    def MATCH_CLASS(self, i):
        names, cls, subject = self.pop(), self.pop(), self.pop()
        if not isinstance(subject, cls):
            self.push(None)
            return
        if cls in (int, str) and i.arg == 1:
            self.push((subject,))
            return
        wanted = (*cls.__match_args__[: i.arg], *names) if i.arg else names
        if all(hasattr(subject, name) for name in wanted):
            self.push(tuple(getattr(subject, name) for name in wanted))
        else:
            self.push(None)
