"""What is counted condition by condition is what evaluating the whole predicate says."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

import secure_bloom as sb
from secure_bloom.predicates.binding import BoundPredicate, bind, bound_conditions
from secure_bloom.predicates.decided import Decided, PredicateShape
from secure_bloom.predicates.from_tuples import from_structure
from secure_bloom.predicates.tree import is_true
from testing.steps import steps_of

SCHEMA = pa.schema([("a", pa.int64())])
TREES = st.recursive(
    st.integers(0, 9).map(lambda n: ("a", "<", n)),
    lambda inner: st.tuples(
        st.sampled_from(["and", "or"]), st.lists(inner, min_size=1, max_size=4)
    ).map(lambda pair: (pair[0], *pair[1])),
    max_leaves=12,
)


def _bound(tree: object) -> BoundPredicate:
    return bind(from_structure(tree), SCHEMA)


@given(TREES, st.data())
def test_false_and_possible_are_what_evaluation_says(tree: object, data: st.DataObject) -> None:
    predicate = _bound(tree)
    ordinals = [condition.ordinal for condition in bound_conditions(predicate)]
    order = data.draw(st.permutations(ordinals))
    shape = PredicateShape.of(predicate)
    false, possible = Decided.false(shape), Decided.possible(shape)
    for number, ordinal in enumerate(order):
        rest = set(data.draw(st.lists(st.sampled_from(ordinals))))
        before, after = set(order[:number]), set(order[: number + 1])
        assert false.would_decide(rest) is not _holds(predicate, set(ordinals) - before - rest)
        false.add(ordinal)
        possible.add(ordinal)
        assert false.is_decided is not _holds(predicate, set(ordinals) - after)
        assert possible.is_decided is _holds(predicate, after)
        assert sorted(false) == sorted(after)


def _holds(predicate: BoundPredicate, true: set[int]) -> bool:
    return is_true(predicate, lambda condition: condition.ordinal in true)


def test_without_a_predicate_nothing_decides() -> None:
    assert not Decided.false(PredicateShape.of(None), [1, 2]).is_decided


def test_twice_the_pairs_take_about_twice_the_time(tmp_path: Path) -> None:
    """Pairs of conditions on two columns, which no list says."""
    numbers = list(range(4000))
    table = pa.table({"a": numbers, "b": [str(n) for n in numbers]})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=1000)

    def steps(count: int) -> int:
        where = ["or", *(["and", ("a", "=", 3 * i), ("b", "=", str(3 * i))] for i in range(count))]
        asked = tuple(map(_tupled, where))
        rows: list[int] = []
        done = steps_of(
            lambda: rows.append(sb.read_table(tmp_path / "x.parquet", where=asked).num_rows)
        )
        assert rows == [len({3 * i for i in range(count)} & set(numbers))]
        return done

    # Where the work grew with the square it was 16 times as much.
    assert steps(800) < 8 * steps(200)


def _tupled(part: object) -> object:
    return tuple(part) if isinstance(part, list) else part
