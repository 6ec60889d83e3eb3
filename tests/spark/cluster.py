"""Spark for tests: the settings of a small session, and a real standalone cluster on loopback.

A process holds one SparkContext at most, so what runs on the cluster runs in a driver process:
``cluster.run(function, ...)`` calls a module-level function of a test file there.  The driver and
its executors, three JVMs, serve all tests.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from secure_bloom.spark import session_config
from secure_bloom.spark.jvm import kms_jar, spark_jars
from tests.project import ROOT as PROJECT
from tests.spark.parquet_java import judge_jar

POLICY = PROJECT / "keys" / "policy.toml"

#: The classes that ask Vault or OpenBao and AWS, for tests that name one in the options of a table.
VAULT_KMS = "SecureBloomVaultKms"
AWS_KMS = "SecureBloomAwsKms"

#: Far more than it takes where nothing else runs.
_SECONDS = 300
#: Tests end before a better compiler or a parallel collector would pay for itself.  Spark's classes
#: are not verified again, which takes a tenth of its start.
SHORT_LIVED = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
_DEPLOY = "org.apache.spark.deploy"
#: Ends the whole process group when its standard input closes: when pytest ends, however it ends.
_GUARD = '"$@" & read -r _; kill -KILL 0'


def small_session(master: str, folder: Path, config: Mapping[str, str] | None = None) -> Any:
    """The builder of a small session under :data:`POLICY`, with its own files in ``folder``."""
    from pyspark.sql import SparkSession

    secure = session_config(POLICY)
    settings: dict[str, Any] = {
        **secure,
        "spark.jars": ",".join(
            map(str, (secure["spark.jars"], kms_jar(VAULT_KMS), kms_jar(AWS_KMS), judge_jar()))
        ),
        "spark.driver.memory": "768m",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": SHORT_LIVED,
        "spark.local.dir": str(folder / "local"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **(config or {}),
    }
    # Spark takes the workers' Python from this variable alone.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return SparkSession.builder.master(master).config(map=settings)


#: Of a session on the cluster: both executors are there before a task runs, and a task that takes
#: long gets a copy on the other one.
ON_CLUSTER = {
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    # What Spark notes of every job, as text: no key may be in it.
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
}


class Cluster:
    """A running cluster: one master, workers with one core and 1 GiB each."""

    def __init__(self, url: str, folder: Path, driver: Mapping[str, str], seconds: float) -> None:
        self.url = url
        self._settings = driver
        self._seconds = seconds
        self.folder = folder
        self.events = folder / "events"
        self._driver: subprocess.Popen[str] | None = None

    def run(
        self,
        function: Callable[..., Any],
        *args: Any,
        config: Mapping[str, str] | None = None,
    ) -> Any:
        """``function(spark, *args)`` in a process whose session is on this cluster.

        The function stands at the top of a test file; arguments and result pass as JSON.  With
        ``config`` it gets a session of its own in the same driver: a session that was started with
        it would have the same properties, and jars that this one has already.
        """
        driver = self._running_driver()
        task = {
            "file": function.__code__.co_filename,
            "function": function.__name__,
            "args": args,
            "config": dict(config or {}),
        }
        assert driver.stdin is not None
        assert driver.stdout is not None
        driver.stdin.write(json.dumps(task) + "\n")
        driver.stdin.flush()
        guard = threading.Timer(self._seconds, driver.kill)
        guard.start()
        answer = driver.stdout.readline()
        guard.cancel()
        assert answer, (self.folder / "driver.log").read_text()[-8000:]
        return json.loads(answer)

    def _running_driver(self) -> subprocess.Popen[str]:
        """The driver, started when it is first wanted."""
        if self._driver is None:
            self.events.mkdir()
            events = {"spark.eventLog.dir": self.events.as_uri()}
            settings = {**ON_CLUSTER, **events, **self._settings}
            command = [sys.executable, "-m", "tests.spark.cluster", self.url, str(self.folder)]
            with (self.folder / "driver.log").open("ab") as log:
                self._driver = subprocess.Popen(
                    [*command, json.dumps(settings)],
                    cwd=PROJECT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                )
        return self._driver

    def close(self) -> None:
        """End the driver."""
        if self._driver is not None:
            self._driver.kill()
            self._driver.communicate()
            self._driver = None


@contextmanager
def standalone_cluster(
    folder: Path,
    *,
    workers: int = 2,
    driver: Mapping[str, str] | None = None,
    seconds: float = _SECONDS,
) -> Iterator[Cluster]:
    """Start a master and its workers; every process of theirs is gone afterwards.

    The driver has these settings too, and so many seconds for a function.
    """
    with ExitStack() as stack:
        log = stack.enter_context(_daemon(folder / "master.log", f"{_DEPLOY}.master.Master"))
        url = _await(log, r"Starting Spark master at (spark://\S+)")
        logs = [
            stack.enter_context(
                _daemon(
                    folder / f"worker-{i}.log",
                    f"{_DEPLOY}.worker.Worker",
                    *("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work-{i}")),
                    url,
                    host=worker_host(i),
                )
            )
            for i in range(workers)
        ]
        for log in logs:
            _await(log, r"(Successfully registered with master)")
        yield stack.enter_context(closing(Cluster(url, folder, driver or {}, seconds)))


def worker_host(i: int) -> str:
    """A host of its own for each worker: speculative copies do not run beside the original.

    Linux answers to all of 127.0.0.0/8, others to its first address alone.
    """
    return f"127.0.0.{1 + i}" if sys.platform == "linux" else "127.0.0.1"


@contextmanager
def _daemon(log: Path, main_class: str, *args: str, host: str = "127.0.0.1") -> Iterator[Path]:
    """Run a Spark daemon on ports the system picks, as a process group; yields its log."""
    spark_home = spark_jars()[0].parents[1]
    daemon = [str(spark_home / "bin" / "spark-class"), main_class]
    ports = ["--host", host, "--port", "0", "--webui-port", "0"]
    small = {
        "SPARK_LOCAL_IP": host,
        "SPARK_DAEMON_MEMORY": "256m",
        # The REST server would take the fixed port 6066.
        "SPARK_DAEMON_JAVA_OPTS": f"-Dspark.master.rest.enabled=false {SHORT_LIVED}",
    }
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["bash", "-c", _GUARD, "guard", *daemon, *ports, *args],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **small},
            start_new_session=True,
        )
    try:
        yield log
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _await(log: Path, pattern: str) -> str:
    """The first group of ``pattern`` as soon as the log holds it."""
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        if found := re.search(pattern, log.read_text()):
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"{log.name}: no {pattern}\n{log.read_text()[-4000:]}")


def _session_with(spark: Any, config: Mapping[str, str]) -> Any:
    """A session of its own where the configuration is to be another one."""
    if not config:
        return spark
    session = spark.newSession()
    for name, value in config.items():
        if name != "spark.jars":  # cannot be set later; all jars are there
            session.conf.set(name.removeprefix("spark.hadoop."), value)
    # By this the JVMs keep KMS clients and keys apart; our clients make no other use of it.
    session.conf.set("parquet.encryption.key.access.token", uuid.uuid4().hex)
    return session


def _serve(url: str, folder: str, config: str) -> None:
    """The other end of :meth:`Cluster.run`: until standard input closes, as it does with pytest."""
    # Answers go where the JVM, which inherits the standard output, cannot write between them.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    spark = small_session(url, Path(folder), json.loads(config)).getOrCreate()
    for line in sys.stdin:
        task = json.loads(line)
        session = _session_with(spark, task["config"])
        # As `__main__`, the file's functions travel to the executors by value.
        function = runpy.run_path(task["file"], run_name="__main__")[task["function"]]
        print(json.dumps(function(session, *task["args"])), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    _serve(*sys.argv[1:])
