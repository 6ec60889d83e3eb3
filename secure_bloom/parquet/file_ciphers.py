"""Find the keys and AADs for the modules of one file: its footer, and its column chunks.

file AAD      aad_prefix | aad_file_unique         Encryption.md 4.4.1
column key    the column's own, or the footer's    Encryption.md 5.3, ColumnCryptoMetaData
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from secure_bloom.encryption.cipher import LENGTH_SIZE, NONCE_SIZE, TAG_SIZE, ModuleType
from secure_bloom.encryption.file_keys import DataKey, FileKeys
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher, PreparedKey
from secure_bloom.encryption.kms import KeyMisfitError
from secure_bloom.errors import FormatError, KeyUnavailableError, UnsupportedFeatureError
from secure_bloom.parquet.structures.metadata import (
    AesGcmCtrV1,
    AesGcmV1,
    ColumnCryptoMetaData,
    EncryptionAlgorithm,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def file_aad_of(algorithm: EncryptionAlgorithm, keys: FileKeys) -> bytes:
    """Return ``aad_prefix | aad_file_unique``.

    Raises KeyUnavailableError if the supplied prefix is missing or is not the file's.
    """
    parameters = _parameters(algorithm)
    # Optional in the format, so a writer may have left it out.
    unique = parameters.aad_file_unique or b""
    stored, supplied = parameters.aad_prefix, keys.aad_prefix
    if stored is None and not parameters.supply_aad_prefix:
        if supplied is not None:
            # A file without a prefix may have been put in the place of one that had it.
            raise KeyUnavailableError(
                "an AAD prefix was supplied, the file was written without one",
                hint="leave the prefix out for this file; if it should have one, it was exchanged",
            )
        return unique
    if stored is None and supplied is None:
        raise KeyUnavailableError(
            "the file was written with an AAD prefix that it does not store",
            hint='supply it as "aad_prefix" in the keyring\'s "explicit" part',
        )
    # Whoever supplies a prefix says which file this must be (Encryption.md 4.4.1).
    if stored is not None and supplied is not None and stored != supplied:
        raise KeyUnavailableError("the AAD prefix supplied is not the one stored in the file")
    # In this order, as every module's AAD begins with it (Encryption.md 4.4).
    return (stored or supplied or b"") + unique


def open_run(
    column_cipher: ColumnCipher,
    data: bytes | memoryview,
    base: int,
    extents: Any,
    module_types: Sequence[ModuleType],
    ordinals: Sequence[int],
) -> list[bytes] | None:
    """Return the plaintexts of GCM modules of a column, or None if a module does not authenticate.

    Each extent holds modules of the given types, one after the other, of the row group with the
    given ordinal.  Extents are offsets in the file; ``base`` is the offset of ``data``. Decrypt the
    modules one by one to find out which is wrong.
    """
    bodies = module_bodies(data, base, extents.tolist(), len(module_types))
    if bodies is None:
        return None
    return column_cipher.open_bodies(data, bodies, module_types, ordinals)


def bounds_of(parts: Sequence[bytes]) -> NDArray[np.int64]:
    """Return the start of each part in the joined parts, and the end of the last one."""
    # Imported here: filters are probed without numpy.
    import numpy as np

    # numpy's own sum takes three times as long for the dozen modules of a file.
    return np.array([*accumulate(map(len, parts), initial=0)], np.int64)


def module_bodies(
    data: bytes | memoryview, base: int, extents: Sequence[Sequence[int]], each: int
) -> list[tuple[int, int]] | None:
    """Return start and end of the body (nonce, ciphertext and tag) of each GCM module.

    Return None unless each extent is exactly ``each`` modules.  Encryption.md 5.1.
    """
    bodies = []
    for start, end in extents:
        at, last = start - base, end - base
        if at < 0 or last > len(data):
            return None
        for _ in range(each):
            if last - at < LENGTH_SIZE:
                return None
            body = at + LENGTH_SIZE
            at = body + int.from_bytes(data[at:body], "little")
            if at - body < NONCE_SIZE + TAG_SIZE:
                return None
            bodies.append((body, at))
        if at != last:
            return None
    return bodies


def _parameters(algorithm: EncryptionAlgorithm) -> AesGcmV1 | AesGcmCtrV1:
    parameters = algorithm.AES_GCM_V1 or algorithm.AES_GCM_CTR_V1
    if parameters is None:
        raise UnsupportedFeatureError(f"encryption algorithm {algorithm.member()} is not known")
    return parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class FooterKey:
    """The key of a footer, and the AAD of its file."""

    key: DataKey
    file_aad: bytes


@dataclass(slots=True, kw_only=True, eq=False)
class FileCiphers:
    """Makes the cipher of any column chunk of a file. Looks each key up once.

    ``footer`` is None if the footer key is not available or was not needed. ``key_metadata`` is the
    footer's.  A missing key is remembered too, because asking a KMS again takes long.
    """

    algorithm: EncryptionAlgorithm | None
    footer: FooterKey | None
    key_metadata: bytes | None
    keys: FileKeys
    _known: dict[tuple[str, bytes | None], PreparedKey | KeyUnavailableError] = field(
        default_factory=dict, repr=False
    )

    def column_cipher(
        self, crypto: ColumnCryptoMetaData | None, name: str, row_group_ordinal: int, column: int
    ) -> ColumnCipher | None:
        """Return the cipher of the chunk of column ``name``, or None if it is not encrypted.

        Raises KeyUnavailableError, FormatError, or UnsupportedFeatureError.
        """
        if crypto is None:
            return None
        # Someone may have cut the algorithm out of a footer in clear, to have the column read as
        # plain.
        if self.algorithm is None:
            raise FormatError(
                "the column is encrypted, but the footer names no encryption algorithm"
            )
        prepared, footer = self._prepared_key(crypto, name), self.footer
        return prepared.column_cipher(
            # A column may be read without the footer key; the AAD needs no key.
            footer.file_aad if footer is not None else file_aad_of(self.algorithm, self.keys),
            row_group_ordinal,
            column,
            uses_ctr=self.algorithm.AES_GCM_CTR_V1 is not None,
        )

    def lacks_key(self, crypto: ColumnCryptoMetaData | None, name: str) -> bool:
        """Return whether the key of a chunk of column ``name`` is not available.

        Raises KeyMisfitError for a key that is available and does not fit.
        """
        if crypto is None:
            return False
        try:
            self._prepared_key(crypto, name)
        except KeyMisfitError:
            raise
        except KeyUnavailableError:
            return True
        return False

    def _prepared_key(self, crypto: ColumnCryptoMetaData, name: str) -> PreparedKey:
        own = crypto.ENCRYPTION_WITH_COLUMN_KEY
        if own is None and crypto.ENCRYPTION_WITH_FOOTER_KEY is None:
            raise UnsupportedFeatureError(f"column encryption {crypto.member()} is not known")
        # No column has an empty name: that of the footer key.
        wanted = (name, own.key_metadata) if own is not None else ("", self.key_metadata)
        # Keys are kept by their metadata, too, because row groups of one file can be under
        # different keys of a column.
        known = self._known.get(wanted)
        if known is None:
            known = self._known[wanted] = self._found(*wanted)
        if isinstance(known, KeyUnavailableError):
            # An exception of its own each time: the one raised gets path, row group and column.
            raise type(known)(known.message, hint=known.hint) from known.__cause__
        return known

    def _found(self, name: str, key_metadata: bytes | None) -> PreparedKey | KeyUnavailableError:
        try:
            if name:
                key = self.keys.column_key(name, key_metadata)
            else:
                key = self.footer.key if self.footer else self.keys.footer_key(key_metadata)
            return PreparedKey.of(key)
        except KeyUnavailableError as error:
            return error
