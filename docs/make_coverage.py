"""Makes docs/coverage.md from tests/language/names.py, the table of supported names.

    python docs/make_coverage.py            writes the page
    python docs/make_coverage.py --check    exit status 1 when the page is not current
"""

from __future__ import annotations

import ast
from pathlib import Path

from pages import write_or_check

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tests" / "language" / "names.py"
PAGE = ROOT / "docs" / "coverage.md"

HEAD = """# Which names of the standard library are captured

Made by `python docs/make_coverage.py` from `tests/language/names.py`; do not edit. A test runs each
program here: a supported name is captured as one graph with all its tensor operations, and a name
in a table of graph breaks breaks with the reason given (what comes before and after is captured).
Other modules that are traced through or handled: `copy`, `random`, `inspect`, `typing`, `numbers`,
`weakref`, `dataclasses`, `enum`, `abc`, `types`, `heapq`, `bisect`, `string`, `contextvars`,
`warnings`, `logging` and `time` (the last three as graph breaks where they do something).
"""


def rows(tree: ast.Module) -> dict[str, dict[str, ast.expr]]:
    """module -> name -> the expression in the table."""
    tables: dict[str, ast.Dict] = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            assert isinstance(node.target, ast.Name)
            tables[node.target.id] = node.value
    out: dict[str, dict[str, ast.expr]] = {}
    names = tables["NAMES"]
    for module, table in zip(names.keys, names.values, strict=True):
        assert isinstance(module, ast.Constant) and isinstance(table, ast.Name)
        content = tables[table.id]
        out[module.value] = {
            key.value: value  # type: ignore[union-attr]
            for key, value in zip(content.keys, content.values, strict=True)
        }
    return out


def program(value: ast.expr) -> str:
    """What a row shows: the body of a lambda, or the name of a longer program."""
    text = ast.unparse(value.body) if isinstance(value, ast.Lambda) else f"{ast.unparse(value)}(x)"
    return "`" + text.replace("|", "\\|") + "`"


def page() -> str:
    """The text of docs/coverage.md."""
    lines = [HEAD]
    for module, table in rows(ast.parse(TABLE.read_text())).items():
        breaks = {n: v for n, v in table.items() if isinstance(v, ast.Call)}
        good = {n: v for n, v in table.items() if n not in breaks}
        lines.append(f"## {module}: {len(good)} supported, {len(breaks)} graph breaks\n")
        if breaks:
            lines.append("| graph break | reason | program |\n|---|---|---|")
            for name, call in breaks.items():
                reason = call.args[1].value  # type: ignore[attr-defined]
                lines.append(f"| `{name}` | {reason} | {program(call.args[0])} |")
            lines.append("")
        lines.append("| supported | program |\n|---|---|")
        lines += [f"| `{name}` | {program(value)} |" for name, value in good.items()]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(write_or_check(PAGE, page()))
