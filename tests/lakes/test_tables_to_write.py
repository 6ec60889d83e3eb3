"""Which paths name a table that takes new files by a commit."""

from __future__ import annotations

from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.lakes.formats import DELTA, ICEBERG
from secure_bloom.lakes.managed_tables import table_to_write


def test_the_folder_with_a_log_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    for path in (f"{tmp_path}", f"{tmp_path}/", f"file://{tmp_path}"):
        assert table_to_write([path]) == (DELTA, str(tmp_path))


def test_other_paths_mean_files(tmp_path: Path) -> None:
    (tmp_path / "t/_delta_log").mkdir(parents=True)
    assert table_to_write([str(tmp_path)]) is None
    assert table_to_write([f"{tmp_path}/t", f"{tmp_path}/u"]) is None
    assert table_to_write([f"{tmp_path}/none"]) is None


def test_a_table_inside_of_another_ones_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "t/_delta_log").mkdir(parents=True)
    with pytest.raises(sb.UnsupportedFeatureError, match="a Delta table"):
        table_to_write([f"{tmp_path}/t"])


def test_a_table_of_a_catalog_is_written_when_it_is_given_alone(tmp_path: Path) -> None:
    table = "iceberg://lake/db.t"
    assert table_to_write([table]) == (ICEBERG, table)
    with pytest.raises(sb.PolicyError, match="given alone"):
        table_to_write([table, str(tmp_path)])


def test_a_table_that_only_an_engine_writes_means_its_files(tmp_path: Path) -> None:
    (tmp_path / "_spark_metadata").mkdir()
    assert table_to_write([str(tmp_path)]) is None
