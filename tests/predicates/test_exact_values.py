"""Long lists, converted in one pass: the same values as one by one, or none."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import PolicyError
from secure_bloom.predicates.coercion import coerced_values
from secure_bloom.predicates.exact_values import FEW, exact_scalars
from secure_bloom.predicates.tree import Numeral

_TYPES: dict[str, pa.DataType] = {
    **{str(of): of for of in (pa.int8(), pa.uint32(), pa.int64(), pa.string(), pa.string_view())},
    **{str(of): of for of in (pa.binary(), pa.large_binary(), pa.binary(16), pa.binary(3))},
    **{str(of): of for of in (pa.float16(), pa.float32(), pa.float64())},
    **{str(of): of for of in (pa.decimal32(5, 2), pa.decimal128(12, 2), pa.decimal256(40, 3))},
    **{str(of): of for of in (pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ns"))},
    **{str(of): of for of in (pa.timestamp("us"), pa.timestamp("ms", "UTC"))},
    "an instant in a zone": pa.timestamp("us", "Europe/Rome"),
}
_instants = st.datetimes(datetime(1600, 1, 1), datetime(2900, 1, 1))
_zones = st.sampled_from([UTC, timezone(timedelta(hours=2)), timezone(timedelta(seconds=-7))])
#: Strategies for values of one kind; now and then one of another kind is among them.
_KINDS = [
    st.integers(-(2**70), 2**70),
    st.integers(-100, 100),
    st.booleans(),
    st.floats(width=16),
    st.floats(),
    st.decimals(-1000, 1000, places=2),
    st.decimals(),
    st.decimals(-1000, 1000, places=2).map(str),
    st.decimals(-1000, 1000, places=2).map(lambda it: Numeral(str(it))),
    st.text(),
    st.binary(),
    st.binary(min_size=16, max_size=16),
    st.uuids(),
    st.uuids().map(str),
    st.uuids().map(lambda it: it.hex),
    st.sampled_from(["hex:00ff", "f" * 36, "-" * 36, " " * 36, f"{UUID(int=5)}"[::-1], "1_000"]),
    st.dates(),
    st.dates().map(str),
    _instants,
    _instants.map(lambda it: it.replace(microsecond=0)),
    st.builds(lambda it, zone: it.replace(tzinfo=zone), _instants, _zones),
    _instants.map(str),
    _instants.map(lambda it: f"{it.isoformat()}Z"),
    _instants.map(lambda it: f"{it.isoformat(timespec='microseconds')}001+05:30"),
]


@pytest.mark.parametrize("name", _TYPES)
@given(st.data())
def test_values_are_those_of_one_by_one(name: str, data: st.DataObject) -> None:
    of = _TYPES[name]
    kind = data.draw(st.sampled_from(_KINDS))
    values: list[Any] = data.draw(st.lists(kind, min_size=3, max_size=6)) * FEW
    if data.draw(st.integers(0, 4)) == 0:
        values.append(data.draw(data.draw(st.sampled_from(_KINDS))))
    together = exact_scalars(of, values)
    if together is None:
        return
    singly = coerced_values("x", of, values)
    assert together == tuple(value.floor for value in singly if value.is_exact)
    assert all(scalar.type == of for scalar in together)


_DAY = date(2024, 3, 1)
_INSTANT = datetime(2024, 3, 1, 10, 30)


@pytest.mark.parametrize(
    ("of", "value"),
    [
        (pa.int64(), 5),
        (pa.string(), "x"),
        (pa.binary(), b"x"),
        (pa.binary(16), bytes(16)),
        (pa.binary(16), UUID(int=7)),
        (pa.binary(16), str(UUID(int=7))),
        (pa.float32(), 0.5),
        (pa.decimal128(9, 2), Decimal("1.5")),
        (pa.decimal128(9, 2), "1.5"),
        (pa.decimal128(9, 2), 3),
        (pa.date32(), _DAY),
        (pa.date64(), _DAY),
        (pa.date32(), str(_DAY)),
        (pa.timestamp("ms"), _INSTANT),
        (pa.timestamp("us", "Europe/Rome"), _INSTANT),
        (pa.timestamp("us", "UTC"), _INSTANT.replace(tzinfo=UTC)),
        (pa.timestamp("us"), str(_INSTANT)),
        (pa.timestamp("ns", "UTC"), f"{_INSTANT.isoformat()}+01:00"),
    ],
    ids=[str(number) for number in range(18)],
)
def test_values_of_the_types_own_kind_are_converted_together(of: pa.DataType, value: Any) -> None:
    (alone,) = coerced_values("x", of, [value])
    assert exact_scalars(of, [value] * (FEW + 1)) == (alone.floor,) * (FEW + 1)
    assert exact_scalars(of, [value] * FEW) is None


@pytest.mark.parametrize(
    ("of", "values", "other"),
    [
        (pa.int8(), [*range(40)], 300),
        (pa.int64(), [*range(40)], True),
        (pa.int64(), [*range(40)], 2.5),
        (pa.uint32(), [*range(40)], -1),
        (pa.string(), [*map(str, range(40))], Numeral("5")),
        (pa.string(), [*map(str, range(40))], "\udcff"),
        (pa.binary(16), [str(UUID(int=n)) for n in range(40)], " " * 36),
        (pa.binary(16), [bytes(16)] * 40, b"short"),
        (pa.decimal128(5, 2), [Decimal(n) for n in range(40)], Decimal("0.001")),
        (pa.timestamp("s"), [_INSTANT] * 40, _INSTANT.replace(microsecond=1)),
        (pa.timestamp("us"), [_INSTANT] * 40, _INSTANT.replace(tzinfo=UTC)),
    ],
    ids=[str(number) for number in range(11)],
)
def test_a_list_with_another_kind_of_value_is_converted_one_by_one(
    of: pa.DataType, values: list[object], other: object
) -> None:
    assert exact_scalars(of, values) is not None
    assert exact_scalars(of, [*values, other]) is None


def test_an_instant_with_a_zone_is_refused_by_a_column_of_local_times() -> None:
    aware = [_INSTANT.replace(tzinfo=UTC)] * 40
    assert exact_scalars(pa.timestamp("us"), aware) is None
    with pytest.raises(PolicyError):
        coerced_values("x", pa.timestamp("us"), aware)
