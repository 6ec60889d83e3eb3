"""Seal a FileMetaData: make the bytes from the start of the footer to the end of the file.

The FileMetaData is in clear, signed, or encrypted.  ``opened`` does the reverse.  Encryption.md 5.4
and 5.5.
"""

from __future__ import annotations

from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption import cipher
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys import DataKey
from secure_bloom.errors import KeyUnavailableError
from secure_bloom.parquet.footer.locate import MAGIC, MAGIC_ENCRYPTED, with_trailer
from secure_bloom.parquet.footer.opened import Footer


def close_footer(footer: Footer, plain: bytes) -> bytes:
    """Return the bytes from the footer's start to the end of the file, for the new FileMetaData.

    ``plain`` is encrypted or signed again with the footer key and a fresh nonce.  Raises
    KeyUnavailableError for a footer that was read without its key.
    """
    return seal_footer(
        plain,
        footer.tail.mode,
        key=footer.key,
        file_aad=footer.file_aad,
        # It stays as it was read: the AAD of all pages is made of the aad_file_unique in it.
        crypto=footer.tail.clear,
    )


def seal_footer(
    plain: bytes, mode: FooterMode, *, key: DataKey | None, file_aad: bytes, crypto: bytes
) -> bytes:
    """Return a FileMetaData as the end of a file: in clear, signed, or encrypted after ``crypto``.

    ``crypto`` is the FileCryptoMetaData of an encrypted footer.  Raises KeyUnavailableError if the
    mode needs a key and ``key`` is None.
    """
    if mode is FooterMode.PLAINTEXT:
        return with_trailer(plain, MAGIC)
    if key is None:
        # Never in clear instead: nobody would notice that the protection is gone.
        raise KeyUnavailableError("the footer key is needed to write the footer back")
    if mode is FooterMode.SIGNED:
        signature = cipher.sign_footer(plain, key.key, file_aad)
        return with_trailer(plain + signature, MAGIC)
    aad = cipher.module_aad(file_aad, ModuleType.FOOTER)
    module = cipher.encrypt_gcm(plain, key.key, aad)
    return with_trailer(crypto + module, MAGIC_ENCRYPTED)
