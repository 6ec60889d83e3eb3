"""Schemas of Spark as texts: the leaves, as Parquet and a policy name them."""

from __future__ import annotations

import json

import pytest

from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.spark_ddl import parse_ddl, schema_columns
from secure_bloom.errors import PolicyError

DDL = """id BIGINT NOT NULL, email string COMMENT 'a, person', `street ``name`: int,
tags array<string>, address struct<zip: string, price decimal(9, 2)>, props map<string, array<int>>,
until interval day to second"""
COLUMNS = [
    ("id", "bigint"),
    ("email", "string"),
    ("street `name", "int"),
    ("tags.list.element", "string"),
    ("address.zip", "string"),
    ("address.price", "decimal(9,2)"),
    ("props.key_value.key", "string"),
    ("props.key_value.value.list.element", "int"),
    ("until", "interval day to second"),
]


def test_the_leaves_of_a_ddl_text() -> None:
    assert schema_columns(DDL) == COLUMNS


def test_json_and_a_whole_type_say_the_same() -> None:
    whole = "struct<" + DDL + ">"
    assert schema_columns(whole) == COLUMNS
    assert schema_columns(json.dumps(parse_ddl(whole))) == COLUMNS


@pytest.mark.parametrize(
    "text",
    ["", "id", "id long,", "id long email string", "a array<", "a map<int>", "a struct<b int",
     "9 a", "{", "{}", '{"type": "struct", "fields": [1]}', "a long; drop", "array<" * 3000]
)  # fmt: skip
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(PolicyError):
        schema_columns(text)


def test_a_draft_gives_a_key_to_columns_that_look_personal_and_comments_out_the_others() -> None:
    text = KeyPolicy.draft("id long, email string", client="vault")
    assert '\n[columns."email"]' in text
    assert '# [columns."id"]' in text
    with pytest.raises(PolicyError, match="client is 'vautl'"):
        KeyPolicy.draft("id long", client="vautl")


@pytest.mark.parametrize("text", ["id lng", "a array<strng>", "a struct<b: inteer>"])
def test_a_type_that_spark_does_not_have_is_an_error(text: str) -> None:
    with pytest.raises(PolicyError, match="which Spark does not have") as caught:
        schema_columns(text)
    assert "did you mean" in str(caught.value.hint)
