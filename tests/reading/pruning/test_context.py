"""What one read knows of its conditions: when a file cannot match, and the hashes of its values."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.parquet.footer.columns import SchemaCache
from secure_bloom.parquet.footer.opened import Footer, read_footer
from secure_bloom.predicates.bound_request import request
from secure_bloom.predicates.from_text import from_text
from secure_bloom.reading.pruning.column_predicates import ColumnPredicate
from secure_bloom.reading.pruning.context import PruningContext
from secure_bloom.storage import open_input
from testing.tables import write

TABLE = pa.table(
    {
        "text": ["a"],
        "n": pa.array([1], pa.int32()),
        "list": pa.array([["x"]], pa.list_(pa.string())),
    }
)


def context(where: str) -> PruningContext:
    return PruningContext(request(TABLE.schema, (), None, from_text(where), ()))


@pytest.fixture
def footer(tmp_path: Path) -> Footer:
    with open_input(str(write(tmp_path / "x.parquet", TABLE))) as file:
        return read_footer(file, KeyResolver(None), SchemaCache())


def predicate(it: PruningContext, footer: Footer) -> ColumnPredicate | None:
    return it.column_predicate(it.conditions[0], footer.columns)


def test_a_predicate_is_ruled_out_by_the_conditions_that_it_needs() -> None:
    it = context("text = 'a' and (n = 1 or text = 'b')")
    assert it.can_match(frozenset())
    assert it.can_match(frozenset({1}))
    assert not it.can_match(frozenset({0}))
    assert not it.can_match(frozenset({1, 2}))
    assert it.ruled_out([1, 2]).is_decided
    assert it.deciding(frozenset()) == {0}
    assert it.deciding(frozenset({1})) == {0, 2}


def test_files_with_the_same_leaves_share_what_is_known_of_a_condition(
    footer: Footer,
) -> None:
    it = context("text = 'a'")
    known = predicate(it, footer)
    assert known is not None
    assert (
        predicate(
            it, dataclasses.replace(footer, tail=dataclasses.replace(footer.tail, path="other"))
        )
        is known
    )
    assert it.probe_values(known) is it.probe_values(known)


@pytest.mark.parametrize("where", ["gone = 1", "list is null"])
def test_a_condition_on_what_is_no_single_leaf_tells_nothing(footer: Footer, where: str) -> None:
    schema = TABLE.schema.append(pa.field("gone", pa.int32()))
    it = PruningContext(request(schema, (), None, from_text(where), ()))
    assert predicate(it, footer) is None


def test_hashes_of_some_values_are_a_run_of_those_of_all(footer: Footer) -> None:
    it = context("text in ('a', 'b', 'c', 'd')")
    known = predicate(it, footer)
    assert known is not None
    assert known.values is not None
    every = it.hashes(known, known.values)
    assert it.hashes(known, known.values) is every
    assert list(it.hashes(known, known.values[1:3]).array) == list(every.array)[1:3]
