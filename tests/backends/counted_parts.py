"""A backend that counts the graphs that AOTAutograd makes."""

from checking import CountingBackend
from framejit.backends import aot_autograd
from framejit.backends.aot import run_as_is


class Parts(CountingBackend):
    """Counts captured graphs, and those of AOTAutograd: with a backward graph and without."""

    def __init__(self):
        super().__init__()
        self.forward, self.inference = [], []

        def note(kept):
            return lambda gm, inputs: kept.append(gm) or run_as_is(gm, inputs)

        self.backend = aot_autograd(note(self.forward), run_as_is, None, None, note(self.inference))

    def __call__(self, gm, inputs):
        super().__call__(gm, inputs)
        return self.backend(gm, inputs)

    @property
    def counts(self):
        return len(self.graphs), len(self.forward), len(self.inference)
