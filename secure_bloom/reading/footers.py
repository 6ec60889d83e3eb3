"""The footer of a file for reading: decrypted or verified, decoded when asked, never written back.

    plaintext, signed:  FileMetaData | signature | length | PAR1
    encrypted:          FileCryptoMetaData | FileMetaData module | length | PARE

Keys are asked for once a file and piece of key metadata, when a column is first opened.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from secure_bloom import cipher
from secure_bloom.cipher import ModuleType
from secure_bloom.errors import (
    FormatError,
    KeyUnavailableError,
    SecureBloomError,
    UnsupportedFeatureError,
    located,
)
from secure_bloom.footer import (
    MAGIC_ENCRYPTED,
    Chunk,
    encrypted_tail,
    file_aad_of,
    locate_footer,
)
from secure_bloom.keys import DataKey, FileKeys, KeyResolver
from secure_bloom.metadata import (
    ColumnMetaData,
    EncryptionAlgorithm,
    FileMetaData,
    KeyValue,
    RowGroup,
)
from secure_bloom.modules import ColumnCipher
from secure_bloom.options import FooterMode
from secure_bloom.reading.columns import FileColumns, SchemaCache
from secure_bloom.records import decode_record, measured_record
from secure_bloom.sources import file_keys
from secure_bloom.storage import CountedFile
from secure_bloom.views import BINARY, Optional, View, list_of, struct_of

_DIGEST_SIZE = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileFooter:
    """What a reader needs of one file: its footer's bytes in clear, decoded, and how to decrypt.

    ``key`` is None where no key was needed or, of a signed footer, at hand: ``is_verified`` tells.
    ``identity`` is that of the file when it was read, ``bytes_read`` what that took; ``digest``
    is that of the footer as stored, the same on every machine.  Row groups are decoded when they
    are first asked for: the footers of a table are many.
    """

    path: str
    identity: tuple[object, ...]
    size: int
    digest: bytes
    bytes_read: int
    mode: FooterMode
    plain: bytes = field(repr=False)
    columns: FileColumns
    algorithm: EncryptionAlgorithm | None
    file_aad: bytes
    key_metadata: bytes | None
    key: DataKey | None
    keys: FileKeys
    _decoded: list[FileMetaData] = field(default_factory=list, repr=False)
    _column_keys: dict[tuple[str, bytes | None], DataKey | SecureBloomError] = field(
        default_factory=dict, repr=False
    )

    @property
    def metadata(self) -> FileMetaData:
        """The decoded footer; FormatError where it is damaged."""
        if not self._decoded:
            with located(path=self.path):
                metadata = decode_record(FileMetaData, self.plain)
                for index, group in enumerate(metadata.row_groups):
                    _check_columns(index, group, len(self.columns.leaves))
            self._decoded.append(metadata)
        return self._decoded[0]

    @property
    def is_verified(self) -> bool:
        """Whether the footer is as its writer left it; a plain one has no way to tell."""
        return self.mode is not FooterMode.SIGNED or self.key is not None

    @property
    def row_groups(self) -> list[RowGroup]:
        """The row groups in the order of the file."""
        return self.metadata.row_groups

    def chunk(self, row_group: int, column: int) -> Chunk:
        """The column chunk at two ordinals, its metadata decrypted with its own key.

        Raises KeyUnavailableError or IntegrityError with path, row group and column.
        """
        leaf = self.columns.leaves[column]
        group = self.row_groups[row_group]
        column_chunk = group.columns[column]
        with located(path=self.path, row_group=row_group, column=leaf.name):
            if column_chunk.file_path is not None:
                raise UnsupportedFeatureError(
                    "its data stands in another file (ColumnChunk.file_path)"
                )
            column_cipher = self._cipher(row_group, column)
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

    def _cipher(self, row_group: int, column: int) -> ColumnCipher | None:
        crypto = self.row_groups[row_group].columns[column].crypto_metadata
        if crypto is None:
            return None
        if self.algorithm is None:
            raise FormatError("the column is encrypted, the footer names no encryption algorithm")
        own = crypto.ENCRYPTION_WITH_COLUMN_KEY
        if own is None and crypto.ENCRYPTION_WITH_FOOTER_KEY is None:
            raise UnsupportedFeatureError("its column encryption is not known")
        name = self.columns.leaves[column].name
        key = self._footer_key() if own is None else self._column_key(name, own.key_metadata)
        ordinal = self.row_groups[row_group].ordinal
        return ColumnCipher(
            key=key,
            file_aad=self.file_aad or file_aad_of(self.algorithm, self.keys),
            uses_ctr=self.algorithm.AES_GCM_CTR_V1 is not None,
            row_group_ordinal=row_group if ordinal is None else ordinal,
            column_ordinal=column,
        )

    def _footer_key(self) -> DataKey:
        return self.key or self.keys.footer_key(self.key_metadata)

    def _column_key(self, name: str, key_metadata: bytes | None) -> DataKey:
        """The key or the refusal, asked for once: a KMS is far away."""
        known = self._column_keys.get((name, key_metadata))
        if known is None:
            try:
                known = self.keys.column_key(name, key_metadata)
            except KeyUnavailableError as error:
                known = error
            self._column_keys[name, key_metadata] = known
        if isinstance(known, SecureBloomError):
            raise KeyUnavailableError(known.message, hint=known.hint)
        return known


def read_footer(file: CountedFile, resolver: KeyResolver, schemas: SchemaCache) -> FileFooter:
    """The footer of ``file``; errors as of :func:`secure_bloom.footer.unlock`.

    A signed footer whose key is not at hand is read all the same, as anyone can.
    """
    keys = file_keys(resolver, file)
    magic, end, body = locate_footer(file)
    opened = (_encrypted if magic == MAGIC_ENCRYPTED else _clear)(end, body, keys)
    return FileFooter(
        path=file.path,
        identity=file.identity,
        size=file.size,
        digest=hashlib.blake2b(body, digest_size=_DIGEST_SIZE).digest(),
        bytes_read=file.bytes_read,
        mode=opened.mode,
        plain=opened.plain,
        columns=schemas.columns(opened.plain, opened.marks.key_value_metadata or []),
        algorithm=opened.algorithm,
        file_aad=opened.file_aad,
        key_metadata=opened.key_metadata,
        key=opened.key,
        keys=keys,
    )


class _Marks(View):
    """What of a FileMetaData is looked at before its row groups."""

    key_value_metadata = Optional(5, list_of(struct_of(KeyValue)))
    encryption_algorithm = Optional(8, struct_of(EncryptionAlgorithm))
    footer_signing_key_metadata = Optional(9, BINARY)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A footer in clear, and what is needed to decrypt the rest of the file."""

    mode: FooterMode
    plain: bytes
    marks: _Marks
    algorithm: EncryptionAlgorithm | None
    file_aad: bytes = b""
    key_metadata: bytes | None
    key: DataKey | None


def _encrypted(end: int, body: bytes, keys: FileKeys) -> _Opened:
    tail = encrypted_tail(end, body)
    algorithm = tail.algorithm
    if algorithm is None:
        raise FormatError("FileCryptoMetaData.encryption_algorithm is missing")
    file_aad = file_aad_of(algorithm, keys)
    key = keys.footer_key(tail.key_metadata)
    plain = cipher.decrypt_footer(tail.sealed, key.key, file_aad)
    return _Opened(
        mode=tail.mode,
        plain=plain,
        marks=decode_record(_Marks, plain),
        algorithm=algorithm,
        file_aad=file_aad,
        key_metadata=tail.key_metadata,
        key=key,
    )


def _clear(_end: int, body: bytes, keys: FileKeys) -> _Opened:
    marks, length = measured_record(_Marks, body)
    algorithm = marks.encryption_algorithm
    signature = 0 if algorithm is None else cipher.SIGNATURE_SIZE
    if len(body) != length + signature:
        raise FormatError(
            f"the footer takes {length} bytes and a signature of {signature}, "
            f"its length says {len(body)}"
        )
    key = None if algorithm is None else _verify(marks, algorithm, body, length, keys)
    return _Opened(
        mode=FooterMode.PLAINTEXT if algorithm is None else FooterMode.SIGNED,
        plain=body[:length],
        marks=marks,
        algorithm=algorithm,
        key_metadata=marks.footer_signing_key_metadata,
        key=key,
    )


def _verify(
    marks: _Marks,
    algorithm: EncryptionAlgorithm,
    body: bytes,
    length: int,
    keys: FileKeys,
) -> DataKey | None:
    """The key under which the signature is right; None where it is not at hand."""
    try:
        aad = file_aad_of(algorithm, keys)
        key = keys.footer_key(marks.footer_signing_key_metadata)
    except KeyUnavailableError:
        return None
    cipher.verify_footer(body[:length], body[length:], key.key, aad)
    return key


def _check_columns(index: int, group: RowGroup, wanted: int) -> None:
    if len(group.columns) != wanted:
        raise FormatError(
            f"{len(group.columns)} column chunks, the schema has {wanted} columns",
            row_group=index,
        )
    if group.num_rows < 0:
        raise FormatError(f"RowGroup.num_rows is {group.num_rows}", row_group=index)
