"""How Paimon stores its types in Parquet."""

from __future__ import annotations

import pytest

from secure_bloom.paimon.data_types import DataType, TypeRoot
from secure_bloom.paimon.stored_types import describe_type, leaf_of
from secure_bloom.parquet.structures.metadata import Type


@pytest.mark.parametrize("root", list(TypeRoot))
def test_every_type_is_stored(root: TypeRoot) -> None:
    leaf = leaf_of("c", DataType(root=root))
    assert leaf.name == "c"
    assert describe_type(leaf)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("INT", Type.INT32),
        ("BIGINT", Type.INT64),
        ("STRING", Type.BYTE_ARRAY),
        ("DATE", Type.INT32),
    ],
)
def test_the_physical_type(text: str, stored: Type) -> None:
    assert leaf_of("c", DataType.parse(text)).type is stored


def test_widths_of_numbers_are_told_apart() -> None:
    words = {describe_type(leaf_of("c", DataType.parse(text))) for text in ("TINYINT", "SMALLINT")}
    assert len(words) == 2
