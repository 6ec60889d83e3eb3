"""The footer in its three modes: read, verified, edited, written back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.kms import ExplicitKeys, Keyring
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.encryption.trust import Trust
from secure_bloom.errors import (
    FormatError,
    IntegrityError,
    KeyUnavailableError,
    PolicyError,
    SecureBloomError,
    UnsupportedFeatureError,
)
from secure_bloom.parquet.footer.edit import FilterPlace, with_filters
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import (
    read_unverified,
    unchecked_signature,
    unlock,
    unlock_to_read,
)
from secure_bloom.parquet.footer.seal import close_footer
from secure_bloom.storage import open_input
from secure_bloom.storage.column_mapping import ColumnMapping, NamedField
from testing.live_footer import encode_footer
from testing.project import CORPUS, ENCRYPTED_CORPUS, NO_CORPUS
from testing.surgery import assert_tells_no_secret, edit_column, opened
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, read, write
from testing.thrift import trees
from testing.thrift.metadata import (
    AesGcmCtrV1,
    ColumnCryptoMetaData,
    ColumnMetaData,
    EncryptionAlgorithm,
)
from testing.thrift.views import encoded, tree_of

WITH_KEYS = [Mode.ENCRYPTED, Mode.SIGNED, Mode.UNIFORM]
FOOTERS = {
    Mode.PLAIN: FooterMode.PLAINTEXT,
    Mode.ENCRYPTED: FooterMode.ENCRYPTED,
    Mode.SIGNED: FooterMode.SIGNED,
    Mode.UNIFORM: FooterMode.ENCRYPTED,
}
STRANGER = trees.Struct({1: (11, b"from a later version"), 3: (8, 7)})


@pytest.fixture(params=Mode, ids=lambda mode: mode.name)
def mode(request: pytest.FixtureRequest) -> Mode:
    return request.param


@pytest.fixture
def path(tmp_path: Path, mode: Mode) -> Path:
    return write(tmp_path / "x.parquet", customers(40), mode, row_group_size=20)


def _small(folder: Path, mode: Mode) -> Path:
    table = pa.table({"email": ["a@example.com"]})
    return write(folder / "x.parquet", table, mode, column_keys={"k_pii": ["email"]})


def _write_back(path: Path) -> bytes:
    with opened(path) as it:
        footer = it.footer.read
        return it.file.read_at(0, footer.tail.offset) + close_footer(footer, footer.plain)


def _enter_filter(path: Path, row_group: int, name: str, offset: int, length: int) -> None:
    """Enter the place of a filter in the footer, as a run does that has built one."""
    with opened(path) as it:
        footer = it.footer.read
        ordinal = [leaf.name for leaf in footer.leaves].index(name)
        chunk = footer.chunk(row_group, ordinal)
        plain = with_filters(footer, [FilterPlace(chunk, offset, length)])
        path.write_bytes(it.file.read_at(0, footer.tail.offset) + close_footer(footer, plain))


def test_a_footer_says_what_pyarrow_wrote(path: Path, mode: Mode) -> None:
    with opened(path) as it:
        assert it.footer.tail.mode is FOOTERS[mode]
        assert [leaf.name for leaf in it.footer.leaves] == customers(1).column_names
        assert [group.num_rows for group in it.footer.row_groups] == [20, 20]
        for row_group in range(2):
            for ordinal, leaf in enumerate(it.footer.leaves):
                chunk = it.footer.read.chunk(row_group, ordinal)
                assert chunk.meta_data.num_values == 20
                assert tuple(chunk.meta_data.path_in_schema) == leaf.path


@pytest.mark.parametrize("mode", WITH_KEYS, ids=lambda mode: mode.name, indirect=True)
def test_a_column_is_under_the_key_it_was_written_with(path: Path, mode: Mode) -> None:
    with opened(path) as it:
        names = {
            leaf.name: None if chunk.cipher is None else chunk.cipher.key.name
            for leaf in it.footer.leaves
            for chunk in [it.chunk(1, leaf.name)]
        }
    if mode is Mode.UNIFORM:
        assert set(names.values()) == {"k_footer"}
    else:
        assert names == {
            "email": "k_pii",
            "iban": "k_finance",
            "id": None,
            "city": None,
            "score": None,
        }


def test_writing_back_changes_nothing_but_nonces(path: Path, mode: Mode) -> None:
    first, second = _write_back(path), _write_back(path)
    if mode is Mode.PLAIN:
        assert first == second == path.read_bytes()
    else:
        assert first != second, "a nonce was used twice"
        assert len(first) == len(second)
    before = read(path, encrypted=mode is not Mode.PLAIN)
    path.write_bytes(first)
    assert read(path, encrypted=mode is not Mode.PLAIN).equals(before)


def test_reencrypted_column_metadata_has_a_fresh_nonce(tmp_path: Path) -> None:
    path = _small(tmp_path, Mode.ENCRYPTED)
    modules = set()
    for _ in range(2):
        _enter_filter(path, 0, "email", 100, 50)
        with opened(path) as it:
            modules.add(it.chunk(0, "email").column_chunk.encrypted_column_metadata)
    assert len(modules) == 2


@pytest.mark.parametrize("name", ["email", "id"])
def test_unknown_fields_survive_a_rewrite(path: Path, mode: Mode, name: str) -> None:
    edit_column(path, 0, name, lambda m: m.tree.fields.update({77: (12, STRANGER)}))
    with opened(path) as it:
        it.footer.metadata.tree.fields[88] = (12, STRANGER)
        path.write_bytes(it.file.read_at(0, it.footer.tail.offset) + encode_footer(it.footer))
    with opened(path) as it:
        wanted = encoded(it.chunk(0, name).meta_data)
    _enter_filter(path, 0, name, 4, 64)
    with opened(path) as it:
        meta_data = it.chunk(0, name).meta_data
        assert tree_of(meta_data).fields[77] == (12, STRANGER)
        assert it.footer.metadata.tree.fields[88] == (12, STRANGER)
        assert (meta_data.bloom_filter_offset, meta_data.bloom_filter_length) == (4, 64)
        del meta_data.bloom_filter_offset, meta_data.bloom_filter_length
        assert encoded(meta_data) == wanted


@pytest.mark.parametrize("name", ["email", "id"])
def test_an_edit_reaches_every_copy_of_the_metadata(path: Path, mode: Mode, name: str) -> None:
    _enter_filter(path, 1, name, 1234, 56)
    with opened(path) as it:
        chunk = it.chunk(1, name)
        assert chunk.meta_data.bloom_filter_offset == 1234
        copy = chunk.column_chunk.meta_data
        if mode in (Mode.PLAIN, Mode.SIGNED):
            assert copy is not None
        if copy is not None:
            assert (copy.bloom_filter_offset, copy.bloom_filter_length) == (1234, 56)
        assert it.chunk(0, name).meta_data.bloom_filter_offset is None


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED], ids=lambda mode: mode.name)
def test_every_flipped_byte_of_a_protected_footer_is_noticed(tmp_path: Path, mode: Mode) -> None:
    path = _small(tmp_path, mode)
    good = path.read_bytes()
    with opened(path) as it:
        tail = it.footer.tail
        wanted = it.footer.metadata
    # In clear before an encrypted footer stand key names and wrapped keys, which only the right
    # key can make sense of.
    in_clear = range(tail.offset, tail.offset + len(tail.clear))
    for place in range(tail.offset, len(good)):
        damaged = bytearray(good)
        damaged[place] ^= 0x01
        path.write_bytes(damaged)
        try:
            with opened(path) as it:
                assert mode is Mode.ENCRYPTED
                assert place in in_clear
                assert it.footer.metadata.tree == wanted.tree
        except (IntegrityError, FormatError):
            pass
        except SecureBloomError as error:
            assert place in in_clear
            assert_tells_no_secret(str(error))


def test_a_signature_covers_the_bytes_as_read(tmp_path: Path) -> None:
    path = _small(tmp_path, Mode.SIGNED)
    with opened(path) as it:
        created_by = (it.footer.metadata.created_by or "").encode()
    path.write_bytes(path.read_bytes().replace(created_by, created_by[::-1]))
    with pytest.raises(IntegrityError, match="signature"), opened(path):
        pass


@pytest.mark.parametrize("mode", WITH_KEYS, ids=lambda mode: mode.name, indirect=True)
def test_a_key_that_does_not_fit_is_named(path: Path, mode: Mode) -> None:
    wrong = Keyring(master_keys={**MASTER_KEYS, "k_footer": b"another-16-bytes"})
    with pytest.raises(KeyUnavailableError, match="k_footer"), opened(path, wrong):
        pass
    with pytest.raises(KeyUnavailableError, match="k_footer"), opened(path, None):
        pass


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED], ids=lambda mode: mode.name)
def test_a_column_key_that_is_not_there_is_told_with_its_place(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", customers(40), mode, row_group_size=20)
    keys = Keyring(master_keys={"k_footer": MASTER_KEYS["k_footer"]})
    with opened(path, keys) as it:
        assert it.chunk(1, "id").cipher is None
        with pytest.raises(KeyUnavailableError, match="k_pii") as caught:
            it.chunk(1, "email")
    assert (caught.value.row_group, caught.value.column) == (1, "email")


def test_a_signed_footer_can_be_read_without_its_key_but_not_written(tmp_path: Path) -> None:
    path = _small(tmp_path, Mode.SIGNED)
    keys = KeyResolver(None).for_file()
    with open_input(str(path)) as file:
        tail = read_tail(file)
    with pytest.raises(KeyUnavailableError):
        unlock(tail, keys)
    footer = unlock(tail, keys, allow_unverified=True)
    assert footer.metadata.num_rows == 1
    assert footer.key is None
    with pytest.raises(KeyUnavailableError) as caught:
        close_footer(footer, footer.plain)
    assert caught.value.message == "the footer key is needed to write the footer back"


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda b: b[:-1], id="last byte gone"),
        pytest.param(lambda b: b[: len(b) // 2], id="half"),
        pytest.param(lambda b: b[:11], id="eleven bytes"),
        pytest.param(lambda b: b[:-8] + b"\xff\xff\xff\xff" + b[-4:], id="length beyond the file"),
        pytest.param(lambda b: b[:-8] + b"\0\0\0\0" + b[-4:], id="length nought"),
        pytest.param(
            lambda b: (
                b[:-8] + (int.from_bytes(b[-8:-4], "little") + 1).to_bytes(4, "little") + b[-4:]
            ),
            id="length one too many",
        ),
        pytest.param(lambda b: b + b"PAR1", id="a second magic"),
        pytest.param(lambda b: b"not parquet" * 20, id="text"),
        pytest.param(lambda b: b"PAR1" + bytes(400) + b"PAR1", id="zeros"),
    ],
)
def test_what_does_not_end_in_a_footer_is_refused(path: Path, damage, mode: Mode) -> None:
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(FormatError), opened(path):
        pass


def test_column_chunks_must_be_those_of_the_schema(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(10))
    with opened(path) as it:
        group = it.footer.row_groups[0]
        group.columns = group.columns[:-1]
        path.write_bytes(it.file.read_at(0, it.footer.tail.offset) + encode_footer(it.footer))
    with pytest.raises(FormatError, match="4 column chunks, the schema has 5") as caught:
        opened(path).__enter__()
    assert caught.value.row_group == 0


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda c: setattr(c, "file_path", "other"), UnsupportedFeatureError, "file_path"),
        (
            lambda c: setattr(c, "crypto_metadata", ColumnCryptoMetaData.of()),
            FormatError,
            "names no encryption algorithm",
        ),
        (
            lambda c: c.meta_data.tree.fields.update(
                ColumnMetaData.of(path_in_schema=["else"]).tree.fields
            ),
            FormatError,
            "path_in_schema",
        ),
        (lambda c: c.tree.fields.pop(3), FormatError, "meta_data is missing"),
    ],
)
def test_a_chunk_that_cannot_be_is_refused_with_its_place(
    tmp_path: Path, change, error: type[SecureBloomError], text: str
) -> None:
    with opened(write(tmp_path / "x.parquet", customers(10))) as it:
        change(it.footer.column_chunks[0][2])
        with pytest.raises(error, match=text) as caught:
            it.chunk(0, "id")
    assert (caught.value.row_group, caught.value.column) == (0, "id")


def test_an_unknown_encryption_algorithm_is_unsupported(tmp_path: Path) -> None:
    path = _small(tmp_path, Mode.SIGNED)
    with open_input(str(path)) as file:
        tail = read_tail(file)
    future = EncryptionAlgorithm(trees.Struct({9: (12, trees.Struct())}))
    keys = KeyResolver(KEYRING).for_file()
    with pytest.raises(UnsupportedFeatureError, match="EncryptionAlgorithm"):
        unlock(dataclasses.replace(tail, algorithm=future), keys)


@pytest.mark.parametrize(
    ("stored", "supply", "given", "text"),
    [
        (None, False, b"p", "written without one"),
        (None, True, None, "does not store"),
        (b"a", False, b"b", "not the one stored"),
    ],
)
def test_an_aad_prefix_must_be_the_writers(
    tmp_path: Path, stored: bytes | None, supply: bool, given: bytes | None, text: str
) -> None:
    with open_input(str(_small(tmp_path, Mode.ENCRYPTED))) as file:
        tail = read_tail(file)
    parameters = AesGcmCtrV1.of(aad_file_unique=b"u" * 8, supply_aad_prefix=supply)
    if stored is not None:
        parameters.aad_prefix = stored
    tail = dataclasses.replace(tail, algorithm=EncryptionAlgorithm.of(AES_GCM_CTR_V1=parameters))
    keys = KeyResolver(ExplicitKeys(footer=bytes(16), aad_prefix=given)).for_file()
    with pytest.raises(KeyUnavailableError, match=text):
        unlock(tail, keys)


CORPUS_KEYS = ExplicitKeys(
    data_keys={
        "kf": b"0123456789012345",
        "kc1": b"1234567890123450",
        "kc2": b"1234567890123451",
    }
)
CORPUS_MASTER_KEYS = Keyring(master_keys=CORPUS_KEYS.data_keys)


def _corpus_keys(name: str) -> Keyring | ExplicitKeys:
    if "external_key_material" in name:
        return CORPUS_MASTER_KEYS
    if "disable_aad_storage" in name:
        return dataclasses.replace(CORPUS_KEYS, aad_prefix=b"tester")
    return CORPUS_KEYS


needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=NO_CORPUS)


@needs_corpus
@pytest.mark.parametrize("name", ENCRYPTED_CORPUS)
def test_files_of_the_public_corpus_open_with_their_keys(name: str) -> None:
    with opened(CORPUS / name, _corpus_keys(name)) as it:
        for ordinal in range(len(it.footer.leaves)):
            assert it.footer.read.chunk(0, ordinal).meta_data.num_values > 0
    assert it.footer.read.metadata.num_rows == it.footer.metadata.num_rows


@needs_corpus
def test_a_file_that_leaves_its_aad_prefix_to_the_reader_needs_it() -> None:
    name = "encrypt_columns_and_footer_disable_aad_storage.parquet.encrypted"
    with pytest.raises(KeyUnavailableError, match="AAD prefix"), opened(CORPUS / name, CORPUS_KEYS):
        pass
    wrong = dataclasses.replace(CORPUS_KEYS, aad_prefix=b"other")
    with pytest.raises(IntegrityError), opened(CORPUS / name, wrong):
        pass


def test_pyarrow_reads_a_footer_that_was_edited(path: Path, mode: Mode) -> None:
    before = read(path, encrypted=mode is not Mode.PLAIN)
    _enter_filter(path, 0, "email", 1000, 47)
    assert read(path, encrypted=mode is not Mode.PLAIN).equals(before)


# --- chunks of columns -------------------------------------------------------------------------


def test_a_row_group_may_say_its_ordinal_itself(tmp_path: Path) -> None:
    """AADs hold RowGroup.ordinal, which is not always the place in the list.  Encryption.md 4.4."""
    path = write(tmp_path / "x.parquet", customers(40), Mode.UNIFORM, row_group_size=20)
    with opened(path) as it:
        it.footer.row_groups[1].ordinal = 7
        own = it.chunk(1, "id").cipher
        del it.footer.row_groups[1].ordinal
        counted = it.chunk(1, "id").cipher
    assert own is not None
    assert counted is not None
    assert (own.row_group_ordinal, counted.row_group_ordinal) == (7, 1)


def test_an_unchecked_footer_has_no_key_and_no_aad(tmp_path: Path) -> None:
    with open_input(str(_small(tmp_path, Mode.SIGNED))) as file:
        footer = read_unverified(read_tail(file))
    assert (footer.key, footer.file_aad) == (None, b"")


def test_metadata_in_clear_stays_in_clear_when_it_is_edited(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(10), Mode.UNIFORM)
    _enter_filter(path, 0, "email", 1000, 47)
    with opened(path) as it:
        assert it.chunk(0, "email").column_chunk.encrypted_column_metadata is None


# --- errors, and what a run insists on --------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda c: setattr(c, "file_path", "other"),
            "its data is in another file (ColumnChunk.file_path)",
        ),
        (
            lambda c: setattr(c, "crypto_metadata", ColumnCryptoMetaData.of()),
            "the column is encrypted, but the footer names no encryption algorithm",
        ),
        (
            lambda c: c.meta_data.tree.fields.update(
                ColumnMetaData.of(path_in_schema=["else"]).tree.fields
            ),
            "ColumnMetaData.path_in_schema is not the column's path",
        ),
        (lambda c: c.tree.fields.pop(3), "ColumnChunk.meta_data is missing"),
    ],
)
def test_a_chunk_that_cannot_be_says_why(
    tmp_path: Path, change: Callable[[Any], object], message: str
) -> None:
    with opened(write(tmp_path / "x.parquet", customers(10))) as it:
        change(it.footer.column_chunks[0][2])
        with pytest.raises(SecureBloomError) as caught:
            it.chunk(0, "id")
    assert caught.value.message == message


def test_ways_to_encrypt_that_are_not_known_are_named(tmp_path: Path) -> None:
    with opened(write(tmp_path / "x.parquet", customers(10), Mode.UNIFORM)) as it:
        crypto = ColumnCryptoMetaData(trees.Struct({7: (12, trees.Struct())}))
        it.footer.column_chunks[0][0].crypto_metadata = crypto
        with pytest.raises(UnsupportedFeatureError, match="ColumnCryptoMetaData has member ids"):
            it.chunk(0, "email")


@pytest.mark.parametrize("column_keys", [{}, {"email": bytes(16)}], ids=["none", "wrong"])
def test_a_column_key_is_looked_for_by_its_path(
    tmp_path: Path, column_keys: dict[str, bytes]
) -> None:
    path = _small(tmp_path, Mode.SIGNED)
    with open_input(str(path)) as file:
        keys = KeyResolver(ExplicitKeys(columns=column_keys)).for_file()
        footer = read_unverified(read_tail(file), keys)
    wanted = IntegrityError if column_keys else KeyUnavailableError
    with pytest.raises(wanted) as caught:
        footer.chunk(0, 0)
    if not column_keys:
        assert caught.value.message == "key 'k_pii' of column email is not available"


@pytest.mark.parametrize("hint", [None, "give a keyring"])
def test_a_signature_that_cannot_be_checked_says_the_way_out(hint: str | None) -> None:
    error = unchecked_signature(KeyUnavailableError("there is no key", hint=hint))
    assert error.message == (
        "the footer's signature cannot be checked, so it may be forged: there is no key"
    )
    way = "to read the file all the same: allow_unverified=True or --allow-unverified"
    assert error.hint == (way if hint is None else f"give a keyring; {way}")


def test_what_is_only_read_needs_its_signature_checked_where_keys_were_given(
    tmp_path: Path,
) -> None:
    signed, hidden = tmp_path / "signed", tmp_path / "hidden"
    signed.mkdir()
    hidden.mkdir()
    with open_input(str(_small(signed, Mode.SIGNED))) as file:
        tail = read_tail(file)
    assert unlock_to_read(tail, KeyResolver(None).for_file()).key is None
    assert unlock_to_read(tail, KeyResolver(KEYRING).for_file()).key is not None
    with pytest.raises(KeyUnavailableError, match="signature cannot be checked") as caught:
        unlock_to_read(tail, KeyResolver(Keyring()).for_file())
    assert "k_footer" in caught.value.message
    with open_input(str(_small(hidden, Mode.ENCRYPTED))) as file:
        tail = read_tail(file)
    for keys in (None, Keyring()):
        with pytest.raises(KeyUnavailableError, match="'k_footer' of the footer is not available"):
            unlock_to_read(tail, KeyResolver(keys).for_file())


def test_a_footer_or_column_weaker_than_the_policy_is_refused(tmp_path: Path) -> None:
    rules = {name: ColumnRule(path=name, key="k_pii") for name in ("email", "id")}
    policy = KeyPolicy(footer_key="k_footer", columns=rules)
    keys = KeyResolver(KEYRING, Trust(policy=policy)).for_file()
    weak = {"plain": Mode.PLAIN, "ctr": Mode.UNIFORM}
    for name, mode in weak.items():
        algorithm = {"encryption_algorithm": "AES_GCM_CTR_V1"}
        path = write(tmp_path / name, customers(10), mode, encryption=algorithm)
        with open_input(str(path)) as file, pytest.raises(PolicyError, match="the policy says"):
            unlock(read_tail(file), keys)
    with open_input(str(write(tmp_path / "ok", customers(10), Mode.ENCRYPTED))) as file:
        footer = unlock(read_tail(file), keys)
        footer.chunk(0, 0)
        with pytest.raises(PolicyError, match="key k_pii, the column is stored in clear") as caught:
            footer.chunk(0, 2)
    assert (caught.value.row_group, caught.value.column) == (0, "id")


def test_leaves_have_the_names_that_the_table_gives(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(3), Mode.ENCRYPTED)
    with open_input(str(path)) as file:
        file.column_names = ColumnMapping(members={"email": NamedField(name="mail")})
        keys = KeyResolver(KEYRING).for_file()
        footer = unlock(read_tail(file), keys)
        assert [leaf.name for leaf in footer.leaves][:2] == ["mail", "iban (not in the table)"]
        assert footer.leaves[0].stored_path == ("email",)
        assert footer.chunk(0, 0).leaf.name == "mail"
