"""Describe a file: footer, encryption, columns, keys and filters, as far as keys are available."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

from secure_bloom.bloom.stored import StoredBloomFilter, read_bloom_filter
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.file_keys import FileKeys, KeyResolver
from secure_bloom.errors import (
    KeyUnavailableError,
    KmsUnavailableError,
    SecureBloomError,
    failure_of,
    located,
)
from secure_bloom.hudi.record_keys.footer_entry import RecordKeyDescription, describe_record_keys
from secure_bloom.lakes import TableListing
from secure_bloom.paimon.index_description import PaimonInspection, describe_of
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.locate import Tail, read_tail
from secure_bloom.parquet.footer.opened import Footer, unlock
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.key_prefetch import KeyPrefetch
from secure_bloom.parquet.logical_types import describe
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import ColumnChunk
from secure_bloom.reports.base import Report, counted_files
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage import InputFile, files_at_once


@dataclass(frozen=True, slots=True, kw_only=True)
class BloomInspection:
    """A filter: its place and the bytes of its bitset, with exact fpp and fill if it is readable.

    ``missed`` counts the values of the column that the filter lacks, if that was checked.  If there
    are any, queries lose rows.
    """

    offset: int
    length: int | None
    bytes: int | None = None
    fpp: float | None = None
    fill: float | None = None
    missed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnInspection:
    """One column chunk. ``note`` says what could not be read, and why."""

    column: str
    type: str
    encrypted: str
    key: str | None
    bloom: BloomInspection | None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroupInspection:
    """One row group."""

    row_group: int
    rows: int
    columns: tuple[ColumnInspection, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInspection:
    """One file. ``row_groups`` is empty if the footer cannot be read without a key.

    ``hudi`` is the record key filter of a base file of Hudi. ``paimon`` is the index beside a data
    file of Paimon, which needs no key.
    """

    path: str
    footer: FooterMode | None = None
    algorithm: str | None = None
    key: str | None = None
    rows: int | None = None
    row_groups: tuple[RowGroupInspection, ...] = ()
    hudi: RecordKeyDescription | None = None
    paimon: PaimonInspection | None = None
    note: str | None = None
    error: str | None = None
    hint: str | None = None
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class InspectReport(Report):
    """All files that were inspected."""

    files: tuple[FileInspection, ...]

    ROWS: ClassVar = ("files", "row_groups", "columns")

    @property
    def wrong(self) -> tuple[tuple[FileInspection, RowGroupInspection, ColumnInspection], ...]:
        """The filters that were checked and lack values of their column."""
        return tuple(
            (file, group, column)
            for file in self.files
            for group in file.row_groups
            for column in group.columns
            if column.bloom is not None and column.bloom.missed
        )

    def _document(self) -> dict[str, Any]:
        return {"files": [asdict(file) for file in self.files]}

    def _summary(self) -> str:
        return counted_files("failed" if f.footer is None else f.footer for f in self.files)


def inspect_files(
    listing: TableListing, resolver: KeyResolver, *, check: bool = False
) -> InspectReport:
    """Return the report of all files of a listing.

    With ``check``, the values of each column that has a filter are looked up in the filter.
    """
    paths = KeyPrefetch(resolver).each(listing.paths)
    workers = files_at_once(listing.paths)
    found = in_order(lambda path: _inspect_file(listing, path, resolver, check), paths, workers)
    return InspectReport(files=tuple(found))


def _inspect_file(
    listing: TableListing, path: str, resolver: KeyResolver, check: bool
) -> FileInspection:
    try:
        with located(path=path), listing.open(path) as file:
            inspected = _inspect_open(file, file_keys(resolver, file), check)
            return replace(inspected, paimon=describe_of(file, listing.paimon_file(path)))
    except SecureBloomError as error:
        return FileInspection(path=path, **failure_of(error))


def _inspect_open(file: InputFile, keys: FileKeys, check: bool) -> FileInspection:
    tail = read_tail(file)
    try:
        footer = unlock(tail, keys, allow_unverified=True)
    except KeyUnavailableError as error:
        return _describe(file.path, tail, keys, note=error.message)
    return _Inspector(file=file, footer=footer, check=check).describe()


def _describe(
    path: str,
    tail: Tail,
    keys: FileKeys,
    *,
    rows: int | None = None,
    groups: tuple[RowGroupInspection, ...] = (),
    hudi: RecordKeyDescription | None = None,
    note: str | None,
) -> FileInspection:
    return FileInspection(
        path=path,
        footer=tail.mode,
        algorithm=None if tail.algorithm is None else tail.algorithm.member(),
        key=None if tail.algorithm is None else keys.describe(tail.key_metadata),
        rows=rows,
        row_groups=groups,
        hudi=hudi,
        note=note,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inspector:
    """Describes one file whose footer can be read."""

    file: InputFile
    footer: Footer
    check: bool

    def describe(self) -> FileInspection:
        tail = self.footer.tail
        unchecked = tail.mode is FooterMode.SIGNED and self.footer.key is None
        return _describe(
            self.file.path,
            tail,
            self.footer.keys,
            rows=self.footer.metadata.num_rows,
            groups=tuple(self._row_group(i) for i in range(len(self.footer.row_groups))),
            hudi=describe_record_keys(self.footer),
            note="the signature was not checked: no footer key" if unchecked else None,
        )

    def _row_group(self, row_group: int) -> RowGroupInspection:
        return RowGroupInspection(
            row_group=row_group,
            rows=self.footer.row_groups[row_group].num_rows,
            columns=tuple(
                self._column(row_group, column) for column in range(len(self.footer.leaves))
            ),
        )

    def _column(self, row_group: int, column: int) -> ColumnInspection:
        column_chunk = self.footer.column_chunks[row_group][column]
        encrypted, key = _encryption(column_chunk, self.footer)
        leaf = self.footer.leaves[column]
        note = None
        try:
            bloom = self._bloom(self.footer.chunk(row_group, column))
        except KmsUnavailableError:
            raise
        except SecureBloomError as error:
            bloom, note = _visible_bloom(column_chunk), error.message
        return ColumnInspection(
            column=leaf.name,
            type=_type_of(leaf),
            encrypted=encrypted,
            key=key,
            bloom=bloom,
            note=note,
        )

    def _bloom(self, chunk: Chunk) -> BloomInspection | None:
        stored = read_bloom_filter(self.file, chunk)
        if stored is None:
            return None
        return BloomInspection(
            offset=stored.offset,
            length=chunk.meta_data.bloom_filter_length,
            bytes=stored.filter.byte_count,
            fpp=stored.filter.fpp(),
            fill=stored.filter.fill(),
            missed=self._missed(chunk, stored) if self.check else None,
        )

    def _missed(self, chunk: Chunk, stored: StoredBloomFilter) -> int:
        # Imported here: describing a file needs no pyarrow.
        from secure_bloom.bloom.build import check_filter
        from secure_bloom.parquet.column_values import read_entries

        return check_filter(read_entries(self.file, chunk), stored.filter)


@lru_cache(maxsize=4096)
def _type_of(leaf: Leaf) -> str:
    # Files of one table share their leaves.
    return describe(leaf.element)


def _encryption(column_chunk: ColumnChunk, footer: Footer) -> tuple[str, str | None]:
    crypto, keys = column_chunk.crypto_metadata, footer.keys
    if crypto is None:
        return "no", None
    own = crypto.ENCRYPTION_WITH_COLUMN_KEY
    if own is None:
        return "footer_key", keys.describe(footer.tail.key_metadata)
    return "column_key", keys.describe(own.key_metadata)


def _visible_bloom(column_chunk: ColumnChunk) -> BloomInspection | None:
    """Return the filter's offset and length from the part of the metadata that is in clear."""
    meta_data = column_chunk.meta_data
    if meta_data is None or meta_data.bloom_filter_offset is None:
        return None
    return BloomInspection(
        offset=meta_data.bloom_filter_offset, length=meta_data.bloom_filter_length
    )
