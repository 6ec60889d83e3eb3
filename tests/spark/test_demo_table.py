"""The demo's table holds the e-mails that it looks up, and its words on row groups are Spark's."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import secure_bloom as sb
from secure_bloom.spark.demo import FILES, Lookup, email, groups_read, look_up, write
from testing.spark.cluster import POLICY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 80


@pytest.mark.spark
def test_what_is_written_is_what_is_looked_up(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "customers")
    write(spark, table, ROWS)
    emails = sb.read_table(table, policy=POLICY)["email"].to_pylist()
    assert sorted(emails) == sorted(email(number) for number in range(ROWS))
    # In no order: bounds would rule row groups out without a filter.
    assert emails != sorted(emails)
    present = look_up(spark, table, "present", email(0), filters=False)
    absent = look_up(spark, table, "absent", email(-2), filters=True)
    assert (present.found, present.rows, absent.found) == (1, ROWS, 0)
    assert len(list(Path(table).glob("*.parquet"))) == FILES


def _lookup(*, filters: bool, rows: int) -> Lookup:
    return Lookup(what="present", value="a", filters=filters, found=1, rows=rows, seconds=0.1)


def test_row_groups_are_told_only_where_spark_s_rows_are_those_of_our_probe() -> None:
    groups = {("x", 0): 10, ("x", 1): 20, ("x", 2): 30}
    verdicts: Any = SimpleNamespace(
        files=[
            SimpleNamespace(
                path="x",
                row_groups=[
                    SimpleNamespace(row_group=number, verdicts={"a": verdict})
                    for number, verdict in enumerate(
                        (sb.Verdict.ABSENT, sb.Verdict.MAYBE, sb.Verdict.ABSENT)
                    )
                ],
            )
        ]
    )
    assert groups_read(_lookup(filters=False, rows=60), groups, verdicts) == "3 of 3"
    assert groups_read(_lookup(filters=True, rows=20), groups, verdicts) == "1 of 3"
    assert groups_read(_lookup(filters=True, rows=30), groups, verdicts) == "?"
