"""Texts of columns and their settings."""

from __future__ import annotations

import pytest

from secure_bloom.cli.arguments import load_keys, load_policy, parse_columns
from secure_bloom.errors import PolicyError


def test_no_column_is_none() -> None:
    assert parse_columns(()) is None


def test_settings_stand_behind_colons() -> None:
    found = parse_columns(("a:fpp=0.5:max_bytes=64", "b:c"))
    assert found is not None
    assert (found["a"].fpp, found["a"].max_bytes) == (0.5, 64)
    assert found["b:c"].fpp == 0.01


@pytest.mark.parametrize("texts", [("a", "a"), ("a:fpp=x",), ("a:fpp=2",)])
def test_what_makes_no_sense_is_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(PolicyError):
        parse_columns(texts)


def test_nothing_given_is_no_keys() -> None:
    assert load_policy(None) is None
    assert load_keys(None) is None
