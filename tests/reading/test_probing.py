"""An open table answers for its filters as one probe does."""

from __future__ import annotations

from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.bloom.verdicts import Verdict
from testing.tables import KEYRING, Mode, customers, write

ROWS = customers(40)
FIRST, SECOND = (set(ROWS["email"][start : start + 20].to_pylist()) for start in (0, 20))
#: One value of the first row group, one of the second, one of none.
VALUES = [min(FIRST - SECOND), min(SECOND - FIRST), "nobody@x"]


@pytest.fixture(params=[Mode.PLAIN, Mode.ENCRYPTED])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Two files; only the first one has filters, of two row groups."""
    for name in "ab":
        write(tmp_path / f"{name}.parquet", ROWS, request.param, row_group_size=20)
    sb.add_bloom_filters(tmp_path / "a.parquet", columns=["email", "score"], keys=KEYRING)
    return tmp_path


@pytest.mark.parametrize(("column", "values"), [("email", VALUES), ("email", "x"), ("score", 0.0)])
def test_verdicts_are_those_of_one_probe(lake: Path, column: str, values: object) -> None:
    wanted = sb.probe(lake, column, values, keys=KEYRING)
    with sb.open_table(lake, keys=KEYRING) as table:
        for _ in range(3):
            assert table.probe(column, values).to_dict() == wanted.to_dict()


def test_absent_is_said_by_filters_alone(lake: Path) -> None:
    with sb.open_table(lake, keys=KEYRING) as table:
        report = table.probe("email", VALUES)
    first, second = report.files
    verdicts = [group.verdicts for group in first.row_groups]
    assert [group[VALUES[0]] for group in verdicts] == [Verdict.MAYBE, Verdict.ABSENT]
    assert [group[VALUES[1]] for group in verdicts] == [Verdict.ABSENT, Verdict.MAYBE]
    assert {group[VALUES[2]] for group in verdicts} == {Verdict.ABSENT}
    assert {v for g in second.row_groups for v in g.verdicts.values()} == {Verdict.NO_FILTER}


def test_the_second_probe_of_a_column_reads_nothing(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sb.open_table(lake / "a.parquet", keys=KEYRING) as table:
        wanted = table.probe("email", VALUES).to_dict()
        monkeypatch.setattr("secure_bloom.storage.local.LocalFile._read", None)
        assert table.probe("email", VALUES).to_dict() == wanted
        assert table.read({"email": "nobody@x"}).num_rows == 0


def test_values_that_no_filter_answers_are_the_same_in_memory(lake: Path) -> None:
    """NaN and null, both zeros, and a column that some files lack."""
    write(lake / "c.parquet", ROWS.drop_columns(["score"]))
    for column, values in (("score", [0.0, float("nan"), None, -0.0, 1.5]), ("city", "rome")):
        wanted = sb.probe(lake, column, values, keys=KEYRING)
        with sb.open_table(lake, keys=KEYRING) as table:
            assert repr(table.probe(column, values).to_dict()) == repr(wanted.to_dict())
