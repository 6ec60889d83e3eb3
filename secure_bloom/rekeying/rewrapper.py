"""Wrap the keys of one run under the master keys that they should be under, each once.

If the KMS can rewrap a KEK without giving it out, it does so. This is not possible for the KEK of
a footer, because the footer is opened. So the keys under it are wrapped under a KEK of this run,
and the KMS is asked once instead of twice. Keys that the KMS wraps for the run show the newest
version of a master key.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from secure_bloom.encryption.file_keys import KeyMaterial
from secure_bloom.encryption.file_keys.wrapping import wrap_twice
from secure_bloom.encryption.kms import (
    KeyMover,
    KeyRewrapper,
    KeyVersions,
    KmsClient,
    moved_with,
    rewrap_with,
    unwrap_with,
    wrap_with,
)
from secure_bloom.rekeying.new_keys import NewKeks, TwoKms

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
