"""Wrapped keys of one run under the master keys that they should be under, each once.

A KEK is renewed inside the KMS where it can do that.  The KEK of a footer had to be given out, to
open the footer: its key comes under a KEK of this run, so that the KMS is asked once for it, not
twice.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from secure_bloom.encryption.keys import (
    KeyMaterial,
    KeyMover,
    KeyRewrapper,
    KeyVersions,
    KmsClient,
    moved_with,
    rewrap_with,
)
from secure_bloom.encryption.keys.wrapping import wrap_twice
from secure_bloom.rekeying.new_keys import NewKeks


class Rewrapper:
    """Wraps keys under the master keys that they should be under; each once a run, from any thread.

    ``moves`` maps old master keys to new ones.  A key under the right one is wrapped anew only
    where the KMS has versions and a newer one.  ``opening`` is the same KMS as it opens footers:
    what it has unwrapped is not asked for again.
    """

    def __init__(self, kms: KmsClient, moves: Mapping[str, str], opening: KmsClient) -> None:
        self._kms = kms
        self._opening = opening
        self.moves = moves
        self._keks = NewKeks(kms)
        self._done: dict[tuple[str, str, str], _Once] = {}
        self._turn = threading.Lock()

    def renewed(self, material: KeyMaterial, wanted: str | None) -> KeyMaterial:
        """``material`` under the master key ``wanted``; None leaves the choice to ``moves``."""
        old, new = self._from_and_to(material, wanted)
        if material.kek is not None:
            # The KEK's id is the AAD of what it wraps, so the data key's own wrapping stays.
            wrapped = self._wrapped(material.kek.wrapped, old, new)
            return replace(material, master_key_id=new, kek=replace(material.kek, wrapped=wrapped))
        wrapped = self._wrapped(material.wrapped_dek, old, new)
        return replace(material, master_key_id=new, wrapped_dek=wrapped)

    def under_new_kek(self, material: KeyMaterial, wanted: str | None, key: bytes) -> KeyMaterial:
        """``material`` of a footer's ``key``, under a KEK of this run if its own is to change."""
        old, new = self._from_and_to(material, wanted)
        if material.kek is None or not self._is_left(material.kek.wrapped, old, new):
            return material
        made = wrap_twice(key, self._keks.get(new, len(key)))
        return replace(material, master_key_id=new, kek=made.kek, wrapped_dek=made.wrapped_dek)

    def _from_and_to(self, material: KeyMaterial, wanted: str | None) -> tuple[str, str]:
        old = material.master_key_id
        return old, self.moves.get(old, old) if wanted is None else wanted

    def _is_left(self, wrapped: str, old: str, new: str) -> bool:
        """Whether this wrapping is to go: for another master key, or a newer version."""
        kms = self._kms
        return old != new or (
            isinstance(kms, KeyVersions) and not kms.has_newest_version(wrapped, old)
        )

    def _wrapped(self, wrapped: str, old: str, new: str) -> str:
        with self._turn:
            once = self._done.setdefault((wrapped, old, new), _Once())
        # A lock for each key: the call to the KMS holds up only those who want the same one.
        with once.lock:
            if once.wrapped is None:
                once.wrapped = self._ask(wrapped, old, new)
            return once.wrapped

    def _ask(self, wrapped: str, old: str, new: str) -> str:
        if not self._is_left(wrapped, old, new):
            return wrapped
        if old == new:
            kms = self._kms if isinstance(self._kms, KeyRewrapper) else self._opening
            return rewrap_with(kms, wrapped, old)
        kms = self._kms if isinstance(self._kms, KeyMover) else self._opening
        return moved_with(kms, wrapped, old, new)


@dataclass(slots=True)
class _Once:
    lock: threading.Lock = field(default_factory=threading.Lock)
    wrapped: str | None = None
