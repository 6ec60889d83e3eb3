"""The known names that a misspelt one is close to."""

from __future__ import annotations

import difflib
from unittest import mock

import pytest

from secure_bloom.calling.close_names import CloseNames

MANY = [f"k{n}" for n in range(1000)]


@pytest.mark.parametrize("others", [[], MANY], ids=["few", "many"])
def test_a_misspelt_name_is_found_at_its_beginning_or_end(others: list[str]) -> None:
    names = CloseNames([*others, "Email", "city"])
    assert names.close("emial", 3) == names.close("mail", 1) == names.close("EMAIL", 1) == ["Email"]
    assert names.close("zzzz", 1) == []
    assert CloseNames.of(names) is names


def test_of_many_names_a_few_are_listed() -> None:
    assert CloseNames(["b", "a", "b"]).listed() == "a, b"
    assert CloseNames(MANY).listed().endswith("k114, k115 and 980 more")


def test_many_misspelt_names_are_compared_with_a_few_known_ones_each() -> None:
    names = CloseNames(MANY)
    with mock.patch.object(
        difflib, "get_close_matches", wraps=difflib.get_close_matches
    ) as compared:
        for n in range(100):
            names.close(f"x{n}", 1)
    assert max(len(call.args[1]) for call in compared.call_args_list) <= 100
    with mock.patch("builtins.sorted", side_effect=AssertionError("sorted again")):
        names.close("x5", 1)
