"""The main job, end to end, on Spark: write encrypted, add filters, look values up.

Everything that concerns filters is done with the public interface, so the file may serve as an
example.  The table has customers; each lookup of an e-mail counts the rows that Spark's scans
returned: those of row groups that were not pruned.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from secure_bloom.api.inspect import inspect
from secure_bloom.api.probe import probe
from secure_bloom.bloom.verdicts import ProbeReport, Verdict
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import PolicyError, SecureBloomError, SparkUnavailableError
from secure_bloom.reports.text import written_out
from secure_bloom.spark.add_job import add_bloom_filters
from secure_bloom.spark.jvm import java, spark_jars
from secure_bloom.spark.scan_metrics import collect_scanned
from secure_bloom.spark.session import session_config
from secure_bloom.storage.os_errors import system_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG = "spark.log"
_PACKAGE = Path(__file__).parent.parent

#: In an installed package the default keys are beside the code, in a checkout above it.
_DEFAULT_KEYS = (_PACKAGE / "default_keys", _PACKAGE.parent / "keys")

_TABLE = "customers"


def run_demo(folder: Path | None, rows: int, *, quiet: bool = False) -> None:
    """Run the demo in ``folder``, which must not exist or be empty, or in a temporary folder.

    Print what happens, unless ``quiet``.

    Before anything is written, raises PolicyError for any other folder or too few ``rows``, and
    :class:`SparkUnavailableError` if Spark cannot run.
    """
    if rows < FILES:
        raise PolicyError(f"{rows} rows do not fill {FILES} files", hint="give a larger --rows")
    java()
    spark_jars()
    with system_errors(str(folder or tempfile.gettempdir())):
        folder = _new_folder(folder)
        keys = folder / "keys"
        keys.mkdir()
        source = next(path for path in _DEFAULT_KEYS if path.is_dir())
        for name in ("policy.toml", "dev-keyring.json"):
            shutil.copy(source / name, keys / name)
            (keys / name).chmod(0o600)
    policy = keys / "policy.toml"
    # Numbers from 0 on make the table's e-mails.
    emails = {"present": email(0), "absent": email(-2)}
    _Demo(folder, policy, emails, quiet=quiet).run(rows)


def _new_folder(folder: Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="secure-bloom-demo-"))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PolicyError("the demo wants a new or empty folder", path=str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    return folder.absolute()


class _Demo:
    """One run in one folder: its steps in order, and what they print."""

    def __init__(self, folder: Path, policy: Path, emails: dict[str, str], *, quiet: bool) -> None:
        self._folder = folder
        self._policy = policy
        self._table = str(folder / _TABLE)
        self._emails = emails
        self._out = Console(highlight=False, quiet=quiet)
        self._err = Console(highlight=False, stderr=True, quiet=quiet)

    def run(self, rows: int) -> None:
        self._out.print(
            "An encrypted Parquet table gets Bloom filters after it was written,\n"
            "each encrypted like its column; then Spark looks two e-mails up.\n"
        )
        keys = KeyPolicy.load(self._policy).kms_client()
        with demo_session(self._policy, self._folder) as spark:
            with self._step(f"Spark wrote {rows:,} customers, encrypted under keys/policy.toml"):
                write(spark, self._table, rows)
            files = inspect(self._table).files
            modes = {f"{file.footer} footer, {file.algorithm}" for file in files}
            self._say(f"without keys, all that shows of its {len(files)} files: {'; '.join(modes)}")
            self._add_filters(spark)
            verdicts = probe(self._table, "email", self._emails.values(), keys=keys)
            self._show_probe(verdicts)
            lookups = self._look_up(spark)
        groups = {
            (file.path, group.row_group): group.rows
            for file in inspect(self._table, keys=keys).files
            for group in file.row_groups
        }
        self._show_lookups(lookups, groups, verdicts)
        self._show_way_on()

    def _say(self, text: str, started: float | None = None) -> None:
        seconds = "" if started is None else f"  [dim]{time.perf_counter() - started:.1f} s[/]"
        self._out.print(f"[bold]•[/] {text}{seconds}", soft_wrap=True)

    @contextmanager
    def _step(self, done: str) -> Iterator[None]:
        started = time.perf_counter()
        with self._err.status("Spark is at work"):
            yield
        self._say(done, started)

    def _add_filters(self, spark: SparkSession) -> None:
        started = time.perf_counter()
        columns = (TextColumn("adding filters on the executors"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=self._err, transient=True) as bar:
            task = bar.add_task("", total=None)
            report = add_bloom_filters(
                spark,
                self._table,
                self._policy,
                progress=lambda done, total: bar.update(task, completed=done, total=total),
            )
        self._show_report(report, started)

    def _show_report(self, report: DataFrame, started: float) -> None:
        rows = report.collect()
        for row in rows:
            if row.error:
                raise SecureBloomError(row.error, hint=row.hint)
        sizes = {row.path: (row.bytes_before, row.bytes_after) for row in rows}
        before, after = (sum(size[i] for size in sizes.values()) for i in (0, 1))
        grown = 100 * (after - before) / before
        added = sum(row.action == "added" for row in rows)
        self._say(
            f"{added} Bloom filters added, data pages untouched; files {grown:.1f} % larger",
            started,
        )

    def _show_probe(self, report: ProbeReport) -> None:
        groups = [group for file in report.files for group in file.row_groups]
        for what, value in self._emails.items():
            maybe = sum(group.verdicts[value] is Verdict.MAYBE for group in groups)
            self._say(f"probe: the {what} e-mail may be in {maybe} of {len(groups)} row groups")

    def _look_up(self, spark: SparkSession) -> list[Lookup]:
        """Return a lookup of each value without and with the filters, after a warm-up."""
        with self._step("Spark looked both up, without and with the filters"):
            look_up(spark, self._table, "warm-up", "", filters=False)
            return [
                look_up(spark, self._table, what, value, filters=filters)
                for what, value in self._emails.items()
                for filters in (False, True)
            ]

    def _show_lookups(
        self,
        lookups: list[Lookup],
        groups: dict[tuple[str, int], int],
        verdicts: ProbeReport,
    ) -> None:
        table = Table(box=SIMPLE_HEAD)
        for name in ("e-mail", "filters"):
            table.add_column(name, no_wrap=True)
        for name in ("rows found", "row groups read", "rows scanned", "seconds"):
            table.add_column(name, justify="right", no_wrap=True)
        for lookup in lookups:
            table.add_row(
                lookup.what,
                "used" if lookup.filters else "not used",
                f"{lookup.found}",
                groups_read(lookup, groups, verdicts),
                f"{lookup.rows:,}",
                f"{lookup.seconds:.2f}",
            )
        self._out.print(table)

    def _show_way_on(self) -> None:
        """Print commands to copy, each on one line whatever its length."""
        program = "secure-bloom"
        if shutil.which(program) is None:
            # `make demo` does not put the environment's programs on PATH.
            beside = Path(sys.executable).with_name(program)
            python = f"{shlex.quote(sys.executable)} -m secure_bloom"
            program = shlex.quote(str(beside)) if beside.exists() else python
        self._out.print("The table and its keys stay; to look further:")
        for line in (
            f"cd {shlex.quote(str(self._folder))}",
            f"{program} inspect {_TABLE} --policy keys/policy.toml",
            f"{program} probe {_TABLE} email {self._emails['present']} --policy keys/policy.toml",
        ):
            self._out.print(f"  {escape(written_out(line))}", soft_wrap=True)


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
