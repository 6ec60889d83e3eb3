"""The values of a lookup as arrays, for the C extension; None where it could not compare them."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest

from secure_bloom.predicates.binding import bound_conditions
from secure_bloom.predicates.bound_request import request
from secure_bloom.predicates.from_text import from_text
from secure_bloom.predicates.from_tuples import from_structure
from secure_bloom.reading.pruning.column_predicates import (
    ProbeValues,
    StoredValue,
    column_predicate,
)
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
