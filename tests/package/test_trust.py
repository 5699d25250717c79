"""Who may read a package, and who may have written the one that is loaded."""

import os
import subprocess
import sys

import pytest
import torch

import framejit
from framejit import cli, config
from framejit.exc import FramejitWarning, PackageError
from framejit.files import replacing
from framejit.package import Reader, container

X = torch.ones(3)


def twice(x):
    return x * 2


def save(path, **options):
    compiled = framejit.compile(twice, backend="eager")
    compiled(X)
    compiled.save_package(path, **options)
    return path


def load(path, **options):
    return framejit.compile(twice, backend="eager").load_package(path, **options)


def mode_of(path):
    return os.stat(path).st_mode & 0o7777


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "key"
    path.write_bytes(b"secret")
    return path


# -- who may read it -------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o400])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, mode):
    path = save(tmp_path / "x.package")
    os.chmod(path, mode)
    save(path)
    assert mode_of(path) == mode
    load(path)


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_of_any_new_file(tmp_path, mask):
    before = os.umask(mask)
    try:
        save(tmp_path / "x.package")
        (tmp_path / "plain").write_text("")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "x.package") == mode_of(tmp_path / "plain")


def test_other_files_keep_their_mode_and_links_stay_links(tmp_path):
    path, link = tmp_path / "profile", tmp_path / "link"
    path.write_text("{}")
    os.chmod(path, 0o600)
    link.symlink_to(path)
    with replacing(link) as file:
        assert mode_of(file.name) == 0o600  # nobody reads it while it is written
        file.write(b"new")
    assert link.is_symlink() and path.read_bytes() == b"new" and mode_of(path) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_that_is_replaced_keeps_its_owner(tmp_path):
    path = save(tmp_path / "x.package")
    os.chown(path, 1234, 1234)
    os.chmod(path, 0o640)
    save(path)
    now = os.stat(path)
    assert (now.st_uid, now.st_gid, mode_of(path)) == (1234, 1234, 0o640)


def test_what_cannot_be_given_away_is_not_opened_to_others(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_text("")
    os.chmod(path, 0o660)
    other = os.stat_result((*os.stat(path)[:5], 4321, *os.stat(path)[6:]))
    stat = os.stat
    monkeypatch.setattr(os, "stat", lambda p: other if os.fspath(p) == str(path) else stat(p))
    monkeypatch.setattr(os, "chown", lambda *arguments: (_ for _ in ()).throw(PermissionError()))
    with replacing(path) as file:
        file.write(b"new")
    assert stat(path).st_mode & 0o777 == 0o600


# -- who has written it ----------------------------------------------------------------------------


def forged(path):
    """What anybody can make of a package: other content, all checksums right."""
    reader = Reader(path)
    parts = {name: bytes(reader.part(name)) for name in reader.part_sizes}
    manifest = {k: v for k, v in reader.manifest.items() if k not in ("parts", "size")}
    container.write(path, manifest | {"made": "by somebody else"}, parts)
    return path


def test_verify_says_what_it_knows(tmp_path, key_file, capsys):
    path = forged(save(tmp_path / "x.package"))
    assert cli.main(["package", "verify", str(path)]) == 0
    said = capsys.readouterr().out
    assert "are complete, their checksums are right" in said and "unchanged" not in said
    assert "only a\nkey protects against that" in said
    signed = save(tmp_path / "signed.package", key=b"secret")
    assert cli.main(["package", "verify", str(signed)]) == 0
    assert "unchanged" not in capsys.readouterr().out
    assert cli.main(["package", "verify", str(signed), "--key-file", str(key_file)]) == 0
    assert "complete and unchanged, signed with this key" in capsys.readouterr().out


def test_a_process_can_require_a_key(tmp_path, key_file):
    unsigned, other = save(tmp_path / "a"), save(tmp_path / "b", key=b"other")
    with config.patch(package_key_file=key_file):
        signed = save(tmp_path / "c")
        for path, reason in [(unsigned, "is not signed"), (other, "not signed with this key")]:
            with pytest.raises(PackageError, match=reason):
                load(path)
            with pytest.raises(PackageError, match=reason):
                Reader(path)
            with pytest.raises(PackageError, match=reason):
                framejit.load_package(path, twice, backend="eager")
        load(signed)
        load(other, key=b"other")  # the program has said which
        with pytest.warns(FramejitWarning, match="is not signed"):
            framejit.compile(twice, backend="eager", package=unsigned)
    Reader(signed, b"secret").verify()


def test_a_required_key_that_cannot_be_read_lets_nothing_in(tmp_path):
    path = save(tmp_path / "x.package")
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    for file, reason in [(tmp_path / "none", "cannot be read"), (empty, "is empty")]:
        with config.patch(package_key_file=file):
            with pytest.raises(PackageError, match=reason):
                load(path)
            with pytest.raises(PackageError, match=reason):
                save(path)


def test_the_environment_requires_a_key(tmp_path, key_file):
    path = save(tmp_path / "x.package")
    found = subprocess.run(
        [sys.executable, "-m", "framejit", "package", "show", str(path)],
        env={**os.environ, "FRAMEJIT_PACKAGE_KEY_FILE": str(key_file)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert found.returncode != 0 and "is not signed" in found.stderr
