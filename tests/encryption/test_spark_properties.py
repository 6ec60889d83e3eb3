"""KeyPolicy -> the properties that make Spark write by it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import Algorithm, ColumnRule, EncryptionOptions
from secure_bloom.encryption.spark_columns import check_spark_columns
from secure_bloom.encryption.spark_ddl import spark_leaves
from secure_bloom.errors import PolicyError
from testing.project import ROOT

DEFAULT = ROOT / "keys" / "policy.toml"


def policy_of(keys: dict[str, str | None]) -> KeyPolicy:
    """A policy with these keys of columns."""
    rules = {path: ColumnRule(path=path, key=key) for path, key in keys.items()}
    return KeyPolicy(footer_key="kf", columns=rules)


class TestSparkProperties:
    def test_the_default_policy(self) -> None:
        factory = "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
        assert KeyPolicy.load(DEFAULT).spark_properties() == {
            "parquet.crypto.factory.class": factory,
            "parquet.encryption.footer.key": "k_footer",
            "parquet.encryption.column.keys": "k_finance:iban;k_pii:email,national_id",
            "parquet.encryption.plaintext.footer": "false",
            "parquet.encryption.algorithm": "AES_GCM_V1",
            "parquet.encryption.data.key.length.bits": "128",
            "parquet.encryption.double.wrapping": "true",
        }

    def test_every_choice_is_said(self) -> None:
        policy = KeyPolicy(
            footer_key="kf",
            footer_mode=FooterMode.SIGNED,
            columns={"a.b": ColumnRule(path="a.b", key="kf")},
            encryption=EncryptionOptions(
                algorithm=Algorithm.AES_GCM_CTR_V1, data_key_bits=256, double_wrapping=False
            ),
        )
        properties = policy.spark_properties()
        del properties["parquet.crypto.factory.class"]
        assert {n.removeprefix("parquet.encryption."): v for n, v in properties.items()} == {
            "footer.key": "kf",
            "column.keys": "kf:a.b",
            "plaintext.footer": "true",
            "algorithm": "AES_GCM_CTR_V1",
            "data.key.length.bits": "256",
            "double.wrapping": "false",
        }

    @given(
        st.dictionaries(
            st.from_regex(r"[a-z]{1,3}(\.[a-z]{1,3})?", fullmatch=True),
            st.sampled_from(["k1", "k2", "alias/k3", None]),
        )
    )
    def test_the_syntax_says_the_policy(self, keys: dict[str, str | None]) -> None:
        policy = policy_of({"must": "k1", **keys})
        said = policy.spark_properties()["parquet.encryption.column.keys"]
        entries = [entry.split(":") for entry in said.split(";")]
        parsed = {column: key for key, columns in entries for column in columns.split(",")}
        assert parsed == {p: k for p, k in {"must": "k1", **keys}.items() if k is not None}
        shuffled = policy_of(dict(reversed({"must": "k1", **keys}.items())))
        assert shuffled.spark_properties() == policy.spark_properties()

    @pytest.mark.parametrize(
        ("path", "key"),
        [
            ("a,b", "k"),
            ("a;b", "k"),
            ("a:b", "k"),
            (" a", "k"),
            ("a", "k,1"),
            ("a", "arn:aws:kms:eu:1:key/2"),
            ("a", "k "),
        ],
    )
    def test_names_that_the_syntax_cannot_say(self, path: str, key: str) -> None:
        with pytest.raises(PolicyError):
            policy_of({path: key}).spark_properties()

    def test_a_column_in_clear_may_have_any_name(self) -> None:
        properties = policy_of({"a": "k", "b;c": None}).spark_properties()
        assert properties["parquet.encryption.column.keys"] == "k:a"

    def test_one_key_for_all_needs_no_columns(self) -> None:
        properties = KeyPolicy(footer_key="f", uniform=True, columns={}).spark_properties()
        assert properties["parquet.encryption.uniform.key"] == "f"
        assert "parquet.encryption.footer.key" not in properties

    def test_spark_has_no_encrypted_footer_without_encrypted_columns(self) -> None:
        with pytest.raises(PolicyError, match="without an encrypted column"):
            policy_of({"a": None}).spark_properties()


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
