"""The package room: compiled code in a file, for the next process.

In: the entries of compiled objects. Out: one file with a manifest, guards, generated functions,
graphs and backend artefacts; and entries made from it without tracing or compiling anything.
"""

from .container import Reader
from .files import Member, load, opened, rows_for, save
from .several import PackageFile, package_file

__all__ = ["Member", "PackageFile", "Reader", "load", "opened", "package_file", "rows_for", "save"]
