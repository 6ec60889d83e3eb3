"""Open a file's footer: decrypt it or check its signature, and open column chunks by their keys.

Reading has two steps, because the first needs no key: :func:`.locate.read_tail` finds the footer,
:func:`unlock` decrypts it or checks its signature.  :mod:`.seal` writes changed bytes back.
Encryption.md 5.4 and 5.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from secure_bloom.calling.options import ALLOW_UNVERIFIED, FooterMode
from secure_bloom.encryption import cipher
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys import DataKey, FileKeys
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.errors import (
    FormatError,
    KeyUnavailableError,
    UnsupportedFeatureError,
    located,
)
from secure_bloom.parquet.file_ciphers import FileCiphers, FooterKey, file_aad_of
from secure_bloom.parquet.footer.locate import Tail
from secure_bloom.parquet.footer.scan import FooterScan, scan_footer
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import (
    ColumnChunk,
    ColumnMetaData,
    CompressionCodec,
    FileMetaData,
    RowGroup,
)
from secure_bloom.parquet.structures.records import decode_record, known_member

if TYPE_CHECKING:
    from secure_bloom.storage.column_mapping import ColumnMapping


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Footer:
    """A footer in clear, which can be read, and from which a changed footer can be made.

    ``tail`` has its bytes as the file has them, and ``scan`` its content in clear.  ``footer_key``
    is None if the file has none, or if a signed footer was read without it: then the signature is
    unchecked.  ``leaves`` have the table's names, if the table has names of its own.
    """

    tail: Tail
    scan: FooterScan = field(repr=False)
    footer_key: FooterKey | None = field(repr=False)
    leaves: tuple[Leaf, ...]
    _ciphers: list[FileCiphers] = field(default_factory=list, repr=False)

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
    def column_chunks(self) -> tuple[Sequence[ColumnChunk], ...]:
        """The column chunks of each row group. Each is decoded when it is first accessed."""
        return self.scan.column_chunks

    @property
    def is_verified(self) -> bool:
        """Whether the footer authenticated. A plain footer cannot."""
        return self.tail.mode is not FooterMode.SIGNED or self.footer_key is not None

    def ciphers_under(self, keys: FileKeys) -> FileCiphers:
        """Return the ciphers of the file under these keys.

        They are kept, because few keys open many chunks.
        """
        # Keys are compared by identity: other keys may not open the modules that these open.
        if not self._ciphers or self._ciphers[0].keys is not keys:
            tail = self.tail
            self._ciphers[:] = [
                FileCiphers(
                    algorithm=tail.algorithm,
                    footer=self.footer_key,
                    key_metadata=tail.key_metadata,
                    keys=keys,
                )
            ]
        return self._ciphers[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One column chunk with its own metadata, which was decrypted if it was encrypted.

    ``row_group`` and ``column`` are its ordinals in the footer.
    """

    row_group: int
    column: int
    leaf: Leaf
    num_rows: int
    column_chunk: ColumnChunk
    meta_data: ColumnMetaData
    cipher: ColumnCipher | None

    @property
    def is_under_footer_key(self) -> bool:
        """Whether the chunk is encrypted under the footer's key, as in uniform encryption."""
        crypto = self.column_chunk.crypto_metadata
        return crypto is not None and crypto.ENCRYPTION_WITH_FOOTER_KEY is not None

    @property
    def codec(self) -> CompressionCodec:
        """The codec of the pages. Raises UnsupportedFeatureError for an unknown codec."""
        return known_member(CompressionCodec, self.meta_data.codec, "ColumnMetaData.codec")


def find_footer_key(tail: Tail, keys: FileKeys) -> FooterKey | None:
    """Return the key that decrypts the footer or checks its signature, or None for a plain footer.

    Raises KeyUnavailableError if the key or the AAD prefix is not available, PolicyError for a
    footer that is weaker than the policy of the run.
    """
    # Before any key is asked for: mode and algorithm are not authenticated yet, and a forged one
    # must not cost a call to the KMS.
    if keys.trust.enforced_policy is not None:
        algorithm = None if tail.algorithm is None else tail.algorithm.member()
        keys.trust.check_footer(tail.mode, algorithm)
    if tail.algorithm is None:
        return None
    # The prefix first, because checking it needs no KMS.
    file_aad = file_aad_of(tail.algorithm, keys)
    return FooterKey(key=keys.footer_key(tail.key_metadata), file_aad=file_aad)


def find_key_to_read(tail: Tail, keys: FileKeys) -> FooterKey | None:
    """Like :func:`find_footer_key`, but may return None for a signed footer of a file only read.

    A signature that cannot be checked is an error if the run was given keys or a policy. Otherwise
    None is returned.
    """
    try:
        return find_footer_key(tail, keys)
    except KeyUnavailableError as error:
        # A signed footer stands in clear for readers without its key (Encryption.md 5.5).
        if tail.mode is FooterMode.ENCRYPTED:
            raise
        if not keys.accepts_unverified:
            raise unchecked_signature(error) from error
        return None


def open_footer(tail: Tail, key: FooterKey | None) -> bytes:
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
    """Decrypt the footer, or check its signature. Raises the errors of :func:`find_footer_key`.

    With ``allow_unverified`` a signed footer whose key is missing is read unchecked. A footer read
    unchecked cannot be written back.
    """
    try:
        key = find_footer_key(tail, keys)
    except KeyUnavailableError:
        if tail.mode is FooterMode.ENCRYPTED or not allow_unverified:
            raise
        key = None
    return _unlocked(tail, key)


def unlock_to_read(tail: Tail, keys: FileKeys) -> Footer:
    """Like :func:`unlock`, for a file that is only read: see :func:`find_key_to_read`."""
    return _unlocked(tail, find_key_to_read(tail, keys))


def unchecked_signature(error: KeyUnavailableError) -> KeyUnavailableError:
    """Return the error for a signature whose key is missing, with a hint."""
    hint = f"{error.hint}; " if error.hint else ""
    return KeyUnavailableError(
        f"the footer's signature cannot be checked, so it may be forged: {error.message}",
        hint=f"{hint}to read the file all the same: {ALLOW_UNVERIFIED}",
    )


def read_unverified(tail: Tail) -> Footer:
    """Return a footer without a key: a signature is not checked.

    Raises FormatError for an encrypted footer.
    """
    return _unlocked(tail, None)


def _unlocked(tail: Tail, key: FooterKey | None) -> Footer:
    scan = opened_scan(tail, key)
    # Positions of chunks are used as positions in the schema from here on.
    scan.check_chunks()
    leaves = _named_leaves(scan, tail.column_names)
    return Footer(tail=tail, scan=scan, footer_key=key, leaves=leaves)


def opened_scan(tail: Tail, key: FooterKey | None) -> FooterScan:
    """Return the scan of a footer, after decrypting it or checking its signature."""
    # Before a byte of it is looked at: what does not authenticate is not parsed.
    plain = open_footer(tail, key)
    # The scan of a signed footer is of the very bytes whose signature was checked above.
    return scan_footer(plain) if tail.scan is None else tail.scan


def _named_leaves(scan: FooterScan, names: ColumnMapping | None) -> tuple[Leaf, ...]:
    """Return the leaves, under the table's names if the table has names of its own."""
    if names is None:
        return scan.schema.leaves
    # Imported here: few tables rename columns.
    from secure_bloom.parquet.schema import renamed_leaves

    return renamed_leaves(scan.schema.elements, names)


class ChunkRows(NamedTuple):
    """The row group of a column chunk: its position, its ``ordinal`` in AADs, and its rows."""

    row_group: int
    ordinal: int | None
    num_rows: int


def open_chunk(footer: Footer, row_group: int, column: int, keys: FileKeys) -> Chunk:
    """Return the column chunk at two ordinals. Its metadata is decrypted with its own key.

    Raises KeyUnavailableError or IntegrityError with row group and column set.
    """
    group, leaf = footer.row_groups[row_group], footer.leaves[column]
    with located(row_group=row_group, column=leaf.name):
        return decrypt_chunk(
            group.columns[column],
            leaf,
            column,
            ChunkRows(row_group, group.ordinal, group.num_rows),
            footer.ciphers_under(keys),
        )


def decrypt_chunk(
    column_chunk: ColumnChunk,
    leaf: Leaf,
    column: int,
    rows: ChunkRows,
    ciphers: FileCiphers,
) -> Chunk:
    """Return a column chunk whose metadata is decrypted and checked. Its errors name no place."""
    # Only summary files have one, and there offsets are those of another file.
    if column_chunk.file_path is not None:
        raise UnsupportedFeatureError("its data is in another file (ColumnChunk.file_path)")
    crypto = column_chunk.crypto_metadata
    ciphers.keys.trust.check_column(leaf.path, is_encrypted=crypto is not None)
    # Writers may leave the ordinal out; then it is the place in the footer.
    ordinal = rows.row_group if rows.ordinal is None else rows.ordinal
    column_cipher = ciphers.column_cipher(crypto, leaf.name, ordinal, column)
    meta_data, module = column_chunk.meta_data, column_chunk.encrypted_column_metadata
    if module is not None and column_cipher is not None:
        # Beside it, writers may leave metadata in clear without statistics: not to be believed.
        plain = column_cipher.decrypt(ModuleType.COLUMN_META_DATA, module)
        meta_data = decode_record(ColumnMetaData, plain)
    if meta_data is None:
        raise FormatError("ColumnChunk.meta_data is missing")
    # The AAD binds a module to its ordinals, and nothing binds those to a name: check it.
    if tuple(meta_data.path_in_schema) != leaf.stored_path:
        raise FormatError("ColumnMetaData.path_in_schema is not the column's path")
    return Chunk(
        row_group=rows.row_group,
        column=column,
        leaf=leaf,
        num_rows=rows.num_rows,
        column_chunk=column_chunk,
        meta_data=meta_data,
        cipher=column_cipher,
    )
