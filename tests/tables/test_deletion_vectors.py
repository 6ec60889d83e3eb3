"""Deletion vectors, inline and in files, as deltalake reads them, and damaged ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.tables import snapshot
from secure_bloom.tables.deletion_vectors import DeletedRows, decode_z85
from testing.delta_logs import add, commit, inline_vector, start, vector_file, z85

ROWS = 100
STATS = f'{{"numRecords":{ROWS}}}'


def deleted(table: Path, rows: int = ROWS) -> list[list[int]]:
    """The deleted rows of each live file."""
    found = snapshot(table)
    assert found is not None
    return [
        DeletedRows(folder=str(table), vector=file.deletion_vector).positions(rows).tolist()
        for file in found.files
        if file.deletion_vector is not None
    ]


def with_vectors(table: Path, *vectors: dict[str, Any]) -> Path:
    """A table with a file for each vector."""
    adds = []
    for i, vector in enumerate(vectors):
        path = table / f"{i}.parquet"
        pq.write_table(pa.table({"id": pa.array(range(ROWS), pa.int64())}), path)
        adds.append(add(path.name, path.stat().st_size, deletionVector=vector, stats=STATS))
    commit(table, 0, *start(features=["deletionVectors"]), *adds)
    return table


def test_they_are_those_that_deltalake_reads(tmp_path: Path) -> None:
    wanted = [[0, 5, 99], list(range(40)), [7]]
    stored = vector_file(tmp_path, *wanted[:2], prefix="ab")
    with_vectors(tmp_path, *stored, inline_vector(wanted[2]))
    assert deleted(tmp_path) == wanted
    found = pa.table(deltalake.DeltaTable(tmp_path).deletion_vectors().read_all()).to_pylist()
    kept = {Path(row["filepath"]).name: row["selection_vector"] for row in found}
    assert wanted == [[i for i, keep in enumerate(kept[name]) if not keep] for name in sorted(kept)]


def test_a_vector_may_stand_at_a_path_of_its_own(tmp_path: Path) -> None:
    (vector,) = vector_file(tmp_path, [3])
    (path,) = tmp_path.glob("*.bin")
    moved = vector | {"storageType": "p", "pathOrInlineDv": f"file://{path}"}
    assert deleted(with_vectors(tmp_path, moved)) == [[3]]


@pytest.mark.parametrize(
    "change",
    [
        {"cardinality": 2},
        {"sizeInBytes": 3},
        {"offset": 10**6},
        {"offset": None},
        {"pathOrInlineDv": z85(bytes(12))},
        {"pathOrInlineDv": "~" * 20},
    ],
)
def test_a_vector_that_is_not_as_the_log_says_is_an_error(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    (vector,) = vector_file(tmp_path, [3])
    with pytest.raises(FormatError):
        deleted(with_vectors(tmp_path, vector | change))


def test_a_vector_of_another_file_is_an_error(tmp_path: Path) -> None:
    (vector,) = vector_file(tmp_path, [3, 50])
    with_vectors(tmp_path, vector)
    with pytest.raises(FormatError, match="row 50, the file has 50 rows"):
        deleted(tmp_path, 50)


@pytest.mark.parametrize("at", range(30))
def test_a_byte_that_was_changed_is_an_error(tmp_path: Path, at: int) -> None:
    (vector,) = vector_file(tmp_path, [3])
    (path,) = tmp_path.glob("*.bin")
    data = bytearray(path.read_bytes())
    data[at] ^= 0x41
    path.write_bytes(data)
    with pytest.raises(FormatError):
        deleted(with_vectors(tmp_path, vector))


def test_a_kind_that_is_not_known_is_refused(tmp_path: Path) -> None:
    vector = inline_vector([1]) | {"storageType": "x"}
    with pytest.raises(UnsupportedFeatureError, match="not known"):
        deleted(with_vectors(tmp_path, vector))


@pytest.mark.parametrize("text", ["abcd", "abc~d", "#####"])
def test_a_text_that_is_no_z85_is_an_error(text: str) -> None:
    with pytest.raises(FormatError):
        decode_z85(text)
    assert decode_z85("HelloWorld") == bytes.fromhex("864fd26fb559f75b")
