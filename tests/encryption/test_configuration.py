"""Tables of configuration files: words and types."""

from __future__ import annotations

import pytest

from secure_bloom.encryption.configuration import ConfigTable, UnknownWordError, close_match
from secure_bloom.errors import PolicyError

TABLE = ConfigTable.of("[kms]", {"client": "keyring", "n": 3, "inner": {"a": "b"}})


def test_words_have_their_types() -> None:
    assert TABLE.text("client") == "keyring"
    assert TABLE.get("n", int) == 3
    assert TABLE.text("missing") is None
    inner = TABLE.table("inner", "[kms.inner]")
    assert inner is not None
    assert inner.text("a") == "b"


def test_a_value_of_another_type_is_refused_without_being_shown() -> None:
    table = ConfigTable.of("[kms]", {"client": ["swordfish"]})
    with pytest.raises(PolicyError, match="client") as caught:
        table.text("client")
    assert "swordfish" not in str(caught.value) + repr(table)


def test_true_is_no_number() -> None:
    with pytest.raises(PolicyError):
        ConfigTable.of("[kms]", {"n": True}).get("n", int)


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"\[kms\]"):
        ConfigTable.of("[kms]", "text")


def test_a_misspelt_word_gets_the_closest_one() -> None:
    with pytest.raises(UnknownWordError) as caught:
        TABLE.allow(["clients", "n", "inner"])
    assert "clients" in str(caught.value.hint)
    assert "mount" in close_match("muont", ["mount", "address"])


def test_a_choice_is_one_of_its_words() -> None:
    assert TABLE.choice("client", {"keyring": 1, "aws": 2}) == 1
    with pytest.raises(PolicyError, match="client"):
        TABLE.choice("client", {"aws": 2})
