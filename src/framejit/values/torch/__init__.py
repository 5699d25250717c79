"""Tensors, PyTorch's functions, modules, autograd and transforms.

In: tensors and calls of torch. Out: nodes of the graph and their fake results. Next room: numpy.
"""
