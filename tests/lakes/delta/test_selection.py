"""Which files of a table are taken: partition values are compared in the column's own type."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.errors import FormatError
from secure_bloom.lakes import Snapshot, snapshot
from secure_bloom.lakes.delta.selection import TableSelection
from testing.delta_logs import add, column, commit, start

VALUES = {
    "day": ("date", ["2026-01-31", None]),
    "n": ("integer", ["9", "10"]),
    "price": ("decimal(8,2)", ["1.50", "-2.00"]),
    "at": ("timestamp_ntz", ["2026-01-31 10:00:00", "2026-02-01 10:00:00.5"]),
    "instant": ("timestamp", ["2026-01-31 10:00:00", "2026-02-01T10:00:00.5Z"]),
    "text": ("string", ["a'b", "9"]),
    "flag": ("boolean", ["true", "false"]),
}


@pytest.fixture
def table(tmp_path: Path) -> Snapshot:
    columns = [column("id"), *(column(name, kind) for name, (kind, _) in VALUES.items())]
    files = [
        add(f"{i}", partitionValues={name: texts[i] for name, (_, texts) in VALUES.items()})
        for i in range(2)
    ]
    commit(tmp_path, 0, *start(*columns, partitions=list(VALUES)), files[0])
    commit(tmp_path, 1, files[1])
    found = snapshot(tmp_path)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("day = '2026-01-31'", ["0"]),
        ("day is null", ["1"]),
        ("n > 9", ["1"]),
        ("n > 9 or day = '2026-01-31'", ["0", "1"]),
        ("price < 0", ["1"]),
        ("at >= '2026-02-01T00:00:00'", ["1"]),
        ("instant >= '2026-02-01T00:00:00Z'", ["1"]),
        ("text = 'a''b'", ["0"]),
        ("flag = true and n = 9", ["0"]),
    ],
)
def test_files_are_chosen_by_their_partition(table: Snapshot, where: str, names: list[str]) -> None:
    chosen = TableSelection(where=where).files(table)
    assert [file.path.rpartition("/")[2] for file in chosen] == names


def test_files_are_chosen_by_the_version_they_came_with(table: Snapshot) -> None:
    assert [len(TableSelection(since=version).files(table)) for version in (0, 1)] == [1, 0]


@pytest.mark.parametrize("where", ["id = 1", "nothing = 1"])
def test_where_is_about_partition_columns_alone(table: Snapshot, where: str) -> None:
    with pytest.raises(sb.PolicyError, match="is not a partition column"):
        TableSelection(where=where).files(table)


def test_a_version_that_is_not_yet_there_is_refused(table: Snapshot) -> None:
    with pytest.raises(sb.PolicyError, match="latest version of the table is 1"):
        TableSelection(since=2).files(table)


def test_a_value_that_is_none_of_the_type_is_not_quoted(tmp_path: Path) -> None:
    first = start(column("id"), column("n", "integer"), partitions=["n"])
    commit(tmp_path, 0, *first, add("0", partitionValues={"n": "secret"}))
    table = snapshot(tmp_path)
    assert table is not None
    with pytest.raises(FormatError, match="partition value of the log is no int32") as caught:
        TableSelection(where="n = 1").files(table)
    assert "secret" not in "".join(traceback.format_exception(caught.value))
