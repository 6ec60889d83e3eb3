"""Bytes that chunks may take decoded: never fewer than they do, few where their pages tell it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.parquet.decoded_bounds import harmless_size
from secure_bloom.reading.rows.decoded_sizes import decoded_size
from secure_bloom.running.memory_budget import VARIABLE, MemoryBudgetError
from testing.surgery import edit_column, opened
from testing.tables import Mode
from testing.tables import write as write_table

#: Sizes are told alike in both worlds.
pytestmark = pytest.mark.parametrize("has_extension", [True])

ROWS = 5000
COLUMNS: dict[str, tuple[pa.Array, dict[str, Any]]] = {
    "numbers": (pa.array(range(ROWS)), {}),
    "plain": (pa.array([f"text {n}" for n in range(ROWS)]), {"use_dictionary": False}),
    "dictionary": (pa.array(["a" * 900, "b"] * (ROWS // 2)), {}),
    "prefixes": (
        pa.array(["p" * 200 + str(n) for n in range(ROWS)]),
        {"use_dictionary": False, "column_encoding": {"c": "DELTA_BYTE_ARRAY"}},
    ),
    "lists": (pa.array([[n, n] for n in range(ROWS)]), {}),
    "nulls": (pa.nulls(ROWS, pa.string()), {}),
}


def write(path: Path, table: pa.Table, mode: Mode = Mode.PLAIN, **options: Any) -> Path:
    return write_table(path, table, mode, row_group_size=ROWS, **options)


def size_of(path: Path, column: str = "c") -> int:
    with opened(path) as it:
        (leaf,) = (leaf.name for leaf in it.footer.leaves if leaf.name.startswith(column))
        return decoded_size(it.file, it.chunk(0, leaf)).most


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.UNIFORM], ids=lambda mode: mode.name)
@pytest.mark.parametrize("memory", ["1GiB", "1MiB"])
@pytest.mark.parametrize("name", COLUMNS)
def test_no_column_takes_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, memory: str, mode: Mode
) -> None:
    monkeypatch.setenv(VARIABLE, memory)
    array, options = COLUMNS[name]
    path = write(tmp_path / "x.parquet", pa.table({"c": array}), mode, **options)
    # Nulls take a bit each, for which there is room in the size of the largest page.
    assert size_of(path) >= array.nbytes - ROWS // 8 - 8


def test_pages_tell_that_a_chunk_is_small_where_the_footer_alone_would_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = pa.array([f"text {n}" for n in range(ROWS)])
    options = {"use_dictionary": False, "compression": "BROTLI"}
    path = write(tmp_path / "x.parquet", pa.table({"c": array}), **options)
    monkeypatch.setenv(VARIABLE, "8MiB")
    assert size_of(path) < 4 * array.nbytes < harmless_size()


def test_the_longest_entry_of_a_dictionary_counts_and_not_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = pa.array([f"{n % 100:0100}" for n in range(ROWS)])
    path = write(tmp_path / "x.parquet", pa.table({"c": array}))
    monkeypatch.setenv(VARIABLE, "1MiB")
    # 100 entries of 104 bytes: all of them for each value would be 52 MB.
    assert array.nbytes <= size_of(path) < 1_000_000


def test_lists_that_cannot_be_cut_have_to_fit_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"c": [[7] * 300_000]}), path)
    monkeypatch.setenv(VARIABLE, "1MiB")
    with pytest.raises(MemoryBudgetError, match="the column's lists") as caught:
        size_of(path)
    assert (caught.value.row_group, caught.value.column) == (0, "c.list.element")


def test_a_file_that_is_not_sound_is_taken_for_the_worst(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = pa.array([f"text {n}" for n in range(ROWS)])
    path = write(tmp_path / "x.parquet", pa.table({"c": array}), use_dictionary=False)
    edit_column(path, 0, "c", lambda meta: setattr(meta, "num_values", ROWS + 1))
    monkeypatch.setenv(VARIABLE, "1MiB")
    assert size_of(path) > 100 * array.nbytes
