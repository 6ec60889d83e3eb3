"""The main job, end to end, on Spark: write encrypted, add filters, look values up.

Everything is done with the public interface, so the file may serve as an example.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

import secure_bloom as sb
from secure_bloom.errors import PolicyError
from secure_bloom.reader import ProbeReport
from secure_bloom.spark.jvm import java
from secure_bloom.spark.metrics import rows_scanned
from secure_bloom.spark.session import session_config
from secure_bloom.spark.step import add_bloom_filters

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES = 4
_ROW_GROUP_BYTES = 1024 * 1024
_PACKAGE = Path(__file__).parent.parent
#: In an installed package the default keys are beside the code, in a checkout above it.
_DEFAULT_KEYS = (_PACKAGE / "default_keys", _PACKAGE.parent / "keys")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lookup:
    """One point lookup on Spark: what it found, what it read, how long it took."""

    what: str
    value: str = field(repr=False)
    filters: bool
    found: int
    rows: int
    seconds: float


def run_demo(folder: Path | None, rows: int) -> None:
    """Run the demo in ``folder``, which must not exist yet or be empty; else in a temporary one."""
    if rows < _FILES:
        raise PolicyError(f"{rows} rows do not fill {_FILES} files")
    console = Console(highlight=False)
    java()
    folder = _new_folder(folder)
    policy = _copy_default_keys(folder / "keys")
    table = str(folder / "customers")
    with _session(policy, folder) as spark:
        with _step(console, f"Spark writes {rows:,} customers, encrypted, to {table}"):
            _write(spark, table, rows)
        _show_outside(console, table)
        _add_filters(console, spark, table, policy)
        keys = sb.KeyPolicy.load(policy).kms_client()
        emails = {"present": _email(0), "absent": _email(rows)}
        verdicts = sb.probe(table, "email", emails.values(), keys=keys)
        _show_probe(console, verdicts, emails)
        lookups = _lookups(console, spark, table, emails)
    groups = {
        (file.path, group.row_group): group.rows
        for file in sb.inspect(table, keys=keys).files
        for group in file.row_groups
    }
    _show_lookups(console, lookups, groups, verdicts)
    console.print(f"table and keys stay in {folder}; try:")
    console.print(f"  secure-bloom inspect {table} --policy {policy}", soft_wrap=True)


def _new_folder(folder: Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="secure-bloom-demo-"))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PolicyError("the demo wants a new or empty folder", path=str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    return folder.absolute()


def _copy_default_keys(target: Path) -> Path:
    source = next(path for path in _DEFAULT_KEYS if path.is_dir())
    target.mkdir()
    for name in ("policy.toml", "dev-keyring.json"):
        shutil.copy(source / name, target / name)
        (target / name).chmod(0o600)
    return target / "policy.toml"


@contextmanager
def _session(policy: Path, folder: Path) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    # Python workers must find this package: those of the interpreter that runs the demo do.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    config: dict[str, bool | float | int | str | None] = {
        **session_config(policy),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.log.level": "ERROR",
    }
    spark = SparkSession.builder.master("local[*]").config(map=config).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _step(console: Console, what: str) -> Iterator[None]:
    started = time.perf_counter()
    with console.status(what):
        yield
    console.print(f"[bold]•[/] {what}  [dim]{time.perf_counter() - started:.1f} s[/]")


def _email(number: int) -> str:
    from hashlib import sha1

    return sha1(str(number).encode(), usedforsecurity=False).hexdigest()[:16] + "@example.com"


def _write(spark: SparkSession, table: str, rows: int) -> None:
    """Customers in no order, so that min/max statistics exclude nothing: the case for a filter."""
    from pyspark.sql import functions as f

    hashed = f.sha1(f.col("id").cast("string"))
    customers = spark.range(0, rows, 1, _FILES).select(
        f.concat(hashed.substr(1, 16), f.lit("@example.com")).alias("email"),
        f.concat(f.lit("DE"), hashed.substr(17, 20)).alias("iban"),
        f.abs(f.xxhash64("id")).alias("national_id"),
        f.element_at(
            f.array(*map(f.lit, ("de", "fr", "it", "no"))), (f.col("id") % 4 + 1).cast("int")
        ).alias("country"),
    )
    customers.write.option("parquet.block.size", _ROW_GROUP_BYTES).parquet(table)


def _show_outside(console: Console, table: str) -> None:
    report = sb.inspect(table)
    modes = {f"{file.footer} footer, {file.algorithm}" for file in report.files}
    console.print(
        f"  {len(report.files)} files: {', '.join(sorted(modes))}; without keys nothing else shows"
    )


def _add_filters(console: Console, spark: SparkSession, table: str, policy: Path) -> None:
    started = time.perf_counter()
    columns = (TextColumn("  adding filters on the executors"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        report = add_bloom_filters(
            spark,
            table,
            policy,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    _show_report(console, report, time.perf_counter() - started)


def _show_report(console: Console, report: DataFrame, seconds: float) -> None:
    rows = report.collect()
    failed = [row for row in rows if row.error]
    if failed:
        raise sb.SecureBloomError(failed[0].error, hint=failed[0].hint)
    sizes = {row.path: (row.bytes_before, row.bytes_after) for row in rows}
    before, after = (sum(size[i] for size in sizes.values()) for i in (0, 1))
    console.print(
        f"[bold]•[/] {len(rows)} Bloom filters added, each under its column's key; "
        f"files grew by {100 * (after - before) / before:.1f} %  [dim]{seconds:.1f} s[/]"
    )


def _show_probe(console: Console, report: ProbeReport, emails: dict[str, str]) -> None:
    console.print("[bold]•[/] secure-bloom probes, reading footers and filters only:")
    for what, value in emails.items():
        groups = [group for file in report.files for group in file.row_groups]
        maybe = sum(group.verdicts[value] is sb.Verdict.MAYBE for group in groups)
        console.print(f"  the {what} e-mail may be in {maybe} of {len(groups)} row groups")


def _lookups(
    console: Console, spark: SparkSession, table: str, emails: dict[str, str]
) -> list[_Lookup]:
    """Each value without and with the filters, after one run to warm the session up."""
    lookups = []
    with _step(console, "Spark looks both up, without and with the filters"):
        _lookup(spark, table, "warm-up", "", filters=False)
        for what, value in emails.items():
            for filters in (False, True):
                lookup = _lookup(spark, table, what, value, filters=filters)
                lookups.append(lookup)
    return lookups


def _lookup(spark: SparkSession, table: str, what: str, value: str, *, filters: bool) -> _Lookup:
    reader = spark.read.option("parquet.filter.bloom.enabled", str(filters).lower())
    query = reader.parquet(table).where(f"email = '{value}'")
    started = time.perf_counter()
    found = len(query.collect())
    seconds = time.perf_counter() - started
    return _Lookup(
        what=what,
        value=value,
        filters=filters,
        found=found,
        rows=rows_scanned(query),
        seconds=seconds,
    )


def _show_lookups(
    console: Console,
    lookups: list[_Lookup],
    groups: dict[tuple[str, int], int],
    verdicts: ProbeReport,
) -> None:
    table = Table(title="one customer by e-mail, on Spark", title_justify="left")
    for name in ("e-mail", "Bloom filters"):
        table.add_column(name)
    for name in ("rows found", "row groups read", "rows scanned", "seconds"):
        table.add_column(name, justify="right")
    for lookup in lookups:
        table.add_row(
            lookup.what,
            "used" if lookup.filters else "not used",
            f"{lookup.found}",
            _groups_read(lookup, groups, verdicts),
            f"{lookup.rows:,} of {sum(groups.values()):,}",
            f"{lookup.seconds:.2f}",
        )
    console.print(table)


def _groups_read(lookup: _Lookup, groups: dict[tuple[str, int], int], verdicts: ProbeReport) -> str:
    """How many row groups Spark read, if its row count is that of the groups our probe keeps."""
    kept = [
        groups[file.path, group.row_group]
        for file in verdicts.files
        for group in file.row_groups
        if not lookup.filters or group.verdicts[lookup.value] is sb.Verdict.MAYBE
    ]
    return f"{len(kept)} of {len(groups)}" if sum(kept) == lookup.rows else "?"
