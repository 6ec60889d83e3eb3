"""The process of `testing/iceberg_java.py`: a line of JSON in is a call, one out its result.

It runs by itself on PySpark 3.5, so it imports nothing of this project.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

_OPTIONS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
}


class Calls:
    """What the other side may ask for."""

    def __init__(self, jars: str) -> None:
        builder = SparkSession.builder.config("spark.jars", jars)
        for name, value in _OPTIONS.items():
            builder = builder.config(name, value)
        self._spark = builder.getOrCreate()
        self._jvm: Any = self._spark._jvm
        self._iceberg = self._jvm.org.apache.iceberg
        self._planned: Any = None

    def catalog(self, name: str, options: dict[str, str]) -> None:
        prefix = f"spark.sql.catalog.{name}"
        # Each look at a table asks the catalog: others write to it.
        given = {"cache-enabled": "false", "rest-metrics-reporting-enabled": "false", **options}
        self._spark.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
        for option, value in given.items():
            self._spark.conf.set(f"{prefix}.{option}", value)

    def sql(self, text: str) -> list[dict[str, Any]]:
        return [row.asDict(recursive=True) for row in self._spark.sql(text).collect()]

    def read(self, path: str) -> list[dict[str, Any]]:
        found = self._spark.read.format("iceberg").load(path)
        return [row.asDict(recursive=True) for row in found.collect()]

    def delete_equal(self, table: str, column: str, values: list[str]) -> None:
        loaded = self._table(table)
        schema = loaded.schema().select([column])
        # Deletes of a spec without partitions are of all partitions; here it is the table's first.
        spec = loaded.specs().get(0)
        if not spec.isUnpartitioned():
            raise ValueError("the table's first partition spec has partitions")
        ids = self._spark.sparkContext._gateway.new_array(self._jvm.int, 1)
        ids[0] = loaded.schema().findField(column).fieldId()
        factory = self._iceberg.data.GenericAppenderFactory(
            loaded.schema(), spec, ids, schema, None
        )
        parquet = self._iceberg.FileFormat.PARQUET
        files = self._iceberg.io.OutputFileFactory.builderFor(loaded, 1, 1)
        output = files.format(parquet).suffix("deletes").build().newOutputFile()
        writer = factory.newEqDeleteWriter(output, parquet, None)
        for value in values:
            record = self._iceberg.data.GenericRecord.create(schema)
            record.setField(column, value)
            writer.write(record)
        writer.close()
        loaded.newRowDelta().addDeletes(writer.toDeleteFile()).commit()

    def plan_delete(self, table: str, path: str, positions: list[int]) -> None:
        loaded = self._table(table)
        factory = self._iceberg.data.GenericAppenderFactory(loaded.schema(), loaded.spec())
        parquet = self._iceberg.FileFormat.PARQUET
        files = self._iceberg.io.OutputFileFactory.builderFor(loaded, 1, 2)
        output = files.format(parquet).suffix("deletes").build().newOutputFile()
        writer = factory.newPosDeleteWriter(output, parquet, None)
        delete = self._iceberg.deletes.PositionDelete.create()
        for position in positions:
            writer.write(delete.set(path, position, None))
        writer.close()
        # As Spark does: what was planned on must be there at the commit.
        planned = loaded.newRowDelta().addDeletes(writer.toDeleteFile())
        planned.validateFromSnapshot(loaded.currentSnapshot().snapshotId())
        planned.validateDataFilesExist([path]).validateDeletedFiles()
        self._planned = planned

    def commit_delete(self) -> None:
        self._planned.commit()

    def rewrite(self, table: str, replaced: dict[str, str]) -> None:
        loaded = self._table(table)
        rewrite = loaded.newRewrite()
        numbers = []
        tasks = loaded.newScan().planFiles().iterator()
        while tasks.hasNext():
            old = tasks.next().file()
            new = replaced.get(old.location())
            if new is None:
                continue
            built = self._iceberg.DataFiles.builder(loaded.specs().get(old.specId()))
            size = loaded.io().newInputFile(new).getLength()
            rewrite.deleteFile(old).addFile(
                built.copy(old).withPath(new).withFileSizeInBytes(size).build()
            )
            numbers.append(old.dataSequenceNumber())
        rewrite.dataSequenceNumber(min(numbers))
        rewrite.commit()

    def expire(self, table: str) -> None:
        loaded = self._table(table)
        newest = loaded.currentSnapshot().timestampMillis()
        loaded.expireSnapshots().expireOlderThan(newest).retainLast(1).commit()

    def rewrite_manifests(self, table: str) -> None:
        self._table(table).rewriteManifests().commit()

    def stream(self, table: str, checkpoint: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []

        def keep(frame: Any, _: int) -> None:
            rows.extend(row.asDict(recursive=True) for row in frame.collect())

        reader = self._spark.readStream.format("iceberg").load(table)
        writer = reader.writeStream.option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).foreachBatch(keep).start().awaitTermination()
        return rows

    def _table(self, name: str) -> Any:
        util = self._iceberg.spark.Spark3Util
        return util.loadIcebergTable(self._spark._jsparkSession, name)


def answer(calls: Calls, line: str) -> dict[str, Any]:
    asked = json.loads(line)
    function: Callable[..., Any] = getattr(calls, asked["call"])
    try:
        return {"result": function(**asked["given"])}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    # Java writes to standard output too: answers get a copy of it, and Java the error output.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    calls = Calls(sys.argv[1])
    for line in sys.stdin:
        answers.write(json.dumps(answer(calls, line), default=str) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
