"""Bounds and filters of columns stay in memory: answers are the same, and nothing is read."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.stored import encode_bloom_filter
from secure_bloom.reading.pruning.filter_reads import ask_filters
from secure_bloom.reading.pruning.kept_columns import KeptColumns
from secure_bloom.storage.inputs import CountedFile
from testing.surgery import flip
from testing.tables import KEYRING, Mode, write

FILES, ROWS, GROUP = 5, 40, 10


def part(number: int) -> pa.Table:
    """Values of each type with filters; a row group has values of the whole range."""
    rng = np.random.default_rng(number)
    ids = rng.permutation(ROWS) * FILES + number
    return pa.table(
        {
            "n": pa.array(ids, pa.int64()),
            "text": [f"user{i:04}" for i in ids],
            "price": pa.array([f"{i}.50" for i in ids]).cast(pa.decimal128(9, 2)),
            "at": pa.array(ids * 1000, pa.timestamp("us", tz="UTC")),
            "share": pa.array(ids / 4, pa.float64()),
        }
    )


@pytest.fixture(scope="module", params=[Mode.PLAIN, Mode.ENCRYPTED])
def unchanged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake for tests that only read."""
    folder = tmp_path_factory.mktemp("lake")
    keys = {"k_pii": ["text", "n"]}
    for number in range(FILES):
        path = folder / f"{number}.parquet"
        write(path, part(number), request.param, row_group_size=GROUP, column_keys=keys)
    columns = ["n", "text", "price", "at", "share"]
    sb.add_bloom_filters(folder, columns=columns, keys=KEYRING)
    return folder


@pytest.fixture
def lake(unchanged: Path, tmp_path: Path) -> Path:
    """The same lake, of the test alone."""
    return Path(shutil.copytree(unchanged, tmp_path / "lake"))


CONDITIONS = [
    "n = 77",
    "n = 999",
    "n in (77, 999, 12, 130)",
    "text = 'user0077'",
    "text in ('user0077', 'nobody', 'user0003')",
    "price = 77.5",
    "at = '1970-01-01T00:00:00.077Z'",
    "share = 2.5",
    "n = 77 and text = 'user0077'",
    "n = 77 and text = 'user0078'",
    "n = 77 or text = 'user0003'",
    "n = 77 and share > 3",
    "n > 10 and n < 14",
]


def test_rows_come_in_the_order_of_their_row_groups(tmp_path: Path) -> None:
    rows = pa.table({"n": range(400)})
    path = write(tmp_path / "x.parquet", rows, Mode.PLAIN, row_group_size=GROUP)
    sb.add_bloom_filters(path, columns=["n"])
    wanted = list(range(5, 400, 10))
    with sb.open_table(path) as table:
        for _ in range(2):
            assert table.read([("n", "in", wanted)])["n"].to_pylist() == wanted


@pytest.mark.parametrize("where", CONDITIONS)
@pytest.mark.parametrize("memory", ["256MiB", "20KiB", 0])
def test_rows_are_those_of_one_read(unchanged: Path, where: str, memory: str | int) -> None:
    wanted = sb.read_table(unchanged, where=where, keys=KEYRING)
    with sb.open_table(unchanged, keys=KEYRING, memory=memory) as table:
        for _ in range(3):
            assert table.read(where).equals(wanted)


@pytest.mark.usefixtures("lake")
def test_the_second_lookup_of_an_absent_key_reads_nothing(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sb.open_table(lake, keys=KEYRING) as table:
        assert table.read("text = 'user9999'").num_rows == 0
        monkeypatch.delattr(CountedFile, "_read")
        monkeypatch.setattr("secure_bloom.storage.local.LocalFile._read", None)
        assert table.read("text = 'user9999'").num_rows == 0
        assert table.read("text in ('user9998', 'user9997')").num_rows == 0


def test_what_is_kept_is_shown_and_bounded(lake: Path) -> None:
    with sb.open_table(lake, keys=KEYRING) as table:
        assert "0 bytes of filters kept" in repr(table)
        table.read("n = 999")
        table.read("text = 'user9999'")
        kept = table._columns  # type: ignore[union-attr]
        assert isinstance(kept, KeptColumns)
        assert len(kept._columns) == 2
        both = kept.memory
        assert 0 < both < 100_000
        used = table._memory.used  # type: ignore[union-attr]
    # Room for one column beside the footers: the one used longest ago goes.
    with sb.open_table(lake, keys=KEYRING, memory=used - both // 3) as table:
        for where in ("n = 999", "text = 'user9999'", "n = 999"):
            table.read(where)
            memory = table._memory
            assert memory is not None
            assert memory.used <= memory.most
        (column,) = table._columns._columns.values()  # type: ignore[union-attr]
        assert len(column.known) == FILES


@pytest.mark.parametrize("has_extension", [True])
def test_of_filters_those_that_bounds_leave_are_loaded(tmp_path: Path) -> None:
    rows = pa.table({"n": range(400), "m": [i % 7 * 100 for i in range(400)]})
    path = write(tmp_path / "x.parquet", rows, Mode.PLAIN, row_group_size=GROUP)
    sb.add_bloom_filters(path, columns=["n", "m"])

    def loaded(table: sb.Table) -> list[int]:
        columns = table._columns._columns.values()  # type: ignore[union-attr]
        every = [segment for column in columns for segment in column.segments.values()]
        return [int((segment.bounds[:, 0] >= 0).sum()) for segment in every]

    with sb.open_table(path) as table:
        assert table.read("n = 77").num_rows == 1
        assert loaded(table) == [1]
        assert table.read("n in (77, 105, 106, 333)").num_rows == 4
        assert loaded(table) == [3]
        # What one column rules out is not asked of another.
        assert table.read("n = 205 and m = 300").num_rows == 0
        assert sorted(loaded(table)) == [1, 4]
        for number in range(0, 400, 9):
            assert table.read(f"n = {number}").num_rows == 1
        assert sorted(loaded(table)) == [1, 40]
        assert table._memory.used <= 200_000  # type: ignore[union-attr]


def test_a_refresh_drops_the_filters_of_files_that_are_gone(tmp_path: Path) -> None:
    for number in range(FILES):
        write(tmp_path / f"{number}.parquet", part(number), Mode.PLAIN, row_group_size=GROUP)
    sb.add_bloom_filters(tmp_path, columns=["n"])
    with sb.open_table(tmp_path) as table:
        table.read("n = 77")
        used = table._memory.used  # type: ignore[union-attr]
        for _ in range(10):
            write(tmp_path / "2.parquet", part(2), Mode.PLAIN, row_group_size=GROUP)
            sb.add_bloom_filters(tmp_path / "2.parquet", columns=["n"])
            table.refresh()
            assert table.read("n = 77").num_rows == 1
        assert table._memory.used <= 1.5 * used  # type: ignore[union-attr]


def test_a_refresh_keeps_the_filters_of_files_that_did_not_change(lake: Path) -> None:
    with sb.open_table(lake, keys=KEYRING) as table:
        assert table.read("n = 77").num_rows == 1
        write(lake / "0a.parquet", part(9), Mode.PLAIN, row_group_size=GROUP)
        (lake / "4.parquet").unlink()
        table.refresh()
        (column,) = table._columns._columns.values()  # type: ignore[union-attr]
        assert len(column.known) == FILES - 1
        for where in ("n = 77", "n = 9", "n = 4"):
            assert table.read(where).equals(sb.read_table(lake, where=where, keys=KEYRING))


def test_a_damaged_filter_stays_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", part(0), Mode.ENCRYPTED, column_keys={"k_pii": ["text"]})
    before = path.stat().st_size
    sb.add_bloom_filters(path, columns=["text"], keys=KEYRING, in_place=True)
    flip(path, before + 60)
    with sb.open_table(tmp_path, keys=KEYRING) as table:
        for _ in range(2):
            with pytest.raises(sb.IntegrityError):
                table.read("text = 'user0005'")


def test_one_call_answers_as_each_filter_does() -> None:
    """The twin of the kernel: the filters, asked one by one."""
    rng = np.random.default_rng(3)
    filters, data, bounds = [], bytearray(), []
    for blocks in (1, 2, 8):
        bloom_filter = SplitBlockBloomFilter(blocks)
        bloom_filter.insert_hashes(rng.integers(0, 2**64, 4 * blocks, np.uint64))
        filters.append(bloom_filter)
        start = len(data)
        data += encode_bloom_filter(bloom_filter, None)
        bounds.append((start, len(data)))
    hashes = rng.integers(0, 2**64, 400, np.uint64)
    for first in range(0, 400, 2):
        runs = np.array([(first, first + 2)] * 3, np.int64)
        found = ask_filters(data, np.array(bounds, np.int64), hashes, runs)
        wanted = [it.check_hashes(hashes[first : first + 2]).any() for it in filters]
        assert found.tolist() == wanted
