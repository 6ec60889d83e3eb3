"""What a dead run has left is removed by the next one, and nothing else is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.lakes.delta.run_record import clean_up, recorded
from testing import delta_logs as logs
from testing.delta_tables import data_files, latest, rows, write_table

RUN = "0123456789abcdef"
BOOT = Path("/proc/sys/kernel/random/boot_id")

pytestmark = pytest.mark.skipif(not BOOT.exists(), reason="needs the kernel's name of its start")


def record(folder: Path, *files: str, boot: str | None = None, version: int = 0) -> Path:
    path = folder / f".run-{RUN}.secure-bloom"
    boot = BOOT.read_text().strip() if boot is None else boot
    path.write_text(json.dumps({"version": version, "boot": boot, "files": files}))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    logs.commit(tmp_path, 0, *logs.start(), logs.add("a.parquet"))
    (tmp_path / "p=1").mkdir()
    return tmp_path


NEW = f"p=1/a%20b.sb-{RUN}.parquet"
FILE = f"p=1/a b.sb-{RUN}.parquet"


def test_files_that_a_dead_run_noted_are_removed_with_what_stands_beside_them(
    folder: Path,
) -> None:
    left = [FILE, f"p=1/_KEY_MATERIAL_FOR_a b.sb-{RUN}.parquet.json"]
    for name in left:
        (folder / name).write_text("x")
    (folder / f"p=1/.a b.sb-{RUN}.parquet.secure-bloom").write_text("x")
    (folder / "p=1/other.parquet").write_text("x")
    record(folder, NEW)
    clean_up(str(folder))
    assert data_files(folder) == {"p=1/other.parquet"}


def test_files_that_a_commit_names_stay(folder: Path) -> None:
    (folder / FILE).write_text("x")
    record(folder, NEW)
    logs.commit(folder, 1, logs.add(NEW))
    logs.commit(folder, 2, logs.remove(NEW))
    clean_up(str(folder))
    assert data_files(folder) == {FILE}


@pytest.mark.parametrize("path", [NEW, NEW.replace("%20", " "), f"p%3D1/a b.sb-{RUN}.parquet"])
@pytest.mark.parametrize("version", [0, 1, 7])
def test_files_of_a_log_that_was_made_anew_stay(folder: Path, path: str, version: int) -> None:
    """A log that goes, and a conversion of the folder: what dead runs left becomes rows."""
    (folder / FILE).write_text("x")
    record(folder, NEW, version=version)
    logs.commit(folder, 0, *logs.start(), logs.add(path))
    logs.commit(folder, 1, logs.add("b.parquet"))
    clean_up(str(folder))
    assert FILE in data_files(folder)
    # Older versions are read, too.
    logs.commit(folder, 2, logs.remove(path))
    clean_up(str(folder))
    assert FILE in data_files(folder)


def test_where_a_commit_is_gone_nobody_knows_and_all_stays(folder: Path) -> None:
    (folder / FILE).write_text("x")
    noted = record(folder, NEW)
    logs.commit(folder, 2, logs.add("b"))
    clean_up(str(folder))
    assert data_files(folder) == {FILE, noted.name}


def test_the_record_of_another_machine_or_of_an_earlier_start_is_left_to_vacuum(
    folder: Path,
) -> None:
    (folder / FILE).write_text("x")
    noted = record(folder, NEW, boot="another")
    clean_up(str(folder))
    assert data_files(folder) == {FILE, noted.name}


def test_a_run_that_lives_is_not_cleaned_up_after(folder: Path) -> None:
    (folder / FILE).write_text("x")
    with recorded(str(folder), RUN, 0, [NEW]):
        clean_up(str(folder))
        assert FILE in data_files(folder)
    assert data_files(folder) == {FILE}


@pytest.mark.parametrize("outside", [f"../x.sb-{RUN}.parquet", "a.parquet", "/etc/passwd"])
def test_a_forged_record_removes_nothing_else(folder: Path, outside: str) -> None:
    (folder / "a.parquet").write_text("x")
    (folder.parent / f"x.sb-{RUN}.parquet").write_text("x")
    record(folder, outside)
    clean_up(str(folder))
    assert data_files(folder) == {"a.parquet"}
    assert (folder.parent / f"x.sb-{RUN}.parquet").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": "0", "boot": 1, "files": 3}'])
def test_a_record_that_was_not_written_to_the_end_is_removed(folder: Path, text: str) -> None:
    record(folder).write_text(text)
    clean_up(str(folder))
    assert data_files(folder) == set()


@pytest.mark.parametrize("left", [{FILE}, set()])
def test_after_an_error_the_record_stays_as_long_as_files_do(folder: Path, left: set[str]) -> None:
    for name in left:
        (folder / name).write_text("x")
    with pytest.raises(RuntimeError), recorded(str(folder), RUN, 0, [NEW]):
        raise RuntimeError
    noted = {f".run-{RUN}.secure-bloom"} if left else set()
    assert data_files(folder) == left | noted


KILLED_BEFORE_THE_COMMIT = """
import os, signal, sys
import secure_bloom as sb
from secure_bloom.storage import commit_files
commit_files.create_file = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
sb.add_bloom_filters(sys.argv[1], columns="email", jobs=1)
"""


def test_the_run_after_a_kill_leaves_the_table_as_if_nothing_had_been(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t", 2)
    before, old = rows(table), data_files(table)
    program = [sys.executable, "-c", KILLED_BEFORE_THE_COMMIT, table]
    done = subprocess.run(program, env=os.environ, check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(data_files(table)) == 2 * len(old) + 1
    assert (latest(table), rows(table)) == (1, before)
    report = sb.add_bloom_filters(table, columns="email")
    assert {file.status for file in report.files} == {"added"}
    assert len(data_files(table)) == 2 * len(old)
    assert rows(table) == before
