"""Open a file with pyarrow, which decrypts it, whatever the file's key scheme is.

pyarrow finds keys only through key material that is in the file (PKMT1, internal).  Other files
have explicit keys, free-form key metadata, material beside the file, or an AAD prefix that the
caller supplies.  For these, pyarrow gets a footer made here: the file's own, except that its key
metadata name the keys that were found.  Data pages and their AADs stay unchanged.

For an object, pyarrow gets the footer that was read before, because fetching it again costs two
requests.  For a file whose column names differ from the table's, pyarrow gets a footer with the
table's names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.file_keys import KeyMaterial, KeyResolver
from secure_bloom.errors import FormatError, KeyUnavailableError
from secure_bloom.parquet.file_ciphers import file_aad_of
from secure_bloom.parquet.footer.edit import algorithm_of, crypto_metadata, signing_fields
from secure_bloom.parquet.footer.locate import MAGIC, Tail
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.footer.seal import seal_footer
from secure_bloom.parquet.memory_files import without_data
from secure_bloom.parquet.pyarrow_encryption import PyarrowKms
from secure_bloom.parquet.structures.metadata import (
    ColumnChunk,
    ColumnCryptoMetaData,
    EncryptionWithColumnKey,
    FileMetaData,
)
from secure_bloom.parquet.structures.splices import (
    Splice,
    binary,
    set_fields,
    splice,
    structs,
    with_fields,
)
from secure_bloom.parquet.structures.wire_fields import find_fields
from secure_bloom.running.memory_budget import MemoryAccount
from secure_bloom.running.positioned_stream import PositionedStream
from secure_bloom.storage import InputFile, is_object_uri, local_path
from secure_bloom.storage.os_errors import system_errors

#: pyarrow opens no footer whose material names no KMS instance.
_INSTANCE = "DEFAULT"
#: About how many bytes pyarrow takes for a column chunk of a footer.
_PARSED_CHUNK = 1024


class SourceOpener:
    """Opens the files of one read, or of an open table. A KEK is unwrapped once for all of them.

    With ``memory``, parsed footers of plain files are kept, up to this number of bytes.
    """

    def __init__(self, resolver: KeyResolver, memory: MemoryAccount | None = None) -> None:
        self._resolver = resolver
        self._memory = memory
        #: What pyarrow has parsed, by the tail, which is held so that its id stays its own.
        self._parsed: dict[int, tuple[Tail, pq.FileMetaData]] = {}
        # Held here: what pyarrow opens with it asks it for keys later.
        self._factory = pe.CryptoFactory(lambda _: PyarrowKms(resolver.kms))

    def open(
        self,
        footer: Footer,
        columns: Sequence[int],
        row_groups: Sequence[int],
        file: InputFile | None = None,
    ) -> pq.ParquetFile:
        """Return the file, open to read the leaves at the ordinals ``columns`` of ``row_groups``.

        pyarrow reads through ``file`` if it is pinned.

        Raises KeyUnavailableError or IntegrityError, with path, row group and column, for a column
        that cannot be opened.  Raises FormatError for bytes that pyarrow cannot read, and
        PolicyError for a file that is gone or may not be opened.
        """
        try:
            return self._open(footer, columns, row_groups, file)
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                with system_errors(footer.path):
                    raise
        # The cause is left out: its text may quote values of the file.
        raise FormatError("pyarrow does not take the footer, or the key material in it")

    def _open(
        self,
        footer: Footer,
        columns: Sequence[int],
        row_groups: Sequence[int],
        file: InputFile | None,
    ) -> pq.ParquetFile:
        ours = is_object_uri(footer.path) or bool(footer.columns.renamed)
        # A footer that was not checked is not signed here: of its file only columns in clear
        # are read with pyarrow.
        if not footer.is_verified or not _is_encrypted(footer, columns, row_groups):
            if ours:
                return _open(footer.path, file, metadata=_metadata(_plain_footer(footer)))
            return self._open_plain(footer)
        if not ours and self._has_internal_keys(footer, columns):
            properties = self._factory.file_decryption_properties(pe.KmsConnectionConfig())
            return _open(footer.path, decryption_properties=properties)
        keys = _Found()
        content = _footer_of_ours(footer, columns, row_groups, keys)
        properties = pe.CryptoFactory(lambda _: keys).file_decryption_properties(
            pe.KmsConnectionConfig()
        )
        with pq.ParquetFile(pa.BufferReader(content), decryption_properties=properties) as made:
            metadata = made.metadata
        return _open(footer.path, file, decryption_properties=properties, metadata=metadata)

    def _open_plain(self, footer: Footer) -> pq.ParquetFile:
        """Open a plain file.

        Its parsed footer is kept, because parsing it takes longer than reading a row group.
        """
        known = self._parsed.get(id(footer.tail))
        file = _open(footer.path, metadata=None if known is None else known[1])
        size = len(footer.row_groups) * len(footer.leaves) * _PARSED_CHUNK
        if known is None and self._memory is not None and self._memory.take(size):
            parsed = footer.tail, file.metadata
            # Another thread may have been first: its bytes are counted, and these are not kept.
            if self._parsed.setdefault(id(footer.tail), parsed) is not parsed:
                self._memory.give_back(size)
        return file

    def _has_internal_keys(self, footer: Footer, columns: Sequence[int]) -> bool:
        """Return whether pyarrow, without help, finds the same keys as this package."""
        explicit = self._resolver.explicit
        if (
            footer.ciphers.footer is None
            or self._resolver.kms is None
            or explicit.footer
            or explicit.columns
        ):
            return False
        if explicit.aad_prefix is not None:
            return False
        found = [footer.ciphers.key_metadata]
        for ordinal in columns:
            crypto = footer.row_groups[0].columns[ordinal].crypto_metadata
            if crypto is not None and crypto.ENCRYPTION_WITH_COLUMN_KEY is not None:
                found.append(crypto.ENCRYPTION_WITH_COLUMN_KEY.key_metadata)
        return all(m is not None and isinstance(KeyMaterial.parse(m), KeyMaterial) for m in found)


def _open(path: str, pinned: InputFile | None = None, **options: Any) -> pq.ParquetFile:
    if not is_object_uri(path):
        return pq.ParquetFile(_for_pyarrow(path), coerce_int96_timestamp_unit="us", **options)
    if pinned is not None and pinned.is_pinned:
        source = pa.PythonFile(PositionedStream(pinned.read_at, pinned.size), mode="r")
        return pq.ParquetFile(source, coerce_int96_timestamp_unit="us", **options)
    from secure_bloom.storage.objects import arrow_location

    filesystem, key = arrow_location(path)
    return pq.ParquetFile(key, filesystem=filesystem, coerce_int96_timestamp_unit="us", **options)


def _for_pyarrow(path: str) -> str | pa.PythonFile:
    """Return the path, or the open file if the path is not UTF-8, which pyarrow cannot open."""
    local = local_path(path)
    try:
        local.encode()
    except UnicodeEncodeError:
        return pa.PythonFile(Path(local).open("rb"), mode="r")
    return local


def _metadata(plain: bytes) -> pq.FileMetaData:
    """Return a plain footer as pyarrow decodes it, from a file in memory that has nothing else."""
    with pq.ParquetFile(pa.BufferReader(without_data(plain))) as file:
        return file.metadata


def _is_encrypted(footer: Footer, columns: Sequence[int], row_groups: Sequence[int]) -> bool:
    """Return whether a key is needed to read the footer, or the columns of a footer in clear."""
    return footer.mode is FooterMode.ENCRYPTED or any(
        footer.row_groups[row_group].columns[ordinal].crypto_metadata is not None
        for row_group in row_groups
        for ordinal in columns
    )


class _Found(pe.KmsClient):  # type: ignore[misc]
    """The KMS client for pyarrow: hands out keys already unwrapped, by the names in our footer."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[str, bytes] = {}

    def material(self, key: bytes, *, is_footer_key: bool) -> bytes:
        """Return key metadata by which pyarrow gets this key."""
        name = str(len(self._keys))
        self._keys[name] = key
        return KeyMaterial(
            is_footer_key=is_footer_key,
            master_key_id=name,
            wrapped_dek=name,
            kms_instance_id=_INSTANCE if is_footer_key else None,
            kms_instance_url=_INSTANCE if is_footer_key else None,
        ).serialize()

    def unwrap_key(self, _wrapped_key: str, master_key_identifier: str) -> bytes:
        """Return the key of that name."""
        return self._keys[master_key_identifier]


def _plain_footer(footer: Footer, plain: bytes | None = None) -> bytes:
    """Return the FileMetaData, with the table's names in its schema."""
    plain = footer.plain if plain is None else plain
    if not footer.columns.renamed:
        return plain
    schema = structs(node.encoded for node in footer.columns.renamed)
    return with_fields(plain, {FileMetaData.schema.id: schema})


def _footer_of_ours(
    footer: Footer, columns: Sequence[int], row_groups: Sequence[int], keys: _Found
) -> bytes:
    """Return a file without data for pyarrow.

    Its footer is the original file's, except that key metadata name the keys in ``keys``.
    """
    places = [(row_group, column) for row_group in row_groups for column in columns]
    named = splice(footer.plain, (it for at in places for it in _renamed(footer, *at, keys)))
    plain = _plain_footer(footer, named)
    algorithm, file_aad = _with_prefix(footer)
    if footer.key is None:
        raise KeyUnavailableError("the footer was not checked, and is not signed anew")
    material = keys.material(footer.key.key, is_footer_key=True)
    if footer.mode is not FooterMode.ENCRYPTED:
        plain = with_fields(plain, signing_fields(algorithm, material))
    crypto = crypto_metadata(algorithm, material)
    end = seal_footer(plain, footer.mode, key=footer.key, file_aad=file_aad, crypto=crypto)
    return end[-len(MAGIC) :] + end


def _renamed(footer: Footer, row_group: int, column: int, keys: _Found) -> Iterable[Splice]:
    """Return the splices that make a chunk name its key in ``keys``, if it has its own key."""
    cipher_of_column = footer.chunk_to_read(row_group, column).cipher
    crypto = footer.row_groups[row_group].columns[column].crypto_metadata
    if cipher_of_column is None or crypto is None or crypto.ENCRYPTION_WITH_COLUMN_KEY is None:
        return ()
    plain, start = footer.plain, int(footer.chunk_offsets[row_group, column])
    for field_id in (
        ColumnChunk.crypto_metadata.id,
        ColumnCryptoMetaData.ENCRYPTION_WITH_COLUMN_KEY.id,
    ):
        start = find_fields(plain, start).by_id[field_id].value
    material = keys.material(cipher_of_column.key.key, is_footer_key=False)
    new = {EncryptionWithColumnKey.key_metadata.id: binary(material)}
    return set_fields(plain, find_fields(plain, start), new)


def _with_prefix(footer: Footer) -> tuple[bytes, bytes]:
    """Return the file's algorithm with the caller's AAD prefix in it, and the file's AAD."""
    algorithm = footer.tail.algorithm
    if algorithm is None:
        raise FormatError("columns are encrypted, but the footer names no encryption algorithm")
    file_aad = file_aad_of(algorithm, footer.keys)
    # Prefix and unique part are only ever used joined.
    uses_ctr = algorithm.AES_GCM_CTR_V1 is not None
    return algorithm_of(file_aad, uses_ctr=uses_ctr), file_aad
