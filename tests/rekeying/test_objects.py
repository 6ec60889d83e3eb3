"""Keys of objects in a store: re-encrypted, rotated, decrypted; their key material files follow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient

import secure_bloom as sb
from secure_bloom.encryption.policy_tables import ColumnRule, EncryptionOptions
from testing.delta_tables import write_table
from testing.storage import Bucket, bucket, port, s3_rights
from testing.tables import KEYRING, customers, write
from tests.lakes.test_object_tables import upload
from tests.rekeying.lake import KEYS, policy
from tests.rekeying.objects_at_once import assert_no_key_is_lost
from tests.rekeying.test_key_files import FIRST, Renewing

__all__ = ["bucket", "port", "s3_rights"]  # fixtures


@pytest.mark.parametrize("material", [pytest.param("internal", marks=pytest.mark.slow), "external"])
def test_a_lake_of_objects_changes_keys(bucket: Bucket, tmp_path: Path, material: str) -> None:
    path = write(tmp_path / "x.parquet", customers(300), row_group_size=100)
    bucket.put("lake/x.parquet", body=path.read_bytes())
    encryption = f'key_material = "{material}"'
    old, new = tmp_path / "old.toml", tmp_path / "new.toml"
    old.write_text(policy(columns={"email": "k_pii"}, encryption=encryption))
    new.write_text(policy(columns={"email": "k_new"}, encryption=encryption))
    uri, names = bucket.uri("lake"), {"lake/x.parquet"}
    if material == "external":
        names.add("lake/_KEY_MATERIAL_FOR_x.parquet.json")
    encrypted = sb.reencrypt(uri, policy=old, keys=KEYS)
    assert [file.status for file in encrypted.files] == ["reencrypted"], encrypted.failed
    assert bucket.objects().keys() == names
    rotated = sb.rotate_keys(uri, policy=new, keys=KEYS)
    assert [file.status for file in rotated.files] == ["rotated"], rotated.failed
    assert sb.keys_used(uri, keys=KEYS).files_by_key == {("k_footer", None): 1, ("k_new", None): 1}
    assert sb.read_table(uri, keys=KEYS).equals(customers(300))
    anew = sb.reencrypt(uri, policy=new, keys=KEYS, new_data_keys=True)
    assert not anew.failed
    assert bucket.objects().keys() == names
    if material == "external":
        stored = bucket.objects()["lake/_KEY_MATERIAL_FOR_x.parquet.json"]
        assert len(json.loads(stored)) == 2
    clear = sb.decrypt(uri, output=bucket.uri("clear"), keys=KEYS)
    assert not clear.failed
    assert sb.read_table(bucket.uri("clear")).equals(customers(300))
    (tmp_path / "old.toml").write_text(policy(columns={"email": "k_pii"}))
    assert not sb.reencrypt(uri, policy=old, keys=KEYS).failed
    assert "lake/_KEY_MATERIAL_FOR_x.parquet.json" not in bucket.objects()


@pytest.mark.parametrize("material", ["internal", "external"])
def test_each_kek_of_objects_is_asked_about_once(
    bucket: Bucket, tmp_path: Path, material: str
) -> None:
    path, text = tmp_path / "x.parquet", tmp_path / "p.toml"
    text.write_text(policy(columns={"email": "k_pii"}, encryption=f'key_material = "{material}"'))
    write(path, customers(30))
    names = [f"lake/{number}.parquet" for number in range(4)]
    for name in names:
        bucket.put(name, body=path.read_bytes())
        # A run each, so each has KEKs of its own, one for the footer and one for the column.
        assert not sb.reencrypt(bucket.uri(name), policy=text, keys=Renewing(FIRST)).failed
    kms = Renewing()
    report = sb.rotate_keys(bucket.uri("lake"), policy=text, keys=kms)
    assert [file.status for file in report.files] == ["rotated"] * len(names)
    inside = material == "internal"
    # Footers that are opened have their KEKs given out; all others are renewed where they are.
    assert kms.given_out == ["k_footer"] * len(names) * inside
    assert len(kms.renewed) == len(names) * (1 if inside else 2)
    assert sb.read_table(bucket.uri("lake"), keys=kms).num_rows == 30 * len(names)


def test_a_delta_table_in_a_store_comes_under_other_keys_by_commits(
    tmp_path: Path, bucket: Bucket
) -> None:
    table = write_table(tmp_path / "t", 2, partitioned=False)
    before = sorted(sb.read_table(table).column("id").to_pylist())
    upload(bucket, Path(table), "t")
    uri = bucket.uri("t")
    old = bucket.objects()
    outside = sb.KeyPolicy(
        footer_key="k_footer",
        columns={"email": ColumnRule(path="email", key="k_pii")},
        encryption=EncryptionOptions(internal_storage=False),
    )
    sb.reencrypt(uri, policy=outside, keys=KEYRING)
    sb.rotate_keys(uri, policy=outside, moves={"k_pii": "k_finance"}, keys=KEYRING)
    now = bucket.objects()
    assert {name: now[name] for name in old} == old
    # Two commits, and each time two data files with their key material.
    assert len(now) - len(old) == 2 + 2 * 4
    assert sorted(sb.read_table(uri, keys=KEYRING).column("id").to_pylist()) == before
    keys = [sb.keys_used(uri, keys=KEYRING, version=version).files_by_key for version in (2, 3)]
    assert [{name for name, _ in found} for found in keys] == [
        {"k_footer", "k_pii"},
        {"k_footer", "k_finance"},
    ]
    sb.decrypt(uri, output=bucket.uri("clear"), keys=KEYRING)
    assert sorted(sb.read_table(bucket.uri("clear")).column("id").to_pylist()) == before


MIXES = [
    ("plain", "reencrypt outside", "reencrypt outside anew"),
    ("outside", "reencrypt anew", "reencrypt outside anew"),
    ("outside", "rotate", "reencrypt outside anew"),
    ("outside", "reencrypt outside anew", "rotate"),
    ("outside", "add", "reencrypt outside anew"),
]


@pytest.mark.parametrize(
    ("mix", "every"),
    [(MIXES[0], 4), *(pytest.param(mix, 1, marks=pytest.mark.slow) for mix in MIXES)],
)
def test_a_run_that_is_paused_at_any_request_loses_no_key(
    bucket: Bucket, tmp_path: Path, mix: tuple[str, str, str], every: int
) -> None:
    def put(key: str, content: bytes) -> None:
        bucket.put(key, body=content)

    def remove(key: str) -> None:
        bucket.client.delete_object(Bucket=bucket.name, Key=key)

    assert_no_key_is_lost(bucket, put, remove, tmp_path, mix, every=every)


def without_conditions(monkeypatch: pytest.MonkeyPatch, *requests: str) -> None:
    """Have the store ignore conditions of these requests, as older servers of the protocol do."""
    send = BaseClient._make_api_call

    def sent(client: BaseClient, name: str, fields: dict[str, Any]) -> Any:
        if name in requests:
            fields = {key: fields[key] for key in fields if not key.startswith("If")}
        return send(client, name, fields)

    monkeypatch.setattr(BaseClient, "_make_api_call", sent)


def test_a_store_that_ignores_conditions_gets_no_key_material(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two runs at once one could lose the keys of the other's file."""
    path, text = write(tmp_path / "x.parquet", customers(30)), tmp_path / "p.toml"
    text.write_text(policy(columns={"email": "k_pii"}, encryption='key_material = "external"'))
    bucket.put("lake/x.parquet", body=path.read_bytes())
    without_conditions(monkeypatch, "PutObject", "DeleteObject")
    report = sb.reencrypt(bucket.uri("lake"), policy=text, keys=KEYS)
    assert "no conditional writes" in str(report.failed[0].error)
    assert "key_material" in str(report.failed[0].hint)
    assert bucket.objects() == {"lake/x.parquet": path.read_bytes()}


def test_a_store_that_removes_without_conditions_keeps_an_empty_file(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, text = write(tmp_path / "x.parquet", customers(30)), tmp_path / "p.toml"
    bucket.put("lake/x.parquet", body=path.read_bytes())
    without_conditions(monkeypatch, "DeleteObject")
    for encryption in ('key_material = "external"', ""):
        text.write_text(policy(columns={"email": "k_pii"}, encryption=encryption))
        assert sb.reencrypt(bucket.uri("lake"), policy=text, keys=KEYS).failed == ()
    assert bucket.objects()["lake/_KEY_MATERIAL_FOR_x.parquet.json"] == b"{}"
    assert sb.read_table(bucket.uri("lake"), keys=KEYS).num_rows == 30
