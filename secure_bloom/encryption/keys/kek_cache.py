"""Key encryption keys (KEK) of one run: one call to the KMS for each, for all threads together."""

from __future__ import annotations

import threading
from collections.abc import Callable

#: A file's description of a KEK: its id (if it has one), the master key's id, the wrapped bytes.
#: The cache compares all of it.  Any file can claim any id, so with the id alone a hostile file
#: could put its own KEK in the place of another file's.
KekId = tuple[bytes, str, str]

#: Most KEKs to keep.  A table has fewer, unless the KMS itself wrapped one key for each column of
#: each file: then the oldest are forgotten.
_MOST = 10_000


class KekCache:
    """Unwrapped keys that serve many files."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[KekId, _Slot] = {}
        #: How many keys were unwrapped: calls to the KMS that were answered.
        self.unwrapped = 0

    def get(self, kek_id: KekId, unwrap: Callable[[], bytes]) -> bytes:
        """The KEK.  The first caller unwraps it; others who want the same one wait for that call.

        An error of ``unwrap`` goes to the caller who made the call; the next one tries again.
        """
        with self._lock:
            slot = self._slots.setdefault(kek_id, _Slot())
            # A dict keeps its order, so the first is the oldest.  Who waits for it holds its slot
            # and goes on.
            if len(self._slots) > _MOST:
                del self._slots[next(iter(self._slots))]
        with slot.lock:
            # Not kept when it fails: a KMS that throttled one call may answer the next one.
            if slot.kek is None:
                slot.kek = unwrap()
                with self._lock:
                    self.unwrapped += 1
            return slot.kek


class _Slot:
    """One KEK.  Its lock is held during the call to the KMS, so calls for other KEKs go on."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.kek: bytes | None = None
