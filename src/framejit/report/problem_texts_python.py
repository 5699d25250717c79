"""Graph breaks that Python code causes: title, cause, example and what to do.

In: nothing. Out: `TEXT`, read by `problems`. A test runs every example. Next: problems.
"""

TEXT = '''
=== FJ0130 The call reads or writes the outside world
`print`, `open`, `input`, `breakpoint`, `eval` and the like must happen at their time, in order.
---
@framejit.compile(backend="eager")
def f(x):
    x = x + 1
    print("shape", x.shape)
    return x * 2

f(torch.ones(3))
---
Move it before or behind the compiled function. `framejit.comptime.print(x)` prints while compiling,
without a break.
=== FJ0131 A function is not looked into
Some modules of the standard library, of torch and of other packages are called as they are, not
traced through.
---
import random

@framejit.compile(backend="eager")
def f(x):
    return x * random.choice([1, 2])

f(torch.ones(3))
---
Call it outside and pass the result, or mark a pure function with
`framejit.assume_constant_result` (its result never changes) or `framejit.allow_in_graph`.
=== FJ0132 A function written in C is called
framejit cannot see what a C function of another package does.
---
import time

@framejit.compile(backend="eager")
def f(x):
    return x * time.time()

f(torch.ones(3))
---
Call it outside and pass the result; register kernels with `torch.library.custom_op`.
=== FJ0133 A method is called on an object that framejit does not know
The object's class is written in C, or the method is one that has no meaning here yet.
---
import io

TEXT = io.StringIO("banana")

@framejit.compile(backend="eager")
def f(x):
    return x + len(TEXT.getvalue())

f(torch.ones(3))
---
Compute the value outside of the compiled function and pass it in.
=== FJ0134 A function is marked to be left alone
`framejit.disable`, `skip`, `disallow_in_graph` or `torch.compiler.disable` was put on it.
---
@framejit.disable
def outside(x):
    return x + 1

@framejit.compile(backend="eager")
def f(x):
    return outside(x * 2) * 3

f(torch.ones(3))
---
Nothing, if the mark is meant; otherwise remove it.
=== FJ0135 A graph break was asked for
The program calls `framejit.graph_break()` or `torch._dynamo.graph_break()`.
---
@framejit.compile(backend="eager")
def f(x):
    x = x + 1
    framejit.graph_break("to look at x")
    return x * 2

f(torch.ones(3))
---
Remove the call when it is not needed any more.
=== FJ0136 A value is needed that is not known while capturing
A function that would be run at once on constants gets something that is not constant.
---
import math

class Size:
    def __float__(self):
        return 4.0

@framejit.compile(backend="eager")
def f(x, size):
    return x * math.sqrt(size)

f(torch.ones(3), Size())
---
Pass constants, or compute the value outside.
=== FJ0137 The arguments of a call do not fit
The call passes arguments in a form that the callee does not take, or that framejit does not know.
---
def g(x, a):
    return x + a

@framejit.compile(backend="eager")
def f(x):
    return g(x + 1, **{"a": 1}, **{"a": 2})

try:
    f(torch.ones(3))
except TypeError:
    pass
---
Pass a dict after `**` and a list or tuple after `*`.
=== FJ0138 Coroutines
`async def` and `await` belong to an event loop.
---
async def later(x):
    return x + 1

@framejit.compile(backend="eager")
def f(x):
    later(x).close()
    return x * 2

f(torch.ones(3))
---
Compile the functions that compute, and await outside of them.
=== FJ0139 The capture is too long, too deep or too large
A capture stops after `config.step_limit` instructions, `config.idle_step_limit` in a row that
record no operation, or `config.capture_seconds`; then the running functions go on as plain
Python, and what they call is captured. It inlines calls `config.inline_depth_limit` deep.
Containers of more than `config.size_limit` elements, and texts and numbers of more than 16 bytes
for each of these, are left to Python.
---
def down(x, n):
    return x if n == 0 else down(x + 1, n - 1)

@framejit.compile(backend="eager")
def f(x):
    return down(x, 500)

f(torch.ones(3))
---
Write the recursion as a loop, or raise the limit with `framejit.config.patch`.
=== FJ0140 A module is imported that is not loaded yet
Importing runs the module's code and changes the process.
---
@framejit.compile(backend="eager")
def f(x):
    import this_day_of_all as module
    return x * module.FACTOR

import pathlib, sys, tempfile
folder = tempfile.mkdtemp()
pathlib.Path(folder, "this_day_of_all.py").write_text("FACTOR = 2")
sys.path.insert(0, folder)
f(torch.ones(3))
sys.path.remove(folder)
---
Import it at the top of the file. The break happens once: in the next call the module is loaded.
=== FJ0141 An operator's method gives up late
`__add__` and the like returned the NotImplemented that another function gave it.
---
def give_up():
    return NotImplemented

class Money:
    def __add__(self, other):
        return give_up()

class Purse:
    def __radd__(self, other):
        return 3

@framejit.compile(backend="eager")
def f(x):
    return x * (Money() + Purse())

f(torch.ones(3))
---
Write `return NotImplemented` in the method itself.
=== FJ0142 Names are looked up dynamically
`vars()` without an argument, code run by `exec`, class bodies and cells of unknown origin.
---
@framejit.compile(backend="eager")
def f(x):
    y = x + 1
    return y * len(vars())

f(torch.ones(3))
---
Use the variables by name.
=== FJ0143 super() in an unusual form
`super()` outside of a method, with one argument, or with something that is no class.
---
class A:
    def scale(self, x):
        return x * 2

class B(A):
    def scale(self, x):
        return super(B).__get__(self).scale(x) + 1

@framejit.compile(backend="eager")
def f(x):
    return B().scale(x)

f(torch.ones(3))
---
Write `super().method()` in a method.
=== FJ0144 Exception groups are caught
`except*` splits a group of exceptions, which is left to Python.
---
@framejit.compile(backend="eager")
def f(x):
    try:
        raise ExceptionGroup("several", [ValueError(1)])
    except* ValueError:
        x = x * 2
    return x + 1

f(torch.ones(3))
---
Catch single exceptions in compiled code.
=== FJ0145 An exception is made in a form that is not captured
Its class has its own `__new__`, or what it keeps depends on values that are not known.
---
@framejit.compile(backend="eager")
def f(x):
    try:
        raise OSError(x, "gone")
    except OSError:
        return x + 1

f(torch.ones(3))
---
Raise exceptions of plain classes in compiled code.
=== FJ0146 An exception or a pattern is used in an unusual way
Methods of exceptions such as `add_note`, `except` with something that is no class, class patterns
that do not fit.
---
@framejit.compile(backend="eager")
def f(x):
    try:
        raise ValueError(1)
    except ValueError as error:
        error.add_note("seen")
    return x + 1

f(torch.ones(3))
---
Use exceptions in compiled code only to leave and to be caught.
=== FJ0151 An attribute cannot be read while capturing
The attribute is computed by a class written in C, or the object is of a kind that framejit does not
know.
---
import decimal

CONTEXT = decimal.Context(prec=2)

@framejit.compile(backend="eager")
def f(x):
    return x * CONTEXT.prec

f(torch.ones(3))
---
Read the attribute outside and pass its value.
=== FJ0152 An attribute or item cannot be set while capturing
framejit keeps changes in a log and writes them back behind the graph; it does not know how to write
this one.
---
def helper(x):
    return x

@framejit.compile(backend="eager")
def f(x):
    helper.__code__ = helper.__code__
    return x + 1

f(torch.ones(3))
---
Change the object outside of the compiled function.
=== FJ0153 An object cannot be made while capturing
Its class is written in C, or has a `__del__` or `__new__` whose time matters.
---
class Handle:
    def __del__(self):
        pass

@framejit.compile(backend="eager")
def f(x):
    handle = Handle()
    return x + 1

f(torch.ones(3))
---
Make the object outside and pass it in.
=== FJ0154 A class is made in a form that is not captured
Code of a metaclass or of a base class runs when the class is made: an enum, `__init_subclass__`.
---
import enum

@framejit.compile(backend="eager")
def f(x):
    class Scale(enum.Enum):
        DOUBLE = 2
    return x * Scale.DOUBLE.value

f(torch.ones(3))
---
Define the class at the top of the file.
=== FJ0155 An object is iterated over, measured or tested that framejit does not know
The length, the truth value or the elements come from a class written in C.
---
import array

NUMBERS = array.array("i", [1, 2])

@framejit.compile(backend="eager")
def f(x):
    for number in NUMBERS:
        x = x + number
    return x

f(torch.ones(3))
---
Convert it to a list outside of the compiled function.
=== FJ0156 The whole __dict__ of an object is needed at once
Attributes are followed one by one; this takes all of them.
---
class Thing:
    pass

@framejit.compile(backend="eager")
def f(x):
    return x * (1 + len(Thing.__subclasses__()))

f(torch.ones(3))
---
Name the attributes, or keep the values in a dict of their own.
=== FJ0157 A key has its own __hash__ or __eq__
Looking up such a key runs Python code that may answer differently each time. Neither is
a key of an existing container captured that was another object in each of several captures.
---
class Key:
    def __hash__(self):
        return 1

    def __eq__(self, other):
        return isinstance(other, Key)

TABLE = {Key(): 2}

@framejit.compile(backend="eager")
def f(x):
    return x * TABLE[Key()]

f(torch.ones(3))
---
Use strings, numbers, tuples, enums or frozen dataclasses as keys.
=== FJ0158 A generator is used in a way that is not captured
A generator that was started elsewhere, that is thrown into, or that is dropped in the middle.
---
def numbers():
    yield 1
    yield 2

@framejit.compile(backend="eager")
def f(x):
    steps = numbers()
    x = x * next(steps)
    try:
        steps.throw(3)
    except TypeError:
        x = x + 1
    return x

f(torch.ones(3))
---
Start generators inside the compiled function and run them to their end, or take a list.
=== FJ0159 The address of an object is calculated with
`id()` and hashes of objects differ from process to process.
---
@framejit.compile(backend="eager")
def f(x, thing):
    return x * (id(thing) % 2)

f(torch.ones(3), object())
---
Compare objects with `is`; count them with numbers of your own.
=== FJ0160 The text of an object is needed
`str()`, `repr()` or an f-string of a value that is not known while capturing, such as a tensor.
---
@framejit.compile(backend="eager")
def f(x):
    return x + 1, f"x = {x}"

f(torch.ones(3))
---
Format behind the compiled function, or format what is known (`x.shape`, `x.dtype`).
=== FJ0161 A value cannot be built for real
At the end of a capture, or at a break, a value is needed that exists only while capturing.
---
import contextvars

SCALE = contextvars.ContextVar("scale", default=1)

@framejit.compile(backend="eager")
def f(x):
    token = SCALE.set(2)
    SCALE.reset(token)
    return x * 2, token

f(torch.ones(3))
---
Keep such values inside the compiled function, without a break while they are in use.
=== FJ0162 The signature of a callable is not known
`inspect.signature` is answered for Python functions and their methods.
---
import inspect

@framejit.compile(backend="eager")
def f(x):
    return x * len(inspect.signature(len).parameters)

f(torch.ones(3))
---
Take the signature outside of the compiled function.
=== FJ0163 A context variable or weak reference in an unusual form
Weak references with callbacks, tokens from elsewhere.
---
import weakref

class Thing:
    pass

THING = Thing()

@framejit.compile(backend="eager")
def f(x):
    reference = weakref.ref(THING, lambda gone: None)
    return x + 1, reference

f(torch.ones(3))
---
Make the reference outside of the compiled function.
=== FJ0164 The order of a set matters
The order of a set depends on hashes, addresses and on how it was filled.
---
class Thing:
    def __init__(self, scale):
        self.scale = scale

@framejit.compile(backend="eager")
def f(x):
    for thing in {Thing(2), Thing(3)}:
        x = x * thing.scale
    return x

f(torch.ones(3))
---
Use a list or a dict, or sort the set.
=== FJ0165 An object cannot be copied while capturing
`copy.copy` and `copy.deepcopy` are captured for containers and plain objects.
---
import copy

@framejit.compile(backend="eager")
def f(x):
    return x + len(copy.deepcopy({"a": [1]}, {}))

f(torch.ones(3))
---
Copy outside of the compiled function.
=== FJ0166 A container changes while it is iterated over
The keys of a dict were replaced under an iterator, which goes on with what it finds.
---
@framejit.compile(backend="eager")
def f(x):
    table = {"a": 1, "b": 2}
    for key in table:
        x = x * table[key]
        if "b" in table:
            del table["b"]
            table["c"] = 3
    return x

f(torch.ones(3))
---
Iterate over a copy: `for key in list(table)`.
=== FJ0167 functools in an unusual form
`lru_cache` of a function that raises, or that runs for the first time and does more than compute,
or whose cache is full or would keep a tensor or a new object; `cache_clear()`, `cache_info()`,
`singledispatch` on local classes.
---
import functools

@functools.lru_cache
def scale(n):
    return n * 2

@framejit.compile(backend="eager")
def f(x):
    scale.cache_clear()
    return x * scale(2)

f(torch.ones(3))
---
Set such objects up at the top of the file.
'''
