"""The leaves of a table as Spark names them."""

from __future__ import annotations

import pytest

from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.encryption.spark_columns import check_spark_columns
from secure_bloom.encryption.spark_ddl import spark_leaves
from secure_bloom.errors import PolicyError


def test_the_leaves_of_a_spark_schema_are_those_that_spark_writes() -> None:
    schema = {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "e.mail", "type": "string"},
            {"name": "tags", "type": {"type": "array", "elementType": "string"}},
            {
                "name": "props",
                "type": {
                    "type": "map",
                    "keyType": "string",
                    "valueType": {"type": "struct", "fields": [{"name": "a", "type": "date"}]},
                },
            },
        ],
    }
    leaves = spark_leaves(schema)
    assert leaves == [
        ("id",),
        ("e.mail",),
        ("tags", "list", "element"),
        ("props", "key_value", "key"),
        ("props", "key_value", "value", "a"),
    ]
    with pytest.raises(PolicyError, match="tags has columns inside"):
        check_spark_columns(_policy("tags"), leaves)
    check_spark_columns(_policy("tags.list.element"), leaves)


def _policy(column: str) -> KeyPolicy:
    return KeyPolicy(footer_key="k", columns={column: ColumnRule(path=column, key="k")})


@pytest.mark.parametrize(
    ("column", "told"), [("emial", "no column emial"), ("e.mail", "a dot in its own name")]
)
def test_what_spark_cannot_name_is_told(column: str, told: str) -> None:
    with pytest.raises(PolicyError, match=told):
        check_spark_columns(_policy(column), [("id",), ("e.mail",), ("email",)])
