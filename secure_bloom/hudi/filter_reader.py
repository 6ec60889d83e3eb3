"""Read the filters and ranges of record keys in the footers of base files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from typing import Any

from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.trust import warn_unverified
from secure_bloom.errors import SecureBloomError, failure_of, located
from secure_bloom.hudi.record_keys.bloom_filter import HudiBloomFilter
from secure_bloom.hudi.record_keys.footer_entry import (
    RecordKeyDescription,
    RecordKeyEntry,
    describe_record_keys,
    read_entry,
)
from secure_bloom.lakes.formats import HUDI
from secure_bloom.lakes.managed_tables import find_unmanaged, refuse_managed
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import Footer, unlock_to_read
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.reports.base import ReportOfFiles, counted_files
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage import (
    InputFile,
    files_at_once,
    open_input,
)
from secure_bloom.storage.paths import Paths, as_path, as_paths
from secure_bloom.storage.storage_options import with_storage_options

_INDEX_HINT = "an index of Paimon's is shown by: secure-bloom paimon show"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKeyFilter:
    """A file's filter and its key range, each None if the footer does not have it.

    ``column`` is the column of both, or None if the footer does not name it.
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
    """One file: a description of its filter, and its smallest and largest key.

    ``error`` says why the file could not be read. If ``hudi`` is set, it says why only the filter
    could not be read. A signed file whose key is missing is not ``verified``: its content may be
    forged.
    """

    path: str
    hudi: RecordKeyDescription | None = None
    verified: bool = True
    min_key: str | None = field(default=None, repr=False)
    max_key: str | None = field(default=None, repr=False)
    error: str | None = None
    hint: str | None = None
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RecordKeyReport(ReportOfFiles[RecordKeyFile]):
    """The record key filters of all files."""

    files: tuple[RecordKeyFile, ...]

    def with_ranges(self) -> dict[str, Any]:
        """Return the report as a document with the smallest and the largest key of each file.

        Other documents have null in their place, because these keys are data of the table.
        """
        ends = [{"min_key": file.min_key, "max_key": file.max_key} for file in self.files]
        files = [{**file, **end} for file, end in zip(self.to_dict()["files"], ends, strict=True)]
        return {"files": files}

    def _document(self) -> dict[str, Any]:
        hidden = {"min_key": None, "max_key": None}
        return {"files": [{**asdict(file), **hidden} for file in self.files]}

    def _summary(self) -> str:
        return counted_files(
            "failed" if file.error else "without a filter" if file.hudi is None else "with a filter"
            for file in self.files
        )


@checked_arguments
@with_storage_options
def read_record_key_filter(
    path: str | PathLike[str],
    *,
    keys: GivenKeys = None,
    policy: GivenPolicy = None,
    allow_unverified: bool = False,
    allow_unprotected: bool = False,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> RecordKeyFilter | None:
    """Return the record key filter and key range of one base file, or None for a file with neither.

    A plaintext footer is read without keys, with a warning if it is signed.  Works inside Hudi
    tables.

    Args:
        path: The file.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        The filter and the range, or None.

    Raises:
        KeyUnavailableError: The footer is encrypted, or its signature must be checked, and the
            key is missing.
        IntegrityError: The footer does not authenticate.
        FormatError: The entries are damaged.
    """
    name = as_path(path)
    access = Access.of(
        keys, policy, allow_unverified=allow_unverified, allow_unprotected=allow_unprotected
    )
    # Reading one file changes nothing, so Hudi's own log need not be asked; another log may say
    # that the file is gone.
    refuse_managed(name, honoured=[HUDI])
    with located(path=name), open_input(name) as file:
        footer = _footer(file, access.resolver())
        warn_unverified(() if footer.is_verified else (name,))
        entry = read_entry(footer)
        if entry is None:
            return None
        low, high = _ends(entry)
        return RecordKeyFilter(column=entry.column, filter=entry.filter, min_key=low, max_key=high)


@checked_arguments
def show(
    paths: Paths,
    *,
    keys: GivenKeys = None,
    policy: GivenPolicy = None,
    allow_unverified: bool = False,
    allow_unprotected: bool = False,
) -> RecordKeyReport:
    """Return the filters and ranges of record keys in the footers of files, folders or globs.

    A file is reported with its error, and does not stop the others, if its footer or filter cannot
    be read, or if :func:`read_record_key_filter` would not trust it.
    """
    access = Access.of(
        keys, policy, allow_unverified=allow_unverified, allow_unprotected=allow_unprotected
    )
    resolver = access.resolver()
    found = find_unmanaged(as_paths(paths), honoured=[HUDI])
    files = tuple(in_order(lambda path: _show(path, resolver), found, files_at_once(found)))
    warn_unverified(file.path for file in files if not file.verified)
    return RecordKeyReport(files=files)


def _show(path: str, resolver: KeyResolver) -> RecordKeyFile:
    try:
        with located(path=path), open_input(path) as file:
            footer = _footer(file, resolver)
            described = describe_record_keys(footer)
            verified = footer.is_verified
            if described is not None and described.note:
                error = f"{path}: {described.note}"
                return RecordKeyFile(path=path, hudi=described, verified=verified, error=error)
            low, high = _ends(read_entry(footer))
            return RecordKeyFile(
                path=path, hudi=described, verified=verified, min_key=low, max_key=high
            )
    except SecureBloomError as error:
        failed = RecordKeyFile(path=path, **failure_of(error))
        return replace(failed, hint=_INDEX_HINT) if path.endswith(".index") else failed


def _footer(file: InputFile, resolver: KeyResolver) -> Footer:
    return unlock_to_read(read_tail(file), file_keys(resolver, file))


def _ends(entry: RecordKeyEntry | None) -> tuple[str | None, str | None]:
    ends = None if entry is None else entry.range
    return (None, None) if ends is None else (ends.min_key, ends.max_key)
