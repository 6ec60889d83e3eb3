"""The leak search on executors finds what it finds here, in files that tasks share."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import secure_bloom as sb
from secure_bloom.errors import KeyUnavailableError, PolicyError
from secure_bloom.spark import trace
from secure_bloom.tracing.report import TraceReport
from testing.spark.cluster import POLICY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def confirmed(report: TraceReport) -> list[tuple[str, str, int]]:
    """The places where values were found, and how many."""
    return [(file.path, it.place, it.confirmed) for file in report.files for it in file.findings]


def test_tasks_share_the_files_and_report_what_one_search_reports(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "customers"
    people = spark.range(300).selectExpr(
        "concat('anna.smith', id, '@post.fi') AS email",
        "concat('DE', id) AS iban",
        "id AS national_id",
        "'it' AS country",
    )
    people.coalesce(1).write.parquet(str(table))
    sb.add_bloom_filters(table, policy=POLICY)
    dump = tmp_path / "dump"
    dump.mkdir()
    emails = [f"anna.smith{n}@post.fi" for n in range(300)]
    for n in range(12):
        text = "\n".join([*emails[n * 20 : n * 20 + 20], "other text"] if n % 2 else ["nothing"])
        (dump / f"{n}.gz").write_bytes(gzip.compress(text.encode()))
    of = f"{table}:email"
    done: list[tuple[int, int]] = []
    report = trace(
        spark, dump, values_of=of, policy=POLICY,
        progress=lambda *counts: done.append(counts),
    )  # fmt: skip
    here = sb.trace(dump, values_of=of, policy=POLICY)
    assert report.to_dict() == here.to_dict()
    assert len([file for file in report.files if any(file.findings)]) == 6
    assert done[-1] == (12, 12)
    written = trace(spark, dump, values_of=of, policy=POLICY, as_written=True)
    (column,) = written.columns
    assert column.as_written
    assert confirmed(written) == confirmed(here)
    with pytest.raises(PolicyError):
        trace(spark, dump, values_of=f"{table}:absent", policy=POLICY)
    with pytest.raises(KeyUnavailableError):
        trace(spark, dump, values_of=of)
