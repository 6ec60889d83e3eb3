"""What a run is, before anything is done: its files, its columns, and what the history will say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import secure_bloom as sb
from secure_bloom.adding.request import filter_request
from secure_bloom.api.add import open_table_run
from secure_bloom.lakes.delta.table_run import TableRun
from secure_bloom.lakes.formats import DELTA
from secure_bloom.lakes.writable_table import TableChoice
from testing import delta_logs as logs

REQUEST = filter_request({"email": 0.001}, None)


@pytest.fixture
def table(tmp_path: Path) -> str:
    columns = [logs.column("email", "string"), logs.column("day", "date")]
    files = [
        logs.add(f"{i}", partitionValues={"day": f"2026-01-0{i}"}, modificationTime=i)
        for i in (1, 2, 3)
    ]
    logs.commit(tmp_path, 0, *logs.start(*columns, partitions=["day"]), *files[:2])
    logs.commit(tmp_path, 1, files[2])
    return str(tmp_path)


def names(table: str, **chosen: Any) -> list[str]:
    run, _ = open_table_run(DELTA, table, REQUEST, TableChoice(**chosen))
    return [Path(path).name for path in run.paths]


def test_files_are_chosen_by_partition_version_and_time(table: str) -> None:
    assert names(table) == ["1", "2", "3"]
    assert names(table, where="day >= '2026-01-02'") == ["2", "3"]
    assert names(table, since=0) == ["3"]
    assert names(table, written=2) == ["2", "3"]
    assert names(table, where="day < '2026-01-03'", written=2) == ["2"]


def test_the_history_says_how_it_was_asked_for(table: str) -> None:
    run, _ = open_table_run(DELTA, table, REQUEST, TableChoice(where="day is not null", since=0))
    assert isinstance(run, TableRun)
    assert run.operation.name == "ADD BLOOM FILTERS"
    assert run.operation.parameters == {
        "columns": '{"email": 0.001}',
        "replaceFilters": "false",
        "predicate": "day is not null",
        "since": "0",
    }


def test_what_makes_no_sense_is_refused(table: str) -> None:
    with pytest.raises(sb.PolicyError, match="commit_every"):
        open_table_run(DELTA, table, REQUEST, TableChoice(commit_every=0))
