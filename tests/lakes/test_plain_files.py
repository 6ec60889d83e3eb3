"""Which files a run writes, and where to."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.lakes.plain_files import files_to_write


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for name in ("lake/day=1/a.parquet", "lake/day=2/b.parquet"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(b"PAR1")
    return tmp_path / "lake"


def test_files_are_written_in_their_place(table: Path) -> None:
    files, targets = files_to_write(table, in_place=False, output=None)
    assert [Path(file).name for file in files] == ["a.parquet", "b.parquet"]
    assert targets == {}


def test_folders_below_the_table_are_kept_below_the_output(table: Path) -> None:
    files, targets = files_to_write(table, in_place=False, output=table.parent / "new")
    assert [Path(targets[file]).relative_to(table.parent) for file in files] == [
        Path("new/day=1/a.parquet"),
        Path("new/day=2/b.parquet"),
    ]


def test_copies_below_the_table_are_refused(table: Path) -> None:
    """A reader of the table would find each row twice."""
    with pytest.raises(PolicyError, match="inside the table itself"):
        files_to_write(table, in_place=False, output=table / "new")


def test_an_append_has_no_other_place(table: Path) -> None:
    with pytest.raises(PolicyError, match="exclude each other"):
        files_to_write(table, in_place=True, output="new")


def test_a_table_with_a_log_of_its_own_is_refused(table: Path) -> None:
    (table / "_delta_log").mkdir()
    (table / "_delta_log" / f"{0:020}.json").write_text("{}\n")
    with pytest.raises((PolicyError, UnsupportedFeatureError), match="Delta"):
        files_to_write(table, in_place=False, output=None)
