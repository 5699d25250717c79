"""An environment for a release of Python and one of torch, with a wheel of framejit in it.

    python tests/matrix/environments.py python3.13 2.15.0 FOLDER

makes or renews FOLDER; the Makefile runs it for ``make test PYTHON=python3.13 TORCH=2.15.0``. All
other packages are those of constraints.txt. Builds of torch for CUDA ask for gigabytes of
libraries: environments that need the same ones share them, in ``cuda-...`` beside FOLDER.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import debian_python

ROOT = Path(__file__).resolve().parents[2]


def _run(*command: str | Path) -> str:
    """What a command prints; its errors are in the exception."""
    done = subprocess.run(
        [str(part) for part in command], cwd=ROOT, check=True, text=True, capture_output=True
    )
    return done.stdout


def _release_of(python: str | Path) -> str | None:
    """The release of an interpreter, or None where it does not start (a shim of pyenv's)."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        return _run(python, "-c", code).strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def find_interpreter(name: str, folder: Path) -> tuple[Path, Path | None]:
    """The interpreter ``name``, and the folder that it was made in if this machine had none.

    Raises:
        SystemExit: there is none, and none can be made.
    """
    if found := shutil.which(name):
        if _release_of(found):
            return Path(found), None
    release = re.search(r"\d+\.\d+", name)
    wanted = release[0] if release else ""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for python in sorted(versions.glob(f"{wanted}.*/bin/python3"), reverse=True) if wanted else ():
        if _release_of(python) == wanted:
            return python, None
    if wanted and debian_python.is_possible():
        made = folder / f"debian-python{wanted}"
        return debian_python.make(wanted, made), made
    raise SystemExit(f"PYTHON={name}: no such interpreter is on this machine")


def requirements(torch: str) -> tuple[list[str], list[str]]:
    """What to install, and the versions to take of what that needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    packages = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    # torchvision belongs to one release of torch: pip finds the one that fits.
    pins = [line for line in lines if re.match(r"(?!torch(vision)?==)[\w-]+==", line)]
    return [f"torch=={torch}", "setuptools", "wheel", *packages], pins


class Environment:
    """A folder with a virtual environment; ``make`` brings it up to date."""

    def __init__(self, python: str, torch: str, folder: Path) -> None:
        self.interpreter_name, self.torch, self.folder = python, torch, folder.resolve()
        self.python = self.folder / "bin" / "python"
        self.pip = (self.python, "-m", "pip", "-qq", "--disable-pip-version-check")

    def make(self) -> None:
        """Install what is missing; build the wheel of framejit anew."""
        packages, pins = requirements(self.torch)
        wanted = "\n".join([*packages, *pins])
        stamp = self.folder / ".packages"
        if not stamp.exists() or stamp.read_text() != wanted:
            print(f"installing torch {self.torch} and what the tests need (once) ...", flush=True)
            self._make_folder()
            self._install(packages, pins)
            stamp.write_text(wanted)
        self._install_framejit()

    def _make_folder(self) -> None:
        interpreter, made_in = find_interpreter(self.interpreter_name, self.folder.parent)
        if made_in is None:
            _run(interpreter, "-m", "venv", "--clear", self.folder)
            return
        _run(interpreter, "-m", "venv", "--clear", "--without-pip", self.folder)
        release = _release_of(interpreter)
        assert release is not None
        debian_python.install_pip(release, made_in, self.folder)

    def _install(self, packages: list[str], pins: list[str]) -> None:
        """Every package that pip chooses; of CUDA's libraries, a link to those that are shared."""
        with tempfile.TemporaryDirectory() as folder:
            constraints, report = Path(folder, "constraints"), Path(folder, "report")
            constraints.write_text("\n".join(pins))
            plan = (*self.pip, "install", "--dry-run", "--ignore-installed", "--report", report)
            _run(*plan, "-c", constraints, *packages)
            chosen = json.loads(report.read_text())["install"]
        exact = sorted(f"{one['metadata']['name']}=={one['metadata']['version']}" for one in chosen)
        shared = [one for one in exact if one.startswith("nvidia-")]
        _run(*self.pip, "install", "--no-deps", *(one for one in exact if one not in shared))
        if shared:
            self._share(shared)

    def _share(self, packages: list[str]) -> None:
        name = hashlib.sha256("\n".join(packages).encode()).hexdigest()[:12]
        folder = self.folder.parent / f"cuda-{name}"
        if not folder.exists():
            making = folder.with_suffix(f".{os.getpid()}")
            _run(*self.pip, "install", "--no-deps", "--target", making, *packages)
            making.rename(folder)
        code = "import sysconfig; print(sysconfig.get_path('platlib'))"
        libraries = Path(_run(self.python, "-c", code).strip())
        for entry in folder.iterdir():
            if not (libraries / entry.name).exists():
                (libraries / entry.name).symlink_to(entry)

    def _install_framejit(self) -> None:
        """Build in a folder of its own: objects built for another torch are not for this one."""
        build, wheels = self.folder / "build", self.folder / "wheel"
        for kept in build.glob("lib*/**/*.py"):  # modules that are gone would stay in the wheel
            kept.unlink()
        shutil.rmtree(wheels, ignore_errors=True)
        places = ("--build-base", build, "bdist_wheel", "--bdist-dir", build / "wheel")
        command = (self.python, "setup.py", "-q", "build", *places, "--dist-dir", wheels)
        _run(*command)
        (wheel,) = wheels.glob("*.whl")
        _run(*self.pip, "install", "--no-deps", "--force-reinstall", wheel)


def main(arguments: list[str]) -> int:
    """The exit status; a command that fails has said why."""
    python, torch, folder = arguments
    try:
        Environment(python, torch, Path(folder)).make()
    except subprocess.CalledProcessError as error:
        print(f"{error.stderr}\nfailed: {' '.join(map(str, error.cmd))}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
