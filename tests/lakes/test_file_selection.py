"""Which files a job on Spark takes: by the values of their folders, and by their age."""

from __future__ import annotations

import os
import pickle
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.lakes.file_selection import (
    FileSelection,
    chosen_by_partition,
    file_selection,
    unmatched_note,
)
from secure_bloom.storage.folder_trees import LocalTree

pytest.importorskip("pyspark")

ROOT = "/lake/t"


def takes(where: str, path: str) -> bool:
    return pickle.loads(pickle.dumps(file_selection([ROOT], where, None))).file(
        LocalTree(), f"{ROOT}/{path}/part.parquet"
    )


@pytest.mark.parametrize(
    ("where", "path", "taken"),
    [
        ("day = '2026-11-20'", "day=2026-11-20", True),
        ("day = '2026-11-20'", "day=2026-11-21", False),
        ("day >= '2026-11-05' and day < 2026-12-01", "day=2026-11-20/hour=3", True),
        ("day > '2026-11-20' or hour = 3", "day=2026-11-20/hour=03", True),
        ("hour < 10", "hour=9", True),
        ("hour < '10'", "hour=9", True),  # as numbers, not as texts
        ("hour in (1, 2)", "hour=02", True),
        ("not hour in (1, 2)", "hour=2", False),
        ("code = 'abc'", "code=123", False),
        ("code = 'abc'", "code=abc", True),
        ("code = 'NaN'", "code=NaN", True),
        ("code != 'NaN'", "code=NaN", False),
        ("code < 5", "code=NaN", False),
        ("place = 'a b/c'", "place=a%20b%2Fc", True),
        ("day is null", "day=__HIVE_DEFAULT_PARTITION__", True),
        ("day = '2026-11-20'", "day=__HIVE_DEFAULT_PARTITION__", False),
        ("not day = '2026-11-20'", "day=__HIVE_DEFAULT_PARTITION__", False),
        ("day is not null", "day=2026-11-20", True),
    ],
)
def test_the_values_of_folders_are_compared_as_spark_reads_them(
    where: str, path: str, taken: bool
) -> None:
    assert takes(where, path) is taken


def test_a_folder_is_left_out_only_where_nothing_below_it_can_be_wanted() -> None:
    selection = file_selection([ROOT], "day = '2026-11-20' and hour > 5", None)
    assert selection.folder(f"{ROOT}/day=2026-11-20")
    assert selection.folder(f"{ROOT}/other=1")
    assert not selection.folder(f"{ROOT}/day=2026-11-21")
    assert not selection.folder(f"{ROOT}/day=2026-11-20/hour=5")
    either = file_selection([ROOT], "day = '2026-11-20' or hour > 5", None)
    assert either.folder(f"{ROOT}/day=2026-11-21")


def test_folders_above_the_table_are_no_partitions() -> None:
    selection = file_selection(["/lake/day=1/t"], "day = 2", None)
    assert selection.folder("/lake/day=1/t/x=1")


def test_a_column_that_is_no_partition_is_an_error_that_names_those() -> None:
    with pytest.raises(PolicyError, match="'city' is not a partition column") as caught:
        takes("city = 'Oslo'", "day=1/hour=2")
    assert "day, hour" in str(caught.value.hint)


def test_a_number_beside_a_text_is_an_error() -> None:
    with pytest.raises(PolicyError):
        takes("code > 5", "code=abc")


@pytest.mark.parametrize(
    "since",
    [
        "2026-11-20T13:00:00Z",
        "2026-11-20 13:00:00",
        "2026-11-20T14:00:00+01:00",
        datetime(2026, 11, 20, 13, tzinfo=UTC),
        datetime(2026, 11, 20, 13),
        datetime(2026, 11, 20, 14, tzinfo=timezone(timedelta(hours=1))),
    ],
)
def test_since_takes_files_written_then_or_later(tmp_path: Path, since: str | datetime) -> None:
    selection = file_selection([str(tmp_path)], None, since)
    moment = int(datetime(2026, 11, 20, 13, tzinfo=UTC).timestamp())
    file = tmp_path / "x.parquet"
    file.touch()
    for offset, taken in ((-1, False), (0, True), (1, True)):
        os.utime(file, (moment + offset, moment + offset))
        assert selection.file(LocalTree(), str(file)) is taken
    assert selection.folder(str(tmp_path))


def test_a_text_that_is_no_time_is_an_error() -> None:
    with pytest.raises(PolicyError, match="since: 'yesterday' is not a timestamp"):
        file_selection([ROOT], None, "yesterday")


def test_without_either_everything_is_taken() -> None:
    selection = file_selection([ROOT], None, None)
    assert selection == FileSelection(roots=(ROOT,))
    assert selection.is_everything
    assert selection.folder("anything")
    assert selection.file(LocalTree(), "/nowhere/x.parquet")


DAYS = {"day": pa.array(["1", "2", None]), "n": pa.array([1, 2, 3])}


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("day = '2'", [False, True, False]),
        ("day is null or n < 2", [True, False, True]),
        ("n > 9", [False] * 3),
    ],
)
def test_a_file_counts_if_the_condition_is_true_of_its_partition(
    where: str, wanted: list[bool]
) -> None:
    assert chosen_by_partition(where, "t", ["day", "n"], DAYS.__getitem__) == wanted


def test_a_column_that_is_no_partition_column_is_refused() -> None:
    with pytest.raises(PolicyError, match="'id' is not a partition column") as error:
        chosen_by_partition("day = '2' and id = 5", "t", ["day"], DAYS.__getitem__)
    assert "they are day" in str(error.value.hint)


def test_the_note_lists_the_first_values_and_counts_the_others() -> None:
    days = [*map(str, range(9, 0, -1)), None, "1"]
    note = unmatched_note("day = '0'", {"day": days, "n": ["5"]})
    assert note == "no live file has day = '0': day is '1', '2', '3', '4', '5' and 5 more"
    assert unmatched_note("day = '0'", {"day": [None]}).endswith(": day is null")
