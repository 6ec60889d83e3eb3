"""Records of manifests that are kept as bytes."""

from __future__ import annotations

import random
import sys
from typing import Any

import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry
from pyiceberg.manifest import ManifestEntryStatus as Status
from pyiceberg.typedef import Record
from pyiceberg.utils.lazydict import LazyDict

from secure_bloom.lakes.iceberg.kept_entries import EntryKeeper, KeptEntry
from secure_bloom.running.memory_budget import DecodedBytes, MemoryBudgetError, memory_budget

FIELDS = {
    "content": DataFileContent.DATA,
    "file_path": "day=1/x.parquet",
    "file_format": FileFormat.PARQUET,
    "partition": Record("1", None),
    "record_count": 3,
    "file_size_in_bytes": 900,
    "column_sizes": LazyDict([(1, 50, 2, 1 << 40)]),
    "value_counts": {1: 3},
    "null_value_counts": {},
    "lower_bounds": {1: b"a", 2: bytes(8)},
    "upper_bounds": None,
    "key_metadata": b"\0\xff",
    "split_offsets": [4, 1 << 40],
    "equality_ids": [],
    "sort_order_id": 0,
}


def entry(**fields: Any) -> ManifestEntry:
    file = DataFile.from_args(3, **(FIELDS | fields))
    file.spec_id = 7
    return ManifestEntry.from_args(
        status=Status.ADDED, snapshot_id=1 << 60, sequence_number=3, data_file=file
    )


def kept(**fields: Any) -> KeptEntry:
    return EntryKeeper(DecodedBytes("")).kept(entry(**fields))


def test_a_kept_entry_has_all_fields() -> None:
    whole, found = entry(), kept()
    assert found.status is Status.ADDED
    assert found.snapshot_id == 1 << 60
    assert (found.sequence_number, found.file_sequence_number) == (3, None)
    again = found.data_file.whole()
    assert (again.spec_id, found.data_file.spec_id, len(again)) == (7, 7, len(whole.data_file))
    for position, expected in enumerate(whole.data_file._data):
        plain = dict(expected) if position == 6 else expected
        assert found.data_file[position] == again[position] == plain
    for name, expected in FIELDS.items():
        plain = dict(expected) if name == "column_sizes" else expected  # type: ignore[call-overload]
        assert getattr(found.data_file, name) == plain
    with pytest.raises(AttributeError):
        found.data_file.no_field  # noqa: B018


def test_entries_of_a_manifest_differ_in_any_field() -> None:
    """What a later entry shares with an earlier one is equal in every way, its type too."""
    keeper = EntryKeeper(DecodedBytes(""))
    for partition in (1, True, 1.0, None, "None", 0.0, -0.0, b"1", "1"):
        given = entry(partition=Record(partition), lower_bounds={1: repr(partition).encode()})
        found = keeper.kept(given).data_file
        assert repr(found.partition._data) == repr([partition])
        assert found.lower_bounds == given.data_file.lower_bounds


def test_long_fields_of_the_first_entry_do_not_hinder_the_others() -> None:
    keeper = EntryKeeper(DecodedBytes(""))
    for bound in (random.randbytes(100_000), b"", random.randbytes(100_000)):
        assert keeper.kept(entry(lower_bounds={1: bound})).data_file.lower_bounds == {1: bound}


@pytest.mark.parametrize(
    "numbers",
    [{}, {1: -1, 2: 0}, {-5: 255, 300: 256}, {70_000: 1 << 32, 1: (1 << 63) - 1}, {1: None}],
)
def test_maps_of_any_numbers_come_back(numbers: dict[int, int]) -> None:
    assert kept(value_counts=numbers).data_file.value_counts == numbers


@pytest.mark.parametrize("bounds", [{}, {1: b""}, {3: b"ab", 1: b"", 2: bytes(300)}])
def test_maps_of_any_bounds_come_back(bounds: dict[int, bytes]) -> None:
    found = kept(lower_bounds=bounds).data_file.lower_bounds
    assert list(found.items()) == list(bounds.items())


def test_500_000_files_of_20_columns_fit_into_half_a_gibibyte() -> None:
    """Texts of 16 bytes and long integers, with all metrics that writers give, none like another.

    A run that replaces all of them has as many new paths beside the entries.
    """
    keeper, sizes = EntryKeeper(DecodedBytes("")), []
    columns = range(1, 21)
    for number in range(100):
        counts = {"column_sizes": {it: random.randrange(1 << 19, 1 << 20) for it in columns}}
        values = {"value_counts": dict.fromkeys(columns, 900_000 + number)}
        nulls = {it: dict.fromkeys(columns, 0) for it in ("null_value_counts", "nan_value_counts")}
        bounds = {
            name: {it: random.randbytes(4) + bytes(4 if it % 2 else 12) for it in columns}
            for name in ("lower_bounds", "upper_bounds")
        }
        path = f"s3://bucket/warehouse/db/table/data/day=2026-01-01/{number:064}.parquet"
        given = {"file_path": path, "split_offsets": [4], "key_metadata": None}
        sizes.append(
            sys.getsizeof(keeper.kept(entry(**counts, **values, **nulls, **bounds, **given)))
        )
    assert sum(sizes[1:]) / len(sizes[1:]) < 2**29 / 500_000


@pytest.mark.parametrize(
    "fields",
    [
        {"file_path": "x" * 100_000},
        {"partition": Record("x" * 100_000)},
        {"lower_bounds": {1: random.Random(1).randbytes(70_000)}},
        {"lower_bounds": {1: bytes(400_000)}},
    ],
    ids=["path", "partition", "bounds", "bounds that deflate"],
)
def test_entries_beyond_the_budget_are_an_error(fields: dict[str, Any]) -> None:
    decoded = DecodedBytes("")
    keeper = EntryKeeper(decoded)
    decoded.add(memory_budget() - 350_000)
    for _ in range(3):
        keeper.kept(entry(**fields))
    with pytest.raises(MemoryBudgetError):
        keeper.kept(entry(**fields))
