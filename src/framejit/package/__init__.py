"""The package room: compiled code in a file, for the next process.

In: the entries of a compiled object. Out: one file with a manifest, guards, generated functions,
graphs and backend artefacts; and entries made from it without tracing or compiling anything.
"""

from .container import Reader
from .files import load, save

__all__ = ["Reader", "load", "save"]
