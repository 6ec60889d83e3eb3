"""Iceberg's own Java library, on Spark 3.5 in a process of its own.

`make install-iceberg-java` puts PySpark 3.5 and Iceberg's runtime for it beside the environment.
The runtime comes in a wheel whose jar lacks the Jackson that its classes were compiled with, under
names of its own.  Spark's Jackson gets these names here: a class file has all names in its constant
pool (JVM specification, 4.4).

    with IcebergSpark() as spark:
        lake = spark.catalog(type="hadoop", warehouse=folder)
        spark.sql(f"SELECT * FROM {lake}.db.people")
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

import pytest

#: Where `make install-iceberg-java` puts PySpark 3.5 and the wheel with Iceberg's jars.
SPARK: Final = Path(sys.prefix) / "spark-3.5"
_ICEBERG: Final = Path(sys.prefix) / "iceberg-java"
_RUNTIME: Final = "iceberg-spark-runtime-3.5_2.12-*.jar"
_JACKSON: Final = ("jackson-annotations", "jackson-core", "jackson-databind")
_OLD, _NEW = b"com/fasterxml/jackson/", b"org/apache/iceberg/shaded/com/fasterxml/jackson/"
#: Bytes of an entry of a constant pool after its tag; entry 1, text, has its length in front.
_ENTRY_BYTES: Final = {
    **dict.fromkeys((7, 8, 16, 19, 20), 2),
    **dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4),
    **dict.fromkeys((5, 6), 8),
    15: 3,
}
_UTF8, _TAKES_TWO = 1, (5, 6)


def relocated(content: bytes) -> bytes:
    """Return a class file whose names of Jackson are those that Iceberg's classes use."""
    (count,) = struct.unpack_from(">H", content, 8)
    pool, at, number = bytearray(), 10, 1
    while number < count:
        tag = content[at]
        if tag == _UTF8:
            (length,) = struct.unpack_from(">H", content, at + 1)
            text = _renamed(content[at + 3 : at + 3 + length])
            pool += struct.pack(">BH", _UTF8, len(text)) + text
            at += 3 + length
        else:
            end = at + 1 + _ENTRY_BYTES[tag]
            pool += content[at:end]
            at = end
        number += 2 if tag in _TAKES_TWO else 1
    return content[:10] + bytes(pool) + content[at:]


def _renamed(text: bytes) -> bytes:
    dotted = text.replace(_OLD.replace(b"/", b"."), _NEW.replace(b"/", b"."))
    return dotted.replace(_OLD, _NEW)


def relocate(jars: Sequence[Path], target: Path) -> None:
    """Write one jar with the classes of all jars under their new names."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for jar in jars:
            with zipfile.ZipFile(jar) as old:
                for name in old.namelist():
                    # Classes for one version of Java, and lists of services, are not needed.
                    if name.startswith(_OLD.decode()) and name.endswith(".class"):
                        new.writestr(_NEW.decode() + name[len(_OLD) :], relocated(old.read(name)))


def jars() -> list[Path]:
    """Return Iceberg's runtime and its Jackson.  Skips a test where they are not installed."""
    runtime = [*_ICEBERG.rglob(_RUNTIME)]
    if not runtime or not (SPARK / "pyspark").exists():
        pytest.skip("needs Iceberg's Java library on PySpark 3.5: make install-iceberg-java")
    shaded = _ICEBERG / "shaded-jackson.jar"
    if not shaded.exists():
        found = [next((SPARK / "pyspark/jars").glob(f"{name}-2.*.jar")) for name in _JACKSON]
        part = shaded.with_suffix(f".{os.getpid()}")
        relocate(found, part)
        part.replace(shaded)
    return [*runtime, shaded]


class IcebergSpark:
    """Spark 3.5 with Iceberg's runtime; each call is one line to its process and one from it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._catalogs = 0

    def __enter__(self) -> IcebergSpark:
        found = ",".join(map(str, jars()))
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("iceberg_java_worker.py")), found],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SPARK)},
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._pipe("stdin").close()
        self._process.wait(timeout=60)

    def catalog(self, **options: str) -> str:
        """Return the name of a new catalog with these options."""
        self._catalogs += 1
        name = f"c{self._catalogs}"
        self._ask("catalog", name=name, options=options)
        return name

    def sql(self, text: str) -> list[dict[str, Any]]:
        """Run a statement; return its rows."""
        found: list[dict[str, Any]] = self._ask("sql", text=text)
        return found

    def read(self, metadata_location: str) -> list[dict[str, Any]]:
        """Return the rows of a metadata file, without a catalog."""
        found: list[dict[str, Any]] = self._ask("read", path=metadata_location)
        return found

    def delete_equal(self, table: str, column: str, values: Sequence[str]) -> None:
        """Commit an equality delete file of a text column for all partitions."""
        self._ask("delete_equal", table=table, column=column, values=list(values))

    def plan_delete(self, table: str, path: str, positions: Sequence[int]) -> None:
        """Write a position delete file of the table of now; `commit_delete` commits it."""
        self._ask("plan_delete", table=table, path=path, positions=list(positions))

    def commit_delete(self) -> None:
        """Commit what was planned.  Raises IcebergSparkError if its data file is gone."""
        self._ask("commit_delete")

    def rewrite(self, table: str, replaced: dict[str, str]) -> None:
        """Put new files in the places of old ones by RewriteFiles, with a data sequence number."""
        self._ask("rewrite", table=table, replaced=replaced)

    def expire(self, table: str) -> None:
        """Let all snapshots but the current one expire, and remove what only they named."""
        self._ask("expire", table=table)

    def rewrite_manifests(self, table: str) -> None:
        """Write the manifests of data files anew."""
        self._ask("rewrite_manifests", table=table)

    def stream(self, table: str, checkpoint: Path) -> list[dict[str, Any]]:
        """Return the rows that a streaming reader finds since its last look."""
        found: list[dict[str, Any]] = self._ask("stream", table=table, checkpoint=str(checkpoint))
        return found

    def _ask(self, call: str, /, **given: Any) -> Any:
        stdin = self._pipe("stdin")
        stdin.write(json.dumps({"call": call, "given": given}) + "\n")
        stdin.flush()
        answer = json.loads(self._pipe("stdout").readline() or '{"error": "the process ended"}')
        if "error" in answer:
            raise IcebergSparkError(answer["error"])
        return answer["result"]

    def _pipe(self, name: str) -> IO[str]:
        pipe: IO[str] = getattr(self._process, name)
        return pipe


class IcebergSparkError(Exception):
    """What Spark, or Iceberg's Java library, refused."""
