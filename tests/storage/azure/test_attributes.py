"""What a blob is besides its bytes: what goes over, and what is refused by name."""

from __future__ import annotations

import pytest

from secure_bloom.errors import UnsupportedFeatureError
from tests.storage.azure.conftest import Blobs
from tests.storage.other_stores import KEY, SIZES, new, replaced


def test_a_blob_of_pages_is_refused_by_name(container: Blobs) -> None:
    from azure.storage.blob import BlobType

    container.client.upload_blob(KEY, b"x" * 1024, blob_type=BlobType.PAGEBLOB)
    with pytest.raises(UnsupportedFeatureError, match="PageBlob"):
        replaced(container)


@SIZES
def test_a_tier_that_was_never_set_and_a_sum_of_old_bytes_do_not_go_over(
    container: Blobs, old: bytes
) -> None:
    blob = container.client.upload_blob(KEY, old)
    before = blob.get_blob_properties()
    replaced(container)
    found = blob.get_blob_properties()
    assert container.objects() == {KEY: new(old)}
    assert found.blob_tier_inferred
    assert before.content_settings.content_md5
    assert found.content_settings.content_md5 != before.content_settings.content_md5
