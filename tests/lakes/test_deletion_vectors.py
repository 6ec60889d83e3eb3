"""Deletion vectors, inline and in files, as deltalake reads them, and damaged ones."""

from __future__ import annotations

import struct
import time
import zlib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyroaring
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.lakes import deletion_vectors, snapshot
from secure_bloom.lakes.deletion_vectors import (
    DeletedRows,
    PaimonDeletedRows,
    decode_z85,
    positions,
)
from secure_bloom.lakes.paimon.table import PaimonVector
from secure_bloom.running.memory_budget import VARIABLE, MemoryBudgetError
from testing.delta_logs import add, commit, inline_vector, start, vector_file, z85
from testing.growth import calls

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


MOST = 10**9
#: Arrays, runs, bit sets, several containers, and more than 32 bits.
KINDS = {
    "empty": [],
    "array": [3, 5, 70_000],
    "run": range(10_000),
    "bit set": range(0, 40_000, 3),
    "many containers": [*range(0, 400_000, 1000), *range(500_000, 600_000)],
    "beyond 32 bits": [1, 2**32 + 7, 5 * 2**32],
    "runs and arrays": [*range(100), 200_000, 200_002],
}


def encoded(numbers: object, *, with_runs: bool) -> bytes:
    bitmap = pyroaring.BitMap64(numbers)
    if with_runs:
        bitmap.run_optimize()
    return bitmap.serialize()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("with_runs", [True, False])
def test_the_numbers_are_those_that_were_written(kind: str, with_runs: bool) -> None:
    found = positions(encoded(KINDS[kind], with_runs=with_runs), most=MOST)
    assert found.tolist() == list(KINDS[kind])


@given(st.sets(st.integers(0, 300_000) | st.integers(0, 2**40)), st.booleans())
def test_any_numbers_come_back(numbers: set[int], with_runs: bool) -> None:
    assert positions(encoded(numbers, with_runs=with_runs), most=MOST).tolist() == sorted(numbers)


@given(st.sampled_from(sorted(KINDS)), st.integers(0, 200), st.integers(0, 255))
def test_damage_is_an_error_or_other_numbers(kind: str, at: int, byte: int) -> None:
    data = bytearray(encoded(KINDS[kind], with_runs=True))
    data[at % len(data)] = byte
    try:
        found = positions(bytes(data), most=MOST)
    except FormatError:
        return
    assert (found[1:] > found[:-1]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_that_are_missing_or_too_many_are_an_error(kind: str) -> None:
    data = encoded(KINDS[kind], with_runs=True)
    for other in (data[:-1], data + b"\0"):
        with pytest.raises(FormatError):
            positions(other, most=MOST)


def test_more_numbers_than_rows_are_never_built() -> None:
    with pytest.raises(FormatError, match="more than "):
        positions(encoded(range(65_536), with_runs=True), most=65_535)


def runs(count: int) -> bytes:
    """A bitmap of 65,536 numbers for each container of 10 bytes."""
    keys = b"".join(struct.pack("<HH", key, 0xFFFF) for key in range(count))
    marks = b"\xff" * ((count + 7) // 8)
    data = struct.pack("<HHH", 1, 0, 0xFFFF) * count
    return struct.pack("<HH", 12347, count - 1) + marks + keys + bytes(4 * count) + data


def test_numbers_that_no_log_has_counted_stay_within_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "16MiB")
    content = (1581511376).to_bytes(4, "big") + runs(200)
    framed = len(content).to_bytes(4, "big") + content + zlib.crc32(content).to_bytes(4, "big")
    path = tmp_path / "index"
    path.write_bytes(framed)
    vector = PaimonVector(path=str(path), offset=0, length=len(content), cardinality=None)
    with pytest.raises(MemoryBudgetError, match="a deletion vector takes"):
        PaimonDeletedRows(vector=vector).positions(1 << 31)
    monkeypatch.setenv(VARIABLE, "1GiB")
    assert len(PaimonDeletedRows(vector=vector).positions(1 << 31)) == 200 << 16


def test_a_vector_of_a_sparse_file_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "16MiB")
    path = tmp_path / "index"
    with path.open("wb") as sparse:
        sparse.truncate(2 << 30)
    vector = PaimonVector(path=str(path), offset=0, length=1 << 30, cardinality=1)
    with pytest.raises(MemoryBudgetError):
        PaimonDeletedRows(vector=vector).positions(10)


def test_many_bitmaps_take_time_that_grows_with_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def one(cursor: Any, *_: int) -> Any:
        cursor.bytes(8)
        return np.zeros(1, np.int64)

    monkeypatch.setattr(deletion_vectors, "_bitmap32", one)
    count = 50_000
    data = struct.pack("<Q", count) + b"".join(struct.pack("<IQ", n, 0) for n in range(count))
    start = time.process_time()
    assert len(positions(data, most=count)) == count
    assert time.process_time() - start < 5


def test_vectors_of_threads_share_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_vectors(tmp_path, *vector_file(tmp_path, [1, 2], [3], prefix="ab"))
    waited: list[int] = []

    def reserved(size: int) -> Any:
        waited.append(size)
        return nullcontext()

    monkeypatch.setattr(deletion_vectors, "reserved", reserved)
    assert deleted(tmp_path) == [[1, 2], [3]]
    assert len(waited) == 2
    assert all(waited)


def test_positions_that_are_kept_share_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "64MiB")
    data = struct.pack("<I", 1681511377) + encoded(range(1_000_000), with_runs=True)

    def read() -> Any:
        return deletion_vectors._rows(data, 1_000_000, 1_000_000)

    # 8 MB each.
    kept = [read() for _ in range(8)]
    with pytest.raises(MemoryBudgetError, match="what deletion vectors delete"):
        read()
    kept.pop()
    assert len(read()) == 1_000_000


@pytest.mark.parametrize(("step", "most"), [(1, 12), (2, 1)], ids=["runs", "arrays"])
def test_small_containers_take_few_calls(step: int, most: int) -> None:
    count = 2_000
    found = [(key << 16) + n for key in range(count) for n in range(0, 9 * step, step)]
    data = encoded(found, with_runs=True)
    assert positions(data, most=MOST).tolist() == found
    assert calls(lambda: positions(data, most=MOST)) < most * count


def test_empty_bitmaps_count_towards_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has twelve bytes, and takes a thousand times as long to read."""
    monkeypatch.setenv(VARIABLE, "16MiB")
    empty = [struct.pack("<III", key, 12346, 0) for key in range(10_000)]
    with pytest.raises(MemoryBudgetError, match="a deletion vector takes"):
        positions(struct.pack("<Q", 10_000) + b"".join(empty), most=MOST)
    assert not len(positions(struct.pack("<Q", 9) + b"".join(empty[:9]), most=MOST))
