"""Open a file's footer: decrypt it or check its signature, and open column chunks by their keys.

Reading has two steps, because the first needs no key: :func:`.locate.read_tail` finds the footer,
:func:`unlock` decrypts it or checks its signature.  :mod:`.seal` writes changed bytes back.
Encryption.md 5.4 and 5.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from secure_bloom.calling.options import ALLOW_UNVERIFIED, FooterMode
from secure_bloom.encryption import cipher
from secure_bloom.encryption.file_keys import DataKey, FileKeys, KeyResolver
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.errors import FormatError, KeyUnavailableError, PolicyError, located
from secure_bloom.parquet.file_ciphers import FileCiphers, FooterKey, file_aad_of
from secure_bloom.parquet.footer.chunks import Chunk, ChunkRows, decrypt_chunk
from secure_bloom.parquet.footer.columns import FileColumns, SchemaCache
from secure_bloom.parquet.footer.locate import Tail, read_tail
from secure_bloom.parquet.footer.scan import NUMBERS, FooterScan, scan_footer
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import (
    ColumnChunk,
    ColumnCryptoMetaData,
    FileMetaData,
    RowGroup,
)
from secure_bloom.storage import InputFile

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from secure_bloom.storage.column_mapping import ColumnMapping

_DIGEST_SIZE: Final = 16
#: The most chunks of a file that are kept decoded; each takes some kilobytes.
_KEPT_CHUNKS: Final = 64
#: About how many bytes an object of a decoded footer takes.
_OBJECT_SIZE: Final = 64


# Without slots: the ciphers and the columns are made once, when they are first used.
@dataclass(frozen=True, kw_only=True, eq=False)
class Footer:
    """The footer of one file in clear, and the keys that open its column chunks.

    ``tail`` has the footer as stored, and ``scan`` has its content in clear.  ``footer_key`` is
    None if the footer has no key, or if a signed footer was read without its key: then the
    signature is unchecked.  ``leaves`` have the table's names, if the table has names of its own.
    """

    tail: Tail
    scan: FooterScan = field(repr=False)
    footer_key: FooterKey | None = field(repr=False)
    keys: FileKeys = field(repr=False)
    leaves: tuple[Leaf, ...]
    shared_columns: FileColumns | None = field(default=None, repr=False)
    _chunks: dict[tuple[int, int], Chunk] = field(default_factory=dict, repr=False)

    @property
    def path(self) -> str:
        """The path of the file."""
        return self.tail.path

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self.tail.size

    @property
    def identity(self) -> tuple[object, ...]:
        """The identity of the file when the footer was read."""
        return self.tail.identity

    @property
    def mode(self) -> FooterMode:
        """How the footer is protected."""
        return self.tail.mode

    @property
    def key(self) -> DataKey | None:
        """The key that decrypted the footer, or checked its signature."""
        return None if self.footer_key is None else self.footer_key.key

    @property
    def file_aad(self) -> bytes:
        """The AAD of the file; empty without a key."""
        return b"" if self.footer_key is None else self.footer_key.file_aad

    @property
    def metadata(self) -> FileMetaData:
        """The fields other than the schema, which is in :attr:`leaves`."""
        return self.scan.metadata

    @property
    def plain(self) -> bytes:
        """The FileMetaData in clear, as its writer encoded it."""
        if self.tail.mode is FooterMode.ENCRYPTED:
            return self.scan.plain[: self.scan.length]
        return self.tail.clear

    @property
    def row_groups(self) -> Sequence[RowGroup]:
        """The row groups. Each is made when it is first accessed."""
        return self.scan.row_groups

    @property
    def rows(self) -> list[int]:
        """The number of rows of each row group. Raises FormatError for a negative number."""
        return self.scan.rows

    @property
    def ordinals(self) -> list[int]:
        """The ordinal of each row group in AADs, or its position if it has no ordinal."""
        return self.scan.ordinals

    @property
    def column_chunks(self) -> tuple[Sequence[ColumnChunk], ...]:
        """The column chunks of each row group. Each is decoded when it is first accessed."""
        return self.scan.column_chunks

    @property
    def chunk_offsets(self) -> np.ndarray:
        """The offset of each column chunk in the decrypted footer, by row group and column."""
        # Imported here: filters are probed without numpy.
        import numpy as np

        groups = len(self.row_groups)
        every = np.frombuffer(self.scan.numbers, np.int64)
        return every[groups * NUMBERS :].reshape(groups, len(self.leaves))

    @property
    def is_verified(self) -> bool:
        """Whether the footer authenticated. A plain footer cannot."""
        return self.tail.mode is not FooterMode.SIGNED or self.footer_key is not None

    @cached_property
    def columns(self) -> FileColumns:
        """The columns by their names. Footers that one run reads for rows share them."""
        if self.shared_columns is not None:
            return self.shared_columns
        return SchemaCache().columns(self.scan, self.tail.column_names)

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema of the file.

        Raises FormatError with the path if pyarrow cannot make it.
        """
        with located(path=self.path):
            return self.columns.arrow

    @cached_property
    def ciphers(self) -> FileCiphers:
        """The ciphers of the file. They are kept, because few keys open many chunks."""
        return FileCiphers(
            algorithm=self.tail.algorithm,
            footer=self.footer_key,
            key_metadata=self.tail.key_metadata,
            keys=self.keys,
        )

    def with_columns(self, columns: FileColumns) -> Footer:
        """Return the footer with fewer columns to read. It shares the ciphers."""
        found = replace(self, shared_columns=columns)
        found.__dict__["ciphers"] = self.ciphers
        return found

    def lacks_key(self, column: int) -> bool:
        """Return whether the key of a column is missing, in any row group.

        A wrong key, and a KMS that does not answer, are errors.
        """
        name = self.leaves[column].name
        for row_group, group in enumerate(self.row_groups):
            with located(path=self.path, row_group=row_group, column=name):
                if self.ciphers.lacks_key(group.columns[column].crypto_metadata, name):
                    return True
        return False

    def chunk(self, row_group: int, column: int) -> Chunk:
        """Return the column chunk at two ordinals. Its metadata is decrypted with its own key.

        Raises KeyUnavailableError or IntegrityError with row group and column set.
        """
        group, leaf = self.row_groups[row_group], self.leaves[column]
        with located(row_group=row_group, column=leaf.name):
            rows = ChunkRows(row_group, group.ordinal, group.num_rows)
            try:
                return decrypt_chunk(group.columns[column], leaf, column, rows, self.ciphers)
            except PolicyError as error:
                raise self._explained(error) from None

    def _explained(self, error: PolicyError) -> PolicyError:
        """Return the error of a policy check, with an explanation based on the file's columns."""
        return self.keys.trust.explained(error, [leaf.path for leaf in self.leaves])

    def chunk_to_read(self, row_group: int, column: int) -> Chunk:
        """Return the chunk that :meth:`chunk` returns, and keep it. Its errors have the path.

        Raises FormatError if the chunk does not have the rows of its row group.
        """
        known = self._chunks.get((row_group, column))
        if known is None:
            with located(path=self.path, row_group=row_group, column=self.leaves[column].name):
                try:
                    known = self._counted_chunk(row_group, column)
                except PolicyError as error:
                    raise self._explained(error) from None
            if len(self._chunks) < _KEPT_CHUNKS:
                self._chunks[row_group, column] = known
        return known

    def _counted_chunk(self, row_group: int, column: int) -> Chunk:
        # Imported here: most verbs compare no counts.
        from secure_bloom.parquet.chunk_contradictions import in_counts

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

    def cipher(
        self, row_group: int, column: int, crypto: ColumnCryptoMetaData
    ) -> ColumnCipher | None:
        """Return the cipher of a column chunk, given its crypto_metadata.

        Raises the errors of :meth:`chunk_to_read`.
        """
        name = self.leaves[column].name
        ordinal = self.scan.ordinals[row_group]
        with located(path=self.path, row_group=row_group, column=name):
            return self.ciphers.column_cipher(crypto, name, ordinal, column)

    def check(self, names: Iterable[str]) -> None:
        """Raise for faults of columns that a read must find even if it skips every row group.

        Raises PolicyError for a column in clear that the policy protects, and FormatError for an
        empty row group that has values.
        """
        self.refuse_clear(names)
        self._check_empty(names)

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
                    try:
                        trust.check_column(leaves[column].path, is_encrypted=is_encrypted)
                    except PolicyError as error:
                        raise self._explained(error) from None

    def _check_empty(self, names: Iterable[str]) -> None:
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
                    self.chunk_to_read(row_group, column)

    @property
    def digest(self) -> bytes:
        """A digest of the footer as stored, the same on every machine."""
        # Imported here: only plans of several machines have digests.
        import hashlib

        digest = hashlib.blake2b(self.tail.clear, digest_size=_DIGEST_SIZE)
        digest.update(self.tail.sealed)
        return digest.digest()

    @property
    def written(self) -> tuple[object, ...]:
        """The part of the file's identity that is the same on every machine."""
        return self.identity[1:]

    @property
    def memory(self) -> int:
        """An estimate of the bytes that the footer takes in memory, often far more than encoded."""
        objects = len(self.row_groups) * (1 + len(self.leaves))
        objects += len(self.metadata.column_orders or ())
        objects += len(self.metadata.key_value_metadata or ())
        encoded = len(self.tail.clear) + len(self.tail.sealed)
        # A plain footer is the same bytes as stored and in clear.
        encoded += 0 if self.mode is FooterMode.PLAINTEXT else len(self.plain)
        return encoded + objects * _OBJECT_SIZE


def _find_footer_key(tail: Tail, keys: FileKeys) -> FooterKey | None:
    """Return the key that decrypts the footer or checks its signature, or None for a plain footer.

    Raises KeyUnavailableError if the key or the AAD prefix is not available, PolicyError for a
    footer that is weaker than the policy of the run.
    """
    # Before any key is asked for: mode and algorithm are not authenticated yet, and a forged one
    # must not cost a call to the KMS.
    if keys.trust.enforced_policy is not None:
        algorithm = None if tail.algorithm is None else tail.algorithm.member()
        try:
            keys.trust.check_footer(tail.mode, algorithm)
        except PolicyError as error:
            raise keys.trust.explained(error, _shown_columns(tail)) from None
    if tail.algorithm is None:
        return None
    # The prefix first, because checking it needs no KMS.
    file_aad = file_aad_of(tail.algorithm, keys)
    return FooterKey(key=keys.footer_key(tail.key_metadata), file_aad=file_aad)


def _shown_columns(tail: Tail) -> list[tuple[str, ...]]:
    """Return the columns of a footer in clear."""
    if tail.scan is None:
        return []
    with suppress(FormatError):
        return [leaf.path for leaf in SchemaCache().columns(tail.scan, tail.column_names).leaves]
    return []


def _find_key_to_read(tail: Tail, keys: FileKeys) -> FooterKey | None:
    """Return the key that :func:`_find_footer_key` returns, for a file that is only read.

    If a signature cannot be checked, an error is raised if the run was given keys or a policy.
    Otherwise None is returned.
    """
    try:
        return _find_footer_key(tail, keys)
    except KeyUnavailableError as error:
        # A signed footer is in clear for readers without its key (Encryption.md 5.5).
        if tail.mode is FooterMode.ENCRYPTED:
            raise
        if not keys.accepts_unverified:
            raise unchecked_signature(error) from error
        return None


def _open_footer(tail: Tail, key: FooterKey | None) -> bytes:
    """Return the bytes of the FileMetaData in clear.

    Decrypts them, or checks their signature. Raises IntegrityError if the footer does not
    authenticate.
    """
    if key is None:
        return tail.clear
    # Prepared here, because tools that report errors show the arguments of each call.
    prepared = cipher.prepare(key.key.key)
    if tail.mode is FooterMode.ENCRYPTED:
        return cipher.decrypt_footer(tail.sealed, prepared, key.file_aad)
    # The signature is over the bytes as they were read: a footer that is encoded again may differ.
    cipher.verify_footer(tail.clear, tail.sealed, prepared, key.file_aad)
    return tail.clear


def unlock(tail: Tail, keys: FileKeys, *, allow_unverified: bool = False) -> Footer:
    """Decrypt the footer, or check its signature.

    Raises KeyUnavailableError if the key or the AAD prefix is not available, PolicyError for a
    footer that is weaker than the policy of the run, IntegrityError if it does not authenticate.

    With ``allow_unverified`` a signed footer whose key is missing is read unchecked. A footer read
    unchecked cannot be written back.
    """
    try:
        key = _find_footer_key(tail, keys)
    except KeyUnavailableError:
        if tail.mode is FooterMode.ENCRYPTED or not allow_unverified:
            raise
        key = None
    return _unlocked(tail, key, keys)


def unlock_to_read(tail: Tail, keys: FileKeys) -> Footer:
    """Open the footer of a file that is only read, as :func:`unlock` does.

    A signature that cannot be checked is an error if the run was given keys or a policy.
    Otherwise the footer is read unchecked.
    """
    return _unlocked(tail, _find_key_to_read(tail, keys), keys)


def unchecked_signature(error: KeyUnavailableError) -> KeyUnavailableError:
    """Return the error for a signature that cannot be checked without its key, with a hint."""
    hint = f"{error.hint}; " if error.hint else ""
    return KeyUnavailableError(
        f"the footer's signature cannot be checked, so it may be forged: {error.message}",
        hint=f"{hint}to read the file all the same: {ALLOW_UNVERIFIED}",
    )


def read_unverified(tail: Tail, keys: FileKeys | None = None) -> Footer:
    """Return a footer without its key: a signature is not checked. ``keys`` open its columns.

    Raises FormatError for an encrypted footer.
    """
    return _unlocked(tail, None, KeyResolver(None).for_file() if keys is None else keys)


def read_footer(file: InputFile, resolver: KeyResolver, schemas: SchemaCache) -> Footer:
    """Return the footer of a file whose rows are read. Files of one schema share its columns.

    Raises the errors of :func:`unlock_to_read`, and FormatError for wrong numbers of any row group.
    """
    tail, keys = read_tail(file), file_keys(resolver, file)
    key = _find_key_to_read(tail, keys)
    scan = _opened_scan(tail, key)
    columns = schemas.columns(scan, tail.column_names)
    scan.check_chunks()
    _ = scan.numbers  # a row group with negative rows is an error now, and not in mid-plan
    return Footer(
        tail=tail,
        scan=scan,
        footer_key=key,
        keys=keys,
        leaves=columns.leaves,
        shared_columns=columns,
    )


def _unlocked(tail: Tail, key: FooterKey | None, keys: FileKeys) -> Footer:
    scan = _opened_scan(tail, key)
    # Positions of chunks are used as positions in the schema from here on.
    scan.check_chunks()
    leaves = _named_leaves(scan, tail.column_names)
    return Footer(tail=tail, scan=scan, footer_key=key, keys=keys, leaves=leaves)


def _opened_scan(tail: Tail, key: FooterKey | None) -> FooterScan:
    """Return the scan of a footer, after decrypting it or checking its signature."""
    # Before a byte of it is looked at: what does not authenticate is not parsed.
    plain = _open_footer(tail, key)
    # The scan of a signed footer is of the very bytes whose signature was checked above.
    return scan_footer(plain) if tail.scan is None else tail.scan


def _named_leaves(scan: FooterScan, names: ColumnMapping | None) -> tuple[Leaf, ...]:
    """Return the leaves, under the table's names if the table has names of its own."""
    if names is None:
        return scan.schema.leaves
    # Imported here: few tables rename columns.
    from secure_bloom.parquet.schema import renamed_leaves

    return renamed_leaves(scan.schema.elements, names)
