"""The values of a lookup as arrays, for the C extension; None where it could not compare them."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest

from secure_bloom.predicates.binding import bound_conditions
from secure_bloom.predicates.bound_request import request
from secure_bloom.predicates.from_text import from_text
from secure_bloom.reading.pruning.column_predicates import ProbeValues, column_predicate
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
