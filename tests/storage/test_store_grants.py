"""Settings of a catalog are for the places that it names, and end with the table."""

from __future__ import annotations

import gc
import pickle

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.storage.paths import object_uri
from secure_bloom.storage.store_grants import S3Settings, StoreGrant, settings_for

OURS = S3Settings(endpoint="http://127.0.0.1:1", secret_key="s3cr3t")
THEIRS = S3Settings(endpoint="http://127.0.0.1:2")


def found(path: str) -> S3Settings | None:
    return settings_for(object_uri(path))


def test_they_are_for_what_is_at_or_below_a_place() -> None:
    grant = StoreGrant(["s3://a/lake/t", "s3a://b"], OURS)
    assert found("s3a://a/lake/t/data/1.parquet") is found("s3://a/lake/t") is OURS
    assert found("s3://b/any") is OURS
    for path in ("s3://a/lake/t2/1.parquet", "s3://a/lake", "gs://a/lake/t/1.parquet"):
        assert found(path) is None
    # A URI that says itself where its store is.
    assert found("s3://a/lake/t/1.parquet?endpoint_override=127.0.0.1:3") is None
    assert "s3cr3t" not in repr(grant.settings)
    # Another machine has credentials of its own.
    assert b"s3cr3t" not in pickle.dumps(grant)
    assert pickle.loads(pickle.dumps(grant)).settings == S3Settings(endpoint=OURS.endpoint)
    del grant
    gc.collect()
    assert found("s3://b/any") is None


def test_the_longest_place_counts_and_then_the_newest_settings() -> None:
    renewed = S3Settings(endpoint=OURS.endpoint, secret_key="new")
    outer, inner = StoreGrant(["s3://a/lake"], renewed), StoreGrant(["s3://a/lake/t"], OURS)
    assert found("s3://a/lake/t/1") is OURS
    again = StoreGrant(["s3://a/lake/t"], renewed)
    assert found("s3://a/lake/t/1") is renewed
    del again
    gc.collect()
    assert found("s3://a/lake/t/1") is OURS
    assert (outer.settings, inner.settings) == (renewed, OURS)


def test_one_path_never_means_two_objects() -> None:
    kept = StoreGrant(["s3://a/lake/t"], OURS)
    with pytest.raises(PolicyError, match="different endpoints"):
        StoreGrant(["s3://a/lake"], THEIRS)
    assert found("s3://a/lake/t/1") is kept.settings
    del kept
    assert StoreGrant(["s3://a/lake"], THEIRS).settings is THEIRS
