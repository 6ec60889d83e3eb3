"""Advice on executors is the advice on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError
from secure_bloom.spark import advise
from testing.spark.cluster import POLICY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("advised") / "customers"
    rows = spark.range(20_000).repartition(4)
    rows.selectExpr(
        "concat('user', id * 7, '@example.com') AS email",
        "concat('DE', id) AS iban",
        "id * 1000003 AS national_id",
        "element_at(array('it', 'no', 'fr'), cast(id % 3 + 1 AS int)) AS country",
    ).write.parquet(str(folder))
    return folder


def told(advice: sb.TableAdvice) -> list[dict[str, Any]]:
    """The columns without what depends on the machine's speed."""
    columns = advice.to_dict()["columns"]
    return [{**column, "seconds_to_build": None} for column in columns]


def test_it_is_the_advice_on_one_machine(spark: SparkSession, table: Path) -> None:
    done: list[tuple[int, int]] = []
    found = advise(
        spark,
        str(table),
        policy=POLICY,
        columns=["email", "country"],
        progress=lambda count, total: done.append((count, total)),
    )
    assert told(found) == told(sb.advise(table, columns=["email", "country"], policy=POLICY))
    assert found.files == 4
    assert done[-1] == (2, 2)


def test_an_error_of_the_request_is_the_callers(spark: SparkSession, table: Path) -> None:
    with pytest.raises(PolicyError, match="there is no column emial"):
        advise(spark, str(table), policy=POLICY, columns=["emial"])
    with pytest.raises(PolicyError):
        advise(spark, str(table.parent / "nothing"), policy=POLICY)
