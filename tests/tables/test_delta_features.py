"""What a reader must know, and what is not known stops it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.tables import snapshot
from tests.tables.delta_logs import (
    commit,
    metadata,
    protocol,
)


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
