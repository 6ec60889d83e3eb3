"""What ``pypaimon`` does with a table, in a process that has its own pyarrow.

python pypaimon_worker.py WAREHOUSE read [COLUMN VALUE]     rows, sorted, as JSON
python pypaimon_worker.py WAREHOUSE insert ID NAME          one more row
python pypaimon_worker.py WAREHOUSE stream                  rows of a stream that begins here
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pyarrow as pa
from pypaimon import CatalogFactory  # type: ignore[import-not-found, unused-ignore]


def main(warehouse: str, verb: str, *arguments: str) -> None:
    table = CatalogFactory.create({"warehouse": warehouse}).get_table("default.t")
    print(json.dumps({"read": read, "insert": insert, "stream": stream}[verb](table, *arguments)))


def read(table: Any, *condition: str) -> list[dict[str, Any]]:
    builder = table.new_read_builder()
    if condition:
        column, value = condition
        predicates = builder.new_predicate_builder()
        builder = builder.with_filter(predicates.equal(column, int(value)))
    splits = builder.new_scan().plan().splits()
    return sorted(builder.new_read().to_arrow(splits).to_pylist(), key=str)


def insert(table: Any, number: str, name: str) -> None:
    builder = table.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(pa.table({"id": pa.array([int(number)], pa.int64()), "name": [name]}))
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()


def stream(table: Any) -> list[dict[str, Any]]:
    """Follow the table from its first snapshot to its last, one snapshot after the other."""
    builder = table.copy({"scan.mode": "from-snapshot", "scan.snapshot-id": "1"})
    builder = builder.new_stream_read_builder()
    scan, reader = builder.new_streaming_scan(), builder.new_read()
    last = table.snapshot_manager().get_latest_snapshot().id
    rows: list[dict[str, Any]] = []
    for plan in scan.stream_sync():
        rows += reader.to_arrow(plan.splits()).to_pylist() if plan.splits() else []
        if scan.next_snapshot_id is None or scan.next_snapshot_id > last or not plan.splits():
            break
    return sorted(rows, key=str)


if __name__ == "__main__":
    main(*sys.argv[1:])
