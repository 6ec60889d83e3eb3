"""Framing, AADs and signatures: known vectors, both ways, and every way to damage them."""

from __future__ import annotations

import mmap
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.encryption import cipher
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.errors import (
    FormatError,
    IntegrityError,
    KeyUnavailableError,
    SecureBloomError,
    UnsupportedFeatureError,
)

KEY = bytes(range(16))
FILE_AAD = b"tester" + bytes(8)
keys = st.sampled_from(cipher.KEY_SIZES).flatmap(
    lambda size: st.binary(min_size=size, max_size=size)
)
small = st.binary(max_size=300)

#: GCM test cases 1, 2, 4, 10 and 16 of McGrew and Viega, "The Galois/Counter Mode of Operation",
#: appendix B (those with 12-byte nonces): key, nonce, plaintext, AAD, ciphertext, tag.
_PLAIN = (
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
    "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
)
_AAD = "feedfacedeadbeeffeedfacedeadbeefabaddad2"
_NONCE = "cafebabefacedbaddecaf888"
GCM_VECTORS = {
    "1": ("00" * 16, "00" * 12, "", "", "", "58e2fccefa7e3061367f1d57a4e7455a"),
    "2": (
        "00" * 16,
        "00" * 12,
        "00" * 16,
        "",
        "0388dace60b6a392f328c2b971b2fe78",
        "ab6e47d42cec13bdf53a67b21257bddf",
    ),
    "4": (
        "feffe9928665731c6d6a8f9467308308",
        _NONCE,
        _PLAIN,
        _AAD,
        (
            "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
            "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091"
        ),
        "5bc94fbc3221a5db94fae95ae7121a47",
    ),
    "10": (
        "feffe9928665731c6d6a8f9467308308feffe9928665731c",
        _NONCE,
        _PLAIN,
        _AAD,
        (
            "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c"
            "7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710"
        ),
        "2519498e80f1478f37ba55bd6d27618c",
    ),
    "16": (
        "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
        _NONCE,
        _PLAIN,
        _AAD,
        (
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
            "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
        ),
        "76fc6ece0f4e1768cddf8853bb2d551b",
    ),
}
#: NIST SP 800-38A, F.5.1 has another counter start; RFC 3686 test vector 3 has a 12-byte prefix
#: (nonce | IV) and counter 1, as Parquet does: key, prefix, plaintext, ciphertext.
CTR_VECTOR = (
    "7691be035e5020a8ac6e618529f9a0dc",
    "00e0017b27777f3f4a1786f0",
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223",
    "c1cf48a89f2ffdd9cf4652e9efdb72d74540a42bde6d7836d59a5ceaaef3105325b2072f",
)


class TestGcm:
    @pytest.mark.parametrize("name", GCM_VECTORS)
    def test_known_vectors(self, name: str) -> None:
        key, nonce, plain, aad, text, tag = map(bytes.fromhex, GCM_VECTORS[name])
        module = cipher.encrypt_gcm(plain, key, aad, _nonce=nonce)
        assert module == (28 + len(plain)).to_bytes(4, "little") + nonce + text + tag
        assert cipher.decrypt_gcm(module, key, aad) == plain

    @given(small, keys, small)
    def test_both_ways(self, plain: bytes, key: bytes, aad: bytes) -> None:
        module = cipher.encrypt_gcm(plain, key, aad)
        assert cipher.frame_length(module) == len(module) == len(plain) + 32
        assert cipher.decrypt_gcm(module, key, aad) == plain

    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
    def test_any_kind_of_bytes(self, kind: type) -> None:
        module = cipher.encrypt_gcm(kind(b"page"), KEY, b"")
        assert cipher.decrypt_gcm(kind(module), KEY, b"") == b"page"

    @given(st.data())
    def test_any_flipped_bit_behind_the_length_is_found(self, data: st.DataObject) -> None:
        plain, aad = data.draw(small), data.draw(small)
        module = bytearray(cipher.encrypt_gcm(plain, KEY, aad))
        bit = data.draw(st.integers(32, len(module) * 8 - 1))
        module[bit // 8] ^= 1 << bit % 8
        with pytest.raises(IntegrityError):
            cipher.decrypt_gcm(module, KEY, aad)

    def test_every_flipped_bit_of_a_small_module_is_found(self) -> None:
        module = cipher.encrypt_gcm(b"ten bytes!", KEY, FILE_AAD)
        for bit in range(len(module) * 8):
            damaged = bytearray(module)
            damaged[bit // 8] ^= 1 << bit % 8
            # A length field that disagrees is no matter of the tag.
            with pytest.raises(FormatError if bit < 32 else IntegrityError):
                cipher.decrypt_gcm(damaged, KEY, FILE_AAD)

    def test_another_key_and_another_place_are_found(self) -> None:
        module = cipher.encrypt_gcm(b"page", KEY, b"here")
        for key, aad in ((bytes(16), b"here"), (KEY, b"there")):
            with pytest.raises(IntegrityError, match="wrong key or altered bytes"):
                cipher.decrypt_gcm(module, key, aad)

    def test_nonces_never_repeat(self) -> None:
        modules = {cipher.encrypt_gcm(b"", KEY, b"")[4:16] for _ in range(2000)}
        modules |= {cipher.encrypt_ctr(b"", KEY)[4:16] for _ in range(2000)}
        modules |= {cipher.sign_footer(b"", KEY, b"")[:12] for _ in range(2000)}
        assert len(modules) == 6000


class TestCtr:
    def test_known_vector(self) -> None:
        key, nonce, plain, text = map(bytes.fromhex, CTR_VECTOR)
        module = cipher.encrypt_ctr(plain, key, _nonce=nonce)
        assert module == (12 + len(plain)).to_bytes(4, "little") + nonce + text
        assert cipher.decrypt_ctr(module, key) == plain

    @given(small, keys)
    def test_both_ways(self, plain: bytes, key: bytes) -> None:
        module = cipher.encrypt_ctr(plain, key)
        assert cipher.frame_length(module) == len(module) == len(plain) + 16
        assert cipher.decrypt_ctr(memoryview(module), key) == plain


class TestFrames:
    def test_frames_that_follow_each_other(self) -> None:
        frames = [cipher.encrypt_gcm(bytes(n), KEY, b"") for n in (0, 7, 300)]
        buffer, offset = memoryview(b"".join(frames)), 0
        for frame in frames:
            assert cipher.frame_length(buffer, offset) == len(frame)
            offset += len(frame)
        with pytest.raises(FormatError, match="truncated"):
            cipher.frame_length(buffer, offset)

    @pytest.mark.parametrize(
        "buffer",
        [
            b"",
            bytes(3),
            bytes(4),
            (11).to_bytes(4, "little") + bytes(11),
            (29).to_bytes(4, "little") + bytes(28),
            b"\xff\xff\xff\xff" + bytes(40),
            b"\xff\xff\xff\x7f" + bytes(40),
        ],
    )
    def test_hostile_lengths(self, buffer: bytes) -> None:
        for call in (
            lambda: cipher.frame_length(buffer),
            lambda: cipher.decrypt_gcm(buffer, KEY, b""),
            lambda: cipher.decrypt_ctr(buffer, KEY),
        ):
            with pytest.raises(FormatError):
                call()

    def test_a_frame_ends_in_the_room_that_it_has(self) -> None:
        frame = cipher.encrypt_gcm(b"page", KEY, b"")
        # The whole frame, or no more than its length field, is at hand; the room decides.
        for buffer in (frame, frame[:4]):
            assert cipher.frame_length(buffer, room=len(frame)) == len(frame)
            with pytest.raises(FormatError, match="length field"):
                cipher.frame_length(buffer, room=len(frame) - 1)
        behind = b"other" + frame[:4]
        assert cipher.frame_length(behind, 5, room=5 + len(frame)) == len(frame)
        for cut in (frame[:3], b"other" + frame[:3]):
            with pytest.raises(FormatError, match="truncated"):
                cipher.frame_length(cut, len(cut) - 3, room=100)

    def test_a_frame_behind_others_ends_with_the_buffer(self) -> None:
        frame = cipher.encrypt_gcm(b"page", KEY, b"")
        buffer = bytes(40) + frame
        assert cipher.frame_length(buffer, 40) == len(frame)
        with pytest.raises(FormatError, match=f"and the {len(frame) - 5} bytes that remain"):
            cipher.frame_length(buffer[:-1], 40)

    def test_bytes_behind_the_frame_are_refused(self) -> None:
        with pytest.raises(FormatError, match="length field"):
            cipher.decrypt_gcm(cipher.encrypt_gcm(b"page", KEY, b"") + b"\0", KEY, b"")

    def test_a_frame_without_room_for_a_tag_is_no_gcm_module(self) -> None:
        with pytest.raises(FormatError, match="too short"):
            cipher.decrypt_gcm(cipher.encrypt_ctr(bytes(15), KEY), KEY, b"")

    @given(st.binary(max_size=80), st.integers(0, 90))
    def test_random_bytes_raise_nothing_unexpected(self, buffer: bytes, offset: int) -> None:
        try:
            end = offset + cipher.frame_length(buffer, offset)
        except FormatError:
            return
        assert offset + 16 <= end <= len(buffer)

    def test_two_gibibytes_are_refused_before_they_are_read(self) -> None:
        # Pages of an anonymous map cost nothing until they are touched.
        with mmap.mmap(-1, 2**31 - 12) as large, memoryview(large) as view:
            for call, most in (
                # One byte more than fits with nonce and tag, or with the nonce.
                (lambda: cipher.encrypt_gcm(view[: 2**31 - 28], KEY, b""), 2**31 - 1 - 28),
                (lambda: cipher.encrypt_ctr(view, KEY), 2**31 - 1 - 12),
            ):
                with pytest.raises(UnsupportedFeatureError) as error:
                    call()
                assert str(error.value) == (
                    f"a module has {most + 1} bytes, encryption takes at most {most}"
                )


def _gcm(body: int) -> bytes:
    """A frame of so many bytes behind its length field."""
    return body.to_bytes(4, "little") + bytes(body)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: cipher.frame_length(b"abc"),
            FormatError,
            "an encrypted module is truncated: 3 bytes remain, its length field has 4",
        ),
        (
            lambda: cipher.frame_length(b"abc", 5),
            FormatError,
            "an encrypted module is truncated: 0 bytes remain, its length field has 4",
        ),
        (
            lambda: cipher.frame_length(_gcm(11)),
            FormatError,
            (
                "the length field of an encrypted module is 11, it must lie between 12 and the 11 "
                "bytes that remain"
            ),
        ),
        (
            lambda: cipher.decrypt_gcm(_gcm(30) + b"!", KEY, b""),
            FormatError,
            "the length field of an encrypted module is 30, 31 bytes follow it",
        ),
        (
            lambda: cipher.decrypt_gcm(_gcm(27), KEY, b""),
            FormatError,
            "an encrypted module of 27 bytes is too short, nonce and tag alone have 28",
        ),
        (
            lambda: cipher.decrypt_gcm(_gcm(28), KEY, b""),
            IntegrityError,
            "an encrypted module does not authenticate: wrong key or altered bytes",
        ),
        (
            lambda: cipher.decrypt_footer(_gcm(28), KEY, b""),
            IntegrityError,
            "the footer does not authenticate: wrong key or altered bytes",
        ),
        (
            lambda: cipher.verify_footer(b"footer", bytes(28), KEY, b""),
            IntegrityError,
            "the footer signature does not match: wrong key or altered bytes",
        ),
        (
            lambda: cipher.verify_footer(b"footer", bytes(27), KEY, b""),
            FormatError,
            "the footer signature has 27 bytes, wanted 28",
        ),
        (
            lambda: cipher.module_aad(b"", ModuleType.COLUMN_META_DATA, -1, 0),
            FormatError,
            "the row group ordinal is -1, it counts from 0",
        ),
        (
            lambda: cipher.module_aad(b"", ModuleType.DATA_PAGE, 0, 0, 32768),
            UnsupportedFeatureError,
            "the page ordinal is 32768, an encrypted file has at most 32767",
        ),
        (
            lambda: cipher.check_key_size(bytes(15)),
            KeyUnavailableError,
            "a key has 15 bytes, AES takes 16, 24 or 32",
        ),
    ],
)
def test_an_error_says_what_was_found_and_wanted(
    call: Callable[[], object], error: type[SecureBloomError], message: str
) -> None:
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == message


class TestKeySizes:
    @pytest.mark.parametrize("size", [0, 1, 15, 17, 33, 64])
    def test_a_key_of_another_size_is_not_used(self, size: int) -> None:
        key = b"K" * size
        for call in (
            lambda: cipher.encrypt_gcm(b"", key, b""),
            lambda: cipher.decrypt_gcm(bytes([28, 0, 0, 0]) + bytes(28), key, b""),
            lambda: cipher.encrypt_ctr(b"", key),
            lambda: cipher.decrypt_ctr(bytes([12, 0, 0, 0]) + bytes(12), key),
            lambda: cipher.sign_footer(b"", key, b""),
        ):
            with pytest.raises(KeyUnavailableError, match=f"{size} bytes") as error:
                call()
            assert "KK" not in str(error.value)


class TestModuleAad:
    def test_the_layout(self) -> None:
        chunk = b"\x02\x01\x03\x00"
        aads = {
            kind: cipher.module_aad(FILE_AAD, kind, *ordinals)
            for kind, ordinals in {
                ModuleType.FOOTER: (),
                ModuleType.COLUMN_META_DATA: (258, 3),
                ModuleType.DATA_PAGE: (258, 3, 32767),
                ModuleType.DATA_PAGE_HEADER: (258, 3, 0),
                ModuleType.DICTIONARY_PAGE: (258, 3),
                ModuleType.BLOOM_FILTER_HEADER: (258, 3),
                ModuleType.BLOOM_FILTER_BITSET: (258, 3),
            }.items()
        }
        assert aads == {
            ModuleType.FOOTER: FILE_AAD + b"\x00",
            ModuleType.COLUMN_META_DATA: FILE_AAD + b"\x01" + chunk,
            ModuleType.DATA_PAGE: FILE_AAD + b"\x02" + chunk + b"\xff\x7f",
            ModuleType.DATA_PAGE_HEADER: FILE_AAD + b"\x04" + chunk + b"\x00\x00",
            ModuleType.DICTIONARY_PAGE: FILE_AAD + b"\x03" + chunk,
            ModuleType.BLOOM_FILTER_HEADER: FILE_AAD + b"\x08" + chunk,
            ModuleType.BLOOM_FILTER_BITSET: FILE_AAD + b"\x09" + chunk,
        }

    @pytest.mark.parametrize("place", [0, 1, 2])
    def test_ordinals_are_16_bit(self, place: int) -> None:
        for ordinal, error in ((32768, UnsupportedFeatureError), (-1, FormatError)):
            ordinals = [0, 0, 0]
            ordinals[place] = ordinal
            with pytest.raises(error, match=f"ordinal .*{ordinal}"):
                cipher.module_aad(FILE_AAD, ModuleType.DATA_PAGE, *ordinals)

    @pytest.mark.parametrize("kind", ModuleType)
    def test_every_type_takes_exactly_its_ordinals(self, kind: ModuleType) -> None:
        accepted = []
        for ordinals in ((), (0,), (0, 0), (0, 0, 0), (None, 0), (0, None, 0)):
            try:
                cipher.module_aad(b"", kind, *ordinals)
                accepted.append(ordinals)
            except ValueError:
                pass
        paged = kind in (ModuleType.DATA_PAGE, ModuleType.DATA_PAGE_HEADER)
        wanted = () if kind is ModuleType.FOOTER else (0, 0, 0) if paged else (0, 0)
        assert accepted == [wanted]

    def test_no_two_modules_of_a_file_share_one(self) -> None:
        aads = [cipher.module_aad(b"", ModuleType.FOOTER)]
        for kind in list(ModuleType)[1:]:
            pages = (0, 1, 2) if kind in (2, 4) else (None,)
            aads += [
                cipher.module_aad(b"", kind, group, column, page)
                for group in range(3)
                for column in range(3)
                for page in pages
            ]
        assert len(set(aads)) == len(aads)


class TestFooter:
    @given(small, keys, small)
    def test_it_is_a_module_of_its_own_type(
        self, footer: bytes, key: bytes, file_aad: bytes
    ) -> None:
        aad = cipher.module_aad(file_aad, ModuleType.FOOTER)
        assert cipher.decrypt_footer(cipher.encrypt_gcm(footer, key, aad), key, file_aad) == footer

    def test_one_that_was_sealed_without_aad_is_told_from_an_altered_one(self) -> None:
        sealed = cipher.encrypt_gcm(b"footer", KEY, b"")
        with pytest.raises(UnsupportedFeatureError) as caught:
            cipher.decrypt_footer(sealed, KEY, b"file")
        assert (caught.value.message, caught.value.hint) == (
            "the footer is encrypted without the AAD that the format prescribes",
            (
                "DuckDB (seen in 2.0.0) writes such files, and their modules can be exchanged "
                "unnoticed: write the file again with Spark or pyarrow"
            ),
        )
        altered = sealed[:-1] + bytes([sealed[-1] ^ 1])
        with pytest.raises(IntegrityError, match="the footer does not authenticate"):
            cipher.decrypt_footer(altered, KEY, b"file")


class TestSignature:
    @given(small, keys, small)
    def test_both_ways(self, footer: bytes, key: bytes, file_aad: bytes) -> None:
        signature = cipher.sign_footer(footer, key, file_aad)
        assert len(signature) == cipher.SIGNATURE_SIZE
        cipher.verify_footer(memoryview(footer), memoryview(signature), key, file_aad)

    def test_it_is_the_tag_of_the_encrypted_footer(self) -> None:
        nonce = bytes(range(12))
        module = cipher.encrypt_gcm(
            b"footer", KEY, cipher.module_aad(FILE_AAD, ModuleType.FOOTER), _nonce=nonce
        )
        signature = cipher.sign_footer(b"footer", KEY, FILE_AAD, _nonce=nonce)
        assert signature == nonce + module[-16:]

    def test_every_flipped_bit_is_found(self) -> None:
        footer, signature = b"footer", cipher.sign_footer(b"footer", KEY, FILE_AAD)
        signed = footer + signature
        for bit in range(len(signed) * 8):
            damaged = bytearray(signed)
            damaged[bit // 8] ^= 1 << bit % 8
            with pytest.raises(IntegrityError):
                cipher.verify_footer(damaged[:6], damaged[6:], KEY, FILE_AAD)

    @pytest.mark.parametrize("size", [0, 27, 29])
    def test_another_length_is_no_signature(self, size: int) -> None:
        with pytest.raises(FormatError, match=f"{size} bytes"):
            cipher.verify_footer(b"footer", bytes(size), KEY, FILE_AAD)


@given(small, keys, small)
def test_sealed_both_ways(plain: bytes, key: bytes, aad: bytes) -> None:
    sealed = cipher.seal(plain, key, aad)
    assert cipher.unseal(sealed, key, aad) == plain
    assert cipher.encrypt_gcm(plain, key, aad, _nonce=sealed[:12])[4:] == sealed


def test_a_prepared_key_opens_what_the_key_opens() -> None:
    module = cipher.encrypt_gcm(b"page", KEY, FILE_AAD)
    assert cipher.decrypt_gcm(module, cipher.prepare(KEY), FILE_AAD) == b"page"
    with pytest.raises(IntegrityError):
        cipher.decrypt_gcm(module, cipher.prepare(bytes(16)), FILE_AAD)


def test_a_mistake_of_the_caller_is_no_failed_tag() -> None:
    with pytest.raises(TypeError):
        cipher.unseal(bytes(40), bytes(16), "no bytes")
