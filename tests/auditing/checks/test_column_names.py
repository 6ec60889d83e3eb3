"""Copies of a sensitive column in clear, under another spelling of its name."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

from secure_bloom.encryption.likeness import Likeness
from secure_bloom.encryption.policy import KeyPolicy
from testing.tables import Mode, customers, write
from tests.auditing.datasets import ids
from tests.auditing.examples import Example, rules, sound, with_rules


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


def test_many_columns_and_many_rules_take_no_time() -> None:
    secrets = [f"secret_number_{number}" for number in range(101)]
    likeness = Likeness(secrets, secrets)
    columns = [(f"column_of_the_table_{number}",) for number in range(2_000)]
    started = time.process_time()
    assert likeness.lookalikes(columns, columns) == {}
    assert time.process_time() - started < 5
