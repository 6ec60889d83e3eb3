"""Sessions for the Spark tests; without PySpark or Java they are skipped and say why."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import SparkUnavailableError
from secure_bloom.spark.jvm import java, spark_jars
from testing.spark.cluster import (
    POLICY,
    SHORT_LIVED,
    WITHOUT_GENERATED_CODE,
    Cluster,
    small_session,
    standalone_cluster,
)
from testing.spark.parquet_java import forget_keys
from tests.spark.versions import TOO_NEW

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


collect_ignore = TOO_NEW

#: A server for Spark Connect, on a port that the system picks.
CONNECT_SERVER = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
}

#: What the JVM's environment says, as that of executors would: a login that tests may make.
JVM_ENVIRONMENT = {"VAULT_ROLE_ID": "role-of-the-jvm", "BAO_SECRET_ID": "secret-of-the-jvm"}
#: A shuffle of a few rows is not divided.
SMALL_QUERIES = {"spark.sql.shuffle.partitions": "1"}
#: Pages that the JVM serves are for this machine alone.
LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1"}


@pytest.fixture(scope="session")
def spark_installed() -> None:
    """Skip where Spark cannot run; every JVM from here on is for a few seconds only."""
    try:
        spark_jars()
        java()
    except SparkUnavailableError as error:
        pytest.skip(f"{error}; {error.hint}")
    os.environ["JDK_JAVA_OPTIONS"] = SHORT_LIVED


@pytest.fixture(scope="session")
def policy(spark_installed: None) -> KeyPolicy:
    """The default policy, `keys/policy.toml`."""
    return KeyPolicy.load(POLICY)


@pytest.fixture(scope="session")
def spark(
    spark_installed: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """A local session with two cores whose writes follow the default policy.

    It serves Spark Connect too, see `test_connect`, if PySpark comes with a server, as 4.0 does.
    """
    with pytest.MonkeyPatch.context() as environment:
        for name, value in {**JVM_ENVIRONMENT, **LOOPBACK}.items():
            environment.setenv(name, value)
        folder = tmp_path_factory.mktemp("spark")
        serves = any(jar.name.startswith("spark-connect_") for jar in spark_jars())
        connect = CONNECT_SERVER if serves else {}
        config = {**connect, **WITHOUT_GENERATED_CODE, **SMALL_QUERIES}
        session = small_session("local[2]", folder, config).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def cold_keys(spark: SparkSession) -> Iterator[None]:
    """No key from before the test in the JVM's caches, and none of the test's after it."""
    forget_keys(spark)
    yield
    forget_keys(spark)


@pytest.fixture(scope="session")
def cluster(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A standalone cluster, whose driver and two executors are processes."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running
