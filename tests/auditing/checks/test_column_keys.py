"""Keys: their material, their length, and whose they are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.rekeying import new_keys
from testing.tables import KEYRING, Mode, customers, write
from tests.auditing.datasets import ids
from tests.auditing.examples import (
    POLICY,
    SIGNED,
    Example,
    set_key_metadata,
    sound,
    with_rules,
)


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED])
def test_key_material_outside_the_file_is_read(tmp_path: Path, mode: Mode) -> None:
    path = sound(tmp_path, mode)
    kept: dict[str, str] = {}

    def move_out(metadata: bytes) -> bytes:
        fields = json.loads(metadata)
        del fields["internalStorage"]
        kept["columnKey0"] = json.dumps(fields)
        return json.dumps(
            {
                "keyMaterialType": "PKMT1",
                "internalStorage": False,
                "keyReference": "columnKey0",
            }
        ).encode()

    set_key_metadata(path, "email", move_out)
    material = tmp_path / "_KEY_MATERIAL_FOR_x.parquet.json"
    material.write_text(json.dumps(kept))
    found = Example(path=path, policy=SIGNED if mode is Mode.SIGNED else POLICY)
    assert ids(found.audit()) == []
    material.write_text("{}")
    assert ids(found.audit()) == ["key-material-missing"]
    material.write_text(json.dumps({"columnKey0": "{}"}))
    assert ids(found.audit()) == ["key-material-damaged"]


def test_a_wrapped_key_that_is_no_base64_is_damaged(tmp_path: Path) -> None:
    path = sound(tmp_path)

    def change(metadata: bytes) -> bytes:
        return json.dumps({**json.loads(metadata), "wrappedDEK": "!"}).encode()

    set_key_metadata(path, "email", change)
    assert ids(Example(path=path).audit()) == ["key-material-damaged"]


@pytest.mark.parametrize("without_keys", [False, True])
def test_the_length_of_a_key_is_known_without_the_key(tmp_path: Path, without_keys: bool) -> None:
    path = sound(tmp_path, Mode.SIGNED)
    policy = replace(SIGNED, encryption=replace(SIGNED.encryption, data_key_bits=192))
    keys = None if without_keys else KEYRING
    report = Example(path=path, policy=policy).audit(keys=keys, without_keys=without_keys)
    assert ids(report).count("key-too-short") == 3


def test_a_single_wrapped_key_is_measured_when_it_is_open(tmp_path: Path) -> None:
    path = sound(tmp_path, encryption={"double_wrapping": False})
    policy = replace(POLICY, encryption=replace(POLICY.encryption, data_key_bits=256))
    assert set(ids(Example(path=path, policy=policy).audit())) == {"key-too-short"}


def test_a_key_of_the_same_name_serves_footer_and_column(tmp_path: Path) -> None:
    """Uniform encryption obeys a policy that wants the footer's key for the column."""
    policy = KeyPolicy(
        footer_key="k_footer", columns={"email": ColumnRule(path="email", key="k_footer")}
    )
    assert ids(Example(path=sound(tmp_path, Mode.UNIFORM), policy=policy).audit()) == []


def test_a_parents_key_counts_for_its_leaves(tmp_path: Path) -> None:
    table = pa.table({"address": [{"zip": "1", "city": "a"}, {"zip": "2", "city": "b"}]})
    path = sound(tmp_path, table=table, column_keys={"k_pii": ["address.zip"]})
    policy = KeyPolicy(
        footer_key="k_footer", columns={"address": ColumnRule(path="address", key="k_pii")}
    )
    (finding,) = Example(path=path, policy=policy).audit().findings
    assert (finding.id, finding.column) == ("column-in-clear", "address.city")


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"email": "k_pii", "iban": "k_finance"}, {"email", "iban"}),
        ({"email": "k_pii", "iban": "k_pii"}, {"email", "iban"}),
        ({"email": "k_footer", "iban": "k_footer"}, set()),
    ],
)
def test_a_data_key_that_serves_two_master_keys_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: dict[str, str], found: set[str]
) -> None:
    # Each key is wrapped as the policy says, and yet whoever may use one of them reads the others.
    policy = with_rules(**columns)
    plain = write(tmp_path / "plain.parquet", customers(30))
    with monkeypatch.context() as patch:
        patch.setattr(new_keys, "os", SimpleNamespace(urandom=lambda size: b"k" * size))
        sb.reencrypt(plain, policy=policy, keys=KEYRING, output=tmp_path / "x")
    report = Example(path=tmp_path / "x", policy=policy).audit()
    assert {it.column for it in report.findings if it.id == "column-wrong-key"} == found
