"""What a log says of columns and files, beside what a bare folder says."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from secure_bloom.lakes import list_tables
from secure_bloom.reading.table.table_state import table_state
from testing.delta_logs import add, column, commit, inline_vector, start


def test_a_bare_folder_says_nothing_but_its_name(tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "day=1/x.parquet")
    state = table_state(list_tables([str(tmp_path)]), [str(tmp_path)])
    assert state.partitions == [{"day": "1"}]
    assert state.partition_fields == [pa.field("day", pa.int32())]
    assert (state.names, state.order, state.deleted(0)) == (None, (), None)
    schema = pa.schema({"id": pa.int64()})
    assert state.with_columns_of_log(state.columns_of(schema)) == schema


def test_a_log_tells_columns_partitions_and_deleted_rows(tmp_path: Path) -> None:
    columns = column("id"), column("day", "date"), column("new", "string")
    commit(
        tmp_path,
        0,
        *start(*columns, partitions=["day"], features=["deletionVectors"]),
        add("a", partitionValues={"day": "2026-01-31"}),
        add("b", partitionValues={"day": None}, deletionVector=inline_vector([3])),
    )
    state = table_state(list_tables([str(tmp_path)]), [str(tmp_path)])
    assert state.partitions == [{"day": "2026-01-31"}, {"day": None}]
    assert state.partition_fields == [pa.field("day", pa.date32())]
    assert state.deleted(0) is None
    deleted = state.deleted(1)
    assert deleted is not None
    assert deleted.positions(10).tolist() == [3]
    stored = state.columns_of(pa.schema({"gone": pa.int8(), "id": pa.int32()}))
    assert stored == pa.schema({"id": pa.int32()})
    wanted = pa.schema({"id": pa.int32(), "day": pa.date32(), "new": pa.string()})
    assert state.with_columns_of_log(stored) == wanted
