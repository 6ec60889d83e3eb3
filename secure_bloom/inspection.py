"""What stands in a file: footer, encryption, columns, keys and filters; without keys what shows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from secure_bloom.bloom import read_bloom_filter
from secure_bloom.errors import KeyUnavailableError, SecureBloomError, located
from secure_bloom.footer import Footer, Tail, open_chunk, read_tail, unlock
from secure_bloom.keys import ExplicitKeys, FileKeys, KeyResolver, Keyring, KmsClient
from secure_bloom.logical import describe
from secure_bloom.metadata import ColumnChunk
from secure_bloom.options import FooterMode
from secure_bloom.sources import Paths, as_paths, file_keys
from secure_bloom.storage import InputFile, find_files, open_input


@dataclass(frozen=True, slots=True, kw_only=True)
class BloomInspection:
    """A filter: its place, its bitset's bytes, exact fpp and share of set bits where readable."""

    offset: int
    length: int | None
    bytes: int | None = None
    fpp: float | None = None
    fill: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnInspection:
    """One column chunk; ``note`` says what could not be looked at, and why."""

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
    """One file; ``row_groups`` is empty where the footer cannot be read without a key."""

    path: str
    footer: FooterMode | None = None
    algorithm: str | None = None
    key: str | None = None
    rows: int | None = None
    row_groups: tuple[RowGroupInspection, ...] = ()
    note: str | None = None
    error: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectReport:
    """All files that were inspected."""

    files: tuple[FileInspection, ...]

    def to_json(self) -> dict[str, Any]:
        """The document that ``secure-bloom inspect --json`` prints."""
        return {"files": [asdict(file) for file in self.files]}


def inspect(
    paths: Paths, *, keys: Keyring | KmsClient | ExplicitKeys | None = None
) -> InspectReport:
    """Describe files, as far as the keys at hand go; what needs no key works without any.

    A file that cannot be read is reported with its error and does not stop the others.
    """
    resolver = KeyResolver(keys)
    return InspectReport(
        files=tuple(_inspect_file(path, resolver) for path in find_files(as_paths(paths)))
    )


def _inspect_file(path: str, resolver: KeyResolver) -> FileInspection:
    try:
        with located(path=path), open_input(path) as file:
            keys = file_keys(resolver, file)
            tail = read_tail(file)
            try:
                footer = unlock(tail, keys, allow_unverified=True)
            except KeyUnavailableError as error:
                return _describe(path, tail, None, keys, (), error.message)
            groups = tuple(
                _row_group(file, footer, index, keys) for index in range(len(footer.row_groups))
            )
            unchecked = tail.mode is FooterMode.SIGNED and footer.key is None
            note = "the signature was not checked: no footer key" if unchecked else None
            return _describe(path, tail, footer, keys, groups, note)
    except SecureBloomError as error:
        return FileInspection(path=path, error=str(error), hint=error.hint)


def _describe(
    path: str,
    tail: Tail,
    footer: Footer | None,
    keys: FileKeys,
    groups: tuple[RowGroupInspection, ...],
    note: str | None,
) -> FileInspection:
    return FileInspection(
        path=path,
        footer=tail.mode,
        algorithm=None if tail.algorithm is None else tail.algorithm.member(),
        key=None if tail.algorithm is None else keys.describe(tail.key_metadata),
        rows=None if footer is None else footer.metadata.num_rows,
        row_groups=groups,
        note=note,
    )


def _row_group(
    file: InputFile, footer: Footer, row_group: int, keys: FileKeys
) -> RowGroupInspection:
    return RowGroupInspection(
        row_group=row_group,
        rows=footer.row_groups[row_group].num_rows,
        columns=tuple(
            _column(file, footer, row_group, column, keys) for column in range(len(footer.leaves))
        ),
    )


def _column(
    file: InputFile, footer: Footer, row_group: int, column: int, keys: FileKeys
) -> ColumnInspection:
    column_chunk = footer.columns[row_group][column]
    encrypted, key = _encryption(column_chunk, footer, keys)
    note = None
    try:
        chunk = open_chunk(footer, row_group, column, keys)
        stored = read_bloom_filter(file, chunk)
        bloom = None
        if stored is not None:
            bloom = BloomInspection(
                offset=stored.offset,
                length=chunk.meta_data.bloom_filter_length,
                bytes=stored.filter.byte_count,
                fpp=stored.filter.fpp(),
                fill=stored.filter.fill(),
            )
    except SecureBloomError as error:
        bloom, note = _visible_bloom(column_chunk), error.message
    return ColumnInspection(
        column=footer.leaves[column].name,
        type=describe(footer.leaves[column].element),
        encrypted=encrypted,
        key=key,
        bloom=bloom,
        note=note,
    )


def _encryption(
    column_chunk: ColumnChunk, footer: Footer, keys: FileKeys
) -> tuple[str, str | None]:
    crypto = column_chunk.crypto_metadata
    if crypto is None:
        return "no", None
    own = crypto.ENCRYPTION_WITH_COLUMN_KEY
    if own is None:
        return "footer_key", keys.describe(footer.tail.key_metadata)
    return "column_key", keys.describe(own.key_metadata)


def _visible_bloom(column_chunk: ColumnChunk) -> BloomInspection | None:
    """The filter's place as the unencrypted copy of the metadata has it."""
    meta_data = column_chunk.meta_data
    if meta_data is None or meta_data.bloom_filter_offset is None:
        return None
    return BloomInspection(
        offset=meta_data.bloom_filter_offset, length=meta_data.bloom_filter_length
    )
