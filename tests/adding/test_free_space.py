"""What appends leave in a file: a replace gives the room back, rotation blanks old wrapped keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from thrift.Thrift import TType

import secure_bloom as sb
from secure_bloom.adding.free_space import find_old_footers, reclaimed_end
from secure_bloom.adding.in_place import append_mark
from secure_bloom.bloom import xxh64
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.stored import encode_bloom_filter
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.parquet.pages import chunk_extent
from testing.surgery import Opened, edit_column, edit_footer, filter_of, filter_place, opened
from testing.tables import KEYRING, Mode, customers, write
from testing.thrift import trees
from testing.thrift.metadata import KeyValue

COLUMNS = ["email", "iban"]
#: Of a row of the last row group.
EMAIL = str(customers(300)["email"][250]).encode()
MODES = pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.SIGNED, Mode.ENCRYPTED])


def add(path: Path, columns: list[str] = COLUMNS, **options: bool) -> sb.AddReport:
    report = sb.add_bloom_filters(path, columns=columns, keys=KEYRING, **options)  # type: ignore[arg-type]
    assert not report.failed
    return report


@MODES
def test_a_plain_replace_gives_back_what_appends_have_left(tmp_path: Path, mode: Mode) -> None:
    path, once = (write(tmp_path / name, customers(300), mode, row_group_size=100) for name in "xy")
    add(once)
    for _ in range(3):
        report = add(path, in_place=True, replace_filters=True)
    assert "1 file grew by" in report.notes[0]
    assert path.stat().st_size > once.stat().st_size + 2 * 4096
    assert not add(path, replace_filters=True).notes
    assert path.stat().st_size == once.stat().st_size
    assert sb.read_table(path, keys=KEYRING).equals(customers(300))


@MODES
def test_filters_that_stay_and_all_before_them_stay(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x", customers(300), mode, row_group_size=100)
    add(path, ["iban"], in_place=True)
    add(path, ["email"], in_place=True)
    kept, size = filter_of(path, 2, "iban"), path.stat().st_size
    add(path, ["email"], replace_filters=True)
    assert path.stat().st_size < size
    assert filter_of(path, 2, "iban") == kept
    assert filter_of(path, 2, "email").check(EMAIL)
    assert sb.read_table(path, keys=KEYRING).equals(customers(300))


def test_a_mark_without_a_footer_before_it_is_none(tmp_path: Path) -> None:
    path = write(tmp_path / "x", customers(5), Mode.PLAIN)
    content = path.read_bytes()
    with opened(path, None) as it:
        footer = it.footer.tail.offset
    before = content[:footer] + b"no footer"
    path.write_bytes(before + append_mark(len(before)) + content[footer:])
    with opened(path, None) as it:
        assert find_old_footers(it.file, it.footer.read) == []


def test_no_room_is_given_back_while_the_key_of_any_column_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path / "x", customers(300), Mode.ENCRYPTED, row_group_size=100)
    add(path, ["id"], in_place=True)
    add(path, ["id"], in_place=True, replace_filters=True)
    few = sb.Keyring(master_keys={k: v for k, v in KEYRING.master_keys.items() if k != "k_pii"})
    with opened(path, few) as it:
        footer = it.footer.tail.offset
        assert find_old_footers(it.file, it.footer.read) != []
        assert reclaimed_end(it.file, it.footer.read, {}) == footer
    with opened(path) as it:
        assert reclaimed_end(it.file, it.footer.read, {}) < footer


def test_a_file_in_a_cell_is_not_taken_for_an_append(tmp_path: Path) -> None:
    inner = write(tmp_path / "inner", customers(5), Mode.PLAIN)
    add(inner, in_place=True)
    table = customers(1).set_column(0, "cell", [[inner.read_bytes()]])
    path = write(tmp_path / "x", table, Mode.PLAIN, compression="none")
    with opened(path, None) as it:
        assert find_old_footers(it.file, it.footer.read) == []


@pytest.mark.parametrize("mode", [Mode.SIGNED, Mode.ENCRYPTED])
def test_rotation_blanks_footers_that_hold_old_wrapped_keys(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x", customers(300), mode, row_group_size=100)
    add(path, in_place=True)
    add(path, ["city"], in_place=True)
    with opened(path, KEYRING) as it:
        assert len(find_old_footers(it.file, it.footer.read)) == 2
    policy = sb.KeyPolicy(
        footer_key="k_footer", columns={"email": ColumnRule(path="email", key="k_pii")}
    )
    moves = {"k_footer": "k_new", "k_pii": "k_new"}
    keys = sb.Keyring(master_keys={**KEYRING.master_keys, "k_new": bytes(16)})
    assert not sb.rotate_keys(path, policy=policy, moves=moves, keys=keys).failed
    # Whoever has the old master keys finds nothing in the file that they open.
    content = path.read_bytes()
    assert b"k_new" in content
    assert not any(name in content for name in (b"k_footer", b"k_pii"))
    with opened(path, keys) as it:
        assert find_old_footers(it.file, it.footer.read) == []
    assert sb.read_table(path, keys=keys).equals(customers(300))
    assert filter_of(path, 2, "email", keys).check(EMAIL)
    # A later append that is killed is mended all the same.
    before = path.read_bytes()
    sb.add_bloom_filters(path, columns=["score"], keys=keys, in_place=True)
    path.write_bytes(path.read_bytes()[:-20])
    report = sb.add_bloom_filters(path, columns=["email"], keys=keys, in_place=True)
    assert not report.failed
    assert path.read_bytes() == before


FILTER = encode_bloom_filter(SplitBlockBloomFilter.from_bytes(bytes(64)), None)


def _is_found(path: Path, column: str, values: list[object]) -> bool:
    [verdicts] = sb.probe(path, column, values, keys=KEYRING).files[0].row_groups
    where = [(column, "in", values)]
    rows = sb.read_table(path, where=where, columns=[column], keys=KEYRING)
    return {*verdicts.verdicts.values()} == {sb.Verdict.MAYBE} and len(rows) == len(values)


def _point(path: Path, column: str, extent: tuple[int, int]) -> None:
    def change(meta_data) -> None:
        meta_data.bloom_filter_offset, meta_data.bloom_filter_length = extent

    edit_column(path, 0, column, change)


def _footer(path: Path) -> int:
    with opened(path) as it:
        return it.footer.tail.offset


def _with_cell(path: Path, mode: Mode, cell: bytes) -> pa.Table:
    """A table whose last page, right before the footer, ends in the bytes of ``cell``."""
    table = customers(20).append_column("last", [[b"x"] * 19 + [cell]])
    write(path, table, mode, compression="none", use_dictionary=False)
    return table


@MODES
@pytest.mark.parametrize("lie", ["none", "length", "start"])
def test_a_page_that_ends_in_the_bytes_of_a_filter_stays(
    tmp_path: Path, mode: Mode, lie: str
) -> None:
    path = tmp_path / "x.parquet"
    table = _with_cell(path, mode, FILTER)
    end = _footer(path)

    def change(meta_data) -> None:
        if lie == "length":
            meta_data.total_compressed_size -= len(FILTER)
        elif lie == "start":
            meta_data.data_page_offset -= 40

    content = path.read_bytes()[:end]
    _point(path, "id", (end - len(FILTER), len(FILTER)))
    edit_column(path, 0, "last", change)
    add(path, ["id"], replace_filters=True)
    assert path.read_bytes()[:end] == content
    if lie == "none":
        assert sb.read_table(path, keys=KEYRING).equals(table)
    assert _is_found(path, "id", table["id"].to_pylist())


@MODES
@pytest.mark.parametrize("in_place", [False, True])
def test_a_filter_that_two_columns_share_stays_for_the_other(
    tmp_path: Path, mode: Mode, in_place: bool
) -> None:
    ids = pa.array(range(200), pa.int64())
    path = write(
        tmp_path / "x.parquet",
        pa.table({"a": ids, "b": ids, "email": ["x"] * 200, "iban": ["x"] * 200}),
        mode,
    )
    add(path, ["a"], in_place=in_place)
    place = filter_place(path, 0, "a")
    _point(path, "b", (place.start, place.stop - place.start))
    for _ in range(2):
        columns = {"a": sb.BloomFilterOptions(fpp=1e-6)}
        sb.add_bloom_filters(path, columns=columns, keys=KEYRING, replace_filters=True)
    assert filter_place(path, 0, "b") == place
    assert _is_found(path, "b", list(range(0, 200, 4)))
    assert _is_found(path, "a", list(range(0, 200, 4)))


def test_a_filter_that_begins_in_another_one_stays(tmp_path: Path) -> None:
    ids = pa.array(range(10), pa.int64())
    path = write(tmp_path / "x.parquet", pa.table({"a": ids, "b": ids}), Mode.PLAIN)
    inner = SplitBlockBloomFilter.from_bytes(bytes(32))
    inner.insert_fixed(np.arange(10, dtype="<i8"))
    stored = encode_bloom_filter(inner, None)
    bits = stored.ljust(64, b"\xff")
    outer = encode_bloom_filter(SplitBlockBloomFilter.from_bytes(bits), None)
    start = _footer(path)
    edit_footer(path, lambda _: outer)
    _point(path, "a", (start, len(outer)))
    _point(path, "b", (start + len(outer) - 64, len(stored)))
    add(path, ["a"], replace_filters=True)
    assert _is_found(path, "b", list(range(10)))
    assert _is_found(path, "a", list(range(10)))


@pytest.mark.parametrize("replace", [False, True])
def test_a_filter_inside_the_footer_stays(tmp_path: Path, replace: bool) -> None:
    held = SplitBlockBloomFilter.from_bytes(b"\x7f" * 32)
    hashes = xxh64.hash_fixed(np.arange(100, dtype="<i8"))
    ids = pa.array(np.flatnonzero(held.check_hashes(hashes)), pa.int64())
    stored = encode_bloom_filter(held, None)
    path = tmp_path / "x.parquet"
    table = pa.table({"a": ids, "b": ids, "email": ["x"] * len(ids)})
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"filter": stored.decode()})
    add(path, ["a"])
    for _ in range(2):
        # The second time the offsets have as many digits as they need.
        _point(path, "b", (path.read_bytes().rindex(stored), len(stored)))
    assert _is_found(path, "b", ids.to_pylist())
    add(path, ["a", "email"], replace_filters=replace)
    sb.hudi.add_record_key_filter(path, column="email")
    assert _is_found(path, "b", ids.to_pylist())


@pytest.mark.parametrize("what", ["pages", "dictionary", "offset index", "column index"])
def test_what_the_footer_itself_holds_stays(tmp_path: Path, what: str) -> None:
    """A value of key-value metadata holds a chunk, or a page index, that the footer names."""
    ids = pa.array(range(200), pa.int64())
    path = tmp_path / "x.parquet"
    options = {"use_dictionary": ["b"] if what == "dictionary" else False}
    pq.write_table(
        pa.table({"a": ids, "b": ids}), path, write_page_index=what.endswith("index"), **options
    )
    with opened(path) as it:
        chunk = it.chunk(0, "b")
        entry, (start, length) = chunk.column_chunk, chunk_extent(chunk)
        if what == "offset index":
            start, length = entry.offset_index_offset, entry.offset_index_length
        elif what == "column index":
            start, length = entry.column_index_offset, entry.column_index_length
        held = it.file.read_at(start, length)

    def move(it: Opened) -> None:
        chunk, meta = it.chunk(0, "b").column_chunk, it.chunk(0, "b").meta_data
        it.footer.metadata.key_value_metadata = [
            KeyValue(trees.Struct({1: (TType.STRING, b"held"), 2: (TType.STRING, held)}))
        ]
        if what == "offset index":
            chunk.offset_index_offset = place
        elif what == "column index":
            chunk.column_index_offset = place
        else:
            shift = place - chunk_extent(it.chunk(0, "b"))[0]
            meta.data_page_offset += shift
            if meta.dictionary_page_offset:
                meta.dictionary_page_offset += shift

    place = path.stat().st_size
    for _ in range(3):
        # Offsets of the same number of digits in the end.
        edit_footer(path, move)
        place = path.read_bytes().rindex(held)
    edit_footer(path, move)
    assert path.read_bytes()[place : place + length] == held
    add(path, ["a"])
    assert path.read_bytes()[place : place + length] == held
    assert pq.read_table(path)["b"].to_pylist() == ids.to_pylist()


def test_the_bits_of_a_filter_that_look_like_an_old_footer_stay(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(20), Mode.SIGNED)
    start = _footer(path)
    end = path.read_bytes()[start:]
    head = encode_bloom_filter(SplitBlockBloomFilter(8192), None)[:-8192]
    bits = end + append_mark(start + len(head) + len(end))
    stored = head + bits.ljust(8192, b"\xff")
    edit_footer(path, lambda _: stored)
    _point(path, "id", (start, len(stored)))
    with opened(path) as it:
        assert filter_of(path, 0, "id")
        assert find_old_footers(it.file, it.footer.read) == []


@pytest.mark.parametrize("mode", [Mode.SIGNED, Mode.ENCRYPTED])
def test_a_page_that_holds_an_old_footer_and_is_longer_than_its_chunk_says_stays(
    tmp_path: Path, mode: Mode
) -> None:
    other = write(tmp_path / "other.parquet", customers(20), mode)
    start, path = _footer(other), tmp_path / "x.parquet"
    end = other.read_bytes()[start:]
    mark = append_mark(0)
    for _ in range(2):
        # A mark counts only where it names its own place.
        _with_cell(path, mode, end + mark)
        mark = append_mark(path.read_bytes().index(end) + len(end))

    def shorten(it: Opened) -> None:
        it.chunk(0, "last").meta_data.total_compressed_size = 20
        it.footer.metadata.row_groups[0].total_compressed_size = 20

    edit_footer(path, shorten)
    before = path.read_bytes()
    with opened(path, KEYRING) as it:
        assert len(find_old_footers(it.file, it.footer.read)) == 1
    (report,) = _rotated(path)
    assert report.status == "failed"
    assert path.read_bytes() == before
    for change in ({}, {"in_place": True}):
        sb.hudi.add_record_key_filter(path, column="city", keys=KEYRING, **change)
        sb.add_bloom_filters(path, columns=["id"], keys=KEYRING, **change)
        assert path.read_bytes()[: _footer(other)] == before[: _footer(other)]


@pytest.mark.parametrize("mode", [Mode.SIGNED, Mode.ENCRYPTED])
@pytest.mark.parametrize("verb", ["rotate", "hudi add"])
def test_filters_that_are_shared_or_lie_in_pages_stay_for_other_verbs(
    tmp_path: Path, mode: Mode, verb: str
) -> None:
    path = tmp_path / "x.parquet"
    _with_cell(path, mode, FILTER)
    end = _footer(path)
    for column in ("id", "score"):
        _point(path, column, (end - len(FILTER), len(FILTER)))
    content = path.read_bytes()[:end]
    (report,) = (
        _rotated(path)
        if verb == "rotate"
        else sb.hudi.add_record_key_filter(path, column="city", keys=KEYRING).files
    )
    assert report.error is None
    assert path.read_bytes()[:end] == content


def _rotated(path: Path) -> tuple[Any, ...]:
    policy = sb.KeyPolicy(
        footer_key="k_footer", columns={"email": ColumnRule(path="email", key="k_pii")}
    )
    keys = sb.Keyring(master_keys={**KEYRING.master_keys, "k_new": bytes(16)})
    moves = {"k_footer": "k_new", "k_pii": "k_new"}
    return sb.rotate_keys(path, policy=policy, moves=moves, keys=keys).files
