"""Numpy's arrays beside tensors: its functions computed by torch's.

In: arrays, their dtypes, calls of numpy. Out: the same on tensors. Next room: stdlib.
"""
