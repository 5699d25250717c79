"""The kinds of errors, of frames that run as plain Python, and of reasons to compile again.

In: nothing. Out: `TEXT`, read by `problems`. A test runs every example. Next: problems.
"""

TEXT = '''
=== FJ0201 A backend raised
The backend could not compile a graph. The message names the backend and what it raised, which is
also the `__cause__`; a file that reproduces the error is written where that is possible.
---
def backend(gm, example_inputs):
    raise ValueError("no such kernel")

@framejit.compile(backend=backend)
def f(x):
    return x + 1

f(torch.ones(3))
---
Run the file of the message with another backend (`backend="eager"` runs graphs as they are), and
report it to the backend's authors; or wrap the line in `framejit.disable`.
=== FJ0202 A backend cannot be called, or returned something that cannot be called
A backend takes `(gm, example_inputs)` and returns a function of the inputs.
---
def backend(gm, example_inputs):
    print(gm.graph)

@framejit.compile(backend=backend)
def f(x):
    return x + 1

f(torch.ones(3))
---
Take two arguments, and return `gm.forward` or another callable.
=== FJ0203 A dimension is marked as dynamic, and the code allows one size only
`mark_dynamic` promises that any size works; a line of the program assumes one.
---
@framejit.compile(backend="eager")
def f(x):
    return x + 1 if x.shape[0] == 5 else x

x = torch.ones(5)
framejit.mark_dynamic(x, 0)
f(x)
---
Write the line so that it works for any size, or use `maybe_mark_dynamic`.
=== FJ0204 There is no backend of that name
The name is not registered, and no installed package brings it.
---
framejit.compile(torch.nn.Linear(2, 2), backend="indcutor")
---
`framejit.list_backends()` names them all; `framejit doctor` says which can be used here.
=== FJ0205 A package cannot be written or used
The file is damaged, was made for another program or machine, or cannot be written.
---
framejit.load_package("/nowhere/model.fjp", torch.nn.Linear(2, 2))
---
Read what the message says differs; `framejit package verify FILE` checks a file. Save the package
again where the program has changed.
=== FJ0206 A bug of framejit
Something went wrong inside of framejit. The function runs as plain Python, so results are not
affected; the warning holds a report that is ready to file.
---
import framejit.compiler

def bug(*args):
    raise KeyError("lost")

capture, framejit.compiler.capture = framejit.compiler.capture, bug  # put in for show
try:
    framejit.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
finally:
    framejit.compiler.capture = capture
---
Please file the report. `framejit.config.raise_internal_errors = True` turns the warning into an
error with its traceback.
=== FJ0207 What a backend compiled does not work
The compiled graph raised, and the same lines as plain Python do not. They run as plain Python, on
every call.
---
def backend(gm, example_inputs):
    def compiled(*args):
        raise RuntimeError("miscompiled")
    return compiled

@framejit.compile(backend=backend)
def f(x):
    return x + 1

f(torch.ones(3))
---
Report it to the backend's authors; use another backend or `framejit.disable` until then.
=== FJ0208 Something said at compile time does not hold
A function given to `framejit.comptime` raised, or asserted something that is not so: a size is
dynamic, a fact does not hold.
---
@framejit.compile(backend="eager", dynamic=True)
def f(x):
    framejit.comptime.assert_static(x)
    return x + 1

f(torch.ones(5))
---
Correct the function, or mark the size as static (`framejit.mark_static`).
=== FJ0209 Nothing that is compiled fits a call
Under `run(strict=True)` nothing new is compiled, and nothing runs as plain Python instead. The
message says for each compiled entry which guard does not hold.
---
f = framejit.compile(lambda x: x + 1, backend="eager", dynamic=False)
f(torch.ones(3))
with framejit.run(strict=True):
    f(torch.ones(4))
---
Compile for this kind of input as well before you save the package or start to serve, for instance
for sizes that vary (`mark_dynamic`); or use `run()`, which runs such calls as plain Python.
=== FJ0210 A wrong argument of compile and its like
The message names the argument, what it must be, and what it was.
---
framejit.compile(torch.nn.Linear(2, 2), fullgraph="yes")
---
Pass what the message asks for.
=== FJ0211 A wrong option in framejit.config
The option does not exist, or cannot have this value.
---
framejit.config.recompile_limit = 0
---
The comments in `framejit/config.py` say what each option does.
=== FJ0212 A wrong argument of mark_dynamic and its like
They take a tensor and dimensions that it has.
---
framejit.mark_dynamic(torch.ones(3), 5)
---
Count dimensions from 0; pass the tensor itself, before it is converted.
=== FJ0213 A wrong argument for a backend
The options or the mode do not fit the backend, or what is registered is not one.
---
framejit.register_backend("not a function", name="mine")
---
Pass a callable `f(gm, example_inputs)` and options that the backend knows.
=== FJ0214 The object is not compiled
`framejit.guards` and its like ask about something that `framejit.compile` returned.
---
framejit.guards(torch.nn.Linear(2, 2))
---
Pass the result of `framejit.compile`, not the original.
=== FJ0215 Double backward through a compiled graph
A graph that AOTAutograd or Inductor compiled has its first derivative only.
---
@framejit.compile(backend="aot_eager")
def f(x):
    return (x ** 3).sum()

x = torch.ones(3, requires_grad=True)
(gradient,) = torch.autograd.grad(f(x), x, create_graph=True)
gradient.sum().backward()
---
Compile the function with `backend="eager"`, or leave it out with `framejit.disable`: then PyTorch
differentiates as often as is asked for.
=== FJ0216 A compiled call does something else than plain Python
An audit made the same call as plain Python, from the same state, and the two differ. The message
says where; a script that shows it is written where that is possible.
---
def backend(gm, example_inputs):
    return lambda *args: [result + 1 for result in gm(*args)]

f = framejit.compile(lambda x: x * 2, backend=backend)
with framejit.audit(folder="/dev/null"):
    f(torch.ones(3))
---
If `backend="eager"` shows it, too, it is a bug of framejit: please report the script. Otherwise it
is the backend's; `rtol` and `atol` say how near is near enough. Leave the function out with
`framejit.disable` meanwhile.
=== FJ0301 Generator functions and coroutines
A function with `yield` or `async` runs as plain Python when it is compiled itself; compiled
functions that it calls are still compiled.
---
@framejit.compile(backend="eager")
def f(x):
    yield x + 1

list(f(torch.ones(3)))
---
Compile the functions that the generator calls. Generators inside a compiled function are captured.
=== FJ0302 A frame runs no PyTorch operation
Inside a `framejit.optimize` block every function that starts is looked at; what computes nothing
with tensors is left alone. A function that was compiled itself, and of which no operation could be
captured, has no graph.
---
def greet(name):
    return "hello " + name

with framejit.optimize("eager"):
    greet("you")
---
Nothing.
=== FJ0303 The function was made by torch.compile
`torch.compile` compiles what is inside, so framejit leaves it alone.
---
f = framejit.compile(torch.compile(lambda x: x + 1, backend="eager"), backend="eager")
f(torch.ones(3))
---
Compile the original function with one of the two.
=== FJ0304 A release of Python that framejit does not know
Everything runs as plain Python, with one warning.
---
from framejit.report import messages

messages.warn_unsupported_release()  # what happens on another release
---
Use a release that is supported: CPython 3.11.
=== FJ0305 A function was compiled too often
It has as many entries as `framejit.config.recompile_limit` allows. They stay in use; other inputs
run as plain Python.
---
@framejit.compile(backend="eager")
def f(x, name):
    return x + len(name)

for number in range(20):
    f(torch.ones(3), "name" * number)
---
Read which guard fails: the warning names the last one, `framejit.explain` all of them. Pass what
varies as a tensor, or compile one function per value.
=== FJ0306 A call that is left alone
Nothing is captured in this call: the function is marked with `framejit.disable` or `skip`,
`framejit.config.disable` is on, the call stands inside `framejit.disable()` or `run()`, inside of a
transform of `torch.func` or a `TorchFunctionMode`, or a builtin function is replaced
(`mock.patch`). Only `framejit.explain` and reports that follow a program mention it.
---
f = framejit.compile(framejit.disable(lambda x: x + 1), backend="eager")
print(framejit.explain(f)(torch.ones(3)))
---
Take the mark or the block away; compile what calls the transform, and not what it calls.
=== FJ0307 A graph raised and ran again as plain Python
The compiled graph raised before it had changed anything, so the same lines ran as plain Python:
the exception that reaches the program is the one that eager code raises.
---
@framejit.compile(backend="eager")
def f(x, index):
    return torch.index_select(x, 0, index)

try:
    f(torch.ones(3), torch.tensor(7))
except IndexError:
    pass
---
Nothing, if the exception is meant.
=== FJ0308 A piece of a package is not used
The package is good, but this part of it does not fit; it is compiled as if it were not there.
---
import os, tempfile

def f(x, scale=2):
    return x * scale

path = os.path.join(tempfile.mkdtemp(), "f.fjp")
compiled = framejit.compile(f, backend="eager")
compiled(torch.ones(3))
compiled.save_package(path)

def f(x, scale=2):
    return x * scale + 1

framejit.load_package(path, f, backend="eager", skip_source_check=True)
---
The message says what differs. Save the package again.
=== FJ0309 A call that is not audited
An audit runs a call a second time, from the state before it. Some objects cannot be put back to
what they were: generators, files, sockets, sparse tensors, tensors whose history was changed in
place. Programs that do something else each time cannot be compared.
---
f = framejit.compile(lambda x, numbers: x + next(numbers), backend="eager")
with framejit.audit():
    f(torch.ones(3), (number for number in range(3)))
---
Audit the functions that it calls: they are, where the outer one is not compiled. Or give it objects
that can be put back, such as a list for a generator.
=== FJ0401 A tensor of another kind
The dtype, device, number of dimensions, a size, or whether it requires a gradient is not what the
code was compiled for. A size that varies becomes dynamic in the second compilation.
---
@framejit.compile(backend="eager")
def f(x):
    return x + 1

f(torch.ones(3))
f(torch.ones(3, dtype=torch.float64))
---
Call it with tensors of one kind, or mark sizes that vary (`framejit.mark_dynamic`, `dynamic=True`).
=== FJ0402 Another value
A number, string, flag or truth value that the program looked at has changed.
---
@framejit.compile(backend="eager")
def f(x, name):
    return x + len(name)

f(torch.ones(3), "a")
f(torch.ones(3), "ab")
---
Pass it as a tensor, keep it constant, or compile one function per value.
=== FJ0403 An object of another class
What the program did depends on the class of an argument, attribute or global.
---
@framejit.compile(backend="eager")
def f(x, parts):
    return x + len(parts)

f(torch.ones(3), [1])
f(torch.ones(3), (1,))
---
Pass objects of one class.
=== FJ0404 Another object or function
The program depends on which object this is: a module, a function, an object used as a flag.
---
@framejit.compile(backend="eager")
def f(x, function):
    return function(x)

f(torch.ones(3), lambda x: x + 1)
f(torch.ones(3), lambda x: x + 2)
---
Make it once and pass the same object each time.
=== FJ0405 A container of another size or with other keys
The number of elements, the keys of a dict, or whether an attribute exists has changed.
---
@framejit.compile(backend="eager")
def f(x, parts):
    for part in parts:
        x = x + part
    return x

f(torch.ones(3), [torch.ones(3)])
f(torch.ones(3), [torch.ones(3), torch.ones(3)])
---
Keep the number of elements and the keys constant, or stack tensors into one.
=== FJ0406 Torch's global state differs
Grad mode, autocast, default dtype, active modes and the like are part of what is compiled.
---
@framejit.compile(backend="eager")
def f(x):
    return x + 1

f(torch.ones(3))
with torch.no_grad():
    f(torch.ones(3))
---
Make every call under the same modes, or call it once under each: both are kept.
=== FJ0407 A size outside of what was assumed
The code is compiled for sizes that vary, and something in it holds for some of them only.
---
@framejit.compile(backend="eager", dynamic=True)
def f(x):
    return x + 1 if x.shape[0] > 8 else x

f(torch.ones(9))
f(torch.ones(4))
---
Write the line so that it works for all sizes; otherwise one entry per side is what is needed.
=== FJ0408 Two arguments are the same object now, or no longer
The program was captured with arguments that were one object, or were different ones.
---
@framejit.compile(backend="eager")
def f(x, y):
    x.add_(1)
    return x + y

x = torch.ones(3)
f(x, x)
f(x, torch.ones(3))
---
Pass distinct tensors (`x.clone()`), or accept one entry for each case.
'''
