"""Spark for tests: the settings of a small session, and a real standalone cluster on loopback.

A process holds one SparkContext at most, so what runs on the cluster runs in a driver process:
``cluster.run(function, ...)`` calls a module-level function of a test file there.  The driver and
its executors, three JVMs, serve all tests.  The master and the workers are threads of the JVM that
this process has already: to start one takes longer than all that they do.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from secure_bloom.spark import session_config
from testing.project import ROOT as PROJECT
from testing.spark.parquet_java import judge_jar

POLICY = PROJECT / "keys" / "policy.toml"

#: The classes that ask Vault or OpenBao and AWS, for tests that name one in the options of a table.
VAULT_KMS = "SecureBloomVaultKms"

#: Far more than it takes where nothing else runs.
_SECONDS = 300
#: Tests end before a better compiler or a parallel collector would pay for itself.  There is room
#: for classes at once, as everything is collected whenever it grows.  Spark's classes are not
#: verified again, which takes a tenth of its start.
SHORT_LIVED = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m -XX:ReservedCodeCacheSize=240m"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
#: Classes that are parsed already, see :mod:`testing.spark.class_archive`.
CLASSES = Path(sys.prefix) / "spark-classes.jsa"
if CLASSES.exists():
    # Where it does not fit, it is left out without a word.
    SHORT_LIVED += f' "-XX:SharedArchiveFile={CLASSES}" -Xlog:disable -Xlog:all=error:stderr'
#: To generate and compile code for a query takes longer than a query of a few rows does.  The demo
#: leaves it on, as users do.
WITHOUT_GENERATED_CODE = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_DEPLOY = "org.apache.spark.deploy"
_WORKER_PYTHON = Path(__file__).with_name("worker_python.sh")


def small_session(master: str, folder: Path, config: Mapping[str, str] | None = None) -> Any:
    """The builder of a small session under :data:`POLICY`, with its own files in ``folder``."""
    from pyspark.sql import SparkSession

    secure = session_config(POLICY)
    settings: dict[str, Any] = {
        **secure,
        "spark.jars": f"{secure['spark.jars']},{judge_jar()}",
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
    # Spark takes the workers' Python from the environment alone.
    os.environ["PYSPARK_PYTHON"] = str(_WORKER_PYTHON)
    own = {"TESTS_PYTHON": sys.executable, "TESTS_PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    os.environ |= own
    # The executors of a cluster have an environment of their own.
    settings |= {f"spark.executorEnv.{name}": value for name, value in own.items()}
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
    **WITHOUT_GENERATED_CODE,
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
            command = [sys.executable, "-m", "testing.spark.cluster", self.url, str(self.folder)]
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
    """Start a master and its workers in this process's JVM; all of theirs is gone afterwards.

    The driver has these settings too, and so many seconds for a function.
    """
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    jvm, deploy = SparkContext._jvm, SparkContext._jvm.org.apache.spark.deploy
    conf = SparkConf(loadDefaults=False, _jvm=jvm)
    conf.set("spark.master.rest.enabled", "false")  # it would take the fixed port 6066
    with ExitStack() as stack:
        stack.enter_context(_logged(jvm, folder / "daemons.log"))
        start = deploy.master.Master.startRpcEnvAndEndpoint
        master = start(worker_host(0), 0, 0, conf._jconf)._1()
        stack.callback(master.shutdown)
        urls = SparkContext._gateway.new_array(jvm.java.lang.String, 1)
        urls[0] = master.address().toSparkURL()
        for i in range(workers):
            start = deploy.worker.Worker.startRpcEnvAndEndpoint
            place = (worker_host(i), 0, 0, 1, 1024, urls, str(folder / f"work-{i}"))
            number, resources = jvm.scala.Option.apply(i), jvm.scala.Option.empty()
            stack.callback(start(*place, number, conf._jconf, resources).shutdown)
        yield stack.enter_context(closing(Cluster(urls[0], folder, driver or {}, seconds)))


def worker_host(i: int) -> str:
    """A host of its own for each worker: speculative copies do not run beside the original.

    Linux answers to all of 127.0.0.0/8, others to its first address alone.
    """
    return f"127.0.0.{1 + i}" if sys.platform == "linux" else "127.0.0.1"


@contextmanager
def _logged(jvm: Any, log: Path) -> Iterator[None]:
    """What the master and the workers note goes into ``log``, and nowhere else."""
    log4j = jvm.org.apache.logging.log4j
    layout = log4j.core.layout.PatternLayout.createDefaultLayout()
    builder = log4j.core.appender.FileAppender.newBuilder()
    appender = builder.withFileName(str(log)).setName(log.name).setLayout(layout).build()
    appender.start()
    logger = log4j.LogManager.getLogger(_DEPLOY)
    level = logger.getLevel()
    log4j.core.config.Configurator.setLevel(_DEPLOY, log4j.Level.INFO)
    logger.setAdditive(False)
    logger.addAppender(appender)
    try:
        yield
    finally:
        logger.removeAppender(appender)
        logger.setAdditive(True)
        log4j.core.config.Configurator.setLevel(_DEPLOY, level)
        appender.stop()


def session_with(spark: Any, config: Mapping[str, str]) -> Any:
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
        session = session_with(spark, task["config"])
        # As `__main__`, the file's functions travel to the executors by value.
        function = runpy.run_path(task["file"], run_name="__main__")[task["function"]]
        print(json.dumps(function(session, *task["args"])), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    _serve(*sys.argv[1:])
