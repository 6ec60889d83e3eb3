"""Sensitive columns that a file has in clear, under another spelling."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from secure_bloom.encryption.policy import KeyPolicy
from tests.auditing.datasets import ids
from tests.auditing.examples import (
    Example,
    rules,
    sound,
)
from tests.tables import Mode, customers, write


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
