"""Outputs keep their paths, and take the place of no input and of no other output."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.storage.output_paths import output_paths, refuse_inside


def test_outputs_keep_their_paths_below_the_folders_that_were_given() -> None:
    files = ["/in/a/x.parquet", "/in/b/x.parquet", "/other/y.parquet"]
    assert output_paths(files, ["/in", "/in/a/x.parquet", "/other/y.parquet"], "/out") == {
        "/in/a/x.parquet": "/out/a/x.parquet",
        "/in/b/x.parquet": "/out/b/x.parquet",
        "/other/y.parquet": "/out/y.parquet",
    }
    assert output_paths(["/in/a/x.parquet"], ["/in", "/in/a"], "/out") == {
        "/in/a/x.parquet": "/out/x.parquet"
    }


def test_an_output_takes_the_place_of_no_input_and_of_no_other_output() -> None:
    with pytest.raises(PolicyError, match="overwrite the input") as caught:
        output_paths(["/in/x.parquet"], ["/in"], "/in")
    assert caught.value.path == "/in/x.parquet"
    files = ["/a/x.parquet", "/b/x.parquet"]
    with pytest.raises(PolicyError, match="two input files would become one output file"):
        output_paths(files, files, "/out")


def test_an_output_lies_in_no_folder_that_it_is_made_of(tmp_path: Path) -> None:
    """Else the next reader of the folder finds each row twice."""
    (tmp_path / "t").mkdir()
    (tmp_path / "link").symlink_to("t")
    for given, output in (("t", "t/out"), ("t", "t"), ("t", "link/out"), ("link", "t/day=1/out")):
        with pytest.raises(PolicyError, match="would lie inside the table itself") as caught:
            refuse_inside(str(tmp_path / output), [str(tmp_path / given)])
        assert caught.value.hint == "name a folder beside it"
    with pytest.raises(PolicyError, match="would lie inside"):
        refuse_inside("s3a://lake/t/out", ["s3://lake/t/"])
    refuse_inside(str(tmp_path / "out"), [str(tmp_path / "t"), "s3://lake/t"])
    refuse_inside("s3://lake/t2", ["s3://lake/t"])
