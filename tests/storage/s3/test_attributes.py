"""What an object is besides its bytes: the object in its place is the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from testing.storage import Bucket
from tests.storage.s3.conftest import KEY, SIZES, new, replaced

DESCRIBED = {
    "ContentType": "application/vnd.apache.parquet",
    "CacheControl": "no-cache",
    "ContentDisposition": "attachment",
    "ContentLanguage": "de",
    "Metadata": {"made": "by", "run": "7"},
    "StorageClass": "STANDARD_IA",
    "ServerSideEncryption": "aws:kms",
    "SSEKMSKeyId": "arn:aws:kms:us-east-1:000000000000:key/11111111-1111-1111-1111-111111111111",
}


@SIZES
def test_an_object_stays_what_it_is(bucket: Bucket, old: bytes) -> None:
    where = {"Bucket": bucket.name, "Key": KEY}
    client = bucket.client
    client.put_object(**where, Body=old, **DESCRIBED, Tagging="cost=a%20b&kind=%40")
    client.put_object_acl(
        **where, GrantRead='uri="http://acs.amazonaws.com/groups/global/AllUsers"'
    )
    tags = client.get_object_tagging(**where)["TagSet"]
    grants = client.get_object_acl(**where)["Grants"]
    replaced(bucket)
    found = client.head_object(**where)
    assert {name: found.get(name) for name in DESCRIBED} == DESCRIBED
    assert client.get_object_tagging(**where)["TagSet"] == tags
    assert client.get_object_acl(**where)["Grants"] == grants
    assert bucket.objects() == {KEY: new(old)}


@SIZES
@pytest.mark.parametrize("algorithm", ["SHA256", "SHA1", "CRC32"])
def test_the_kind_of_checksum_stays(bucket: Bucket, old: bytes, algorithm: str) -> None:
    where = {"Bucket": bucket.name, "Key": KEY}
    bucket.client.put_object(**where, Body=old, ChecksumAlgorithm=algorithm)
    before = bucket.client.head_object(**where, ChecksumMode="ENABLED")[f"Checksum{algorithm}"]
    replaced(bucket)
    after = bucket.client.head_object(**where, ChecksumMode="ENABLED")[f"Checksum{algorithm}"]
    assert after != before


@SIZES
def test_a_lock_goes_over_and_the_locked_version_stays(
    ports: dict[str, str], s3_rights: None, old: bytes
) -> None:
    # moto forgets the lock of an upload in parts.
    bucket = Bucket(ports["ministack"], ObjectLockEnabledForBucket=True)
    where = {"Bucket": bucket.name, "Key": KEY}
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    lock = {
        "ObjectLockMode": "COMPLIANCE",
        "ObjectLockRetainUntilDate": until,
        "ObjectLockLegalHoldStatus": "ON",
    }
    locked = bucket.client.put_object(**where, Body=old, ChecksumAlgorithm="CRC32", **lock)
    replaced(bucket)
    found = bucket.client.head_object(**where)
    assert found["VersionId"] != locked["VersionId"]
    assert {name: found[name] for name in lock} == lock
    before = bucket.client.get_object(**where, VersionId=locked["VersionId"])
    assert before["Body"].read() == old
