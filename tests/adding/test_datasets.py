"""Datasets as they lie in lakes: folders, links, mixed files, tables with a log of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from testing.command_line import Done, run
from testing.tables import KEYRING, Mode, customers, write


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def _add(path: Path, *columns: str, code: int = 0, **options: Any) -> Done:
    """``secure-bloom add --json``, as a process."""
    asked = [word for name in columns for word in ("--column", name)]
    done = run("add", path, *asked, "--json")
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def hive(tmp_path: Path) -> Path:
    """Partitions by day and city, with what Spark leaves beside data."""
    root = tmp_path / "hive"
    table = customers(120).append_column("day", pa.array([i % 3 for i in range(120)]))
    pq.write_to_dataset(table, root, partition_cols=["day", "city"])
    (root / "_SUCCESS").touch()
    (root / ".part-0.parquet.crc").write_bytes(b"crc")
    (root / "day=0" / ".hidden.parquet").write_bytes(b"no data")
    (root / "_temporary" / "0").mkdir(parents=True)
    (root / "_temporary" / "0" / "part-9.parquet").write_bytes(b"half a file")
    return root


def _others(root: Path) -> dict[str, bytes]:
    """What is no data."""
    return {
        name: content
        for name, content in _contents(root).items()
        if any(part.startswith((".", "_")) for part in name.split("/"))
    }


def test_a_hive_partitioned_folder(hive: Path) -> None:
    dataset = ds.dataset(hive, partitioning="hive")
    before, others = dataset.to_table().sort_by("id"), _others(hive)
    report = json.loads(_add(hive, "email", "id").stdout)
    assert {file["status"] for file in report["files"]} == {"added"}
    assert len(report["files"]) == 9
    assert dataset.to_table().sort_by("id").equals(before)
    assert _others(hive) == others
    assert len(others) == 4
    (email, *_) = before["email"].to_pylist()
    groups = [g for file in sb.probe(hive, "email", [email]).files for g in file.row_groups]
    assert sum(group.verdicts[email] == "maybe" for group in groups) in (1, 2)


@pytest.mark.parametrize("name", ["day", "city"])
def test_a_partition_column_is_told_to_be_one(hive: Path, name: str) -> None:
    before = _contents(hive)
    for call in (
        lambda: sb.add_bloom_filters(hive, columns=["email", name]),
        lambda: sb.probe(hive, name, ["1"]),
    ):
        with pytest.raises(sb.PolicyError, match=f"{name} is a partition column") as caught:
            call()
        assert "leave it out" in str(caught.value.hint)
    done = _add(hive, "email", name, code=2)
    assert f"secure-bloom: error: {name} is a partition column" in done.stderr
    assert _contents(hive) == before


def test_partitions_go_to_another_folder_in_their_places(hive: Path, tmp_path: Path) -> None:
    before = _contents(hive)
    sb.add_bloom_filters(hive, columns=["email"], output=tmp_path / "copy")
    assert _contents(hive) == before
    data = {name for name in before if name not in _others(hive)}
    assert set(_contents(tmp_path / "copy")) == data


def test_files_of_mixed_schemas(tmp_path: Path) -> None:
    """Each file's values are stored and looked up by its own type; some files lack the column."""
    tables = {
        "int32": pa.table({"x": pa.array(range(50), pa.int32())}),
        "int64": pa.table({"x": pa.array(range(50), pa.int64()), "y": range(50)}),
        "double": pa.table({"x": pa.array(range(50), pa.float64())}),
        "text": pa.table({"y": range(50), "x": [str(i) for i in range(50)]}),
        "lacks": pa.table({"y": range(50)}),
    }
    for name, table in tables.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    report = json.loads(_add(tmp_path, "x").stdout)
    actions = {Path(f["path"]).stem: f["filters"][0]["action"] for f in report["files"]}
    assert actions == dict.fromkeys(tables, "added") | {"lacks": "skipped"}
    said = {
        value: {
            Path(file.path).stem: str(file.row_groups[0].verdicts[value])
            for file in sb.probe(tmp_path, "x", [value]).files
        }
        for value in ("17", "1017")
    }
    lacks = {"lacks": "no_filter"}
    assert said["17"] == dict.fromkeys(tables, "maybe") | lacks
    assert said["1017"] == dict.fromkeys(tables, "absent") | lacks
    for name, table in tables.items():
        assert pq.read_table(tmp_path / f"{name}.parquet").equals(table)


def test_a_column_that_can_have_a_filter_in_some_files_only_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "number.parquet")
    pq.write_table(pa.table({"x": [True, False]}), tmp_path / "truth.parquet")
    before = _contents(tmp_path)
    with pytest.raises(sb.UnsupportedFeatureError, match="BOOLEAN") as caught:
        sb.add_bloom_filters(tmp_path, columns=["x"])
    assert "truth.parquet" in str(caught.value)
    assert _contents(tmp_path) == before


@pytest.mark.parametrize("in_place", [False, True])
def test_symbolic_links_stay_and_their_files_change(tmp_path: Path, in_place: bool) -> None:
    table = customers(50)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "lake").mkdir()
    real = write(tmp_path / "elsewhere" / "x.parquet", table, Mode.ENCRYPTED)
    (tmp_path / "lake" / "link.parquet").symlink_to(real)
    (tmp_path / "lake" / "day=1").symlink_to(tmp_path / "elsewhere")
    report = sb.add_bloom_filters(
        tmp_path / "lake", columns=["email"], keys=KEYRING, in_place=in_place
    )
    # One file, however many ways lead to it.
    assert [file.status for file in report.files] == ["added"]
    assert (tmp_path / "lake" / "link.parquet").is_symlink()
    assert (tmp_path / "lake" / "day=1").is_symlink()
    assert not real.is_symlink()
    email = table["email"][0].as_py()
    for path in (real, tmp_path / "lake" / "link.parquet", tmp_path / "lake"):
        assert sb.probe(path, "email", [email], keys=KEYRING).verdicts == {sb.Verdict.MAYBE}
    assert sorted(p.name for p in (tmp_path / "lake").iterdir()) == ["day=1", "link.parquet"]


def _delta(root: Path, files: list[str]) -> None:
    adds = [{"add": {"path": f, "size": (root / f).stat().st_size}} for f in files]
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    lines = [json.dumps(action) for action in [protocol, *adds]]
    log = root / "_delta_log" / "00000000000000000000.json"
    log.parent.mkdir()
    log.write_text("\n".join(lines))


def _iceberg(root: Path, files: list[str]) -> None:
    """Data files lie in `data/` beside `metadata/`."""
    (root / "data").mkdir()
    for file in files:
        (root / file).rename(root / "data" / file)
    (root / "metadata").mkdir()
    metadata = {"format-version": 2, "location": str(root), "snapshots": []}
    (root / "metadata" / "00000-9c1f.metadata.json").write_text(json.dumps(metadata))


def _hudi(root: Path, files: list[str]) -> None:
    (root / ".hoodie").mkdir()
    properties = "hoodie.table.name=t\nhoodie.table.type=COPY_ON_WRITE\n"
    (root / ".hoodie" / "hoodie.properties").write_text(properties)
    for file in files:
        (root / ".hoodie" / f"{file}.commit").write_text("{}")


TABLES = {"Delta": _delta, "Iceberg": _iceberg, "Hudi": _hudi}


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_with_a_log_of_its_own_is_refused_with_the_reason(
    tmp_path: Path, kind: str
) -> None:
    root = tmp_path / "lake" / "table"
    root.mkdir(parents=True)
    for i in range(2):
        write(root / f"part-{i}.parquet", customers(20, seed=i))
    make: Callable[[Path, list[str]], None] = TABLES[kind]
    make(root, ["part-0.parquet", "part-1.parquet"])
    before = _contents(tmp_path)
    file = next(root.rglob("part-0.parquet"))
    # What `add` does to the folder of a Delta table is for tests/lakes/delta to tell.
    for path in (tmp_path / "lake", file) if kind == "Delta" else (tmp_path / "lake", root, file):
        for options in ({}, {"in_place": True}, {"replace_filters": True}):
            with pytest.raises(sb.UnsupportedFeatureError, match=f"{kind} table: its own log"):
                sb.add_bloom_filters(path, columns=["email"], **options)
        done = _add(path, "email", code=2)
        assert f"{root}: a{'n' if kind == 'Iceberg' else ''} {kind} table" in done.stderr
        assert "secure-bloom: hint: " in done.stderr
    assert _contents(tmp_path) == before
