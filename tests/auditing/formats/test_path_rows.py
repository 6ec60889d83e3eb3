"""Paths as rows of a page: every file once, and never too many rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.auditing.formats.path_rows import common_folder, path_rows
from tests.auditing.formats.reports import day_paths

PATHS = st.lists(
    st.lists(st.sampled_from(["a", "b", "ab", "dt=1", "dt=2"]), min_size=1, max_size=4).map(
        "/".join
    ),
    unique=True,
    max_size=40,
)


@pytest.mark.parametrize(
    ("paths", "folder"),
    [
        ([], ""),
        (["part-0.parquet"], ""),
        (["lake/part-0.parquet"], "lake/"),
        (["lake/a/part-0.parquet", "lake/ab/part-0.parquet"], "lake/"),
        (["lake/x.parquet", "lake/x.parquet.d/y.parquet"], "lake/"),
        (["/a/x", "/b/x"], ""),
        (["/data/a/x", "/data/b/x"], "/data/"),
        (["s3://lake/dt=1/x", "s3://lake/dt=2/x"], "s3://lake/"),
        (["s3://lake/x", "s3://other/x"], ""),
    ],
)
def test_the_folder_that_all_are_in(paths: list[str], folder: str) -> None:
    assert common_folder(paths) == folder


@given(PATHS)
def test_the_common_folder_is_a_beginning_of_all(paths: list[str]) -> None:
    folder = common_folder(paths)
    assert all(path.startswith(folder) and path != folder for path in paths)


def _labels(paths: list[str], most: int) -> list[str]:
    return [row.label for row in path_rows(paths, common_folder(paths), most)]


def test_few_files_have_a_row_each() -> None:
    assert _labels(["lake/a.parquet", "lake/dt=1/b.parquet"], 2) == ["a.parquet", "dt=1/b.parquet"]


def test_many_files_are_rows_of_folders() -> None:
    assert _labels(day_paths(3, 5), 3) == ["dt=2026-01-01/", "dt=2026-01-02/", "dt=2026-01-03/"]


def test_files_beside_folders_are_a_row_too() -> None:
    assert _labels(["lake/x", "lake/y", "lake/d/x", "lake/d/y"], 3) == ["./", "d/"]


def test_too_many_folders_go_a_level_higher() -> None:
    paths = [f"lake/m={m}/d={d}/x" for m in range(3) for d in range(9)]
    assert _labels(paths, 10) == ["m=0/", "m=1/", "m=2/"]


def test_folders_of_one_level_become_runs() -> None:
    assert _labels(day_paths(4, 2), 2) == [
        "dt=2026-01-01/ … dt=2026-01-02/",
        "dt=2026-01-03/ … dt=2026-01-04/",
    ]


def test_the_common_folder_is_no_row() -> None:
    paths = [f"s3://bucket-{n}/x.parquet" for n in range(6)]
    assert len(path_rows(paths, "", 3)) == 3


def test_files_of_one_folder_become_runs() -> None:
    assert _labels([f"lake/{n}.parquet" for n in range(5)], 2) == [
        "0.parquet … 2.parquet",
        "3.parquet … 4.parquet",
    ]


@given(PATHS, st.integers(1, 12))
def test_every_file_has_one_row_and_rows_are_few(paths: list[str], most: int) -> None:
    rows = path_rows(paths, common_folder(paths), most)
    assert len(rows) <= most
    assert sorted(path for row in rows for path in row.paths) == sorted(paths)
