"""Tuples, lists, dicts, sets, deques and their iterators, existing or made by the program.

In: containers and their elements. Out: values that know their elements and log their changes.
Next room: objects.
"""
