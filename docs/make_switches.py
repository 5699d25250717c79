"""Makes docs/switches.md from the table of switches (`framejit.dropin.table`).

    python docs/make_switches.py            writes the page
    python docs/make_switches.py --check    exit status 1 when the page is not current
"""

from __future__ import annotations

from pathlib import Path

from pages import write_or_check

from framejit.dropin.table import GROUPS, switches

PAGE = Path(__file__).parent / "switches.md"
HEAD = """# Switches of torch.compile

Made by `python docs/make_switches.py` from the table that `framejit doctor --switches` prints; do
not edit. With `framejit.install()` a program is compiled by framejit as it is, and what it says to
`torch.compile`, `torch._dynamo` and their options holds. It makes no difference when an option is
set. What has no effect is said once, as [FJ0311](problems.md#fj0311), where a program asks for
something else than what framejit does anyway. An option that the table does not have is said to be
unknown. Nothing of this imports `torch._dynamo`: what the program imports is adapted when it does,
and put back by `framejit.uninstall()`.
"""


def page() -> str:
    """The text of docs/switches.md."""
    lines = [HEAD]
    for group, title in GROUPS.items():
        lines += [f"## {title}\n", "| switch | obeyed | what it does |", "|---|---|---|"]
        for row in switches().values():
            if row.group == group:
                obeyed = "yes" if row.obeyed else "no"
                lines.append(f"| `{row.name}` | {obeyed} | {row.answer} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(write_or_check(PAGE, page()))
