"""Filters in clear where nothing refers to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.auditing.checks.unreferenced_bytes import LegalBounds, has_stray_bounds
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.stored import encode_bloom_filter
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import FormatError
from testing.surgery import Opened, edit_footer
from testing.tables import KEYRING, Mode, customers
from testing.thrift.metadata import ColumnIndex, Statistics
from tests.auditing.datasets import ids
from tests.auditing.examples import (
    EXAMPLES,
    Example,
    chunk_of,
    filtered,
    put_filter,
    some_filter,
    sound,
)


@pytest.mark.parametrize("claim", ["row group", "offset index"])
def test_a_stray_filter_hides_in_no_region_that_is_only_claimed(tmp_path: Path, claim: str) -> None:
    path, stray = sound(tmp_path), some_filter(b"user1@example.com")

    def change(it: Opened) -> bytes:
        if claim == "row group":
            it.footer.row_groups[0].total_compressed_size = 10**6
        else:
            chunk_of(it, "city").offset_index_offset = it.footer.tail.offset
            chunk_of(it, "city").offset_index_length = len(stray)
        return stray

    edit_footer(path, change)
    found = set(ids(Example(path=path).audit()))
    assert found - {"impossible-page-index"} == {"filter-stray-in-clear"}


def test_a_stray_filter_is_found_behind_a_footer_that_nobody_can_read(tmp_path: Path) -> None:
    found = EXAMPLES["filter-stray-in-clear"](tmp_path)
    report = found.audit(keys=None, without_keys=True)
    assert set(ids(report)) == {"filter-stray-in-clear", "unchecked-footer"}


def test_the_pages_of_a_column_without_a_key_are_no_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secure_bloom.auditing.checks.unreferenced_bytes._MOST_SEARCHED", 0)
    report = EXAMPLES["unchecked-column"](tmp_path).audit()
    assert ids(report) == ["unchecked-column"]


def test_the_header_of_a_stray_filter_may_lie_across_two_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sound(tmp_path)
    edit_footer(path, lambda _: bytes(50) + some_filter(b"a") + bytes(30) + some_filter(b"b"))
    for step in (16, 55, 64):
        monkeypatch.setattr("secure_bloom.auditing.checks.unreferenced_bytes._STEP", step)
        assert ids(Example(path=path).audit()) == ["filter-stray-in-clear"] * 2


def test_a_stray_filter_whose_header_has_a_field_that_the_format_lacks(tmp_path: Path) -> None:
    path = sound(tmp_path)
    made = some_filter(b"user1@example.com")
    end = made.index(b"\x1c\x1c\x00\x00" * 3) + 12
    edit_footer(path, lambda _: made[:end] + b"\x58\x05alice" + made[end:])
    assert ids(Example(path=path).audit()) == ["filter-stray-in-clear"]


def test_a_gap_that_was_made_to_take_long_is_not_called_clean(tmp_path: Path) -> None:
    path = sound(tmp_path)
    edit_footer(path, lambda _: b"\x15\x40" * 100_000)
    assert ids(Example(path=path).audit()) == ["unchecked-gaps"]


def test_a_plain_table_has_no_stray_filters(tmp_path: Path) -> None:
    path = sound(tmp_path, Mode.PLAIN)
    edit_footer(path, lambda _: some_filter(b"rome"))
    assert ids(Example(path=path, policy=KeyPolicy()).audit()) == []


def test_filters_replaced_in_place_leave_no_finding(tmp_path: Path) -> None:
    path = sound(tmp_path, table=customers(20_000), row_group_size=500)
    for fpp in (0.01, 0.001, 0.1):
        columns = {name: sb.BloomFilterOptions(fpp=fpp) for name in ("id", "score", "city")}
        options = {"keys": KEYRING, "in_place": True, "replace_filters": True}
        assert not sb.add_bloom_filters(path, columns=columns, **options).failed
    assert ids(Example(path=path).audit(check_values=True)) == []


@pytest.mark.parametrize(
    "old",
    [
        some_filter(),
        some_filter(b"rome", b"oslo", blocks=16),
        encode_bloom_filter(SplitBlockBloomFilter.from_bytes(b"\xff" * 64), None),
    ],
    ids=["empty", "of some values", "saturated"],
)
def test_a_broken_filter_in_clear_may_be_replaced_in_place(tmp_path: Path, old: bytes) -> None:
    table = customers(300)
    cities = pa.array(["rome", "oslo", *(f"town {i}" for i in range(298))])
    path = sound(tmp_path, table=table.set_column(3, "city", cities))
    put_filter(path, "city", old)
    options = {"keys": KEYRING, "in_place": True, "replace_filters": True}
    assert not sb.add_bloom_filters(path, columns=["city"], **options).failed
    assert path.read_bytes().count(old) == 1
    assert ids(Example(path=path).audit(check_values=True)) == []


@pytest.mark.parametrize("count", [1, 5, 200])
def test_a_stray_filter_of_other_values_is_found(tmp_path: Path, count: int) -> None:
    path = filtered(tmp_path, "city", "id", "score")
    values = [f"user{i}@example.com".encode() for i in range(count)]
    edit_footer(path, lambda _: some_filter(*values, blocks=64))
    assert ids(Example(path=path).audit()) == ["filter-stray-in-clear"]


@pytest.mark.parametrize("fpp", [0.3, 0.01, 0.00001])
def test_filters_that_an_add_in_place_left_are_no_leak(tmp_path: Path, fpp: float) -> None:
    """Those of encrypted columns are encrypted, those of others are of columns in clear."""
    path = filtered(tmp_path, "email", "city", "id")
    columns = {name: sb.BloomFilterOptions(fpp=fpp) for name in ("email", "city", "id")}
    options = {"columns": columns, "keys": KEYRING, "replace_filters": True}
    assert not sb.add_bloom_filters(path, in_place=True, **options).failed
    assert ids(Example(path=path).audit(check_values=True)) == []


NONE = LegalBounds(indexes=frozenset(), bounds=frozenset())
TEXTS = Statistics.of(min_value=b"anna", max_value=b"zoe", null_count=3).encode()
NUMBERS = Statistics.of(min_value=bytes(8), max_value=b"\x09" * 8, null_count=0).encode()
BOTH = Statistics.of(
    min=b"a", max=b"b", min_value=b"a", max_value=b"b", null_count=0, distinct_count=2
).encode()


def index(pages: int) -> bytes:
    lists = {"min_values": [b"a"] * pages, "max_values": [b"b"] * pages}
    return ColumnIndex.of(null_pages=[False] * pages, boundary_order=1, **lists).encode()


@pytest.mark.parametrize(
    "found", [TEXTS, NUMBERS, BOTH, index(1), index(14), index(15), index(300)]
)
def test_they_are_found_between_other_bytes(found: bytes) -> None:
    noise = np.random.default_rng(3).bytes(5000)
    assert has_stray_bounds(noise + found + noise, 0, NONE)
    assert not has_stray_bounds(noise, 0, NONE)


def test_bounds_of_columns_in_clear_and_named_indexes_are_no_stray_ones() -> None:
    bounds = LegalBounds(indexes=frozenset(), bounds=frozenset({b"anna", b"zoe", b"a", b"b"}))
    assert not has_stray_bounds(TEXTS + index(3), 0, bounds)
    named = LegalBounds(indexes=frozenset({100}), bounds=frozenset())
    assert not has_stray_bounds(index(3), 100, named)
    assert has_stray_bounds(index(3), 101, named)


def test_noise_has_none() -> None:
    noise = np.random.default_rng(4).bytes(8 * 1024 * 1024)
    assert not has_stray_bounds(noise, 0, NONE)


def test_data_that_is_made_to_take_long_is_an_error() -> None:
    lists = {"min_values": [b""] * 14, "max_values": [b"b"] * 13}
    half = ColumnIndex.of(null_pages=[False] * 14, boundary_order=1, **lists).encode()
    with pytest.raises(FormatError, match="thousands of places"):
        has_stray_bounds(half * 3000, 0, NONE)
