"""Every place that breaks the graph or raises at users names a kind of problem."""

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "framejit"
IDENTIFIER = re.compile(r"FJ\d{4}")
BREAKS = {"GraphBreak", "PropagationError", "SideEffect", "UntraceableHook", "unsupported"}


def places():
    """(place, call) of everything that breaks the graph."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in BREAKS:
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", node


def test_every_graph_break_has_an_identifier():
    found = list(places())
    assert len(found) > 200
    bad = []
    for place, call in found:
        first = call.args[0] if call.args else None
        if isinstance(first, ast.Name):  # handed through
            assert first.id == "identifier", place
        elif not (isinstance(first, ast.Constant) and IDENTIFIER.fullmatch(str(first.value))):
            bad.append(place)
    assert not bad, f'write GraphBreak("FJ0...", reason): {bad}'
