"""Sources of programs too large to write down: many locals, jumps that need long operands."""

from __future__ import annotations


def _many_locals():
    body = "\n    ".join(f"q{i} = a + {i}" for i in range(400))
    names = ", ".join(f"q{i}" for i in range(0, 400, 7))
    cells = ", ".join(f"q{i}" for i in range(300, 303))
    return f"""
def many_locals(a):
    {body}
    s = 0
    for i in range(4):
        if i == 1:
            s += note(100.5)
        try:
            if i == 2:
                del q399
                raise ValueError
        except ValueError:
            s += 10000
        s += i
    f = lambda: ({cells})
    q301 = 5
    try:
        q399
    except NameError as e:
        note(str(e))
    note.some_name_{400} = 3
    late = note.some_name_400
    try:
        note.missing_name()
    except AttributeError:
        pass
    return s, f(), late, ({names})
"""


def _long_jumps(name, statements):
    body = "\n        ".join(f"b = (a + {i}) * b % 7" for i in range(statements))
    return f"""
def {name}(a):
    b = 1
    for i in range(2):
        if a > 5:
            continue
        {body}
        if i == 1:
            note(b)
        try:
            if b == a - 100:
                {body.replace("        b", "                b")}
            note(1 // i)
        except ZeroDivisionError:
            note("zero")
            continue
        with Manager("w", True):
            raise KeyError(b)
    return b
"""


GENERATED = {
    "many_locals": _many_locals(),
    "long_jumps": _long_jumps("long_jumps", 60),
    "very_long_jumps": _long_jumps("very_long_jumps", 4000),
}
