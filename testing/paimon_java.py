"""Paimon's own writer in Java (0.9): it compacts, makes tags and branches, and expires snapshots.

``make install-paimon-java`` brings its classes.  They have no Hadoop, which PySpark's jars have.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from testing.project import ROOT

JARS = ROOT / ".venv/paimon-java/pypaimon/jars"
MISSING = "Paimon's writer in Java is not installed: make install-paimon-java"


@contextmanager
def paimon_java() -> Iterator[JavaWriter]:
    """Yield the writer, in a JVM of its own."""
    import pyspark
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    hadoop = Path(pyspark.__file__).parent.glob("jars/hadoop-client-*.jar")
    port = launch_gateway(
        classpath=":".join(map(str, [*JARS.glob("*.jar"), *hadoop])),
        # Arrow's Java, which takes the rows, reaches into the JVM's memory.
        javaopts=["--add-opens=java.base/java.nio=ALL-UNNAMED"],
        die_on_exit=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        yield JavaWriter(jvm=gateway.jvm)
    finally:
        gateway.shutdown()


@dataclass(frozen=True, kw_only=True)
class JavaWriter:
    """Writes to the tables of a warehouse on a disk."""

    jvm: Any

    @property
    def _paimon(self) -> Any:
        return self.jvm.org.apache.paimon

    def table(self, warehouse: str, name: str = "t") -> Any:
        """Return a table as it is now."""
        options = self._paimon.options.Options()
        options.set("warehouse", warehouse)
        context = self._paimon.catalog.CatalogContext.create(options)
        catalog = self._paimon.catalog.CatalogFactory.createCatalog(context)
        return catalog.getTable(self._paimon.catalog.Identifier.create("default", name))

    def insert(
        self,
        warehouse: str,
        rows: Sequence[Mapping[str, object]],
        schema: pa.Schema,
        name: str = "t",
    ) -> None:
        """Insert rows by one commit."""
        content = pa.BufferOutputStream()
        with pa.ipc.new_stream(content, schema) as stream:
            stream.write_batch(pa.RecordBatch.from_pylist(list(rows), schema))
        table = self.table(warehouse, name)

        def write(writer: Any) -> None:
            taken = self._paimon.python.BytesWriter(writer, table.rowType())
            taken.write(content.getvalue().to_pybytes())
            taken.close()

        self._write(table, warehouse, write)

    def compact(self, warehouse: str, name: str = "t", *, buckets: int = 1) -> None:
        """Compact all buckets fully."""
        table = self.table(warehouse, name)

        def write(writer: Any) -> None:
            for partition in table.newSnapshotReader().partitions():
                for bucket in range(buckets):
                    writer.compact(partition, bucket, True)

        self._write(table, warehouse, write)

    def _write(self, table: Any, warehouse: str, write: Any) -> None:
        builder = self._paimon.table.sink.BatchWriteBuilderImpl(table)
        writer = builder.newWrite()
        writer.withIOManager(self._paimon.disk.IOManager.create(f"{warehouse}/spilled"))
        write(writer)
        commit = builder.newCommit()
        commit.commit(writer.prepareCommit())
        writer.close()
        commit.close()

    def remove_orphans(self, warehouse: str, name: str = "t") -> list[str]:
        """Remove files of a table that no snapshot, tag or branch names. Return their names."""
        cleaner = self._paimon.operation.OrphanFilesClean(self.table(warehouse, name))
        # New files, too, which Paimon leaves alone for a day.
        tomorrow = datetime.now() + timedelta(days=1)
        cleaner = cleaner.olderThan(f"{tomorrow:%Y-%m-%d %H:%M:%S}")
        return sorted(path.getName() for path in cleaner.clean())

    def expire(self, warehouse: str, name: str = "t") -> int:
        """Expire all snapshots but the last. Return how many there were."""
        table = self.table(warehouse, name)
        config = self._paimon.options.ExpireConfig.builder().snapshotRetainMin(1)
        config = config.snapshotRetainMax(1)
        config = config.snapshotTimeRetain(self.jvm.java.time.Duration.ofMillis(1))
        time.sleep(0.01)
        expiry = table.newExpireSnapshots()
        expiry.config(config.build())
        found: int = expiry.expire()
        return found
