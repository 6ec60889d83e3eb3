"""Values planted in files of all kinds are found, wherever and however they are written."""

from __future__ import annotations

import base64
import bz2
import csv
import datetime
import gzip
import hashlib
import html
import io
import json
import lzma
import pickle
import quopri
import sqlite3
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import fastavro
import py7zr
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
import zstandard
from pyarrow import feather, orc

from tests.tracing.people import INDEX, PEOPLE, columns_found, search

EMAIL = str(PEOPLE["email"][42])
SOME = [str(it) for it in PEOPLE["email"][100:105]]
IBAN, CARD = str(PEOPLE["iban"][3]), str(PEOPLE["card"][4])
NAMES = [str(it) for it in PEOPLE["name"][:60]]
IDS = [int(str(it)) for it in PEOPLE["id"][:60]]
BORN = [it for it in PEOPLE["born"] if isinstance(it, datetime.date)]
SALARIES = [it for it in PEOPLE["salary"] if isinstance(it, float)]
UMLAUT = str(PEOPLE["umlaut"][5])
ROWS = [[n, one, "x"] for n, one in enumerate(SOME)]
CSV = "\n".join(",".join(map(str, row)) for row in [["id", "mail", "note"], *ROWS]).encode()


def table() -> pa.Table:
    return pa.table({"n": list(range(len(SOME))), "mail": SOME})


def stored(write: Callable[[pa.Table, io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(table(), file)
    return file.getvalue()


def packed_parquet() -> bytes:
    """A file without texts in clear."""
    return stored(lambda t, f: pq.write_table(t, f, compression="brotli", write_statistics=False))


def avro(codec: str) -> bytes:
    file = io.BytesIO()
    schema = {
        "type": "record", "name": "r",
        "fields": [{"name": "who", "type": {"type": "array", "items": ["null", "string"]}}],
    }  # fmt: skip
    fastavro.writer(file, schema, [{"who": [one, None]} for one in SOME], codec=codec)
    return file.getvalue()


def sqlite() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE people (n INTEGER, mail TEXT, city TEXT)")
    connection.executemany("INSERT INTO people VALUES (?, ?, 'x')", enumerate(SOME))
    connection.commit()
    return connection.serialize()


def zipped(content: bytes, name: str = "x", *, kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        archive.writestr(name, content)
    return file.getvalue()


def tarred(content: bytes, name: str = "x") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def lines(texts: list[str]) -> bytes:
    return "\n".join(texts).encode()


def skippable(content: bytes) -> bytes:
    return struct.pack("<II", 0x184D2A53, len(content)) + content


def snappy_framed(content: bytes) -> bytes:
    packed = pa.Codec("snappy").compress(content).to_pybytes()
    body = b"\0\0\0\0" + packed
    return b"\xff\x06\x00\x00sNaPpY\x00" + len(body).to_bytes(3, "little") + body


def lz4_frame(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as file:
        file.write(content)
    return sink.getvalue().to_pybytes()


def notebook() -> bytes:
    cell = {"cell_type": "code", "source": [], "outputs": [{"text": [f"{x}\n" for x in SOME]}]}
    return json.dumps({"cells": [cell], "nbformat": 4}).encode()


def seven_zip() -> bytes:
    file = io.BytesIO()
    with py7zr.SevenZipFile(file, "w") as archive:
        archive.writestr(CSV, "x")
    return file.getvalue()


def pdf() -> bytes:
    content = zlib.compress(
        b"BT [(" + EMAIL[:4].encode() + b") 20 (" + EMAIL[4:].encode() + b")] TJ ET"
    )
    return b"%PDF-1.4\n1 0 obj <</Filter /FlateDecode>>\nstream\n" + content + b"\nendstream\n"


#: What was planted -> the bytes of the file, and the column that must be found.  What takes long to
#: make is a function: it is not called where tests are collected.
FILES: dict[str, tuple[bytes | Callable[[], bytes], str]] = {
    # files of other kinds
    "CSV": (CSV, "email"),
    "CSV with semicolons and quotes": (CSV.replace(b",", b'";"'), "email"),
    "CSV with tabs": (CSV.replace(b",", b"\t"), "email"),
    "JSON lines": (lines([json.dumps({"a": {"mail": x}}) for x in SOME]), "email"),
    "JSON in JSON": (json.dumps({"a": json.dumps({"b": SOME})}).encode(), "email"),
    "notebook": (notebook(), "email"),
    "log": (lines([f"2026-01-02 03:04:05 INFO user={x} ok" for x in SOME]), "email"),
    "SQL dump": (lines([f"INSERT INTO t VALUES (1,'{x}',NULL);" for x in SOME]), "email"),
    "TOML": (lines([f'mail = "{x}"' for x in SOME]), "email"),
    "YAML": (lines([f"- mail: {x}" for x in SOME]), "email"),
    "XML": (lines([f"<mail>{x}</mail>" for x in SOME]), "email"),
    "attribute": (lines([f"<a href='mailto:{x}'>" for x in SOME]), "email"),
    "vCard": (lines([f"EMAIL;TYPE=work:{x}" for x in SOME]), "email"),
    "LDIF": (lines([f"mail:: {base64.b64encode(x.encode()).decode()}" for x in SOME]), "email"),
    "URL": (f"GET /users?mail={quote(EMAIL, safe='')}&x=1".encode(), "email"),
    "e-mail": (f"From: X <{EMAIL}>\r\nSubject: hi\r\n".encode(), "email"),
    "Python source": (f"USERS = [{EMAIL!r}]".encode(), "email"),
    "repr of bytes": (repr(f"ab\n{EMAIL}\x00".encode()).encode(), "email"),
    "pickle": (pickle.dumps(SOME), "email"),
    "pickle, protocol 0": (pickle.dumps(SOME, protocol=0), "email"),
    "SQLite": (sqlite(), "email"),
    "Parquet": (stored(pq.write_table), "email"),
    "Parquet, zstd": (stored(lambda t, f: pq.write_table(t, f, compression="zstd")), "email"),
    "Feather": (stored(lambda t, f: feather.write_feather(t, f, compression="zstd")), "email"),
    "Arrow stream": (stored(lambda t, f: pa.ipc.new_stream(f, t.schema).write_table(t)), "email"),
    "ORC": (stored(lambda t, f: orc.write_table(t, f, compression="zlib")), "email"),
    "Avro": (avro("null"), "email"),
    "Avro, deflate": (avro("deflate"), "email"),
    "Avro, bzip2": (avro("bzip2"), "email"),
    "Avro, xz": (avro("xz"), "email"),
    "Avro, zstandard": (avro("zstandard"), "email"),
    "xlsx": (zipped(f"<sst><t>{EMAIL}</t></sst>".encode(), "xl/sharedStrings.xml"), "email"),
    "PDF": (pdf(), "email"),
    "netstring": (b"%d:%b," % (len(EMAIL), EMAIL.encode()), "email"),
    "binary": (b"\x00\x01\xfe\x90" + EMAIL.encode() + b"\x94\x8c\x00", "email"),
    # packed copies
    "gzip": (gzip.compress(CSV), "email"),
    "gzip of two members": (gzip.compress(b"id") + gzip.compress(CSV), "email"),
    "gzip behind a stub": (b"#!/bin/sh\nexit\n" + gzip.compress(CSV), "email"),
    "gzip, then a tail": (gzip.compress(b"id") + b"\n" + CSV, "email"),
    "bzip2": (bz2.compress(CSV), "email"),
    "bzip2 of two streams": (bz2.compress(b"id") + bz2.compress(CSV), "email"),
    "xz": (lzma.compress(CSV), "email"),
    "xz of two streams": (lzma.compress(b"id") + lzma.compress(CSV), "email"),
    "xz with a large dictionary": (
        lambda: lzma.compress(CSV, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}]),
        "email"),
    "lzma": (lzma.compress(CSV, lzma.FORMAT_ALONE), "email"),
    "zlib": (zlib.compress(CSV), "email"),
    "zstd": (zstandard.compress(CSV), "email"),
    "zstd of two frames": (zstandard.compress(b"id") + zstandard.compress(CSV), "email"),
    "zstd, skippable frame": (skippable(CSV) + zstandard.compress(b"id"), "email"),
    "zstd behind a skippable frame": (skippable(b"id") + zstandard.compress(CSV), "email"),
    "zstd with a long window": (
        zstandard.ZstdCompressor(compression_params=zstandard.ZstdCompressionParameters(
            window_log=27, enable_ldm=True)).compress(CSV), "email"),
    "lz4": (lz4_frame(CSV), "email"),
    "snappy": (snappy_framed(CSV), "email"),
    "zip": (zipped(CSV), "email"),
    "zip, stored": (zipped(CSV, kind=zipfile.ZIP_STORED), "email"),
    "zip, bzip2": (zipped(CSV, kind=zipfile.ZIP_BZIP2), "email"),
    "zip, lzma": (zipped(CSV, kind=zipfile.ZIP_LZMA), "email"),
    "zip behind a stub": (b"MZ stub" * 100 + zipped(CSV), "email"),
    "zip, name of a member": (zipped(b"x", f"{EMAIL}.txt"), "email"),
    "zip of zip of gzip": (zipped(zipped(gzip.compress(CSV))), "email"),
    "7z": (seven_zip, "email"),
    "tar": (tarred(CSV), "email"),
    "tar.gz": (gzip.compress(tarred(CSV)), "email"),
    "tar of zip": (tarred(zipped(CSV)), "email"),
    "tar, name of a member": (tarred(b"x", f"a/{EMAIL}"), "email"),
    "Parquet in tar.xz": (lzma.compress(tarred(stored(pq.write_table))), "email"),
    "SQLite in zip": (zipped(sqlite()), "email"),
    "7z behind a stub": (lambda: b"MZ\x90\x00" * 100 + seven_zip(), "email"),
    "Avro behind a stub": (b"MZ\x90\x00" * 100 + avro("deflate"), "email"),
    "SQLite behind a stub": (b"MZ\x90\x00" * 100 + sqlite(), "email"),
    "Parquet behind a stub": (b"MZ\x90\x00" * 100 + packed_parquet(), "email"),
    "Parquet before a tail": (b"MZ\x90\x00" + packed_parquet() + b"MZ\x90\x00" * 100, "email"),
    "Base64 of gzip": (base64.b64encode(gzip.compress(CSV)), "email"),
    "Base64 of Parquet on lines": (base64.encodebytes(stored(pq.write_table)), "email"),
    # forms of texts
    "capitals": (EMAIL.upper().encode(), "email"),
    "spaces": (EMAIL.replace("@", " @ ").encode(), "email"),
    "UTF-16 with a mark": (EMAIL.encode("utf-16"), "email"),
    "UTF-16-BE with a mark": (b"\xfe\xff" + EMAIL.encode("utf-16-be"), "email"),
    "UTF-16-LE": (EMAIL.encode("utf-16-le"), "email"),
    "UTF-16-BE": (EMAIL.encode("utf-16-be"), "email"),
    "UTF-32": (EMAIL.encode("utf-32"), "email"),
    "UTF-16 inside bytes": (b"x" * 500 + EMAIL.encode("utf-16-le") + b"y" * 500, "email"),
    "UTF-8 with a mark": (b"\xef\xbb\xbf" + EMAIL.encode(), "email"),
    "UTF-8": (UMLAUT.encode(), "umlaut"),
    "UTF-8 in capitals": (UMLAUT.replace("ß", "ß").upper().replace("SS", "ß").encode(), "umlaut"),
    "Latin-1": (UMLAUT.encode("latin-1"), "umlaut"),
    "UTF-16-LE, umlauts": (UMLAUT.encode("utf-16-le"), "umlaut"),
    "JSON escapes": (json.dumps({"m": UMLAUT}).encode(), "umlaut"),
    "HTML entities": (html.escape(UMLAUT).replace("ü", "&uuml;").replace("Ö", "&#214;").replace(
        "ß", "&#xdf;").encode(), "umlaut"),
    "percent, umlauts": (quote(UMLAUT).encode(), "umlaut"),
    "quoted-printable": (quopri.encodestring(UMLAUT.encode(), quotetabs=True), "umlaut"),
    "quoted-printable, broken line": (EMAIL.replace("@", "=\r\n@").encode(), "email"),
    "octal escapes": (EMAIL.replace("@", "\\100").encode(), "email"),
    "hexadecimal escapes": (EMAIL.replace("@", "\\x40").encode(), "email"),
    "percent": (EMAIL.replace("@", "%40").replace(".", "%2E").encode(), "email"),
    "percent, twice": (EMAIL.replace("@", "%2540").encode(), "email"),
    "Base64": (base64.b64encode(EMAIL.encode()), "email"),
    "Base64 without padding": (b"t=" + base64.b64encode(EMAIL.encode()).rstrip(b"="), "email"),
    "URL-safe Base64": (base64.urlsafe_b64encode(b"\xc3\xbf\xc3\xbe " + EMAIL.encode()), "email"),
    "Base64 in a longer text": (base64.b64encode(f"a,{EMAIL},b".encode()), "email"),
    "Base64 on lines": (base64.encodebytes(CSV), "email"),
    "Base64 of UTF-16": (base64.b64encode(EMAIL.encode("utf-16-le")), "email"),
    "Base64, twice": (base64.b64encode(base64.b64encode(EMAIL.encode())), "email"),
    "Base32": (base64.b32encode(EMAIL.encode()), "email"),
    "token": (b"eyJhbGciOiJub25lIn0." + base64.urlsafe_b64encode(
        json.dumps({"sub": EMAIL}).encode()).rstrip(b"=") + b".", "email"),
    "hexadecimal": (EMAIL.encode().hex().encode(), "email"),
    "hexadecimal, capitals": (b"0x" + EMAIL.encode().hex().upper().encode(), "email"),
    "reversed": (EMAIL[::-1].encode(), "email"),
    "reversed, umlauts": (UMLAUT[::-1].encode(), "umlaut"),
    "card backwards": (f"card {CARD[::-1]} charged".encode(), "card"),
    "card in groups backwards": (" ".join(CARD[i : i + 4] for i in range(0, 16, 4))[::-1].encode(),
        "card"),
    "numbers backwards": (lines([str(it)[::-1] for it in IDS]), "id"),
    "dates backwards": (lines([str(it)[::-1] for it in BORN]), "born"),
    "salaries backwards": (lines([str(it)[::-1] for it in SALARIES]), "salary"),
    "mail header": (f"=?utf-8?b?{base64.b64encode(UMLAUT.encode()).decode()}?=".encode(), "umlaut"),
    "MD5": (hashlib.md5(EMAIL.encode()).hexdigest().encode(), "email"),
    "SHA-1 in capitals": (hashlib.sha1(EMAIL.encode()).hexdigest().upper().encode(), "email"),
    "SHA-256": (hashlib.sha256(EMAIL.encode()).hexdigest().encode(), "email"),
    "SHA-256 in Base64": (base64.b64encode(hashlib.sha256(EMAIL.encode()).digest()), "email"),
    "SHA-512": (b"x: " + hashlib.sha512(EMAIL.encode()).hexdigest().encode(), "email"),
    "SHA-512 in Base64": (base64.b64encode(hashlib.sha512(EMAIL.encode()).digest()), "email"),
    "MD5 of small letters": (hashlib.md5(UMLAUT.lower().encode()).hexdigest().encode(), "umlaut"),
    # groups, numbers, dates
    "IBAN": (IBAN.encode(), "iban"),
    "IBAN in groups": (" ".join(IBAN[i : i + 4] for i in range(0, 22, 4)).encode(), "iban"),
    "IBAN in small letters": (IBAN.lower().encode(), "iban"),
    "card in groups": ("-".join(CARD[i : i + 4] for i in range(0, 16, 4)).encode(), "card"),
    "card": (f"card {CARD} charged".encode(), "card"),
    "number": (f"see {IDS[0]}.".encode(), "id"),
    "number with commas": (f"{IDS[0]:,}".encode(), "id"),
    "number as a decimal": (f"{IDS[0]}.00".encode(), "id"),
    "number as a double": (f"{IDS[0]}.0".encode(), "id"),
    "number as Java writes doubles": (
        f"{str(IDS[0])[0]}.{str(IDS[0])[1:].rstrip('0')}E9".encode(), "id"),
    "names": (lines(NAMES), "name"),
    "names in a text": (lines([f"Dear {x}, we write to you." for x in NAMES]), "name"),
    "dates": (lines([str(it) for it in PEOPLE["born"]]), "born"),
    "dates of Germany": (
        lines([f"{it:%d.%m.%Y}" for it in BORN]), "born"),
    "dates with names": (
        lines([f"{it:%B %d, %Y}" for it in BORN]), "born"),
    "salaries": (lines([f"{it:.2f}" for it in SALARIES]), "salary"),
}  # fmt: skip


@pytest.mark.parametrize("what", FILES)
def test_a_planted_value_is_found(tmp_path: Path, what: str) -> None:
    content, column = FILES[what]
    # The name of the file says nothing of what is in it.
    (tmp_path / "x").write_bytes(content if isinstance(content, bytes) else content())
    assert column in columns_found(tmp_path)


def typed(values: pa.Array) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"x": values}), file)
    return file.getvalue()


def hash_of_spark(text: str) -> int:
    return int.from_bytes(xxhash.xxh64_digest(text.encode(), 42), "big", signed=True)


COLUMNS: dict[str, tuple[pa.Array, str]] = {
    "mail": (pa.array(SOME), "email"),
    "whole numbers": (pa.array(IDS), "id"),
    "unsigned numbers": (pa.array(IDS, pa.uint64()), "id"),
    "doubles": (pa.array(map(float, IDS), pa.float64()), "id"),
    "decimals": (pa.array(IDS, pa.decimal128(20, 0)).cast(pa.decimal128(22, 2)), "id"),
    "numbers as texts": (pa.array(map(str, IDS)), "id"),
    "dob": (pa.array(PEOPLE["born"][:300]), "born"),
    "dates as texts": (pa.array(map(str, PEOPLE["born"][:300])), "born"),
    "dates as timestamps": (pa.array(PEOPLE["born"][:300]).cast(pa.timestamp("ms")), "born"),
    "town": (pa.array([str(it) for it in PEOPLE["city"]] * 3), "city"),
    "list": (pa.array([SOME]), "email"),
    "structure": (pa.array([{"a": {"b": x}} for x in SOME]), "email"),
    "map": (pa.array([[(x, 1)] for x in SOME], pa.map_(pa.string(), pa.int32())), "email"),
    "dictionary": (pa.array(SOME).dictionary_encode(), "email"),
    "binary": (pa.array([x.encode() for x in SOME]), "email"),
    "MD5 as bytes": (pa.array([hashlib.md5(x.encode()).digest() for x in SOME]), "email"),
    "SHA-256 as fixed bytes": (
        pa.array([hashlib.sha256(x.encode()).digest() for x in SOME], pa.binary(32)), "email"),
    "xxhash64 of Spark": (pa.array(
        [hash_of_spark(x) for x in SOME]), "email"),
    "texts around": (pa.array([f"user {x} logged in" for x in SOME]), "email"),
    "Base64": (pa.array([base64.b64encode(x.encode()) for x in SOME]), "email"),
}  # fmt: skip


@pytest.mark.parametrize("what", COLUMNS)
def test_a_column_that_repeats_values_is_found(tmp_path: Path, what: str) -> None:
    values, column = COLUMNS[what]
    (tmp_path / "x").write_bytes(typed(values))
    found = search(tmp_path).files[0].findings
    assert column in {it.column for it in found}


@pytest.mark.parametrize("where", ["folder", "file", "partition", "encoded"])
def test_a_value_in_a_name_is_found_and_masked(tmp_path: Path, where: str) -> None:
    path = {
        "folder": tmp_path / EMAIL / "x",
        "file": tmp_path / f"{EMAIL}.txt",
        "partition": tmp_path / f"mail={EMAIL}" / "x",
        "encoded": tmp_path / f"mail={quote(EMAIL, safe='')}" / "x",
    }[where]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"nothing")
    report = search(tmp_path)
    assert [it.column for file in report.files for it in file.findings] == ["email"]
    assert EMAIL not in report.to_json()
    assert "***1" in report.files[0].path


def test_a_name_is_masked_whatever_the_file_holds_beside(tmp_path: Path) -> None:
    folder = tmp_path / "_KEY_MATERIAL_FOR_gone"
    folder.mkdir()
    (folder / f"{EMAIL}.csv").write_bytes(CSV)
    report = search(tmp_path)
    assert {file.path for file in report.files} == {f"{folder}/***1"}
    assert EMAIL not in report.to_json()


def test_a_report_holds_counts_and_no_value(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(CSV)
    report = search(tmp_path)
    (found,) = report.files[0].found
    assert (found.passed, found.compared, found.confirmed) == (5, 5, 5)
    assert found.share == pytest.approx(5 / len(PEOPLE["email"]))
    shown = report.to_json() + repr(report) + repr(INDEX) + report._repr_html_()
    assert not any(it in shown for it in SOME)


def test_a_csv_that_python_writes_is_found(tmp_path: Path) -> None:
    with (tmp_path / "x").open("w") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(ROWS)
    assert columns_found(tmp_path) == {"email"}
