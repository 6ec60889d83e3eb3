"""Long lists, encoded in one pass: the bytes of each value alone, or none."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import PolicyError
from secure_bloom.parquet.footer.columns import SchemaCache
from secure_bloom.parquet.footer.opened import read_footer
from secure_bloom.parquet.literals import physical_values
from secure_bloom.parquet.schema import Leaf
from secure_bloom.reading.pruning.encoded_values import encoded_together
from secure_bloom.storage import open_input

_decimals = {
    digits: st.integers(-(10**digits) + 1, 10**digits - 1).map(lambda n: Decimal(n).scaleb(-2))
    for digits in (5, 12, 25)
}
_instants = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))
_zoned = pa.timestamp("us", "UTC")
#: Types of values in Arrow, with some of their values.
_VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.string(): st.text(),
    pa.large_string(): st.text(),
    pa.binary(): st.binary(),
    pa.binary(16): st.binary(min_size=16, max_size=16),
    pa.int8(): st.integers(-128, 127),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.date32(): st.dates(),
    pa.date64(): st.dates(),
    pa.timestamp("ms"): _instants.map(lambda it: it.replace(microsecond=7000)),
    pa.timestamp("us"): _instants,
    _zoned: _instants,
    pa.decimal128(5, 2): _decimals[5],
    pa.decimal128(12, 2): _decimals[12],
    pa.decimal128(25, 2): _decimals[25],
    pa.time64("us"): st.times(),
}


@pytest.fixture(scope="module")
def leaves(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Leaf]:
    """A leaf of each type; decimals as numbers and as bytes, a UUID, and texts as bytes."""
    folder, found = tmp_path_factory.mktemp("leaves"), {}
    for as_integer in (False, True):
        names = {f"{of}{' as integer' * as_integer}": of for of in _VALUES}
        columns = {name: pa.array([], of) for name, of in names.items()}
        columns["uuid"] = pa.array([], pa.uuid())
        path = folder / f"{as_integer}.parquet"
        pq.write_table(pa.table(columns), path, store_decimal_as_integer=as_integer)
        found |= {leaf.name: leaf for leaf in _leaves(path)}
    return found


def _leaves(path: Path) -> tuple[Leaf, ...]:
    with open_input(str(path)) as file:
        return tuple(read_footer(file, KeyResolver(None), SchemaCache()).leaves)


@pytest.mark.parametrize("of", _VALUES, ids=str)
@given(st.data())
def test_the_bytes_are_those_of_each_value_alone(
    leaves: dict[str, Leaf], of: pa.DataType, data: st.DataObject
) -> None:
    leaf = leaves[data.draw(st.sampled_from(sorted(leaves)))]
    values = pa.array(data.draw(st.lists(_VALUES[of], min_size=1, max_size=5)), of)
    start = data.draw(st.integers(0, len(values) - 1))
    found = encoded_together(values.slice(start), leaf)
    if found is None:
        return
    for value, stored in zip(values.slice(start).to_pylist(), found, strict=True):
        given = UUID(bytes=value) if leaf.name == "uuid" else value
        assert physical_values(leaf, given) == (stored,)


@pytest.mark.parametrize(
    ("of", "value", "name"),
    [
        (pa.string(), "x", "string"),
        (pa.binary(16), bytes(range(16)), "uuid"),
        (pa.int64(), -5, "int64"),
        (pa.date32(), date(1969, 12, 31), "date32[day]"),
        (pa.timestamp("us"), datetime(1969, 12, 31), "timestamp[us]"),
        (_zoned, datetime(2024, 3, 1), "timestamp[us, tz=UTC]"),
        (pa.decimal128(12, 2), Decimal("-1.50"), "decimal128(12, 2)"),
        (pa.decimal128(12, 2), Decimal("-1.50"), "decimal128(12, 2) as integer"),
        (pa.decimal128(25, 2), Decimal("-1.50"), "decimal128(5, 2) as integer"),
        (pa.float64(), -0.5, "double"),
    ],
    ids=[str(number) for number in range(10)],
)
def test_values_of_the_columns_own_type_are_encoded_together(
    leaves: dict[str, Leaf], of: pa.DataType, value: Any, name: str
) -> None:
    leaf = leaves[name]
    alone = physical_values(leaf, UUID(bytes=value) if name == "uuid" else value)
    assert encoded_together(pa.array([value] * 20, of), leaf) == [*(alone or ())] * 20


@pytest.mark.parametrize(
    ("of", "values", "name"),
    [
        (pa.float64(), [1.0, -0.0], "double"),
        (pa.float64(), [1.0, float("nan")], "double"),
        (pa.float64(), [1.0], "float"),
        (pa.timestamp("us"), [datetime(2024, 3, 1)], "timestamp[ms]"),
        (_zoned, [datetime(2024, 3, 1)], "timestamp[us]"),
        (pa.decimal128(25, 2), [Decimal(10**9)], "decimal128(5, 2)"),
        (pa.decimal128(25, 2), [Decimal(-(10**9))], "decimal128(5, 2) as integer"),
        (pa.binary(16), [bytes(16)], "string"),
    ],
    ids=["zero", "nan", "narrower", "coarser", "local", "beyond", "below", "another kind"],
)
def test_values_without_one_encoding_are_encoded_one_by_one(
    leaves: dict[str, Leaf], of: pa.DataType, values: list[object], name: str
) -> None:
    assert encoded_together(pa.array(values, of), leaves[name]) is None


def test_an_instant_is_no_local_time(leaves: dict[str, Leaf]) -> None:
    with pytest.raises(PolicyError):
        physical_values(leaves["timestamp[us]"], "2024-03-01T00:00:00Z")
