"""The version of framejit, in one place (setup.py reads it).

In: nothing. Out: ``__version__``, for reports, packages and users.
Imports nothing of framejit.
"""

__version__ = "0.1.0"
