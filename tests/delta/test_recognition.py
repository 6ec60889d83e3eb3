"""A Delta table is its folder, given alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.delta.recognition import delta_table


def test_the_folder_with_a_log_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    for path in (f"{tmp_path}", f"{tmp_path}/", f"file://{tmp_path}"):
        assert delta_table([path]) == str(tmp_path)


def test_other_paths_mean_files(tmp_path: Path) -> None:
    (tmp_path / "t/_delta_log").mkdir(parents=True)
    assert delta_table([str(tmp_path)]) is None
    assert delta_table([f"{tmp_path}/t", f"{tmp_path}/u"]) is None
    assert delta_table([f"{tmp_path}/none"]) is None


def test_a_table_inside_of_another_ones_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "t/_delta_log").mkdir(parents=True)
    with pytest.raises(sb.UnsupportedFeatureError, match="a Delta table"):
        delta_table([f"{tmp_path}/t"])
