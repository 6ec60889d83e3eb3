"""Options of the data source, as Spark hands them over."""

from __future__ import annotations

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.spark.source_options import source_options


def test_names_of_columns_are_a_list_in_two_spellings() -> None:
    for text in ("id, city", '["id", "city"]'):
        assert source_options({"path": "/t", "columns": text}).columns == ("id", "city")
    assert source_options({"path": "/t", "columns": '["a,b"]'}).columns == ("a,b",)


def test_paths_come_one_by_one_or_as_a_list() -> None:
    assert source_options({"path": "/t"}).paths == ("/t",)
    assert source_options({"paths": '["/a", "/b"]'}).paths == ("/a", "/b")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "no path"),
        ({"path": "/t", "polcy": "p"}, "no option 'polcy'"),
        ({"path": "/t", "policy": "p", "keyring": "k"}, "both policy and keyring"),
        ({"path": "/t", "withoutFilterKeys": "yes"}, "neither true nor false"),
        ({"paths": "{}"}, "not a JSON list"),
        ({"path": "/t", "owner": "o", "provider": "p", "location": "l"}, "catalog"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        source_options(options)


def test_a_misspelt_option_gets_a_hint() -> None:
    with pytest.raises(PolicyError) as caught:
        source_options({"path": "/t", "polcy": "p"})
    assert "policy" in str(caught.value.hint)


def test_a_condition_is_in_no_repr() -> None:
    assert "swordfish" not in repr(source_options({"path": "/t", "where": "x = 'swordfish'"}))
