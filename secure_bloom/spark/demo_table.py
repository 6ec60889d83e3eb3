"""The table of the demo: customers, and point lookups of their e-mails."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from hashlib import sha1
from typing import TYPE_CHECKING

from secure_bloom.bloom.verdicts import ProbeReport, Verdict
from secure_bloom.spark.scan_metrics import collect_scanned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 8

_ROW_GROUP_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """One point lookup on Spark: the rows found, the rows read, the time."""

    what: str
    value: str = field(repr=False)
    filters: bool
    found: int
    rows: int
    seconds: float


def email(number: int) -> str:
    """Return the e-mail of a customer, who has a number from 0 on."""
    digest = sha1(str(number).encode(), usedforsecurity=False).hexdigest()
    return f"{digest[:16]}@example.com"


def write(spark: SparkSession, table: str, rows: int) -> None:
    """Write customers in random order, so that min/max statistics exclude nothing."""
    from pyspark.sql import functions as f

    hashed = f.sha1(f.col("id").cast("string"))
    countries = f.array(*map(f.lit, ("de", "fr", "it", "no")))
    customers = spark.range(0, rows, 1, FILES).select(
        f.concat(hashed.substr(1, 16), f.lit("@example.com")).alias("email"),
        f.concat(f.lit("DE"), hashed.substr(17, 20)).alias("iban"),
        f.abs(f.xxhash64("id")).alias("national_id"),
        f.element_at(countries, (f.col("id") % 4 + 1).cast("int")).alias("country"),
    )
    customers.write.option("parquet.block.size", _ROW_GROUP_BYTES).parquet(table)


def look_up(spark: SparkSession, table: str, what: str, value: str, *, filters: bool) -> Lookup:
    """Look one e-mail up on Spark, with the filters or without."""
    reader = spark.read.option("parquet.filter.bloom.enabled", str(filters).lower())
    query = reader.parquet(table).where(f"email = '{value}'")
    started = time.perf_counter()
    found, scanned = collect_scanned(query)
    return Lookup(
        what=what,
        value=value,
        filters=filters,
        found=len(found),
        rows=scanned,
        seconds=time.perf_counter() - started,
    )


def groups_read(lookup: Lookup, groups: dict[tuple[str, int], int], verdicts: ProbeReport) -> str:
    """Return the row groups that Spark read, if the row count agrees with our probe."""
    kept = [
        groups[file.path, group.row_group]
        for file in verdicts.files
        for group in file.row_groups
        if not lookup.filters or group.verdicts[lookup.value] is Verdict.MAYBE
    ]
    return f"{len(kept)} of {len(groups)}" if sum(kept) == lookup.rows else "?"
