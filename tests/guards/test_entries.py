"""How many entries a frame gets, which one is tried first, and what a user is told about it."""

import warnings

import pytest
import torch
from torch import nn

import framejit
from checking import CountingBackend
from framejit.report import events, messages


@pytest.fixture
def backend():
    return CountingBackend()


def entries_of(compiled):
    return framejit.callables.compiled_function_of(compiled).entries


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        parts = [nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.0)) for _ in range(20)]
        self.layers = nn.Sequential(*parts)

    def forward(self, x):
        return self.layers(x) * (2 if self.training else 3)


def test_train_and_eval_in_a_loop_are_two_entries(backend):
    model = Net()
    compiled, x = framejit.compile(model, backend=backend), torch.ones(2, 4)
    eager = {}
    for training in (True, False):
        model.train(training)
        eager[training] = model(x)
    for _ in range(30):
        for training in (True, False):
            model.train(training)
            assert torch.equal(compiled(x), eager[training])
    assert len(backend.graphs) == len(entries_of(compiled)) == 2


def test_a_flip_checks_no_entry_from_scratch():
    """From the second flip on."""

    def constant(module, inputs):
        result = module(*inputs)
        return lambda *args: result

    model = Net()
    compiled, x = framejit.compile(model, backend=constant), torch.ones(2, 4)
    with torch.no_grad():
        for _ in range(3):
            model.train()
            compiled(x)
            model.eval()
            compiled(x)
        trees = [entry.tree for entry in entries_of(compiled)]
        before = [tree.full_checks for tree in trees]
        for i in range(40):
            model.train(i % 2 == 0)
            compiled(x)
    # the entry for the other mode fails at its first guard; the right one repairs itself
    assert [tree.full_checks for tree in trees] == before


def test_the_entry_hit_last_is_tried_first():
    """A call that is like the one before does not look at the entries for other calls."""
    tested = []

    def program(thing):
        return thing.x * (2 if thing.kind == "a" else 3)

    class Thing:
        def __init__(self, kind):
            self.x, self.kind = torch.ones(2), kind

    compiled = framejit.compile(program, backend="eager")
    things = [Thing(kind) for kind in "abc"]
    for thing in things:
        compiled(thing)
    assert len(compiled.entries) == 3
    for thing in things:
        for _ in range(3):
            compiled(thing)  # repairs and pins
        before = [entry.tree.full_checks for entry in compiled.entries]
        hits = [entry.hits for entry in compiled.entries]
        for _ in range(10):
            compiled(thing)
        assert [entry.tree.full_checks for entry in compiled.entries] == before
        after = [entry.hits for entry in compiled.entries]
        assert sorted(b - a for a, b in zip(hits, after)) == [0, 0, 10]


def by_name(x, name):
    return x + len(name) if name != "no. 3" else x - 1


def test_a_string_of_many_values_warns_and_goes_on(backend):
    """Neither silently eager nor compiled for ever: a warning, with the reason and the remedy."""
    messages.forget_warnings()
    compiled, x = framejit.compile(by_name, backend=backend), torch.ones(2)
    with framejit.config.patch(recompile_limit=8), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with events.recording(events.RecompileLimit) as limits:
            for _ in range(2):
                for i in range(20):
                    name = f"no. {i}"
                    assert torch.equal(compiled(x, name), by_name(x, name))
    assert len(backend.graphs) == 8
    (warning,) = [w for w in caught if issubclass(w.category, framejit.exc.FramejitWarning)]
    text = str(warning.message)
    assert "by_name" in text and "8 times" in text and "plain Python" in text
    assert "it was 'no. 7', now it is 'no. 8'" in text and "test_entries.py" in text
    assert "to avoid it, keep it constant" in text and "recompile_limit" in text
    assert len(limits) == 1
    assert sum(entry.hits for entry in compiled.entries) == 16  # what was compiled stays in use


def test_every_recompile_is_explained_in_one_sentence(backend):
    compiled, x = framejit.compile(by_name, backend=backend), torch.ones(2)
    with events.recording(events.Recompile) as recompiles:
        compiled(x, "one")
        compiled(x, "three")
        compiled(x.double(), "three")
    first, second = recompiles
    line = by_name.__code__.co_firstlineno + 1
    assert first.reasons == (
        "local 'name' EQUALS_MATCH: it was 'one', now it is 'three' (assumed at test_entries.py:"
        f'{line}: return x + len(name) if name != "no. 3" else x - 1); to avoid it, keep it '
        "constant, or compile one function per value",
    )
    assert len(second.reasons) == 2
    assert "it was dtype float32, now it is dtype float64" in second.reasons[1]
    reasons = framejit.counters["recompile_reasons"]
    assert reasons == {first.reasons[-1]: 1, second.reasons[-1]: 1}


def test_a_change_of_mode_is_explained(backend):
    compiled = framejit.compile(by_name, backend=backend)
    with events.recording(events.Recompile) as recompiles:
        compiled(torch.ones(2), "one")
        with torch.no_grad():
            compiled(torch.ones(2), "one")
    (reason,) = recompiles[0].reasons
    assert reason == (
        "torch GLOBAL_STATE: it was grad mode on, now it is grad mode off (assumed at "
        f"test_entries.py:{by_name.__code__.co_firstlineno}: def by_name(x, name):); to avoid it, "
        "make every call under the same modes"
    )


class Counting(nn.Module):
    """Counts its calls in attributes; one of them is used in the computation."""

    def __init__(self):
        super().__init__()
        self.linear, self.calls, self.steps = nn.Linear(2, 2), 0, 0

    def forward(self, x):
        self.calls += 1
        self.steps += 2
        return self.linear(x) * self.steps


def test_counters_compile_at_most_twice(backend):
    torch.manual_seed(0)
    eager = Counting()
    model = Counting()
    model.load_state_dict(eager.state_dict())
    compiled, x = framejit.compile(model, backend=backend), torch.ones(1, 2)
    for _ in range(12):
        assert torch.equal(compiled(x), eager(x))
        assert (model.calls, model.steps) == (eager.calls, eager.steps)
    assert type(model.calls) is int and len(backend.graphs) <= 2


# -- printing --------------------------------------------------------------------------------------


def two_parts(x, k):
    x = x * k
    print(end="")
    return x + 1


def test_guards_are_listed_per_entry(backend):
    compiled, x = framejit.compile(two_parts, backend=backend), torch.ones(2)
    assert framejit.guards(compiled) == [] and "nothing" in str(framejit.guards(compiled))
    compiled(x, "no"[:0] or 2)
    compiled(x, 2)
    with torch.no_grad():
        compiled(x, 2)
    found = framejit.guards(compiled)
    assert [(e.frame.partition(".__resume")[0], e.number, e.hits) for e in found] == [
        ("two_parts", 0, 2), ("two_parts", 1, 1), ("two_parts", 0, 2), ("two_parts", 1, 1),
    ]  # fmt: skip
    line = two_parts.__code__.co_firstlineno + 1
    lines = [str(guard) for guard in found[0].guards]
    assert lines[:2] == [
        "backend BACKEND_MATCH CountingBackend",
        "torch GLOBAL_STATE grad mode on, default dtype float32",
    ]
    place = f"  # test_entries.py:{line}: x = x * k"
    assert f"local 'x' TENSOR_MATCH Tensor float32[2] on cpu{place}" in lines
    assert f"local 'k' EQUALS_MATCH 2{place}" in lines
    assert "grad mode off" in str(found[1])
    text = str(found)
    assert text.startswith(f"two_parts (test_entries.py:{line - 1}), entry 0, used 2 times, ")
    assert all(line in text for line in lines)


def test_guards_of_every_kind_of_callable(backend):
    class Thing:
        def __call__(self, x):
            return x + 1

    for target in (nn.Linear(4, 2), Thing(), lambda x: x + 2):
        compiled = framejit.compile(target, backend=backend)
        compiled(torch.ones(1, 4))
        assert len(framejit.guards(compiled)) == 1
    for wrong in (3, nn.Linear(1, 1), print):
        with pytest.raises(TypeError, match="framejit.compile"):
            framejit.guards(wrong)


def test_guards_are_the_same_in_every_compilation(backend):
    texts = []
    for _ in range(2):
        torch.manual_seed(0)
        compiled = framejit.compile(Net(), backend=backend)
        compiled(torch.ones(2, 4))
        texts.append(str(framejit.guards(compiled)))
    assert texts[0] == texts[1] and " at 0x" not in texts[0]


# -- BACKEND_MATCH ---------------------------------------------------------------------------------


def named_backend(name, calls):
    def compiler(module, inputs):
        calls.append(name)
        return module.forward

    compiler.__name__ = name
    return compiler


def with_cond(x):
    return torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (x,)) + 1


@pytest.mark.parametrize("program", [two_parts, with_cond], ids=lambda f: f.__name__)
def test_code_of_one_backend_is_never_used_for_another(program):
    calls = []
    args = (torch.ones(3), 2) if program is two_parts else (torch.ones(3),)
    expected = program(*args)  # torch.cond may compile something of its own when run eagerly
    compiled = [framejit.compile(program, backend=named_backend(n, calls)) for n in ("one", "two")]
    for _ in range(3):
        for one in compiled:
            assert torch.equal(one(*args), expected)
    each = calls.count("one")
    assert each >= 1 and sorted(calls) == ["one"] * each + ["two"] * each
    for one, name in zip(compiled, ("one", "two")):
        for entry in framejit.guards(one):
            assert str(entry.guards[0]) == f"backend BACKEND_MATCH {name}"


def test_blocks_of_two_backends():
    calls, x = [], torch.ones(3)
    one, two = (named_backend(name, calls) for name in ("one", "two"))
    for _ in range(2):
        for backend in (one, two):
            with framejit.optimize(backend):
                assert torch.equal(by_name(x, "a"), x + 1)
    assert calls == ["one", "two"]


def test_a_compiled_function_inside_another_keeps_its_backend():
    calls, x = [], torch.ones(3)
    inner = framejit.compile(by_name, backend=named_backend("inner", calls))
    expected = by_name(x, "ab") * 2

    def outer(x):
        return inner(x, "ab") * 2

    outer_compiled = framejit.compile(outer, backend=named_backend("outer", calls))
    for _ in range(2):
        assert torch.equal(outer_compiled(x), expected)
        assert torch.equal(inner(x, "ab"), by_name(x, "ab"))
    assert "outer" in calls and calls.count("inner") <= 1
