"""Keys of objects in a store: re-encrypted, rotated, decrypted; their key material files follow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import secure_bloom as sb
from tests.rekeying.lake import KEYS, policy
from tests.storage.conftest import Bucket, bucket, port, s3_rights
from tests.tables import customers, write

__all__ = ["bucket", "port", "s3_rights"]  # fixtures


@pytest.mark.parametrize("material", ["internal", "external"])
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
