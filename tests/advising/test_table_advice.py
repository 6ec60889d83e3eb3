"""What advice says in words and in lines for a policy."""

from __future__ import annotations

import tomllib

import pytest

from secure_bloom.advising.query_log import QueryLog
from secure_bloom.advising.table_advice import ColumnAdvice, TableAdvice
from secure_bloom.advising.verdict import AdviceVerdict


def column(name: str, verdict: AdviceVerdict = AdviceVerdict.GAINS, **more: object) -> ColumnAdvice:
    return ColumnAdvice(
        column=name, type="INT64", verdict=verdict, reason="so it is", fpp=0.01, **more
    )


def table(*columns: ColumnAdvice, looked_at: int = 12, log: QueryLog | None = None) -> TableAdvice:
    return TableAdvice(
        columns=columns,
        files=3,
        row_groups=12,
        rows=1000,
        bytes=5000,
        files_looked_at=2,
        row_groups_looked_at=looked_at,
        log=log,
    )


@pytest.mark.parametrize("name", ["email", "address.zip", 'a "quoted" name', "naïve\n[kms]", "a]b"])
def test_every_name_of_a_column_is_one_key_of_the_policy(name: str) -> None:
    policy = tomllib.loads(table(column(name, key="k_pii")).policy)
    assert policy == {"columns": {name: {"key": "k_pii", "bloom": {"fpp": 0.01}}}}


def test_columns_that_gain_nothing_are_not_in_the_policy() -> None:
    assert table(column("a", AdviceVerdict.NO)).policy == ""


def test_the_advice_says_how_much_of_the_table_was_tried() -> None:
    assert table().sureness.startswith("all row groups were tried")
    assert "tried on 5 of 12 row groups, in 2 of 3 files" in table(looked_at=5).sureness


def test_lines_that_are_no_queries_are_told_by_number() -> None:
    log = QueryLog(lines=30, not_parsed=tuple(range(1, 13)))
    assert table(log=log).queries_text == (
        "queries: 30 lines, 12 not understood: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ..."
    )
    assert table().queries_text == ""
