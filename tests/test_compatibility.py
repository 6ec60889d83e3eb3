"""The page on compatibility says what was recorded, all of it and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compatibility import (
    PAGE,
    Claim,
    Compatibility,
    Shown,
    StalePageError,
    parse,
    render,
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


def test_the_committed_page_is_one_that_was_generated() -> None:
    claims = parse(PAGE.read_text())
    assert claims
    assert parse(render(claims)) == claims
