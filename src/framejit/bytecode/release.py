"""Picks the table module of the running Python release: the only version test of the package.

In: ``sys.version_info``. Out: ``tables``, a module of the shape of `python311`. Importing the
bytecode room on a release without tables raises ImportError; `api` then runs everything eagerly.
"""

from __future__ import annotations

import sys

if sys.version_info[:2] == (3, 11):
    from framejit.bytecode import python311 as tables
elif sys.version_info[:2] == (3, 12):
    from framejit.bytecode import python312 as tables
elif sys.version_info[:2] == (3, 13):
    from framejit.bytecode import python313 as tables
elif sys.version_info[:2] == (3, 14):
    from framejit.bytecode import python314 as tables
else:
    raise ImportError(f"framejit has no bytecode tables for Python {sys.version.split()[0]}")

__all__ = ["tables"]
