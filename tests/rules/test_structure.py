"""The rules of the house: direction of imports, sizes, names, no loose ends."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "framejit"
SOURCES = sorted(PACKAGE.rglob("*.py"))

#: Rooms and single modules in the order of the data's way: imports point to the same or an earlier
#: one. Names on one line do not import each other.
ORDER = [
    {"exc"},
    {"classes", "config", "source", "directives", "strictness", "version"}
    | {"collection", "files", "tensor_file", "forks"},
    {"torchcompat"},
    {"report"},
    {"native"},
    {"bytecode"},
    {"graph"},
    {"guards", "shapes"},
    {"values"},
    {"interpreter"},
    {"backends"},
    {"codegen"},
    {"capture"},
    {"peer"},
    {"plain", "interruptions"},
    {"ranks"},
    {"compiled_frame"},
    {"misses"},
    {"compiler"},
    {"package"},
    {"background"},
    {"settings", "regions", "preparing"},
    {"callables", "comptime"},
    {"inspection", "exporting", "autotune", "audit"},
    {"api"},
    {"dropin", "launch"},
    {"eager_only"},
    {"cli"},
    {"__init__", "__main__"},
]
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
#: The same for the rooms of values/; modules beside them know them all.
ROOMS_OF_VALUES = ["core", "containers", "objects", "torch", "numpy", "stdlib"]
#: Modules that import each other in a circle, and why.
CIRCLES = {
    ("audit", "audit.call", "audit.script"): "a script that shows a mismatch runs an audit itself",
}
#: Where it is noted that something has happened in a capture.
DOORS = {
    "graph/builder.py",
    "interpreter/loop.py",
    "values/core/class_lookup.py",
    "values/core/effects.py",
    "values/core/space.py",
}
MODULE_LIMIT = 600
METHOD_LIMIT = 30
PARAMETER_LIMIT = 6
#: Modules whose functions have as many parameters as what they stand for.
MANY_PARAMETERS = {
    "api.py": "what users give",
    "audit/__init__.py": "what users give",
    "exporting.py": "what users give",
    "dropin/compiling.py": "the signature of torch.compile",
    "graph/shape_functions.py": "operands of PyTorch's operators",
}


def room_of(path):
    part = path.relative_to(PACKAGE).parts[0]
    return part.removesuffix(".py")


def imported_modules(tree, path, names=False):
    """(line, dotted name) of everything imported, TYPE_CHECKING blocks left out; with ``names``,
    the names that are imported from modules are appended."""
    here = ["framejit", *path.relative_to(PACKAGE).parts[:-1]]
    ignored = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            ignored.update(id(inner) for statement in node.body for inner in ast.walk(statement))
    for node in ast.walk(tree):
        if id(node) in ignored:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                base = here[: len(here) - node.level + 1]
                module = ".".join([*base, *filter(None, [module])])
            if module == "framejit":
                for alias in node.names:
                    name = alias.name if alias.name in RANK else "__init__"
                    yield node.lineno, f"framejit.{name}"
            elif names:
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, module


def relative(path):
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_imports_point_backwards(path):
    room = room_of(path)
    assert room in RANK, f"{room} is not in the list of rooms"
    wrong = []
    for line, name in imported_modules(ast.parse(path.read_text()), path):
        parts = name.split(".")
        if parts[0] != "framejit":
            continue
        target = parts[1] if len(parts) > 1 else "__init__"
        if target == room:
            continue
        if RANK[target] >= RANK[room]:
            wrong.append(f"{relative(path)}:{line} imports framejit.{target}")
    assert not wrong, wrong


def dotted(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of_modules():
    """Module -> the modules of framejit that it imports, in functions as well."""
    modules = {dotted(path): path for path in SOURCES}
    found = {}
    for name, path in modules.items():
        found[name] = targets = set()
        for _, imported in imported_modules(ast.parse(path.read_text()), path, names=True):
            top, _, known = imported.partition(".")
            known = known if known in modules else known.rpartition(".")[0]
            if top == "framejit" and known in modules:
                targets.add(known)
        targets.discard(name)
    return found


def test_rooms_of_values_import_one_way():
    def rank(module):
        room = module.split(".")[1]
        return ROOMS_OF_VALUES.index(room) if room in ROOMS_OF_VALUES else len(ROOMS_OF_VALUES)

    wrong = [
        f"{name} imports {target}"
        for name, targets in imports_of_modules().items()
        for target in targets
        if name.startswith("values.") and target.startswith("values")
        if target == "values" or rank(target) > rank(name)
    ]
    assert not wrong, wrong
    assert {path.parent.name for path in PACKAGE.glob("values/*/*.py")} == set(ROOMS_OF_VALUES)


def test_modules_import_each_other_in_no_circle():
    imports = imports_of_modules()

    def reachable(start):
        seen, waiting = set(), [start]
        while waiting:
            for target in imports[waiting.pop()] - seen:
                seen.add(target)
                waiting.append(target)
        return seen

    reached = {name: reachable(name) for name in imports}
    circles = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in imports
        if name in reached[name]
    }
    assert circles == set(CIRCLES)


def test_what_the_rooms_of_a_capture_share_is_asked_by_public_names():
    shared = {"builder", "space", "interpreter", "frame", "effects", "symbols", "world"}
    found = []
    for path in SOURCES:
        nodes = list(ast.walk(ast.parse(path.read_text())))
        own = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        for node in nodes:
            if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
                owner = getattr(node.value, "id", getattr(node.value, "attr", None))
                if owner in shared and node.attr not in own and not node.attr.startswith("__"):
                    found.append(f"{relative(path)}:{node.lineno} reads {owner}.{node.attr}")
    assert not found, found


def test_what_a_capture_knows_is_set_where_it_is_kept():
    """Later rooms hand over what they have: to a constructor, or by a call."""
    kept = {"builder", "space", "effects", "symbols", "world"}
    found = []
    for path in SOURCES:
        if RANK[room_of(path)] <= RANK["values"]:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                owner = getattr(node.value, "id", getattr(node.value, "attr", None))
                if owner in kept:
                    found.append(f"{relative(path)}:{node.lineno} sets {owner}.{node.attr}")
    assert not found, found


def test_what_happens_passes_a_few_doors():
    """An operation that forgets to note a change breaks wrongly: those that make something happen
    note it, not those who ask for it."""
    found = {
        relative(path)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr == "note"
        and getattr(node.value, "id", getattr(node.value, "attr", None)) == "changes"
    }
    assert found == DOORS


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_nothing_of_the_peer_is_imported(path):
    for line, name in imported_modules(ast.parse(path.read_text()), path):
        assert not name.startswith("torch._dynamo"), f"{relative(path)}:{line} imports {name}"


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_slow_libraries_are_imported_inside_functions(path):
    slow = ("torch._inductor", "torch._functorch.aot", "functorch", "sympy", "rich", "torch.onnx",
            "jinja2", "markupsafe", "tomllib")  # fmt: skip
    tree = ast.parse(path.read_text())
    for node in tree.body:
        for line, name in imported_modules(ast.Module([node], []), path):
            inside = isinstance(node, (ast.FunctionDef, ast.ClassDef))
            assert inside or not name.startswith(slow), f"{relative(path)}:{line} imports {name}"


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_modules_stay_small_and_say_what_they_are(path):
    text = path.read_text()
    lines = text.count("\n")
    assert lines <= MODULE_LIMIT, f"{relative(path)} has {lines} lines"
    assert ast.get_docstring(ast.parse(text)), f"{relative(path)} has no docstring"


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_what_goes_from_one_module_to_another_has_names(path):
    """More than four things are no tuple: a NamedTuple or a dataclass says which is which."""
    large = [
        f"{relative(path)}:{node.lineno} {ast.unparse(node)}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == "tuple"
        if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) > 4
    ]
    assert not large, large


def functions_in(body):
    return [node for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def operations_of_values():
    """The names of what Python does with any value; `do_NAME` is a method of the object's own."""
    tree = ast.parse((PACKAGE / "values" / "core" / "base.py").read_text())
    value = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Value")
    return {node.name for node in functions_in(value.body)} | {"binary_op", "compare_op"}


def test_classes_have_one_theme():
    """At most 30 methods, apart from those that stand for one of Python's each."""
    operations = operations_of_values()
    found = {}
    for path in SOURCES:
        in_values = room_of(path) == "values"
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                names = {function.name for function in functions_in(node.body)}
                if in_values:
                    names = {n for n in names - operations if not n.startswith("do_")}
                if len(names) > METHOD_LIMIT:
                    found[f"{relative(path)} {node.name}"] = len(names)
    assert not found, found


def parameters(function):
    given = function.args
    found = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return [arg.arg for arg in found if arg is not None and arg.arg not in ("self", "cls")]


def test_what_travels_together_is_one_parameter():
    found = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                number = len(parameters(node))
                if number > PARAMETER_LIMIT and relative(path) not in MANY_PARAMETERS:
                    found[f"{relative(path)} {node.name}"] = number
    assert not found, found


def test_no_module_is_a_drawer():
    forbidden = {"utils", "util", "misc", "helpers", "common"}
    found = [relative(p) for p in SOURCES if forbidden & set(p.with_suffix("").parts)]
    assert not found, found


def test_no_loose_ends():
    """A TODO names its issue."""
    pattern = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?!.*#\d+)")
    native = [*PACKAGE.glob("native/*.cpp"), *PACKAGE.glob("native/*.h")]
    found = [
        f"{relative(path)}:{number}"
        for path in [*SOURCES, *native]
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, found


def test_python_releases_are_told_apart_in_one_place():
    found = [
        relative(path)
        for path in SOURCES
        if "sys.version_info" in path.read_text() and room_of(path) not in ("bytecode", "report")
    ]
    found += [
        relative(path)
        for path in [*PACKAGE.glob("native/*.cpp"), *PACKAGE.glob("native/*.h")]
        if "PY_VERSION_HEX" in path.read_text() and path.name != "cpython_compat.h"
    ]
    assert not found, found


def test_continuous_integration_runs_what_users_run():
    script = (ROOT / ".ci" / "run").read_text()
    commands = [
        line for line in script.splitlines() if line and not line.startswith(("#", "set ", "cd "))
    ]
    assert commands == ["make lint", "make test", "make fuzz", "make docs"]


def test_the_architecture_page_names_every_module():
    text = (ROOT / "docs" / "architecture.md").read_text()
    modules = [*SOURCES, *PACKAGE.glob("native/*.cpp"), *PACKAGE.glob("native/*.h")]
    missing = []
    for path in modules:
        if path.name != "__init__.py" and f"`{path.name}`" not in text:
            if path.suffix == ".py" or f"`{path.stem}.cpp/.h`" not in text:
                missing.append(relative(path))
    assert not missing, f"give each its half a line in docs/architecture.md: {missing}"


def test_the_architecture_page_names_no_module_that_is_gone():
    text = (ROOT / "docs" / "architecture.md").read_text().partition("## The modules")[2]
    there = {path.name for path in [*SOURCES, *PACKAGE.glob("native/*")]}
    named = {
        f"{stem}.{ending}"
        for stem, endings in re.findall(r"`(\w+)\.(pyi?|cpp/\.h|cpp|h)`", text)
        for ending in endings.split("/.")
    }
    assert len(named) > 90
    assert named <= there, sorted(named - there)
