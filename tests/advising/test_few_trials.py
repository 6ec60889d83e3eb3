"""What advise looks up is bounded, so that wide tables are answered soon."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.reading.lookup_trials import LookupTrials
from secure_bloom.reading.rows.file_reader import FileReader
from testing.growth import growth


def test_a_column_of_one_row_group_takes_few_lookups_of_its_own_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"c{n}" for n in range(30)]
    rows = {name: [f"{name}-{row}" for row in range(500)] for name in names}
    pq.write_table(pa.table(rows), tmp_path / "x.parquet")
    lookups, wide = 0, 0
    explain, made = LookupTrials.explain, FileReader.__init__

    def counted(*given: object) -> object:
        nonlocal lookups
        lookups += 1
        return explain(*given)  # type: ignore[arg-type]

    def counted_reader(
        self: FileReader, plan: object, asked: object, *rest: object, **more: object
    ) -> None:
        nonlocal wide
        wide += len(asked.output) > 1  # type: ignore[attr-defined]
        made(self, plan, asked, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(LookupTrials, "explain", counted)
    monkeypatch.setattr(FileReader, "__init__", counted_reader)
    advice = sb.advise(str(tmp_path / "x.parquet"))
    assert len(advice.columns) == 30
    assert lookups <= 30 * 10
    # The other columns are read once for all of them, not in each lookup.
    assert wide <= 3


def test_a_lookup_of_a_member_does_not_look_at_each_other_member(tmp_path: Path) -> None:
    paths = {}
    for count in (15, 60):
        paths[count] = str(tmp_path / f"{count}.parquet")
        rows = pa.array([{f"m{n}": n + row for n in range(count)} for row in range(3)])
        pq.write_table(pa.table({"person": rows}), paths[count])
    sb.advise(paths[15])
    assert growth(lambda count: sb.advise(paths[count]), 15) < 7
