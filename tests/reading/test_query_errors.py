"""Errors of DuckDB become errors that name what to write, and quote no value of a row."""

from __future__ import annotations

import duckdb
import pytest

from secure_bloom.reading.query_errors import refusal, unparsed


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("SELECT secret::int FROM t", "a value cannot be converted", "try_cast("),
        ("SELECT error(secret) FROM t", "does not take a value", "try(EXPRESSION)"),
        ("SELECT 9223372036854775807 + n FROM t", "out of the range", "HUGEINT"),
        ("SELECT n FROM t WHERE secret = $key", "no value for $key", "--parameters FILE"),
        ('SELECT "a@example.com" FROM t', '"..."', "secret"),
    ],
)
def test_an_error_of_duckdb_has_no_value(query: str, message: str, hint: str) -> None:
    with duckdb.connect() as connection:
        rows = connection.execute("CREATE TABLE t AS SELECT 'a@example.com' AS secret, 1 AS n")
        with pytest.raises((duckdb.Error, OSError)) as caught:
            rows.execute(query).fetchall()
    error = refusal(caught.value, query)
    assert message in str(error)
    assert hint in str(error.hint)
    assert "example.com" not in f"{error}{error.hint}"


def test_a_text_that_is_no_query_is_not_quoted() -> None:
    answer = {"error_type": "parser", "error_message": 'syntax error at or near "a@example.com"'}
    assert "example.com" not in str(unparsed("a@example.com", answer))
