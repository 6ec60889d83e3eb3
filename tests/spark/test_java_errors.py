"""Of a Java trace one sentence is left."""

from __future__ import annotations

import pytest

from secure_bloom.spark.java_errors import reason_of

_TASK = """An error occurred while calling o93.parquet.
: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.taskFailedWhileWritingRowsError(Q.scala:775)
Caused by: org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.scheduler.Task.run(Task.scala:147)
Caused by: java.io.IOException: No space left on device
\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (_TASK, "No space left on device"),
        ("An error occurred.\n: java.io.IOException: Mkdirs failed\n\tat x", "Mkdirs failed"),
        ("Caused by: java.lang.OutOfMemoryError\n\tat x", "OutOfMemoryError"),
        (
            "[PATH_ALREADY_EXISTS] Path a already exists.\nmore",
            "[PATH_ALREADY_EXISTS] Path a already exists.",
        ),
        ("", ""),
        ("x" * 9000, "x" * 300 + "..."),
    ],
)
def test_the_innermost_cause_is_the_reason(text: str, reason: str) -> None:
    assert reason_of(RuntimeError(text)) == reason
