"""Properties of Spark sessions held against a policy, without any file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from secure_bloom.auditing.checks.session_properties import check_properties, parse_properties
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule
from tests.auditing.examples import POLICY, with_rules

ENCRYPTION = "parquet.encryption."


def found(
    changes: Mapping[str, str], policy: KeyPolicy = POLICY, columns: tuple[str, ...] = ()
) -> set[tuple[str, str | None]]:
    """What is found in the policy's own properties with these changes."""
    changed = {f"{ENCRYPTION}{word}": value for word, value in changes.items()}
    properties = {**POLICY.spark_properties(), **changed}
    leaves = {column: tuple(column.split(".")) for column in columns}
    return {(f.id, f.column) for f in check_properties(properties, policy, leaves)}


def test_what_session_config_sets_is_clean() -> None:
    assert found({}) == set()
    assert found({}, columns=("email", "iban", "city")) == set()


def test_in_uniform_mode_every_column_is_under_the_one_key() -> None:
    uniform = {"uniform.key": "k_pii", "footer.key": "", "column.keys": ""}
    assert found(uniform) == {("spark-footer-key", None), ("spark-column-wrong-key", "iban")}


def test_complete_columns_puts_the_others_under_the_footer_key() -> None:
    complete = {"complete.columns": "true", "column.keys": "k_finance:iban"}
    assert found(complete) == {("spark-column-wrong-key", "email")}
    policy = with_rules(email="k_footer")
    assert found(complete, policy) == set()


def test_a_parent_of_the_policy_is_protected_by_its_leaves() -> None:
    policy = replace(POLICY, columns={"address": ColumnRule(path="address", key="k_pii")})
    keys = {"column.keys": "k_pii:address.zip,address.city"}
    assert found(keys, policy) == set()
    leaves = ("address.zip", "address.city", "address.street")
    assert found(keys, policy, leaves) == {("spark-column-unprotected", "address.street")}


def test_a_parent_of_leaves_is_named_with_the_leaves() -> None:
    keys = {"column.keys": "k_pii:tags,email;k_finance:iban"}
    policy = with_rules(tags="k_pii")
    leaves = ("tags.list.element", "email", "iban")
    assert found(keys, policy, leaves) == {
        ("spark-not-a-leaf", "tags"),
        ("spark-column-unprotected", "tags.list.element"),
    }


def test_a_dot_in_a_columns_own_name_is_an_error() -> None:
    properties = {**POLICY.spark_properties(), f"{ENCRYPTION}column.keys": "k_pii:e.mail"}
    told = list(check_properties(properties, with_rules(), {"e.mail": ("e.mail",)}))
    assert [(f.id, f.column) for f in told] == [("spark-not-a-leaf", "e.mail")]
    assert "rename the column, for example to e_mail" in told[0].message


def test_the_files_know_columns_that_the_policy_does_not() -> None:
    keys = {"column.keys": "k_pii:email,city;k_finance:iban"}
    assert found(keys, columns=("email", "iban", "city")) == set()
    assert found(keys, columns=("email", "iban", "town")) == {("spark-column-unknown", "city")}


@pytest.mark.parametrize(
    ("word", "value", "wanted"),
    [
        ("data.key.length.bits", "many", "spark-invalid"),
        ("column.keys", "k_pii:email;k_finance:iban;:city", "spark-invalid"),
        ("column.keys", "k_pii:email;k_finance:iban;k:a:b", "spark-invalid"),
        ("column.keys", "k_pii:email;k_finance:iban;k:,", "spark-invalid"),
        ("data.key.length.bits", "128", "spark-weaker"),
    ],
)
def test_an_impossible_value_is_an_error(word: str, value: str, wanted: str) -> None:
    encryption = replace(POLICY.encryption, data_key_bits=192)
    policy = replace(POLICY, encryption=encryption) if wanted == "spark-weaker" else POLICY
    assert found({word: value}, policy) == {(wanted, None)}


def test_a_policy_that_encrypts_nothing_wants_no_encryption() -> None:
    assert list(check_properties({}, KeyPolicy(), ())) == []


def test_both_ways_of_writing_properties_are_read() -> None:
    text = """
# spark-defaults.conf
spark.hadoop.parquet.encryption.column.keys   k_pii:email;k_finance:iban
parquet.encryption.footer.key = k_footer
parquet.encryption.algorithm: AES_GCM_V1
! a comment of Java
parquet.bloom.filter.enabled#email=true
"""
    assert parse_properties(text) == {
        "spark.hadoop.parquet.encryption.column.keys": "k_pii:email;k_finance:iban",
        "parquet.encryption.footer.key": "k_footer",
        "parquet.encryption.algorithm": "AES_GCM_V1",
        "parquet.bloom.filter.enabled#email": "true",
    }


def test_properties_are_read_as_java_reads_them() -> None:
    text = r"""
parquet.encryption.column.keys = k_pii\:email;\
    k_finance:iban
! a comment ends with its line \
parquet.encryption.footer\u002ekey k_footer\
"""
    assert parse_properties(text) == {
        "parquet.encryption.column.keys": "k_pii:email;k_finance:iban",
        "parquet.encryption.footer.key": "k_footer",
    }
    assert parse_properties("a\n=b\n c = d \\\\\ne:\\u12") == {
        "a": "",
        "": "b",
        "c": "d \\",
        "e": "u12",
    }


@pytest.mark.parametrize(
    "name",
    [
        "parquet.encrytion.double.wrapping",
        "parquet.encryption.column.key",
        "parquet.Encryption.footer.key",
        "parquet.crypto.factory.clas",
        "spark.hadop.parquet.encryption.column.keys",
        "spark.hadoop.parquet.blom.filter.enabled#email",
    ],
)
def test_a_misspelt_prefix_is_found(name: str) -> None:
    properties = {**POLICY.spark_properties(), name: "x"}
    assert [f.id for f in check_properties(properties, POLICY, ())] == ["spark-unknown-word"]


@pytest.mark.parametrize(
    "name",
    [
        "parquet.filter.bloom.enabled",
        "parquet.compression",
        "parquet.block.size",
        "parquet.writer.version",
        "parquet.page.write-checksum.enabled",
        "spark.sql.parquet.compression.codec",
        "spark.hadoop.fs.s3a.access.key",
        "parquet.crypto.factory.class",
    ],
)
def test_other_properties_are_left_alone(name: str) -> None:
    properties = {name: "x", **POLICY.spark_properties()}
    assert list(check_properties(properties, POLICY, ())) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("parquet.crypto.factory.class", "org.apache.parquet.crypto.PropertiesDrivenFactory"),
        ("parquet.encryption.data.key.length.bits", "129"),
        ("parquet.encryption.kek.length.bits", "64"),
    ],
)
def test_a_value_that_parquet_java_refuses_is_told(name: str, value: str) -> None:
    properties = {**POLICY.spark_properties(), name: value}
    assert [f.id for f in check_properties(properties, POLICY, ())] == ["spark-invalid"]


@pytest.mark.parametrize(
    ("client", "address", "is_found"),
    [
        ("com.example.OurKms", "", True),
        ("com.example.OurKms", "  ", True),
        ("com.example.OurKms", "https://kms.example.com", False),
        ("secure_bloom.spark.SecureBloomVaultKms", "", False),
        ("secure_bloom.sparkling.Kms", "", True),
        ("", "", False),
    ],
)
def test_a_foreign_client_may_be_sent_to_the_address_in_a_file(
    client: str, address: str, is_found: bool
) -> None:
    words = {"kms.client.class": client, "kms.instance.url": address}
    assert (("spark-kms-address", None) in found(words)) == is_found
