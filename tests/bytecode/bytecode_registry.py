"""What the continuation tests' programs are made of: a log, a registry, awkward objects."""

from __future__ import annotations

import sys

LOG: list = []
PROGRAMS: dict = {}


def program(*args, **kwargs):
    """Register the function with these arguments; made anew for each run when callable."""

    def register(function):
        name = function.__name__
        while name in PROGRAMS:
            name += "'"
        PROGRAMS[name] = (function, args, kwargs)
        return function

    return register


def note(value=None):
    LOG.append(value)
    return value


def show(a, b=None, c=0, *args, k=0, **kwargs):
    LOG.append(("show", a, b, c, args, k, kwargs))
    return (a, b, c, args, k, kwargs)


class Manager:
    def __init__(self, name, swallow=False):
        self.name = name
        self.swallow = swallow

    def __enter__(self):
        LOG.append("enter " + self.name)
        return self

    def __exit__(self, kind, error, traceback):
        handled = sys.exc_info()[0]
        LOG.append(
            f"exit {self.name} {kind and kind.__name__} {error!r} {handled and handled.__name__}"
        )
        return self.swallow


class Picky:
    """Logs truth tests, attribute accesses and comparisons; fails on request."""

    def __init__(self, value):
        self.__dict__["value"] = value

    def __bool__(self):
        LOG.append(("bool", self.value))
        if self.value == "bad":
            raise ArithmeticError("no truth")
        return bool(self.value)

    def __getattr__(self, name):
        LOG.append(("getattr", name))
        if name.startswith("no"):
            raise AttributeError(name)
        return lambda *args: (name, args)

    def __setattr__(self, name, value):
        LOG.append(("setattr", name, value))
        if name.startswith("no"):
            raise AttributeError(name)

    def __delattr__(self, name):
        LOG.append(("delattr", name))

    def __add__(self, other):
        LOG.append(("add", other))
        if other == 0:
            raise ZeroDivisionError("add")
        return other

    def __eq__(self, other):
        LOG.append(("eq", other))
        return self

    def __iter__(self):
        LOG.append("iter")
        for item in range(self.value):
            LOG.append(("item", item))
            yield item
        if self.value > 3:
            raise LookupError("too far")
