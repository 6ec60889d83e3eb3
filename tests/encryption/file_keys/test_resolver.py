"""From key metadata to data keys: wrapping both ways, the order of lookup, caching and errors."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet as pq
from pyarrow.parquet import encryption as pe

from secure_bloom.encryption.file_keys import DataKey, KeyMaterial, KeyResolver
from secure_bloom.encryption.file_keys.wrapping import KeyEncryptionKey, wrap_once, wrap_twice
from secure_bloom.encryption.kms import ExplicitKeys, Keyring, KmsClient
from secure_bloom.errors import (
    FormatError,
    IntegrityError,
    KeyUnavailableError,
    KmsUnavailableError,
    PolicyError,
    SecureBloomError,
)
from testing.project import CORPUS, NO_CORPUS
from tests.encryption.kms.kms import MASTER_KEYS, CountingKms, PyarrowKms
from tests.encryption.kms.secrecy import assert_hidden

DEK = bytes(range(100, 116))
KEYRING = Keyring(master_keys=MASTER_KEYS)
deks = st.sampled_from([16, 24, 32]).flatmap(lambda n: st.binary(min_size=n, max_size=n))


def once(dek: bytes = DEK, kms: KmsClient = KEYRING, **options: bool) -> bytes:
    return wrap_once(dek, kms, "kc1", **options).serialize()


def twice(dek: bytes = DEK, kms: KmsClient = KEYRING, **options: bool) -> bytes:
    return wrap_twice(dek, KeyEncryptionKey.create(kms, "kc1"), **options).serialize()


class TestWrapping:
    @given(deks)
    def test_both_ways(self, dek: bytes) -> None:
        for keys in (KEYRING, CountingKms(), PyarrowKms(KEYRING), PyarrowKms(KEYRING, False)):
            file = KeyResolver(keys).for_file()
            for metadata in (once(dek, keys), twice(dek, keys)):
                assert file.column_key("a", metadata) == DataKey(key=dek, name="kc1")
                assert file.footer_key(metadata).key == dek

    @pytest.mark.parametrize("wrap", [once, twice])
    def test_the_footers_material_names_a_kms_instance_for_parquet_java(self, wrap) -> None:
        assert json.loads(wrap(is_footer_key=True))["kmsInstanceID"] == "DEFAULT"
        assert "kmsInstanceID" not in json.loads(wrap())

    @pytest.mark.parametrize("wrap", [once, twice])
    def test_another_master_key_under_the_same_name_does_not_fit(self, wrap) -> None:
        others = Keyring(master_keys={"kc1": bytes(16)})
        for keys in (others, CountingKms(others)):
            with pytest.raises(KeyUnavailableError, match="'kc1' does not fit"):
                KeyResolver(keys).for_file().footer_key(wrap())

    def test_a_dek_that_was_altered_under_its_kek_does_not_fit(self) -> None:
        fields = json.loads(twice())
        fields["wrappedDEK"] = base64.b64encode(bytes(44)).decode()
        with pytest.raises(KeyUnavailableError, match="'kc1' does not fit"):
            KeyResolver(KEYRING).for_file().footer_key(json.dumps(fields).encode())

    @pytest.mark.parametrize("wrapped", ["A", "%%%%", "AAAA"])
    @pytest.mark.parametrize(("wrap", "field"), [(once, "wrappedDEK"), (twice, "wrappedDEK")])
    def test_a_malformed_wrapped_key(self, wrap, field: str, wrapped: str) -> None:
        metadata = json.dumps({**json.loads(wrap()), field: wrapped}).encode()
        with pytest.raises(FormatError):
            KeyResolver(KEYRING).for_file().footer_key(metadata)

    @pytest.mark.parametrize("size", [0, 15, 20])
    def test_no_key_of_another_size_is_wrapped_or_unwrapped(self, size: int) -> None:
        class Careless(CountingKms):
            def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
                return bytes(size)

        for wrap in (once, twice):
            with pytest.raises(KeyUnavailableError, match=f"{size} bytes"):
                wrap(bytes(size))
            with pytest.raises(KeyUnavailableError, match=f"{size} bytes"):
                KeyResolver(Careless()).for_file().footer_key(wrap())


class TestCaching:
    def test_one_call_to_the_kms_serves_all_columns_under_one_kek(self) -> None:
        kms = CountingKms()
        kek = KeyEncryptionKey.create(kms, "kc1")
        metadata = {f"c{i}": wrap_twice(os.urandom(16), kek).serialize() for i in range(100)}
        resolver = KeyResolver(kms)
        for _ in range(100):
            file = resolver.for_file()
            for path, column in metadata.items():
                file.column_key(path, column)
        assert kms.unwraps == 1

    def test_threads_that_come_together_make_one_call(self) -> None:
        class Meeting(CountingKms):
            """It answers when a second call comes, else after a while."""

            meeting = Barrier(2)

            def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
                with contextlib.suppress(BrokenBarrierError):
                    self.meeting.wait(timeout=0.3)
                return super().unwrap_key(wrapped_key, master_key_identifier)

        kms, together = Meeting(), Barrier(8)
        metadata, resolver = twice(), KeyResolver(kms)

        def ask(_: int) -> bytes:
            together.wait()
            return resolver.for_file().footer_key(metadata).key

        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(ask, range(8))) == {DEK}
        assert kms.unwraps == 1

    def test_nobody_waits_for_the_kek_of_another(self) -> None:
        class Meeting(CountingKms):
            meeting = Barrier(2)

            def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
                self.meeting.wait(timeout=60)
                return super().unwrap_key(wrapped_key, master_key_identifier)

        resolver = KeyResolver(Meeting())
        with ThreadPoolExecutor(2) as pool:
            keys = pool.map(resolver.for_file().footer_key, [twice(), twice()])
            assert [key.key for key in keys] == [DEK, DEK]

    def test_a_kek_that_is_known_does_not_open_under_another_master_key(self) -> None:
        resolver, metadata = KeyResolver(KEYRING), twice()
        assert resolver.for_file().footer_key(metadata).key == DEK
        renamed = json.dumps({**json.loads(metadata), "masterKeyID": "kc2"}).encode()
        with pytest.raises(KeyUnavailableError, match="'kc2' does not fit"):
            resolver.for_file().footer_key(renamed)

    def test_a_key_without_a_kek_is_asked_for_once_too(self) -> None:
        kms, metadata = CountingKms(), once()
        file = KeyResolver(kms).for_file()
        for _ in range(3):
            file.column_key("a", metadata)
        assert kms.unwraps == 1

    def test_a_failure_is_not_remembered(self) -> None:
        class Recovering(CountingKms):
            def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
                if self.unwraps == 0:
                    self.unwraps += 1
                    raise TimeoutError
                return super().unwrap_key(wrapped_key, master_key_identifier)

        file, metadata = KeyResolver(Recovering()).for_file(), twice()
        with pytest.raises(KmsUnavailableError, match="TimeoutError"):
            file.footer_key(metadata)
        assert file.footer_key(metadata).key == DEK


class TestLookup:
    def test_free_form_metadata_is_looked_up_by_its_text(self) -> None:
        for keys in (Keyring(data_keys={"kc1": DEK}), ExplicitKeys(data_keys={"kc1": DEK})):
            file = KeyResolver(keys).for_file()
            assert file.column_key("a", b"kc1") == DataKey(key=DEK, name="kc1")
            assert file.footer_key(b"kc1") == DataKey(key=DEK, name="kc1")

    def test_a_name_wins_over_a_place(self) -> None:
        explicit = ExplicitKeys(columns={"a": bytes(16)}, footer=bytes(16))
        file = KeyResolver(
            Keyring(data_keys={"kc1": DEK}, master_keys=MASTER_KEYS, explicit=explicit)
        ).for_file()
        for metadata in (b"kc1", once(), twice()):
            assert file.column_key("a", metadata).key == DEK
            assert file.footer_key(metadata).key == DEK

    def test_what_no_name_finds_is_looked_up_by_its_place(self) -> None:
        explicit = ExplicitKeys(columns={"a.b": DEK}, footer=bytes(32))
        for keys in (explicit, Keyring(explicit=explicit, master_keys={"other": bytes(16)})):
            file = KeyResolver(keys).for_file()
            for metadata, name in ((None, None), (b"kx", "kx"), (b"\xff", None), (once(), "kc1")):
                assert file.column_key("a.b", metadata) == DataKey(key=DEK, name=name)
                assert file.footer_key(metadata) == DataKey(key=bytes(32), name=name)

    def test_bytes_that_are_no_text_match_no_name(self) -> None:
        file = KeyResolver(ExplicitKeys(data_keys={"\ufffd": DEK})).for_file()
        with pytest.raises(KeyUnavailableError):
            file.footer_key(b"\xff")

    @pytest.mark.parametrize("keys", [None, Keyring(), ExplicitKeys(columns={"b": DEK})])
    def test_a_missing_key_is_named_with_its_place_and_a_hint(self, keys) -> None:
        file = KeyResolver(keys).for_file()
        for metadata, message in (
            (once(), "key 'kc1' of column a"),
            (b"kx", "key 'kx' of column a"),
            (None, "the key of column a is not available, and the file does not name it"),
            (b"\xff", "the key of column a is not available, and the file does not name it"),
        ):
            with pytest.raises(KeyUnavailableError, match=message) as error:
                file.column_key("a", metadata)
            assert error.value.hint
        with pytest.raises(KeyUnavailableError, match="key 'kc1' of the footer"):
            file.footer_key(twice())

    def test_the_aad_prefix(self) -> None:
        explicit = ExplicitKeys(aad_prefix=b"tester")
        for keys in (explicit, Keyring(explicit=explicit)):
            assert KeyResolver(keys).for_file().aad_prefix == b"tester"
        assert KeyResolver(None).for_file().aad_prefix is None

    def test_what_are_no_keys(self) -> None:
        with pytest.raises(PolicyError, match="of type dict"):
            KeyResolver({"kc1": DEK})  # type: ignore[arg-type]


class TestDescribing:
    def test_names_are_found_without_keys(self) -> None:
        file = KeyResolver(None).for_file(lambda: {"columnKey0": once()})
        reference = '{"keyMaterialType":"PKMT1","internalStorage":false,"keyReference":"%s"}'
        described = {
            metadata: file.describe(metadata)
            for metadata in (
                twice(),
                b"kc1",
                b"\xff",
                b"\x1b[2J",
                b"",
                (reference % "columnKey0").encode(),
                (reference % "columnKey1").encode(),
            )
        }
        assert list(described.values()) == ["kc1", "kc1", None, None, None, "kc1", None]
        assert file.describe(None) is None

    def test_lost_key_material_has_no_name(self) -> None:
        def lost() -> dict[str, str]:
            raise FormatError("not beside it")

        reference = b'{"keyMaterialType":"PKMT1","internalStorage":false,"keyReference":"r"}'
        for external in (lost, None):
            file = KeyResolver(None).for_file(external)
            assert file.describe(reference) is None
        with pytest.raises(FormatError, match="not beside it"):
            KeyResolver(None).for_file(lost).footer_key(reference)


class TestExternalMaterial:
    reference = b'{"keyMaterialType":"PKMT1","internalStorage":false,"keyReference":"footerKey"}'

    def test_it_is_read_once_and_only_when_needed(self) -> None:
        reads = []

        def external() -> dict[str, bytes | str]:
            reads.append(1)
            return {"footerKey": twice().decode()}

        file = KeyResolver(KEYRING).for_file(external)
        assert file.column_key("a", once()).key == DEK
        assert reads == []
        assert file.footer_key(self.reference) == DataKey(key=DEK, name="kc1")
        assert file.footer_key(self.reference).key == DEK
        assert reads == [1]

    def test_a_missing_reference(self) -> None:
        file = KeyResolver(KEYRING).for_file(dict)
        with pytest.raises(KeyUnavailableError, match="no key material 'footerKey'") as error:
            file.footer_key(self.reference)
        assert "_KEY_MATERIAL_FOR_" in (error.value.hint or "")

    @pytest.mark.parametrize("stored", [b"", "free form", reference])
    def test_what_is_no_material(self, stored: bytes | str) -> None:
        file = KeyResolver(KEYRING).for_file(lambda: {"footerKey": stored})
        with pytest.raises(FormatError, match="'footerKey' beside the file is not PKMT1"):
            file.footer_key(self.reference)


class TestForeignFailures:
    @given(st.binary(min_size=16, max_size=16))
    def test_their_text_is_not_repeated(self, key: bytes) -> None:
        class Talkative(CountingKms):
            def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
                raise RuntimeError(f"cannot use {key.hex()} {key!r}")

            wrap_key = unwrap_key  # type: ignore[assignment]

        for call in (
            lambda: KeyResolver(Talkative()).for_file().footer_key(once()),
            lambda: KeyResolver(Talkative()).for_file().footer_key(twice()),
            lambda: once(kms=Talkative()),
        ):
            with pytest.raises(KeyUnavailableError, match=r"Talkative failed .* 'kc1'") as error:
                call()
            assert isinstance(error.value.__cause__, RuntimeError)
            assert_hidden(key, f"{error.value} {error.value.hint} {error.value!r}")

    @pytest.mark.parametrize("answer", [None, "text", 5])
    def test_an_answer_of_another_type(self, answer: object) -> None:
        class Odd(CountingKms):
            def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
                return answer  # type: ignore[return-value]

        with pytest.raises(KeyUnavailableError, match="wanted bytes"):
            KeyResolver(Odd()).for_file().footer_key(once())

    def test_a_tag_that_fails_in_a_client_means_the_key_does_not_fit(self) -> None:
        class Raw(CountingKms):
            def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
                raise IntegrityError("tag")

        with pytest.raises(KeyUnavailableError, match="does not fit"):
            KeyResolver(Raw()).for_file().footer_key(once())

    @given(deks)
    def test_no_key_shows(self, dek: bytes) -> None:
        kek = KeyEncryptionKey.create(KEYRING, "kc1")
        material = wrap_twice(dek, kek)
        for shown in (kek, material, DataKey(key=dek, name="k"), KeyResolver(KEYRING)):
            assert_hidden(dek, repr(shown))
            assert_hidden(kek.key, repr(shown))

    @given(st.binary(max_size=60))
    def test_any_metadata_raises_nothing_unexpected(self, metadata: bytes) -> None:
        file = KeyResolver(KEYRING).for_file()
        file.describe(metadata)
        with pytest.raises(SecureBloomError):
            file.footer_key(metadata)


class TestOthers:
    """What pyarrow and parquet-java wrapped."""

    @pytest.mark.parametrize("double_wrapping", [True, False])
    @pytest.mark.parametrize("bits", [128, 192, 256])
    def test_the_material_in_a_file_of_pyarrow(
        self, tmp_path: Path, double_wrapping: bool, bits: int
    ) -> None:
        path = tmp_path / "file.parquet"
        with pq.ParquetWriter(
            path,
            pa.schema([("a", pa.int64())]),
            encryption_properties=pe.CryptoFactory(
                lambda _: PyarrowKms(KEYRING)
            ).file_encryption_properties(
                pe.KmsConnectionConfig(),
                pe.EncryptionConfiguration(
                    footer_key="kf",
                    column_keys={"kc1": ["a"]},
                    plaintext_footer=True,
                    double_wrapping=double_wrapping,
                    data_key_length_bits=bits,
                ),
            ),
        ) as writer:
            writer.write_table(pa.table({"a": [1]}))
        materials = re.findall(rb'\{"keyMaterialType[^}]*\}', path.read_bytes())
        file = KeyResolver(PyarrowKms(KEYRING)).for_file()
        found = [file.column_key("a", metadata) for metadata in materials]
        assert [(key.name, len(key.key) * 8) for key in found] == [("kc1", bits), ("kf", bits)]
        for metadata in materials:
            material = KeyMaterial.parse(metadata)
            assert isinstance(material, KeyMaterial)
            assert (material.kek is not None) == double_wrapping
            assert material.serialize() == metadata

    @pytest.mark.skipif(not CORPUS.exists(), reason=NO_CORPUS)
    def test_the_external_material_of_parquet_java(self) -> None:
        name = "_KEY_MATERIAL_FOR_external_key_material_java.parquet.encrypted.json"
        kms = CountingKms()
        file = KeyResolver(kms).for_file(lambda: json.loads((CORPUS / name).read_bytes()))
        found = {}
        for reference in ("footerKey", "columnKey0", "columnKey1"):
            fields = {"keyMaterialType": "PKMT1", "internalStorage": False}
            metadata = json.dumps({**fields, "keyReference": reference}).encode()
            key = file.column_key("any", metadata)
            found[reference] = (key.name, len(key.key), file.describe(metadata))
        assert found == {
            "footerKey": ("kf", 16, "kf"),
            "columnKey0": ("kc1", 16, "kc1"),
            "columnKey1": ("kc2", 16, "kc2"),
        }
        assert kms.unwraps == 3


def test_free_form_metadata_is_no_name_where_it_looks_like_material_or_is_long() -> None:
    keys = KeyResolver(None).for_file()
    assert keys.describe(b'{"a": "secret wrapped key"}') is None
    assert keys.describe(b"k" * 500) == "k" * 64 + "..."
    assert keys.describe(b"key-7") == "key-7"


def test_a_hostile_file_does_not_make_others_fail() -> None:
    """It claims the id of their KEK, with another one wrapped: each file gets what it names."""
    kms = CountingKms()
    good = KeyEncryptionKey.create(kms, "kc1")
    other = KeyEncryptionKey.create(kms, "kc1")
    hostile = replace(other, wrapped=replace(other.wrapped, kek_id=good.wrapped.kek_id))
    resolver = KeyResolver(kms)
    first = resolver.for_file().footer_key(wrap_twice(bytes(16), hostile).serialize())
    second = resolver.for_file().footer_key(wrap_twice(DEK, good).serialize())
    assert (first.key, second.key) == (bytes(16), DEK)
