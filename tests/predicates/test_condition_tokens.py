"""The tokens of a condition, and the place that an error shows."""

from __future__ import annotations

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.predicates.condition_tokens import tokens_of
from secure_bloom.predicates.from_text import from_text


def test_a_token_has_its_kind_its_text_without_quotes_and_its_place() -> None:
    found = [
        (it.kind, it.text, it.place, it.keyword) for it in tokens_of("\"a b\" = 'O''Hara' AND;")
    ]
    assert found == [
        ("name", "a b", 1, ""),
        ("sign", "=", 7, "="),
        ("text", "O'Hara", 9, ""),
        ("word", "AND", 19, "and"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "caret"),
    [
        ("email = secret and n = 3", "email = '******' and * = *", 8),
        ("n = 3 and email ~ 'secret'", "n = * and ***** * '******'", 16),
        ("email = 'secret' limit 3", "email = '******' ***** *", 17),
        ("upper(email) = 'secret'", "upper(*****) = '******'", 0),
        ("email = \u2018secret\u2019", "***** = ********", 8),
    ],
)
def test_an_error_shows_its_place_and_no_value(text: str, line: str, caret: int) -> None:
    with pytest.raises(PolicyError) as caught:
        from_text(text)
    shown = str(caught.value.hint).splitlines()[-2:]
    assert shown[0].replace(" ", "") == line.replace(" ", "")
    assert shown[1].index("^") - 2 == caret
    assert "secret" not in str(caught.value.hint)
    assert not any(digit in shown[0] for digit in "3")
