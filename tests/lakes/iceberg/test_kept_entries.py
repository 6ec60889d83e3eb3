"""Records of manifests that are kept as bytes."""

from __future__ import annotations

import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record
from pyiceberg.utils.lazydict import LazyDict

from secure_bloom.lakes.iceberg.kept_entries import KeptFile

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


def test_a_packed_record_has_all_fields() -> None:
    whole, kept = DataFile.from_args(**FIELDS), KeptFile.from_args(**FIELDS)
    kept.spec_id = 7
    assert kept.pack() > 700
    for position in range(len(whole)):
        expected = whole[position]
        assert kept[position] == (dict(expected) if position == 6 else expected)
    for name, expected in FIELDS.items():
        assert getattr(kept, name) == (dict(expected) if name == "column_sizes" else expected)  # type: ignore[call-overload]
    assert (kept.spec_id, kept) == (7, whole)


@pytest.mark.parametrize(
    "numbers",
    [{}, {1: -1, 2: 0}, {-5: 255, 300: 256}, {70_000: 1 << 32, 1: (1 << 63) - 1}, {1: None}],
)
def test_maps_of_any_numbers_come_back(numbers: dict[int, int]) -> None:
    kept = KeptFile.from_args(**(FIELDS | {"value_counts": numbers}))
    kept.pack()
    assert kept.value_counts == numbers


@pytest.mark.parametrize("bounds", [{}, {1: b""}, {3: b"ab", 1: b"", 2: bytes(300)}])
def test_maps_of_any_bounds_come_back(bounds: dict[int, bytes]) -> None:
    kept = KeptFile.from_args(**(FIELDS | {"lower_bounds": bounds}))
    kept.pack()
    assert list(kept.lower_bounds.items()) == list(bounds.items())


def test_500_000_files_of_20_columns_fit_into_a_gibibyte() -> None:
    """Texts of 16 bytes and long integers, with all metrics that writers give."""
    columns = range(1, 21)
    counts = {name: dict.fromkeys(columns, 900_000) for name in ("column_sizes", "value_counts")}
    nulls = {name: dict.fromkeys(columns, 0) for name in ("null_value_counts", "nan_value_counts")}
    bounds = {
        name: {it: bytes(8 if it % 2 else 16) for it in columns}
        for name in ("lower_bounds", "upper_bounds")
    }
    path = "s3://bucket/warehouse/db/table/data/day=2026-01-01/" + "0" * 64 + ".parquet"
    given = {"file_path": path, "split_offsets": [4], "key_metadata": None}
    kept = KeptFile.from_args(**(FIELDS | counts | nulls | bounds | given))
    assert kept.pack() < 2**30 / 500_000


def test_a_packed_record_does_not_change() -> None:
    kept = KeptFile.from_args(**FIELDS)
    kept[5] = 901
    kept.pack()
    with pytest.raises(TypeError):
        kept[10] = None
    assert kept.file_size_in_bytes == 901


def test_long_fields_count() -> None:
    sizes = []
    for path, value, bound in ("p", "v", b"b"), ("p" * 1000, "v" * 1000, b"b" * 1000):
        given = {"file_path": path, "partition": Record(value), "lower_bounds": {1: bound}}
        sizes.append(KeptFile.from_args(**(FIELDS | given)).pack())
    assert sizes[1] - sizes[0] >= 2997
