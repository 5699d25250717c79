"""What programs say to ``torch._dynamo`` and its options is obeyed, or answered once by name."""

import collections
import copy
import operator
import subprocess
import sys
import warnings

import pytest
import torch
from torch import nn

import framejit
from checking import CountingBackend
from framejit.dropin.table import switches
from framejit.exc import FramejitWarning
from framejit.report import events
from framejit.strictness import strictness


@pytest.fixture(autouse=True)
def installed():
    import torch._dynamo  # before and after: the order makes no difference

    before = dict(vars(torch._dynamo))
    framejit.reset()
    with framejit.install():
        yield
    torch._dynamo.reset()
    after = vars(torch._dynamo)
    changed = {name for name in before if before[name] is not after[name]}
    assert not changed, "everything is put back"


@pytest.fixture
def options():
    """`torch._dynamo.config`, put back after the test."""
    import torch._dynamo

    with torch._dynamo.config.patch({}):
        saved = {}
        config = torch._dynamo.config

        class Setter:
            def __setattr__(self, name, value):
                saved.setdefault(name, config._config[name].user_override.set(value))
                setattr(config, name, value)

        yield Setter()
        for name, token in saved.items():
            config._config[name].user_override.reset(token)


def counted(function, *calls, **arguments):
    """The graphs that these calls make, each call the same as in eager mode."""
    backend = CountingBackend()
    compiled = torch.compile(function, backend=backend, **arguments)
    for call in calls:
        torch.testing.assert_close(compiled(*call), function(*call))
    return len(backend.graphs)


def ones(*sizes):
    return [(torch.ones(size),) for size in sizes]


def double(x):
    return x * 2


def test_options_that_framejit_has(options):
    assert counted(double, *ones(3, 4, 5)) == 2
    options.automatic_dynamic_shapes = False
    assert counted(double, *ones(3, 4, 5)) == 3
    options.recompile_limit = 2
    with pytest.warns(FramejitWarning, match="2 times, which is the limit"):
        assert counted(double, *ones(3, 4, 5)) == 2
    options.assume_static_by_default = False
    assert counted(double, *ones(3, 4, 5)) == 1
    options.disable = True
    assert counted(double, *ones(3)) == 0


def test_an_option_may_be_set_after_the_first_call(options):
    backend = CountingBackend()
    compiled = torch.compile(lambda x: x.sum().item() + x, backend=backend, fullgraph=True)
    with pytest.raises(framejit.exc.Unsupported):
        compiled(torch.ones(3))
    options.capture_scalar_outputs = True
    torch.testing.assert_close(compiled(torch.ones(3)), torch.full((3,), 4.0))
    assert len(backend.graphs) == 1


def test_numbers_are_constants_where_the_program_says_so(options):
    def multiplied(x, n):
        return x * n

    whole = [(torch.ones(2), n) for n in (2, 3, 4, 5)]
    fractions = [(torch.ones(2), n + 0.5) for n in (2, 3, 4, 5)]
    assert (counted(multiplied, *whole), counted(multiplied, *fractions)) == (2, 2)
    options.specialize_int = True
    assert (counted(multiplied, *whole), counted(multiplied, *fractions)) == (4, 2)
    options.specialize_float = True
    assert (counted(multiplied, *whole), counted(multiplied, *fractions)) == (4, 4)


class Scaled(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


def graphs_of_factors(*factors):
    backend = CountingBackend()
    module = Scaled(0)
    compiled = torch.compile(module, backend=backend, dynamic=True)
    for module.factor in factors:
        torch.testing.assert_close(compiled(torch.ones(3)), module(torch.ones(3)))
    return len(backend.graphs)


def test_numbers_of_modules_vary_from_the_first_call_if_asked_for(options):
    assert graphs_of_factors(5, 6, 7) == 2
    options.allow_unspec_int_on_nn_module = True
    assert graphs_of_factors(5, 6, 7) == 1


def test_numbers_of_other_objects_vary_from_the_first_call_if_sizes_do():
    class Settings:
        pass

    def scaled(x, settings):
        return x * settings.factor

    calls = [(torch.ones(2), Settings()) for _ in range(3)]
    for number, (_, settings) in enumerate(calls, 5):
        settings.factor = number
    assert counted(scaled, *calls, dynamic=True) == 1
    assert counted(scaled, *calls) == 2


def test_sizes_of_parameters_may_vary(options):
    def graphs():
        backend = CountingBackend()
        compiled = torch.compile(lambda x, weight: x @ weight, backend=backend)
        for size in (3, 4, 5):
            x, weight = torch.ones(2, size), nn.Parameter(torch.ones(size, 2))
            expected, got = x @ weight, compiled(x, weight)
            torch.testing.assert_close(got, expected)
            got.sum().backward()
            assert torch.equal(weight.grad, torch.full((size, 2), 2.0))
        return len(backend.graphs)

    assert graphs() == 3
    options.force_parameter_static_shapes = False
    assert graphs() == 2


def test_a_recompile_is_an_error_where_the_program_says_so(options):
    compiled = torch.compile(double, backend="eager")
    compiled(torch.ones(3))
    options.error_on_recompile = True
    with pytest.raises(torch._dynamo.exc.RecompileError, match=r"double .* again.*\n.*size"):
        compiled(torch.ones(4))
    compiled(torch.ones(3))


def test_the_limit_is_an_error_where_the_program_says_so(options):
    options.fail_on_recompile_limit_hit = True
    options.automatic_dynamic_shapes = False
    compiled = torch.compile(double, backend="eager", recompile_limit=2)
    compiled(torch.ones(3))
    compiled(torch.ones(4))
    with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit, match="more than 2 times"):
        compiled(torch.ones(5))


def test_errors_of_backends_are_suppressed_where_the_program_says_so(options):
    def broken(module, inputs):
        raise ValueError("cannot")

    compiled = torch.compile(double, backend=broken)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
        compiled(torch.ones(3))
    options.suppress_errors = True
    with pytest.warns(FramejitWarning, match="cannot"):
        torch.testing.assert_close(compiled(torch.ones(3)), torch.full((3,), 2.0))


def test_what_has_no_effect_is_said_once(options):
    options.accumulated_recompile_limit = 12
    options.inline_inbuilt_nn_modules = True  # this is how it always is
    options.optimize_ddp = False
    with pytest.warns(FramejitWarning) as said:
        counted(double, *ones(3, 4))
    texts = [str(one.message) for one in said]
    assert len(texts) == 2 and all("FJ0311" in text for text in texts)
    assert texts[0].startswith(
        "torch._dynamo.config.accumulated_recompile_limit = 12 has no effect"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counted(double, *ones(3, 4))


def test_every_option_in_the_table_exists():
    from torch.compiler import config as compiler_config

    known = {f"torch._dynamo.config.{name}" for name in torch._dynamo.config._config}
    known |= {f"torch.compiler.config.{name}" for name in compiler_config._config}
    named = {name for name, row in switches().items() if row.group == "options"}
    missing = {name for name in named - known if not name.startswith("torch._inductor")}
    assert not missing
    for row in switches().values():
        assert row.answer
        assert not row.option or hasattr(framejit.config, row.option)


# -- functions -------------------------------------------------------------------------------------


def test_errors_are_caught_by_the_names_that_programs_know():
    from torch._dynamo.exc import InvalidBackend, Unsupported

    with pytest.raises(Unsupported) as caught:
        torch.compile(lambda x: print(x), backend="eager", fullgraph=True)(torch.ones(2))
    assert isinstance(caught.value, framejit.exc.Unsupported)
    assert "graph break under fullgraph=True" in str(caught.value)
    with pytest.raises(InvalidBackend):
        torch.compile(double, backend="no_such_backend")


def test_compiled_modules_are_what_programs_take_them_for():
    module = nn.Linear(2, 2)
    compiled = torch.compile(module, backend="eager")
    assert isinstance(compiled, torch._dynamo.eval_frame.OptimizedModule)
    assert isinstance(compiled, torch._dynamo.OptimizedModule)
    assert not isinstance(module, torch._dynamo.OptimizedModule)
    assert compiled._orig_mod is module
    assert list(compiled.state_dict()) == ["weight", "bias"]
    prefixed = {f"_orig_mod.{name}": x + 1 for name, x in module.state_dict().items()}
    assert str(compiled.load_state_dict(prefixed)) == "<All keys matched successfully>"
    assert torch.equal(module.bias, prefixed["_orig_mod.bias"])
    copied = copy.deepcopy(compiled)
    assert copied._orig_mod is not module and isinstance(copied, torch._dynamo.OptimizedModule)
    other = nn.Linear(2, 3)
    compiled._orig_mod = module
    assert "_orig_mod" not in module._modules
    compiled._orig_mod = other
    assert compiled._orig_mod is other and compiled(torch.ones(1, 2)).shape == (1, 3)
    made = torch.compile(double, backend="eager")
    assert made._torchdynamo_orig_callable is double


def test_both_compilers_forget():
    backend = CountingBackend()
    compiled = torch.compile(double, backend=backend)
    for _ in range(2):
        compiled(torch.ones(2))
        torch._dynamo.reset()
    assert len(backend.graphs) == 2


def test_compiling_with_the_older_names():
    backend = CountingBackend()
    compiled = torch._dynamo.optimize(backend)(double)
    torch.testing.assert_close(compiled(torch.ones(2)), torch.full((2,), 2.0))
    assert len(backend.graphs) == 1

    @torch._dynamo.optimize(backend, nopython=True)
    def prints(x):
        print(end="")
        return x + 1

    with pytest.raises(torch._dynamo.exc.Unsupported):
        prints(torch.ones(2))
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch._dynamo.optimize_assert(backend)(lambda x: print(x))(torch.ones(2))
    with torch._dynamo.optimize(backend):
        double(torch.ones(2))
    assert len(backend.graphs) == 2
    compiled = torch._dynamo.run(compiled)
    compiled(torch.ones(3))
    assert len(backend.graphs) == 2, "nothing new is compiled"


def test_backends_are_known_by_name():
    seen = []

    @torch._dynamo.register_backend(name="noted")
    def noted(module, inputs):
        seen.append(module)
        return module.forward

    try:
        assert "noted" in torch._dynamo.list_backends()
        assert torch._dynamo.lookup_backend("noted") is noted
        torch.compile(double, backend="noted")(torch.ones(2))
        assert len(seen) == 1
    finally:
        framejit.backends.registry.unregister_backend("noted")


def test_functions_that_are_kept_out_of_graphs():
    def sines(x):
        return torch.sin(x + 1) * 2

    assert counted(sines, *ones(2)) == 1
    torch._dynamo.disallow_in_graph(torch.sin)
    try:
        assert counted(sines, *ones(2)) == 2
    finally:
        framejit.directives.unmark(torch.sin)


def test_a_substitute_is_called_in_captured_code():
    from framejit.values.core.registry import LOOKASIDES

    before = LOOKASIDES[operator.length_hint]

    @torch.compiler.substitute_in_graph(operator.length_hint)
    def length_hint(obj, default=0, /):
        return 7

    try:
        compiled = torch.compile(lambda x: x * length_hint(x), backend="eager", fullgraph=True)
        assert compiled(torch.ones(2)).tolist() == [7.0, 7.0]
        assert length_hint([1]) == 1
    finally:
        LOOKASIDES[operator.length_hint] = before


def test_what_is_traced_through_anyway():
    @torch._dynamo.nonstrict_trace
    def outside(x, more):
        return x + more["one"]

    def f(x):
        return outside(x * 2, {"one": x}) * 3, torch._dynamo.is_compiling()

    backend = CountingBackend()
    got, compiling = torch.compile(f, backend=backend, fullgraph=True)(torch.ones(2))
    assert got.tolist() == [9.0, 9.0] and compiling and not torch._dynamo.is_compiling()
    assert len(backend.graphs) == 1


def test_breaks_are_errors_in_a_block():
    def breaks(x):
        y = x + 1
        print(end="")
        return y * 2

    compiled = torch.compile(breaks, backend="eager")
    with torch._dynamo.error_on_graph_break(True):
        with pytest.raises(torch._dynamo.exc.Unsupported):
            compiled(torch.ones(2))
        with torch._dynamo.error_on_graph_break(False):
            compiled(torch.ones(2))
    framejit.reset()
    checked = torch._dynamo.error_on_graph_break(True)(compiled)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        checked(torch.ones(2))
    assert compiled(torch.ones(2)).tolist() == [4.0, 4.0]


def breaks_in_a_block(x, strict):
    y = x.sin()
    with torch._dynamo.error_on_graph_break(strict):
        y = y + 1
        print(end="")
        y = y * 2
    return y - 1


def test_breaks_are_errors_in_a_captured_block():
    backend = CountingBackend()
    compiled = torch.compile(breaks_in_a_block, backend=backend)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="writes to the outside"):
        compiled(torch.ones(2), True)
    assert strictness.get() == ()
    x = torch.ones(2)
    for _ in range(2):
        assert torch.equal(compiled(x, False), breaks_in_a_block(x, False))
    assert (len(backend.graphs), backend.ops) == (2, 4) and strictness.get() == ()
    with torch._dynamo.error_on_graph_break(True):  # the inner block counts
        other = torch.compile(breaks_in_a_block, backend="eager")
        assert torch.equal(other(x, False), breaks_in_a_block(x, False))
        with pytest.raises(torch._dynamo.exc.Unsupported):
            torch.compile(lambda x: print(x.sin()), backend="eager")(x)


def test_a_block_around_what_is_captured_whole_costs_nothing():
    @torch._dynamo.error_on_graph_break(True)
    def inner(x):
        return x * 2

    def f(x):
        with torch._dynamo.error_on_graph_break(False):
            y = inner(x.sin())
        print(end="")  # outside of the blocks
        return y + 1

    backend = CountingBackend()
    compiled = torch.compile(f, backend=backend)
    for _ in range(2):
        assert torch.equal(compiled(torch.ones(2)), f(torch.ones(2)))
    assert (len(backend.graphs), backend.ops) == (2, 3)
    whole = torch.compile(lambda x: inner(x) + 1, backend="eager", fullgraph=True)
    assert whole(torch.ones(2)).tolist() == [3.0, 3.0]


def test_explaining():
    def breaks(x):
        y = x + 1
        print(end="")
        return y * 2 + 1

    explained = torch._dynamo.explain(breaks)(torch.ones(2))
    assert (explained.graph_count, explained.graph_break_count, explained.op_count) == (2, 1, 3)
    assert len(explained.graphs) == 2 and "print" in explained.break_reasons[0].reason
    assert "Graph Count: 2" in str(explained)


def test_what_is_captured_is_counted():
    from torch._dynamo.utils import counters

    counters.clear()
    torch.compile(double, backend="eager")(torch.ones(2))
    assert counters["stats"] == collections.Counter(calls_captured=1, unique_graphs=1)
    assert counters["frames"]["ok"] == 1


def test_a_size_without_a_hint_varies():
    from torch._dynamo.decorators import mark_unbacked

    backend = CountingBackend()
    compiled = torch.compile(double, backend=backend)
    for size in (3, 4, 5):
        x = torch.ones(size)
        mark_unbacked(x, 0)
        compiled(x)
    assert len(backend.graphs) == 1


# -- stances ---------------------------------------------------------------------------------------


def test_a_backend_is_forced_for_a_while():
    backend, forced = CountingBackend(), CountingBackend()
    compiled = torch.compile(double, backend=backend)
    compiled(torch.ones(2))
    with torch.compiler.set_stance(force_backend=forced):
        compiled(torch.ones(2))
        later = torch.compile(lambda x: x + 1, backend=backend)
        later(torch.ones(2))
        assert (len(backend.graphs), len(forced.graphs)) == (1, 2)
    compiled(torch.ones(2))
    later(torch.ones(2))
    assert (len(backend.graphs), len(forced.graphs)) == (2, 2)
    with pytest.raises(RuntimeError, match="cannot have force_backend"):
        torch.compiler.set_stance("force_eager", force_backend="eager")


@pytest.mark.parametrize("stance", ["eager_then_compile", "aot_eager_then_compile"])
def test_the_first_call_is_plain_python(stance):
    with torch.compiler.set_stance(stance):
        backend = CountingBackend()
        compiled = torch.compile(lambda x, n: x * n, backend=backend)
        counts = []
        for size in (3, 4, 5):
            compiled(torch.ones(size), size)
            counts.append(len(backend.graphs))
        assert counts == [0, 1, 1]


# -- what surrounds it -----------------------------------------------------------------------------


def test_logs_by_their_names(capsys):
    torch._logging.set_logs(graph_breaks=True, recompiles=True)
    try:
        compiled = torch.compile(lambda x: print(end="") or x + 1, backend="eager")
        compiled(torch.ones(2))
        compiled(torch.ones(3))
    finally:
        torch._logging.set_logs()
    said = capsys.readouterr().err
    assert "[framejit] graph break" in said and "[framejit] compilation 2" in said


def test_only_what_the_program_defines_is_compiled():
    with framejit.install(only="no.such.package"), events.recording(events.GraphCompiled) as seen:
        compiled = torch.compile(double, backend="eager")
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))
    assert not seen


LATE = """
import framejit, sys, torch
framejit.install("eager")
assert "torch._dynamo" not in sys.modules
compiled = torch.compile(lambda x: x.sum().item() + x)
compiled(torch.ones(2))
assert "torch._dynamo" not in sys.modules, "nothing imports it but the program"
theirs = torch.compile
import torch._dynamo as dynamo
from torch._dynamo import optimize, config
assert theirs.__module__ == optimize.__module__.rpartition(".")[0] + ".compiling"
config.capture_scalar_outputs = True
assert dynamo.explain(lambda x: x.sum().item() + x)(torch.ones(2)).graph_count == 1
try:
    torch.compile(lambda x: print(x), fullgraph=True)(torch.ones(2))
except dynamo.exc.Unsupported:
    print("caught")
framejit.uninstall()
assert optimize.__module__ == "torch._dynamo.eval_frame"
assert theirs is torch.compile and theirs.__module__ == "torch"
print("put back")
"""


def test_the_peer_is_adapted_when_the_program_imports_it():
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=120)
    assert done.stdout.split("\n") == ["caught", "put back", ""], done.stderr


def test_what_the_program_has_of_framejit_stays():
    import torch._dynamo

    module = type(sys)("program_of_switches")
    module.own, module.peers = framejit.register_backend, torch._dynamo.list_backends
    sys.modules[module.__name__] = module
    try:
        with framejit.install():
            module.later = framejit.list_backends
        assert module.own is framejit.register_backend
        assert module.later is framejit.list_backends
    finally:
        del sys.modules[module.__name__]
