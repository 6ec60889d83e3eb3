"""The page on compatibility says what was recorded, all of it and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testing.compatibility import (
    PAGE,
    Claim,
    Compatibility,
    Ruling,
    Shown,
    StalePageError,
    Support,
    parse,
    render,
    written_page,
)

CLAIMS = st.builds(
    Claim,
    type=st.sampled_from(["INT32 date", "INT32 decimal(9, 2)", "FLOAT"]),
    encoding=st.sampled_from(["PLAIN", "dictionary", "DELTA_BYTE_ARRAY"]),
    mode=st.sampled_from(["plain", "uniform", "encrypted footer"]),
    reader=st.sampled_from(["DuckDB", "Spark"]),
    shown=st.sampled_from(Shown),
)


@given(st.frozensets(CLAIMS, min_size=1))
def test_a_page_says_what_was_seen(claims: frozenset[Claim]) -> None:
    assert parse(render(claims)) == claims


def test_what_holds_everywhere_is_said_in_a_word() -> None:
    everywhere = [
        Claim("FLOAT", encoding, mode, "DuckDB", Shown.ROWS)
        for encoding in ("PLAIN", "dictionary")
        for mode in ("plain", "uniform")
    ]
    page = render([*everywhere, Claim("FLOAT", "PLAIN", "plain", "DuckDB", Shown.LOOKUPS)])
    assert "| FLOAT | PLAIN, dictionary | rows; lookups (PLAIN in plain) |" in page


def test_what_the_page_does_not_say_fails() -> None:
    said = Claim("FLOAT", "PLAIN", "plain", "DuckDB", Shown.ROWS)
    page = Compatibility(claims=set(), committed=frozenset({said}))
    page.record(said)
    with pytest.raises(StalePageError, match="make compatibility"):
        page.record(said._replace(shown=Shown.NOT_READ))


def test_a_run_on_one_version_of_spark_writes_its_row_and_keeps_the_rest() -> None:
    said = Claim("FLOAT", "PLAIN", "plain", "Spark", Shown.ROWS)
    rows = {Support(spark, "1.13.1", "audit", "yes") for spark in ("3.5.8", "4.1.4")}
    before = render({said, *rows}, {"Spark": "0.1"})
    newer = Support("3.5.9", "1.13.1", "audit", "no")
    after = written_page({newer}, before)
    assert parse(after) == {said, newer, Support("4.1.4", "1.13.1", "audit", "yes")}
    assert "| Spark | 0.1 | plain |" in after
    page = Compatibility(claims=set(), committed=parse(after))
    page.record(newer._replace(spark="3.5.10"))
    with pytest.raises(StalePageError):
        page.record(newer._replace(shown="yes"))


def test_a_run_of_one_judge_writes_its_row_and_keeps_the_rest() -> None:
    said = parse(PAGE.read_text())
    cases = [it for it in said if isinstance(it, Ruling) and it.judge == "daft"]
    newer = {it._replace(version="9.9", shown=Shown.NOT_READ) for it in cases}
    assert cases
    assert parse(written_page(newer, PAGE.read_text())) == said.difference(cases) | newer


def test_the_committed_page_is_one_that_was_generated() -> None:
    claims = parse(PAGE.read_text())
    assert claims
    assert parse(render(claims)) == claims
