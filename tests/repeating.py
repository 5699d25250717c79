"""Notes what the calls of some functions record while captured, as repeats of the graph.

`noted(Block)` notes the calls of ``Block.forward``, `noted(f)` those of ``f``. `Regions` is a
backend that takes graphs with regions, and counts them.
"""

import contextlib

from framejit.backends.registry import lookup_backend
from framejit.graph.builder import GraphBuilder
from framejit.graph.repeats import REPEATS, Repeat
from framejit.interpreter.loop import Interpreter


@contextlib.contextmanager
def noted(*called):
    """In this block, graphs have repeats: the calls of these functions and classes of modules."""
    names = {getattr(one, "forward", one).__code__: one.__name__ for one in called}
    make, answer, finish = Interpreter._frame_of, Interpreter._answer, GraphBuilder.finish
    opened, found = {}, {}

    def make_noting(self, request):
        frame = make(self, request)
        if request.function.code in names:
            opened[id(frame)] = (frame, len(self.space.builder.recorded))
        return frame

    def answer_noting(self, frame, value):
        if id(frame) in opened:
            _, start = opened.pop(id(frame))
            builder = self.space.builder
            nodes = [one.node for one in builder.recorded[start:] if one.node.op != "get_attr"]
            calls = found.setdefault(builder, {}).setdefault(names[frame.info.code], [])
            calls.append([node.name for node in nodes])
        return answer(self, frame, value)

    def finish_noting(self, outputs):
        module, examples = finish(self, outputs)
        repeats = [Repeat(name, calls) for name, calls in found.get(self, {}).items()]
        module.meta[REPEATS] = repeats
        return module, examples

    Interpreter._frame_of, Interpreter._answer = make_noting, answer_noting
    GraphBuilder.finish = finish_noting
    try:
        yield
    finally:
        Interpreter._frame_of, Interpreter._answer = make, answer
        GraphBuilder.finish = finish


class Regions:
    """A backend that counts the calls of each region of the graphs it is given."""

    regions = True

    def __init__(self, backend="aot_eager"):
        self.backend = lookup_backend(backend)
        self.graphs = []

    def __call__(self, gm, inputs):
        self.graphs.append(gm)
        return self.backend(gm, inputs)

    @property
    def calls(self):
        """Per graph: how often each of its subgraphs is called, by their names."""
        return [calls_of(gm) for gm in self.graphs]


def calls_of(gm):
    """How often a graph calls each of its subgraphs, by their names."""
    counts = {}
    for node in gm.graph.nodes:
        if getattr(node.target, "__name__", "") == "invoke_subgraph":
            name = node.args[0].target
            counts[name] = counts.get(name, 0) + 1
    return counts
