"""Statistics of a checkpoint become the text that a commit has, exactly or not at all."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.tables import snapshot
from secure_bloom.tables.parsed_statistics import stats_text
from testing import delta_logs as logs


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (7, 7),
        ("é", "é"),
        (True, True),
        (1.5, 1.5),
        (float("nan"), None),
        (Decimal("12.50"), 12.5),
        (Decimal(10**30), 10**30),
        (Decimal("0.1234567890123456789"), None),
        (date(2026, 1, 31), "2026-01-31"),
        (datetime(2026, 1, 31, 1, 2, 3, 45, tzinfo=UTC), "2026-01-31T01:02:03.000045Z"),
        (datetime(2026, 1, 31), "2026-01-31T00:00:00.000000"),
        (b"\x00", None),
    ],
)
def test_a_bound_is_said_exactly_or_not_at_all(value: object, told: object) -> None:
    found = json.loads(stats_text({"numRecords": 3, "minValues": {"x": value}}))
    assert found == {"numRecords": 3, "minValues": {} if told is None else {"x": told}}


def test_a_commit_of_ours_keeps_statistics_that_only_a_checkpoint_has(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "x.parquet")
    parsed = {"numRecords": 2, "minValues": {"id": 1}, "maxValues": {"id": 2}}
    add = logs.add("x.parquet", (tmp_path / "x.parquet").stat().st_size)
    add["add"]["stats_parsed"] = parsed
    actions = pa.Table.from_pylist([*logs.start(), add], _without_texts())
    log = logs.log_of(tmp_path)
    pq.write_table(actions, log / f"{0:020}.checkpoint.parquet")
    (log / f"{0:020}.json").write_text(logs.lines([*logs.start(), add]))
    sb.add_bloom_filters(tmp_path, columns="id")
    found = snapshot(tmp_path)
    assert found is not None
    assert json.loads(found.files[0].add["stats"]) == parsed


def _without_texts() -> pa.Schema:
    bounds = pa.struct({"id": pa.int64()})
    parsed = pa.struct({"numRecords": pa.int64(), "minValues": bounds, "maxValues": bounds})
    fields = [field for field in logs.CHECKPOINT.field("add").type if "stats" not in field.name]
    add = pa.struct([*fields, pa.field("stats_parsed", parsed)])
    index = logs.CHECKPOINT.get_field_index("add")
    return logs.CHECKPOINT.set(index, pa.field("add", add))
