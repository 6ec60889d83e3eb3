"""GCM vectors of NIST and of Wycheproof through Parquet's framing, and altered tags of both.

The alterations are those that Wycheproof tries: single bits, the tag's halves and words, all of it,
another length.  ``make_gcm_vectors`` writes NIST's vectors; Wycheproof's are chosen from the cases
with nonces of 12 bytes in ``testvectors_v1/aes_gcm_test.json``.
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
#: By the number of the case: key, nonce, AAD, text, ciphertext, tag.  39 and 40 are made so that
#: the tag has all bits or none; 41 is the first of those with altered tags, with the right one.
WYCHEPROOF = {
    1: (
        "5b9604fe14eadba931b0ccf34843dab9",
        "028318abc1824029138141a2",
        "",
        "001d0c231287c1182784554ca3a21908",
        "26073cc1d851beff176384dc9896d5ff",
        "0a3ea7a5487cb5f7d70fb6c58d038554",
    ),
    2: (
        "5b9604fe14eadba931b0ccf34843dab9",
        "921d2507fa8007b7bd067d34",
        "00112233445566778899aabbccddeeff",
        "001d0c231287c1182784554ca3a21908",
        "49d8b9783e911913d87094d1f63cc765",
        "1e348ba07cca2cf04c618cb4d43a5b92",
    ),
    3: (
        "aa023d0478dcb2b2312498293d9a9129",
        "0432bc49ac34412081288127",
        "aac39231129872a2",
        "2035af313d1346ab00154fea78322105",
        "eea945f3d0f98cc0fbab472a0cf24e87",
        "4bb9b4812519dadf9e1232016d068133",
    ),
    4: (
        "bedcfb5a011ebc84600fcb296c15af0d",
        "438a547a94ea88dce46c6c85",
        "",
        "",
        "",
        "960247ba5cde02e41a313c4c0136edc3",
    ),
    5: (
        "384ea416ac3c2f51a76e7d8226346d4e",
        "b30c084727ad1c592ac21d12",
        "",
        "35",
        "54",
        "7c1e4ae88bb27e5638343cb9fd3f6337",
    ),
    11: (
        "28ff3def08179311e2734c6d1c4e2871",
        "32bcb9b569e3b852d37c766a",
        "c3",
        "dfc61a20df8505b53e3cd59f25770d5018add3d6",
        "f58d453212c2c8a436e9283672f579f119122978",
        "5901131d0760c8715901d881fdfd3bc0",
    ),
    39: (
        "00112233445566778899aabbccddeeff",
        "000000000000000000000000",
        "",
        "ebd4a3e10cf6d41c50aeae007563b072",
        "f62d84d649e56bc8cfedc5d74a51e2f7",
        "ffffffffffffffffffffffffffffffff",
    ),
    40: (
        "00112233445566778899aabbccddeeff",
        "ffffffffffffffffffffffff",
        "",
        "d593c4d8224f1b100c35e4f6c4006543",
        "431f31e6840931fd95f94bf88296ff69",
        "00000000000000000000000000000000",
    ),
    41: (
        "000102030405060708090a0b0c0d0e0f",
        "505152535455565758595a5b",
        "",
        "202122232425262728292a2b2c2d2e2f",
        "eb156d081ed6b6b55f4612f021d87b39",
        "d8847dbc326a06e988c77ad3863e6083",
    ),
    116: (
        "0f112e59cdccd851c3b8e76c9f05a3b7c2e4feca5846afeb351c1cbcace82f04",
        "7147973339d86789a2c9a958",
        (
            "37128be45f0a7f329546e1492c3c9c2d2534d5b1f5147e49ab91221e7c3edea2"
            "1bbe47bfe3619437ce3c61e6e946c504f348296918219e51bf2c5598589cff"
        ),
        "102e5804dda1fb5d656077edb15cadb5d0bdee8c",
        "618ac626ae0e8d06c2fd2fb66be253dc26ed6e38",
        "d8d93ff975cb988f09174dcd439cb6a4",
    ),
    188: (
        "5d8e9c2222316c9ed5ff94513cc957436ae447a6e1a73a29",
        "0802ae86c75a73bf79561521",
        "5ca354a4cb8e4fc9798aa209ad4f739dc7c232fdd1f22584",
        "42b4439e1d2116f834b91c516a26299df279956b",
        "94d844d98b9467daa7e8dde7f4290037354d7fb2",
        "62196638590cef429d6b1d1a59839c02",
    ),
}
_NAMES = ("key", "nonce", "aad", "text", "ciphertext", "tag")
_OF_WYCHEPROOF = [dict(zip(_NAMES, case, strict=True)) for case in WYCHEPROOF.values()]
SOUND = [*_OF_WYCHEPROOF, *(case for case in CASES if case["text"] is not None)]
#: All of Wycheproof's and some of NIST's, by their places in ``SOUND``.
ALTERED = [*range(len(WYCHEPROOF)), *range(len(WYCHEPROOF), len(SOUND), 12)]
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


@pytest.mark.parametrize("number", ALTERED)
def test_altered_tags_are_refused(number: int) -> None:
    key, nonce, ciphertext, aad, tag = _parts(SOUND[number])
    for other in _altered(tag):
        if other != tag:
            with pytest.raises(IntegrityError):
                decrypt_gcm(_framed(nonce, ciphertext, other), key, aad)


@pytest.mark.parametrize("number", ALTERED)
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
