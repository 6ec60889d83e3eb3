"""The type of a column whose files differ, whatever the order of the files."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from secure_bloom.reading.table.type_promotion import ClashError, common_fields, common_type

#: No file is read here.
pytestmark = pytest.mark.parametrize("has_extension", [False])

_SIGNED = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
_UNSIGNED = [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
_OTHERS = [
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(5, 2),
    pa.decimal128(38, 10),
    pa.decimal256(70, 2),
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.binary(3),
    pa.binary(16),
    pa.uuid(),
    pa.bool_(),
    pa.null(),
    pa.date32(),
    pa.date64(),
    pa.timestamp("us"),
    pa.timestamp("ns", "UTC"),
    pa.timestamp("ms", "Europe/Rome"),
    pa.time32("s"),
    pa.time64("ns"),
    pa.duration("ms"),
    pa.duration("s"),
    pa.dictionary(pa.int8(), pa.string()),
    pa.month_day_nano_interval(),
    pa.list_(pa.int32()),
    pa.large_list(pa.uint8()),
    pa.list_(pa.int64(), 2),
    pa.map_(pa.string(), pa.int32()),
    pa.map_(pa.large_string(), pa.int64()),
    pa.struct([("x", pa.int32())]),
    pa.struct([("x", pa.float32()), ("y", pa.bool_())]),
]


def _type(types: tuple[pa.DataType, ...]) -> pa.DataType | None:
    try:
        return common_type(types)
    except ClashError:
        return None


@pytest.mark.parametrize(
    ("types", "count"),
    [
        pytest.param(_SIGNED + _UNSIGNED + _OTHERS, 2, id="2"),
        # Of integers two of each kind are enough: others differ by their width alone.
        pytest.param(_SIGNED[1:3] + _UNSIGNED[2:] + _OTHERS, 3, id="3", marks=pytest.mark.slow),
    ],
)
def test_the_order_of_files_does_not_count(types: list[pa.DataType], count: int) -> None:
    for some in itertools.combinations(types, count):
        assert len({_type(order) for order in itertools.permutations(some)}) == 1, some


def test_every_integer_of_both_is_one_of_the_common_type() -> None:
    for types in itertools.product(_SIGNED + _UNSIGNED, _SIGNED + _UNSIGNED + _OTHERS[:6]):
        found = _type(types)
        for of in types if found is not None else ():
            if pa.types.is_integer(of):
                low = -(2 ** (of.bit_width - 1)) if of in _SIGNED else 0
                bounds = pa.array([low, low + 2**of.bit_width - 1], of)
                assert [int(value) for value in bounds.cast(found).to_pylist()] == (
                    bounds.to_pylist()
                ), (types, found)


@pytest.mark.parametrize(
    "types",
    [
        (pa.binary(3), pa.binary(4), pa.string()),
        (pa.int32(), pa.decimal128(5, 2), pa.float64()),
        (pa.struct([("x", pa.int32()), ("x", pa.int64())]), pa.struct([("x", pa.int32())])),
    ],
    ids=str,
)
def test_what_has_nothing_in_common_is_told_by_name(types: tuple[pa.DataType, ...]) -> None:
    rows = [[pa.field("s", pa.list_(pa.field("item", of)))] for of in types]
    with pytest.raises(ClashError) as caught:
        common_fields(rows)
    assert caught.value.path == ("s", "item")
    assert tuple(caught.value.types) == types
