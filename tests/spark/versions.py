"""Tests of what not every version of Spark has.

4.0   Python data sources, tables for table functions; parquet-java 1.15, which writes the length of
      a filter and statistics of sizes
4.1   filters for Python data sources, the type TIME in Parquet files, BINARY as `bytes`
"""

from __future__ import annotations

import pytest

from secure_bloom.spark.compat import spark_version

#: Files of tests, and the first Spark that has what they are about.
_SINCE = {
    "test_conforming.py": (4, 0),
    "test_connect.py": (4, 0),
    "test_demo.py": (4, 0),
    "test_hudi.py": (4, 0),
    "test_pushdown.py": (4, 1),
    "test_registration.py": (4, 1),
    "test_source.py": (4, 0),
    "test_source_tables.py": (4, 0),
    "test_spark_types.py": (4, 0),
    "test_written.py": (4, 1),
}
TOO_NEW = [file for file, version in _SINCE.items() if spark_version() < version]

#: The page on compatibility has one version of each reader, for types and encodings.
IS_OF_THE_PAGE = spark_version() >= (4, 3)

since_4_0 = pytest.mark.skipif(spark_version() < (4, 0), reason="needs Spark 4.0")
since_4_1 = pytest.mark.skipif(spark_version() < (4, 1), reason="needs Spark 4.1")
since_4_2 = pytest.mark.skipif(spark_version() < (4, 2), reason="needs Spark 4.2")
