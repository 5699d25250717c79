"""Bad arguments give one clear error each, which names the argument."""

import json
import os
import re
import subprocess
import sys

import pytest
import torch

import framejit
from checking import CountingBackend
from framejit import exc
from framejit.report import events


def f(x):
    return x + 1


class Thing:
    def __call__(self, x):
        return x


BAD = [
    (dict(backend="inducter"), exc.UnknownBackend, ["inducter", "inductor"]),
    (dict(backend=3), TypeError, ["backend", "int 3"]),
    (dict(backend=None), TypeError, ["backend", "NoneType"]),
    (dict(mode="fast"), ValueError, ["mode", "'fast'", "max-autotune"]),
    (dict(mode="default", options={}), ValueError, ["mode", "options"]),
    (dict(options=["a"]), TypeError, ["options", "list"]),
    (dict(dynamic="yes"), TypeError, ["dynamic", "'yes'"]),
    (dict(fullgraph=1), TypeError, ["fullgraph", "int 1"]),
]


def one_clear_error(caught, kind, parts):
    assert type(caught.value) is kind
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    for part in parts:
        assert part in text


@pytest.mark.parametrize(("arguments", "kind", "parts"), BAD)
def test_bad_settings(arguments, kind, parts):
    with pytest.raises(kind) as caught:
        framejit.compile(f, **arguments)
    one_clear_error(caught, kind, parts)
    with pytest.raises(kind):  # at once, not when the decorator meets its function
        framejit.compile(**arguments)


@pytest.mark.parametrize(("arguments", "kind", "parts"), BAD[:-1])
def test_bad_settings_of_optimize(arguments, kind, parts):
    with pytest.raises(kind) as caught:
        framejit.optimize(**arguments)
    one_clear_error(caught, kind, parts)


@pytest.mark.parametrize(
    ("model", "parts"),
    [
        (3, ["model", "int"]),
        ("f", ["model", "str"]),
        (Thing, ["class Thing", "instance"]),
        (torch.nn.Linear, ["class Linear"]),
        (torch.ones(2), ["model", "Tensor"]),
        (staticmethod(f), ["staticmethod", "above"]),
        (classmethod(f), ["classmethod", "above"]),
    ],
)
def test_things_that_cannot_be_compiled(model, parts):
    with pytest.raises(TypeError) as caught:
        framejit.compile(model, backend="eager")
    one_clear_error(caught, TypeError, parts)


def test_a_decorator_applied_to_nothing():
    with pytest.raises(TypeError, match="model"):
        framejit.compile(backend="eager")(None)


def test_unknown_arguments():
    with pytest.raises(TypeError, match="fullgrph"):
        framejit.compile(f, fullgrph=True)


@pytest.mark.parametrize("function", [framejit.disable, framejit.run])
@pytest.mark.parametrize("bad", [3, Thing, staticmethod(f)])
def test_bad_functions_for_regions(function, bad):
    with pytest.raises(TypeError, match="fn must be"):
        function(bad)


@pytest.mark.parametrize(
    "function",
    [
        framejit.allow_in_graph,
        framejit.disallow_in_graph,
        framejit.assume_constant_result,
        framejit.skip,
    ],
)
def test_bad_functions_for_marks(function):
    with pytest.raises(TypeError, match="fn must be"):
        function(3)


def test_a_backend_that_raises():
    def broken(gm, inputs):
        raise ValueError("no such kernel")

    with pytest.raises(exc.BackendCompilerFailed) as caught:
        framejit.compile(f, backend=broken)(torch.ones(2))
    assert isinstance(caught.value.__cause__, ValueError)
    assert caught.value.backend_name == "broken"
    text = str(caught.value)
    assert "'broken'" in text and "no such kernel" in text and len(text.splitlines()) <= 6


def test_a_backend_that_returns_no_callable():
    with pytest.raises(exc.BackendCompilerFailed) as caught:
        framejit.compile(f, backend=lambda gm, inputs: 7)(torch.ones(2))
    assert "int" in str(caught.value) and "callable" in str(caught.value)


def test_a_backend_error_leaves_a_usable_object():
    fail = [True]

    def moody(gm, inputs):
        if fail[0]:
            raise RuntimeError("not now")
        return gm

    compiled = framejit.compile(f, backend=moody)
    with pytest.raises(exc.BackendCompilerFailed):
        compiled(torch.ones(2))
    fail[0] = False
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))


def test_backends_get_mode_and_options():
    seen = {}

    def mine(gm, inputs, **settings):
        seen.update(settings)
        return gm

    framejit.compile(f, backend=mine, options={"level": 3})(torch.ones(2))
    assert seen == {"options": {"level": 3}}


def test_registry():
    def mine(gm, inputs):
        return gm

    framejit.register_backend(name="mine_for_test", compiler_fn=mine)
    assert "mine_for_test" in framejit.list_backends()
    assert "inductor" in framejit.list_backends()
    compiled = framejit.compile(f, backend="mine_for_test")
    assert torch.equal(compiled(torch.ones(1)), f(torch.ones(1)))


def test_a_break_under_fullgraph_is_a_short_error():
    def g(x):
        y = x * 2
        print(y.sum())
        return y

    with pytest.raises(exc.Unsupported) as caught:
        framejit.compile(g, backend="eager", fullgraph=True)(torch.ones(2))
    text = str(caught.value)
    assert len(text.splitlines()) <= 6
    assert __file__ in text
    assert f"line {g.__code__.co_firstlineno + 2}" in text
    assert "print(y.sum())" in text
    assert "fullgraph" in text


def test_config_names_are_checked():
    with pytest.raises(AttributeError, match="recompil_limit"):
        framejit.config.recompil_limit = 3
    with pytest.raises(AttributeError), framejit.config.patch(nope=1):
        pass
    before = framejit.config.recompile_limit
    with framejit.config.patch(recompile_limit=2):
        assert framejit.config.recompile_limit == 2
    assert framejit.config.recompile_limit == before

    @framejit.config.patch(recompile_limit=3)
    def limited():
        return framejit.config.recompile_limit

    assert limited() == 3


def test_config_values_are_checked():
    config = framejit.config
    wrong = [
        ("recompile_limit", "x", TypeError), ("recompile_limit", -1, ValueError),
        ("recompile_limit", True, TypeError), ("step_limit", None, TypeError),
        ("debug", 1, TypeError), ("logs", None, TypeError), ("logs", "grahp", ValueError),
    ]  # fmt: skip
    for name, value, error in wrong:
        before = getattr(config, name)
        with pytest.raises(error, match=rf"framejit\.config\.{name}"):
            setattr(config, name, value)
        with pytest.raises(error, match=rf"framejit\.config\.{name}"):
            config.patch(**{name: value})
        assert getattr(config, name) == before
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del config.debug
    with config.patch(logs="Graph, guards"):
        assert config.logs == {"graph", "guards"}
    twice = config.patch(recompile_limit=3)
    with twice, twice:
        assert config.recompile_limit == 3
    assert config.recompile_limit != 3


def with_environment(**settings):
    """What `framejit.config` holds in a process with these variables, and the warnings."""
    code = (
        "import json, framejit; config = framejit.config;"
        "print(json.dumps({name: getattr(config, name) for name in config._TYPES}, default=sorted))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | settings, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return json.loads(done.stdout), re.findall("FramejitWarning: (.*)", done.stderr)


def test_every_option_can_be_set_in_the_environment():
    config = framejit.config
    values = {bool: "no", int: "77", float: "0.5", str: "somewhere", frozenset: "GRAPH,code"}
    settings = {f"FRAMEJIT_{name.upper()}": values[kind] for name, kind in config._TYPES.items()}
    settings |= {"FRAMEJIT_DEBUG": "On", "FRAMEJIT_PROGRESS": ""}
    found, warned = with_environment(**settings)
    wanted = {bool: False, int: 77, float: 0.5, str: "somewhere", frozenset: ["code", "graph"]}
    assert found == {name: wanted[kind] for name, kind in config._TYPES.items()} | {"debug": True}
    assert warned == []


def test_what_the_environment_cannot_mean_is_said():
    defaults, _ = with_environment()
    found, warned = with_environment(
        FRAMEJIT_DISABLE="maybe", FRAMEJIT_RECOMPILE_LIMIT="0", FRAMEJIT_STEP_LIMIT="x",
        FRAMEJIT_LOGS="grahp", FRAMEJIT_RECOMPILE_LIMT="3", FRAMEJIT_debug="1",
    )  # fmt: skip
    assert found == defaults
    assert warned == [
        "FRAMEJIT_DISABLE=maybe is ignored: it must be True or False, not 'maybe' [FJ0211]",
        "FRAMEJIT_LOGS=grahp is ignored: it may name graph, bytecode, code, guards, breaks, "
        "recompiles, times; not grahp [FJ0211]",
        "FRAMEJIT_RECOMPILE_LIMIT=0 is ignored: it must be at least 1, not 0 [FJ0211]",
        "FRAMEJIT_RECOMPILE_LIMT=3 is ignored: there is no such option; the closest is "
        "FRAMEJIT_RECOMPILE_LIMIT [FJ0211]",
        "FRAMEJIT_STEP_LIMIT=x is ignored: it must be an integer, not 'x' [FJ0211]",
        "FRAMEJIT_debug=1 is ignored: there is no such option; the closest is FRAMEJIT_DEBUG "
        "[FJ0211]",
    ]


def test_a_reason_for_a_graph_break():
    backend = CountingBackend()

    def f(x):
        x = x + 1
        framejit.graph_break("the sensor is read here")
        return x * 2

    x = torch.ones(2)
    with events.recording(events.GraphBreak) as breaks:
        assert torch.equal(framejit.compile(f, backend=backend)(x), f(x))
    assert [event.reason for event in breaks] == [
        "framejit.graph_break() was called: the sensor is read here"
    ]
    assert len(backend.graphs) == 2


def test_public_names():
    for name in framejit.__all__:
        assert getattr(framejit, name) is not None
    assert framejit.__version__.count(".") == 2
