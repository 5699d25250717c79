"""Damaged files are refused and nothing of them is executed; kills leave no half file."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import framejit
from framejit import tensor_file
from framejit.exc import PackageError
from framejit.package import container, package_file
from framejit.report import events


def victim(x):
    print("between")
    return x.sin() + 1


X = torch.ones(3)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("damage") / "good"
    compiled = framejit.compile(victim, backend="eager")
    compiled(X)
    compiled.save_package(path)
    return path.read_bytes()


def refused(path):
    compiled = framejit.compile(victim, backend="eager")
    with pytest.raises(PackageError):
        compiled.load_package(path)
    assert compiled.compiler.library is None
    return compiled


def manifest_of(data):
    size = container._HEADER.size
    *_, length, _, _ = container._HEADER.unpack(data[:size])
    return json.loads(data[size : size + length])


def with_manifest(data, change):
    """The file with another manifest and a fitting checksum, as somebody who edits it would do."""
    manifest = manifest_of(data)
    rest = data[len(data) - manifest["size"] :]
    change(manifest)
    text = json.dumps(manifest).encode()
    header = container._header(text, 0, bytes(32))
    padding = bytes(-(len(header) + len(text)) % container._ALIGNMENT)
    return header + text + padding + rest


@pytest.mark.parametrize("key", [None, b"secret"])
def test_every_byte_and_every_length_is_checked(tmp_path, key):
    """Signed files are read without the key, too: then the checksums say it."""
    generator = random.Random(0)
    path = tmp_path / "bad"
    saved, loading = (framejit.compile(victim, backend="eager") for _ in range(2))
    saved(X)
    saved.save_package(path, key=key)
    original = path.read_bytes()
    with open(path, "r+b", buffering=0) as file:
        for at, byte in enumerate(original):
            os.pwrite(file.fileno(), bytes([byte ^ 1 << generator.randrange(8)]), at)
            with pytest.raises(PackageError):
                loading.load_package(path)
            os.pwrite(file.fileno(), bytes([byte]), at)
    for _ in range(300):
        path.write_bytes(original[: generator.randrange(len(original))])
        with pytest.raises(PackageError):
            loading.load_package(path)
    path.write_bytes(original + b"\0")
    refused(path)
    assert loading.compiler.library is None
    path.write_bytes(original)
    loading.load_package(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["parts"][0].update(name="../../etc/passwd"),
        lambda m: m["parts"][0].update(name=m["parts"][1]["name"]),
        lambda m: m["parts"][0].update(size=1 << 60),
        lambda m: m["parts"][0].update(offset=-64),
        lambda m: m["parts"][0].update(size=float(m["parts"][0]["size"])),
        lambda m: m["parts"][0].update(sha256="0" * 64),
        lambda m: m["parts"][0].update(sha256=None),
        lambda m: m["parts"].pop(),
        lambda m: m["parts"][0].update(
            offset=m["parts"][1]["offset"], size=m["parts"][1]["size"]
        ),
        lambda m: m.update(parts=None),
        lambda m: m.update(objects=None),
        lambda m: m.update(objects=[{}]),
        lambda m: m["objects"][0].update(object={}),
        lambda m: m["objects"][0].update(frames=None),
        lambda m: m["objects"][0].update(profile=[]),
        lambda m: m["objects"][0].update(codes=5),
        lambda m: m.update(environment={}),
        lambda m: m["objects"][0].update(sources=[{}]),
        lambda m: m.update(size=0),
        lambda m: m.clear(),
    ],
)  # fmt: skip
def test_edited_manifests(original, tmp_path, change):
    path = tmp_path / "edited"
    path.write_bytes(with_manifest(original, change))
    compiled = framejit.compile(victim, backend="eager")
    try:
        compiled.load_package(path)
    except PackageError:
        pass
    else:  # a part is missing that is asked for only when the entry is used
        with pytest.warns(framejit.exc.FramejitWarning, match="cannot use"):
            compiled(X)
    torch.testing.assert_close(compiled(X), X.sin() + 1)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("graph", lambda d: d["nodes"][1].__setitem__(0, "call_anything")),
        ("graph", lambda d: d["nodes"][1].__setitem__(2, ["o", "os", "nothing"])),
        ("entry", lambda d: d["nodes"][0].__setitem__(1, "somewhere")),
        ("entry", lambda d: d["names"].update({"x": ["value", ["late", 9]]})),
        ("entry", lambda d: d.update(state=None)),
    ],
)
def test_edited_parts_whose_checksums_are_right(original, tmp_path, part, change):
    """The entries that they spoil are compiled again."""
    path = tmp_path / "edited"
    path.write_bytes(original)
    reader = container.Reader(path)
    parts = {name: bytes(reader.part(name)) for name in reader.part_sizes}
    for name in parts:
        if name.startswith(part):
            data = json.loads(parts[name])
            change(data)
            parts[name] = json.dumps(data).encode()
    container.write(path, reader.manifest, parts)
    compiled = framejit.compile(victim, backend="eager").load_package(path)
    with pytest.warns(framejit.exc.FramejitWarning, match="cannot use"):
        torch.testing.assert_close(compiled(X), X.sin() + 1)


def test_foreign_and_newer_files(original, tmp_path):
    path = tmp_path / "foreign"
    for data in (b"", b"framejit", b"PK\3\4" + bytes(500), bytes(5000), original[:40]):
        path.write_bytes(data)
        refused(path)
    header = bytearray(original)
    header[8] = 99
    path.write_bytes(header)
    with pytest.raises(PackageError, match=f"99; this framejit reads {container.FORMAT}"):
        framejit.compile(victim, backend="eager").load_package(path)
    refused(tmp_path / "missing")
    refused(tmp_path)


SAVER = """
import sys
from framejit.package import container
path, number = sys.argv[1], 0
print("ready", flush=True)
while True:
    number += 1
    parts = {f"entry {i}": bytes([number % 256]) * 20000 for i in range(8)}
    container.write(path, {"number": number, "frames": []}, parts)
"""


@pytest.mark.parametrize("kills", [50, pytest.param(300, marks=pytest.mark.slow)])
def test_kills_while_saving(tmp_path, kills):
    """After a kill there is the old package or the new one, whole."""
    path = tmp_path / "killed"
    generator = random.Random(1)
    container.write(path, {"number": 0}, {"entry 0": b"old"})
    for number in range(kills):
        child = os.fork()
        if child == 0:
            try:
                while True:
                    number += 1
                    parts = {f"entry {i}": bytes([number % 256]) * 20000 for i in range(8)}
                    container.write(path, {"number": number}, parts)
            finally:
                os._exit(1)
        time.sleep(generator.random() * 0.02)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        reader = container.Reader(path)
        reader.verify()
        assert len({bytes(reader.part(name))[:1] for name in reader.part_sizes}) == 1


def test_two_writers(tmp_path):
    path = tmp_path / "both"
    container.write(path, {"number": 0}, {"entry 0": b"old"})
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", SAVER, str(path)], stdout=subprocess.PIPE, env=dict(os.environ)
        )
        for _ in range(2)
    ]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    for _ in range(100):
        container.Reader(path).verify()
    for writer in writers:
        writer.kill()
        writer.wait()


def test_a_file_that_is_changed_behind_the_check_changes_nothing(original, tmp_path):
    path = tmp_path / "changed"
    path.write_bytes(original)
    compiled = framejit.compile(victim, backend="eager").load_package(path)
    with open(path, "r+b") as file:
        file.write(bytes(len(original)))
    os.truncate(path, 0)
    with events.recording(events.CaptureStart) as captured:
        torch.testing.assert_close(compiled(X), X.sin() + 1)
    assert captured == []


def test_constants_are_mapped_and_private(tmp_path):
    """They are read from the file, and who writes to them does not write to it."""
    path = tmp_path / "constants"
    held = tensor_file.dump([torch.ones(3, dtype=torch.bool), torch.arange(6.0).reshape(2, 3).T])
    container.write(path, {"objects": []}, {"constants 0": held})
    before = path.read_bytes()
    for _ in range(2):
        reader = container.Reader(path)
        flags, numbers = tensor_file.load(reader.part("constants 0"))
        assert flags.data_ptr() % 64 == 0
        torch.testing.assert_close(numbers, torch.arange(6.0).reshape(2, 3).T)
        maps = Path("/proc/self/maps").read_text().splitlines()
        ranges = [line.split()[0].split("-") for line in maps if line.endswith(str(path))]
        assert any(int(a, 16) <= flags.data_ptr() < int(b, 16) for a, b in ranges)
        flags.zero_()
    assert path.read_bytes() == before


def test_only_regular_files_are_replaced(original, tmp_path):
    compiled = framejit.compile(victim, backend="eager")
    compiled(X)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        for use in (compiled.save_package, compiled.load_package, package_file):
            with pytest.raises(PackageError, match="not a regular file"):
                use(tmp_path / name)
    (tmp_path / "link").symlink_to("target")
    compiled.save_package(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").is_file()
    compiled.save_package(tmp_path / "link")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "link", "pipe", "target"]


@pytest.mark.parametrize("path", ["", None, 3, b"bytes", "a\0b"])
def test_wrong_paths(path):
    compiled = framejit.compile(victim, backend="eager")
    compiled(X)
    for use in (
        compiled.save_package,
        compiled.load_package,
        lambda path: framejit.load_package(path, victim),
        lambda path: framejit.packaged(path).__enter__(),
        lambda path: framejit.compile(victim, package=path or 5),  # None: without a package
    ):
        with pytest.raises(TypeError):
            use(path)
    for key in ("text", b"", 5):
        with pytest.raises(TypeError, match="key must be"):
            compiled.save_package("never", key=key)


FULL_DISK = """
import os, resource, sys, torch, framejit

def function(x):
    return x.sin() * WEIGHT

WEIGHT, folder = torch.ones(200, 200), sys.argv[1]
path = os.path.join(folder, "model.package")
compiled, x = framejit.compile(function, backend="eager"), torch.ones(200, 200)
compiled(x)
compiled.save_package(path)
with open(path, "rb") as file:
    before = file.read()
compiled(torch.ones(3, 200, 200))
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
try:
    compiled.save_package(path)
except framejit.exc.PackageError as error:
    print(error)
with open(path, "rb") as file:
    assert file.read() == before
with framejit.config.patch(profile=os.path.join(folder, "profile")):
    other = framejit.compile(function, backend="eager", package=os.path.join(folder, "other"))
    for size in (200, 1, 1):
        x = torch.ones(size, 200)
        assert torch.equal(other(x), function(x))
print(sorted(one for one in os.listdir(folder) if not one.endswith(".lock")))
"""


def test_a_full_disk_breaks_nothing(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FULL_DISK, tmp_path], capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said, files = done.stdout.splitlines()
    assert "model.package cannot be written: File too large [FJ0205]" in said
    assert files in ("['model.package']", "['model.package', 'profile']")
    assert "Traceback" not in done.stderr
