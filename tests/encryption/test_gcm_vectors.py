"""NIST's GCM vectors through Parquet's framing, and what attackers make of their tags.

The alterations are those that Wycheproof tries: single bits, the tag's halves and words, all of it,
another length.  ``make_gcm_vectors`` writes the vectors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from secure_bloom.encryption.cipher import (
    LENGTH_SIZE,
    NONCE_SIZE,
    TAG_SIZE,
    decrypt_gcm,
    encrypt_gcm,
    sign_footer,
    verify_footer,
)
from secure_bloom.errors import FormatError, IntegrityError, SecureBloomError

_DOCUMENT = json.loads(Path(__file__).with_name("gcm_vectors.json").read_text())
CASES: list[dict[str, Any]] = _DOCUMENT["cases"]
SOUND = [case for case in CASES if case["text"] is not None]
FAILING = [case for case in CASES if case["text"] is None]


def _framed(nonce: bytes, ciphertext: bytes, tag: bytes) -> bytes:
    body = nonce + ciphertext + tag
    return len(body).to_bytes(LENGTH_SIZE, "little") + body


def _parts(case: dict[str, Any]) -> tuple[bytes, ...]:
    return tuple(bytes.fromhex(case[name]) for name in ("key", "nonce", "ciphertext", "aad", "tag"))


def test_there_are_vectors_of_every_key_size_and_some_that_fail() -> None:
    assert {len(case["key"]) for case in SOUND} == {32, 48, 64}
    assert len(SOUND) > 100
    assert len(FAILING) > 100


@pytest.mark.parametrize("size", [32, 48, 64])
def test_sound_modules_decrypt_and_are_written_alike(size: int) -> None:
    for case in (case for case in SOUND if len(case["key"]) == size):
        key, nonce, ciphertext, aad, tag = _parts(case)
        module, text = _framed(nonce, ciphertext, tag), bytes.fromhex(case["text"])
        assert decrypt_gcm(module, key, aad) == text
        assert encrypt_gcm(text, key, aad, _nonce=nonce) == module


def test_modules_that_must_fail_do() -> None:
    for case in FAILING:
        key, nonce, ciphertext, aad, tag = _parts(case)
        with pytest.raises(IntegrityError):
            decrypt_gcm(_framed(nonce, ciphertext, tag), key, aad)


def _altered(tag: bytes) -> Iterator[bytes]:
    """Other tags, as Wycheproof alters them."""
    whole = int.from_bytes(tag, "big")
    for bit in range(8 * TAG_SIZE):
        yield (whole ^ 1 << bit).to_bytes(TAG_SIZE, "big")
    masks = ["ff" * 16, "00" * 8 + "ff" * 8, "ff" * 8 + "00" * 8, "80" * 16, "01" * 16]
    masks += ["00000080" * 4, "0000000000000080" * 2, "ff000000" * 4, "7f" * 16]
    for mask in masks:
        yield bytes(a ^ b for a, b in zip(tag, bytes.fromhex(mask), strict=True))
    yield from (bytes(TAG_SIZE), b"\xff" * TAG_SIZE, tag[::-1], tag[1:] + tag[:1])


@pytest.mark.parametrize("number", range(0, len(SOUND), 12))
def test_altered_tags_are_refused(number: int) -> None:
    key, nonce, ciphertext, aad, tag = _parts(SOUND[number])
    for other in _altered(tag):
        if other != tag:
            with pytest.raises(IntegrityError):
                decrypt_gcm(_framed(nonce, ciphertext, other), key, aad)


@pytest.mark.parametrize("number", range(0, len(SOUND), 12))
def test_other_lengths_are_refused(number: int) -> None:
    """Tags and nonces that are cut or longer, text moved into the AAD and back."""
    key, nonce, ciphertext, aad, tag = _parts(SOUND[number])
    others = [_framed(nonce, ciphertext, tag[:end]) for end in range(TAG_SIZE)]
    others += [_framed(nonce[:end], ciphertext, tag) for end in range(NONCE_SIZE)]
    others += [_framed(nonce + b"\0", ciphertext, tag), _framed(nonce, ciphertext, tag + b"\0")]
    others += [_framed(nonce, ciphertext + b"\0", tag), _framed(b"\0" + nonce, ciphertext, tag)]
    for other in others:
        with pytest.raises((IntegrityError, FormatError)):
            decrypt_gcm(other, key, aad)
    for more in (aad + b"\0", aad + ciphertext, aad[:-1] if aad else b"\1"):
        if more != aad:
            with pytest.raises(SecureBloomError):
                decrypt_gcm(_framed(nonce, ciphertext, tag), key, more)


def test_signatures_are_those_of_the_vectors_with_the_text_as_footer() -> None:
    """A signature is the tag of the footer encrypted, its AAD that of the footer module."""
    for case in SOUND[::12]:
        key, nonce, _, aad, _ = _parts(case)
        footer = bytes.fromhex(case["text"])
        signature = sign_footer(footer, key, aad, _nonce=nonce)
        verify_footer(footer, signature, key, aad)
        for other in _altered(signature[NONCE_SIZE:]):
            if other != signature[NONCE_SIZE:]:
                with pytest.raises(IntegrityError):
                    verify_footer(footer, signature[:NONCE_SIZE] + other, key, aad)
