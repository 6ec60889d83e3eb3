"""Make new data keys for files: random, wrapped under master keys, described by key material.

With double wrapping, one key encryption key serves a master key for the whole run, so the KMS is
asked once for each master key, not once for each file.

Files may be moved from one KMS to another, or from one keyring to another:

    kms = TwoKms(old, new)
    key = kms.unwrap_key(wrapped, name)     the new KMS is asked first, then the old one
    kms.is_old(wrapped, name)               whether the old one opened it: the file is to be changed

A master key may have the same name in both.  Only unwrapping shows which KMS wrapped a key.

:class:`Rewrapper` wraps the keys of a run under the master keys that they should be under, each
once.  If the KMS can rewrap a KEK without giving it out, it does so. This is not possible for the
KEK of a footer, because the footer is opened. So the keys under it are wrapped under a KEK of this
run, and the KMS is asked once instead of twice. Keys that the KMS wraps for the run show the newest
version of a master key.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from secure_bloom.encryption.access import GivenKeys
from secure_bloom.encryption.file_keys import DataKey, KeyMaterial, UnwrapsOnce
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher, PreparedKey
from secure_bloom.encryption.file_keys.material import ExternalReference
from secure_bloom.encryption.file_keys.wrapping import KeyEncryptionKey, wrap_once, wrap_twice
from secure_bloom.encryption.kms import (
    KeyMover,
    KeyNotNamedError,
    KeyRewrapper,
    Keyring,
    KeyVersions,
    KmsClient,
    moved_with,
    rewrap_with,
    unwrap_with,
    wrap_with,
)
from secure_bloom.encryption.policy_tables import Algorithm, EncryptionOptions
from secure_bloom.errors import FormatError, KeyUnavailableError
from secure_bloom.rekeying.protection import KeyUse, Protection


class TwoKms:
    """A :class:`~secure_bloom.KmsClient` that unwraps by two KMSs, and wraps by the new one.

    Each wrapped key is asked for once. Safe for threads.
    """

    def __init__(self, old: KmsClient, new: KmsClient) -> None:
        self._old, self._new = UnwrapsOnce(old), UnwrapsOnce(new)
        self._old_keys: set[tuple[str, str]] = set()

    @classmethod
    def of(cls, old: GivenKeys, new: KmsClient) -> TwoKms | None:
        """Return both as one client.

        Return None if ``old`` is no KMS or the same keyring as ``new``.
        """
        return cls(old, new) if isinstance(old, KmsClient) and old != new else None

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Return ``key_bytes`` as the new KMS wraps it."""
        return wrap_with(self._new, key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Return the key as the new KMS unwraps it, or else as the old KMS does."""
        if (wrapped_key, master_key_identifier) in self._old_keys:
            return unwrap_with(self._old, wrapped_key, master_key_identifier)
        try:
            return unwrap_with(self._new, wrapped_key, master_key_identifier)
        except (FormatError, KeyUnavailableError) as refusal:
            key = self._by_old(wrapped_key, master_key_identifier, refusal)
        self._old_keys.add((wrapped_key, master_key_identifier))
        return key

    def is_old(self, wrapped_key: str, master_key_identifier: str) -> bool:
        """Return whether the old KMS wrapped this key.

        Raises an error if neither KMS unwraps it.
        """
        self.unwrap_key(wrapped_key, master_key_identifier)
        return (wrapped_key, master_key_identifier) in self._old_keys

    def has_old(self, material: KeyMaterial) -> bool:
        """Return whether the old KMS wrapped the key material."""
        wrapped = material.wrapped_dek if material.kek is None else material.kek.wrapped
        return self.is_old(wrapped, material.master_key_id)

    def _by_old(self, wrapped_key: str, name: str, refusal: Exception) -> bytes:
        try:
            return unwrap_with(self._old, wrapped_key, name)
        except KeyNotNamedError:
            # The key is one of the new policy alone, so the new KMS says what is wrong with it.
            raise refusal from None


#: Encryption.md 4.4.1; parquet-java and Arrow draw as many.
_UNIQUE_SIZE = 8
#: parquet-java's own names of references begin so.
_FOOTER_REFERENCE, _COLUMN_REFERENCE = "footerKey", "columnKey"


class NewKeks:
    """The KEKs of one run, one for each master key and size. Safe for threads."""

    def __init__(self, kms: KmsClient) -> None:
        self._kms = kms
        self._made: dict[tuple[str, int], KeyEncryptionKey] = {}
        self._turn = threading.Lock()

    def get(self, master_key_id: str, size: int) -> KeyEncryptionKey:
        """Return the KEK. The first call makes a random one, which the KMS wraps."""
        with self._turn:
            # The lock is held during the call to the KMS: else files begun together would each make
            # a KEK.
            made = self._made.get((master_key_id, size))
            if made is None:
                made = KeyEncryptionKey.create(self._kms, master_key_id, size=size)
                self._made[master_key_id, size] = made
            return made


class KeyMaker:
    """Makes the data keys of one run. Safe for threads."""

    def __init__(self, kms: KmsClient, options: EncryptionOptions) -> None:
        self._kms = kms
        self._options = options
        self._size = options.data_key_bits // 8
        self._keks = NewKeks(kms)
        #: The number of keys that the KMS itself wrapped, one call each.
        self.wrapped = 0

    @property
    def asks_for_each_key(self) -> bool:
        """Whether each key needs a call to a remote KMS."""
        return not (self._options.double_wrapping or isinstance(self._kms, Keyring))

    def make(self, master_key_id: str, *, is_footer_key: bool) -> tuple[DataKey, KeyMaterial]:
        """Return a random key and its material. Raises the errors of the KMS."""
        # Each file and column has its own key, so no key comes near the 2^32 modules that it may
        # serve (SP 800-38D 8.3).
        key = os.urandom(self._size)
        if self._options.double_wrapping:
            kek = self._keks.get(master_key_id, self._size)
            material = wrap_twice(key, kek, is_footer_key=is_footer_key)
        else:
            material = wrap_once(key, self._kms, master_key_id, is_footer_key=is_footer_key)
            # Without a lock: a count may get lost, but it only shows whether calls are many.
            self.wrapped += 1
        return DataKey(key=key, name=master_key_id), material


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedWith:
    """The key of a footer or a column, and the key_metadata by which a reader finds it."""

    prepared: PreparedKey
    key_metadata: bytes

    @property
    def key(self) -> DataKey:
        """The key itself."""
        return self.prepared.key


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFileKeys:
    """All keys of one new file. ``columns`` maps the ordinal of a column to the column's own key.

    ``external`` is the content of its key material file, empty if key metadata hold all material.
    """

    aad_file_unique: bytes
    uses_ctr: bool
    footer: SealedWith
    columns: dict[int, SealedWith]
    under_footer_key: frozenset[int]
    external: dict[str, str] = field(repr=False)

    def sealed_with(self, column: int) -> SealedWith | None:
        """Return the key of a column, or None if the column is in clear."""
        return self.footer if column in self.under_footer_key else self.columns.get(column)

    def cipher(self, row_group: int, column: int) -> ColumnCipher | None:
        """Return the cipher of a column chunk, or None if the column is in clear."""
        sealed = self.sealed_with(column)
        if sealed is None:
            return None
        return sealed.prepared.column_cipher(
            self.aad_file_unique, row_group, column, uses_ctr=self.uses_ctr
        )


def new_file_keys(maker: KeyMaker, wanted: Protection, options: EncryptionOptions) -> NewFileKeys:
    """Return keys for one file, for its footer and each column, as ``wanted``.

    ``wanted`` must not be plain.
    """
    storage = _MaterialStorage(internal=options.internal_storage)
    footer = _sealed(maker, wanted.footer, storage, _FOOTER_REFERENCE, is_footer_key=True)
    columns = {
        ordinal: _sealed(maker, use, storage, f"{_COLUMN_REFERENCE}{ordinal}")
        for ordinal, use in enumerate(wanted.columns)
        if use is not None and not use.is_footer_key
    }
    return NewFileKeys(
        # New with every writing, so that modules of the old file cannot be put into the new one.
        aad_file_unique=os.urandom(_UNIQUE_SIZE),
        uses_ctr=wanted.algorithm is Algorithm.AES_GCM_CTR_V1,
        footer=footer,
        columns=columns,
        under_footer_key=frozenset(
            i for i, use in enumerate(wanted.columns) if use is not None and use.is_footer_key
        ),
        external=storage.external,
    )


def _sealed(
    maker: KeyMaker,
    use: KeyUse | None,
    storage: _MaterialStorage,
    reference: str,
    *,
    is_footer_key: bool = False,
) -> SealedWith:
    if use is None or use.name is None:
        # A mistake of this package, not of a caller: a policy names each of its keys.
        raise ValueError("a key without the name of its master key cannot be made")
    key, material = maker.make(use.name, is_footer_key=is_footer_key)
    return SealedWith(
        prepared=PreparedKey.of(key), key_metadata=storage.key_metadata(material, reference)
    )


class _MaterialStorage:
    """Where key material is stored: in key_metadata, or in a file beside the data."""

    def __init__(self, *, internal: bool) -> None:
        self._internal = internal
        # References of another writing of the same file must not meet these in one file.
        self._suffix = f"-{os.urandom(8).hex()}"
        self.external: dict[str, str] = {}

    def key_metadata(self, material: KeyMaterial, name: str) -> bytes:
        if self._internal:
            return material.serialize()
        reference = name + self._suffix
        self.external[reference] = replace(material, internal_storage=False).serialize().decode()
        return ExternalReference(key_reference=reference).serialize()


#: The size of the KEKs by which the newest version of a master key is found.
_SOME_SIZE: Final = 16
_Key = TypeVar("_Key")


class Rewrapper:
    """Wraps keys under the master keys that they should be under, each once. Safe for threads.

    ``moves`` maps old master keys to new ones; other keys stay. Without moves, a key under the
    right master key is wrapped again only if wrapped keys name their version and the KMS has a
    newer one. ``opening`` is the client of the same KMS that opens footers: keys that it has
    unwrapped are not asked for again. With ``two_kms``, keys that the old KMS wrapped are wrapped
    by the new one.
    """

    def __init__(
        self,
        kms: KmsClient,
        moves: Mapping[str, str],
        opening: KmsClient,
        two_kms: TwoKms | None = None,
    ) -> None:
        self._kms = kms
        self._opening = opening
        self._two_kms = two_kms
        self.moves = moves
        # With moves, keys that do not move stay as they are, whichever version wrapped them.
        self._versions = kms if isinstance(kms, KeyVersions) and not moves else None
        self._keks = NewKeks(kms)
        self._done: dict[tuple[str, str, str], _Once] = {}
        #: The newest version of each master key, as the KMS named it in this run.
        self._newest: dict[str, _Once] = {}
        self._turn = threading.Lock()
        #: The number of wrapped keys that the KMS was asked to renew or to move.
        self.asked = 0

    @property
    def renews_inside(self) -> bool:
        """Whether the KMS rewraps keys without giving them out."""
        return isinstance(self._kms, KeyRewrapper)

    @property
    def leaves_kms(self) -> bool:
        """Whether keys are moved from one KMS to another."""
        return self._two_kms is not None

    def renewed(self, material: KeyMaterial, wanted: str | None) -> KeyMaterial:
        """Return ``material`` under the master key ``wanted``. Without it, ``moves`` decides."""
        old, new = self._from_and_to(material, wanted)
        if material.kek is not None:
            # The KEK's id is the AAD of what it wraps, so the data key's own wrapping stays.
            wrapped = self._wrapped(material.kek.wrapped, old, new)
            return replace(material, master_key_id=new, kek=replace(material.kek, wrapped=wrapped))
        wrapped = self._wrapped(material.wrapped_dek, old, new)
        return replace(material, master_key_id=new, wrapped_dek=wrapped)

    def under_new_kek(self, material: KeyMaterial, wanted: str | None, key: bytes) -> KeyMaterial:
        """Return ``material`` of ``key``, under a KEK of this run if its own KEK is to change."""
        old, new = self._from_and_to(material, wanted)
        if material.kek is None or not self._is_left(material.kek.wrapped, old, new, len(key)):
            return material
        made = wrap_twice(key, self._keks.get(new, len(key)))
        return replace(material, master_key_id=new, kek=made.kek, wrapped_dek=made.wrapped_dek)

    def _from_and_to(self, material: KeyMaterial, wanted: str | None) -> tuple[str, str]:
        old = material.master_key_id
        return old, self.moves.get(old, old) if wanted is None else wanted

    def _is_left(self, wrapped: str, old: str, new: str, size: int) -> bool:
        """Return whether a key is wrapped again, under another master key or a newer version."""
        if old != new or self._is_of_old_kms(wrapped, old):
            return True
        if self._versions is None:
            return False
        return self._versions.key_version(wrapped) != self._newest_version(
            self._versions, old, size
        )

    def _newest_version(self, versions: KeyVersions, name: str, size: int) -> str:
        """Return the newest version of a master key.

        If none is known, it is read from a KEK that is wrapped for this run.
        """
        newest = self._once(self._newest, name)
        with newest.lock:
            if newest.text is None:
                newest.text = versions.key_version(self._keks.get(name, size).wrapped.wrapped)
            return newest.text

    def _wrapped(self, wrapped: str, old: str, new: str) -> str:
        once = self._once(self._done, (wrapped, old, new))
        with once.lock:
            if once.text is None:
                once.text = self._wrapped_anew(wrapped, old, new)
            return once.text

    def _wrapped_anew(self, wrapped: str, old: str, new: str) -> str:
        if self._two_kms is not None and self._is_of_old_kms(wrapped, old):
            self._count()
            return wrap_with(self._kms, unwrap_with(self._two_kms, wrapped, old), new)
        return self._renewed(wrapped, old) if old == new else self._moved(wrapped, old, new)

    def _is_of_old_kms(self, wrapped: str, name: str) -> bool:
        return self._two_kms is not None and self._two_kms.is_old(wrapped, name)

    def _moved(self, wrapped: str, old: str, new: str) -> str:
        self._count()
        kms = self._kms if isinstance(self._kms, KeyMover) else self._opening
        return moved_with(kms, wrapped, old, new)

    def _renewed(self, wrapped: str, name: str) -> str:
        """Return the key wrapped under the newest version.

        The text is unchanged if that version had wrapped it.
        """
        versions = self._versions
        if versions is None:
            return wrapped
        if not self.renews_inside:
            self._newest_version(versions, name, _SOME_SIZE)
        newest = self._once(self._newest, name)
        with newest.lock:
            # The first key that is renewed shows which version is the newest.  Others wait for it,
            # because it may be theirs.
            if newest.text is None:
                renewed = self._rewrapped(wrapped, name)
                newest.text = versions.key_version(renewed)
                # A key of the newest version keeps its bytes, so a file with such keys alone stays.
                return wrapped if newest.text == versions.key_version(wrapped) else renewed
        if newest.text == versions.key_version(wrapped):
            return wrapped
        return self._rewrapped(wrapped, name)

    def _rewrapped(self, wrapped: str, name: str) -> str:
        self._count()
        return rewrap_with(self._kms if self.renews_inside else self._opening, wrapped, name)

    def _count(self) -> None:
        with self._turn:
            self.asked += 1

    def _once(self, kept: dict[_Key, _Once], key: _Key) -> _Once:
        with self._turn:
            # The lock of all is held to find the entry alone, never during a call to the KMS.
            return kept.setdefault(key, _Once())


@dataclass(slots=True)
class _Once:
    """One answer of the KMS, for which the KMS is asked only once.

    Its lock blocks only callers that want this answer.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    text: str | None = None
