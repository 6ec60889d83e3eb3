"""An index is written together with what was there, whoever else writes it at the same time."""

from __future__ import annotations

import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from secure_bloom import paimon
from secure_bloom.errors import FileChangedError, FormatError
from secure_bloom.paimon import FileIndex, Index, index_builder
from secure_bloom.paimon.index_files import read_beside
from secure_bloom.storage import replace_tail


def read(path: Path) -> FileIndex:
    return FileIndex.from_bytes(Path(f"{path}.index").read_bytes())


def build_on_another_machine(path: Path, column: str) -> None:
    """Add a column to the index as a machine does whose locks are not seen here."""
    with tempfile.TemporaryDirectory(dir=path.parent) as other:
        copy = Path(shutil.copy(path, other))
        index = Path(f"{path}.index")
        if index.exists():
            shutil.copy(index, other)
        paimon.build_index(copy, [column])
        Path(f"{copy}.index").rename(index)


def test_what_the_index_had_already_stays(data_file: Path) -> None:
    paimon.build_index(data_file, ["name"])
    foreign = Index(type="future", body=b"\0any bytes")
    before = read(data_file).with_indexes([("id", foreign)])
    Path(f"{data_file}.index").write_bytes(before.to_bytes())
    report = paimon.build_index(data_file, ["id"])
    after = read(data_file)
    assert report.kept == ("name: bloom-filter", "id: future")
    assert after.indexes("name") == before.indexes("name")
    assert after.indexes("id")[0] == foreign
    assert after.indexes("id")[1].type == "bloom-filter"


def test_a_damaged_index_is_an_error_and_stays(data_file: Path) -> None:
    index = Path(f"{data_file}.index")
    index.write_bytes(b"no index")
    with pytest.raises(FormatError, match="magic") as refused:
        paimon.build_index(data_file, ["id"])
    assert str(index) in str(refused.value)
    assert index.read_bytes() == b"no index"


@pytest.mark.parametrize("step", ["read_beside", "open_input", "read_whole"])
def test_another_writer_s_index_is_not_lost(data_file: Path, step: str) -> None:
    """Another process adds its index somewhere between our reading the old one and the new one."""
    paimon.build_index(data_file, ["name"])
    do, raced = getattr(index_builder, step), []

    def do_and_race(place: Any) -> Any:
        done = do(place)
        if not raced and not str(place).endswith(".parquet"):
            raced.append(True)
            build_on_another_machine(data_file, "m[a]")
        return done

    with mock.patch.object(index_builder, step, do_and_race):
        paimon.build_index(data_file, ["id"])
    assert raced
    assert {column.name for column in read(data_file).columns} == {"name", "m[a]", "id"}


@pytest.mark.parametrize("has_index", [False, True])
def test_an_index_of_values_that_changed_meanwhile_is_not_written(
    data_file: Path, has_index: bool
) -> None:
    if has_index:
        paimon.build_index(data_file, ["name"])
    before = sorted(path.name for path in data_file.parent.iterdir())

    def read_and_change(file: Any) -> Any:
        data_file.write_bytes(data_file.read_bytes() + b"more")
        return read_beside(file)

    with (
        mock.patch.object(index_builder, "read_beside", read_and_change),
        pytest.raises(FileChangedError),
    ):
        paimon.build_index(data_file, ["id"])
    assert sorted(path.name for path in data_file.parent.iterdir()) == before
    assert not has_index or not read(data_file).indexes("id")


def test_two_first_builds_at_once_keep_both_indexes(data_file: Path) -> None:
    """Another process writes the first index after we looked and saw none."""
    do, raced = replace_tail, []

    def race_and_do(*arguments: Any, **options: Any) -> int:
        if not raced:
            raced.append(True)
            build_on_another_machine(data_file, "m[a]")
        return do(*arguments, **options)

    with mock.patch.object(index_builder, "replace_tail", race_and_do):
        paimon.build_index(data_file, ["id"])
    assert {column.name for column in read(data_file).columns} == {"m[a]", "id"}
    assert len(list(data_file.parent.iterdir())) == 2


def test_first_builds_in_many_threads_all_get_in(data_file: Path) -> None:
    columns = ["id", "name", "m[a]", "m[b]", "nothing", "dotted.name"]
    with ThreadPoolExecutor(len(columns)) as executor:
        reports = list(executor.map(lambda c: paimon.build_index(data_file, [c]), columns))
    assert {report.status for report in reports} == {"built"}
    assert {column.name for column in read(data_file).columns} == set(columns)


def test_a_damaged_index_can_be_replaced(data_file: Path) -> None:
    index = Path(f"{data_file}.index")
    for damaged in (b"no index", b""):
        index.write_bytes(damaged)
        with pytest.raises(FormatError) as refused:
            paimon.build_index(data_file, ["id"])
        assert "--replace-damaged" in str(refused.value.hint)
        paimon.build_index(data_file, ["id"], replace_damaged=True, dry_run=True)
        assert index.read_bytes() == damaged
        paimon.build_index(data_file, ["id"], replace_damaged=True)
        assert [column.name for column in read(data_file).columns] == ["id"]
    paimon.build_index(data_file, ["name"], replace_damaged=True)
    assert [column.name for column in read(data_file).columns] == ["id", "name"]
