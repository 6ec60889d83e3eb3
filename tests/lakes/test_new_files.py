"""New files of a table's run carry its mark, and a run that gives one up leaves nothing of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.lakes.new_files import is_marked, marked_name, new_run, remove_new_file
from secure_bloom.runs.target import check_commit_every

pytestmark = pytest.mark.usefixtures("both_ways")


def test_a_new_name_has_the_mark_of_its_run() -> None:
    run, again = new_run(), new_run()
    name = marked_name("part-0.snappy.parquet", run, unique="x")
    assert name == f"part-0.snappy.sb-{run}.parquet"
    assert is_marked(name, run)
    assert not is_marked(name, again)
    assert marked_name(name, again, unique="x") == f"part-0.snappy.sb-{again}.parquet"
    assert len(marked_name("é" * 120 + ".parquet", run, unique="x").encode()) < 230


def test_a_file_is_removed_with_its_key_material(tmp_path: Path) -> None:
    for name in ("f.parquet", "_KEY_MATERIAL_FOR_f.parquet.json", "other.parquet"):
        (tmp_path / name).write_text("x")
    remove_new_file(str(tmp_path / "f.parquet"))
    remove_new_file(str(tmp_path / "f.parquet"))
    assert [it.name for it in tmp_path.iterdir()] == ["other.parquet"]


def test_a_commit_is_after_at_least_one_file() -> None:
    with pytest.raises(PolicyError, match="at least 1"):
        check_commit_every(0)
