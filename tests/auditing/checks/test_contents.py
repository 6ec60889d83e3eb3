"""What a file shows by its bytes."""

from __future__ import annotations

import base64
import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from secure_bloom.auditing.checks.contents import Content, content_of, forms_of
from secure_bloom.storage import open_input
from testing.tables import Mode, customers, keyring_json, write
from tests.tracing.test_planted import snappy_framed

KEY = bytes(range(200, 216))


def kind_of(path: Path) -> Content:
    with open_input(str(path)) as file:
        return content_of(file, forms_of([KEY]))


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED, Mode.SIGNED])
def test_a_footer_is_told_by_the_end_alone(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x", customers(30), mode)
    assert kind_of(path) is Content.FOOTER
    path.write_bytes(b"none" + path.read_bytes()[4:])
    assert kind_of(path) is Content.FOOTER


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        base64.b64encode(KEY),
        base64.urlsafe_b64encode(KEY),
        KEY.hex().encode(),
        KEY.hex().upper().encode(),
        KEY.hex(":").encode(),
        KEY.hex(":").upper().encode(),
        ", ".join(f"0x{it:02x}" for it in KEY).encode(),
        ",".join(f"0x{it:02X}" for it in KEY).encode(),
        keyring_json().encode(),
        b"-----BEGIN RSA PRIVATE KEY-----\n",
    ],
)
def test_keys_are_found_in_every_spelling(tmp_path: Path, form: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"some text " + form + b" more text")
    assert kind_of(path) is Content.KEYS


_TOKEN = "s.Dx8mXQ4tKpW2nV7bLr5yJhGz"
_SECRET_ID = "6f1c0b9e-2a44-4a5e-9b5f-1d5a2b3c4d5e"


@pytest.mark.parametrize(
    "text",
    [
        _TOKEN,
        f"BAO_TOKEN={_TOKEN}",
        f'export VAULT_TOKEN="{_TOKEN}"',
        f"X-Vault-Token: {_TOKEN}",
        f'{{"auth": {{"client_token": "{_TOKEN}"}}}}',
        "x-vault-token: 6f1c0b9e-2a44-4a5e-9b5f-1d5a2b3c4d5e",
        *(f"hv{kind}.CAESIJ1234567890abcdefghijklmnop" for kind in "sbr"),
        f"VAULT_SECRET_ID={_SECRET_ID}",
        f'"secret_id": "{_SECRET_ID}"',
    ],
)
def test_credentials_of_a_vault_are_keys(tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text)
    assert kind_of(tmp_path / "x") is Content.KEYS


@pytest.mark.parametrize(
    "text",
    [
        "export BAO_TOKEN=$(cat token)",
        'client_token = "6f1c0b9e-2a44-4a5e-9b5f-1d5a2b3c4d5e"',
        "client_token: <the token of the login>",
        "secret_id = file:secret",
        "s.addEventListenerForEveryone",
        "b.toUpperCaseOfEveryWord2024(x)",
        f"classes.{_TOKEN[2:]}",
        "s.averyveryverylongname123456.py",
    ],
)
def test_what_only_looks_like_a_credential_of_a_vault(tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text)
    assert kind_of(tmp_path / "x") is Content.OTHER


KEYS = [
    '"master_keys": {"k_footer": "base64", "k_pii": "%s"}',
    '"data_keys" : {\n "kc1": "%s" }',
    '"explicit": {"footer": "%s"}',
    '"explicit": {"aad_prefix": "x", "columns": {"a": "base64", "e-mail": "%s"}}',
    '"master_keys": {"a } name": "%s"}',
    "parquet.encryption.key.list=k_footer:base64, k_pii: %s",
    'spark.hadoop.parquet.encryption.key.list": "k_pii:%s"',
]


@pytest.mark.parametrize("size", [16, 24, 32])
@pytest.mark.parametrize("form", KEYS, ids=range(len(KEYS)))
def test_text_of_the_size_of_a_key_is_a_key(tmp_path: Path, form: str, size: int) -> None:
    text = base64.b64encode(bytes(range(100, 100 + size))).decode()
    spelled = (text, text.rstrip("="), text.replace("/", "\\/").replace("=", "\\="))
    for spelling in dict.fromkeys(spelled):
        (tmp_path / "x").write_text(form % spelling)
        assert kind_of(tmp_path / "x") is Content.KEYS, spelling


@pytest.mark.parametrize("form", KEYS, ids=range(len(KEYS)))
def test_an_example_without_a_key_holds_none(tmp_path: Path, form: str) -> None:
    long, two = base64.b64encode(bytes(20)).decode(), 2 * base64.b64encode(bytes(16)).decode()
    for word in ("base64", "", "<16, 24 or 32 bytes>", "...", "AAAA", long, two):
        (tmp_path / "x").write_text(form % word)
        assert kind_of(tmp_path / "x") is Content.OTHER, word


def test_the_page_on_keys_holds_none() -> None:
    assert kind_of(Path(__file__).parents[3] / "docs" / "keys.md") is Content.OTHER


@pytest.mark.parametrize(
    "content", [b"PAR1", b"x", b"text", gzip.compress(b"text", mtime=0), b"PK\3\4"]
)
def test_other_files_are_none_of_these(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert kind_of(path) is Content.OTHER


@pytest.mark.parametrize(
    "content",
    [b"\x1f\x8b\x08\0\0\0", b"\xff\x06\0\0sNaPpY" + bytes(9), b"7z\xbc\xaf\x27\x1c", b"LZIP"],
)
def test_what_cannot_be_unpacked_is_packed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert kind_of(path) is Content.PACKED


def test_packed_files_are_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for packed in (snappy_framed(KEY), lzma.compress(KEY), gzip.compress(bz2.compress(KEY))):
        path.write_bytes(packed)
        assert kind_of(path) is Content.KEYS


def test_a_7z_archive_is_unpacked(tmp_path: Path) -> None:
    py7zr = pytest.importorskip("py7zr")
    with py7zr.SevenZipFile(tmp_path / "x", "w") as archive:
        archive.writestr(b"text" * 1000 + KEY, "member")
    assert kind_of(tmp_path / "x") is Content.KEYS


def test_what_unpacks_to_very_much_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(bytes(64 * 1024 * 1024)))
    assert kind_of(path) is Content.OTHER
