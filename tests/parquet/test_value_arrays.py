"""Arrow's arrays seen as they lie, slices too."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import FieldRepetitionType, Type
from secure_bloom.parquet.value_arrays import Binary, as_entries
from testing.thrift.metadata import SchemaElement


def leaf(type_: Type, width: int | None = None) -> Leaf:
    fields = {} if width is None else {"type_length": width}
    element = SchemaElement.of(name="x", type=type_, **fields)
    required = FieldRepetitionType.REQUIRED
    return Leaf(path=("x",), element=element, type=type_, repetitions=(required,))


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("values", [[b"", b"ab", b"c"], []])
def test_values_of_any_length(kind: pa.DataType, values: list[bytes]) -> None:
    whole = pa.array([b"before", *values, b"after"], kind)
    found = as_entries(leaf(Type.BYTE_ARRAY), whole[1:-1])
    assert isinstance(found, Binary)
    assert len(found) == len(values)
    bounds = zip(found.offsets[:-1], found.offsets[1:], strict=True)
    assert [found.data[start:end].tobytes() for start, end in bounds] == values


@pytest.mark.parametrize(
    ("type_", "kind", "values"),
    [
        (Type.INT32, pa.int32(), [1, -2, 3]),
        (Type.INT64, pa.int64(), [1, -(2**63), 3]),
        (Type.DOUBLE, pa.float64(), [0.5, -0.0, 3.0]),
        (Type.INT64, pa.int64(), []),
    ],
)
def test_values_of_one_width(type_: Type, kind: pa.DataType, values: list[float]) -> None:
    array = pa.array([7, *values, 7], kind)[1:-1]
    assert as_entries(leaf(type_), array).tolist() == values  # type: ignore[union-attr]


def test_bytes_of_one_width() -> None:
    array = pa.array([b"xx", b"ab", b"cd"], pa.binary(2))[1:]
    found = as_entries(leaf(Type.FIXED_LEN_BYTE_ARRAY, 2), array)
    assert found.tobytes() == b"abcd"  # type: ignore[union-attr]
