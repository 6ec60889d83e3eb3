"""KEKs unwrapped during one run: one call to the KMS for each, however many threads want it."""

from __future__ import annotations

import threading
from collections.abc import Callable

#: What a file says of a KEK: its id, where it has one, the master key's id, the wrapped bytes.  All
#: of it: an id alone is only a claim, and with it a hostile file would exchange the KEK of others.
KekId = tuple[bytes, str, str]

#: More than the KEKs of any table; where each column of each file has a key of its own that the
#: KMS wrapped, the last of those.
_MOST = 10_000


class KekCache:
    """Unwrapped keys that serve many files."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[KekId, _Slot] = {}
        #: How many keys were unwrapped: calls to the KMS that were answered.
        self.unwrapped = 0

    def get(self, kek_id: KekId, unwrap: Callable[[], bytes]) -> bytes:
        """The KEK; the first caller unwraps it while the others wait for it alone.

        What ``unwrap`` raises reaches its own caller; those who waited try in their turn.
        """
        with self._lock:
            slot = self._slots.setdefault(kek_id, _Slot())
            if len(self._slots) > _MOST:
                del self._slots[next(iter(self._slots))]
        with slot.lock:
            if slot.kek is None:
                slot.kek = unwrap()
                self.unwrapped += 1
            return slot.kek


class _Slot:
    """The place of one KEK; its lock is held during the call to the KMS."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.kek: bytes | None = None
