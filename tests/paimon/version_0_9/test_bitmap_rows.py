"""Rows of the bitmaps that Java wrote."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from secure_bloom.paimon import DataType, FileIndex, version_0_9
from secure_bloom.paimon.data_types import hashed_form
from secure_bloom.paimon.index_readers import read_value_list
from testing.project import NO_VECTORS
from tests.paimon.test_tables import TABLES, index_of
from tests.paimon.vectors import SHARED
from tests.paimon.version_0_9.test_roaring import rows_of


@pytest.mark.skipif(not SHARED.is_dir(), reason=NO_VECTORS)
def test_the_rows_of_java_s_bitmaps_are_those_of_the_data(tmp_path: Path) -> None:
    (case,) = (case for case in TABLES if case["name"] == "bloom_and_bitmap")
    with tarfile.open(SHARED / case["archive"]) as archive:
        archive.extractall(tmp_path, filter="data")
    integer = DataType.parse("INT")
    for file in case["files"]:
        data = pq.read_table(tmp_path / file["bucket_path"] / file["file"], columns=["p"])
        column = data["p"].to_pylist()
        (index,) = FileIndex.from_bytes(index_of(file)).indexes("p")
        values = read_value_list(index.body or b"")
        assert values is not None
        for value in set(column) - {None}:
            found = rows_of(version_0_9.rows_with(values, frozenset({hashed_form(integer, value)})))
            assert found == {row for row, each in enumerate(column) if each == value}
        nulls = {row for row, each in enumerate(column) if each is None}
        assert values.has_null is bool(nulls)
        assert rows_of(version_0_9.null_rows(values, frozenset({hashed_form(integer, 0)}))) == nulls
