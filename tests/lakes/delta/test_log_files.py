"""Which files of a log make up a version."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError
from secure_bloom.lakes import snapshot
from secure_bloom.lakes.delta.log_files import resolve
from testing.delta_logs import add, commit, lines, live, log_of, remove, start


def test_compacted_commits_stand_for_those_that_they_hold(tmp_path: Path) -> None:
    commit(tmp_path, 0, *start())
    compacted = log_of(tmp_path) / f"{1:020}.{3:020}.compacted.json"
    compacted.write_text(lines([add("b"), remove("a"), add("c")]))
    commit(tmp_path, 4, add("d"))
    assert live(tmp_path) == ["b", "c", "d"]
    with pytest.raises(PolicyError, match="no version 2"):
        snapshot(tmp_path, version=2)


def test_a_gap_in_the_log_is_told(tmp_path: Path) -> None:
    commit(tmp_path, 0, *start())
    commit(tmp_path, 2, add("x"))
    with pytest.raises(PolicyError, match="commit 1 of the table's log is gone"):
        snapshot(tmp_path)


def test_an_empty_log_is_an_error(tmp_path: Path) -> None:
    log_of(tmp_path)
    with pytest.raises(FormatError, match="neither a commit nor a checkpoint"):
        snapshot(tmp_path)


@pytest.mark.parametrize(
    ("folder", "path", "wanted"),
    [
        ("/t", "p=a%20b/x.parquet", "/t/p=a b/x.parquet"),
        ("/t", "p=a%253Ab/x", "/t/p=a%3Ab/x"),
        ("/t/", "x", "/t/x"),
        ("/t", "/t/a%20b", "/t/a b"),
        ("/t", "file:///t/a%20b", "/t/a b"),
        ("/t", "file:/other/x", "/other/x"),
        ("s3://b/t?region=x", "p=1/x", "s3://b/t/p=1/x?region=x"),
        ("s3://b/t?region=x", "s3a://b/u/a%20b", "s3://b/u/a b?region=x"),
    ],
)
def test_a_path_is_decoded_and_set_below_the_table(folder: str, path: str, wanted: str) -> None:
    assert resolve(folder, path) == wanted


@pytest.mark.parametrize("path", ["", "../x", "a/%2E%2E/x", "a//x", "x%00y", "file:///t/../x"])
def test_a_path_that_leads_out_of_the_table_is_damage(path: str) -> None:
    with pytest.raises(FormatError, match="leads out"):
        resolve("/t", path)


@pytest.mark.parametrize(
    ("folder", "path"),
    [
        ("/t", "s3://b/x"),
        ("/t", "hdfs://name/x"),
        ("s3://b/t", "file:///x"),
        ("s3://b/t", "/x"),
        ("s3://b/t", "s3://other/x"),
    ],
)
def test_a_file_of_another_store_is_refused(folder: str, path: str) -> None:
    with pytest.raises(UnsupportedFeatureError):
        resolve(folder, path)
