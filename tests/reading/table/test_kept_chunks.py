"""What an open table keeps of chunks: where their pages are, and values after a vain search."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.reading.rows.stored_column import StoredColumn
from secure_bloom.reading.table.kept_chunks import ChunkArrays
from secure_bloom.running.memory_budget import MemoryShare
from testing.tables import KEYRING, Mode, write

#: Rows of a page and of a file, and bytes of a text.
PAGE, ROWS, WIDTH = 100, 2000, 50
OTHERS = ["a", "b", "c"]


def rows(shift: int = 0) -> pa.Table:
    texts = [f"{n + shift:05d}".ljust(WIDTH, "x") for n in range(ROWS)]
    # Lists have pages of as many values, and the page that the last value of a row may begin.
    lists = [[text] * (n % 3 > 0) for n, text in enumerate(texts)]
    columns = {"a": texts, "b": texts, "c": lists}
    return pa.table({"key": pa.array(range(ROWS), pa.int32()), **columns})


def lake(tmp_path: Path, mode: Mode = Mode.PLAIN, **options: Any) -> Path:
    """One row group without page indexes, of which the columns have many pages."""
    options = {"use_dictionary": False, "compression": "none", "row_group_size": ROWS, **options}
    options |= {"data_page_size": 1, "write_batch_size": PAGE}
    keys = {"k_pii": ["key", *OTHERS]}
    folder = tmp_path / "lake"
    folder.mkdir(exist_ok=True)
    write(folder / "x.parquet", rows(), mode, column_keys=keys, **options)
    return folder


def bytes_read(table: sb.Table, key: int) -> int:
    report = table.explain(f"key = {key}")
    assert report.rows == 1
    return sum(file.bytes_pages for file in report.files)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("options", [{}, {"use_dictionary": OTHERS}, {"write_page_index": True}])
def test_only_the_pages_with_the_rows_are_read_once_they_were_located(
    tmp_path: Path, mode: Mode, options: dict[str, Any]
) -> None:
    folder = lake(tmp_path, mode, **options)
    with sb.open_table(folder, keys=KEYRING) as table:
        first, later = bytes_read(table, 1234), bytes_read(table, 567)
        # All of the searched column; of each other one a page, and its dictionary.
        dictionary = ROWS * WIDTH * 1.2 if "use_dictionary" in options else 0
        assert later < 6 * ROWS + len(OTHERS) * (2 * PAGE * WIDTH + dictionary)
        if not options:
            # The end of the file came with its footer.
            assert first > 2 * ROWS * WIDTH
        for n in (0, PAGE - 1, PAGE, ROWS - 1):
            assert table.read(f"key = {n}").equals(rows().slice(n, 1))


@pytest.mark.parametrize("has_extension", [True])
def test_only_the_modules_of_these_pages_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, decrypt = list[ModuleType](), ColumnCipher.decrypt

    def counted(self: ColumnCipher, module_type: ModuleType, *args: Any, **kwargs: Any) -> bytes:
        opened.append(module_type)
        return decrypt(self, module_type, *args, **kwargs)

    with sb.open_table(lake(tmp_path, Mode.ENCRYPTED), keys=KEYRING) as table:
        table.read("key = 7")
        monkeypatch.setattr(ColumnCipher, "decrypt", counted)
        assert table.read("key = 555").num_rows == 1
    # Those of the searched column, and one of each other column.
    wanted = ROWS // PAGE + len(OTHERS)
    assert opened.count(ModuleType.DATA_PAGE_HEADER) == opened.count(ModuleType.DATA_PAGE) == wanted


@pytest.mark.parametrize("memory", [0, 1000, "1MiB"])
def test_answers_do_not_depend_on_the_places_that_fit_into_memory(
    tmp_path: Path, memory: int | str
) -> None:
    folder = lake(tmp_path, row_group_size=500)
    with sb.open_table(folder, keys=KEYRING, memory=memory) as table:
        for n in [*range(0, ROWS, 97)] * 2:
            assert table.read(f"key = {n}").equals(rows().slice(n, 1))
        chunks = table._opened().chunks
        assert chunks is not None
        assert (chunks.places.used > 0) is (memory == "1MiB")


def test_a_file_that_took_the_place_of_another_is_located_anew(tmp_path: Path) -> None:
    folder = lake(tmp_path)
    with sb.open_table(folder, keys=KEYRING) as table:
        for _ in range(2):
            assert table.read("key = 1234").equals(rows().slice(1234, 1))
        new = rows(shift=7).slice(0, ROWS - 1)
        write(folder / "new", new, row_group_size=ROWS, data_page_size=1, write_batch_size=70)
        (folder / "new").rename(folder / "x.parquet")
        for _ in range(2):
            assert table.read("key = 1234").equals(new.slice(1234, 1))


def test_rows_are_found_by_many_threads(tmp_path: Path) -> None:
    folder = lake(tmp_path, row_group_size=200)
    with (
        sb.open_table(folder, keys=KEYRING, memory="16KiB") as table,
        ThreadPoolExecutor(8) as threads,
    ):
        asked = range(0, ROWS, 41)
        found = threads.map(lambda n: table.read(f"key = {n}"), asked)
        for n, row in zip(asked, found, strict=True):
            assert row.equals(rows().slice(n, 1))


# --- Chunks that were searched in vain ---

#: Values of a column, values that it does not have, and a writer's options.
SEARCHED: list[tuple[list[Any], list[Any], dict[str, Any]]] = [
    ([f"k{n:04d}" for n in range(600)], [f"k{n:04d}x" for n in range(70)], {}),
    # The dictionary is given up on the way, so that later pages are PLAIN.
    (
        [f"k{n:04d}" for n in range(600)],
        [f"k{n:04d}x" for n in range(70)],
        {"dictionary_pagesize_limit": 500, "data_page_size": 1, "write_batch_size": 50},
    ),
    ([*range(0, 1200, 2)], [*range(1, 140, 2)], {"use_dictionary": False}),
    ([0.0, -0.0, *map(float, range(2, 1200, 2))], [*map(float, range(1, 140, 2))], {}),
]


@pytest.mark.parametrize("has_extension", [True])
@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED])
@pytest.mark.parametrize(("present", "absent", "options"), SEARCHED)
def test_a_row_group_is_searched_in_vain_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: Mode,
    present: list[Any],
    absent: list[Any],
    options: dict[str, Any],
) -> None:
    path, searched, find = tmp_path / "x.parquet", list[None](), StoredColumn.find
    column = pa.array([None, *present, None])
    # Half of them in each row group: bounds rule nothing out.
    table = pa.table({"key": pa.concat_arrays([column[::2], column[1::2]])})
    write(path, table, mode, column_keys={"k_pii": ["key"]}, row_group_size=301, **options)
    sb.add_bloom_filters(path, columns={"key": 0.3}, keys=KEYRING)

    def counted(self: StoredColumn, *args: Any) -> Any:
        searched.append(None)
        return find(self, *args)

    monkeypatch.setattr(StoredColumn, "find", counted)

    def searches(*values: Any) -> int:
        before = len(searched)
        assert not opened.read([("key", "in", values)]).num_rows
        return len(searched) - before

    with sb.open_table(path, keys=KEYRING) as opened:
        assert sum(map(searches, absent)) == 2
        # A list asks each filter for each of its values.
        assert searches(*absent) == searches(absent[0]) == 0
        for value in (present[0], present[1], present[-1]):
            rows = [it for it in present if it == value]
            assert opened.read([("key", "=", value)])["key"].to_pylist() == rows
            assert opened.read([("key", "in", [*absent, value])])["key"].to_pylist() == rows


# --- The memory that they take ---


def test_those_that_were_used_last_stay() -> None:
    share = MemoryShare(8 * 3 * 330)
    places, few = ChunkArrays(share.account(), 8), np.zeros((2, 4), np.int64)
    for n in range(3):
        places.keep(("x", n, 0), few)
    assert places.of(("x", 0, 0)) is few
    places.keep(("x", 3, 0), few)
    assert [places.of(("x", n, 0)) is not None for n in range(4)] == [True, False, True, True]
    assert share.used == places.used <= share.most // 8
    places.keep(("x", 4, 0), np.zeros((10_000, 4), np.int64))
    assert share.used == places.used <= share.most // 8


def test_they_take_no_more_than_is_counted() -> None:
    places = ChunkArrays(MemoryShare(1 << 30).account(), 8)
    chunks = [("x", 1000 + n, 0) for n in range(1000)]
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for n, it in enumerate(chunks):
            places.keep(it, np.zeros((1 + n % 7, 4), np.int64))
        now, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert places.used / 2 < now - before <= places.used
