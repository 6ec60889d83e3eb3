"""What cannot be read whole is listed with the reason; bombs stay within a budget."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import sqlite3
import struct
import sys
import tarfile
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import IO, Any

import lz4.frame
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from secure_bloom.running.memory_budget import VARIABLE
from secure_bloom.tracing import containers, content, sources, tabular
from secure_bloom.tracing.content import Opened
from secure_bloom.tracing.packed import PIECE, Budget, UnreadError, decompressed
from secure_bloom.tracing.sources import parts_of
from secure_bloom.tracing.tabular import avro_columns, sqlite_columns
from tests.lakes.avro_files import avro, framed, number
from tests.tracing.people import search
from tests.tracing.test_planted import CSV, EMAIL, tarred, zipped


def unread(folder: Path, content: bytes) -> list[str]:
    (folder / "x").write_bytes(content)
    return [it.reason for file in search(folder).files for it in file.unread]


def with_password() -> bytes:
    content = bytearray(zipped(CSV, kind=zipfile.ZIP_STORED))
    # The flags of the local header and of the central directory.
    content[6] |= 1
    content[content.index(b"PK\1\2") + 8] |= 1
    return bytes(content)


UNREAD = {
    "7z": (b"7z\xbc\xaf\x27\x1c" + b"\0" * 40, "7z"),
    "RAR": (b"Rar!\x1a\x07\0" + b"\0" * 40, "RAR"),
    "zip with a password": (with_password(), "password"),
    "zip, cut": (zipped(CSV * 99)[:60], "cut short"),
    "gzip, cut": (gzip.compress(CSV * 99)[:60], "cut short"),
    "bzip2, cut": (bz2.compress(CSV * 99)[:-9], "cut short"),
    "xz, cut": (lzma.compress(CSV * 99)[:-9], "cut short"),
    "zstd, cut": (zstandard.compress(CSV * 99)[:-3], "zstd data"),
    "zstd, a second frame is cut": (2 * zstandard.compress(CSV) + b"\x28\xb5\x2f\xfd", "zstd data"),
    "lz4, cut": (lz4.frame.compress(CSV * 99)[:-9], "cut short"),
    "gzip, damaged": (gzip.compress(CSV)[:20] + b"\xff" * 40, "damaged"),
    "tar, cut": (tarred(CSV * 99)[:600], "cut short"),
    "Parquet, cut": (b"PAR1" + b"\0" * 40, "Parquet"),
    "SQLite, damaged": (b"SQLite format 3\0" + b"\xff" * 4000, "SQLite"),
    "Avro, damaged": (b"Obj\x01" + b"\xff" * 40, "Avro"),
    "ORC, damaged": (b"ORC" + b"\xff" * 40, "ORC"),
    "Arrow, damaged": (b"ARROW1\0\0" + b"\xff" * 40, "Arrow"),
    "encrypted": (b"Salted__" + b"\xff" * 40, "encrypted"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + b"\0" * 40, "HDF5"),
}


@pytest.mark.parametrize("what", UNREAD)
def test_what_is_not_read_is_listed_with_the_reason(tmp_path: Path, what: str) -> None:
    content, word = UNREAD[what]
    reasons = unread(tmp_path, content)
    assert any(word in it for it in reasons)


@pytest.mark.parametrize(
    ("kind", "pack"), [("zstd", zstandard.compress), ("lz4", lz4.frame.compress)]
)
def test_arrow_unpacks_where_a_library_is_missing(
    kind: str, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "lz4.frame", None)
    content = os.urandom(3_000_000)
    packed = 2 * pack(content)
    assert b"".join(decompressed(io.BytesIO(packed), kind, Budget(0, 1 << 30, 0))) == 2 * content
    with pytest.raises(UnreadError):
        list(decompressed(io.BytesIO(packed[:-9]), kind, Budget(0, 1 << 30, 0)))


def test_a_bomb_of_lz4_is_unpacked_in_pieces() -> None:
    packed = io.BytesIO(lz4.frame.compress(bytes(40 << 20)))
    assert max(map(len, decompressed(packed, "lz4", Budget(0, 1 << 30, 0)))) <= PIECE


def test_an_encrypted_parquet_file_is_not_called_clean(tmp_path: Path) -> None:
    (reason,) = set(unread(tmp_path, b"PARE" + b"\0" * 40 + struct.pack("<I", 20) + b"PARE"))
    assert "Parquet" in reason


def nested(depth: int) -> bytes:
    content = CSV
    for _ in range(depth):
        content = zipped(content)
    return content


def test_containers_are_opened_as_deep_as_documented(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(nested(sources.DEEPEST))
    report = search(tmp_path)
    assert report.files[0].found
    assert not report.files[0].unread
    (reason,) = unread(tmp_path, nested(sources.DEEPEST + 1))
    assert f"more than {sources.DEEPEST} others" in reason


def test_a_bomb_stays_within_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "_LEAST_BUDGET", 8 << 20)
    bomb = gzip.compress(gzip.compress(b"\0" * (80 << 20)))
    tracemalloc.start()
    reasons = unread(tmp_path, bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert any("bytes when decoded" in it for it in reasons)
    assert peak < 64 << 20


def test_many_members_share_one_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "_LEAST_BUDGET", 1 << 20)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for n in range(20):
            archive.writestr(str(n), b"\0" * (1 << 20))
    assert any("bytes when decoded" in it for it in unread(tmp_path, file.getvalue()))


def with_entries(content: bytes, count: int, *, differ: bool) -> bytes:
    """A zip archive whose directory has many entries of one member, of sizes that ``differ``."""
    entries, end = content.index(b"PK\1\2"), content.index(b"PK\5\6")
    head, rest = content[entries : entries + 20], content[entries + 24 : end]
    (size,) = struct.unpack_from("<I", content, entries + 20)
    sizes = (struct.pack("<I", size + n * differ) for n in range(count))
    directory = b"".join(head + it + rest for it in sizes)
    last = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, len(directory), entries, 0)
    return content[:entries] + directory + last


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The members of zip archives that were unpacked, with a budget of 1 MiB."""
    monkeypatch.setattr(content, "_LEAST_BUDGET", 1 << 20)
    opened, whole = list[object](), zipfile.ZipFile.open

    def counted(self: zipfile.ZipFile, name: zipfile.ZipInfo, mode: Any = "r") -> IO[bytes]:
        opened.extend([name] * (mode == "r"))
        return whole(self, name, mode)

    monkeypatch.setattr(zipfile.ZipFile, "open", counted)
    return opened


def test_no_member_is_unpacked_after_the_budget(tmp_path: Path, unpacked: list[object]) -> None:
    """Entries of a directory are a few bytes each, and may all name the same large member."""
    content = with_entries(zipped(b"\0" * (8 << 20)), 300, differ=True)
    reasons = unread(tmp_path, content)
    assert sum("bytes when decoded" in it for it in reasons) >= 300
    assert len(unpacked) < 20


def test_a_member_with_many_entries_is_unpacked_once(
    tmp_path: Path, unpacked: list[object]
) -> None:
    assert unread(tmp_path, with_entries(zipped(CSV * 50), 60_000, differ=False)) == []
    assert len(unpacked) == 1


def test_a_sparse_member_of_any_size_stays_within_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content, "_LEAST_BUDGET", 1 << 20)
    info = tarfile.TarInfo("x")
    info.size = 1 << 40
    assert unread(tmp_path, info.tobuf() + b"\0" * 2048)


def bombs_of_avro() -> dict[str, bytes]:
    """Files of some KB whose records become hundreds of MB."""
    item = {"type": "record", "name": "i", "fields": [{"name": "b", "type": "boolean"}]}
    size = 1 << 20
    listed = number(size) + bytes(size + 1)
    wide = [{"name": f"n{n}", "type": "null"} for n in range(10_000)]
    return {
        "a text": avro(_record("a", "bytes"), "deflate", 1, _deflated(framed(bytes(64 << 20)))),
        "structures": avro(
            _record("a", {"type": "array", "items": item}), "deflate", 1, _deflated(listed)
        ),
        "fields": avro(
            json.dumps(
                {"type": "record", "name": "r", "fields": [*wide, *item["fields"]]}
            ).encode(),
            "deflate",
            size,
            _deflated(bytes(size)),
        ),
        "a type that holds itself": avro(
            _record("a", ["null", "r"]), "deflate", 1, _deflated(b"\2" * size + b"\0")
        ),
    }


def _record(name: str, kind: object) -> bytes:
    fields = [{"name": name, "type": kind}]
    return json.dumps({"type": "record", "name": "r", "fields": fields}).encode()


def _deflated(text: bytes) -> bytes:
    one = zlib.compressobj(9, zlib.DEFLATED, -15)
    return one.compress(text) + one.flush()


@pytest.mark.parametrize("what", ["a text", "structures", "fields", "a type that holds itself"])
def test_records_of_avro_stay_within_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setenv(VARIABLE, "32MiB")
    content = bombs_of_avro()[what]
    tracemalloc.start()
    try:
        assert unread(tmp_path, content)
        assert tracemalloc.get_traced_memory()[1] < 96 << 20
    finally:
        tracemalloc.stop()


class _Planted:
    """An object whose pickle calls a function when it is loaded."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self._path,))


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(pickle.dumps([EMAIL, _Planted(tmp_path / "touched")]))
    assert search(tmp_path).files[0].found
    assert not (tmp_path / "touched").exists()


def test_a_missing_library_is_a_reason_that_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "py7zr", None)
    (reason,) = unread(tmp_path, b"7z\xbc\xaf\x27\x1c" + b"\0" * 40)
    assert "secure-bloom[trace]" in reason


def test_records_without_an_end_are_not_followed() -> None:
    with pytest.raises(UnreadError):
        list(avro_columns(io.BytesIO(b"Obj\x01\xff"), Budget(0, 100, 0)))


def test_members_behind_each_other_are_all_read() -> None:
    content = gzip.compress(b"one") + b"\0" * 10 + gzip.compress(b"two")
    found = b"".join(decompressed(io.BytesIO(content), "gzip", Budget(0, 100, 0)))
    assert found == b"onetwo"


def test_a_part_that_is_damaged_does_not_hide_the_others(tmp_path: Path) -> None:
    good = io.BytesIO()
    pq.write_table(pa.table({"a": [EMAIL]}), good)
    (tmp_path / "x").write_bytes(zipped(gzip.compress(CSV * 999)[:2000]))
    assert {it.place for it in search(tmp_path).files[0].found} == {"member 1, gzip"}
    parts = list(parts_of(io.BytesIO(good.getvalue()), Opened.of(1000)))
    assert [part.place for part in parts] == ["", "column 1"]


def test_a_directory_of_many_members_stays_within_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "16MiB")
    entries = (b"PK\1\2" + bytes(42)) * 50_000
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, len(entries), 0, 0)
    file, opened = io.BytesIO(entries + end), Opened.of(len(entries))
    tracemalloc.start()
    try:
        assert len(list(parts_of(file, opened))) == 1
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert any("directory" in reason for _, reason in opened.unread)


def test_members_of_a_tar_archive_are_forgotten_when_they_are_read() -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for n in range(3_000):
            archive.addfile(tarfile.TarInfo(f"member {n} of the archive"))
    file.seek(0)
    tracemalloc.start()
    try:
        parts = sum(1 for _ in parts_of(file, Opened.of(len(file.getvalue()))))
        assert tracemalloc.get_traced_memory()[1] < 3 << 20
    finally:
        tracemalloc.stop()
    assert parts > 3_000


def pdf(*streams: bytes) -> bytes:
    made = b"".join(b"<<>>stream\n" + zlib.compress(it) + b"\nendstream\n" for it in streams)
    return b"%PDF-1.7\n" + made + b"%%EOF\n"


def test_streams_of_a_pdf_take_time_that_grows_with_their_number() -> None:
    content = pdf(*[b"x"] * 60_000)
    start = time.process_time()
    parts = sum(1 for _ in parts_of(io.BytesIO(content), Opened.of(len(content))))
    assert parts > 60_000
    assert time.process_time() - start < 8


def test_a_text_of_a_pdf_with_many_spaces_takes_linear_time() -> None:
    content = pdf(b")" + b" " * 200_000 + b"1" * 200_000)
    start = time.process_time()
    for part in parts_of(io.BytesIO(content), Opened.of(len(content))):
        assert part.pieces is not None
        list(part.pieces)
    assert time.process_time() - start < 5


def test_a_stream_of_a_pdf_that_is_damaged_or_too_long_is_searched_as_far_as_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = zlib.compress(EMAIL.encode() + b"\n" + os.urandom(4000))[:-100] + b"\xff" * 200
    (tmp_path / "x").write_bytes(b"%PDF-1.7\nstream\n" + cut)
    assert search(tmp_path).files[0].found
    monkeypatch.setattr(containers, "_LONGEST_STREAM", 1 << 20)
    (reason,) = unread(tmp_path, pdf(EMAIL.encode() + b"\n" + bytes(2 << 20)))
    assert "a stream of more than" in reason


def test_a_default_of_many_rows_stays_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "32MiB")
    with closing(sqlite3.connect(":memory:")) as made:
        made.execute("CREATE TABLE t (a INT)")
        made.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(200)])
        # Rows that were written before do not store it.
        made.execute(f"ALTER TABLE t ADD COLUMN b DEFAULT '{'x' * (1 << 20)}'")
        made.commit()
        content = made.serialize()
    arrays = (
        array
        for column in sqlite_columns(io.BytesIO(content), Budget(0, 100 << 20, 0))
        for array in column.arrays
    )
    tracemalloc.start()
    try:
        with pytest.raises(UnreadError):
            sum(1 for _ in arrays)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def database(columns: list[str], *rows: tuple[object, ...]) -> bytes:
    with closing(sqlite3.connect(":memory:")) as made:
        made.execute(f"CREATE TABLE t ({', '.join(columns)})")
        made.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", rows)
        made.commit()
        return made.serialize()


class Statements(sqlite3.Connection):
    """A connection that counts the statements which read values."""

    number = 0

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        Statements.number += sql.startswith('SELECT "')
        return super().execute(sql, *values)


@pytest.mark.parametrize(("part", "statements"), [(16, 1), (50_000, 3), (1 << 40, 79)])
def test_one_pass_over_a_database_reads_all_columns_that_memory_takes(
    monkeypatch: pytest.MonkeyPatch, part: int, statements: int
) -> None:
    rows = [(n, *[n * 0.5, None, b"blob", f"text {n}"] * 9, "x", "y", "z") for n in range(200)]
    content = database([f"c{n}" for n in range(len(rows[0]))], *rows)
    monkeypatch.setattr(tabular, "_HELD_AT_ONCE", part)
    monkeypatch.setattr(Statements, "number", 0)
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Statements))
    found = [
        (column.name, [it for array in column.arrays for it in array.to_pylist()])
        for column in sqlite_columns(io.BytesIO(content), Budget(0, 100 << 20, 0))
    ]
    assert found == [
        (f"c{n}", [it.encode() if isinstance(it, str) else it for it in values if it is not None])
        for n, values in enumerate(zip(*rows, strict=True))
    ]
    assert Statements.number == statements


def test_columns_of_a_damaged_table_keep_the_values_before_the_damage() -> None:
    content = bytearray(database(["a", "b"], *[(n, f"{n}" * 100) for n in range(1_000)]))
    content[-4096 * 5 :] = b"\xff" * 4096 * 5
    columns = list(sqlite_columns(io.BytesIO(content), Budget(0, 100 << 20, 0)))
    assert [it.name for it in columns] == ["a", "b"]
    for column in columns:
        assert len(next(column.arrays)) > 100
        with pytest.raises(UnreadError, match="cannot be read"):
            next(column.arrays)
