"""The command ``framejit``: looking into packages from a shell.

In: ``framejit package show FILE`` or ``framejit package verify FILE``. Out: text on standard
output, and 0, 1 (the file is refused) or 2 (the command is wrong) as the exit status. Nothing of a
package is executed. This is a front door of its own, next to `api`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from framejit.exc import PackageError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the answer is the exit status."""
    parser = argparse.ArgumentParser(prog="framejit", description="Tools for framejit.")
    commands = parser.add_subparsers(dest="command", required=True)
    package = commands.add_parser("package", help="look into a package of compiled code")
    actions = package.add_subparsers(dest="action", required=True)
    show = actions.add_parser("show", help="print what is inside")
    show.add_argument("path")
    show.add_argument("--guards", action="store_true", help="print every guard")
    verify = actions.add_parser("verify", help="check that the file is complete and unchanged")
    verify.add_argument("path")
    verify.add_argument("--key-file", help="a file with the key that the package is signed with")
    options = parser.parse_args(arguments)
    try:
        if options.action == "show":
            _show(options.path, options.guards)
        else:
            _verify(options.path, options.key_file)
    except PackageError as error:
        print(f"framejit: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"framejit: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _show(path: str, guards: bool) -> None:
    from framejit.package.container import Reader  # importing it takes longer than --help should

    reader = Reader(path)
    for line in _lines(reader, guards):
        print(line)


def _lines(reader: Any, guards: bool) -> Iterator[str]:
    manifest = reader.manifest
    made_for, settings = manifest["object"], manifest["settings"]
    yield f"{made_for['kind']} {made_for['module']}.{made_for['name']}{made_for['signature']}"
    yield f"  backend {settings['backend']}" + "".join(
        f", {name}={value!r}"
        for name, value in settings.items()
        if name not in ("backend", "options") and value not in (None, False)
    )
    for name, value in manifest["environment"].items():
        if value:
            yield f"  {name}: {value}"
    for frame in manifest["frames"]:
        yield f"{frame['name']} ({frame['file']}:{frame['line']})"
        if frame["skipped"]:
            yield f"  plain Python: {frame['skipped']}"
        for row in frame["entries"]:
            graph = "no graph"
            if row["backend"] is not None:
                ready = "compiled" if row["artifact"] is not None else "to be compiled on loading"
                graph = f"a graph of {row['operations']} operations, {ready}"
            yield f"  entry {row['label']}: {len(row['guards'])} guards, {graph}"
            if guards:
                yield from (f"    {guard}" for guard in row["guards"])
    sizes = reader.part_sizes
    yield f"{len(sizes)} parts, {sum(sizes.values())} bytes"
    yield from (f"  {size:>10}  {name}" for name, size in sizes.items())


def _verify(path: str, key_file: str | None) -> None:
    from framejit.package.container import Reader  # see above

    key = None
    if key_file is not None:
        with open(key_file, "rb") as file:
            key = file.read()
    reader = Reader(path, key)
    reader.verify()
    signed = ", signed with this key" if key is not None else ""
    print(f"{path}: {len(reader.part_sizes)} parts are complete and unchanged{signed}")


if __name__ == "__main__":
    sys.exit(main())
