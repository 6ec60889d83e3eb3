"""Each column of the seeded tables is judged as a person would, with the reason in words."""

from __future__ import annotations

import pytest

import secure_bloom as sb
from secure_bloom.advising.candidates import Candidate
from secure_bloom.advising.sample import TableSample
from secure_bloom.advising.table_advice import ColumnAdvice
from secure_bloom.advising.trial import LookupComparison, LookupCost
from secure_bloom.advising.verdict import ColumnCase, decide
from testing.tables import KEYRING
from tests.advising.seeded import TABLES
from tests.advising.trials import comparison, cost, trial


@pytest.fixture(scope="module")
def advice(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, ColumnAdvice]]:
    found = {}
    for name in ("sorted ids", "low cardinality", "one row group", "many small files"):
        table = tmp_path_factory.mktemp("tables") / "t"
        TABLES[name](table)
        found[name] = {it.column: it for it in sb.advise(table, keys=KEYRING).columns}
    return found


@pytest.mark.parametrize(
    ("table", "column", "verdict", "words"),
    [
        ("sorted ids", "id", "no", "sorted: statistics suffice"),
        ("sorted ids", "email", "gains", "absent lookups read"),
        ("low cardinality", "city", "no", "dictionary-complete: about 4 distinct values"),
        ("low cardinality", "x", "no", "ranges only"),
        ("one row group", "email", "gains", "present ones gain nothing: the one row group must be"),
        ("many small files", "email", "no", "small files: footers are most"),
    ],
)
def test_a_column_is_judged_with_a_reason(
    advice: dict, table: str, column: str, verdict: str, words: str
) -> None:
    found = advice[table][column]
    assert str(found.verdict) == verdict
    assert words in found.reason


def test_one_row_group_gains_for_absent_values_alone(advice: dict) -> None:
    numbers = advice["one row group"]["email"].to_dict()["bytes_per_lookup"]
    assert numbers["absent"]["with"] < numbers["absent"]["without"] / 2
    assert numbers["present"]["with"] >= numbers["present"]["without"]


GROUPS, MIB = 100, 1 << 20


def decided(
    present: LookupComparison | None, absent: LookupComparison | None, row_groups: int = GROUPS
) -> tuple[str, str]:
    sample = TableSample(
        tables=None,
        table=None,
        candidates=(),
        files=(),
        row_groups={},
        is_cut=False,
        file_count=1,
        row_group_count=row_groups,
        rows=1000 * row_groups,
        size=MIB,
        bytes_footers=1,
    )
    candidate = Candidate(path=("a",), type="STRING", lookup=("a",))
    verdict, reason = decide(
        ColumnCase(candidate=candidate, sample=sample, log=None, trial=trial(present, absent))
    )
    return str(verdict), reason


def unchanged(cost: LookupCost) -> LookupComparison:
    return comparison(cost, cost)


#: Every row group has the value, and pages are most of the bytes.
FULL = unchanged(cost(MIB, GROUPS))


@pytest.mark.parametrize(
    ("present", "absent", "row_groups", "words"),
    [
        (None, None, GROUPS, "no values: every row"),
        (unchanged(cost(MIB, 1, partition=99)),) * 2 + (GROUPS, "partition: the names of folders"),
        (FULL, unchanged(cost(MIB, 10, statistics=90)), GROUPS, "sorted: statistics suffice, the"),
        (unchanged(cost(MIB, 3)), None, 3, "too few row groups: 3"),
        (FULL, FULL, GROUPS, "common values: a lookup finds rows in 100 of 100"),
        (unchanged(cost(MIB, 40)),) * 2 + (40 * 2 + 1, "about as many bytes of filters as it"),
    ],
)
def test_what_gains_nothing_has_a_cause(
    present: LookupComparison | None,
    absent: LookupComparison | None,
    row_groups: int,
    words: str,
) -> None:
    verdict, reason = decided(present, absent, row_groups)
    assert verdict == "no"
    assert words in reason


@pytest.mark.parametrize(
    ("read", "words"),
    [(90, "present ones gain nothing: most row groups have the value"), (30, "gain nothing")],
)
def test_absent_values_alone_may_gain(read: int, words: str) -> None:
    absent = comparison(cost(MIB, GROUPS), cost(MIB / 4, 1, bloom_filter=99))
    verdict, reason = decided(unchanged(cost(MIB, read, bloom_filter=GROUPS - read)), absent)
    assert verdict == "gains"
    assert reason.startswith("absent lookups read 75 % less, ")
    assert reason.endswith(words)
