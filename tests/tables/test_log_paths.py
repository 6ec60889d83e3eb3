"""Paths in a Delta log: each file has one path, and none leads out of the table unseen."""

from __future__ import annotations

import pytest

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.tables.log_paths import resolve


@pytest.mark.parametrize(
    ("folder", "path", "wanted"),
    [
        ("/t", "p=a%20b/x.parquet", "/t/p=a b/x.parquet"),
        ("/t", "p=a%253Ab/x", "/t/p=a%3Ab/x"),
        ("/t/", "x", "/t/x"),
        ("/t", "/t/a%20b", "/t/a b"),
        ("/t", "file:///t/a%20b", "/t/a b"),
        ("/t", "file:/other/x", "/other/x"),
        ("s3://b/t?region=x", "p=1/x", "s3://b/t/p=1/x?region=x"),
        ("s3://b/t?region=x", "s3a://b/u/a%20b", "s3://b/u/a b?region=x"),
    ],
)
def test_a_path_is_decoded_and_set_below_the_table(folder: str, path: str, wanted: str) -> None:
    assert resolve(folder, path) == wanted


@pytest.mark.parametrize("path", ["", "../x", "a/%2E%2E/x", "a//x", "x%00y", "file:///t/../x"])
def test_a_path_that_leads_out_of_the_table_is_damage(path: str) -> None:
    with pytest.raises(FormatError, match="leads out"):
        resolve("/t", path)


@pytest.mark.parametrize(
    ("folder", "path"),
    [
        ("/t", "s3://b/x"),
        ("/t", "hdfs://name/x"),
        ("s3://b/t", "file:///x"),
        ("s3://b/t", "/x"),
        ("s3://b/t", "s3://other/x"),
    ],
)
def test_a_file_of_another_store_is_refused(folder: str, path: str) -> None:
    with pytest.raises(UnsupportedFeatureError):
        resolve(folder, path)
