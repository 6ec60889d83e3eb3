"""docs/operate-on-spark.md: its jobs run as they stand, and Spark does what its table says."""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from secure_bloom import __version__
from secure_bloom.spark import add_bloom_filters, session_config
from secure_bloom.spark.add_job import REPORT_SCHEMA
from secure_bloom.spark.jvm import spark_jars
from secure_bloom.spark.rekey_job import REKEY_SCHEMA
from secure_bloom.spark.scan_metrics import rows_scanned
from testing.project import ROOT
from testing.spark.cluster import standalone_cluster
from testing.spark.parquet_java import PLAIN_WRITE, only_bloom_filters

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

PAGE = (ROOT / "docs" / "operate-on-spark.md").read_text()
EXECUTORS = (ROOT / "docs" / "executors.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ROWS = 1000
#: Rows of the table of conditions.
CONDITIONS = re.findall(r"^\| `(.+?)` \| (yes|no) \|", PAGE, re.MULTILINE)


#: The lines of the page's consoles.
LINES = [line.partition(" #")[0] for line in re.findall(r"^\$ (.+)$", PAGE, re.MULTILINE)]


def line(program: str) -> list[str]:
    """The words of the one line that starts this program."""
    (found,) = (words for words in map(shlex.split, LINES) if words[0] == program)
    return found


def block(word: str, folder: Path | None = None) -> str:
    """The block with this word; its folders lie in ``folder``, because the JVM runs elsewhere."""
    (found,) = (text for text in BLOCKS if word in text)
    return found if folder is None else re.sub(r'"(?=[a-z]+/)(?!keys/)', f'"{folder}/', found)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder as the page has it."""
    shutil.copytree(ROOT / "keys", tmp_path / "keys")
    for path in (tmp_path / "keys").iterdir():
        path.chmod(0o600)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def customers(spark: SparkSession) -> DataFrame:
    return spark.range(100).selectExpr(
        "concat('user', id, '@example.com') AS email",
        "concat('DE', id) AS iban",
        "id AS national_id",
        "'it' AS country",
    )


def test_every_block_is_python() -> None:
    for text in BLOCKS:
        compile(text, "block", "exec")
    assert len(BLOCKS) == 10


def test_the_report_block_runs(
    spark: SparkSession, lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    customers(spark).write.parquet(str(lake / "out"))
    (lake / "out" / "broken.parquet").write_bytes(b"not Parquet")
    seen: dict[str, Any] = {"spark": spark}
    exec(block("reports/first", lake), seen)
    assert {row.status for row in spark.read.parquet(str(lake / "reports/first")).collect()} == {
        "added",
        "failed",
    }
    assert "broken.parquet" in capsys.readouterr().out


def test_the_block_on_logs_shows_two_lines_of_numbers(
    spark: SparkSession, lake: Path, caplog: pytest.LogCaptureFixture
) -> None:
    customers(spark).write.parquet(str(lake / "customers"))
    logger = logging.getLogger("secure_bloom")
    seen = {"spark": spark, "add_bloom_filters": add_bloom_filters}
    try:
        exec(block("getLogger", lake), seen)
    finally:
        logger.setLevel(logging.NOTSET)
    lines = [
        f"{it.levelname} {it.name}: {it.getMessage()}"
        for it in caplog.records
        if it.name.startswith("secure_bloom")
    ]
    shown = re.findall(r"^2026-\S+ \S+ (INFO .*)$", PAGE, re.MULTILINE)
    # On one core there is one task.
    numbers = re.compile(r"[\d.]+( tasks?)?")
    assert [numbers.sub("N", it) for it in lines] == [numbers.sub("N", it) for it in shown]


def test_the_incremental_block_takes_new_files_of_two_hours(
    spark: SparkSession, lake: Path
) -> None:
    events = spark.range(4).selectExpr("id AS user", "'2026-11-20' AS day", "id + 11 AS hour")
    events.write.options(**PLAIN_WRITE).partitionBy("day", "hour").parquet(str(lake / "events"))
    new, old = 1_800_000_000, 1_600_000_000
    for path in lake.glob("events/*/*/*.parquet"):
        os.utime(path, (old, old) if "hour=13" in str(path) else (new, new))
    exec(block('"events/"', lake), {"spark": spark, "add_bloom_filters": add_bloom_filters})
    changed = [p for p in lake.glob("events/*/*/*.parquet") if p.stat().st_mtime not in (new, old)]
    assert [path.parent.name for path in changed] == ["hour=12"]


def test_the_blocks_on_one_write_encrypt_one_table(spark: SparkSession, lake: Path) -> None:
    assert session_config("keys/policy.toml", writes=False)
    exec(block("spark_properties", lake), {"spark": spark, "customers": customers(spark)})
    for folder, magic in (("encrypted", b"PARE"), ("plain", b"PAR1")):
        assert {path.read_bytes()[-4:] for path in (lake / folder).glob("*.parquet")} == {magic}


@pytest.fixture(scope="module")
def people(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with filters of `email`, of `id`, even numbers from 1000 on, and of `at`, a time."""
    folder = tmp_path_factory.mktemp("people") / "people"
    rows = spark.range(ROWS).selectExpr(
        "1000 + 2 * id AS id",
        "concat('user', id) AS email",
        "'Bergen' AS city",
        "timestamp_ntz'2024-01-01 00:00:00' + id * interval 2 seconds AS at",
    )
    rows.coalesce(1).write.options(**PLAIN_WRITE).parquet(str(folder))
    add_bloom_filters(spark, folder, columns=["email", "id", "at"])
    return folder


def test_the_block_on_rows_scanned_says_what_it_prints(
    spark: SparkSession, people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with only_bloom_filters(spark):
        exec(block("rows_scanned(", people.parent), {"spark": spark})
    assert capsys.readouterr().out.split() == ["0", str(ROWS)]


def test_the_table_says_which_conditions_use_filters(spark: SparkSession, people: Path) -> None:
    with only_bloom_filters(spark):
        table = spark.read.parquet(str(people))
        scanned = {condition: rows_scanned(table.where(condition)) for condition, _ in CONDITIONS}
    assert len(CONDITIONS) == 12
    assert scanned == {text: 0 if used == "yes" else ROWS for text, used in CONDITIONS}


def test_the_block_for_airflow_is_a_dag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Airflow is: it is too large, and too strict about other packages, for every clone."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    pytest.importorskip("airflow.sdk", reason="needs the package apache-airflow")
    pytest.importorskip(
        "airflow.providers.apache.spark", reason="needs apache-airflow-providers-apache-spark"
    )
    seen: dict[str, Any] = {}
    exec(block("# dags/filters.py"), seen)
    [task] = seen["dag"].tasks
    assert (task.task_id, task.retries) == ("add_filters", 2)


@pytest.mark.slow
def test_spark_submit_runs_the_job(spark: SparkSession, lake: Path) -> None:
    customers(spark).write.parquet(str(lake / "customers"))
    done = submit(lake, "local[2]", "customers/", "keys/policy.toml", "2020-01-01")
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.search(r"\|\s*email\|\s*added\|", done.stdout), done.stdout
    (lake / "customers" / "broken.parquet").write_bytes(b"not Parquet")
    report = add_bloom_filters(spark, "customers", "keys/policy.toml", on_error="report")
    assert {row.action for row in report.where("error IS NULL").collect()} == {"kept"}


@pytest.mark.slow
def test_spark_submit_runs_the_job_on_a_cluster(
    spark: SparkSession, lake: Path, tmp_path: Path
) -> None:
    customers(spark).write.parquet(str(lake / "customers"))
    (tmp_path / "cluster").mkdir()
    # A cluster of its own: the driver that serves other tests has all cores of theirs.
    with standalone_cluster(tmp_path / "cluster", workers=1) as cluster:
        done = submit(lake, cluster.url, "customers/", "keys/policy.toml")
        executors = list(cluster.folder.glob("work-0/app-*/*/stderr"))
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.search(r"\|\s*email\|\s*added\|", done.stdout), done.stdout
    assert len(executors) == 1


@pytest.mark.slow
def test_the_package_comes_by_py_files(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    """Its version is one that no installed copy has, so that executors with another copy fail."""
    customers(spark).write.parquet(str(lake / "customers"))
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "secure_bloom", tmp_path / "wheel" / "secure_bloom", ignore=ignored)
    init = tmp_path / "wheel" / "secure_bloom" / "__init__.py"
    init.write_text(init.read_text().replace(f'"{__version__}"', '"9.8.7"'))
    shutil.make_archive(str(lake / "secure_bloom"), "zip", tmp_path / "wheel")
    [command] = re.findall(r"^\$ (spark-submit .*)$", EXECUTORS, re.MULTILINE)
    options = shlex.split(command)[3:5]
    (tmp_path / "cluster").mkdir()
    with standalone_cluster(tmp_path / "cluster", workers=1) as cluster:
        done = submit(lake, cluster.url, "customers/", "keys/policy.toml", options=options)
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.search(r"\|\s*email\|\s*added\|", done.stdout), done.stdout
    assert "secure-bloom 9.8.7" in done.stdout


@pytest.mark.slow
def test_a_job_with_a_file_that_fails_ends_with_an_error(spark: SparkSession, lake: Path) -> None:
    customers(spark).write.parquet(str(lake / "customers"))
    (lake / "customers" / "broken.parquet").write_bytes(b"not Parquet")
    done = submit(lake, "local[2]", "customers/", "keys/policy.toml")
    assert done.returncode != 0
    assert "FilesFailedError: 1 of " in done.stdout


def submit(
    folder: Path, master: str, *args: str, options: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """The page's job in its own driver, by Spark's own script; it also prints the version."""
    version = 'import secure_bloom\nprint("secure-bloom", secure_bloom.__version__)\n'
    (folder / "add_filters.py").write_text(block("# add_filters.py") + version)
    _, option, _, application, *_ = line("spark-submit")
    script = spark_jars()[0].parents[1] / "bin" / "spark-submit"
    settings = ("spark.ui.enabled=false", "spark.log.level=ERROR", "spark.driver.memory=512m")
    configured = [part for setting in settings for part in ("--conf", setting)]
    return subprocess.run(
        [str(script), option, master, *configured, *options, application, *args],
        cwd=folder,
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            # A package that is submitted comes first: Spark puts it before these.
            "PYTHONPATH": str(ROOT),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    ("schema", "first"),
    [(REPORT_SCHEMA, "The columns of `add"), (REKEY_SCHEMA, "`reencrypt` and `rotate_keys` have")],
    ids=["add", "rekey"],
)
def test_the_page_lists_the_columns_of_a_report(schema: str, first: str) -> None:
    table = PAGE.partition(first)[2].partition("\n\n| ")[2].partition("\n\n")[0]
    listed = re.findall(r"^\| `(\w+)` \| (\w+) \|", table, re.MULTILINE)
    columns = [field.split()[:2] for field in schema.replace("`", "").split(", ")]
    assert listed == [(name, kind.partition("<")[0]) for name, kind in columns]
