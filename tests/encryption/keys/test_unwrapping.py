"""One call to a KMS for each wrapped key."""

from __future__ import annotations

from secure_bloom.encryption.keys import UnwrapsOnce
from tests.tables import KEYRING, MASTER_KEYS, CountingKms


def test_each_key_is_asked_for_once() -> None:
    kms = CountingKms()
    once = UnwrapsOnce(kms)
    keys = [bytes([i]) * 16 for i in range(3)]
    wrapped = [once.wrap_key(key, "k_pii") for key in keys]
    for _ in range(2):
        assert [once.unwrap_key(text, "k_pii") for text in wrapped] == keys
    assert kms.asked == [(text, "k_pii") for text in wrapped]


def test_what_the_other_client_has() -> None:
    assert [UnwrapsOnce(KEYRING).has_key(name) for name in (*MASTER_KEYS, "other")] == [
        *[True] * len(MASTER_KEYS),
        False,
    ]
    assert UnwrapsOnce(CountingKms()).has_key("any")
