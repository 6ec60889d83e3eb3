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
    assert kept.pack() > 1000
    for position in range(len(whole)):
        expected = whole[position]
        assert kept[position] == (dict(expected) if position == 6 else expected)
    for name, expected in FIELDS.items():
        assert getattr(kept, name) == (dict(expected) if name == "column_sizes" else expected)  # type: ignore[call-overload]
    assert (kept.spec_id, kept) == (7, whole)


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
