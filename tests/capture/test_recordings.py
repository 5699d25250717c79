"""Calls that are repeated instead of executed again: what they save, and that nothing else changes.

With ``verify_recordings`` each capture is made a second time with every call executed; graphs with
their stack traces, guards and generated functions must be the same.
"""

import functools
import itertools

import pytest
import torch
from torch import nn

import framejit
from checking import check
from framejit import config
from framejit.report import drawing, events
from repeating import ALL

X = torch.linspace(-1, 1, 8).reshape(2, 4)


class Block(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.one = nn.Linear(width, width)
        self.two = nn.Linear(width, width)

    def forward(self, x):
        return x + self.two(torch.relu(self.one(self.norm(x))))


class Stack(nn.Module):
    """Layers one after the other; ``make(i)`` makes them."""

    def __init__(self, make, count=6):
        super().__init__()
        self.layers = nn.ModuleList([make(i) for i in range(count)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def steps_of(model, *args):
    """How many instructions a capture executes."""
    with events.recording(events.CaptureEnd) as ends:
        framejit.compile(model, backend="eager")(*args)
    return sum(end.steps for end in ends)


def stack(make, count=6):
    torch.manual_seed(0)
    return Stack(make, count)


@pytest.fixture(autouse=True)
def verified():
    with config.patch(verify_recordings=True):
        yield


def test_a_further_layer_takes_no_instructions_of_its_own():
    with config.patch(verify_recordings=False):
        few, many = [steps_of(stack(lambda i: Block(), count), X) for count in (8, 40)]
    assert (many - few) / 32 <= 12


def test_without_recordings_each_layer_is_executed():
    with config.patch(recordings=False):
        few, many = [steps_of(stack(lambda i: Block(), count), X) for count in (8, 40)]
    assert (many - few) / 32 >= 100


def test_the_graph_is_that_of_all_layers():
    check(stack(lambda i: Block(), 12), X, graphs=1, ops=12 * 5)


class WithIndex(Block):
    def __init__(self, index):
        super().__init__()
        self.index = index


class ScaledByIndex(WithIndex):
    def forward(self, x):
        return super().forward(x) * self.index


class Shifted(Block):
    def forward(self, x):
        return super().forward(x) - 1


class WithParent(Block):
    def __init__(self, index):
        super().__init__()
        self.__dict__["others"] = []

    def forward(self, x):
        return self.others[0](x) if self.others else super().forward(x)


class Counting(Block):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x) * self.calls


class Dropping(Block):
    def forward(self, x):
        return torch.dropout(super().forward(x), 0.5, self.training)


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.linear(x)) + x


class Quiet(Block):
    def forward(self, x):
        with torch.no_grad():
            scale = x.abs().amax()
        return super().forward(x) / scale


class Trying(Block):
    def forward(self, x):
        try:
            return self.missing(x)
        except AttributeError:
            return super().forward(x)


class Pair(Block):
    def forward(self, x):
        x = x[0] if isinstance(x, tuple) else x
        return super().forward(x), {"mean": x.mean(), "name": "pair"}, self.one.weight


class Noted(Block):
    def __init__(self, notes):
        super().__init__()
        self.notes = notes

    def forward(self, x):
        self.notes.append(x.shape[0])
        return super().forward(x)


def shared_layer():
    torch.manual_seed(0)
    block = Block()
    return stack(lambda i: block)


def shared_parts():
    torch.manual_seed(0)
    first = Block()

    def make(index):
        block = Block()
        block.one, block.two.weight = first.one, first.two.weight
        return block

    return stack(make)


def tied_in_one_layer():
    def make(index):
        block = Block()
        if index in (2, 5):
            block.two = block.one
        return block

    return stack(make)


def parents():
    model = stack(WithParent)
    for layer in model.layers[3:]:
        layer.others.append(model.layers[0])
    return model


def hooked():
    model = stack(lambda i: Block())
    model.layers[3].register_forward_hook(lambda m, args, out: out * 2)
    return model


def half_frozen():
    model = stack(lambda i: Block())
    for layer in model.layers[::2]:
        layer.requires_grad_(False)
    return model


def patched():
    model = stack(lambda i: Block())
    model.layers[2].forward = lambda x: x * 3
    return model


class Registered(Block):
    def __init__(self, registry):
        super().__init__()
        self.__dict__["registry"] = registry

    def forward(self, x):
        return super().forward(x) + (2 if self.registry.get("first") is self else 1)


def registered():
    registry = {}
    model = stack(lambda i: Registered(registry))
    registry["first"] = model.layers[4]
    return model


REGISTRY = {}


class ByNumber(WithIndex):
    def forward(self, x):
        return super().forward(x) + REGISTRY[self.index]


def by_number():
    REGISTRY.update({i: float(i % 2) for i in range(6)})
    return stack(ByNumber)


def noting(notes, index):
    return Noted(notes)


MODELS = {
    "plain": (lambda: stack(lambda i: Block()), 30),
    "index that nobody looks at": (lambda: stack(WithIndex), 30),
    "index that counts": (lambda: stack(ScaledByIndex), 36),
    "two kinds in turn": (lambda: stack(lambda i: Shifted() if i % 2 else Block(), 8), 44),
    "one layer many times": (shared_layer, 30),
    "parts that are shared": (shared_parts, 30),
    "weights tied in some layers": (tied_in_one_layer, 30),
    "layers that know others": (parents, 30),
    "a hook in one layer": (hooked, 31),
    "some layers frozen": (half_frozen, 30),
    "forward replaced in one layer": (patched, 26),
    "a layer in a registry": (registered, 36),
    "numbers of layers in a registry": (by_number, 36),
    "batch norm in training": (lambda: stack(lambda i: Normed()), 24),
    "batch norm in evaluation": (lambda: stack(lambda i: Normed()).eval(), 18),
    "gradients switched off inside": (lambda: stack(lambda i: Quiet()), 60),
    "an error that is caught inside": (lambda: stack(lambda i: Trying()), 30),
    "a list that all layers write": (lambda: stack(functools.partial(noting, [])), 30),
}


@pytest.mark.parametrize("name", MODELS)
def test_layers(name):
    make, ops = MODELS[name]
    torch.manual_seed(0)
    check(None, X, graphs=1, ops=ops, make=make)


def test_layers_that_count_their_calls():
    check(None, X, graphs=1, ops=36, calls=1, make=lambda: stack(lambda i: Counting()))


def test_results_that_are_containers():
    def run(x):
        results = [layer(x) for layer in model.layers]
        return results, [one[2] is layer.one.weight for one, layer in zip(results, model.layers)]

    model = stack(lambda i: Pair())
    check(run, X, graphs=1, ops=6 * 6)


def test_each_repetition_draws_its_own_numbers():
    model = stack(lambda i: Dropping())
    compiled = framejit.compile(model, backend="eager")
    for _ in range(2):
        torch.manual_seed(3)
        expected = model(X)
        torch.manual_seed(3)
        torch.testing.assert_close(compiled(X), expected, rtol=0, atol=0)


def test_gradients():
    model, other = [stack(lambda i: Block()) for _ in range(2)]
    framejit.compile(model, backend="aot_eager")(X).sum().backward()
    other(X).sum().backward()
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad)


def test_sizes_that_vary():
    model = stack(lambda i: Block())
    compiled = framejit.compile(model, backend="eager", dynamic=True)
    for rows in (3, 5, 7):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=0)


def test_arguments_of_all_kinds():
    class Layer(Block):
        def forward(self, x, pair, *rest, mask=None, **options):
            x = super().forward(x) * options["scale"] + pair[0] - pair[1][0]
            return x if mask is None else x.masked_fill(mask, 0.0)

    def run(x, mask):
        pair = (x + 1, [x * 2, 3])
        for layer in model.layers:
            x = layer(x, pair, 1, "a", mask=mask, scale=2.0)
        return x

    model = stack(lambda i: Layer())
    check(run, X, X > 0, graphs=1)


def test_closures_and_functions():
    def run(x):
        scale = x.mean()

        def layer(weight, function):
            def inner(y):
                return torch.relu(y @ weight) * scale + y

            return function(inner(x)) + inner(x * 2) + inner(x * 3).tanh().sin().cos()

        return [layer(weight, torch.sin) for weight in weights]

    weights = [torch.randn(4, 4) for _ in range(6)]
    check(run, X, graphs=1)


def test_lists_that_a_call_changes():
    def work(x, found):
        y = torch.relu(x @ x.t()) + 1
        for _ in range(20):
            y = y * 1.5
        found.append(y)
        return y.sum()

    def run(x):
        found = []
        total = sum([work(x, found) for _ in range(5)])
        return total, found

    check(run, X, graphs=1, ops=5 * 25 + 5)


def test_objects_that_are_written_before_a_call():
    class Layer(Block):
        scale = 1

        def forward(self, x):
            return super().forward(x) * self.scale

    def run(x):
        for number, layer in enumerate(model.layers):
            layer.scale = number // 3
            x = layer(x)
        return x

    model = stack(lambda i: Layer())
    check(run, X, graphs=1, ops=36)


def test_globals_that_are_written_between_calls():
    def make():
        model, namespace = stack(lambda i: Block()), {"scale": 1}
        exec("def scaled(layer, x):\n    return layer(x) * scale + scale\n", namespace)
        code = "def run(x):\n    global scale\n    for layer in layers:\n        scale += 1\n"
        exec(code + "        x = scaled(layer, x)\n    return x\n", namespace)
        namespace["layers"] = list(model.layers)
        return namespace["run"]

    check(None, X, graphs=1, calls=1, make=make)


SEEN = []


def test_code_that_runs_while_compiling_runs_for_each_call():
    class Layer(Block):
        def forward(self, x):
            framejit.comptime(lambda context: SEEN.append(1))
            return super().forward(x)

    model = stack(lambda i: Layer())
    with config.patch(verify_recordings=False):
        framejit.compile(model, backend="eager")(X)
    assert len(SEEN) == 6


def test_layers_that_break_the_graph():
    class Layer(Block):
        def forward(self, x):
            x = super().forward(x)
            print(x.shape)
            return super().forward(x)

    check(stack(lambda i: Layer()), X, graphs=3)


def test_a_branch_on_data_in_each_of_24_layers_takes_four_graphs():
    class Layer(Block):
        def forward(self, x):
            x = super().forward(x)
            return x * 2 if x.sum() > 0 else x - 1

    check(stack(lambda i: Layer(), 24), X, graphs=3)


def test_an_error_in_one_layer_is_eagers():
    model = stack(lambda i: Block())
    model.layers[4].one = nn.Linear(3, 3)
    check(model, X, graphs=1)


def test_a_layer_that_is_replaced_is_noticed():
    model = stack(lambda i: Block(), 32)
    compiled = framejit.compile(model, backend="eager")
    compiled(X)
    model.layers[17] = Shifted()
    torch.testing.assert_close(compiled(X), model(X), rtol=0, atol=0)


def test_a_difference_is_an_internal_error(monkeypatch):
    from framejit.interpreter import grafting

    original = grafting.Graft.note

    def forgetful(self, *given):
        original(self, *given)
        for place in self.known:
            place.facts = place.facts[:1]

    monkeypatch.setattr(grafting.Graft, "note", forgetful)
    with config.patch(raise_internal_errors=True):
        with pytest.raises(framejit.exc.InternalError, match="repeated calls change the guards"):
            framejit.compile(stack(lambda i: Block()), backend="eager")(X)


class Recurrent(nn.Module):
    """Its weights are found by name and in a list, and weak references to them are followed."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 4, batch_first=True, bidirectional=True)
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        return x + self.out(self.lstm(x)[0])


def test_parameters_that_layers_reach_in_several_ways():
    model = stack(lambda i: Recurrent(), count=8).eval().requires_grad_(False)
    x = X.reshape(1, 2, 4)
    with config.patch(verify_recordings=False):
        told = framejit.explain(model, backend="eager")(x)
    assert told.repeated["Recurrent"] >= 4
    check(model, x, graphs=1, ops=8 * 6)


def test_an_explanation_says_what_was_repeated_and_compiled_once():
    model = stack(lambda i: Block(), 6)
    with torch.no_grad():
        told = framejit.explain(model, backend="aot_eager")(X)
    assert told.repeated["Block"] >= 4
    assert told.regions == {}  # so small a layer is compiled anew
    assert f"{told.repeated['Block']} × Block" in str(told)


def test_an_explanation_says_what_was_compiled_once():
    class Large(Block):
        def forward(self, x):
            return super().forward(super().forward(x)).sin().cos()

    with torch.no_grad():
        told = framejit.explain(stack(lambda i: Large(), 6), backend="aot_eager", options=ALL)(X)
    assert told.regions == {"Large": 6}
    (region,) = told.entries[0].regions
    assert (region.name, len(region.calls)) == ("Large", 6)
    assert region.saved == 5 * region.operations >= 40
    assert f"compiled once: 6 × Large; {region.saved} operations less to compile" in str(told)


def test_a_page_draws_once_what_was_compiled_once(tmp_path):
    class Large(Block):
        def forward(self, x):
            return super().forward(super().forward(x)).sin().cos()

    with torch.no_grad():
        told = framejit.explain(stack(lambda i: Large(), 6), backend="aot_eager", options=ALL)(X)
    entry = told.entries[0]
    nodes = drawing.folded(entry)
    calls = [node for node in nodes if node.op == "region"]
    assert [node.name for node in calls] == [f"Large {number}" for number in range(1, 7)]
    for before, call in itertools.pairwise(calls):
        assert nodes.index(before) in call.inputs
    body = drawing.once(entry, entry.regions[0])
    assert sum(node.op.startswith("call") for node in body) == len(entry.regions[0].calls[0])
    told.to_html(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    operations = entry.operations - 5 * entry.regions[0].operations
    inputs = sum(node.op == "placeholder" for node in entry.nodes + body)
    assert text.count("<rect") == operations + 6 + inputs + 1  # the calls, and the output
    assert "<b>Large</b>, compiled once and called\n6 times" in text


ASKED = []


class Disguised:
    def __init__(self, weight):
        self.weight = weight

    @property
    def __class__(self):
        ASKED.append(1)
        return int


def of_disguised(obj, x):
    for _ in range(30):
        x = torch.relu(x @ obj.weight) + x
    return x


def test_an_objects_own_class_is_not_asked():
    def run(x):
        return [of_disguised(obj, x) for obj in objects]

    objects = [Disguised(torch.eye(4) / 8) for _ in range(6)]
    compiled = framejit.compile(run, backend="eager")
    with events.recording(events.CaptureEnd) as ends, config.patch(verify_recordings=False):
        results = compiled(X)
    assert ASKED == []
    assert dict(ends[0].repeated)["of_disguised"] >= 4
    torch.testing.assert_close(results, run(X), rtol=0, atol=0)


def test_a_capture_and_its_verification_know_the_same_of_numbers():
    """Nothing tells the globals of these functions apart, so that the number seems to vary from the
    second one on."""
    made = []
    for shift in (0, 1, 2, 0):
        namespace = {"SHIFT": shift}
        exec("def shifted(x):\n    return x * 2 + SHIFT", namespace)
        made.append(namespace["shifted"])

    def program(x):
        for function in made:
            x = function(x)
        return model(x)

    model = stack(lambda i: Block())
    check(program, X, graphs=1)


def test_what_a_backend_assumes_about_sizes_is_no_difference():
    """AOTAutograd compares the sizes of what is transposed in place; the capture in which every
    call is executed is not compiled."""
    layers = [Block() for _ in range(6)]

    def program(x, turned):
        turned.t_()
        for layer in layers:
            x = layer(x)
        return x

    compiled = framejit.compile(program, backend="aot_eager")
    for sizes in ((2, 3), (4, 5), (6, 7)):
        turned, other = torch.ones(sizes), torch.ones(sizes)
        with config.patch(raise_internal_errors=True):
            torch.testing.assert_close(compiled(X, turned), program(X, other))
        assert turned.shape == other.shape and turned.stride() == other.stride()
    assert framejit.explain(program, backend="aot_eager")(X, torch.ones(8, 9)).repeated
