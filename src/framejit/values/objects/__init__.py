"""Functions, classes, instances, descriptors, exceptions, and the texts they are written as.

In: what the program's own code defines. Out: values that run it as CPython does, in frames of the
interpreter. Next room: torch.
"""
