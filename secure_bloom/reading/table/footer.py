"""The footer of a file for reading: decrypted or verified, decoded as far as asked.

    plaintext, signed:  FileMetaData | signature | length | PAR1
    encrypted:          FileCryptoMetaData | FileMetaData module | length | PARE

Of every column chunk it is noted where it starts; the chunks of the few columns that a question is
about are decoded when they are looked at.  Keys are asked for once a file and piece of key
metadata, when a column is first opened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from secure_bloom.encryption import cipher
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.column_cipher import ColumnCipher
from secure_bloom.encryption.keys import DataKey, FileKeys, KeyResolver
from secure_bloom.errors import (
    FormatError,
    KeyUnavailableError,
    UnsupportedFeatureError,
    located,
)
from secure_bloom.options import FooterMode
from secure_bloom.parquet.footer import (
    MAGIC_ENCRYPTED,
    Chunk,
    file_aad_of,
    locate_footer,
    unchecked_signature,
)
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.structures.metadata import (
    ColumnCryptoMetaData,
    ColumnMetaData,
    EncryptionAlgorithm,
    FileCryptoMetaData,
)
from secure_bloom.parquet.structures.records import decode_record, measured_record
from secure_bloom.reading.lockstep import Job, run
from secure_bloom.reading.table.footer_scan import FooterMetadata, FooterScan, FooterScanner
from secure_bloom.reading.table.row_groups import FooterRowGroups
from secure_bloom.reading.table.table_schema import FileColumns
from secure_bloom.storage import CountedFile
from secure_bloom.storage.counted_file import Extent

_DIGEST_SIZE = 16
#: Chunks of one file that are kept decoded, which take some kilobytes each.
_KEPT_CHUNKS = 64
#: What an object of a decoded footer takes in memory, more or less.
_OBJECT_SIZE = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileFooter:
    """What a reader needs of one file: its footer, in clear and decoded, and how to decrypt.

    ``key`` is None where no key was needed or, of a signed footer, at hand: ``is_verified`` tells.
    ``identity`` is that of the file when it was read, ``extents`` what that took.  Row groups
    are in the order of the file, their chunks in that of the schema.
    """

    path: str
    identity: tuple[object, ...]
    size: int
    stored: bytes = field(repr=False)
    extents: tuple[Extent, ...]
    mode: FooterMode
    plain: bytes = field(repr=False)
    columns: FileColumns
    metadata: FooterMetadata = field(repr=False)
    row_groups: FooterRowGroups = field(repr=False)
    algorithm: EncryptionAlgorithm | None
    file_aad: bytes
    key_metadata: bytes | None
    key: DataKey | None
    keys: FileKeys
    _column_keys: dict[tuple[str, bytes | None], PreparedKey | KeyUnavailableError] = field(
        default_factory=dict, repr=False
    )
    _chunks: dict[tuple[int, int], Chunk] = field(default_factory=dict, repr=False)

    @property
    def digest(self) -> bytes:
        """That of the footer as stored, the same on every machine."""
        return hashlib.blake2b(self.stored, digest_size=_DIGEST_SIZE).digest()

    @property
    def memory(self) -> int:
        """Bytes that it takes, more or less: a footer can be much larger decoded than encoded."""
        objects = len(self.row_groups) * (1 + len(self.columns.leaves))
        objects += len(self.metadata.column_orders or ())
        objects += len(self.metadata.key_value_metadata or ())
        encoded = len(self.plain) + (0 if self.stored is self.plain else len(self.stored))
        return encoded + objects * _OBJECT_SIZE

    @property
    def is_verified(self) -> bool:
        """Whether the footer is as its writer left it; a plain one has no way to tell."""
        return self.mode is not FooterMode.SIGNED or self.key is not None

    def refuse_clear(self, columns: Iterable[int]) -> None:
        """Raise PolicyError where the policy gives one of these columns a key, and it is in clear.

        Asked before anything is: statistics and filters in clear would rule rows out unseen.
        """
        trust, leaves = self.keys.trust, self.columns.leaves
        if trust.measure is None:
            return
        for column in columns:
            for row_group, group in enumerate(self.row_groups):
                is_encrypted = group.columns[column].crypto_metadata is not None
                name = leaves[column].name
                with located(path=self.path, row_group=row_group, column=name):
                    trust.check_column(leaves[column].path, is_encrypted=is_encrypted)

    def chunk(self, row_group: int, column: int) -> Chunk:
        """The column chunk at two ordinals, its metadata decrypted with its own key.

        Raises KeyUnavailableError or IntegrityError with path, row group and column.
        """
        known = self._chunks.get((row_group, column))
        if known is None:
            with located(
                path=self.path, row_group=row_group, column=self.columns.leaves[column].name
            ):
                known = self._decoded(row_group, column)
            if len(self._chunks) < _KEPT_CHUNKS:
                self._chunks[row_group, column] = known
        return known

    def _decoded(self, row_group: int, column: int) -> Chunk:
        leaf, group = self.columns.leaves[column], self.row_groups[row_group]
        column_chunk = group.columns[column]
        if column_chunk.file_path is not None:
            raise UnsupportedFeatureError("its data stands in another file (ColumnChunk.file_path)")
        column_cipher = self._cipher(row_group, column, column_chunk.crypto_metadata)
        meta_data = column_chunk.meta_data
        module = column_chunk.encrypted_column_metadata
        if module is not None and column_cipher is not None:
            plain = column_cipher.decrypt(ModuleType.COLUMN_META_DATA, module)
            meta_data = decode_record(ColumnMetaData, plain)
        if meta_data is None:
            raise FormatError("ColumnChunk.meta_data is missing")
        if tuple(meta_data.path_in_schema) != leaf.path:
            raise FormatError("ColumnMetaData.path_in_schema is not the column's path")
        return Chunk(
            row_group=row_group,
            leaf=leaf,
            num_rows=group.num_rows,
            column_chunk=column_chunk,
            meta_data=meta_data,
            cipher=column_cipher,
        )

    def chunk_offsets(self, column: int, row_groups: Sequence[int]) -> NDArray[np.int64] | None:
        """Where column chunks start in ``plain``; None where they are all decoded."""
        offsets = self.row_groups.chunk_offsets
        return None if offsets is None else offsets[row_groups, column]

    def cipher(
        self, row_group: int, column: int, crypto: ColumnCryptoMetaData
    ) -> ColumnCipher | None:
        """That of the column chunk, of which this is said; raises as :meth:`chunk`."""
        with located(path=self.path, row_group=row_group, column=self.columns.leaves[column].name):
            return self._cipher(row_group, column, crypto)

    def _cipher(
        self, row_group: int, column: int, crypto: ColumnCryptoMetaData | None
    ) -> ColumnCipher | None:
        if crypto is None:
            return None
        if self.algorithm is None:
            raise FormatError("the column is encrypted, the footer names no encryption algorithm")
        own = crypto.ENCRYPTION_WITH_COLUMN_KEY
        if own is None and crypto.ENCRYPTION_WITH_FOOTER_KEY is None:
            raise UnsupportedFeatureError("its column encryption is not known")
        name = self.columns.leaves[column].name
        metadata = self.key_metadata if own is None else own.key_metadata
        prepared = self._key("" if own is None else name, metadata)
        return ColumnCipher(
            key=prepared.key,
            gcm=prepared.gcm,
            file_aad=self.file_aad or file_aad_of(self.algorithm, self.keys),
            uses_ctr=self.algorithm.AES_GCM_CTR_V1 is not None,
            row_group_ordinal=self.row_groups.ordinals[row_group],
            column_ordinal=column,
        )

    def _key(self, column: str, key_metadata: bytes | None) -> PreparedKey:
        """The key or the refusal, asked for once: a KMS is far away.  No column: the footer's."""
        known = self._column_keys.get((column, key_metadata))
        if known is None:
            try:
                known = PreparedKey.of(self._asked_for(column, key_metadata))
            except KeyUnavailableError as error:
                known = error
            self._column_keys[column, key_metadata] = known
        if isinstance(known, KeyUnavailableError):
            raise type(known)(known.message, hint=known.hint)
        return known

    def _asked_for(self, column: str, key_metadata: bytes | None) -> DataKey:
        if column:
            return self.keys.column_key(column, key_metadata)
        return self.key or self.keys.footer_key(key_metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedKey:
    """A key, and the same expanded for AES-GCM: a file has many modules under few keys."""

    key: DataKey
    gcm: AESGCM = field(repr=False)

    @classmethod
    def of(cls, key: DataKey) -> PreparedKey:
        """KeyUnavailableError for a key of a wrong size."""
        return cls(key=key, gcm=cipher.prepare(key.key))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFooter:
    """A footer as it stands in a file, and what the file was."""

    path: str
    identity: tuple[object, ...]
    size: int
    extents: tuple[Extent, ...]
    magic: bytes
    body: bytes = field(repr=False)
    keys: FileKeys


def fetch_footer(file: CountedFile, resolver: KeyResolver) -> StoredFooter:
    """The footer's bytes; FormatError where there is none."""
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


def open_footer(stored: StoredFooter, scanner: FooterScanner) -> Job[FileFooter]:
    """The same decrypted or verified, and decoded; errors as of :func:`read_footer`."""
    opening = _encrypted if stored.magic == MAGIC_ENCRYPTED else _clear
    opened = yield from opening(stored.body, stored.keys, scanner)
    yield
    outline = opened.outline
    return FileFooter(
        path=stored.path,
        identity=stored.identity,
        size=stored.size,
        stored=stored.body,
        extents=stored.extents,
        mode=opened.mode,
        plain=opened.plain,
        columns=outline.columns,
        metadata=outline.metadata,
        row_groups=outline.row_groups,
        algorithm=opened.algorithm,
        file_aad=opened.file_aad,
        key_metadata=opened.key_metadata,
        key=opened.key,
        keys=stored.keys,
    )


def read_footer(file: CountedFile, resolver: KeyResolver, scanner: FooterScanner) -> FileFooter:
    """The footer of ``file``; errors as of :func:`secure_bloom.parquet.footer.unlock`.

    A signed footer whose key is not at hand is read all the same, as anyone can, where the run
    accepts that.
    """
    return run(open_footer(fetch_footer(file, resolver), scanner))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A footer in clear, and what is needed to decrypt the rest of the file."""

    mode: FooterMode
    plain: bytes
    outline: FooterScan
    algorithm: EncryptionAlgorithm | None
    file_aad: bytes = b""
    key_metadata: bytes | None
    key: DataKey | None


def _encrypted(body: bytes, keys: FileKeys, scanner: FooterScanner) -> Job[_Opened]:
    crypto, length = measured_record(FileCryptoMetaData, body)
    if cipher.frame_length(body, length) != len(body) - length:
        raise FormatError("the encrypted footer module does not fill the footer's length")
    algorithm = crypto.encryption_algorithm
    keys.trust.check_footer(FooterMode.ENCRYPTED, algorithm.member())
    file_aad = file_aad_of(algorithm, keys)
    yield
    key = keys.footer_key(crypto.key_metadata)
    yield
    plain = cipher.decrypt_footer(memoryview(body)[length:], key.key, file_aad)
    yield
    return _Opened(
        mode=FooterMode.ENCRYPTED,
        plain=plain,
        outline=scanner.of(plain),
        algorithm=algorithm,
        file_aad=file_aad,
        key_metadata=crypto.key_metadata,
        key=key,
    )


def _clear(body: bytes, keys: FileKeys, scanner: FooterScanner) -> Job[_Opened]:
    outline = scanner.of(body)
    yield
    metadata, length = outline.metadata, outline.length
    algorithm = metadata.encryption_algorithm
    mode = FooterMode.PLAINTEXT if algorithm is None else FooterMode.SIGNED
    keys.trust.check_footer(mode, None if algorithm is None else algorithm.member())
    signature = 0 if algorithm is None else cipher.SIGNATURE_SIZE
    if len(body) != length + signature:
        raise FormatError(
            f"the footer takes {length} bytes and a signature of {signature}, "
            f"its length says {len(body)}"
        )
    key = None if algorithm is None else _verify(metadata, algorithm, body, length, keys)
    return _Opened(
        mode=mode,
        plain=body[:length],
        outline=outline,
        algorithm=algorithm,
        key_metadata=metadata.footer_signing_key_metadata,
        key=key,
    )


def _verify(
    metadata: FooterMetadata,
    algorithm: EncryptionAlgorithm,
    body: bytes,
    length: int,
    keys: FileKeys,
) -> DataKey | None:
    """The key under which the signature is right; None where it is not at hand, and need not be."""
    try:
        aad = file_aad_of(algorithm, keys)
        key = keys.footer_key(metadata.footer_signing_key_metadata)
    except KeyUnavailableError as error:
        if not keys.accepts_unverified:
            raise unchecked_signature(error) from error
        return None
    cipher.verify_footer(body[:length], body[length:], key.key, aad)
    return key
