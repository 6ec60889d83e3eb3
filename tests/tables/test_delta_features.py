"""What a reader of a Delta table must know and does not stops it, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import secure_bloom as sb
from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.tables import snapshot
from testing.delta_logs import commit, metadata, protocol, start


@pytest.mark.parametrize(
    ("actions", "told"),
    [
        ([protocol("newFeature"), metadata()], "newFeature"),
        ([protocol("catalogManaged"), metadata()], "catalogManaged"),
        ([protocol(reader=4), metadata()], "readers of version 4"),
    ],
)
def test_what_a_reader_must_know_stops_it_by_name(
    tmp_path: Path, actions: list[Any], told: str
) -> None:
    commit(tmp_path, 0, *actions)
    with pytest.raises(UnsupportedFeatureError, match=told) as caught:
        snapshot(tmp_path)
    assert caught.value.path == str(tmp_path)


def test_a_mode_of_column_mapping_that_is_none_is_told(tmp_path: Path) -> None:
    first = start(features=["columnMapping"], delta_columnMapping_mode="place")
    commit(tmp_path, 0, *first)
    with pytest.raises(sb.FormatError, match=r"columnMapping\.mode is 'place'"):
        snapshot(tmp_path)
