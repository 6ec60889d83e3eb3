"""Limit the memory that decoding takes in a process: to 1 GiB, or to SECURE_BLOOM_MEMORY.

A page of a hundred bytes can claim to hold gigabytes. A page that claims more than the budget is
refused by an error that names it. Pages that several threads decode at the same time are counted
together.

Documents and the metadata of tables are bounded in the same way. :class:`DecodedBytes` counts
what the files of one log take when they are decoded, and :func:`json_size` estimates what a JSON
text takes.
"""

from __future__ import annotations

import functools
import os
import re
import threading

from secure_bloom.errors import PolicyError, UnsupportedFeatureError

VARIABLE = "SECURE_BLOOM_MEMORY"
_DEFAULT = "1GiB"
_SIZE = re.compile(r"\s*([0-9]{1,15})\s*(|KiB|MiB|GiB|TiB)\s*", re.IGNORECASE)
_UNITS = {"": 0, "kib": 10, "mib": 20, "gib": 30, "tib": 40}


class MemoryBudgetError(UnsupportedFeatureError):
    """Decoding would take more memory than the budget."""


def memory_budget() -> int:
    """Return the number of bytes that decoding may take in this process.

    Raises PolicyError if the setting is not a size.
    """
    return _parsed(os.environ.get(VARIABLE, _DEFAULT))


@functools.lru_cache(maxsize=8)
def _parsed(text: str) -> int:
    size = size_of_text(text)
    if not size:
        raise PolicyError(f"{VARIABLE} is not a size", hint=f"write {VARIABLE}=512MiB or 4GiB")
    return size


def size_of_text(text: str) -> int | None:
    """Return the number of bytes in a text such as ``256MiB``, or None if it is not a size."""
    found = _SIZE.fullmatch(text)
    return None if found is None else int(found[1]) << _UNITS[found[2].lower()]


def refuse_beyond(size: int, what: str) -> None:
    """Raise MemoryBudgetError if ``what`` needs more bytes than the whole budget."""
    budget = memory_budget()
    if size > budget:
        raise MemoryBudgetError(
            f"{what} takes {size:,} bytes decoded, more than the {budget:,} that decoding may take",
            hint=f"if the file is known to be sound, allow more: {VARIABLE}=4GiB",
        )


class DecodedBytes:
    """Counts the bytes that one subject takes decoded, for example the log of a table.

    Threads may count together.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._size = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[DecodedBytes], tuple[str]]:
        """Pickle without the count: the other process has decoded nothing yet."""
        return DecodedBytes, (self.what,)

    def add(self, size: int) -> None:
        """Count ``size`` more bytes. Raises MemoryBudgetError beyond the budget."""
        with self._lock:
            self._size += size
            found = self._size
        refuse_beyond(found, self.what)


#: About what Python takes for an object of JSON with a few members, for each further member, and
#: for a value of an object or of a list.
_JSON_OBJECT, _JSON_MEMBER, _JSON_VALUE = 160, 96, 32
_FEW_MEMBERS = 5


def json_size(text: bytes) -> int:
    """Return about how many bytes a JSON text takes when it is parsed.

    Brackets, commas and colons inside of texts count too, so that no parsing is needed.
    """
    # One character outside of Latin-1 makes all of its text wider.
    width = 1 if text.isascii() else 4
    values = text.count(b",") + text.count(b"[")
    objects = text.count(b"{")
    further = max(0, text.count(b":") - _FEW_MEMBERS * objects)
    size = width * len(text) + _JSON_VALUE * values
    return size + _JSON_OBJECT * objects + _JSON_MEMBER * further


class MemoryShare:
    """A limit for memory that holders keep: all of them together may keep ``most`` bytes.

    Each part counts as long as it is kept.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0
        self._lock = threading.Lock()

    def account(self) -> MemoryAccount:
        """Return an account for one holder, whose bytes can be given back all at once."""
        return MemoryAccount(self)

    def take(self, size: int) -> bool:
        """Count ``size`` more bytes if there is room. Return whether there is."""
        with self._lock:
            has_room = self.used + size <= self.most
            self.used += size if has_room else 0
            return has_room

    def give_back(self, size: int) -> None:
        """Count ``size`` fewer bytes."""
        with self._lock:
            self.used -= size


class MemoryAccount:
    """What one holder takes of a :class:`MemoryShare`.

    When a holder is replaced, it closes its account. A thread may still use the holder then. The
    closed account refuses to count what the thread takes, and gives nothing back a second time.
    """

    def __init__(self, share: MemoryShare) -> None:
        self._share = share
        self._lock = threading.Lock()
        self._used = 0
        self._is_open = True

    @property
    def most(self) -> int:
        """The most bytes that all holders of the share may keep together."""
        return self._share.most

    def take(self, size: int) -> bool:
        """Count ``size`` more bytes if the account is open and has room. Return whether it has."""
        with self._lock:
            has_room = self._is_open and self._share.take(size)
            self._used += size if has_room else 0
            return has_room

    def give_back(self, size: int) -> None:
        """Count ``size`` fewer bytes."""
        with self._lock:
            self._used -= size
            if self._is_open:
                self._share.give_back(size)

    def close(self) -> None:
        """Give back everything. From now on the account refuses."""
        with self._lock:
            if self._is_open:
                self._is_open = False
                self._share.give_back(self._used)

    def reopen(self) -> None:
        """Count again what the holder still has, because it is used again."""
        with self._lock:
            if not self._is_open and self._share.take(self._used):
                self._is_open = True


class _Reservations:
    """The bytes that all threads are decoding now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._taken = self._waiting = 0

    def take(self, size: int) -> None:
        """Wait until ``size`` bytes are free, or until nothing else is reserved.

        So one piece can always be decoded.
        """
        with self._lock:
            # A piece larger than all of the budget goes on alone, or it would wait for ever.
            while self._taken and self._taken + size > memory_budget():
                self._waiting += 1
                try:
                    self._changed.wait()
                finally:
                    self._waiting -= 1
            self._taken += size

    def give_back(self, size: int) -> None:
        """Make these bytes free again."""
        with self._lock:
            self._taken -= size
            if self._waiting:
                # All waiting threads are woken: a single one may want more than is free, and
                # others less.
                self._changed.notify_all()


_RESERVATIONS = _Reservations()


class reserved:  # noqa: N801 - used as a function
    """Reserve ``size`` bytes of the budget inside the block.

    A thread reserves memory for one piece at a time. This is a plain object, and not a generator,
    because lookups enter many of them.
    """

    __slots__ = ("_size",)

    def __init__(self, size: int) -> None:
        self._size = size

    def __enter__(self) -> None:
        _RESERVATIONS.take(self._size)

    def __exit__(self, *_error: object) -> None:
        _RESERVATIONS.give_back(self._size)
