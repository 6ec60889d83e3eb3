"""What any run over a table takes, and what became of its files."""

from __future__ import annotations

from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.adding.report import FileAddReport
from secure_bloom.adding.request import filter_request
from secure_bloom.adding.table_change import TableChange, new_sizes
from secure_bloom.delta.add_run import open_run
from secure_bloom.delta.selection import TableSelection
from secure_bloom.delta.table_run import refuse_options_of_files
from testing import delta_logs as logs


def test_ways_of_writing_that_a_log_rules_out_are_refused(tmp_path: Path) -> None:
    for way in ({"in_place": True, "output": False}, {"in_place": False, "output": True}):
        with pytest.raises(sb.UnsupportedFeatureError):
            refuse_options_of_files(str(tmp_path), **way)
    refuse_options_of_files(str(tmp_path), in_place=False, output=False)


def test_files_that_failed_are_told_from_those_that_stay() -> None:
    reports = [
        FileAddReport(path="a", status="added", bytes_before=1, bytes_after=2),
        FileAddReport(path="b", status="failed"),
        FileAddReport(path="c", status="unchanged", bytes_before=1, bytes_after=1),
    ]
    assert new_sizes(reports) == {"a": 2, "b": None}


def test_a_file_that_failed_because_others_took_it_away_is_gone(tmp_path: Path) -> None:
    columns = [logs.column("email", "string")]
    logs.commit(tmp_path, 0, *logs.start(*columns), *(logs.add(name) for name in "abc"))
    run = open_run(str(tmp_path), filter_request("email", None), TableSelection())
    logs.commit(tmp_path, 1, logs.remove("a"))
    change = TableChange(commits=(), gone=frozenset({str(tmp_path / "c")}))
    failed = [FileAddReport(path=str(tmp_path / name), status="failed") for name in "ab"]
    assert run.gone(change, failed) == {str(tmp_path / "a"), str(tmp_path / "c")}
    assert run.gone(change, []) == {str(tmp_path / "c")}
