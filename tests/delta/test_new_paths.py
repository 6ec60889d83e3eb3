"""Names of new files: beside the old ones, and known again as ours."""

from __future__ import annotations

import pytest

from secure_bloom.adding.new_files import new_run
from secure_bloom.delta.run_record import is_of_run, new_path

RUN = "0123456789abcdef"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x.parquet", f"x.sb-{RUN}.parquet"),
        ("day=a%2520b/p-c000.snappy.parquet", f"day=a%2520b/p-c000.snappy.sb-{RUN}.parquet"),
        ("x.sb-fedcba9876543210.parquet", f"x.sb-{RUN}.parquet"),
        ("x.parquet.encrypted", f"x.sb-{RUN}.parquet.encrypted"),
        ("x", f"x.sb-{RUN}.parquet"),
        ("file:///other/table/x.parquet", f"x.sb-{RUN}.parquet"),
        ("s3://other/table/x.parquet", f"x.sb-{RUN}.parquet"),
    ],
)
def test_a_new_file_stands_beside_the_old_one_in_this_table(old: str, new: str) -> None:
    assert new_path(old, RUN) == new
    assert is_of_run(new, RUN)


def test_two_long_names_get_two_names_that_files_may_have() -> None:
    long = "p" * 240
    names = {new_path(f"d/{long}{end}.parquet", RUN) for end in "ab"}
    assert len(names) == 2
    for name in names:
        assert len(f"_KEY_MATERIAL_FOR_{name.removeprefix('d/')}.json") <= 255
        assert is_of_run(name, RUN)


@pytest.mark.parametrize(
    "path",
    [
        f"../x.sb-{RUN}.parquet",
        f"%2e%2e/x.sb-{RUN}.parquet",
        f"/etc/x.sb-{RUN}.parquet",
        f"file:///etc/x.sb-{RUN}.parquet",
        "x.parquet",
        f"sb-{RUN}.d/x.parquet",
        "x.sb-fedcba9876543210.parquet",
    ],
)
def test_no_other_path_is_taken_for_one_of_a_run(path: str) -> None:
    assert not is_of_run(path, RUN)


def test_runs_have_names_of_their_own() -> None:
    assert len({new_run() for _ in range(100)}) == 100
