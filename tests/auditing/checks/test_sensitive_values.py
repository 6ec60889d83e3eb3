"""Values of sensitive columns are found in what repeats them, and by chance nowhere."""

from __future__ import annotations

import pytest

from secure_bloom.auditing.checks.sensitive_values import SensitiveValues, sparse

EMAILS = [
    b"anna@x.org",
    b"bo@y.org",
    b"cy@z.org",
    b"di@z.org",
    *(b"e%d@z.org" % i for i in range(9)),
]
VALUES = SensitiveValues({"email": EMAILS, "ssn": [10_203_040]})


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (b"to: Anna@X.org", ["email"]),
        (b"anna%40x.org", ["email"]),
        (b"bo@y.org", []),
        (b"bo@y.org, cy@z.org", []),
        (b"bo@y.org cy@z.org di@z.org", ["email"]),
        (b"10203040", []),
        (b"", []),
    ],
)
def test_a_text_holds_one_telling_value_or_three(text: bytes, columns: list[str]) -> None:
    assert list(VALUES.columns_in(text)) == columns


def test_digits_inside_a_longer_number_are_another_number() -> None:
    numbers = SensitiveValues({"ssn": [1_020_304_050]})
    assert list(numbers.columns_in(b"no. 1020304050.")) == ["ssn"]
    assert list(numbers.columns_in(b"no. 91020304050")) == []
    assert list(numbers.columns_in(b"no. 10203040501")) == []


def test_dense_numbers_and_short_values_are_not_looked_for() -> None:
    assert list(sparse(range(10**8, 10**8 + 100))) == []
    assert list(sparse([10**8, 10**9])) == [10**8, 10**9]
    assert not SensitiveValues({"country": [b"it", b"no"], "age": [42]})


def test_a_few_words_are_in_any_description() -> None:
    states = SensitiveValues({"state": [b"active", b"pending", b"closed"]})
    assert list(states.columns_in(b"active, pending or closed")) == []
    assert list(states.columns_repeated([b"closed", b"active", b"pending"])) == ["state"]


def test_no_value_shows() -> None:
    assert "anna" not in repr(VALUES) + str(VALUES)
