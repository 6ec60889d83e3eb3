"""Each kind of object store has one record, and its module offers what the record's users call."""

from __future__ import annotations

import pytest
from pyarrow import fs

from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.storage.object_writer import ObjectWriter, sdk_of
from secure_bloom.storage.paths import object_uri
from secure_bloom.storage.stores import STORE_OF_SCHEME, STORES, ObjectStore, store_of


@pytest.mark.parametrize("scheme", STORE_OF_SCHEME)
def test_a_uri_knows_its_store(scheme: str) -> None:
    uri = object_uri(f"{scheme.upper()}://bucket/key")
    assert uri.kind is STORE_OF_SCHEME[scheme]
    assert uri.store() == f"{uri.kind.schemes[scheme]}://bucket/"


@pytest.mark.parametrize("store", [it for it in STORES if it.module], ids=lambda it: it.name)
def test_the_module_of_a_store_has_every_request(store: ObjectStore) -> None:
    sdk = sdk_of(store)
    assert issubclass(sdk.Writer, ObjectWriter)
    assert all(map(callable, (sdk.connect, sdk.errors, sdk.conditions, sdk.read_range, sdk.remove)))


def test_a_file_system_without_a_record_has_no_abilities() -> None:
    store = store_of(fs.LocalFileSystem())
    assert store.mark((None, 1, 2, b"tag")) is None
    with pytest.raises(UnsupportedFeatureError, match="that only an SDK sends"):
        sdk_of(store)
