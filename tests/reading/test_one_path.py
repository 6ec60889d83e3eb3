"""Every door to rows takes few of them from their pages, and a list of keys is one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.parquet.page_values import PageValues
from secure_bloom.parquet.pages import Page
from secure_bloom.parquet.schema import Leaf
from secure_bloom.reading.pruning import filter_reads, kept_columns
from secure_bloom.reading.rows.column_decoder import ColumnDecoder
from secure_bloom.reading.rows.stored_column import StoredColumn
from secure_bloom.reading.table_read import planned_rows
from secure_bloom.storage.inputs import InputFile
from testing.tables import KEYRING, Mode, write

#: Without the extension the searched column is decoded as a whole.
pytestmark = pytest.mark.parametrize("has_extension", [True])

#: Rows of a file, of a row group and of a page.
ROWS, GROUP, PAGE = 4000, 1000, 100
FILES = 2
TABLE = pa.table(
    {
        "key": [f"{7919 * n % (10 * ROWS):06d}" for n in range(ROWS * FILES)],
        "note": [f"note {n}" for n in range(ROWS * FILES)],
        "n": range(ROWS * FILES),
    }
)
WANTED = TABLE.slice(1234, 1)
KEY = WANTED["key"][0].as_py()


@pytest.fixture(scope="module", params=[Mode.PLAIN, Mode.ENCRYPTED])
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    options = {"row_group_size": GROUP, "data_page_size": 1, "write_batch_size": PAGE}
    options |= {"use_dictionary": False, "write_page_index": True}
    for number in range(FILES):
        part, path = TABLE.slice(number * ROWS, ROWS), folder / f"{number}.parquet"
        write(path, part, request.param, column_keys={"k_pii": TABLE.column_names}, **options)
    sb.add_bloom_filters(folder, columns=["key"], keys=KEYRING)
    return folder


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, bytes]]:
    """How often each page is decompressed, by column and first bytes. pyarrow decodes none."""
    found, values_of = Counter[tuple[str, bytes]](), PageValues.of

    def counted(leaf: Leaf, codec: Any, page: Page) -> Any:
        found[leaf.name, bytes(page.stored[:40])] += 1
        return values_of(leaf, codec, page)

    monkeypatch.setattr(PageValues, "of", counted)
    monkeypatch.delattr(ColumnDecoder, "_by_pyarrow")
    return found


def by_plan(lake: Path) -> pa.Table:
    """As the executors of Spark read."""
    plan = sb.plan_read(lake, where=[("key", "=", KEY)], keys=KEYRING)
    rows = [batch for file in plan.files for batch in planned_rows(plan, file, KEYRING)]
    return pa.Table.from_batches(rows, plan.schema)


def by_table(ask: Callable[[sb.Table], Any]) -> Callable[[Path], Any]:
    def asked(lake: Path) -> Any:
        with sb.open_table(lake, keys=KEYRING) as table:
            return ask(table)

    return asked


def by_polars(table: sb.Table) -> pa.Table:
    return table.scan_polars().filter(pl.col("key") == KEY).collect().to_arrow()


WAYS: dict[str, Callable[[Path], Any]] = {
    "read_table": lambda lake: sb.read_table(lake, where=[("key", "=", KEY)], keys=KEYRING),
    "Table.read": by_table(lambda table: table.read([("key", "=", KEY)])),
    "scan_polars": by_table(by_polars),
    "Table.sql": by_table(lambda table: table.sql(f"SELECT * FROM self WHERE key = '{KEY}'")),
    "Spark": by_plan,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_door_reads_a_page_a_column(
    lake: Path, way: str, pages: Counter[tuple[str, bytes]]
) -> None:
    assert WAYS[way](lake).to_pydict() == WANTED.to_pydict()
    counts = Counter(name for name, _ in pages)
    # The searched column of this row group, and maybe of one that its filter let pass.
    assert counts.pop("key") in (GROUP // PAGE, 2 * GROUP // PAGE)
    assert counts == {"note": 1, "n": 1}
    assert set(pages.values()) == {1}


def test_a_probe_reads_filters_alone_and_once(
    lake: Path, pages: Counter[tuple[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ask = Counter[str](), filter_reads.ask_filters

    def counted(*arguments: Any) -> Any:
        asked["filters"] += len(arguments[2]) > 0
        return ask(*arguments)

    with sb.open_table(lake, keys=KEYRING) as table:
        wanted = sb.probe(lake, "key", [KEY, "absent"], keys=KEYRING)
        assert table.probe("key", [KEY, "absent"]) == wanted
        monkeypatch.setattr(kept_columns, "ask_filters", counted)
        monkeypatch.setattr(InputFile, "view_at", None)
        monkeypatch.setattr(InputFile, "read_at", None)
        # From memory, all row groups of all files in one call.
        assert table.probe("key", [KEY, "absent"]) == wanted
        assert asked == {"filters": 1}
    assert not pages


@pytest.mark.parametrize("way", ["read_table", "Table.read"])
def test_ten_thousand_keys_are_one_pass_a_row_group(
    lake: Path, way: str, pages: Counter[tuple[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    searched, find = Counter[tuple[str, int, str]](), StoredColumn.find

    def counted(self: StoredColumn, sought: Any) -> Any:
        searched[self._footer.path, self._chunk.row_group, self._chunk.leaf.name] += 1
        return find(self, sought)

    monkeypatch.setattr(StoredColumn, "find", counted)
    asked = Counter[tuple[int, int]]()
    for module in (filter_reads, kept_columns):
        monkeypatch.setattr(module, "ask_filters", counting(asked, module.ask_filters))
    present = [TABLE["key"][n].as_py() for n in range(3, ROWS, 400)]
    keys = [*present, *(f"absent{n}" for n in range(10_000 - len(present)))]
    if way == "read_table":
        found = sb.read_table(lake, where=[("key", "in", keys)], keys=KEYRING)
    else:
        with sb.open_table(lake, keys=KEYRING) as table:
            found = table.read([("key", "in", keys)])
    assert found["key"].to_pylist() == present
    groups = FILES * ROWS // GROUP
    # Each filter is asked for the list once, and each column of a row group is searched once.
    assert sum(asked.values()) <= groups
    assert set(asked.values()) == {1}
    assert len(searched) <= groups
    assert set(searched.values()) == {1}
    # No page is decompressed twice.
    assert set(pages.values()) == {1}


def counting(asked: Counter[tuple[int, int]], ask: Callable[..., Any]) -> Callable[..., Any]:
    """Count how often each filter is asked, by the address of all bits and its number."""
    kept = []

    def counted(content: Any, bounds: Any, hashes: Any, runs: Any, **how: Any) -> Any:
        if len(hashes):
            kept.append(content)
            start = np.frombuffer(content, np.uint8).ctypes.data
            asked.update((start, n) for n in np.flatnonzero(runs[:, 1] > runs[:, 0]).tolist())
        return ask(content, bounds, hashes, runs, **how)

    return counted
