"""A folder by its descriptor: names are looked up in it, and never through a link."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from secure_bloom.storage.open_folder import OpenFolder, close
from secure_bloom.storage.paths import local_path
from testing.project import ROOT
from testing.tables import Mode, customers, keyring_json, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "link").symlink_to("a")
    return tmp_path


def test_a_link_is_not_followed(folder: Path) -> None:
    with OpenFolder(str(folder)) as opened:
        with pytest.raises(OSError, match="symbolic link"):
            opened.open("link", os.O_RDONLY)
        status = opened.status("link")
        assert status is not None
        assert status.st_ino != (folder / "a").stat().st_ino


def test_names_are_given_taken_and_told(folder: Path) -> None:
    with OpenFolder(str(folder)) as opened:
        fd = opened.open("a", os.O_RDONLY)
        assert opened.holds("a", fd)
        assert not opened.holds("link", fd)
        opened.rename("a", "b")
        assert not opened.holds("a", fd)
        assert opened.status("a") is None
        opened.link("b", "c")
        with pytest.raises(FileExistsError):
            opened.link("b", "c")
        opened.unlink("c")
        opened.unlink("c")
        opened.sync()
        close(fd)
    assert sorted(path.name for path in folder.iterdir()) == ["b", "link"]


def test_a_folder_that_was_moved_away_stays_the_one_that_was_opened(folder: Path) -> None:
    with OpenFolder(str(folder)) as opened:
        moved = folder.rename(folder.with_name("moved"))
        folder.mkdir()
        opened.rename("a", "b")
        assert (moved / "b").exists()
        assert list(folder.iterdir()) == []


#: What Python's ``os`` lacks on every platform but Linux.
ONLY_LINUX = """
import os
for name in (
    "O_DIRECT O_TMPFILE SEEK_DATA SEEK_HOLE copy_file_range fdatasync getxattr listxattr "
    "posix_fallocate posix_fadvise pwritev2 preadv2 sched_getaffinity setxattr splice"
).split():
    if hasattr(os, name):
        delattr(os, name)
is_folder = os.path.isdir
os.path.isdir = lambda path: path != "/proc/self/fd" and is_folder(path)
"""
#: What it lacks on Windows besides; modules that are not there cannot be imported.
ALSO_UNIX = """
import sys
for name in "fcntl grp pwd resource termios tty".split():
    sys.modules[name] = None
for name in (
    "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK chown fchown fstatvfs fork geteuid getuid pread "
    "preadv pwrite pwritev sendfile statvfs"
).split():
    if hasattr(os, name):
        delattr(os, name)
os.supports_dir_fd.clear()
"""
READ = """
import secure_bloom as sb
path, keyring = sys.argv[1:]
keys = sb.Keyring.load(keyring)
print(len(sb.inspect(path, keys=keys).files), "inspected")
print(*{v.value for v in sb.probe(path, "email", "nobody@example.com", keys=keys).verdicts})
print(sb.read_table(path, where="email = 'nobody@example.com'", keys=keys).num_rows, "rows")
"""
WRITE = """
import sys
import secure_bloom as sb
path, keyring = sys.argv[1:]
for in_place in (True, False):
    report = sb.add_bloom_filters(
        path, columns="email", keys=sb.Keyring.load(keyring), in_place=in_place,
        replace_filters=True,
    )
    for file in report.files:
        print(file.status, file.error, file.hint)
"""


def run(script: str, *arguments: Path) -> list[str]:
    """The lines that a script prints in a Python of its own."""
    command = [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def table(tmp_path: Path) -> tuple[Path, Path]:
    """A table of one encrypted file, partitioned, and its keyring."""
    folder = tmp_path / "table" / "day=1"
    folder.mkdir(parents=True)
    write(folder / "0.parquet", customers(50), Mode.ENCRYPTED)
    keyring = tmp_path / "keyring.json"
    keyring.write_text(keyring_json())
    keyring.chmod(0o600)
    return tmp_path / "table", keyring


def test_as_on_windows_files_are_read(table: tuple[Path, Path]) -> None:
    assert run(ONLY_LINUX + ALSO_UNIX + READ, *table) == ["1 inspected", "no_filter", "0 rows"]


def test_as_on_windows_writing_says_what_it_needs(table: tuple[Path, Path]) -> None:
    file = table[0] / "day=1" / "0.parquet"
    before = file.read_bytes()
    lines = run(ONLY_LINUX + ALSO_UNIX + WRITE, *table)
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("failed ")
        assert "this system lacks what writing needs: flock" in line
        assert "write on Linux or macOS" in line
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_as_on_macos_files_are_written(table: tuple[Path, Path]) -> None:
    assert run(ONLY_LINUX + WRITE, *table) == ["added None None"] * 2
    assert run(ONLY_LINUX + "import sys" + READ, *table) == ["1 inspected", "absent", "0 rows"]


def test_every_module_is_imported_without_the_calls_of_unix() -> None:
    script = """
import importlib, pkgutil
import secure_bloom
for found in pkgutil.walk_packages(secure_bloom.__path__, "secure_bloom."):
    if not found.name.startswith(("secure_bloom.spark", "secure_bloom.__main__")):
        importlib.import_module(found.name)
"""
    assert run(ONLY_LINUX + ALSO_UNIX + script) == []


def test_separators_of_windows_become_slashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sep", "\\")
    assert local_path(r"out\country=de\0.parquet") == "out/country=de/0.parquet"
