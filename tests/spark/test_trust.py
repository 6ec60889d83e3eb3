"""Files that may be forged, or are protected less than the policy says: refused on Spark too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from secure_bloom.spark import add_bloom_filters, register
from secure_bloom.spark.hudi import hudi_lookup
from testing.spark.cluster import POLICY
from testing.surgery import forged_signed
from testing.tables import Mode, customers, keyring_json, write
from tests.spark.versions import since_4_0

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

#: What is said of a signed file whose key is not at hand, and of a file in clear.
FORGED = "signature cannot be checked"
WEAKER = "the policy says an encrypted footer, the file has a plaintext footer"


@pytest.fixture(scope="module")
def forged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return forged_signed(tmp_path_factory.mktemp("forged") / "x.parquet")


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return write(tmp_path / "x.parquet", customers(50), Mode.PLAIN)


@pytest.fixture
def keyring(tmp_path: Path) -> str:
    path = tmp_path / "keyring.json"
    path.write_text(keyring_json())
    path.chmod(0o600)
    return str(path)


def cities(spark: SparkSession, path: Path, **options: str) -> int:
    source = spark.read.format("secure_bloom").options(**options).load(str(path))
    return source.select("city").where("city = 'rome'").count()


def found(spark: SparkSession, path: Path, **given: Any) -> int:
    keys = spark.createDataFrame([("rome",)], "city string")
    return hudi_lookup(spark, path, keys, column="city", **given).count()


def added(spark: SparkSession, path: Path, **given: Any) -> int:
    rows = add_bloom_filters(spark, path, columns=["city"], dry_run=True, **given).collect()
    for row in rows:
        if row.error is not None:
            raise RuntimeError(f"{row.error}; {row.hint}")
    return len(rows)


def refused(act: Callable[[], int], told: str) -> str:
    with pytest.raises(Exception, match=told) as caught:
        act()
    return str(caught.value)


@since_4_0
def test_a_signature_that_cannot_be_checked_is_an_error(
    spark: SparkSession, forged: Path, keyring: str
) -> None:
    register(spark)
    assert "allowUnverified" in refused(lambda: cities(spark, forged, keyring=keyring), FORGED)
    assert cities(spark, forged, keyring=keyring, allowUnverified="true") > 0
    given = {"policy": POLICY, "allow_unprotected": True}
    refused(lambda: found(spark, forged, **given), FORGED)
    assert found(spark, forged, **given, allow_unverified=True) > 0
    # It would be signed anew: there is no flag for that.
    refused(lambda: added(spark, forged, **given), "k_elsewhere")


@since_4_0
def test_less_protection_than_the_policys_is_an_error_unless_accepted(
    spark: SparkSession, plain: Path
) -> None:
    register(spark)
    text = refused(lambda: cities(spark, plain, policy=str(POLICY)), WEAKER)
    assert "allowUnprotected" in text
    assert cities(spark, plain, policy=str(POLICY), allowUnprotected="true") > 0
    for act in (found, added):
        refused(lambda act=act: act(spark, plain, policy=POLICY), WEAKER)  # type: ignore[misc]
        assert act(spark, plain, policy=POLICY, allow_unprotected=True) > 0
