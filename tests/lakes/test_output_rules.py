"""No report takes the place of data or keys, or becomes a part of a table."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.lakes.output_rules import require_report_file


def test_no_report_is_a_part_of_a_log(tmp_path: Path) -> None:
    commit = tmp_path / "_delta_log" / "0.json"
    commit.parent.mkdir()
    with pytest.raises(PolicyError, match="would become a part of a table's log"):
        require_report_file(commit)
    require_report_file(tmp_path / "new.json")
    require_report_file(None)


@pytest.mark.parametrize(
    "content", [b"PAR1", b"PARE", b"Obj\x01", b"ARROW1", b"ORC", b'{"master_keys": {}}']
)
def test_no_report_replaces_data_or_keys(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "kept").write_bytes(content)
    with pytest.raises(PolicyError, match="not a report"):
        require_report_file(tmp_path / "kept")


def test_no_report_has_the_name_of_a_data_file(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="a report is no Parquet file"):
        require_report_file(tmp_path / "report.Parquet")


def test_a_report_may_go_into_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    require_report_file(tmp_path / "pipe")


def test_no_report_replaces_a_file_that_the_policy_includes(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('include = ["*.part.toml"]\n')
    (tmp_path / "pii.part.toml").write_text("[columns.email]\n")
    with pytest.raises(PolicyError, match="would replace a file that is not a report"):
        require_report_file(tmp_path / "pii.part.toml", tmp_path / "policy.toml")
    (tmp_path / "other.toml").write_text("[columns.email]\n")
    require_report_file(tmp_path / "other.toml", tmp_path / "policy.toml")
