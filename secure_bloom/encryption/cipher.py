"""AES module framing: length (4, LE) | nonce (12) | ciphertext | tag (16).  Encryption.md 4 and 5.

The length counts the bytes after it.  GCM modules end in a tag; CTR modules (page bodies of
AES_GCM_CTR_V1) have none.  Bytes in, bytes out: the callers choose key and ordinals.
"""

from __future__ import annotations

import enum
import functools
import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from secure_bloom.errors import (
    FormatError,
    IntegrityError,
    KeyUnavailableError,
    SecureBloomError,
    UnsupportedFeatureError,
)

# Imported where a key is used: files in clear need none of it.
if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.ciphers.modes import CTR

BytesLike = bytes | bytearray | memoryview

LENGTH_SIZE = 4
NONCE_SIZE = 12
TAG_SIZE = 16
KEY_SIZES = (16, 24, 32)
#: The signature after a plaintext footer: nonce | tag.  Encryption.md 5.5.
SIGNATURE_SIZE = NONCE_SIZE + TAG_SIZE

#: What an IntegrityError says of a module whose tag does not match.
WRONG_TAG = "an encrypted module does not authenticate: wrong key or altered bytes"
#: Ordinals are signed 16-bit integers.  Encryption.md 4.4.2.
_MAX_ORDINAL = 2**15 - 1
#: Parquet readers hold the length field in a signed int, and so does OpenSSL.
_MAX_BODY = 2**31 - 1
#: The block counter of CTR starts at 1.  Encryption.md 4.2.2.
_FIRST_COUNTER = (1).to_bytes(4, "big")


class ModuleType(enum.IntEnum):
    """The kind of an encrypted module, as one byte of its AAD. Encryption.md 4.4.2."""

    FOOTER = 0
    COLUMN_META_DATA = 1
    DATA_PAGE = 2
    DICTIONARY_PAGE = 3
    DATA_PAGE_HEADER = 4
    DICTIONARY_PAGE_HEADER = 5
    COLUMN_INDEX = 6
    OFFSET_INDEX = 7
    BLOOM_FILTER_HEADER = 8
    BLOOM_FILTER_BITSET = 9


_CHUNK_ORDINALS = ("row_group", "column")
_PAGE_ORDINALS = ("row_group", "column", "page")
#: The ordinals in the AAD of each type, in their order.  Encryption.md 4.4.2.
_ORDINALS: dict[ModuleType, tuple[str, ...]] = {
    ModuleType.FOOTER: (),
    ModuleType.COLUMN_META_DATA: _CHUNK_ORDINALS,
    ModuleType.DATA_PAGE: _PAGE_ORDINALS,
    # A chunk has at most one dictionary page, so it takes no page ordinal.
    ModuleType.DICTIONARY_PAGE: _CHUNK_ORDINALS,
    ModuleType.DATA_PAGE_HEADER: _PAGE_ORDINALS,
    ModuleType.DICTIONARY_PAGE_HEADER: _CHUNK_ORDINALS,
    ModuleType.COLUMN_INDEX: _CHUNK_ORDINALS,
    ModuleType.OFFSET_INDEX: _CHUNK_ORDINALS,
    ModuleType.BLOOM_FILTER_HEADER: _CHUNK_ORDINALS,
    ModuleType.BLOOM_FILTER_BITSET: _CHUNK_ORDINALS,
}

#: Packs a module type with 0, 1, 2 or 3 ordinals.
_SUFFIXES = [struct.Struct(f"<B{count}h") for count in range(4)]


def module_aad(
    file_aad: bytes,
    module_type: ModuleType,
    row_group: int | None = None,
    column: int | None = None,
    page: int | None = None,
) -> bytes:
    """Return the AAD of one module: file_aad | type | ordinals (int16 LE each). Encryption.md 4.4.

    ``file_aad`` is ``aad_prefix | aad_file_unique``.  Raises UnsupportedFeatureError for an ordinal
    past 32767, and FormatError for a negative ordinal. Raises ValueError if the caller passes other
    ordinals than the module type takes.
    """
    # The cache hashes a plain number faster than a member of an enumeration.
    return bytes(file_aad) + _suffix(+module_type, row_group, column, page)


@functools.lru_cache(maxsize=1 << 15)  # the files of a table have the same ordinals
def _suffix(number: int, row_group: int | None, column: int | None, page: int | None) -> bytes:
    """Return the part of the AAD that follows ``file_aad``."""
    module_type = ModuleType(number)
    ordinals = [value for value in (row_group, column, page) if value is not None]
    names = _ORDINALS[module_type]
    # Ordinals are given in the order of the names, so they are right if there are as many of them
    # as of names, and none is missing before another.  An AAD with a missing or an extra ordinal
    # could equal that of another module, and modules could then be exchanged.
    if len(ordinals) != len(names) or ordinals != [row_group, column, page][: len(names)]:
        raise ValueError(f"a {module_type.name} module takes the ordinals {names}")
    for name, ordinal in zip(names, ordinals, strict=True):
        # A larger ordinal would have to wrap around, and two modules of a file would share one AAD.
        if not 0 <= ordinal <= _MAX_ORDINAL:
            raise _bad_ordinal(name.replace("_", " "), ordinal)
    return _SUFFIXES[len(ordinals)].pack(module_type, *ordinals)


@functools.lru_cache(maxsize=1024)
def aad_suffixes(
    module_types: tuple[ModuleType, ...], row_groups: tuple[int, ...], column: int
) -> tuple[bytes, ...]:
    """Return the part of the AAD after ``file_aad`` of each module of a column, per row group."""
    return tuple(
        _suffix(+module_type, row_group, column, None)
        for row_group in row_groups
        for module_type in module_types
    )


def _bad_ordinal(name: str, ordinal: int) -> SecureBloomError:
    if ordinal < 0:
        return FormatError(f"the {name} ordinal is {ordinal}, it counts from 0")
    return UnsupportedFeatureError(
        f"the {name} ordinal is {ordinal}, an encrypted file has at most {_MAX_ORDINAL}"
    )


def frame_length(buffer: BytesLike, offset: int = 0, *, room: int | None = None) -> int:
    """Return the number of bytes of the whole frame (4 + length field) that starts at ``offset``.

    Raises FormatError when the frame is shorter than its nonce or does not end inside ``buffer``.
    With ``room``, ``buffer`` holds only the beginning of ``room`` bytes, and the frame must end
    inside these bytes.
    """
    remaining = (len(buffer) if room is None else room) - offset
    # Bytes that are not in the buffer would be read as a shorter, wrong number.
    if min(remaining, len(buffer) - offset) < LENGTH_SIZE:
        raise FormatError(
            f"an encrypted module is truncated: {max(remaining, 0)} bytes remain, "
            f"its length field has {LENGTH_SIZE}"
        )
    length = int.from_bytes(buffer[offset : offset + LENGTH_SIZE], "little")
    # The lower bound is the nonce alone: a CTR module may be empty.  GCM checks for its tag later.
    if not NONCE_SIZE <= length <= remaining - LENGTH_SIZE:
        raise FormatError(
            f"the length field of an encrypted module is {length}, it must lie between "
            f"{NONCE_SIZE} and the {remaining - LENGTH_SIZE} bytes that remain"
        )
    return LENGTH_SIZE + length


def encrypt_gcm(
    plaintext: BytesLike, key: bytes | AESGCM, aad: bytes, *, _nonce: bytes | None = None
) -> bytes:
    """Return one framed GCM module under a fresh nonce. Encryption.md 5.1.

    Raises KeyUnavailableError for a key of a wrong size, UnsupportedFeatureError for more than 2
    GiB.
    """
    return _frame(seal(plaintext, key, aad, _nonce=_nonce))


def decrypt_gcm(module: BytesLike, key: bytes | AESGCM, aad: bytes) -> bytes:
    """Return the plaintext of ``module``, exactly one framed GCM module.

    ``key`` may be a key from :func:`prepare`.  Raises FormatError when ``module`` is not a whole
    frame, and IntegrityError when its tag does not match.
    """
    return _opened(_unframe(module), key, aad)


def decrypt_footer(module: BytesLike, key: bytes | AESGCM, file_aad: bytes) -> bytes:
    """Return the plaintext of an encrypted footer. Raises the errors of :func:`decrypt_gcm`.

    Raises UnsupportedFeatureError for a footer that was encrypted without an AAD. The footer itself
    is authentic, but the modules of its file could be exchanged for each other unnoticed.
    """
    try:
        return decrypt_gcm(module, key, module_aad(file_aad, ModuleType.FOOTER))
    except IntegrityError:
        with suppress(IntegrityError):
            # Tried only to name the cause.  The plaintext is dropped: a footer without AAD may have
            # been taken from any file under this key.
            decrypt_gcm(module, key, b"")
            raise UnsupportedFeatureError(
                "the footer is encrypted without the AAD that the format prescribes",
                hint="DuckDB (seen in 2.0.0) writes such files, and their modules can be exchanged "
                "unnoticed: write the file again with Spark or pyarrow",
            ) from None
        raise IntegrityError(
            "the footer does not authenticate: wrong key or altered bytes"
        ) from None


def open_bodies(
    gcm: AESGCM, data: memoryview, bodies: Iterable[tuple[int, int]], aads: Iterable[bytes]
) -> list[bytes] | None:
    """Return the plaintexts of modules without their length fields.

    Return None if a tag does not match.
    """
    try:
        return [
            gcm.decrypt(data[start : start + NONCE_SIZE], data[start + NONCE_SIZE : end], aad)
            for (start, end), aad in zip(bodies, aads, strict=True)
        ]
    except Exception as exc:
        from cryptography.exceptions import InvalidTag

        if not isinstance(exc, InvalidTag):
            raise
        return None


def page_aads(
    file_aad: bytes, module_type: ModuleType, row_group: int, column: int, pages: range
) -> list[bytes]:
    """Return the AAD of the module of each page, as :func:`module_aad` makes it."""
    # The last ordinal is the largest: if it is within bounds, so are the others.
    last = module_aad(file_aad, module_type, row_group, column, pages[-1]) if pages else b""
    every = last[:-2]
    return [every + page.to_bytes(2, "little") for page in pages]


def encrypt_ctr(plaintext: BytesLike, key: bytes, *, _nonce: bytes | None = None) -> bytes:
    """Return one framed CTR module under a fresh nonce: no tag, no AAD.  Encryption.md 4.2.2."""
    # No AAD either: two page bodies of one length may be exchanged unnoticed.  Only their headers,
    # which are GCM in both algorithms, are bound to their places (4.2.2).
    _check_body(plaintext, NONCE_SIZE)
    # Two modules under one key and nonce would have one key stream: their XOR is that of the texts.
    nonce = _fresh_nonce() if _nonce is None else _nonce
    encryptor = _ctr(key, nonce).encryptor()
    return _frame(nonce + encryptor.update(plaintext) + encryptor.finalize())


def decrypt_ctr(module: BytesLike, key: bytes) -> bytes:
    """Return the plaintext of ``module``, exactly one framed CTR module.

    CTR has no tag, so altered bytes go unnoticed.
    """
    body = _unframe(module)
    decryptor = _ctr(key, bytes(body[:NONCE_SIZE])).decryptor()
    return decryptor.update(body[NONCE_SIZE:]) + decryptor.finalize()


def open_ctr_bodies(key: bytes, data: memoryview, bodies: Iterable[tuple[int, int]]) -> list[bytes]:
    """Return the plaintexts of CTR modules without their length fields."""
    decryptor, found = _ctr(key, bytes(NONCE_SIZE)).decryptor(), []
    for start, end in bodies:
        # Expanding the key for each of many small modules would take longer than decrypting them.
        decryptor.reset_nonce(bytes(data[start : start + NONCE_SIZE]) + _FIRST_COUNTER)
        found.append(decryptor.update(data[start + NONCE_SIZE : end]))
    return found


def sign_footer(
    footer: BytesLike, key: bytes | AESGCM, file_aad: bytes, *, _nonce: bytes | None = None
) -> bytes:
    """Return the signature of a plaintext footer: nonce | tag, 28 bytes.  Encryption.md 5.5."""
    sealed = seal(footer, key, module_aad(file_aad, ModuleType.FOOTER), _nonce=_nonce)
    # The ciphertext is dropped, because the footer itself is in clear before its signature.
    return sealed[:NONCE_SIZE] + sealed[-TAG_SIZE:]


def verify_footer(
    footer: BytesLike, signature: BytesLike, key: bytes | AESGCM, file_aad: bytes
) -> None:
    """Raise IntegrityError unless ``signature`` is the signature of ``footer``, the bytes as read.

    Raises FormatError when the signature does not have 28 bytes.
    """
    if len(signature) != SIGNATURE_SIZE:
        raise FormatError(
            f"the footer signature has {len(signature)} bytes, wanted {SIGNATURE_SIZE}"
        )
    # Imported here: it loads OpenSSL's hashes, and most runs meet no signed footer.
    import hmac

    # The way to check is to encrypt the footer again with the stored nonce and to compare the tags
    # (5.5).  The nonce is used twice, which is safe here.  For the signed bytes the result is the
    # signer's own.  For altered bytes the ciphertext never leaves this function.  Compared in
    # constant time: the time must not show how much of a forged tag was right.
    nonce = bytes(signature[:NONCE_SIZE])
    if not hmac.compare_digest(sign_footer(footer, key, file_aad, _nonce=nonce), signature):
        raise IntegrityError("the footer signature does not match: wrong key or altered bytes")


def seal(
    plaintext: BytesLike, key: bytes | AESGCM, aad: bytes, *, _nonce: bytes | None = None
) -> bytes:
    """Return nonce | ciphertext | tag without a length field, as in frames and wrapped keys."""
    _check_body(plaintext, NONCE_SIZE + TAG_SIZE)
    nonce = _fresh_nonce() if _nonce is None else _nonce
    gcm = prepare(key) if isinstance(key, bytes) else key
    # The library puts the tag after the ciphertext, which is the order of the format (5.1).
    return nonce + gcm.encrypt(nonce, plaintext, aad)


def unseal(sealed: BytesLike, key: bytes | AESGCM, aad: bytes) -> bytes:
    """Return the plaintext of nonce | ciphertext | tag.

    Raises FormatError when ``sealed`` is shorter than nonce and tag, IntegrityError when the tag
    does not match.
    """
    return _opened(memoryview(sealed), key, aad)


def _opened(sealed: memoryview, key: bytes | AESGCM, aad: bytes) -> bytes:
    if len(sealed) < NONCE_SIZE + TAG_SIZE:
        raise FormatError(
            f"an encrypted module of {len(sealed)} bytes is too short, nonce and tag "
            f"alone have {NONCE_SIZE + TAG_SIZE}"
        )
    gcm = prepare(key) if isinstance(key, bytes) else key
    # The library compares the tag before it gives out a byte (SP 800-38D 7.2).
    try:
        return gcm.decrypt(sealed[:NONCE_SIZE], sealed[NONCE_SIZE:], aad)
    except Exception as exc:
        # Named only now: its module costs every short run, and tags rarely fail.
        from cryptography.exceptions import InvalidTag

        if not isinstance(exc, InvalidTag):
            raise
        raise IntegrityError(WRONG_TAG) from exc


def prepare(key: bytes) -> AESGCM:
    """Return the key expanded for AES-GCM, to be used for many modules.

    Raises KeyUnavailableError for a wrong size.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    check_key_size(key)
    return AESGCM(key)


def check_key_size(key: bytes) -> None:
    """Raise KeyUnavailableError unless ``key`` has 16, 24 or 32 bytes, the sizes of AES."""
    if len(key) not in KEY_SIZES:
        raise KeyUnavailableError(f"a key has {len(key)} bytes, AES takes 16, 24 or 32")


def _fresh_nonce() -> bytes:
    # A fresh random nonce for every module: one that repeats under a key lets anyone who sees both
    # ciphertexts forge tags (SP 800-38D 8.3).  With 96 random bits a key may serve 2^32 modules
    # before a repetition becomes more likely than 2^-32 (SP 800-38D 8.2.2 and 8.3).
    return os.urandom(NONCE_SIZE)


def _ctr(key: bytes, nonce: bytes) -> Cipher[CTR]:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import CTR

    check_key_size(key)
    # The IV of CTR is nonce | counter.  The counter has 4 bytes, so a module ends at 64 GiB; the
    # length field ends before that.
    return Cipher(AES(key), CTR(nonce + _FIRST_COUNTER))


def _check_body(plaintext: BytesLike, overhead: int) -> None:
    if len(plaintext) + overhead > _MAX_BODY:
        raise UnsupportedFeatureError(
            f"a module has {len(plaintext)} bytes, encryption takes at most {_MAX_BODY - overhead}"
        )


def _frame(body: bytes) -> bytes:
    return len(body).to_bytes(LENGTH_SIZE, "little") + body


def _unframe(module: BytesLike) -> memoryview:
    view = memoryview(module)
    # The good case is tested here, without a call: a scan opens millions of modules.
    stated = int.from_bytes(view[:LENGTH_SIZE], "little")
    # Bytes after the frame are refused, because no tag covers them.
    if stated < NONCE_SIZE or LENGTH_SIZE + stated != len(view):
        length = frame_length(module)
        raise FormatError(
            f"the length field of an encrypted module is {length - LENGTH_SIZE}, "
            f"{len(module) - LENGTH_SIZE} bytes follow it"
        )
    return view[LENGTH_SIZE:]
