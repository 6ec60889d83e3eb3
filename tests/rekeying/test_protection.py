"""The protection that a file has, and the one that a policy wants."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule, EncryptionOptions
from secure_bloom.errors import PolicyError
from secure_bloom.rekeying.protection import (
    KeyUse,
    found_protection,
    missing_columns,
    wanted_protection,
    wraps_as_wanted,
)
from testing.surgery import opened
from testing.tables import Mode, customers, write

OWN = {"k_pii": ["email"], "k_finance": ["iban"]}


def policy(mode: FooterMode, *, uniform: bool = False, **columns: str) -> KeyPolicy:
    rules = {name: ColumnRule(path=name, key=key) for name, key in columns.items()}
    return KeyPolicy(footer_key="k_footer", footer_mode=mode, uniform=uniform, columns=rules)


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        (Mode.PLAIN, None),
        (Mode.ENCRYPTED, policy(FooterMode.ENCRYPTED, email="k_pii", iban="k_finance")),
        (Mode.SIGNED, policy(FooterMode.SIGNED, email="k_pii", iban="k_finance")),
        (Mode.UNIFORM, policy(FooterMode.ENCRYPTED, uniform=True)),
    ],
)
def test_a_file_that_follows_a_policy_has_what_it_wants(
    tmp_path: Path, mode: Mode, wanted: KeyPolicy | None
) -> None:
    with opened(write(tmp_path / "x.parquet", customers(30), mode, column_keys=OWN)) as it:
        found = found_protection(it.footer.read)
        assert found == wanted_protection(wanted, it.footer.leaves)
        assert found.is_plain is (mode is Mode.PLAIN)
        other = policy(FooterMode.ENCRYPTED, email="k_finance")
        assert found != wanted_protection(other, it.footer.leaves)


def test_leaves_below_a_column_have_its_key(tmp_path: Path) -> None:
    table = pa.table({"s": [{"a": 1, "b": 2}], "t": [1]})
    with opened(write(tmp_path / "x.parquet", table)) as it:
        wanted = wanted_protection(policy(FooterMode.ENCRYPTED, s="k_pii"), it.footer.leaves)
        assert wanted.columns == (KeyUse(name="k_pii"), KeyUse(name="k_pii"), None)
        keyed = policy(FooterMode.ENCRYPTED, s="k_pii", u="k_pii")
        assert missing_columns(keyed, it.footer.leaves) == ["u"]


def test_row_groups_under_different_keys_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(40), Mode.ENCRYPTED, row_group_size=20)
    with opened(path) as it:
        first, second = it.footer.row_groups
        first.columns[0].crypto_metadata = second.columns[1].crypto_metadata
        with pytest.raises(PolicyError, match="encrypted under different keys"):
            found_protection(it.footer)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "as_wanted"),
    [
        ({}, True),
        ({"double_wrapping": False}, False),
        ({"data_key_bits": 256}, False),
        ({"internal_storage": False}, False),
    ],
)
def test_how_keys_are_wrapped_counts_too(
    tmp_path: Path, options: dict[str, object], as_wanted: bool
) -> None:
    wanted = EncryptionOptions(**options)  # type: ignore[arg-type]
    with opened(write(tmp_path / "x.parquet", customers(30), Mode.ENCRYPTED)) as it:
        assert wraps_as_wanted(it.footer.read, wanted) is as_wanted
    with opened(write(tmp_path / "y.parquet", customers(30))) as it:
        assert wraps_as_wanted(it.footer.read, wanted)
