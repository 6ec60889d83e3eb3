"""The Spark session of the demo."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from secure_bloom.errors import SparkUnavailableError
from secure_bloom.spark.session import session_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = "spark.log"


@contextmanager
def demo_session(policy: Path, folder: Path) -> Iterator[SparkSession]:
    """Yield a local session. Messages of the JVM go to a log file in ``folder``."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    # Python workers must find this package: those of the interpreter that runs the demo do.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Nobody else shall reach this session, and a host name that does not resolve not stop it.
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    conf = SparkConf(loadDefaults=False)
    conf.setMaster("local[*]").setAppName("secure-bloom demo")
    conf.set("spark.ui.enabled", "false")
    conf.set("spark.ui.showConsoleProgress", "false")
    conf.set("spark.sql.warehouse.dir", str(folder / "warehouse"))
    conf.setAll(list(session_config(policy).items()))
    with (folder / _LOG).open("wb") as log:
        try:
            gateway = launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
            spark = SparkSession(SparkContext(conf=conf, gateway=gateway))
        except (PySparkException, Py4JError) as error:
            raise SparkUnavailableError(
                "Spark did not start", hint=f"{log.name} says why"
            ) from error
    try:
        yield spark
    finally:
        spark.stop()
