"""New files of a local Iceberg table are where the table is: no link leads them elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import secure_bloom as sb
from secure_bloom.errors import FormatError, SecureBloomError
from secure_bloom.lakes.iceberg import position_deletes, replacing_snapshot
from secure_bloom.lakes.iceberg.commit_table import CommitTable
from secure_bloom.lakes.iceberg.locations import TablePlaces, is_local
from tests.lakes.iceberg.tables import (
    NAME,
    all_rows,
    data_files,
    delete_positions,
    in_settings,
    local,
    people,
)


@pytest.mark.parametrize("location", ["/a/b", "file:///a/b", "file:/a/b", "s3://a/b", "gs://a/b"])
def test_local_locations(location: str) -> None:
    assert is_local(location) == (not location.startswith(("s3", "gs")))


def test_a_new_file_is_below_a_folder_of_the_table(tmp_path: Path) -> None:
    places = TablePlaces(roots=[str(tmp_path)])
    assert places.new_path(f"{tmp_path}/data/x").endswith("data/x")
    with pytest.raises(FormatError, match="outside the table's location"):
        places.new_path("/elsewhere/x")


#: What runs right before a file is written: a manifest, the metadata, the deletes of a data file.
MOMENTS: dict[str, tuple[object, str, str]] = {
    "manifest": (replacing_snapshot.SnapshotWriter, "_new_file", "metadata"),
    "metadata": (CommitTable, "commit", "metadata"),
    "deletes": (position_deletes, "_content", "data"),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_link_that_comes_right_before_the_write_is_not_followed(
    catalog: SqlCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    table = people(catalog)
    delete_positions(table, data_files(table)[0], [1], "deletes")
    before, other = all_rows(table), tmp_path / "other"
    owner, name, folder = MOMENTS[moment]
    place = local(table.location()) / folder
    honest: Callable[..., Any] = getattr(owner, name)

    def exchanged(*given: Any) -> Any:
        found = None if moment == "metadata" else honest(*given)
        if not place.is_symlink():
            place.rename(other)
            place.symlink_to(other)
            exchanged.names = {it.name for it in other.rglob("*")}  # type: ignore[attr-defined]
        return honest(*given) if moment == "metadata" else found

    monkeypatch.setattr(owner, name, exchanged)
    with pytest.raises(SecureBloomError):
        sb.add_bloom_filters(NAME, columns="email")
    assert {it.name for it in other.rglob("*")} <= exchanged.names  # type: ignore[attr-defined]
    place.unlink()
    other.rename(place)
    assert all_rows(table) == before


def test_a_relative_warehouse_may_be_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are opened where they were when the table was opened. The metadata stays relative."""
    monkeypatch.chdir(tmp_path)
    table = people(in_settings(tmp_path, monkeypatch, warehouse="warehouse"), files=2)
    before = all_rows(table)
    with sb.open_table(NAME) as opened:
        assert opened.read("id = 7").num_rows == 1
        other = tmp_path / "other"
        other.mkdir()
        monkeypatch.chdir(other)
        assert opened.read("id = 107", columns=["email"]).num_rows == 1
        monkeypatch.chdir(tmp_path)
    report = sb.add_bloom_filters(NAME, columns="email")
    assert all(str(it.new_path).startswith(f"{tmp_path}/warehouse/") for it in report.files)
    table.refresh()
    assert all(path.startswith("warehouse/") for path in data_files(table))
    assert all_rows(table) == before
