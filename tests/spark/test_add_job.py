"""The post-write step: what it reports, refuses and survives, on a session and on a cluster."""

from __future__ import annotations

import base64
import functools
import json
import os
import signal
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

import secure_bloom as sb
from secure_bloom.adding.report import FileAddReport
from secure_bloom.adding.request import FilterRequest, filter_request
from secure_bloom.adding.rewrite import Rewriter, WriteMode
from secure_bloom.encryption.access import Access
from secure_bloom.errors import (
    FilesFailedError,
    PolicyError,
    SecureBloomError,
    SparkUnavailableError,
    UnsupportedFeatureError,
)
from secure_bloom.runs.work import FileTask
from secure_bloom.spark import add_bloom_filters, add_job, add_task, file_task, job_files, tasks
from secure_bloom.spark.add_job import check_request
from secure_bloom.spark.file_task import Shipped
from secure_bloom.spark.jvm import spark_jars
from secure_bloom.spark.package_archive import ship
from secure_bloom.spark.scan_metrics import collect_scanned, rows_scanned
from testing.spark.cluster import POLICY, Cluster, worker_host
from testing.spark.parquet_java import PLAIN_WRITE, only_bloom_filters
from testing.waiting import eventually
from tests.spark.typed_tables import copy, data_files, row_groups, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

FILES = 4
#: Of the session, see ``conftest``.
CORES = 2
ROWS = 4000
COLUMNS = ("text", "i64", "day")
KEYS = sb.KeyPolicy.load(POLICY).kms_client()
KEYRING = json.loads(POLICY.with_name("dev-keyring.json").read_text())["master_keys"]
SECRETS = [form for text in KEYRING.values() for form in (text, base64.b64decode(text).hex())]


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written") / "table"
    return write(spark, folder, rows=ROWS, files=FILES)


@pytest.fixture
def table(written: Path, tmp_path: Path) -> Path:
    """A fresh copy of an encrypted table in four files."""
    return copy(written, tmp_path / "table")


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    """A copy of the default policy and its keyring, to be spoilt."""
    for name in ("policy.toml", "dev-keyring.json"):
        (tmp_path / name).write_bytes(POLICY.with_name(name).read_bytes())
        (tmp_path / name).chmod(0o600)
    return tmp_path / "policy.toml"


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, hidden ones too."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.iterdir()}


def filters_of(table: Path) -> Counter[tuple[str, int, str]]:
    return Counter(
        (Path(file.path).name, group.row_group, column.column)
        for file in sb.inspect(table, keys=KEYS).files
        for group in file.row_groups
        for column in group.columns
        if column.bloom is not None
    )


def wanted_filters(table: Path) -> Counter[tuple[str, int, str]]:
    return Counter(
        (group.path.name, group.ordinal, column)
        for group in row_groups(table)
        for column in COLUMNS
    )


def assert_done_once(spark: SparkSession, table: Path, written: Path, tmp_path: Path) -> None:
    """The table is what one undisturbed run makes of it: same files, same sizes, same filters."""
    clean = copy(written, tmp_path / "clean")
    assert not sb.add_bloom_filters(clean, columns=COLUMNS, policy=POLICY).failed
    sizes = {path.name: path.stat().st_size for path in table.iterdir()}
    assert sizes == {path.name: path.stat().st_size for path in clean.iterdir()}
    assert filters_of(table) == wanted_filters(written)
    ours, theirs = (spark.read.parquet(str(path)) for path in (table, written))
    assert ours.exceptAll(theirs).isEmpty()
    assert theirs.exceptAll(ours).isEmpty()


def assert_no_secrets(text: str) -> None:
    assert not any(secret in text for secret in SECRETS)


def outcomes(report: DataFrame) -> set[tuple[str, str]]:
    return {(row.status, row.action) for row in report.collect()}


class TestReport:
    @pytest.mark.parametrize(
        "few",
        [
            pytest.param(FILES, id="on-the-driver"),
            # `test_job_reports` has reports of executors.
            pytest.param(0, id="on-executors", marks=pytest.mark.slow),
        ],
    )
    def test_one_row_for_each_file_row_group_and_column(
        self, spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, few: int
    ) -> None:
        monkeypatch.setattr(job_files, "_FEW", few)
        before = {str(path): path.stat().st_size for path in data_files(table)}
        report = add_bloom_filters(spark, table, POLICY, columns=COLUMNS)
        rows = report.collect()
        seen = Counter((Path(row.path).name, row.row_group, row.column) for row in rows)
        assert seen == wanted_filters(table)
        assert {(row.status, row.action, row.error) for row in rows} == {("added", "added", None)}
        assert {(row.column, row.key, row.encrypted) for row in rows} == {
            ("text", "k_pii", True),
            ("i64", "k_pii", True),
            ("day", None, False),
        }
        assert all(0 < row.fpp <= row.fpp_requested == 0.01 for row in rows)
        assert {row.path: row.bytes_before for row in rows} == before
        assert {row.path: row.bytes_after for row in rows} == {
            str(path): path.stat().st_size for path in data_files(table)
        }
        assert_no_secrets(str(rows))
        # To evaluate it again runs nothing again.
        for path in table.iterdir():
            path.unlink()
        assert report.collect() == rows
        assert report.where("status = 'added'").count() == len(rows)
        assert not list(table.iterdir())

    def test_a_second_run_finds_nothing_to_do_and_replaces_filters_on_request(
        self, spark: SparkSession, table: Path
    ) -> None:
        add_bloom_filters(spark, table, POLICY, columns=COLUMNS)
        before, times = content(table), stamps(table)
        assert outcomes(add_bloom_filters(spark, table, POLICY, columns=COLUMNS)) == {
            ("unchanged", "kept")
        }
        assert content(table) == before
        assert stamps(table) == times
        options = {"text": sb.BloomFilterOptions(fpp=0.1)}
        report = add_bloom_filters(spark, table, POLICY, columns=options, replace_filters=True)
        assert outcomes(report) == {("added", "replaced")}
        assert filters_of(table) == wanted_filters(table)

    def test_a_dry_run_says_what_would_be(self, spark: SparkSession, table: Path) -> None:
        before = content(table)
        report = add_bloom_filters(spark, table, POLICY, columns=COLUMNS, dry_run=True)
        assert outcomes(report) == {("added", "added")}
        assert content(table) == before

    def test_a_summary_of_changed_files_is_warned_of(
        self, spark: SparkSession, table: Path
    ) -> None:
        # What cannot be read may describe any file.
        (table / "_metadata").write_bytes(b"of another writer")
        with pytest.warns(UserWarning, match=r"_metadata describes files that got filters"):
            add_bloom_filters(spark, table, POLICY, columns=COLUMNS)
        assert (table / "_metadata").read_bytes() == b"of another writer"

    def test_files_are_found_from_the_drivers_folder_and_small_ones_share_tasks(
        self, spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Executors run elsewhere: a relative path must not be theirs to resolve."""
        monkeypatch.chdir(table.parent)
        context, tag = spark.sparkContext, uuid.uuid4().hex
        context.addJobTag(tag)
        report = add_bloom_filters(spark, "table/part-*.parquet", POLICY, columns=COLUMNS)
        context.removeJobTag(tag)
        assert outcomes(report) == {("added", "added")}
        assert {row.path for row in report.collect()} == {str(path) for path in data_files(table)}
        jobs = context._jsc.sc().statusTracker().getJobIdsForTag(tag)
        tracker = context.statusTracker()
        stages = [stage for job in jobs for stage in tracker.getJobInfo(job).stageIds]
        assert max(tracker.getStageInfo(stage).numTasks for stage in stages) == CORES < FILES

    def test_a_file_without_row_groups_has_one_row(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        empty = spark.range(0).coalesce(1)
        empty.write.options(**PLAIN_WRITE).parquet(str(tmp_path / "t"))
        (row,) = add_bloom_filters(spark, tmp_path / "t", columns=["id"]).collect()
        assert (row.status, row.row_group, row.column) == ("unchanged", None, None)

    def test_a_file_that_fails_is_one_of_several_of_its_task(
        self, spark: SparkSession, table: Path
    ) -> None:
        data_files(table)[1].write_bytes(b"not Parquet at all")
        told: list[tuple[int, int]] = []
        report = add_bloom_filters(
            spark,
            table,
            POLICY,
            columns=COLUMNS,
            on_error="report",
            progress=lambda *args: told.append(args),
        )
        assert {row.path for row in report.collect()} == set(map(str, data_files(table)))
        assert report.where("status = 'failed'").count() == 1
        assert {row.action for row in report.where("status != 'failed'").collect()} == {"added"}
        assert (told[0], told[-1]) == ((0, FILES), (FILES, FILES))


class TestRefusals:
    """Told before anything is written."""

    @pytest.mark.parametrize(
        ("columns", "error", "complaint"),
        [
            (["text", "txet"], PolicyError, "no column txet"),
            # `tests/adding` has these without Spark.
            pytest.param(
                ["text", "flag"], UnsupportedFeatureError, "flag is BOOLEAN", marks=pytest.mark.slow
            ),
            pytest.param([], PolicyError, "no column is named", marks=pytest.mark.slow),
        ],
    )
    def test_columns_that_cannot_have_a_filter(
        self,
        spark: SparkSession,
        tmp_path: Path,
        columns: list[str],
        error: type[SecureBloomError],
        complaint: str,
    ) -> None:
        rows = spark.range(100).selectExpr("cast(id AS string) AS text", "id < 5 AS flag")
        rows.repartition(2).write.options(**PLAIN_WRITE).parquet(str(tmp_path / "t"))
        before = content(tmp_path / "t")
        with pytest.raises(error, match=complaint):
            add_bloom_filters(spark, tmp_path / "t", columns=columns)
        assert content(tmp_path / "t") == before

    def test_a_master_key_that_the_kms_does_not_have(
        self, spark: SparkSession, table: Path, policy_file: Path
    ) -> None:
        policy_file.write_text(policy_file.read_text().replace('"k_finance"', '"k_fiance"'))
        before = content(table)
        with pytest.raises(PolicyError, match="k_fiance") as caught:
            add_bloom_filters(spark, table, policy_file, columns=COLUMNS)
        assert_no_secrets(f"{caught.value} {caught.value.hint}")
        assert content(table) == before

    def test_a_table_that_another_log_manages(self, spark: SparkSession, table: Path) -> None:
        (table / "_spark_metadata").mkdir()
        with pytest.raises(UnsupportedFeatureError, match="Streaming"):
            add_bloom_filters(spark, table, POLICY, columns=COLUMNS)

    @pytest.mark.parametrize(
        ("few", "module"),
        [
            pytest.param(True, "pyarrow", id="few-files"),
            pytest.param(False, "thrift", id="many-files"),
        ],
    )
    def test_a_module_that_executors_lack_is_named(
        self,
        spark: SparkSession,
        table: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        few: bool,
        module: str,
    ) -> None:
        missing = f'raise ModuleNotFoundError("No module named {module}", name="{module}")'
        (tmp_path / "lacks").mkdir()
        (tmp_path / "lacks" / f"{module}.py").write_text(missing)
        python = tmp_path / "python"
        path = f"{tmp_path}/lacks:{os.environ.get('PYTHONPATH', '')}"
        python.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec {sys.executable} "$@"\n')
        python.chmod(0o755)
        monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
        if not few:
            monkeypatch.setattr(job_files.JobFiles, "are_few", False)
        before = content(table)
        with pytest.raises(SparkUnavailableError) as caught:
            add_bloom_filters(spark, table, POLICY, columns=COLUMNS)
        assert str(caught.value) == (
            "the Python of the executors has secure-bloom without the module "
            f"{module}, which it needs"
        )
        assert content(table) == before

    @pytest.mark.parametrize(
        "few",
        [
            pytest.param(True, id="few-files"),
            pytest.param(False, id="many-files", marks=pytest.mark.slow),
        ],
    )
    def test_executors_without_the_package_are_one_sentence(
        self,
        spark: SparkSession,
        table: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        few: bool,
    ) -> None:
        python = tmp_path / "python"
        # PySpark alone: the caller's environment may have the package on its path.
        path = ":".join(map(str, (spark_jars()[0].parents[1] / "python" / "lib").glob("*.zip")))
        python.write_text(f'#!/bin/sh\ncd / && PYTHONPATH="{path}" exec {sys.executable} -S "$@"\n')
        python.chmod(0o755)
        monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
        if not few:
            monkeypatch.setattr(job_files.JobFiles, "are_few", False)
        with pytest.raises(SparkUnavailableError) as caught:
            add_bloom_filters(spark, table, POLICY, columns=COLUMNS)
        assert str(caught.value) == "the Python of the executors does not have secure-bloom"
        assert "PYSPARK_PYTHON" in str(caught.value.hint)
        assert caught.value.__cause__ is None

    def test_executors_with_another_version_of_the_package_are_an_error(
        self, spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tasks, "_VERSION", "9.8.7")
        before = content(table)
        with pytest.raises(SparkUnavailableError) as caught:
            add_bloom_filters(spark, table, POLICY, columns=COLUMNS)
        assert f"has secure-bloom {sb.__version__}, and the driver has 9.8.7" in str(caught.value)
        assert "\n" not in str(caught.value).partition("hint:")[0].strip()
        assert content(table) == before


class TestFailures:
    """A file that fails has its error in the report, and does not stop the others."""

    def test_a_damaged_file_among_good_ones(self, spark: SparkSession, table: Path) -> None:
        bad, *_ = data_files(table)
        bad.write_bytes(bad.read_bytes()[:-100])
        before = bad.read_bytes()
        rows = add_bloom_filters(spark, table, POLICY, columns=COLUMNS, on_error="report").collect()
        (failed,) = (row for row in rows if row.status == "failed")
        assert failed.path == str(bad)
        assert failed.error.startswith(f"{bad}: ")
        assert failed.column is None
        assert bad.read_bytes() == before
        assert {row.status for row in rows if row.path != str(bad)} == {"added"}
        assert {name for name, *_ in filters_of(table)} == {p.name for p in data_files(table)[1:]}

    def test_altered_data_are_named_with_row_group_and_column(
        self, spark: SparkSession, table: Path
    ) -> None:
        bad = data_files(table)[2]
        altered = bytearray(bad.read_bytes())
        altered[100] ^= 1  # the first page of the first column
        bad.write_bytes(altered)
        with pytest.raises(FilesFailedError, match="1 of 4 files failed") as caught:
            add_bloom_filters(spark, table, POLICY, columns=COLUMNS)
        rows = caught.value.report.collect()
        (failed,) = (row for row in rows if row.status == "failed")
        assert {row.status for row in rows if row is not failed} == {"added"}
        assert failed.error in str(caught.value)
        assert failed.error.startswith(f"{bad}, row group 0, column text: ")
        assert bad.read_bytes() == altered

    def test_a_keyring_that_only_the_driver_can_read(
        self,
        spark: SparkSession,
        table: Path,
        policy_file: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        keyring = policy_file.with_name("dev-keyring.json")

        def check_and_lose_the_keyring(*args: Any, **options: Any) -> None:
            check_request(*args, **options)
            keyring.unlink()

        monkeypatch.setattr(add_job, "check_request", check_and_lose_the_keyring)
        before = content(table)
        rows = add_bloom_filters(
            spark, table, policy_file, columns=COLUMNS, on_error="report"
        ).collect()
        assert {row.path for row in rows} == set(map(str, data_files(table)))
        reason = f"{keyring}: the keyring cannot be read: No such file or directory"
        assert {(row.status, row.error) for row in rows} == {("failed", reason)}
        assert content(table) == before

    def test_a_keyring_that_the_second_executor_cannot_read(
        self, table: Path, policy_file: Path
    ) -> None:
        """The rewrite may run where no survey did."""
        request = filter_request(COLUMNS, policy_file)
        policy_file.with_name("dev-keyring.json").unlink()
        report = in_a_task(request)(FileTask(str(data_files(table)[0])))
        assert report.status == "failed"
        assert "the keyring cannot be read" in str(report.error)


def in_a_task(
    request: FilterRequest, *, in_place: bool = False
) -> Callable[[FileTask], FileAddReport]:
    access = Access(policy=request.guard.policy)
    opening = functools.partial(Rewriter.opened, request, access, WriteMode(in_place=in_place))
    shared = ship(Shipped(open_work=opening))
    return functools.partial(file_task.process, shared=shared, failed=Rewriter.failed)


@pytest.mark.parametrize("in_place", [False, True], ids=["replace", "in-place"])
def test_a_task_that_runs_again_finds_its_work_done(
    table: Path, written: Path, in_place: bool
) -> None:
    """As after a fault behind the write, or beside a speculative copy that was faster."""
    request = filter_request(COLUMNS, POLICY)
    rewrite = in_a_task(request, in_place=in_place)
    first = [rewrite(FileTask(str(path))) for path in data_files(table)]
    assert [(report.status, report.error) for report in first] == [("added", None)] * FILES
    done = content(table)
    again = [rewrite(FileTask(str(path))) for path in data_files(table)]
    assert [(report.status, report.error) for report in again] == [("unchanged", None)] * FILES
    assert content(table) == done
    assert filters_of(table) == wanted_filters(written)


@pytest.mark.parametrize(
    "in_place",
    [
        pytest.param(False, id="replace", marks=pytest.mark.slow),
        pytest.param(True, id="in-place"),
    ],
)
def test_two_steps_at_once_on_one_file_make_one_set_of_filters(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    in_place: bool,
) -> None:
    written = write(spark, tmp_path / "written", rows=1000, files=1)
    table = copy(written, tmp_path / "table")
    started = tmp_path / "started"
    started.mkdir()

    def rewrite_together(task: FileTask, **options: Any) -> object:
        from secure_bloom.spark.file_task import process

        (started / uuid.uuid4().hex).touch()
        deadline = time.monotonic() + 120
        while len(list(started.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.001)
        return process(task, **options)

    monkeypatch.setattr(file_task, "process", rewrite_together)

    def run(_: int) -> set[tuple[str, str]]:
        return outcomes(add_bloom_filters(spark, table, POLICY, columns=COLUMNS, in_place=in_place))

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(run, range(2)), key=str) == [
            {("added", "added")},
            {("unchanged", "kept")},
        ]
    assert len(list(started.iterdir())) == 2
    assert {path.name for path in table.iterdir()} == {
        path.name for path in written.iterdir() if not path.name.endswith(".parquet.crc")
    }
    assert filters_of(table) == wanted_filters(written)
    alone = copy(written, tmp_path / "alone")
    sb.add_bloom_filters(alone, columns=COLUMNS, policy=POLICY, in_place=in_place)
    (ours,), (theirs,) = data_files(table), data_files(alone)
    assert ours.stat().st_size == theirs.stat().st_size
    assert spark.read.parquet(str(table)).count() == 1000


# What follows runs on the cluster, in a driver process of its own; arguments are texts.


def run_on_cluster(spark: SparkSession, table: str, faulty: str, marks: str) -> dict[str, Any]:
    report = add_bloom_filters(spark, table, POLICY, columns=COLUMNS)
    seen = {"report": [row.asDict() for row in report.collect()], "tasks": tasks_done(spark)}
    with only_bloom_filters(spark):
        rows = spark.read.parquet(table)
        seen["absent"] = rows_scanned(rows.where("text = 'nobody@example.com'"))
        present, scanned = collect_scanned(rows.where("text = 'user4242@example.com'"))
        seen["present"], seen["found"] = scanned, len(present)
    with (
        mock.patch.object(add_task, "survey", functools.partial(meeting_survey, marks=marks)),
        mock.patch.object(file_task, "process", functools.partial(faulty_rewrite, marks=marks)),
        mock.patch.object(job_files, "task_count", lambda files, *_: files),
    ):
        report = add_bloom_filters(spark, faulty, POLICY, columns=COLUMNS)
    return {**seen, "faulty": [row.asDict() for row in report.collect()]}


def tasks_done(spark: SparkSession) -> dict[str, int]:
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(True)
    every = [executors.apply(i) for i in range(executors.size())]
    return {executor.id(): executor.completedTasks() for executor in every}


def meeting_survey(path: str, *, marks: str, **options: Any) -> object:
    """Survey as soon as every executor has a task: none of them is left out of the work."""
    from secure_bloom.spark.add_task import survey

    executor = Path.cwd().name  # an executor runs in a folder named after its id
    Path(marks, f"executor-{executor}").touch()
    eventually(Path(marks, f"executor-{1 - int(executor)}").exists)
    return survey(path, **options)


def faulty_rewrite(task: FileTask, *, marks: str, **options: Any) -> object:
    """Write, then fail once: by an exception, by dying, or by lingering while a copy runs."""
    from secure_bloom.spark.file_task import process

    number = int(Path(task.path).name.split("-")[1])
    try:
        Path(marks, f"{number}-first").touch(exist_ok=False)
    except FileExistsError:
        Path(marks, f"{number}-second").touch()
        return process(task, **options)
    if number == FILES - 1:
        eventually(Path(marks, f"{number}-second").exists)
    report = process(task, **options)
    if number == 0:
        raise RuntimeError("a fault after the write")
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRun:
    """Two tables after the step ran on the cluster, the second one under faults."""

    table: Path
    faulty: Path
    marks: Path
    seen: dict[str, Any]


@pytest.fixture(scope="module")
def on_cluster(
    cluster: Cluster, written: Path, tmp_path_factory: pytest.TempPathFactory
) -> ClusterRun:
    folder = tmp_path_factory.mktemp("on-cluster")
    table, faulty = copy(written, folder / "table"), copy(written, folder / "faulty")
    marks = folder / "marks"
    marks.mkdir()
    seen = cluster.run(run_on_cluster, str(table), str(faulty), str(marks))
    return ClusterRun(table=table, faulty=faulty, marks=marks, seen=seen)


#: Under the folder of the cluster; Spark's own temporary files come and go beside them.
LOGS = ("*.log", "work-*/*/*/stdout", "work-*/*/*/stderr")


@pytest.mark.slow
class TestCluster:
    """Every run tries a task that runs twice without one, and looks for keys in the demo's logs."""

    def test_both_executors_do_the_work(self, on_cluster: ClusterRun) -> None:
        tasks = on_cluster.seen["tasks"]
        assert set(tasks) >= {"0", "1", "driver"}
        assert tasks["driver"] == 0
        # Counts of tasks would not tell: copies that were overtaken are in none of them.
        assert (on_cluster.marks / "executor-0").exists()
        assert (on_cluster.marks / "executor-1").exists()

    def test_lookups_read_what_the_filters_leave(self, on_cluster: ClusterRun) -> None:
        seen = on_cluster.seen
        assert (seen["absent"], seen["found"]) == (0, 1)
        assert 0 < seen["present"] < ROWS

    def test_no_log_of_any_process_holds_a_key(
        self, on_cluster: ClusterRun, cluster: Cluster
    ) -> None:
        logs = [path for pattern in LOGS for path in cluster.folder.glob(pattern)]
        assert len(logs) >= 6  # the driver, master and workers, two of each executor
        for log in logs:
            assert_no_secrets(log.read_text(errors="replace"))
        assert "Launching executor" in (cluster.folder / "daemons.log").read_text()
        assert_no_secrets(str(on_cluster.seen))

    def test_the_table_is_right(
        self, on_cluster: ClusterRun, spark: SparkSession, written: Path, tmp_path: Path
    ) -> None:
        assert_reported(on_cluster.seen["report"], written)
        assert_done_once(spark, on_cluster.table, written, tmp_path)

    def test_retries_and_speculative_copies_leave_the_table_right(
        self, on_cluster: ClusterRun, spark: SparkSession, written: Path, tmp_path: Path
    ) -> None:
        twice = {path.name for path in on_cluster.marks.glob("*-second")}
        assert twice >= {"0-second", "1-second"}
        if worker_host(0) != worker_host(1):
            assert f"{FILES - 1}-second" in twice
        assert_reported(on_cluster.seen["faulty"], written)
        assert_done_once(spark, on_cluster.faulty, written, tmp_path)


def assert_reported(rows: list[dict[str, Any]], written: Path) -> None:
    """Every filter is reported; by a task that ran twice, as one that is there."""
    assert {row["error"] for row in rows} == {None}
    assert {(row["status"], row["action"]) for row in rows} <= {
        ("added", "added"),
        ("unchanged", "kept"),
    }
    seen = Counter((Path(row["path"]).name, row["row_group"], row["column"]) for row in rows)
    assert seen == wanted_filters(written)
