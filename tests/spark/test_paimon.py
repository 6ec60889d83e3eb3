"""Indexes of a Paimon table that executors build and the driver commits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pypaimon_rust")

import secure_bloom as sb
from secure_bloom.spark import build_paimon_index
from testing.paimon_tables import Warehouse, damage, latest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("threshold", ["0 b", "1 kb"])
def test_executors_build_and_the_driver_commits(
    spark: SparkSession, tmp_path: Path, threshold: str
) -> None:
    lake = Warehouse(path=str(tmp_path))
    folder = lake.create("id bigint, name string", file_index__in_manifest_threshold=threshold)
    for number in range(4):
        lake.insert([(number, "a"), (100 + number, "b")])
    options = {"id": sb.paimon.IndexOptions(items=100, fpp=1e-6)}
    with pytest.raises(sb.PolicyError, match="there is no column nmae"):
        build_paimon_index(spark, folder, ["nmae"])
    report = build_paimon_index(spark, folder, options)
    assert [file.status for file in report.files] == ["built"] * 4
    assert latest(folder)["commitKind"] == "COMPACT"
    assert len(lake.rows()) == 8
    for path in Path(folder).rglob("data-*.parquet"):
        damage(str(path))
    assert lake.rows("id = 57") == []
    again = build_paimon_index(spark, f"paimon://{lake.path}/default.t", options)
    assert {file.status for file in again.files} == {"unchanged"}
    assert again.commits == ()
