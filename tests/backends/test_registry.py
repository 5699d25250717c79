"""Names, lookups, entry points, and what is said about mistakes."""

import functools
from importlib.metadata import EntryPoint

import pytest
import torch

from framejit.backends import (
    configured_backend,
    list_backends,
    lookup_backend,
    register_backend,
    registry,
)
from framejit.backends.inductor import InductorBackend
from framejit.exc import UnknownBackend


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.setattr(registry, "_entry_points", None)


def mine(gm, example_inputs):
    return gm.forward


def test_register_by_call_and_by_decorator():
    assert register_backend(name="by_call", compiler_fn=mine) is mine
    assert register_backend(mine) is mine and register_backend(mine) is mine

    @register_backend(name="decorated", tags=("debug",))
    def decorated(gm, example_inputs):
        return gm.forward

    assert lookup_backend("by_call") is lookup_backend("mine") is mine
    assert lookup_backend("decorated") is decorated
    assert {"by_call", "mine", "inductor"} <= set(list_backends())
    assert "decorated" not in list_backends() and "decorated" in list_backends(None)
    assert "decorated" in list_backends(exclude_tags=()) and "eager" in list_backends(None)
    assert list_backends(None) == sorted(list_backends(None))


def test_wrong_registrations():
    with pytest.raises(TypeError, match="not int"):
        register_backend(3)
    with pytest.raises(TypeError, match="needs a name="):
        register_backend(functools.partial(mine))
    with pytest.raises(ValueError, match="'eager' already"):
        register_backend(mine, name="eager")


def test_lookup_of_callables_and_nonsense():
    assert lookup_backend(mine) is mine
    for wrong in (None, 3, ["eager"]):
        with pytest.raises(TypeError, match=f"not {type(wrong).__name__}"):
            lookup_backend(wrong)


def test_unknown_names_get_a_guess_and_the_list():
    with pytest.raises(UnknownBackend) as caught:
        lookup_backend("inducter")
    message = str(caught.value)
    assert "'inducter'" in message and "Did you mean 'inductor'" in message
    assert "aot_eager" in message and "\n" not in message
    with pytest.raises(UnknownBackend) as caught:
        lookup_backend("zzzzz")
    assert "Did you mean" not in str(caught.value)


def test_entry_points(monkeypatch):
    points = [
        EntryPoint("theirs", f"{__name__}:mine", registry.ENTRY_POINT_GROUP),
        EntryPoint("broken", "no_such_module_anywhere:f", registry.ENTRY_POINT_GROUP),
        EntryPoint("eager", f"{__name__}:mine", registry.ENTRY_POINT_GROUP),
    ]
    asked = []

    def entry_points(group):
        asked.append(group)
        return points

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    lookup_backend("eager")
    assert not asked, "our own backends need no look at installed packages"
    assert {"theirs", "broken"} <= set(list_backends())
    assert lookup_backend("theirs").__name__ == "mine"
    assert lookup_backend("eager") is not mine
    with pytest.raises(UnknownBackend, match="broken.*no_such_module_anywhere"):
        lookup_backend("broken")
    assert asked == [registry.ENTRY_POINT_GROUP]


def test_backend_names():
    assert registry.backend_name("x") == "x"
    assert registry.backend_name(lookup_backend("inductor")) == "inductor"
    assert registry.backend_name(mine) == "mine"
    assert registry.backend_name(functools.partial(mine, options={})) == "mine"


def test_mode_and_options_of_other_backends_are_keywords():
    got = {}

    def takes(gm, example_inputs, mode=None, options=None):
        got.update(mode=mode, options=options)

    assert configured_backend(takes) is takes
    configured_backend(takes, options={"a": 1})(None, [])
    assert got == {"mode": None, "options": {"a": 1}}


def test_inductor_settings_are_checked_at_once():
    plain = lookup_backend("inductor")
    tuned = configured_backend("inductor", mode="max-autotune-no-cudagraphs")
    assert isinstance(tuned, InductorBackend) and tuned.config_patches["max_autotune"] is True
    assert tuned != plain and plain == InductorBackend() == InductorBackend(mode="default")
    assert hash(plain) == hash(InductorBackend())
    chosen = configured_backend("inductor", options={"epilogue-fusion": False})
    assert chosen.config_patches == {"epilogue_fusion": False}
    cases = [
        (dict(mode="fastest"), "no mode 'fastest'.*reduce-overhead"),
        (dict(options={"max_autotun": True}), "no option 'max_autotun'.*'max_autotune'"),
        (dict(options={"max_autotune": "yes"}), "is a bool, not a str"),
        (dict(mode="default", options={"max_autotune": True}), "not both"),
    ]
    for settings, words in cases:
        with pytest.raises(ValueError, match=words):
            configured_backend("inductor", **settings)
    assert torch._inductor.config.max_autotune is False


@pytest.mark.parametrize("name", [3, ""])
def test_a_name_that_is_none(name):
    with pytest.raises(TypeError, match="name must be a string"):
        register_backend(lambda gm, inputs: gm, name=name)
