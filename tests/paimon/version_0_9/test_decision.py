"""Which files Paimon 0.9 reads, as its Java code answered; and that the safe rules lose no row."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import FormatError, SecureBloomError, UnsupportedFeatureError
from secure_bloom.paimon import (
    And,
    BloomFilter64,
    Comparison,
    DataType,
    FileIndex,
    Index,
    Operator,
    Or,
    Rules,
    must_read,
    typed_forms,
)
from secure_bloom.paimon.comparisons import Predicate
from secure_bloom.paimon.data_types import hash_value
from secure_bloom.paimon.version_0_9 import loses_rows
from secure_bloom.predicates.tree import leaves
from tests.paimon.vectors import load, predicate_of, types_of
from tests.paimon.version_0_9.test_roaring import written

VECTORS = load("verdicts")
TYPES = types_of(VECTORS["schema"])
FORMS = typed_forms(TYPES)
Row = dict[str, Any]


def reads(index: FileIndex, predicate: Predicate, rules: Rules) -> bool:
    return must_read(index, predicate, FORMS, rules=rules)


def index_of(case: dict[str, Any]) -> FileIndex:
    return FileIndex.from_bytes(base64.b64decode(case["file"]))


def rows_of(case: dict[str, Any]) -> list[Row]:
    columns = case["rows"] or {}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def satisfies(row: Row, predicate: Predicate) -> bool:
    """As SQL has it: a comparison with NULL is never true."""
    if not isinstance(predicate, Comparison):
        found = [satisfies(row, part) for part in predicate.parts]
        return all(found) if isinstance(predicate, And) else any(found)
    value, wanted = row[predicate.column], predicate.values
    if value is None or predicate.operator in (Operator.IS_NULL, Operator.IS_NOT_NULL):
        return (value is None) is (predicate.operator is Operator.IS_NULL)
    match predicate.operator:
        case Operator.EQUAL | Operator.IN:
            return value in wanted
        case Operator.NOT_EQUAL | Operator.NOT_IN:
            return value not in wanted
        case Operator.LESS:
            return value < wanted[0]
    raise NotImplementedError(predicate.operator)


@pytest.mark.parametrize("case", VECTORS["cases"])
def test_a_file_that_java_may_skip_is_skipped_and_no_other(case: dict[str, Any]) -> None:
    """``01``: what it answers depends on which index of a column its hash set has first."""
    index = index_of(case)
    for written_as, answers in zip(case["predicates"], case["answers"], strict=True):
        predicate = predicate_of(written_as, TYPES)
        assert reads(index, predicate, Rules.PAIMON_0_9) is ("0" not in answers), written_as


@pytest.mark.parametrize("case", VECTORS["cases"])
def test_safe_rules_keep_what_java_loses(case: dict[str, Any]) -> None:
    index, rows = index_of(case), rows_of(case)
    for written_as in case["predicates"]:
        predicate = predicate_of(written_as, TYPES)
        if any(satisfies(row, predicate) for row in rows):
            assert reads(index, predicate, Rules.SAFE), written_as
            skipped = not reads(index, predicate, Rules.PAIMON_0_9)
            assert loses_rows(index, predicate, FORMS) is skipped, written_as


def test_the_vectors_have_cases_where_java_loses_rows() -> None:
    """Otherwise the tests above would hold for rules that are right."""
    lost = [
        predicate
        for case in VECTORS["cases"]
        for predicate, answers in zip(case["predicates"], case["answers"], strict=True)
        if "0" in answers
        and any(satisfies(row, predicate_of(predicate, TYPES)) for row in rows_of(case))
    ]
    assert len(lost) > 30


def bitmap(values: list[int | None]) -> Index:
    """A bitmap index of an INT column, as Paimon 0.9 writes it."""
    nulls = {row for row, value in enumerate(values) if value is None}
    bodies, places = b"", {}
    sets = {None: nulls} if nulls else {}
    for value in dict.fromkeys(each for each in values if each is not None):
        sets[value] = {row for row, each in enumerate(values) if each == value}
    for value, rows in sets.items():
        places[value] = -1 - min(rows) if len(rows) == 1 else len(bodies)
        bodies += written(rows, runs=False) if len(rows) > 1 else b""
    head = struct.pack(">Biib", 1, len(values), len(sets) - bool(nulls), bool(nulls))
    head += struct.pack(">i", places.pop(None)) if nulls else b""
    entries = b"".join(struct.pack(">ii", value, place) for value, place in places.items())
    return Index(type="bitmap", body=head + entries + bodies)


def bloom(values: list[int | None]) -> Index:
    found = [value for value in values if value is not None]
    if not found:
        return Index(type="bloom-filter", body=None)
    content = BloomFilter64.sized(20, 0.2)
    for value in found:
        content.insert_hash(hash_value(DataType.parse("INT"), value) or 0)
    return Index(type="bloom-filter", body=content.to_bytes())


SMALL = st.integers(0, 6)
COLUMNS = st.sampled_from(["a", "u"])
COMPARISONS = st.one_of(
    st.builds(
        lambda column, operator, value: Comparison(
            column=column, operator=operator, values=(value,)
        ),
        COLUMNS,
        st.sampled_from([Operator.EQUAL, Operator.NOT_EQUAL, Operator.LESS]),
        SMALL,
    ),
    st.builds(
        lambda column, operator, values: Comparison(
            column=column, operator=operator, values=tuple(values)
        ),
        COLUMNS,
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.lists(SMALL, min_size=1, max_size=3) | st.lists(SMALL, min_size=19, max_size=22),
    ),
    st.builds(
        lambda column, operator: Comparison(column=column, operator=operator),
        COLUMNS,
        st.sampled_from([Operator.IS_NULL, Operator.IS_NOT_NULL]),
    ),
)
PREDICATES = st.recursive(
    COMPARISONS,
    lambda parts: st.builds(
        lambda join, parts: join(tuple(parts)),
        st.sampled_from([And, Or]),
        st.lists(parts, min_size=1, max_size=4),
    ),
    max_leaves=8,
)
VALUES = st.lists(st.tuples(st.none() | SMALL, st.none() | SMALL), min_size=1, max_size=12)
INDEXES = st.lists(st.tuples(COLUMNS, st.sampled_from([bitmap, bloom])), unique=True)


@given(predicate=PREDICATES, values=VALUES, indexes=INDEXES)
def test_the_rules_differ_only_as_documented(
    predicate: Predicate, values: list[tuple[int | None, int | None]], indexes: list[Any]
) -> None:
    columns = dict(zip("au", map(list, zip(*values, strict=True)), strict=True))
    index = FileIndex().with_indexes((name, make(columns[name])) for name, make in indexes)
    rows = [dict(zip("au", row, strict=True)) for row in values]
    safe, as_paimon = (reads(index, predicate, rules) for rules in Rules)
    if any(satisfies(row, predicate) for row in rows):
        assert safe
        assert as_paimon or loses_rows(index, predicate, FORMS)
    has_bitmap = any(make is bitmap for _, make in indexes)
    has_long_in = any(len(each.values) > 20 for each in leaves(predicate))
    if safe and not as_paimon:
        assert has_bitmap
    if as_paimon and not safe:
        assert has_long_in


def _equal(column: str, value: int) -> Comparison:
    return Comparison(column=column, operator=Operator.EQUAL, values=(value,))


@pytest.mark.parametrize(
    ("predicate", "read", "lost"),
    [
        (_equal("a", 1), True, False),
        (_equal("a", 3), False, False),
        (Or((_equal("a", 1), _equal("u", 5))), True, False),  # two bitmaps: a union of rows
        (And((_equal("a", 1), _equal("u", 6))), False, False),  # no row has both
        (Or((_equal("a", 1), _equal("b", 9))), False, True),  # a Bloom filter beside a bitmap
        (Or((_equal("b", 9), _equal("a", 1))), True, False),  # the other way round it is right
        (Or((_equal("a", 3), _equal("t", 7))), False, True),  # a column without an index
    ],
)
def test_an_or_with_a_bitmap_first_loses_rows(predicate: Predicate, read: bool, lost: bool) -> None:
    filter_of_1 = BloomFilter64.sized(5, 1e-6)
    filter_of_1.insert_hash(hash_value(DataType.parse("BIGINT"), 1) or 0)
    index = FileIndex().with_indexes(
        [
            ("a", bitmap([1, 1, 2])),
            ("u", bitmap([5, 5, 6])),
            ("b", Index(type="bloom-filter", body=filter_of_1.to_bytes())),
        ]
    )
    assert reads(index, predicate, Rules.PAIMON_0_9) is read
    assert loses_rows(index, predicate, FORMS) is lost


@pytest.mark.parametrize("rules", list(Rules))
def test_a_damaged_index_is_an_error_by_both_rules(rules: Rules) -> None:
    empty = Index(type="bloom-filter", body=None)
    for index_type, body, error in (
        ("bloom-filter", b"\0\0", FormatError),
        ("bitmap", (bitmap([1, 1, 2]).body or b"")[:20], FormatError),
        ("future", b"x", UnsupportedFeatureError),
    ):
        damaged = Index(type=index_type, body=body)
        index = FileIndex().with_indexes([("a", empty), ("u", damaged)])
        for join in (And, Or):
            with pytest.raises(error, match="column u"):
                reads(index, join((_equal("a", 1), _equal("u", 1))), rules)


def test_a_bitmap_that_is_cut_is_an_error_where_its_rows_are_read() -> None:
    index = FileIndex().with_indexes(
        [("a", Index(type="bitmap", body=(bitmap([1, 1, 2]).body or b"")[:-1]))]
    )
    assert reads(index, _equal("a", 1), Rules.SAFE)
    with pytest.raises(FormatError, match="a bitmap ends"):
        reads(index, _equal("a", 1), Rules.PAIMON_0_9)


def test_each_column_has_its_own_order_of_indexes() -> None:
    """Rows are lost where the bitmap of ``a`` comes first and that of ``u`` does not."""
    filters = {}
    for column, value in (("a", 1), ("u", 5)):
        filters[column] = BloomFilter64.sized(5, 1e-9)
        filters[column].insert_hash(hash_value(TYPES[column], value) or 0)
    index = FileIndex().with_indexes(
        [
            ("a", bitmap([1, 1])),
            ("a", Index(type="bloom-filter", body=filters["a"].to_bytes())),
            ("u", bitmap([5, 5])),
            ("u", Index(type="bloom-filter", body=filters["u"].to_bytes())),
        ]
    )
    absent_or_unknown = Or((_equal("a", 3), _equal("t", 7)))
    there_or_absent = Or((_equal("u", 5), _equal("u", 6)))
    lossy = Or((absent_or_unknown, there_or_absent))
    assert not reads(index, lossy, Rules.PAIMON_0_9)
    assert loses_rows(index, lossy, FORMS)
    assert reads(index, lossy, Rules.SAFE)


def test_a_value_that_is_listed_often_is_read_once() -> None:
    """Paimon keeps the last place; the others point behind the end and are not looked at."""
    head = struct.pack(">Biib", 1, 3, 1001, 0)
    body = head + struct.pack(">ii", 1, 1 << 20) * 1000 + struct.pack(">ii", 1, -3)
    index = FileIndex().with_indexes(
        [("a", Index(type="bitmap", body=body)), ("u", bitmap([5, 5, 6]))]
    )
    assert reads(index, And((_equal("a", 1), _equal("u", 6))), Rules.PAIMON_0_9)
    assert not reads(index, And((_equal("a", 1), _equal("u", 5))), Rules.PAIMON_0_9)


@pytest.mark.parametrize("place", [-4, -(2**31), 2**31 - 1])
def test_a_place_that_is_none_is_an_error(place: int) -> None:
    body = struct.pack(">Biib", 1, 3, 1, 0) + struct.pack(">ii", 1, place)
    index = FileIndex().with_indexes([("a", Index(type="bitmap", body=body))])
    with pytest.raises(FormatError, match="column a"):
        reads(index, _equal("a", 1), Rules.PAIMON_0_9)


@pytest.mark.parametrize("rows", [-1, 2**31 - 1])
def test_a_number_of_rows_that_no_file_has_takes_no_memory(rows: int) -> None:
    body = struct.pack(">Biib", 1, rows, 1, 0) + struct.pack(">ii", 1, -1)
    index = FileIndex().with_indexes([("a", Index(type="bitmap", body=body))])
    for operator in (Operator.EQUAL, Operator.NOT_EQUAL, Operator.IS_NOT_NULL):
        asked = Comparison(column="a", operator=operator, values=(1,))
        with pytest.raises(SecureBloomError, match="rows"):
            reads(index, asked, Rules.PAIMON_0_9)
