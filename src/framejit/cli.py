"""The command ``framejit``: everything that can be asked for in a shell.

In: ``framejit COMMAND ...`` or ``python -m framejit COMMAND ...``. Out: text on standard output,
and 0, 1 (it did not work) or 2 (the command is wrong, or a file that it names) as the exit status.
This is a front door of its own, next to `api`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pkgutil
import platform
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

import framejit.autotune
from framejit import config, dropin, launch
from framejit.audit import audit_summary, checked_rate
from framejit.backends import doctor as backends_doctor
from framejit.callables import supported
from framejit.dropin import table
from framejit.exc import FramejitError
from framejit.inspection import following
from framejit.package.container import Reader
from framejit.report.explanation import Explanation
from framejit.report.problems import FAMILIES, find, problems
from framejit.shapes import profile
from framejit.values.core.knowledge import known_callable
from framejit.version import __version__

_DESCRIPTION = """framejit makes PyTorch programs faster without changing them.

  framejit run train.py --epochs 3          torch.compile in the script means framejit
  framejit run --report out.html train.py   the same, and a page that says what happened
  framejit run --audit=0.01 train.py        the same, and a share of calls checked in plain Python
  framejit explain train.py                 the same in the terminal
  framejit explain FJ0101                   what an identifier in a message stands for
  framejit doctor                           what works on this machine
  framejit doctor --switches                what becomes of each switch of torch.compile"""

_SCRIPT = "a Python file, or -m and a module; options of framejit stand before it"
_PACKAGE = "a file that compiled.save_package(path) wrote"
_PROFILES = "what framejit.save_profile(path) or FRAMEJIT_PROFILE=path wrote"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["autotune"]:
        return framejit.autotune.command(given[1:])
    options = _parser().parse_args(_with_rate(given))
    options.for_good = arguments is None  # this process is for nothing else
    try:
        return int(options.function(options) or 0)
    except FramejitError as error:
        print(f"framejit: {error}", file=sys.stderr)
        return 2 if isinstance(error.__cause__, OSError) else 1
    except BrokenPipeError:  # whoever reads has seen enough
        sys.stdout = None  # type: ignore[assignment]
        return 1
    except OSError as error:
        print(f"framejit: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2


def _with_rate(given: list[str]) -> list[str]:
    """``--audit`` alone, in front of the script, means every call; argparse would take the script
    for its value."""
    for position, word in enumerate(given):
        if word == "--audit":
            return [*given[:position], "--audit=1", *given[position + 1 :]]
        takes_word = position and given[position - 1] in ("--report", "--backend")
        if position and not word.startswith("-") and not takes_word:
            break
    return given


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="framejit", description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"framejit {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, function: Any, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        made.set_defaults(function=function)
        return made

    doctor = command("doctor", _doctor, "say what works on this machine, and what to install")
    doctor.add_argument("--knows", metavar="NAME", dest="known",
                        help="say what a call of this becomes, as in torch.relu")  # fmt: skip
    doctor.add_argument("--switches", action="store_true",
                        help="say what becomes of each switch of torch.compile")  # fmt: skip

    def script(name: str, function: Any, text: str) -> argparse.ArgumentParser:
        made = command(name, function, text)
        made.add_argument("--backend", help="use this backend whatever the script asks for")
        made.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module")
        return made

    run = script("run", _run, "run a script with framejit in place of torch.compile")
    run.add_argument("--audit", metavar="RATE", type=_rate,
                     help="make calls, or this share, as plain Python, too")  # fmt: skip
    run.add_argument("--report", metavar="FILE", help="write a page that says what happened")
    run.add_argument("script", metavar="SCRIPT", help=_SCRIPT)
    explain = script(
        "explain", _explain, "run a script and print what happened, or explain an identifier"
    )
    explain.add_argument("script", metavar="SCRIPT | FJ0101", help=_SCRIPT)
    report = script("report", _run, "run a script and write a page that says what happened")
    report.add_argument("-o", "--output", dest="report", default="framejit.html", metavar="FILE",
                        help="the page (default: framejit.html)")  # fmt: skip
    report.add_argument("script", metavar="SCRIPT", help=_SCRIPT)
    for one in (run, explain, report):
        rest = one.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script gets")
        rest.required = False  # so that no message asks for them

    _add_actions(
        command("package", None, "look into a package of compiled code"),
        command("profile", None, "look at, or join, files of what varied from call to call"),
    )
    commands.add_parser("autotune", help="find the fastest backend for each recorded graph")
    return parser


def _add_actions(package: argparse.ArgumentParser, shapes: argparse.ArgumentParser) -> None:
    actions = package.add_subparsers(required=True, metavar="ACTION")
    show = actions.add_parser("show", help="print what is inside")
    show.add_argument("path", help=_PACKAGE)
    show.add_argument("--guards", action="store_true", help="print every guard")
    show.set_defaults(function=_show)
    verify = actions.add_parser("verify", help="check that it is complete; with a key: genuine")
    verify.add_argument("path", help=_PACKAGE)
    verify.add_argument("--key-file", help="a file with the key that the package is signed with")
    verify.set_defaults(function=_verify)

    actions = shapes.add_subparsers(required=True, metavar="ACTION")
    show = actions.add_parser("show", help="print what profiles say")
    show.add_argument("files", nargs="+", help=_PROFILES)
    show.set_defaults(function=lambda options: profile.command(["show", *options.files]))
    merge = actions.add_parser("merge", help="write one profile that says what several say")
    merge.add_argument("output", help="the profile to write")
    merge.add_argument("files", nargs="+", help=_PROFILES)
    merge.set_defaults(
        function=lambda options: profile.command(["merge", options.output, *options.files])
    )


# -- scripts ---------------------------------------------------------------------------------------


def _rate(text: str) -> float:
    try:
        return checked_rate(float(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text} is no share of calls, such as 0.01") from error


def _run(options: argparse.Namespace) -> int:
    if getattr(options, "audit", None) is None:
        return _run_and_report(options)
    with config.patch(audit=options.audit):
        differ = 0
        try:
            _run_and_report(options)
        except SystemExit as end:
            if end.code not in (None, 0):
                raise
        finally:
            differ = audit_summary()
        return int(differ > 0)


def _run_and_report(options: argparse.Namespace) -> int:
    if options.report is None:
        _run_script(options)
        return 0
    options.report = os.path.abspath(options.report)  # the script may change the folder
    if not options.module:
        os.stat(options.script)
    with open(options.report, "a", encoding="utf-8"):  # it can be written: say so now
        pass

    def write(explanation: Explanation) -> None:
        explanation.to_html(options.report)
        print(f"framejit: the report is in {options.report}", file=sys.stderr)

    return _run_explained(options, write)


def _explain(options: argparse.Namespace) -> int:
    if options.script.upper().startswith("FJ") and not os.path.exists(options.script):
        return _explain_identifier(options.script)
    if not options.module:
        os.stat(options.script)
    return _run_explained(options, print)


def _run_explained(options: argparse.Namespace, tell: Callable[[Explanation], None]) -> int:
    """Run the script; ``tell`` gets what has happened, however it ends."""
    explanation = Explanation()
    try:
        with following(explanation):
            _run_script(options)
    finally:
        tell(explanation)
    return 0


def _explain_identifier(identifier: str) -> int:
    problem = find(identifier)
    if problem is not None:
        print(f"{problem.identifier} ({FAMILIES[problem.identifier[:4]]}): {problem.title}\n")
        for text in (problem.cause, problem.fix):
            print(f"{textwrap.fill(text, 96)}\n")
        print("A program that has it:\n")
        print("".join(f"    {line}\n" for line in problem.program.splitlines()))
        return 0
    print(f"framejit: there is no {identifier}; there are:", file=sys.stderr)
    for one in problems().values():
        print(f"  {one.identifier}  {one.title}", file=sys.stderr)
    return 1


def _run_script(options: argparse.Namespace) -> None:
    with contextlib.ExitStack() as stack:
        installed = dropin.install(options.backend)
        if not options.for_good:
            stack.enter_context(installed)
        launch.run(options.script, options.arguments, options.module, options.for_good)


# -- doctor ----------------------------------------------------------------------------------------


def _doctor(options: argparse.Namespace) -> int:
    if options.switches:
        print(table.table())
        return 0
    if options.known is not None:
        return _say_known(options.known)
    good = supported()
    print(f"framejit {__version__}, torch {torch.__version__}, Python {platform.python_version()}")
    print(f"  {'yes' if good else 'NO '}  this release of Python is supported")
    good = _say("a function is captured and gives the right result", _works) and good
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    _found("a C++ compiler for Inductor on CPUs", compiler, "install g++ or clang++, or set CXX")
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    build = "has CUDA" if torch.version.cuda else "is one for CPUs"
    _found("a GPU", gpu, f"torch.cuda finds none; this build of torch {build}")
    print("backends")
    for row in backends_doctor():
        print(f"  {'yes' if row.available else 'no '}  {row.name}: {row.detail}")
    settings = {k: v for k, v in sorted(os.environ.items()) if k.startswith("FRAMEJIT_")}
    if settings:
        print("environment")
        for name, value in settings.items():
            print(f"  {name}={value}")
    return 0 if good else 1


def _say_known(name: str) -> int:
    """``doctor --knows NAME``: what a call of it becomes, and where framejit says so."""
    try:
        sys.path.insert(0, os.getcwd())
        found = pkgutil.resolve_name(name if "." in name else f"builtins.{name}")
    except (ImportError, AttributeError, ValueError) as error:
        raise FramejitError(f"doctor --knows {name}: {error}") from None
    if not callable(found):
        raise FramejitError(f"doctor --knows {name}: a {type(found).__name__} cannot be called")
    print(f"{name}: {known_callable(found)}")
    return 0


def _found(what: str, name: str | None, advice: str) -> None:
    print(f"  yes  {what}: {name}" if name else f"  no   {what} ({advice})")


def _say(what: str, check: Any) -> bool:
    try:
        check()
    except Exception as error:
        print(f"  NO   {what}: {type(error).__name__}: {error}")
        return False
    print(f"  yes  {what}")
    return True


def _works() -> None:
    from framejit.api import compile as compile_function

    def f(x: torch.Tensor) -> torch.Tensor:
        return (x * 2).relu() + 1

    x = torch.tensor([-1.0, 2.0])
    torch.testing.assert_close(
        compile_function(f, backend="eager", fullgraph=True)(x), torch.tensor([1.0, 5.0])
    )


# -- packages --------------------------------------------------------------------------------------


def _show(options: argparse.Namespace) -> int:
    reader = Reader(options.path)
    try:
        lines = list(_lines(reader, options.guards))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise reader.damaged(f"its manifest is not right ({error})") from error
    print("\n".join(lines))
    return 0


def _lines(reader: Any, guards: bool) -> Iterator[str]:
    for name, value in reader.manifest["environment"].items():
        if value:
            yield f"{name}: {value}"
    for row in reader.manifest["objects"]:
        yield from _object_lines(row, guards)
    sizes = reader.part_sizes
    yield f"{len(sizes)} parts, {sum(sizes.values())} bytes"
    yield from (f"  {size:>10}  {name}" for name, size in sizes.items())


def _object_lines(row: Any, guards: bool) -> Iterator[str]:
    made_for, settings = row["object"], row["settings"]
    yield f"{made_for['kind']} {made_for['module']}.{made_for['name']}{made_for['signature']}"
    yield f"  backend {settings['backend']}" + "".join(
        f", {name}={value!r}"
        for name, value in settings.items()
        if name not in ("backend", "options") and value not in (None, False)
    )
    for frame in row["frames"]:
        yield f"  {frame['name']} ({frame['file']}:{frame['line']})"
        if frame["skipped"]:
            yield f"    plain Python: {frame['skipped']}"
        for entry in frame["entries"]:
            graph = "no graph"
            if entry["backend"] is not None:
                ready = "to be compiled on loading" if entry["artifact"] is None else "compiled"
                graph = f"a graph of {entry['operations']} operations, {ready}"
            yield f"    entry {entry['label']}: {len(entry['guards'])} guards, {graph}"
            if guards:
                yield from (f"      {guard}" for guard in entry["guards"])
    varied = profile.show(profile.Profile.of(row["profile"]))
    if varied:
        yield "  what varied:"
        yield from (f"    {line}" for line in varied.splitlines())


def _verify(options: argparse.Namespace) -> int:
    path, key = options.path, None
    if options.key_file is not None:
        with open(options.key_file, "rb") as file:
            key = file.read()
    reader = Reader(path, key)
    reader.verify()
    found = f"{path}: {len(reader.part_sizes)} parts are complete"
    if reader.is_authentic:
        print(f"{found} and unchanged, signed with this key")
    else:
        print(f"{found}, their checksums are right")
        print("This finds accidents. Who changes a file can make its checksums right: only a")
        print("key protects against that (save_package(key=...), then verify --key-file FILE).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
