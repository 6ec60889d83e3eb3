"""A table of a catalog as a run opens it: the options and the columns that it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError
from secure_bloom.lakes.iceberg.writable import WritableIceberg
from secure_bloom.lakes.writable_table import TableChange, TableChoice
from tests.lakes.iceberg.tables import BY_CITY, NAME, in_settings, people


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (TableChoice(in_place=True), "in_place is for files"),
        (TableChoice(output=True), "output is for files"),
        (TableChoice(written=1), "takes the id of a snapshot"),
    ],
    ids=str,
)
def test_options_of_other_targets_are_refused(choice: TableChoice, said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        WritableIceberg(NAME, choice)


def test_columns_are_those_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people(in_settings(tmp_path, monkeypatch), files=1)
    table = WritableIceberg(NAME, TableChoice())
    table.check_columns(["email"])
    with pytest.raises(PolicyError, match="emial"):
        table.check_columns(["emial"])
    # A policy may have columns of other tables.
    table.require(["emial"])
    run = table.target(TableChange(verb="add", filters={"email": 0.01}))
    assert run.rewrite.properties["secure-bloom.columns"] == '{"email": 0.01}'


def test_a_filter_of_a_partition_column_has_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(in_settings(tmp_path, monkeypatch), files=1, spec=BY_CITY)
    for dry_run in (True, False):
        report = sb.add_bloom_filters(NAME, columns=["city", "email"], dry_run=dry_run)
        (note,) = report.notes
        assert note.startswith("column city partitions the table: readers leave files out by")
