"""Who may write a folder of a table can lead no run into another folder."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.adding.rewrite import Rewriter
from secure_bloom.lakes.delta.run_record import clean_up
from secure_bloom.parquet.key_material_writes import write_new_with_material
from secure_bloom.storage import InputFile, open_input
from secure_bloom.storage.paths import without_links
from testing import delta_logs as logs
from testing.delta_tables import data_files, rows, write_table

RUN = "0123456789abcdef"
BOOT = Path("/proc/sys/kernel/random/boot_id")


def people(path: Path, start: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    numbers = range(start, start + 60)
    pq.write_table(pa.table({"id": numbers, "email": [f"u{i}@example.org" for i in numbers]}), path)


def record(folder: Path, *files: str) -> Path:
    path = folder / f".run-{RUN}.secure-bloom"
    boot = BOOT.read_text().strip()
    path.write_text(json.dumps({"version": 0, "boot": boot, "files": files}))
    path.chmod(0o600)
    return path


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """A table, and the folder of another one whose file has a name of the run ``RUN``."""
    people(tmp_path / "a/x.parquet")
    size = (tmp_path / "a/x.parquet").stat().st_size
    columns = logs.column("id"), logs.column("email", "string")
    logs.commit(tmp_path / "a", 0, *logs.start(*columns), logs.add("x.parquet", size))
    people(tmp_path / f"b/y.sb-{RUN}.parquet")
    return tmp_path / "a", tmp_path / "b"


@pytest.mark.skipif(not BOOT.exists(), reason="needs the kernel's name of its start")
@pytest.mark.parametrize("named", ["link", "deep/link"])
def test_a_record_removes_nothing_behind_a_link(two: tuple[Path, Path], named: str) -> None:
    table, other = two
    before = data_files(other)
    (table / named).parent.mkdir(exist_ok=True)
    (table / named).symlink_to(other)
    (other / f"_KEY_MATERIAL_FOR_y.sb-{RUN}.parquet.json").write_text("{}")
    (other / f".y.sb-{RUN}.parquet.secure-bloom").write_text("")
    (other / f".y.sb-{RUN}.parquet.crc").write_text("")
    left = set(other.iterdir())
    record(table, f"{named}/y.sb-{RUN}.parquet")
    sb.add_bloom_filters(table, columns="email")
    assert set(other.iterdir()) == left
    assert before <= data_files(other)


@pytest.mark.skipif(not BOOT.exists(), reason="needs the kernel's name of its start")
@pytest.mark.parametrize("forged", ["owner", "mode", "names", "link"])
def test_a_record_of_another_user_removes_nothing(two: tuple[Path, Path], forged: str) -> None:
    table, _ = two
    mine = table / f"x.sb-{RUN}.parquet"
    mine.write_bytes(b"x")
    noted = record(table, mine.name)
    if forged == "owner":
        if os.geteuid() != 0:
            pytest.skip("only root can give a file away")
        os.chown(noted, 12345, 12345)
    elif forged == "mode":
        noted.chmod(0o620)
    elif forged == "names":
        os.link(noted, table / "second")
    else:
        noted.rename(table.parent / "record")
        noted.symlink_to(table.parent / "record")
    clean_up(str(table))
    assert mine.exists()


@pytest.mark.skipif(not BOOT.exists(), reason="needs the kernel's name of its start")
def test_a_version_whose_commit_was_cleaned_up_may_name_the_files(two: tuple[Path, Path]) -> None:
    table, _ = two
    mine = table / f"x.sb-{RUN}.parquet"
    mine.write_bytes(b"x")
    record(table, mine.name)
    (logs.log_of(table) / f"{0:020}.json").unlink()
    logs.checkpoint(
        logs.log_of(table) / f"{3:020}.checkpoint.parquet", *logs.start(), logs.add(mine.name)
    )
    clean_up(str(table))
    assert mine.exists()


@pytest.mark.parametrize("named", ["link/x.parquet", "link%2Fx.parquet", "d/link/x.parquet"])
@pytest.mark.parametrize("commit_every", [None, 1])
def test_no_new_file_is_written_behind_a_link(
    tmp_path: Path, named: str, commit_every: int | None
) -> None:
    table, other = tmp_path / "a", tmp_path / "b"
    people(other / "x.parquet")
    (table / "d").mkdir(parents=True)
    link = table / named.replace("%2F", "/").removesuffix("/x.parquet")
    link.symlink_to(other)
    people(table / "y.parquet", 60)
    size = (other / "x.parquet").stat().st_size
    logs.commit(
        table,
        0,
        *logs.start(logs.column("id"), logs.column("email", "string")),
        logs.add(named, size),
        logs.add("y.parquet", (table / "y.parquet").stat().st_size),
    )
    report = sb.add_bloom_filters(table, columns="email", commit_every=commit_every)
    assert {Path(it.path).name: it.status for it in report.files} == {
        "x.parquet": "failed",
        "y.parquet": "added",
    }
    (failed,) = report.failed
    assert "link" in str(failed.error)
    assert "/./" not in str(failed.error)
    assert data_files(other) == {"x.parquet"}
    assert sb.read_table(other).num_rows == 60
    assert sb.read_table(table).num_rows == 120


def test_a_leftover_behind_a_link_stays(tmp_path: Path) -> None:
    table, other = tmp_path / "a", tmp_path / "b"
    people(other / "x.parquet")
    sb.add_bloom_filters(other, columns="email")
    table.mkdir()
    (table / "link").symlink_to(other)
    left = other / ".x.parquet.secure-bloom"
    left.write_text("")
    logs.commit(
        table,
        0,
        *logs.start(logs.column("id"), logs.column("email", "string")),
        logs.add("link/x.parquet", (other / "x.parquet").stat().st_size),
    )
    report = sb.add_bloom_filters(table, columns="email")
    assert [it.status for it in report.files] == ["unchanged"]
    assert left.exists()


def test_no_version_is_written_into_the_log_of_another_table(tmp_path: Path) -> None:
    mine, victim = tmp_path / "a", Path(write_table(tmp_path / "b", 1))
    before, log = rows(str(victim)), sorted((victim / "_delta_log").iterdir())
    shutil.copytree(victim, mine, ignore=shutil.ignore_patterns("_delta_log"))
    (mine / "_delta_log").symlink_to(victim / "_delta_log")
    with pytest.raises(sb.PolicyError, match="_delta_log, a folder on the way"):
        sb.add_bloom_filters(mine, columns="email")
    assert sorted((victim / "_delta_log").iterdir()) == log
    assert rows(str(victim)) == before
    assert not [name for name in data_files(mine) if ".sb-" in name]


def test_a_table_that_is_reached_through_a_link_is_written(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t", 1)
    (tmp_path / "link").symlink_to(table)
    report = sb.add_bloom_filters(tmp_path / "link", columns="email")
    assert {it.status for it in report.files} == {"added"}
    assert rows(table) == rows(str(tmp_path / "link"))


@pytest.mark.parametrize("is_there", [True, False])
def test_key_material_is_written_through_no_link(tmp_path: Path, is_there: bool) -> None:
    """The names of new files are known while a run lives, from its record."""
    table, victim = tmp_path / "t", tmp_path / "victim.json"
    people(table / "x.parquet")
    if is_there:
        victim.write_text("{}")
    (table / "_KEY_MATERIAL_FOR_new.parquet.json").symlink_to(victim)
    target = without_links(str(table / "new.parquet"), str(table))
    with open_input(str(table / "x.parquet")) as source, pytest.raises(sb.SecureBloomError):
        write_new_with_material(source, source.size, (), {"key": "wrapped"}, target)
    assert victim.exists() == is_there
    assert not is_there or victim.read_text() == "{}"


def test_a_folder_that_becomes_a_link_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of a partition is exchanged for a link after the file was planned."""
    table, other = Path(write_table(tmp_path / "t", 1)), tmp_path / "b"
    other.mkdir()
    plan = Rewriter.plan

    def exchanged(self: Rewriter, file: InputFile, *rest: Any) -> Any:
        found = plan(self, file, *rest)
        folder = Path(file.location).parent
        if not folder.is_symlink():
            folder.rename(tmp_path / folder.name)
            shutil.copytree(tmp_path / folder.name, other, dirs_exist_ok=True)
            folder.symlink_to(other)
        return found

    monkeypatch.setattr(Rewriter, "plan", exchanged)
    report = sb.add_bloom_filters(table, columns="email", jobs=1)
    assert {it.status for it in report.files} == {"failed"}
    assert not [name for name in data_files(other) if ".sb-" in name]
