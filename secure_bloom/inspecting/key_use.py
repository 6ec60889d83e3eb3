"""Find the master keys that open files and columns, without any key."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, repeat
from typing import Any, ClassVar

from secure_bloom.calling.close_names import CloseNames
from secure_bloom.encryption.access import Access
from secure_bloom.encryption.file_keys import FileKeys, KeyMaterial, KeyResolver
from secure_bloom.encryption.kms import Keyring, version_in
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import KeyUnavailableError, SecureBloomError, failure_of, located
from secure_bloom.inspecting.skipped_files import SkippedFile
from secure_bloom.lakes import TableListing
from secure_bloom.parquet.footer.locate import Tail, read_tail
from secure_bloom.parquet.footer.opened import Footer, read_unverified, unlock
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.key_prefetch import KeyPrefetch
from secure_bloom.reports.base import ReportOfFiles
from secure_bloom.reports.text import counted
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage import files_at_once

_WORKERS = 4
#: Names of keys with at least this likeness may be one name, misspelt.
_ALIKE = 0.8
_CLOSED = "the footer could not be opened"


class KeyStanding(enum.StrEnum):
    """What a policy says about a master key: it is in use, older, retired, or not named."""

    USED = "used"
    OLDER = "older"
    RETIRED = "retired"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedKey:
    """A master key, its version if the KMS names versions, and what it opens in a file.

    ``columns`` are dotted paths. ``opens_footer`` is about the footer.  ``in_policy`` is what the
    policy says about the key, or None without a policy.
    """

    master_key: str
    version: str | None
    opens_footer: bool
    columns: tuple[str, ...]
    in_policy: KeyStanding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKeyUse:
    """One file and its master keys. ``is_complete`` is False if it may depend on further keys.

    ``reason`` says why: the file cannot be read, or its footer could not be opened, so that the
    keys of its columns are not known.
    """

    path: str
    keys: tuple[UsedKey, ...] = ()
    is_complete: bool = True
    reason: str | None = None
    error: str | None = None
    hint: str | None = None
    causes: tuple[str, ...] = ()

    @property
    def is_closed(self) -> bool:
        """Whether the file was read, and its footer could not be opened."""
        return not self.is_complete and self.error is None and self.reason in (None, _CLOSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownKey:
    """A name that was asked for, and that neither files nor the policy nor the keyring know.

    ``did_you_mean`` is the known name that is most like it, or None if none is like it.
    """

    master_key: str
    did_you_mean: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class KeyUseReport(ReportOfFiles[FileKeyUse]):
    """The master keys that a table depends on. ``only`` limits it to these keys and their files.

    ``skipped`` are the files that readers skip, such as copies and old versions of a table, if
    they depend on a key or cannot be checked. ``live_only`` says that the caller asked for one
    version of a table, so that no other file was checked. ``unknown`` are the keys of ``only``
    that neither the files nor the policy nor the keyring name: they may be misspelt.
    """

    files: tuple[FileKeyUse, ...]
    skipped: tuple[FileKeyUse, ...] = ()
    only: tuple[str, ...] = ()
    live_only: bool = False
    unknown: tuple[UnknownKey, ...] = ()

    ROWS: ClassVar = ("files", "keys")

    @property
    def files_by_key(self) -> dict[tuple[str, str | None], int]:
        """The number of files that depend on each master key and version, by name."""
        return _counted_by_key(self.files)

    @property
    def skipped_by_key(self) -> dict[tuple[str, str | None], int]:
        """The number of ``skipped`` files that depend on each master key and version, by name."""
        return _counted_by_key(self.skipped)

    @property
    def standings(self) -> dict[str, KeyStanding | None]:
        """What the policy says about each master key that is in use, by name."""
        files = self.files + self.skipped
        found = {key.master_key: key.in_policy for file in files for key in file.keys}
        return dict(sorted(found.items()))

    @property
    def retired(self) -> tuple[str, ...]:
        """The master keys that are in use although the policy has retired them."""
        return tuple(name for name, it in self.standings.items() if it is KeyStanding.RETIRED)

    @property
    def unused(self) -> tuple[str, ...]:
        """The keys of ``only`` that no file depends on. Empty if any file is incomplete.

        A name that is most likely misspelt is left out, because the key that was meant was not
        looked for.
        """
        if self.incomplete:
            return ()
        used = set(self.standings)
        used.update(it.master_key for it in self.unknown if it.did_you_mean is not None)
        return tuple(name for name in self.only if name not in used)

    @property
    def incomplete(self) -> tuple[FileKeyUse, ...]:
        """The files that may depend on keys that are not known, each with its ``reason``."""
        return tuple(file for file in self.files + self.skipped if not file.is_complete)

    def _document(self) -> dict[str, Any]:
        return {
            "files": [asdict(file) for file in self.files],
            "skipped": [asdict(file) for file in self.skipped],
            "keys": [
                {
                    "master_key": name,
                    "version": version,
                    "files": count,
                    "in_policy": self.standings[name],
                }
                for (name, version), count in self.files_by_key.items()
            ],
            "unused": list(self.unused),
            "incomplete": [{"path": it.path, "reason": it.reason} for it in self.incomplete],
            "unknown": [asdict(it) for it in self.unknown],
            "live_only": self.live_only,
        }

    def _summary(self) -> str:
        keys = {name for name, _ in self.files_by_key}
        return f"{counted(len(keys), 'master key')} in {counted(len(self.files), 'file')}"


def find_key_use(
    listing: TableListing,
    skipped: Iterable[SkippedFile] | None,
    resolver: KeyResolver,
    access: Access,
    only: Sequence[str],
) -> KeyUseReport:
    """Return the master keys that the files of a listing depend on, or only those in ``only``.

    ``skipped`` are the files that readers skip, or None if the listing is one version of a table.
    """
    policy = access.policy
    files = KeyPrefetch(resolver).each(listing.paths)
    workers = max(_WORKERS, files_at_once(listing.paths))
    found = in_order(lambda path: _file(listing, path, resolver), files, workers)
    others = in_order(lambda it: _skipped(listing, it, resolver), skipped or (), workers)
    used: list[FileKeyUse | None] = []
    unlisted: list[FileKeyUse | None] = []
    known = _known_names(access)
    for file, into in chain(zip(found, repeat(used)), zip(others, repeat(unlisted))):
        known.update(key.master_key for key in file.keys)
        into.append(_of_keys(_with_states(file, policy), only))
    return KeyUseReport(
        files=tuple(file for file in used if file is not None),
        skipped=tuple(it for it in unlisted if it is not None and (it.keys or not it.is_complete)),
        only=tuple(only),
        live_only=skipped is None,
        unknown=tuple(_unknown(only, known)),
    )


def _counted_by_key(files: Iterable[FileKeyUse]) -> dict[tuple[str, str | None], int]:
    counts = Counter((key.master_key, key.version) for file in files for key in file.keys)
    # By their texts: a version may be None, which Python does not compare with a text.
    return dict(sorted(counts.items(), key=str))


def _known_names(access: Access) -> set[str]:
    """Return the names of the keys of the policy and of the keyring."""
    source = access.key_source()
    named = set(() if access.policy is None else access.policy.named_keys())
    return named.union(source.master_keys if isinstance(source, Keyring) else ())


def _unknown(only: Sequence[str], known: set[str]) -> Iterator[UnknownKey]:
    """Yield the names in ``only`` that are not known: nothing depends on a misspelt one."""
    names = CloseNames(known)
    for name in only:
        if name not in known:
            close = names.close(name, 1, _ALIKE)
            yield UnknownKey(master_key=name, did_you_mean=close[0] if close else None)


def _with_states(file: FileKeyUse, policy: KeyPolicy | None) -> FileKeyUse:
    if policy is None:
        return file
    keys = (replace(it, in_policy=_standing(it.master_key, policy)) for it in file.keys)
    return replace(file, keys=tuple(keys))


def _standing(name: str, policy: KeyPolicy) -> KeyStanding:
    named = (
        (KeyStanding.USED, policy.master_keys()),
        (KeyStanding.OLDER, policy.older_keys),
        (KeyStanding.RETIRED, policy.retired_keys),
    )
    return next((it for it, names in named if name in names), KeyStanding.MISSING)


def _of_keys(file: FileKeyUse, only: Sequence[str]) -> FileKeyUse | None:
    """Return the file with these keys alone, or None if it depends on none of them."""
    if not only:
        return file
    keys = tuple(key for key in file.keys if key.master_key in only)
    return None if not keys and file.is_complete else replace(file, keys=keys)


def _skipped(listing: TableListing, file: SkippedFile, resolver: KeyResolver) -> FileKeyUse:
    if file.reason is None:
        return _file(listing, file.path, resolver)
    return FileKeyUse(path=file.path, is_complete=False, reason=file.reason)


def _file(listing: TableListing, path: str, resolver: KeyResolver) -> FileKeyUse:
    try:
        with located(path=path), listing.open(path) as file:
            keys = file_keys(resolver, file)
            tail = read_tail(file)
            footer = _readable_footer(tail, keys)
            found: dict[tuple[str, str | None], list[str]] = {}
            for place, stored in _stored(tail.key_metadata, footer):
                found.setdefault(_key(stored, keys), []).append(place)
    except SecureBloomError as error:
        return FileKeyUse(path=path, is_complete=False, reason=error.message, **failure_of(error))
    return FileKeyUse(
        path=path,
        is_complete=footer is not None,
        reason=_CLOSED if footer is None else None,
        keys=tuple(
            UsedKey(
                master_key=name,
                version=version,
                opens_footer="" in places,
                columns=tuple(dict.fromkeys(place for place in places if place)),
            )
            for (name, version), places in found.items()
        ),
    )


def _readable_footer(tail: Tail, keys: FileKeys) -> Footer | None:
    """Return the footer, even if its signature cannot be checked, or None if it is closed."""
    try:
        return unlock(tail, keys)
    # Without the key, the part in clear is reported: a user who asks what a lost key opens does not
    # have it.
    except KeyUnavailableError:
        # An encrypted footer hides its columns; a signed one is in clear.
        return None if tail.scan is None else read_unverified(tail, keys)


def _stored(footer_key: bytes | None, footer: Footer | None) -> Iterator[tuple[str, bytes]]:
    """Yield key metadata with the name of its column, which is empty for the footer."""
    if footer_key is not None:
        yield "", footer_key
    # Every row group: they may be under different keys, and each key that opens one counts.
    for chunks in () if footer is None else footer.column_chunks:
        for leaf, chunk in zip(footer.leaves if footer else (), chunks, strict=True):
            crypto = chunk.crypto_metadata
            own = None if crypto is None else crypto.ENCRYPTION_WITH_COLUMN_KEY
            stored = own.key_metadata if own is not None else footer_key
            if crypto is not None and stored is not None:
                yield leaf.name, stored


def _key(stored: bytes, keys: FileKeys) -> tuple[str, str | None]:
    material = keys.material(stored)
    if material is None:
        return keys.describe(stored) or "a key that the file does not name", None
    return material.master_key_id, _version(material)


def _version(material: KeyMaterial) -> str | None:
    # With double wrapping the KMS has wrapped the KEK alone, so only the KEK has its version.
    return version_in(material.wrapped_dek if material.kek is None else material.kek.wrapped)
