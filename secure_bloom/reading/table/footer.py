"""The footer of a file for reading: decrypted or verified, and decoded as far as needed.

    plaintext, signed:  FileMetaData | signature | length | PAR1
    encrypted:          FileCryptoMetaData | FileMetaData module | length | PARE

Which key opens it, and when, is decided in :mod:`secure_bloom.parquet.footer.opened`.  This module
decodes less: the offsets of all column chunks, and a chunk only when it is used, because a read
uses few of the columns of a table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.file_keys import FileKeys, KeyResolver
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.errors import FormatError, KeyUnavailableError, located
from secure_bloom.parquet.contradictions import in_counts
from secure_bloom.parquet.file_ciphers import FileCiphers, FooterKey
from secure_bloom.parquet.footer.locate import (
    MAGIC_ENCRYPTED,
    Tail,
    clear_tail,
    encrypted_tail,
    locate_footer,
)
from secure_bloom.parquet.footer.opened import (
    Chunk,
    ChunkRows,
    decrypt_chunk,
    find_key_to_read,
    open_footer,
)
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.structures.metadata import (
    ColumnCryptoMetaData,
    FileCryptoMetaData,
    FileMetaData,
)
from secure_bloom.parquet.structures.records import measured_record
from secure_bloom.reading.table.footer_scan import FooterScan, FooterScanner
from secure_bloom.reading.table.row_groups import FooterRowGroups
from secure_bloom.reading.table.table_schema import FileColumns
from secure_bloom.storage import CountedFile
from secure_bloom.storage.inputs import Extent

_DIGEST_SIZE = 16
#: The most chunks of a file that are kept decoded; each takes some kilobytes.
_KEPT_CHUNKS = 64
#: About how many bytes an object of a decoded footer takes.
_OBJECT_SIZE = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileFooter:
    """The footer of one file, in clear and scanned, and the ciphers of the file.

    ``stored`` is the footer as the file has it, ``plain`` the FileMetaData in clear.  ``identity``
    is the file's when the footer was read; ``extents`` are the bytes that were read for it.
    """

    path: str
    identity: tuple[object, ...]
    size: int
    stored: bytes = field(repr=False)
    extents: tuple[Extent, ...]
    mode: FooterMode
    plain: bytes = field(repr=False)
    columns: FileColumns
    metadata: FileMetaData = field(repr=False)
    row_groups: FooterRowGroups = field(repr=False)
    ciphers: FileCiphers = field(repr=False)
    _chunks: dict[tuple[int, int], Chunk] = field(default_factory=dict, repr=False)

    @property
    def digest(self) -> bytes:
        """A digest of the footer as stored, the same on every machine."""
        return hashlib.blake2b(self.stored, digest_size=_DIGEST_SIZE).digest()

    @property
    def written(self) -> tuple[object, ...]:
        """The part of the file's identity that is the same on every machine."""
        return self.identity[1:]

    @property
    def memory(self) -> int:
        """About how many bytes it takes: a footer can be much larger decoded than encoded."""
        objects = len(self.row_groups) * (1 + len(self.columns.leaves))
        objects += len(self.metadata.column_orders or ())
        objects += len(self.metadata.key_value_metadata or ())
        encoded = len(self.plain) + (0 if self.stored is self.plain else len(self.stored))
        return encoded + objects * _OBJECT_SIZE

    @property
    def is_verified(self) -> bool:
        """Whether the footer is as its writer left it; for a plain one this is unknown."""
        return self.mode is not FooterMode.SIGNED or self.ciphers.footer is not None

    def refuse_clear(self, names: Iterable[str]) -> None:
        """Raise PolicyError if a leaf of these columns is in clear and the policy gives it a key.

        This comes before pruning: statistics and filters in clear could rule rows out unseen.
        """
        trust, leaves = self.ciphers.keys.trust, self.columns.leaves
        # Few reads have a policy, and to look up each column's leaves takes a while for many files.
        if trust.enforced_policy is None:
            return
        for column in (ordinal for name in names for ordinal in self.columns.below(name)):
            # Most columns have no key, and each chunk that is looked at must be decoded.
            if trust.key_for(leaves[column].path) is None:
                continue
            for row_group, group in enumerate(self.row_groups):
                is_encrypted = group.columns[column].crypto_metadata is not None
                name = leaves[column].name
                with located(path=self.path, row_group=row_group, column=name):
                    trust.check_column(leaves[column].path, is_encrypted=is_encrypted)

    def chunk(self, row_group: int, column: int) -> Chunk:
        """Return the column chunk at two ordinals, its metadata decrypted with its own key.

        Raises KeyUnavailableError or IntegrityError with path, row group and column, and
        FormatError if it has not the rows of its row group.
        """
        known = self._chunks.get((row_group, column))
        if known is None:
            with located(
                path=self.path, row_group=row_group, column=self.columns.leaves[column].name
            ):
                known = self._decrypted(row_group, column)
            if len(self._chunks) < _KEPT_CHUNKS:
                self._chunks[row_group, column] = known
        return known

    def _decrypted(self, row_group: int, column: int) -> Chunk:
        groups = self.row_groups
        found = decrypt_chunk(
            groups[row_group].columns[column],
            self.columns.leaves[column],
            column,
            ChunkRows(row_group, groups.ordinals[row_group], groups.rows[row_group]),
            self.ciphers,
        )
        # pyarrow takes the rows that a chunk has too many for none, or for rows of the next row
        # group; bounds, indexes and pages would each leave out others.
        for contradiction in in_counts(found.leaf, found.meta_data, found.num_rows):
            raise FormatError(contradiction)
        return found

    def check_empty(self, names: Iterable[str]) -> None:
        """Raise FormatError if a row group that is said to be empty has values of these columns.

        Nothing else looks at its chunks.
        """
        rows = self.row_groups.rows
        if 0 not in rows:
            return
        empty = [row_group for row_group, count in enumerate(rows) if count == 0]
        for column in (ordinal for name in names for ordinal in self.columns.below(name)):
            with suppress(KeyUnavailableError):
                for row_group in empty:
                    self.chunk(row_group, column)

    def cipher(
        self, row_group: int, column: int, crypto: ColumnCryptoMetaData
    ) -> ColumnCipher | None:
        """Return the cipher of a column chunk, given its crypto_metadata.

        Raises as :meth:`chunk`.
        """
        name = self.columns.leaves[column].name
        ordinal = self.row_groups.ordinals[row_group]
        with located(path=self.path, row_group=row_group, column=name):
            return self.ciphers.column_cipher(crypto, name, ordinal, column)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFooter:
    """A footer as the file has it, and what identifies the file."""

    path: str
    identity: tuple[object, ...]
    size: int
    extents: tuple[Extent, ...]
    magic: bytes
    body: bytes = field(repr=False)
    keys: FileKeys


def fetch_footer(file: CountedFile, resolver: KeyResolver) -> StoredFooter:
    """Read the bytes of the footer; FormatError if there is none."""
    magic, _, body = locate_footer(file)
    return StoredFooter(
        path=file.path,
        identity=file.identity,
        size=file.size,
        extents=tuple(file.extents),
        magic=magic,
        body=body,
        keys=file_keys(resolver, file),
    )


def decode_footer(stored: StoredFooter, scanner: FooterScanner) -> FileFooter:
    """Return the footer decrypted or verified, and decoded; errors as of :func:`read_footer`."""
    opening = _encrypted if stored.magic == MAGIC_ENCRYPTED else _clear
    tail, key, plain, scan = opening(stored.body, stored.keys, scanner)
    return FileFooter(
        path=stored.path,
        identity=stored.identity,
        size=stored.size,
        stored=stored.body,
        extents=stored.extents,
        mode=tail.mode,
        plain=plain,
        columns=scan.columns,
        metadata=scan.metadata,
        row_groups=scan.row_groups,
        ciphers=FileCiphers(
            algorithm=tail.algorithm, footer=key, key_metadata=tail.key_metadata, keys=stored.keys
        ),
    )


def read_footer(file: CountedFile, resolver: KeyResolver, scanner: FooterScanner) -> FileFooter:
    """Return the footer of ``file``; errors as of :func:`.opened.unlock`.

    A signed footer whose key is missing is read all the same, as anyone can, where the run
    accepts that.
    """
    return decode_footer(fetch_footer(file, resolver), scanner)


#: A footer's tail, its key where that is at hand, its FileMetaData in clear, and what that says.
_Decoded = tuple[Tail, FooterKey | None, bytes, FooterScan]


def _encrypted(body: bytes, keys: FileKeys, scanner: FooterScanner) -> _Decoded:
    crypto, length = measured_record(FileCryptoMetaData, body)
    tail = encrypted_tail(0, body, crypto, length)
    key = find_key_to_read(tail, keys)
    plain = open_footer(tail, key)
    return tail, key, plain, scanner.of(plain)


def _clear(body: bytes, keys: FileKeys, scanner: FooterScanner) -> _Decoded:
    scan = scanner.of(body)
    tail = clear_tail(
        0,
        body,
        scan.length,
        algorithm=scan.metadata.encryption_algorithm,
        key_metadata=scan.metadata.footer_signing_key_metadata,
    )
    key = find_key_to_read(tail, keys)
    return tail, key, open_footer(tail, key), scan
