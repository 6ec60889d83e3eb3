"""The values of a lookup as arrays, for the C extension; None where it could not compare them."""

from __future__ import annotations

import itertools
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
from secure_bloom.predicates.binding import bound_conditions
from secure_bloom.predicates.bound_request import request
from secure_bloom.predicates.from_text import from_text
from secure_bloom.predicates.from_tuples import from_structure
from secure_bloom.reading.pruning.column_predicates import (
    ProbeValues,
    StoredValue,
    column_predicate,
    encoded_together,
)
from secure_bloom.storage import open_input
from testing.surgery import opened
from testing.tables import write

TABLE = pa.table({"text": ["a"], "n": pa.array([1], pa.int32()), "x": [0.5]})


def probe(folder: Path, where: str) -> ProbeValues | None:
    asked = request(TABLE.schema, (), None, from_text(where), ())
    (condition,) = bound_conditions(asked.predicate)
    with opened(write(folder / "x.parquet", TABLE)) as it:
        names = [leaf.name for leaf in it.footer.leaves]
        ordinal = names.index(condition.path[0])
        return ProbeValues.of(column_predicate(condition, ordinal, it.footer.leaves[ordinal]))


def test_values_stand_one_behind_the_other_in_order(tmp_path: Path) -> None:
    found = probe(tmp_path, "text in ('bb', '', 'a')")
    assert found is not None
    assert found.values == b"abb"
    assert found.offsets.tolist() == [0, 0, 1, 3]
    assert found.path == b"\x18\x04text"


def test_numbers_are_ordered_as_numbers(tmp_path: Path) -> None:
    found = probe(tmp_path, "n in (256, -1, 1)")
    assert found is not None
    stored = found.values
    starts = found.offsets.tolist()
    cut = [stored[a:b] for a, b in itertools.pairwise(starts)]
    assert [int.from_bytes(it, "little", signed=True) for it in cut] == [-1, 1, 256]


@pytest.mark.parametrize("where", ["text > 'a'", "n != 1", "x = 0.0"])
def test_what_bytes_alone_do_not_tell(tmp_path: Path, where: str) -> None:
    assert probe(tmp_path, where) is None


_NUMBERS = (pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64())


def _array_of(of: pa.DataType, first: int, end: int) -> pa.Array:
    return pa.array([str(n) if of == pa.string() else n for n in range(first, end)], of)


@pytest.mark.parametrize("of", [*_NUMBERS, pa.float64(), pa.date32(), pa.string()], ids=str)
@pytest.mark.parametrize("beside", [None, 300, 2**70, 2.5, "4"], ids=str)
def test_a_long_list_has_the_values_of_its_parts(
    tmp_path: Path, of: pa.DataType, beside: object
) -> None:
    low = 0 if pa.types.is_unsigned_integer(of) else -20
    table = pa.table({"c": _array_of(of, 0, 100)})
    given = _array_of(of, low, 40).to_pylist()
    if beside is not None and not (pa.types.is_date(of) or (of == pa.string() and beside != "4")):
        given.append(beside)
    with opened(write(tmp_path / "x.parquet", table)) as it:
        leaf = it.footer.leaves[0]

        def stored(values: list[object]) -> list[StoredValue]:
            asked = request(table.schema, (), None, from_structure([("c", "in", values)]), ())
            (condition,) = bound_conditions(asked.predicate)
            return list(column_predicate(condition, 0, leaf).values or ())

        singly = [found for value in given for found in stored([value])]
        assert stored(given) == sorted(singly, key=lambda found: found.key)


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
