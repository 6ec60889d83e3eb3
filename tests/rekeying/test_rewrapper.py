"""Each wrapped key is brought under its master key once a run, inside the KMS where it can."""

from __future__ import annotations

import pytest

from secure_bloom.encryption.file_keys import KeyMaterial, UnwrapsOnce
from secure_bloom.encryption.file_keys.wrapping import (
    KekCache,
    KeyEncryptionKey,
    unwrap,
    wrap_once,
    wrap_twice,
)
from secure_bloom.rekeying.new_keys import Rewrapper
from testing.tables import KEYRING, CountingKms

DEK = bytes(range(16))


class VersionedKms(CountingKms):
    """A KMS whose wrapped keys tell their version, and that renews keys itself."""

    def __init__(self, newest: int = 2) -> None:
        super().__init__()
        self.newest = newest
        self.renewed: list[str] = []

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return f"v{self.newest}:{super().wrap_key(key_bytes, master_key_identifier)}"

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        return super().unwrap_key(wrapped_key.partition(":")[2], master_key_identifier)

    def rewrap_key(self, wrapped_key: str, master_key_identifier: str) -> str:
        self.renewed.append(wrapped_key)
        return f"v{self.newest}:{wrapped_key.partition(':')[2]}"

    def key_version(self, wrapped_key: str) -> str:
        return wrapped_key.partition(":")[0]


def material(kind: str) -> KeyMaterial:
    if kind == "once":
        return wrap_once(DEK, KEYRING, "k_pii")
    return wrap_twice(DEK, KeyEncryptionKey.create(KEYRING, "k_pii"))


def opened(found: KeyMaterial) -> bytes:
    return unwrap(found, KEYRING, KekCache())


@pytest.mark.parametrize("kind", ["once", "twice"])
def test_a_key_comes_under_the_wanted_master_key(kind: str) -> None:
    kms = CountingKms()
    old = material(kind)
    new = Rewrapper(kms, {}, kms).renewed(old, "k_finance")
    assert new.master_key_id == "k_finance"
    assert opened(new) == DEK
    if old.kek is not None and new.kek is not None:
        # The id of the KEK is the AAD of the data key, which keeps its wrapping.
        assert (new.kek.kek_id, new.wrapped_dek) == (old.kek.kek_id, old.wrapped_dek)


def test_moves_say_where_a_key_goes_and_others_stay() -> None:
    kms = CountingKms()
    rewrapper = Rewrapper(kms, {"k_pii": "k_finance"}, kms)
    assert rewrapper.renewed(material("once"), None).master_key_id == "k_finance"
    stays = wrap_once(DEK, KEYRING, "k_footer")
    assert rewrapper.renewed(stays, None) == stays
    assert len(kms.asked) == 1


def test_one_kek_of_many_files_is_renewed_once() -> None:
    kms, kek = CountingKms(), KeyEncryptionKey.create(KEYRING, "k_pii")
    rewrapper = Rewrapper(kms, {}, kms)
    files = [rewrapper.renewed(wrap_twice(bytes([i]) * 16, kek), "k_finance") for i in range(5)]
    assert len(kms.asked) == 1
    assert [opened(it) for it in files] == [bytes([i]) * 16 for i in range(5)]


def _wrapped_by(version: int) -> KeyMaterial:
    old = VersionedKms(version)
    return wrap_once(DEK, old, "k_pii")


def test_a_newer_version_is_the_work_of_the_kms_which_gives_no_key_out() -> None:
    kms = VersionedKms()
    new = Rewrapper(kms, {}, kms).renewed(_wrapped_by(1), "k_pii")
    assert (len(kms.renewed), kms.asked) == (1, [])
    assert unwrap(new, kms, KekCache()) == DEK


def test_the_first_renewed_key_tells_the_newest_version() -> None:
    kms = VersionedKms()
    rewrapper = Rewrapper(kms, {}, kms)
    right = [_wrapped_by(2) for _ in range(5)]
    # Under the newest version already: they stay, and the KMS is asked about the first alone.
    assert [rewrapper.renewed(it, None) for it in right] == right
    assert len(kms.renewed) == 1
    old = [_wrapped_by(1) for _ in range(5)]
    assert {kms.key_version(rewrapper.renewed(it, None).wrapped_dek) for it in old} == {"v2"}
    assert kms.renewed[1:] == [it.wrapped_dek for it in old]


def test_a_kms_that_gives_keys_out_tells_the_newest_version_by_a_new_kek() -> None:
    class GivesOut(VersionedKms):
        rewrap_key = None  # type: ignore[assignment]

    kms = GivesOut()
    rewrapper = Rewrapper(kms, {}, UnwrapsOnce(kms))
    right = _wrapped_by(2)
    assert rewrapper.renewed(right, None) == right
    assert kms.asked == []
    new = rewrapper.renewed(_wrapped_by(1), None)
    assert kms.key_version(new.wrapped_dek) == "v2"
    assert unwrap(new, kms, KekCache()) == DEK


def test_footers_share_a_new_kek_of_the_run() -> None:
    kms = CountingKms()
    rewrapper = Rewrapper(kms, {}, kms)
    files = [rewrapper.under_new_kek(material("twice"), "k_finance", DEK) for _ in range(3)]
    assert len({it.kek for it in files}) == 1
    assert {opened(it) for it in files} == {DEK}
    # A footer whose KEK is right keeps it.
    stays = material("twice")
    assert rewrapper.under_new_kek(stays, "k_pii", DEK) == stays
