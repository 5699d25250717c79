"""`Regions` is a backend that takes graphs with regions, and counts them."""

from framejit.backends.registry import lookup_backend

#: Asks for regions also where they cost more time in calls than they save.
ALL = {"regions": True}


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
