"""Unwrap the keys of files that are opened next, in parallel, if each file has keys of its own.

The files of most tables share a few KEKs, which need one call to the KMS each, so nothing is
prefetched.  If every file has its own KEKs, opening one file after the other waits for one call
after the other.  The number of calls for the files before shows which is the case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.kms.calls import AT_ONCE
from secure_bloom.errors import SecureBloomError
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import Footer, unlock
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage import is_object_uri, open_input

#: Files that are prepared together: few at first, while it is not known whether that helps.
_RUNS: Final = (1, 8, 64)
_LONGEST_RUN: Final = 256
#: Keys are unwrapped ahead if this share of the files before needed a call to the KMS.
_SHARE: Final = 1 / 4
#: The number of files whose keys are unwrapped side by side.  The threads that open files make a
#: few calls beside these.
_AHEAD: Final = AT_ONCE - 8


class KeyPrefetch:
    """Counts the calls to the KMS, and unwraps keys before their files are opened.

    ``ask`` makes the calls for one file. By default it unwraps the keys that the run has asked for.
    ``made`` returns the number of calls that were not made by ``resolver``.
    """

    def __init__(
        self,
        resolver: KeyResolver,
        ask: Callable[[str], object] | None = None,
        made: Callable[[], int] = int,
    ) -> None:
        self._resolver = resolver
        self._ask = self._unwrap_keys if ask is None else ask
        self._made = made
        self._files = 0
        self._calls = self._calls_now()

    def each(self, paths: Sequence[str]) -> Iterator[str]:
        """Yield the paths, in their order.

        The keys of the next paths may be unwrapped meanwhile.
        """
        start, runs = 0, iter(_RUNS)
        while start < len(paths):
            run = paths[start : start + next(runs, _LONGEST_RUN)]
            # The caller works on the first ones while the keys of the others are on their way.
            yield from self._prepared(run) if self._helps(len(run)) else run
            start += len(run)

    def prepare(self, paths: Sequence[str]) -> None:
        """Unwrap the keys of files that will be opened, if the calls so far show that it helps."""
        if self._helps(len(paths)):
            list(self._prepared(paths))

    def _helps(self, files: int) -> bool:
        """Return whether the calls since the last decision show that prefetching helps."""
        now = self._calls_now()
        calls, before = now - self._calls, self._files
        self._calls, self._files = now, files
        # After a few files: the first one of any table unwraps the KEKs that all share.
        return before >= _RUNS[1] and calls >= before * _SHARE

    def _calls_now(self) -> int:
        return self._resolver.calls + self._made()

    def _prepared(self, paths: Sequence[str]) -> Iterator[str]:
        # Room for all: a key that is slow must not keep the others from being asked for.
        return in_order(self._after_its_calls, paths, _AHEAD, room=len(paths))

    def _after_its_calls(self, path: str) -> str:
        """Make the calls for a file. Return its path.

        Errors are left to the caller who opens the file.
        """
        # Files in an object store are opened side by side anyway.
        if not is_object_uri(path):
            # An error raised here would come before those of the files in front of this one.
            with suppress(SecureBloomError, OSError):
                self._ask(path)
        return path

    def _unwrap_keys(self, path: str) -> None:
        with open_input(path) as file:
            keys = file_keys(self._resolver, file)
            # Only calls to the KMS are made here.  Whoever then reads the file checks the
            # signature.
            footer = unlock(read_tail(file), keys, allow_unverified=True)
            for name, key_metadata in _own_keys(footer).items():
                if keys.describe(key_metadata) in self._resolver.used:
                    keys.column_key(name, key_metadata)


def _own_keys(footer: Footer) -> dict[str, bytes | None]:
    """Return the key metadata of each column that has a key of its own.

    They are read from the first row group, because all row groups have the same keys.
    """
    found = {}
    # Not strict: a file without a row group has columns and no chunk.
    chunks = footer.column_chunks[0] if footer.column_chunks else ()
    for leaf, chunk in zip(footer.leaves, chunks, strict=False):
        crypto = chunk.crypto_metadata
        own = None if crypto is None else crypto.ENCRYPTION_WITH_COLUMN_KEY
        if own is not None:
            found[leaf.name] = own.key_metadata
    return found
