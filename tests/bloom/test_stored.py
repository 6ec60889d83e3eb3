"""A filter and its two modules: both ways, and every way in which they can be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.TProtocol import TType

import secure_bloom as sb
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.stored import decode_bloom_filter, encode_bloom_filter, read_bloom_filter
from secure_bloom.encryption import cipher
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys import DataKey
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.encryption.kms import Keyring
from secure_bloom.errors import (
    FormatError,
    IntegrityError,
    KeyUnavailableError,
    SecureBloomError,
    UnsupportedFeatureError,
)
from secure_bloom.storage import CountedFile
from testing.project import CORPUS, NO_CORPUS
from testing.surgery import (
    assert_tells_no_secret,
    edit_column,
    filter_of,
    filter_place,
    flip,
    opened,
)
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, write
from testing.thrift import trees
from testing.thrift.metadata import (
    BloomFilterAlgorithm,
    BloomFilterCompression,
    BloomFilterHash,
    BloomFilterHeader,
)
from testing.thrift.views import Empty

#: Too little for any of the chunks, so that all filters come out as large.
SAME_SIZE = sb.BloomFilterOptions(fpp=0.0001, max_bytes=128)
FUTURE = trees.Struct({2: (12, trees.Struct())})


def _cipher(**changes: object) -> ColumnCipher:
    fields = {
        "key": DataKey(key=b"k" * 16, name="k_pii"),
        "file_aad": b"file",
        "uses_ctr": False,
        "row_group_ordinal": 1,
        "column_ordinal": 2,
    }
    return ColumnCipher(**{**fields, **changes})


def _filter(blocks: int = 4) -> SplitBlockBloomFilter:
    bloom_filter = SplitBlockBloomFilter(blocks)
    for i in range(10 * blocks):
        bloom_filter.insert(str(i).encode())
    return bloom_filter


def _header(num_bytes: int, **members: object) -> bytes:
    return BloomFilterHeader.of(
        **{
            "numBytes": num_bytes,
            "algorithm": BloomFilterAlgorithm.of(BLOCK=Empty()),
            "hash": BloomFilterHash.of(XXHASH=Empty()),
            "compression": BloomFilterCompression.of(UNCOMPRESSED=Empty()),
            **members,
        }
    ).encode()


@pytest.mark.parametrize("uses_ctr", [None, False, True], ids=["plain", "GCM", "CTR"])
@pytest.mark.parametrize("blocks", [1, 3, 64])
def test_a_filter_comes_back_from_its_modules(uses_ctr: bool | None, blocks: int) -> None:
    column_cipher = None if uses_ctr is None else _cipher(uses_ctr=uses_ctr)
    stored = encode_bloom_filter(_filter(blocks), column_cipher)
    assert decode_bloom_filter(stored, column_cipher) == _filter(blocks)


def test_the_plain_form_is_header_and_bitset() -> None:
    assert encode_bloom_filter(_filter(), None) == _header(128) + _filter().to_bytes()


@pytest.mark.parametrize("uses_ctr", [None, False], ids=["plain", "GCM"])
@pytest.mark.parametrize("more", [1, 12, 17, 40, 2000])
def test_a_header_with_a_field_not_known_here_is_passed_over(
    more: int, uses_ctr: bool | None
) -> None:
    header = trees.decode(_header(128))[0]
    header.fields[9] = (TType.STRING, bytes(more))
    stored = trees.encode(header)
    bits = _filter().to_bytes()
    if uses_ctr is None:
        assert decode_bloom_filter(stored + bits, None) == _filter()
        return
    modules = [
        _cipher().encrypt(ModuleType.BLOOM_FILTER_HEADER, stored + bytes(more)),
        _cipher().encrypt(ModuleType.BLOOM_FILTER_BITSET, bits),
    ]
    assert decode_bloom_filter(b"".join(modules), _cipher()) == _filter()


@pytest.mark.parametrize("gap", [1, 16, 32, 48])
def test_a_plain_filter_with_bytes_between_header_and_bitset_is_refused(gap: int) -> None:
    stored = _header(128) + bytes(gap) + _filter().to_bytes()
    with pytest.raises(FormatError, match=f"numBytes is 128, the bitset has {128 + gap}"):
        decode_bloom_filter(stored, None)


def test_a_key_made_ready_opens_the_same_modules_and_no_others() -> None:
    stored = encode_bloom_filter(_filter(), _cipher())
    assert decode_bloom_filter(stored, _cipher(gcm=cipher.prepare(b"k" * 16))) == _filter()
    with pytest.raises(IntegrityError):
        decode_bloom_filter(stored, _cipher(gcm=cipher.prepare(b"K" * 16)))


def test_the_encrypted_form_is_two_gcm_modules_under_the_columns_key() -> None:
    stored = encode_bloom_filter(_filter(), _cipher(uses_ctr=True))
    border = cipher.frame_length(stored)
    key = b"k" * 16
    for module, kind, wanted in (
        (stored[:border], ModuleType.BLOOM_FILTER_HEADER, _header(128)),
        (stored[border:], ModuleType.BLOOM_FILTER_BITSET, _filter().to_bytes()),
    ):
        assert cipher.decrypt_gcm(module, key, cipher.module_aad(b"file", kind, 1, 2)) == wanted


def test_nonces_are_fresh() -> None:
    first, second = (encode_bloom_filter(_filter(), _cipher()) for _ in range(2))
    border = cipher.frame_length(first)
    nonces = {m[p : p + 12] for m in (first, second) for p in (4, border + 4)}
    assert len(nonces) == 4


@pytest.mark.parametrize(
    "other",
    [
        {"key": DataKey(key=b"K" * 16, name="k_pii")},
        {"file_aad": b"elif"},
        {"row_group_ordinal": 0},
        {"column_ordinal": 1},
    ],
    ids=lambda other: next(iter(other)),
)
def test_modules_of_another_place_or_key_do_not_authenticate(other: dict[str, object]) -> None:
    with pytest.raises(IntegrityError):
        decode_bloom_filter(encode_bloom_filter(_filter(), _cipher()), _cipher(**other))


def test_every_flipped_byte_of_the_modules_is_noticed() -> None:
    stored = encode_bloom_filter(_filter(1), _cipher())
    for place in range(len(stored)):
        damaged = bytearray(stored)
        damaged[place] ^= 0x80
        with pytest.raises((IntegrityError, FormatError)):
            decode_bloom_filter(damaged, _cipher())


def test_header_and_bitset_do_not_change_places() -> None:
    stored = encode_bloom_filter(_filter(), _cipher())
    border = cipher.frame_length(stored)
    with pytest.raises(IntegrityError):
        decode_bloom_filter(stored[border:] + stored[:border], _cipher())


def test_a_header_of_one_filter_does_not_fit_the_bitset_of_another() -> None:
    small, large = (encode_bloom_filter(_filter(n), _cipher()) for n in (1, 2))
    mixed = small[: cipher.frame_length(small)] + large[cipher.frame_length(large) :]
    with pytest.raises(FormatError, match="numBytes is 32, the bitset has 64"):
        decode_bloom_filter(mixed, _cipher())


@pytest.mark.parametrize("column_cipher", [None, _cipher()], ids=["plain", "encrypted"])
@pytest.mark.parametrize("num_bytes", [-(2**31), -32, 0, 31, 33, 2**27 + 32, 2**31 - 32])
def test_a_size_that_cannot_be_is_refused(
    column_cipher: ColumnCipher | None, num_bytes: int
) -> None:
    header, bitset = _header(num_bytes), bytes(64)
    stored = header + bitset
    if column_cipher is not None:
        stored = column_cipher.encrypt(ModuleType.BLOOM_FILTER_HEADER, header)
        stored += column_cipher.encrypt(ModuleType.BLOOM_FILTER_BITSET, bitset)
    with pytest.raises(FormatError, match=f"numBytes is {num_bytes}"):
        decode_bloom_filter(stored, column_cipher)


@pytest.mark.parametrize(
    ("member", "view"),
    [
        ("algorithm", BloomFilterAlgorithm),
        ("hash", BloomFilterHash),
        ("compression", BloomFilterCompression),
    ],
)
def test_another_algorithm_hash_or_compression_is_unsupported(member: str, view: type) -> None:
    stored = _header(32, **{member: view(FUTURE)}) + bytes(32)
    with pytest.raises(UnsupportedFeatureError, match=view.__name__):
        decode_bloom_filter(stored, None)


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_or_read_and_nothing_else(stored: bytes) -> None:
    for column_cipher in (None, _cipher()):
        try:
            decode_bloom_filter(stored, column_cipher)
        except SecureBloomError:
            assert True


@pytest.mark.skipif(not CORPUS.is_dir(), reason=NO_CORPUS)
def test_the_serialized_filter_of_the_public_corpus() -> None:
    bloom_filter = decode_bloom_filter((CORPUS / "bloom_filter.xxhash.bin").read_bytes(), None)
    assert bloom_filter.byte_count == 1024
    assert all(bloom_filter.check(v) for v in (b"hello", b"parquet", b"bloom", b"filter"))
    assert not any(bloom_filter.check(str(i).encode()) for i in range(100))
    stored = encode_bloom_filter(bloom_filter, None)
    assert stored == (CORPUS / "bloom_filter.xxhash.bin").read_bytes()


@pytest.mark.skipif(not CORPUS.is_dir(), reason=NO_CORPUS)
def test_the_obsolete_layout_of_the_public_corpus_is_refused() -> None:
    with pytest.raises(SecureBloomError):
        decode_bloom_filter((CORPUS / "bloom_filter.bin").read_bytes(), None)


@pytest.fixture(params=[Mode.PLAIN, Mode.ENCRYPTED, Mode.UNIFORM], ids=lambda mode: mode.name)
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = write(tmp_path / "x.parquet", customers(400), request.param, row_group_size=200)
    sb.add_bloom_filters(path, columns=["email", "iban"], keys=KEYRING)
    return path


@pytest.fixture
def encrypted(tmp_path: Path) -> Path:
    path = write(
        tmp_path / "x.parquet",
        customers(400),
        Mode.ENCRYPTED,
        row_group_size=200,
        column_keys={"k_pii": ["email", "iban"]},
    )
    sb.add_bloom_filters(path, columns=dict.fromkeys(["email", "iban"], SAME_SIZE), keys=KEYRING)
    return path


def test_a_filter_is_read_with_exactly_its_bytes(path: Path) -> None:
    with opened(path) as it:
        chunk, spy = it.chunk(0, "email"), CountedFile(it.file)
        stored = read_bloom_filter(spy, chunk)
        assert stored is not None
        assert stored.filter.check(b"user1@example.com") or filter_of(path, 1, "email").check(
            b"user1@example.com"
        )
        assert spy.bytes_read == stored.length == chunk.meta_data.bloom_filter_length


def test_a_filter_without_a_length_is_read(path: Path) -> None:
    wanted = filter_of(path, 1, "email")
    edit_column(path, 1, "email", lambda meta_data: delattr(meta_data, "bloom_filter_length"))
    assert filter_of(path, 1, "email") == wanted


def test_no_filter_is_none(path: Path) -> None:
    with opened(path) as it:
        assert read_bloom_filter(it.file, it.chunk(0, "id")) is None


@pytest.mark.parametrize("offset", [-1, -(2**40), 0, 5, 2**40])
@pytest.mark.parametrize("length", [None, -1, 0, 1, 40, 2**27 + 2000])
def test_a_place_that_cannot_be_is_an_error_and_not_no_filter(
    path: Path, offset: int, length: int | None
) -> None:
    def misplace(meta_data) -> None:
        meta_data.bloom_filter_offset = offset
        if length is None:
            del meta_data.bloom_filter_length
        else:
            meta_data.bloom_filter_length = length

    edit_column(path, 0, "email", misplace)
    with opened(path) as it:
        chunk = it.chunk(0, "email")
        with pytest.raises(SecureBloomError) as caught:
            read_bloom_filter(it.file, chunk)
    assert (caught.value.row_group, caught.value.column) == (0, "email")


def _refused(path: Path, row_group: int, column: str) -> SecureBloomError:
    """The error of reading the filter; the report of a probe names the file as well."""
    (file,) = sb.probe(path, column, ["user1@example.com"], keys=KEYRING).files
    assert file.error is not None
    assert file.error.startswith(f"{path}, row group {row_group}, column {column}: ")
    assert_tells_no_secret(file.error)
    with opened(path) as it, pytest.raises(SecureBloomError) as caught:
        read_bloom_filter(it.file, it.chunk(row_group, column))
    return caught.value


@pytest.mark.parametrize("part", ["header", "bitset"])
def test_a_flipped_byte_in_either_module_is_an_error_with_its_place(
    encrypted: Path, part: str
) -> None:
    place = filter_place(encrypted, 1, "email")
    border = cipher.frame_length(encrypted.read_bytes(), place.start)
    flip(encrypted, place.start + (border - 1 if part == "header" else border + 30))
    assert isinstance(_refused(encrypted, 1, "email"), IntegrityError)


@pytest.mark.parametrize(
    ("first", "second"),
    [((0, "email"), (0, "iban")), ((0, "email"), (1, "email"))],
    ids=["columns", "row groups"],
)
def test_swapped_modules_are_an_error_with_their_place(
    encrypted: Path, first: tuple[int, str], second: tuple[int, str]
) -> None:
    content = bytearray(encrypted.read_bytes())
    here, there = filter_place(encrypted, *first), filter_place(encrypted, *second)
    content[here], content[there] = content[there], content[here]
    assert here.stop - here.start == there.stop - there.start
    encrypted.write_bytes(content)
    assert isinstance(_refused(encrypted, *first), IntegrityError)
    with opened(encrypted) as it, pytest.raises(IntegrityError):
        read_bloom_filter(it.file, it.chunk(*second))


@pytest.mark.parametrize(
    "master_keys",
    [
        {name: key for name, key in MASTER_KEYS.items() if name != "k_pii"},
        {**MASTER_KEYS, "k_pii": b"not the right one, but 32 bytes."},
    ],
    ids=["missing", "wrong"],
)
def test_without_the_columns_key_a_probe_is_an_error_with_its_place(
    encrypted: Path, master_keys: dict[str, bytes]
) -> None:
    keys = Keyring(master_keys=master_keys)
    (file,) = sb.probe(encrypted, "email", ["user1@example.com"], keys=keys).files
    assert file.row_groups == ()
    assert file.error is not None
    assert file.error.startswith(f"{encrypted}, row group 0, column email: ")
    assert "k_pii" in file.error
    assert_tells_no_secret(file.error + str(file.hint))
    with opened(encrypted, keys) as it, pytest.raises(KeyUnavailableError):
        it.chunk(0, "email")


def test_a_filter_written_in_clear_for_an_encrypted_column_is_an_error(encrypted: Path) -> None:
    """As the Rust crate writes it (BloomFilter.md asks for the column's key)."""
    content = encrypted.read_bytes()
    place = filter_place(encrypted, 0, "email")
    clear = encode_bloom_filter(_filter(2), None)
    encrypted.write_bytes(content[: place.start] + clear + content[place.start + len(clear) :])
    assert isinstance(_refused(encrypted, 0, "email"), FormatError)
