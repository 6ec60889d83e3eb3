"""Encrypt and decrypt the modules of one column chunk.

Encryption.md 4.4 (AAD) and 5.1 (modules).  A column chunk in clear has no ColumnCipher.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from secure_bloom.encryption import cipher
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys import DataKey
from secure_bloom.errors import IntegrityError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

#: Page bodies: the only modules that AES_GCM_CTR_V1 encrypts without a tag.
_PAGE_BODIES = {ModuleType.DATA_PAGE, ModuleType.DICTIONARY_PAGE}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedKey:
    """A key, and the same key expanded once for AES-GCM. A file has many modules under few keys."""

    key: DataKey
    gcm: AESGCM = field(repr=False)

    @classmethod
    def of(cls, key: DataKey) -> PreparedKey:
        """Return ``key`` with its expanded form."""
        return cls(key=key, gcm=cipher.prepare(key.key))

    def column_cipher(
        self, file_aad: bytes, row_group_ordinal: int, column_ordinal: int, *, uses_ctr: bool
    ) -> ColumnCipher:
        """Return the cipher of the column chunk at these ordinals of a file."""
        return ColumnCipher(
            key=self.key,
            gcm=self.gcm,
            file_aad=file_aad,
            uses_ctr=uses_ctr,
            row_group_ordinal=row_group_ordinal,
            column_ordinal=column_ordinal,
        )


# It is never changed after it is made, but it is not a frozen dataclass.  A table has thousands of
# these, and making a frozen one takes longer than decrypting a small module with it.
@dataclass(slots=True, kw_only=True)
class ColumnCipher:
    """Encrypts and decrypts the modules of the column chunk at two ordinals of one file.

    ``gcm`` is the key as :func:`.cipher.prepare` returned it, or None if it was not prepared.
    """

    key: DataKey
    # It takes no part in comparisons: two prepared keys are never equal, even when their bytes are.
    gcm: AESGCM | None = field(default=None, repr=False, compare=False)
    file_aad: bytes
    uses_ctr: bool
    row_group_ordinal: int
    column_ordinal: int

    def at(self, row_group_ordinal: int) -> ColumnCipher:
        """Return the cipher of the same column in another row group, if both have the same key."""
        return ColumnCipher(
            key=self.key,
            gcm=self.gcm,
            file_aad=self.file_aad,
            uses_ctr=self.uses_ctr,
            row_group_ordinal=row_group_ordinal,
            column_ordinal=self.column_ordinal,
        )

    @property
    def page_overhead(self) -> int:
        """Number of bytes that encryption adds to a page's body."""
        # In AES_GCM_CTR_V1 only page bodies have no tag; all other modules have one.
        tag = 0 if self.uses_ctr else cipher.TAG_SIZE
        return cipher.LENGTH_SIZE + cipher.NONCE_SIZE + tag

    def decrypt(
        self, module_type: ModuleType, module: bytes | memoryview, *, page: int | None = None
    ) -> bytes:
        """Return the plaintext of one framed module. Raises IntegrityError when its tag fails."""
        # There is no tag: in AES_GCM_CTR_V1 altered page bodies go unnoticed.  Encryption.md 4.2.2.
        if self.uses_ctr and module_type in _PAGE_BODIES:
            return cipher.decrypt_ctr(module, self.key.key)
        gcm = self.gcm or cipher.prepare(self.key.key)
        return cipher.decrypt_gcm(module, gcm, self._aad(module_type, page))

    def open_bodies(
        self,
        data: bytes | memoryview,
        bodies: Iterable[tuple[int, int]],
        module_types: Sequence[ModuleType],
        ordinals: Sequence[int],
    ) -> list[bytes] | None:
        """Return the plaintexts of many GCM modules of this column.

        Return None if a tag does not match. ``bodies`` has the start and end of each module in
        ``data``, without its length field. For each row group in ``ordinals`` there is one module
        of each type in ``module_types``.
        """
        suffixes = cipher.aad_suffixes(tuple(module_types), tuple(ordinals), self.column_ordinal)
        aads = [self.file_aad + suffix for suffix in suffixes]
        gcm = self.gcm or cipher.prepare(self.key.key)
        return cipher.open_bodies(gcm, memoryview(data), bodies, aads)

    def open_pages(
        self,
        module_type: ModuleType,
        data: memoryview,
        bodies: Iterable[tuple[int, int]],
        ordinals: range,
    ) -> list[bytes]:
        """Return the plaintexts of the modules of consecutive data pages.

        ``bodies`` has the start and end of each module in ``data``, without its length field.
        Raises IntegrityError if a tag does not match.
        """
        if self.uses_ctr and module_type in _PAGE_BODIES:
            return cipher.open_ctr_bodies(self.key.key, data, bodies)
        aads = cipher.page_aads(
            self.file_aad, module_type, self.row_group_ordinal, self.column_ordinal, ordinals
        )
        found = cipher.open_bodies(self.gcm or cipher.prepare(self.key.key), data, bodies, aads)
        if found is None:
            raise IntegrityError(cipher.WRONG_TAG)
        return found

    def encrypt(
        self, module_type: ModuleType, plaintext: cipher.BytesLike, *, page: int | None = None
    ) -> bytes:
        """Return one framed module with a fresh nonce; the mirror of :meth:`decrypt`."""
        if self.uses_ctr and module_type in _PAGE_BODIES:
            return cipher.encrypt_ctr(plaintext, self.key.key)
        return cipher.encrypt_gcm(plaintext, self.gcm or self.key.key, self._aad(module_type, page))

    def _aad(self, module_type: ModuleType, page: int | None) -> bytes:
        return cipher.module_aad(
            self.file_aad, module_type, self.row_group_ordinal, self.column_ordinal, page
        )
