"""The step over Spark Connect: a client without a JVM, and a server in the tests' session."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.spark.jvm import spark_jars
from testing.project import ROOT
from tests.spark.test_operate_page import block, line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

#: pandas makes every process that uses pyarrow half a second slower, so only the client sees it.
PACKAGES = Path(sys.prefix) / "connect"

#: After the page's script, which the client runs first.
_MORE = """
import json, os
from secure_bloom.errors import FilesFailedError
from secure_bloom.spark import add_bloom_filters

table, broken, report = json.loads(os.environ["TABLES"])
told = []
try:
    add_bloom_filters(spark, broken, columns=["id"], progress=lambda *args: told.append(args))
except FilesFailedError as error:
    failed = [row.path for row in error.report.where("status = 'failed'").collect()]
kept = add_bloom_filters(spark, table, columns=["id"], where="day >= 30", report=report)
print(json.dumps({
    "failed": failed,
    "told": told,
    "kept": sorted((row.path, row.action) for row in kept.collect()),
}))
"""


@pytest.fixture
def url(spark: SparkSession) -> str:
    """The server in the session, on the port that the system picked."""
    if not PACKAGES.is_dir() and importlib.util.find_spec("pandas") is None:
        pytest.skip(f"the client needs pandas and zstandard in {PACKAGES}: make test installs them")
    service = getattr(spark._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
    return f"sc://127.0.0.1:{getattr(service, 'MODULE$').server().getPort()}"


def test_a_client_adds_filters_and_hears_of_failures(url: str, tmp_path: Path) -> None:
    table, broken = tmp_path / "table", tmp_path / "broken"
    broken.mkdir()
    for day in range(33):  # enough for tasks to list
        (table / f"day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [day]}), table / f"day={day}" / "0.parquet")
    pq.write_table(pa.table({"id": [1]}), broken / "good.parquet")
    (broken / "bad.parquet").write_bytes(b"not Parquet")
    (tmp_path / "policy.toml").write_text("[columns.id]\nbloom = true\n")
    script = tmp_path / "connect.py"
    script.write_text(block("# connect.py") + _MORE)
    tables = json.dumps(list(map(str, (table, broken, tmp_path / "report"))))
    arguments = (url, str(table), str(tmp_path / "policy.toml"))
    out = client(script, *arguments, environment={"TABLES": tables})
    assert "|added|33|" in out.replace(" ", ""), out
    seen: dict[str, Any] = json.loads(out.splitlines()[-1])
    assert seen["failed"] == [str(broken / "bad.parquet")]
    assert seen["told"] == [[0, 2], [2, 2]]
    assert seen["kept"] == [[str(table / f"day={day}/0.parquet"), "kept"] for day in (30, 31, 32)]
    assert list((tmp_path / "report").glob("*.parquet"))


@pytest.mark.slow
def test_the_commands_of_the_page_work(spark: SparkSession, tmp_path: Path) -> None:
    """The server that Spark's own script starts, and the page's client."""
    if not PACKAGES.is_dir() and importlib.util.find_spec("pandas") is None:
        pytest.skip(f"the client needs pandas and zstandard in {PACKAGES}")
    [start] = line("$SPARK_HOME/sbin/start-connect-server.sh")
    _, script, _, *_ = line("python")
    port = free_port()
    pq.write_table(pa.table({"id": [7]}), tmp_path / "0.parquet")
    (tmp_path / "policy.toml").write_text("[columns.id]\nbloom = true\n")
    (tmp_path / script).write_text(block("# connect.py"))
    with connect_server(start, tmp_path, port):
        arguments = (f"sc://127.0.0.1:{port}", str(tmp_path), str(tmp_path / "policy.toml"))
        out = client(tmp_path / script, *arguments, environment={})
    assert "|added|1|" in out.replace(" ", ""), out


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def connect_server(start: str, folder: Path, port: int) -> Iterator[None]:
    """It ends with the block; whoever comes before it listens waits for it."""
    home = spark_jars()[0].parents[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": folder / "warehouse",
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [start.replace("$SPARK_HOME", str(home)), *options],
            cwd=folder,
            env={
                **os.environ,
                "PYSPARK_PYTHON": sys.executable,
                "PYTHONPATH": str(ROOT),
                "SPARK_HOME": str(home),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_NO_DAEMONIZE": "1",
            },
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def client(script: Path, *arguments: str, environment: dict[str, str]) -> str:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    # First the PySpark of the tests, which is that of the server.
    given = os.environ.get("PYTHONPATH")
    path = [*([given] if given else []), str(PACKAGES), str(ROOT)]
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=script.parent,
        env={**ours, **environment, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
