"""Statistics and record keys that a footer shows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.auditing.findings import Severity
from secure_bloom.encryption.policy import KeyPolicy
from testing.surgery import edit_footer
from testing.tables import KEYRING, Mode, customers, write
from testing.thrift.metadata import ColumnCryptoMetaData
from testing.thrift.views import Empty
from tests.auditing.datasets import ids
from tests.auditing.examples import (
    EXAMPLES,
    SIGNED,
    Example,
    chunk_of,
    rules,
    sound,
    with_rules,
)


def test_statistics_under_the_footer_key_are_in_clear_in_a_signed_footer(tmp_path: Path) -> None:
    path = EXAMPLES["statistics-in-clear"](tmp_path).path
    crypto = ColumnCryptoMetaData.of(ENCRYPTION_WITH_FOOTER_KEY=Empty())
    edit_footer(path, lambda it: setattr(chunk_of(it, "email"), "crypto_metadata", crypto))
    policy = with_rules(SIGNED, email="k_footer")
    report = Example(path=path, policy=policy).audit(keys=None, without_keys=True)
    assert "statistics-in-clear" in ids(report)


def test_hudi_keys_of_a_column_that_is_not_sensitive_are_no_leak(tmp_path: Path) -> None:
    table = customers(30).append_column("_hoodie_record_key", pa.array(["k"] * 30))
    table = table.replace_schema_metadata({"org.apache.hudi.bloomfilter": "AAAA"})
    path = sound(tmp_path, Mode.SIGNED, table=table)
    (finding,) = Example(path=path, policy=SIGNED).audit().findings
    # Keys in clear tell no more than the column does; what they are made of nobody knows.
    assert (finding.id, finding.severity) == ("hudi-record-keys-without-rule", Severity.LOW)
    policy = with_rules(SIGNED, _hoodie_record_key=None)
    assert ids(Example(path=path, policy=policy).audit()) == []


def test_hudi_s_filter_of_a_sensitive_column_is_a_leak(tmp_path: Path) -> None:
    table = customers(30).append_column("_hoodie_record_key", pa.array(["k"] * 30))
    policy = with_rules(SIGNED, _hoodie_record_key=None)
    for name, found in (("email", ["hudi-record-keys-in-clear"]), ("city", [])):
        folder = tmp_path / name
        folder.mkdir()
        path = sound(folder, Mode.SIGNED, table=table)
        sb.hudi.add_record_key_filter(path, column=name, keys=KEYRING)
        assert ids(Example(path=path, policy=policy).audit()) == found


@pytest.mark.parametrize("name", ["Email", "EMAIL", "e_mail", "emial", "emails"])
def test_a_column_spelt_in_another_way_in_one_file_is_found(tmp_path: Path, name: str) -> None:
    sound(tmp_path)
    names = [name, *customers(1).column_names[1:]]
    other = write(
        tmp_path / "y.parquet",
        customers(30).rename_columns(names),
        Mode.ENCRYPTED,
        column_keys={"k_finance": ["iban"]},
    )
    (finding,) = Example(path=tmp_path).audit().findings
    assert (finding.id, finding.path, finding.column) == (
        "column-alike-in-clear",
        str(other),
        name,
    )


@pytest.mark.parametrize(
    ("name", "kind", "found"),
    [
        ("EMAIL", pa.string(), "EMAIL"),
        ("e_mail", pa.string(), "e_mail"),
        ("before", pa.struct({"id": pa.int64(), "email": pa.string()}), "before.email"),
        ("rows", pa.list_(pa.struct({"Email": pa.string()})), "rows.list.element.Email"),
        ("e_mail", pa.list_(pa.string()), "e_mail.list.element"),
    ],
    ids=["capitals", "marks", "struct", "list of structs", "list"],
)
def test_a_copy_in_clear_beside_the_sensitive_column_is_found(
    tmp_path: Path, name: str, kind: pa.DataType, found: str
) -> None:
    table = customers(30).append_column(name, pa.nulls(30, kind))
    path = sound(tmp_path, table=table)
    (finding,) = Example(path=path).audit().findings
    assert (finding.id, finding.column) == ("column-alike-in-clear", found)
    # Whoever means another column says so.
    assert ids(Example(path=path, policy=with_rules(**{found: None})).audit()) == []


def test_what_lists_and_maps_call_their_parts_is_no_name(tmp_path: Path) -> None:
    table = customers(30).append_column("m", pa.nulls(30, pa.map_(pa.string(), pa.string())))
    table = table.append_column("l", pa.nulls(30, pa.list_(pa.string())))
    table = table.append_column("key", pa.nulls(30, pa.string()))
    keys = {"k_pii": ["email", "key"], "k_finance": ["iban"]}
    path = sound(tmp_path, table=table, column_keys=keys)
    policy = with_rules(key="k_pii")
    assert ids(Example(path=path, policy=policy).audit()) == []


def test_a_list_whose_element_has_another_name_is_found(tmp_path: Path) -> None:
    table = pa.table({"tags": [["a", "b"]] * 30, "iban": ["x"] * 30})
    columns = rules(**{"tags.list.element": "k_pii", "iban": "k_finance"})
    policy = KeyPolicy(footer_key="k_footer", columns=columns)
    keys = {"k_pii": ["tags.list.element"], "k_finance": ["iban"]}
    write(tmp_path / "a.parquet", table, Mode.ENCRYPTED, column_keys=keys)
    write(
        tmp_path / "b.parquet",
        table,
        Mode.ENCRYPTED,
        column_keys={"k_finance": ["iban"]},
        use_compliant_nested_type=False,
    )
    (finding,) = Example(path=tmp_path, policy=policy).audit().findings
    assert (finding.id, finding.column) == ("column-alike-in-clear", "tags.list.item")


def test_a_file_without_a_sensitive_column_is_sound(tmp_path: Path) -> None:
    sound(tmp_path)
    table = customers(30).drop_columns("email").append_column("zip", pa.array(["1"] * 30))
    keys = {"k_finance": ["iban"]}
    write(tmp_path / "y.parquet", table, Mode.ENCRYPTED, column_keys=keys)
    assert ids(Example(path=tmp_path).audit()) == []
