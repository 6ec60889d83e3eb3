"""The footer of one file of a read: its columns by name, and its column chunks on demand.

A read uses few of the columns of a table, so chunks are decoded, and decrypted, when they are used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.file_keys import FileKeys, KeyResolver
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.errors import FormatError, KeyUnavailableError, located
from secure_bloom.parquet.chunk_contradictions import in_counts
from secure_bloom.parquet.file_ciphers import FileCiphers
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import (
    Chunk,
    ChunkRows,
    Footer,
    decrypt_chunk,
    find_key_to_read,
    opened_scan,
)
from secure_bloom.parquet.footer.scan import NUMBERS
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.structures.metadata import ColumnCryptoMetaData
from secure_bloom.reading.table.file_columns import FileColumns, SchemaCache
from secure_bloom.storage import CountedFile
from secure_bloom.storage.inputs import Extent

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_DIGEST_SIZE = 16
#: The most chunks of a file that are kept decoded; each takes some kilobytes.
_KEPT_CHUNKS = 64
#: About how many bytes an object of a decoded footer takes.
_OBJECT_SIZE = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileFooter(Footer):
    """The footer of one file of a read, with the identity of the file and the keys that open it.

    ``identity`` is the file's identity when the footer was read. ``extents`` are the bytes that
    were read for it.  ``columns`` finds its columns by their names.
    """

    path: str
    identity: tuple[object, ...]
    size: int
    extents: tuple[Extent, ...]
    columns: FileColumns
    keys: FileKeys = field(repr=False)
    _chunks: dict[tuple[int, int], Chunk] = field(default_factory=dict, repr=False)

    @property
    def ciphers(self) -> FileCiphers:
        """The ciphers of the file."""
        return self.ciphers_under(self.keys)

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema of the file.

        Raises FormatError with the path if pyarrow cannot make it.
        """
        with located(path=self.path):
            return self.columns.arrow

    @property
    def chunk_offsets(self) -> np.ndarray:
        """The offset of each column chunk in the decrypted footer, by row group and column."""
        # Imported here: filters are probed without numpy.
        import numpy as np

        groups = len(self.row_groups)
        every = np.frombuffer(self.scan.numbers, np.int64)
        return every[groups * NUMBERS :].reshape(groups, len(self.leaves))

    @property
    def digest(self) -> bytes:
        """A digest of the footer as stored, the same on every machine."""
        digest = hashlib.blake2b(self.tail.clear, digest_size=_DIGEST_SIZE)
        digest.update(self.tail.sealed)
        return digest.digest()

    @property
    def written(self) -> tuple[object, ...]:
        """The part of the file's identity that is the same on every machine."""
        return self.identity[1:]

    @property
    def memory(self) -> int:
        """An estimate of its bytes in memory: a footer can be much larger decoded than encoded."""
        objects = len(self.row_groups) * (1 + len(self.leaves))
        objects += len(self.metadata.column_orders or ())
        objects += len(self.metadata.key_value_metadata or ())
        encoded = len(self.tail.clear) + len(self.tail.sealed)
        # A plain footer is the same bytes as stored and in clear.
        encoded += 0 if self.mode is FooterMode.PLAINTEXT else len(self.plain)
        return encoded + objects * _OBJECT_SIZE

    def refuse_clear(self, names: Iterable[str]) -> None:
        """Raise PolicyError if a leaf of these columns is in clear and the policy gives it a key.

        This comes before pruning: statistics and filters in clear could rule rows out unseen.
        """
        trust, leaves = self.keys.trust, self.leaves
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

    def check(self, names: Iterable[str]) -> None:
        """Raise for faults of columns that must be found even if pruning skips every row group.

        Raises PolicyError for a column in clear that the policy protects, and FormatError for an
        empty row group that has values.
        """
        self.refuse_clear(names)
        self.check_empty(names)

    def chunk(self, row_group: int, column: int) -> Chunk:
        """Return the column chunk at two ordinals. Its metadata is decrypted with its own key.

        Raises KeyUnavailableError or IntegrityError with path, row group and column, and
        FormatError if it does not have the rows of its row group.
        """
        known = self._chunks.get((row_group, column))
        if known is None:
            with located(path=self.path, row_group=row_group, column=self.leaves[column].name):
                known = self._decrypted(row_group, column)
            if len(self._chunks) < _KEPT_CHUNKS:
                self._chunks[row_group, column] = known
        return known

    def _decrypted(self, row_group: int, column: int) -> Chunk:
        scan = self.scan
        found = decrypt_chunk(
            scan.row_groups[row_group].columns[column],
            self.leaves[column],
            column,
            ChunkRows(row_group, scan.ordinals[row_group], scan.rows[row_group]),
            self.ciphers,
        )
        # pyarrow takes the rows that a chunk has too many for none, or for rows of the next row
        # group; bounds, indexes and pages would each leave out others.
        for contradiction in in_counts(found.leaf, found.meta_data, found.num_rows):
            raise FormatError(contradiction)
        return found

    def check_empty(self, names: Iterable[str]) -> None:
        """Raise FormatError if a row group that claims to be empty has values of these columns.

        Reads skip empty row groups, so nothing else checks their chunks.
        """
        rows = self.scan.rows
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

        Raises the errors of :meth:`chunk`.
        """
        name = self.leaves[column].name
        ordinal = self.scan.ordinals[row_group]
        with located(path=self.path, row_group=row_group, column=name):
            return self.ciphers.column_cipher(crypto, name, ordinal, column)


def read_footer(file: CountedFile, resolver: KeyResolver, schemas: SchemaCache) -> FileFooter:
    """Return the footer of ``file``. Raises the errors of :func:`.opened.unlock`.

    A signed footer whose key is missing is read unchecked if the run accepts that.
    """
    tail, keys = read_tail(file), file_keys(resolver, file)
    key = find_key_to_read(tail, keys)
    scan = opened_scan(tail, key)
    columns = schemas.columns(scan, tail.column_names)
    scan.check_chunks()
    _ = scan.numbers  # a row group with negative rows is an error now, and not in mid-plan
    return FileFooter(
        tail=tail,
        scan=scan,
        footer_key=key,
        leaves=columns.leaves,
        path=file.path,
        identity=file.identity,
        size=file.size,
        extents=tuple(file.extents),
        columns=columns,
        keys=keys,
    )
