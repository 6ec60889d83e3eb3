"""Each column of the seeded tables is judged as a person would, with the reason in words."""

from __future__ import annotations

import pytest

import secure_bloom as sb
from secure_bloom.advising import ColumnAdvice
from tests.advising.seeded import TABLES
from tests.tables import KEYRING


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
