"""What is known of one node of a graph that is being recorded.

In: a node, its value as an `Example`, what it does besides. Out: which memory it touches, whether
it has a gradient, whether it must stay. Next: builder.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
import torch.fx

from .metadata import Example, examples_in, memory_of_all


@dataclasses.dataclass(slots=True, eq=False)
class Operation:
    """One node: an input, an operation of the program, an item of a result, a nested graph, ..."""

    node: torch.fx.Node
    #: What is known of its value now: an `Example`, a container of them, a constant, a module.
    example: Any
    called: bool = False  # by the program
    sets_state: bool = False
    random: bool = False
    raises: bool = False  # for some data
    exchanges: bool = False  # data with other processes
    #: What it writes to, whether that is content (not only sizes and strides), and whether the
    #: elements there lie with gaps, or turned.
    writes: Sequence[Example] = ()
    content: bool = False
    strided: bool = False
    #: Does autograd not count the writes (`_version`)?
    uncounted: bool = False
    #: Does it nothing but return new tensors of its own, of static sizes?
    fresh: bool = False
    #: Was it copied into a nested graph? Then it goes unless something uses it.
    aside: bool = False
    #: The step in which the program entered the transform (`torch.func`) that it is inside of. Its
    #: result is of no use outside.
    transform: int | None = None

    @property
    def effect(self) -> bool:
        """Must it happen exactly once, whether or not something uses its result?"""
        return self.sets_state or self.random or bool(self.writes)

    @property
    def examples(self) -> list[Example]:
        """The tensors of its result."""
        return examples_in(self.example)

    @property
    def differentiable(self) -> bool:
        """Has its result a gradient?"""
        return any(example.meta.requires_grad for example in self.examples)

    @property
    def memory(self) -> set[int]:
        """The ids of all examples that may share memory with its result."""
        return memory_of_all(self.examples)

    @property
    def written(self) -> set[int]:
        """The ids of all examples that may share memory with what it writes to."""
        return memory_of_all(self.writes)
