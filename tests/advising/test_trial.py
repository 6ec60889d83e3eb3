"""Predicted bytes are those that are measured once the filters are there."""

from __future__ import annotations

from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.advising import sample
from testing.tables import KEYRING, Mode, customers, write
from tests.advising.accuracy import LOOKUPS, measure
from tests.advising.seeded import TABLES

#: What the advice promises of its numbers.
TOLERANCE = 0.2
#: Quick enough for every run, with these columns.
QUICK = {"nested": "address.zip", "encrypted": "iban"}


def contents(table: Path) -> dict[Path, tuple[int, bytes]]:
    """Every file, and when it was written."""
    files = filter(Path.is_file, table.rglob("*"))
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


@pytest.mark.parametrize(
    "name", [pytest.param(it, marks=() if it in QUICK else pytest.mark.slow) for it in TABLES]
)
def test_what_lookups_read_and_filters_add_is_told_before(name: str, tmp_path: Path) -> None:
    TABLES[name](tmp_path / "t")
    before = contents(tmp_path / "t")
    advice = sb.advise(tmp_path / "t", columns=QUICK.get(name), keys=KEYRING)
    assert contents(tmp_path / "t") == before
    lookups = 6 if name in QUICK else LOOKUPS
    found = list(measure(tmp_path / "t", advice, lookups=lookups))
    assert found
    for column in found:
        for number, error in column.errors().items():
            assert abs(error) <= TOLERANCE, (name, column.advice.column, number)


@pytest.mark.parametrize(
    ("most_files", "most_bytes"),
    [pytest.param(10, 10**9, marks=pytest.mark.slow), (24, 1_600_000)],
)
def test_a_part_of_a_table_tells_of_the_whole(
    most_files: int, most_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The choice of a part follows the paths: they are the same in every run.
    monkeypatch.chdir(tmp_path)
    folder = Path("table")
    folder.mkdir()
    TABLES["uniform strings"](folder)
    whole = sb.advise(folder, columns=["email"]).columns[0].to_dict()
    for path in list(folder.iterdir()):
        for copy in range(9):
            (folder / f"{path.stem}-{copy}.parquet").write_bytes(path.read_bytes())
    monkeypatch.setattr(sample, "MOST_FILES", most_files)
    monkeypatch.setattr(sample, "MOST_BYTES", most_bytes)
    found = sb.advise(folder, columns=["email"])
    assert found.row_groups_looked_at < found.row_groups
    assert "an estimate" in found.sureness
    part = found.columns[0].to_dict()
    assert part["bytes_added"] == pytest.approx(10 * whole["bytes_added"], rel=0.05)
    for filters in ("without", "with"):
        wanted = 10 * whole["bytes_per_lookup"]["absent"][filters]
        assert part["bytes_per_lookup"]["absent"][filters] == pytest.approx(wanted, rel=TOLERANCE)


def test_a_column_with_filters_is_compared_with_none(tmp_path: Path) -> None:
    TABLES["clustered"](tmp_path)
    [before] = sb.advise(tmp_path, columns=["customer"]).columns
    sb.add_bloom_filters(tmp_path, columns=["customer"])
    [after] = sb.advise(tmp_path, columns=["customer"]).columns
    assert before.gains
    assert after.gains
    assert after.reason.startswith("has one: absent lookups read ")
    assert after.lookups_until_it_pays is None
    assert after.to_dict()["bytes_added"] == 0
    for kind, cost in before.to_dict()["bytes_per_lookup"].items():
        found = after.to_dict()["bytes_per_lookup"][kind]
        assert found["without"] == pytest.approx(cost["without"], rel=TOLERANCE)
        assert found["with"] == pytest.approx(cost["with"], rel=TOLERANCE)


def test_a_filter_that_serves_nothing_is_still_named(tmp_path: Path) -> None:
    TABLES["sorted ids"](tmp_path)
    sb.add_bloom_filters(tmp_path, columns=["id"])
    [column] = sb.advise(tmp_path, columns=["id"]).columns
    assert not column.gains
    assert column.reason.startswith("sorted: ")
    assert column.reason.endswith("; it has filters")


def test_dead_filters_of_other_columns_are_no_gain_of_a_column(tmp_path: Path) -> None:
    path = write(tmp_path / "x", customers(300), Mode.PLAIN, row_group_size=100)
    sb.add_bloom_filters(path, columns=["email"])
    [before] = sb.advise(path, columns=["id"]).columns
    sb.add_bloom_filters(path, columns=["email"], replace_filters=True, in_place=True)
    [after] = sb.advise(path, columns=["id"]).columns
    wanted = before.to_dict()["bytes_added"]
    assert after.to_dict()["bytes_added"] == pytest.approx(wanted, abs=100)
