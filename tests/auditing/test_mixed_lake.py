"""A lake of many kinds of files with 42 mistakes: one audit names each of them."""

from __future__ import annotations

import base64
import bz2
import csv
import datetime
import gzip
import hashlib
import io
import json
import lzma
import pickle
import random
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import fastavro
import lz4.frame
import py7zr
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from pyarrow import feather, orc

import secure_bloom as sb
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule
from testing.tables import KEYRING, Mode, keyring_json, write
from tests.auditing.examples import rules, set_texts
from tests.tracing.test_planted import skippable, snappy_framed

_chance = random.Random(11)
ROWS = 400
EMAILS = [f"{_chance.choice(['anna', 'bob', 'zoe'])}.weber{n}@post.fi" for n in range(ROWS)]
IBANS = ["DE" + "".join(_chance.choices("0123456789", k=20)) for _ in range(ROWS)]
IDS = [_chance.randrange(10**9, 10**10) for _ in range(ROWS)]
BORN = [
    datetime.date(1950, 1, 1) + datetime.timedelta(days=_chance.randrange(20_000))
    for _ in range(ROWS)
]
PEOPLE = {"email": EMAILS, "iban": IBANS, "id": IDS, "born": BORN}
POLICY = KeyPolicy(
    footer_key="k_footer",
    columns=rules(
        email=ColumnRule(path="email", key="k_pii", parts=("local",)),
        iban="k_finance",
        id="k_pii",
        born="k_pii",
        n=None,
    ),
)
KEYS = {"k_pii": ["email", "id", "born"], "k_finance": ["iban"]}
SOME = EMAILS[30:60]
ROWS_OF_TEXT = [[str(n), email, "x"] for n, email in enumerate(SOME)]


def csv_text() -> bytes:
    file = io.StringIO()
    csv.writer(file).writerows([["n", "mail", "note"], *ROWS_OF_TEXT])
    return file.getvalue().encode()


CSV = csv_text()


def stored(write: Callable[[pa.Table, io.BytesIO], object], **columns: object) -> bytes:
    file = io.BytesIO()
    write(pa.table(columns or {"mail": SOME}), file)
    return file.getvalue()


def parquet(**columns: object) -> bytes:
    """A file of the table with a further column in clear."""
    return stored(pq.write_table, n=range(30), **columns)


def packed_orc(table: pa.Table, file: io.BytesIO) -> None:
    orc.write_table(table, file, compression="zlib")


def sqlite() -> bytes:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (mail TEXT)")
    database.executemany("INSERT INTO t VALUES (?)", [(it,) for it in SOME])
    database.commit()
    return database.serialize()


def avro() -> bytes:
    file = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{"name": "mail", "type": "string"}]}
    fastavro.writer(file, schema, [{"mail": it} for it in SOME], codec="deflate")
    return file.getvalue()


def zipped(content: bytes, name: str = "x") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return file.getvalue()


def with_password() -> bytes:
    made = bytearray(zipped(CSV))
    made[6] |= 1
    made[made.index(b"PK\1\2") + 8] |= 1
    return bytes(made)


def tar_gz() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        info = tarfile.TarInfo("x")
        info.size = len(CSV)
        archive.addfile(info, io.BytesIO(CSV))
    return file.getvalue()


def seven_zip() -> bytes:
    file = io.BytesIO()
    with py7zr.SevenZipFile(file, "w") as archive:
        archive.writestr(CSV, "x")
    return file.getvalue()


def encrypted(path: Path, keys: dict[str, list[str]] = KEYS) -> Path:
    return write(path, pa.table(PEOPLE), Mode.ENCRYPTED, column_keys=keys)


def of_bytes(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def with_a_large_dictionary(path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}]
    path.write_bytes(lzma.compress(CSV, filters=filters))


def lines(*texts: object) -> Callable[[Path], object]:
    return of_bytes("\n".join(map(str, texts)).encode())


def in_clear(path: Path) -> object:
    return write(path, pa.table(PEOPLE))


def under_a_wrong_key(path: Path) -> object:
    return encrypted(path, {"k_pii": ["email", "id", "born", "iban"]})


def with_a_text(path: Path) -> None:
    set_texts(encrypted(path), {"checked by": SOME[0]})


def without_its_footer(path: Path) -> None:
    path.write_bytes(stored(pq.write_table, mail=SOME)[:-200])


def groups(iban: str) -> str:
    return " ".join(iban[at : at + 4] for at in range(0, len(iban), 4))


VALUES = "values-in-clear"
#: A mistake -> the file that makes it, what writes it, and the id of the finding.
MISTAKES: dict[str, tuple[str, Callable[[Path], object], str]] = {
    # copies of rows
    "CSV": ("export.csv", of_bytes(CSV), VALUES),
    "CSV.gz": ("export.csv.gz", of_bytes(gzip.compress(CSV)), VALUES),
    "JSON lines": ("rows.jsonl", lines(*(json.dumps({"m": it}) for it in SOME)), VALUES),
    "notebook": (
        "try.ipynb",
        lines(json.dumps({"cells": [{"outputs": [{"text": [f"{it}\n" for it in SOME]}]}]})),
        VALUES,
    ),
    "log": ("app.log", lines(*(f"2026-01-02 INFO user={it} ok" for it in SOME)), VALUES),
    "xlsx": (
        "sheet.xlsx",
        of_bytes(zipped(f"<t>{'</t><t>'.join(SOME)}</t>".encode(), "xl/sharedStrings.xml")),
        VALUES,
    ),
    "SQLite": ("app.db", of_bytes(sqlite()), VALUES),
    "Feather": ("x.feather", of_bytes(stored(feather.write_feather)), VALUES),
    "ORC": ("x.orc", of_bytes(stored(packed_orc)), VALUES),
    "pickle": ("x.pkl", of_bytes(pickle.dumps(SOME)), VALUES),
    "SQL dump": ("dump.sql", lines(*(f"INSERT INTO t VALUES ('{it}');" for it in SOME)), VALUES),
    "an e-mail as file name": (f"{EMAILS[7]}.txt", lines("nothing"), VALUES),
    "ids in a note": ("note.txt", lines(f"Please delete {', '.join(map(str, IDS[:5]))}."), VALUES),
    "a column mail": ("mail.parquet", of_bytes(parquet(mail=SOME)), VALUES),
    # never found before
    "deflated Avro": ("x.avro", of_bytes(avro()), VALUES),
    "an unclassified tax_id": (
        "tax.parquet",
        of_bytes(parquet(tax_id=[f"99-{n:07}" for n in range(30)])),
        "policy-column-unclassified",
    ),
    "local parts of e-mails": (
        "users.parquet",
        of_bytes(parquet(user=[it.partition("@")[0] for it in SOME])),
        VALUES,
    ),
    "IBANs in groups of four": ("iban.txt", lines(*map(groups, IBANS[:5])), VALUES),
    "birth dates copied to dob": ("dob.parquet", of_bytes(parquet(dob=BORN[:30])), VALUES),
    # packed copies
    "tar.gz": ("x.tar.gz", of_bytes(tar_gz()), VALUES),
    "zip of zip": ("x.zip", of_bytes(zipped(zipped(CSV))), VALUES),
    "zip behind a stub": ("x.exe", of_bytes(b"MZ" + bytes(range(256)) * 9 + zipped(CSV)), VALUES),
    "gzip of two members": ("x.gz", of_bytes(gzip.compress(b"n") + gzip.compress(CSV)), VALUES),
    "bzip2": ("x.bz2", of_bytes(bz2.compress(CSV)), VALUES),
    "xz with a large dictionary": ("x.xz", with_a_large_dictionary, VALUES),
    "zstd": ("x.zst", of_bytes(zstandard.compress(b"n") + zstandard.compress(CSV)), VALUES),
    "a skippable frame": (
        "y.zst", of_bytes(skippable(gzip.compress(CSV)) + zstandard.compress(b"n")), VALUES),
    "lz4": ("x.lz4", of_bytes(lz4.frame.compress(CSV)), VALUES),
    "snappy": ("x.sz", of_bytes(snappy_framed(CSV)), VALUES),
    "7z": ("x.7z", lambda path: path.write_bytes(seven_zip()), VALUES),
    # other forms
    "Base64": ("b64.json", lines(json.dumps({"a": base64.b64encode(CSV).decode()})), VALUES),
    "UTF-16": ("wide.csv", of_bytes(CSV.decode().encode("utf-16")), VALUES),
    "MD5 in a text": (
        "md5.txt", lines(*(hashlib.md5(it.encode()).hexdigest() for it in SOME)), VALUES),
    "SHA-256 in a column": (
        "sha.parquet",
        of_bytes(parquet(h=[hashlib.sha256(it.encode()).digest() for it in SOME])),
        VALUES,
    ),
    "a partition by e-mail": (f"mail={EMAILS[9]}/x.txt", lines("nothing"), VALUES),
    "a text of the footer": ("text.parquet", with_a_text, VALUES),
    # what is no question of values
    "a file in clear": ("clear.parquet", in_clear, "column-in-clear"),
    "a copy in clear": ("x.parquet.bak", in_clear, "column-in-clear"),
    "a wrong key": ("wrong.parquet", under_a_wrong_key, "column-wrong-key"),
    "a keyring": ("keys.json", lambda path: path.write_text(keyring_json()), "keys-in-lake"),
    "pages without a footer": ("cut.tmp", without_its_footer, VALUES),
    "an archive with a password": ("secret.zip", of_bytes(with_password()), "unchecked-copy"),
}  # fmt: skip
#: Names are masked where they have a value, so that these findings are those of the folder.
IN_NAMES = ("an e-mail as file name", "a partition by e-mail")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The ids of the findings by the names of files, of one audit of the whole lake."""
    lake = tmp_path_factory.mktemp("lake")
    encrypted(lake / "sound.parquet")
    for name, make, _ in MISTAKES.values():
        (lake / name).parent.mkdir(exist_ok=True)
        make(lake / name)
    report = sb.audit(lake, policy=POLICY, keys=KEYRING, check_values=True, strict=True)
    shown = report.to_json()
    assert not any(it in shown for it in (*SOME, *IBANS[:5], EMAILS[7], EMAILS[9]))
    ids: dict[str, set[str]] = {}
    for finding in report.findings:
        ids.setdefault(Path(finding.path or "").name, set()).add(finding.id)
    ids[""] = ids.pop(lake.name, set())
    return ids


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_mistake_is_found(found: dict[str, set[str]], mistake: str) -> None:
    name, _, finding = MISTAKES[mistake]
    assert finding in found.get("" if mistake in IN_NAMES else name, set())


def test_a_sound_file_beside_them_has_no_finding(found: dict[str, set[str]]) -> None:
    assert "sound.parquet" not in found
    assert len(MISTAKES) == 42
