"""Write Spark's classes into an archive, with which a JVM takes half of the CPU time to start.

``python -m testing.spark.class_archive`` runs a small job and keeps the classes that its JVM has
loaded, parsed, beside the environment (application class data sharing, JEP 350).  A JVM of another
version, or with other jars, starts as without the archive.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from testing.spark.cluster import CLASSES, SHORT_LIVED, WITHOUT_GENERATED_CODE, small_session


def _write(target: Path, folder: Path) -> None:
    dump = {"spark.driver.extraJavaOptions": f"{SHORT_LIVED} -XX:ArchiveClassesAtExit={target}"}
    spark = small_session("local[2]", folder, {**WITHOUT_GENERATED_CODE, **dump}).getOrCreate()
    rows = spark.range(9).selectExpr("cast(id AS string) AS email", "id AS iban", "id AS n")
    rows = rows.withColumn("national_id", rows.n)
    rows.write.parquet(str(folder / "t"))
    assert spark.read.parquet(str(folder / "t")).where("email = '5'").count() == 1
    assert spark.sparkContext.parallelize([1, 2], 2).map(str).collect() == ["1", "2"]
    spark.stop()
    jvm = spark.sparkContext._gateway.proc
    jvm.stdin.close()  # by this it ends
    jvm.wait()


def main() -> None:
    CLASSES.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=CLASSES.parent) as folder:
        target = Path(folder, CLASSES.name)
        _write(target, Path(folder))
        target.replace(CLASSES)


if __name__ == "__main__":
    main()
