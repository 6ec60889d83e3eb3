"""What the footers of base files say of their record keys."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any

from secure_bloom.adding.request import Keys
from secure_bloom.encryption.keys import KeyResolver
from secure_bloom.errors import SecureBloomError, located
from secure_bloom.hudi.record_keys.bloom_filter import HudiBloomFilter
from secure_bloom.hudi.record_keys.description import RecordKeyDescription, describe_record_keys
from secure_bloom.hudi.record_keys.footer_entry import KeyRange, RecordKeyEntry, read_entry
from secure_bloom.parquet.footer import read_tail, unlock
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.structures.metadata import FileMetaData
from secure_bloom.storage import InputFile, find_files, open_input
from secure_bloom.storage.paths import Paths, as_paths

_INDEX_HINT = "an index of Paimon's is shown by: secure-bloom paimon show"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKeyFilter:
    """A file's filter and its key range; None for what the footer does not have.

    ``column`` is the one that both are of, None where nothing says which.
    """

    column: str | None
    filter: HudiBloomFilter | None
    min_key: str | None = field(repr=False)
    max_key: str | None = field(repr=False)

    @property
    def type_code(self) -> str | None:
        """``SIMPLE`` or ``DYNAMIC_V0``."""
        return None if self.filter is None else self.filter.TYPE_CODE


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKeyFile:
    """One file: what its footer says in numbers, and the ends of its key range.

    ``error`` says why nothing is known; with ``hudi`` that the filter there cannot be read.
    """

    path: str
    hudi: RecordKeyDescription | None = None
    min_key: str | None = field(default=None, repr=False)
    max_key: str | None = field(default=None, repr=False)
    error: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKeyReport:
    """All files that were looked at."""

    files: tuple[RecordKeyFile, ...]

    @property
    def failed(self) -> tuple[RecordKeyFile, ...]:
        """The files whose footer or filter could not be read."""
        return tuple(file for file in self.files if file.error is not None)

    def to_json(self, *, show_range: bool = False) -> dict[str, Any]:
        """The document that ``secure-bloom hudi show --json`` prints.

        The ends of key ranges are data: they are null unless asked for.
        """
        hidden = {} if show_range else {"min_key": None, "max_key": None}
        return {"files": [{**asdict(file), **hidden} for file in self.files]}


def read_record_key_filter(
    path: str | PathLike[str], *, keys: Keys | None = None
) -> RecordKeyFilter | None:
    """The record key filter and key range of one base file; None for a file with neither.

    A plaintext footer is read without keys; where its key is at hand its signature is checked.
    Works inside Hudi tables.  Raises KeyUnavailableError for an encrypted footer whose key is not
    there, FormatError, UnsupportedFeatureError or IntegrityError for what cannot be trusted.
    """
    name = os.fspath(path)
    with located(path=name), open_input(name) as file:
        entry = read_entry(_metadata(file, KeyResolver(keys)))
        if entry is None:
            return None
        return RecordKeyFilter(column=entry.column, filter=entry.filter, **_ends(entry))


def show(paths: Paths, *, keys: Keys | None = None) -> RecordKeyReport:
    """What the footers of files, folders or globs say of record keys.

    A file whose footer or filter cannot be read is reported with its error and does not stop the
    others.
    """
    resolver = KeyResolver(keys)
    return RecordKeyReport(
        files=tuple(_show(path, resolver) for path in find_files(as_paths(paths)))
    )


def _show(path: str, resolver: KeyResolver) -> RecordKeyFile:
    try:
        with located(path=path), open_input(path) as file:
            metadata = _metadata(file, resolver)
            described = describe_record_keys(metadata)
            if described is not None and described.note:
                return RecordKeyFile(path=path, hudi=described, error=f"{path}: {described.note}")
            return RecordKeyFile(path=path, hudi=described, **_ends(read_entry(metadata)))
    except SecureBloomError as error:
        hint = _INDEX_HINT if path.endswith(".index") else error.hint
        return RecordKeyFile(path=path, error=str(error), hint=hint)


def _metadata(file: InputFile, resolver: KeyResolver) -> FileMetaData:
    keys = file_keys(resolver, file)
    return unlock(read_tail(file), keys, allow_unverified=True).metadata


def _ends(entry: RecordKeyEntry | None) -> dict[str, str | None]:
    ends: KeyRange | None = None if entry is None else entry.range
    if ends is None:
        return {"min_key": None, "max_key": None}
    return {"min_key": ends.min_key, "max_key": ends.max_key}
