"""Which columns of a Parquet file Paimon can index."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.errors import SecureBloomError
from secure_bloom.paimon.column_types import TopColumns
from secure_bloom.parquet.schema import Leaf
from testing.surgery import opened


@pytest.fixture
def leaves(data_file: Path) -> tuple[Leaf, ...]:
    with opened(data_file) as it:
        return it.footer.leaves


def test_a_top_level_column_is_its_leaf(leaves: tuple[Leaf, ...]) -> None:
    column = TopColumns(leaves).indexed("name")
    assert (leaves[column.value].name, column.map_key) == ("name", None)
    assert column.ordinals == (column.value,)


def test_the_key_of_a_map_has_two_leaves(leaves: tuple[Leaf, ...]) -> None:
    column = TopColumns(leaves).indexed("m[a]")
    assert column.map_key == "a"
    assert len(column.ordinals) == 2


def test_a_dot_in_a_name_is_no_path(leaves: tuple[Leaf, ...]) -> None:
    assert TopColumns(leaves).indexed("dotted.name").map_key is None


@pytest.mark.parametrize("name", ["nobody", "list", "m", "list[a]"])
def test_what_cannot_have_an_index_is_refused(leaves: tuple[Leaf, ...], name: str) -> None:
    with pytest.raises(SecureBloomError):
        TopColumns(leaves).indexed(name)


def test_an_unknown_column_has_no_leaf(leaves: tuple[Leaf, ...]) -> None:
    assert TopColumns(leaves).leaf("nobody") is None
    assert TopColumns(leaves).leaf("id") is not None
