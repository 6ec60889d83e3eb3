"""Values packed in odd ways are found, or the report says what was not read: never silence."""

from __future__ import annotations

import base64
import binascii
import bz2
import gzip
import io
import json
import lzma
import pickle
import random
import sqlite3
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import fastavro
import lz4.block
import lz4.frame
import py7zr
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from pyarrow import feather, orc

from secure_bloom.tracing.packed import STREAM_MARKS
from secure_bloom.tracing.unmarked import Evenness
from tests.tracing.people import PEOPLE, columns_found, search
from tests.tracing.test_planted import skippable, snappy_framed

_chance = random.Random(3)
EMAILS = [str(it) for it in PEOPLE["email"][100:140]]


def _shattered() -> bytes:
    """E-mails behind their halves: codecs that refer back do not store one of them whole."""
    halves = []
    for email in EMAILS:
        middle = len(email) // 2
        halves += [email[:middle] + _chance.choice("%!?#"), _chance.choice("%!?#") + email[middle:]]
    _chance.shuffle(halves)
    return ("".join(halves) + "\n" + "\n".join(EMAILS) + "\n").encode()


PLAIN = _shattered()
#: A program that unpacks itself begins with other bytes.
STUB = bytes(range(256)) * 12
_LINES = b"a text\n" * 1_300
ZLIB, GZIP, XZ = zlib.compress(PLAIN), gzip.compress(PLAIN), lzma.compress(PLAIN)


def tarred(content: bytes, form: int = tarfile.PAX_FORMAT, name: str = "x") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def old_tar(content: bytes) -> bytes:
    """An archive as before POSIX, without a mark."""
    made = bytearray(tarred(content, tarfile.USTAR_FORMAT))
    made[257:265] = bytes(8)
    made[148:156] = b"%06o\0 " % (sum(made[:148]) + 8 * 32 + sum(made[156:512]))
    return bytes(made)


def zipped(content: bytes, name: str = "x", comment: bytes = b"", *, zip64: bool = False) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(name, "w", force_zip64=zip64) as member:
            member.write(content)
        archive.comment = comment
    return file.getvalue()


def streamed_zip() -> bytes:
    """Descriptions follow the members, as in a zip that is written to a pipe."""

    class Pipe(io.RawIOBase):
        written = b""

        def writable(self) -> bool:
            return True

        def write(self, content: object) -> int:
            self.written += bytes(content)  # type: ignore[call-overload]
            return len(bytes(content))  # type: ignore[call-overload]

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[call-overload]
        archive.writestr("x", PLAIN)
    return pipe.written


def gzip_with_header_fields() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    fields = b"\x04\0abcd" + b"name\0" + b"comment\0"
    packed = packer.compress(PLAIN) + packer.flush()
    end = struct.pack("<II", zlib.crc32(PLAIN), len(PLAIN))
    return b"\x1f\x8b\x08\x1c\0\0\0\0\0\3" + fields + packed + end


def deflated() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(PLAIN) + packer.flush()


def lzma_alone(**settings: int) -> bytes:
    filters = [{"id": lzma.FILTER_LZMA1, **settings}]
    return lzma.compress(PLAIN, lzma.FORMAT_ALONE, filters=filters)


def xz(**settings: int) -> bytes:
    return lzma.compress(PLAIN, filters=[settings, {"id": lzma.FILTER_LZMA2}])


def lz4_block() -> bytes:
    return bytes(lz4.block.compress(PLAIN, store_size=False))


def snappy_block() -> bytes:
    return pa.Codec("snappy").compress(PLAIN).to_pybytes()


def of_hadoop(block: bytes) -> bytes:
    return struct.pack(">II", len(PLAIN), len(block)) + block


def snappy_of_java() -> bytes:
    block = snappy_block()
    return b"\x82SNAPPY\0" + struct.pack(">III", 1, 1, len(block)) + block


def seven_zip(content: bytes = PLAIN, *filters: dict[str, int]) -> bytes:
    file = io.BytesIO()
    with py7zr.SevenZipFile(file, "w", filters=list(filters) or None) as archive:
        archive.writestr(b"other" * 100, "a")
        archive.writestr(content, "x")
    return file.getvalue()


def cpio(content: bytes) -> bytes:
    numbers = (1, 0o100644, 0, 0, 1, 0, len(content), 0, 0, 0, 0, 2, 0)
    return b"070701" + b"".join(b"%08x" % it for it in numbers) + b"x\0" + content


def debian(content: bytes) -> bytes:
    head = b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (b"x/", 0, 0, 0, 0o644, len(content))
    return b"!<arch>\n" + head + content


def stored(write: Callable[[pa.Table, io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(pa.table({"n": range(120), "mail": EMAILS * 3}), file)
    return file.getvalue()


def stream_of_arrow(table: pa.Table, file: io.BytesIO) -> None:
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(file, table.schema, options=options) as writer:
        writer.write_table(table)


def empty_stream() -> bytes:
    file = io.BytesIO()
    pa.ipc.new_stream(file, pa.schema({"a": pa.int8()})).close()
    return file.getvalue()


ORC = stored(lambda t, f: orc.write_table(t, f, compression="zlib"))
FEATHER = stored(lambda t, f: feather.write_feather(t, f, compression="zstd"))
STREAM = stored(stream_of_arrow)
PARQUET = stored(lambda t, f: pq.write_table(t, f, compression="brotli", write_statistics=False))


def blob(content: bytes) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"blob": [None, b"", content]}), file, compression="zstd")
    return file.getvalue()


def blob_in_sqlite(content: bytes = ZLIB) -> bytes:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (b BLOB)")
    database.execute("INSERT INTO t VALUES (?)", (content,))
    database.commit()
    return database.serialize()


def pdf(stream: bytes = b"BT (Hello) TJ ET") -> bytes:
    head = b"%PDF-1.4\n1 0 obj <</Length 0>>\nstream\n"
    return head + stream + b"\nendstream\nendobj\n%%EOF\n"


def before_its_directory(content: bytes) -> bytes:
    """A zip archive with other bytes between its last member and its directory."""
    made = zipped(b"x")
    directory, start = made.index(b"PK\1\2"), len(made) - 6
    moved = struct.pack("<I", directory + len(content))
    return made[:directory] + content + made[directory:start] + moved + made[start + 4 :]


def uuencoded() -> bytes:
    lines = (binascii.b2a_uu(GZIP[at : at + 45]) for at in range(0, len(GZIP), 45))
    return b"Dear all,\nbegin 644 x.gz\n" + b"".join(lines) + b"`\nend\n"


def utf16_sheet() -> bytes:
    text = "<?xml version='1.0' encoding='utf-16'?><t>" + "</t><t>".join(EMAILS) + "</t>"
    return zipped(text.encode("utf-16"), "xl/sharedStrings.xml")


#: Files that end before the file does in which they are.
ENDED: dict[str, bytes | Callable[[], bytes]] = {
    "zip": zipped(b"x"),
    "7z": lambda: seven_zip(b"x"),
    "SQLite": blob_in_sqlite(b"x"),
    "an Arrow stream": empty_stream(),
    "PDF": pdf(),
    "a legacy frame of lz4": b"\x02\x21\x4c\x18" + struct.pack("<I", 2) + b"\x10x",
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(40),
}


def followed(first: bytes | Callable[[], bytes], content: bytes) -> Callable[[], bytes]:
    return lambda: (first if isinstance(first, bytes) else first()) + content


#: What takes long to make is a function: it is not called where tests are collected.
FOUND: dict[str, bytes | Callable[[], bytes]] = {
    # zip
    "zip64": zipped(PLAIN, zip64=True),
    "zip with a comment": zipped(PLAIN, comment=b"hello" * 20),
    "zip with descriptions": streamed_zip(),
    "zip before other bytes": zipped(PLAIN) + bytes(100),
    "zip before another": zipped(PLAIN) + zipped(b"x"),
    "zip after another": zipped(b"x") + zipped(PLAIN),
    "zip of UTF-16": zipped("\n".join(EMAILS).encode("utf-16")),
    "xlsx of UTF-16": utf16_sheet(),
    "zip with gzip as its comment": zipped(b"x", comment=GZIP),
    "zip with gzip before its directory": before_its_directory(GZIP),
    # what follows files that know where they end
    **{f"gzip after {name}": followed(first, GZIP) for name, first in ENDED.items()},
    **{f"lzma after {name}": followed(ENDED[name], lzma_alone()) for name in ("PDF", "a picture")},
    "7z after another": lambda: seven_zip(b"x") + seven_zip(),
    "SQLite after a PDF": pdf() + blob_in_sqlite(),
    "a packed file in PDF": pdf(zlib.compress(zipped(PLAIN))),
    "a file in PDF": pdf(GZIP),
    "snappy, gzip in a chunk that is skipped": (
        snappy_framed(b"x") + b"\x80" + len(GZIP).to_bytes(3, "little") + GZIP
    ),
    # streams
    "gzip with all fields": gzip_with_header_fields(),
    "gzip after zeros": gzip.compress(b"a") + bytes(512) + GZIP,
    "gzip after other bytes": gzip.compress(b"a") + b"junk!" + GZIP,
    "gzip of gzip of xz": gzip.compress(gzip.compress(XZ)),
    "Base64 of a PDF": base64.encodebytes(pdf(ZLIB)),
    "Base64 of a file of Debian": base64.b64encode(debian(GZIP)),
    "Base64 of a packed tar with gzip": base64.b64encode(gzip.compress(tarred(GZIP))),
    "hexadecimal of zip of tar of gzip of xz": zipped(tarred(gzip.compress(XZ))).hex().encode(),
    "deflate": deflated(),
    "zlib inside other bytes": STUB + ZLIB + STUB,
    "zlib, fastest": zlib.compress(PLAIN, 1),
    "bzip2 of small blocks behind a stub": STUB + bz2.compress(PLAIN, 1),
    "xz after padding": lzma.compress(b"a") + bytes(8) + XZ,
    "xz without a check": lzma.compress(PLAIN, check=lzma.CHECK_NONE),
    "xz of a program": xz(id=lzma.FILTER_X86),
    "xz of differences": xz(id=lzma.FILTER_DELTA, dist=3),
    "xz behind a stub": STUB + XZ,
    "lzma with other properties": lzma_alone(lc=0, lp=2, pb=0),
    "lzma with an odd dictionary": lzma_alone(dict_size=70_001),
    "zstd without its size": zstandard.ZstdCompressor(write_content_size=False).compress(PLAIN),
    "zstd behind a stub": STUB + zstandard.compress(PLAIN),
    "zstd, gzip in a skippable frame": skippable(GZIP) + zstandard.compress(b"x"),
    "zstd, gzip in the last frame": zstandard.compress(b"x") + skippable(GZIP),
    "lz4 of two frames": lz4.frame.compress(b"a") + lz4.frame.compress(PLAIN),
    "lz4 of linked blocks": lz4.frame.compress(PLAIN * 3_000, block_linked=True),
    "lz4 behind a stub": STUB + lz4.frame.compress(PLAIN),
    "lz4, legacy frame": b"\x02\x21\x4c\x18" + struct.pack("<I", len(lz4_block())) + lz4_block(),
    "lz4 of Hadoop": of_hadoop(lz4_block()),
    "lz4, a block with its size": bytes(lz4.block.compress(PLAIN)),
    "snappy, a block": snappy_block(),
    "snappy of Hadoop": of_hadoop(snappy_block()),
    "snappy of Java": snappy_of_java(),
    "snappy behind a stub": STUB + snappy_framed(PLAIN),
    "brotli": pa.Codec("brotli").compress(PLAIN).to_pybytes(),
    # archives
    "tar of GNU": tarred(ZLIB, tarfile.GNU_FORMAT),
    "tar with a long name": tarred(ZLIB, tarfile.GNU_FORMAT, "a/" * 150 + "x"),
    "tar before POSIX": old_tar(GZIP),
    "tar after another": tarred(b"x") + tarred(ZLIB),
    "tar behind a stub": STUB + tarred(ZLIB),
    "tar of ORC behind a stub": STUB + tarred(ORC),
    "tar of Arrow behind a stub": STUB + tarred(FEATHER),
    "tar.zst": zstandard.compress(tarred(ZLIB)),
    "tar.lz4": lz4.frame.compress(tarred(ZLIB)),
    "cpio": cpio(ZLIB),
    "cpio of Parquet": cpio(PARQUET),
    "Debian package": debian(lzma.compress(tarred(PLAIN))),
    "7z, solid": seven_zip,
    "7z, LZMA": lambda: seven_zip(PLAIN, {"id": py7zr.FILTER_LZMA}),
    "7z, bzip2": lambda: seven_zip(PLAIN, {"id": py7zr.FILTER_BZIP2}),
    "7z, PPMd": lambda: seven_zip(PLAIN, {"id": py7zr.FILTER_PPMD, "order": 6, "mem": 24}),
    "7z, zstd": lambda: seven_zip(PLAIN, {"id": py7zr.FILTER_ZSTD, "level": 3}),
    "7z, stored gzip": lambda: seven_zip(GZIP, {"id": py7zr.FILTER_COPY}),
    # columns behind and before other bytes
    "ORC behind a stub": STUB + ORC,
    "ORC behind a text": b"header with ORC\n" + ORC,
    "Arrow behind a stub": STUB + FEATHER,
    "Arrow behind a text": b"header\n" + FEATHER,
    "Arrow stream": STREAM,
    "Arrow stream behind a stub": STUB + STREAM,
    "Arrow stream after another": empty_stream() + STREAM,
    "Parquet after another": PARQUET + PARQUET,
    # packed data in values
    **{
        f"{name} in a column": blob(content)
        for name, content in (("zlib", ZLIB), ("gzip", GZIP), ("xz", XZ), ("Parquet", PARQUET))
    },
    "zlib in SQLite": blob_in_sqlite(),
    "zlib in a pickle": pickle.dumps({"a": ZLIB}),
    # packed data in texts
    "uuencode": uuencoded(),
    "Base64 of deflate": base64.b64encode(deflated()),
    "Base64 of snappy": base64.b64encode(snappy_framed(PLAIN)),
    "Base64 of tar": base64.b64encode(tarred(ZLIB)),
    "gzip after a text in gzip": gzip.compress(_LINES + GZIP),
    "Base64 of tar of gzip": base64.b64encode(tarred(GZIP)),
    "Base64 of a pickle of zlib": base64.b64encode(pickle.dumps({"a": ZLIB})),
    "zip after a text in zip": zipped(_LINES + zipped(PLAIN)),
    "zip after a text in zip in Base64": base64.b64encode(zipped(_LINES + zipped(PLAIN))),
    "zip between other bytes": STUB + zipped(PLAIN) + bytes(70_000),
    "two zips between other bytes": STUB + zipped(b"-") + zipped(PLAIN) + bytes(70_000),
    "Base64 in zip in gzip": gzip.compress(zipped(base64.b64encode(ZLIB))),
    "URL-safe Base64 of zlib": base64.urlsafe_b64encode(ZLIB),
    "hexadecimal of gzip": GZIP.hex().encode(),
}


@pytest.mark.parametrize("what", FOUND)
def test_what_is_packed_in_an_odd_way_is_found(tmp_path: Path, what: str) -> None:
    content = FOUND[what]
    (tmp_path / "x").write_bytes(content if isinstance(content, bytes) else content())
    assert columns_found(tmp_path) == {"email"}


def _damaged(content: bytes, at: int) -> bytes:
    return content[:at] + bytes(it ^ 0x5A for it in content[at : at + 16]) + content[at + 16 :]


NOISE = random.Random(1).randbytes(3_000)
SEVERAL = zstandard.ZstdCompressionDict("".join(EMAILS).encode())
UNREAD: dict[str, tuple[bytes, str]] = {
    "raw lzma": (
        lzma.compress(PLAIN, lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2}]),
        "look packed",
    ),
    "noise": (NOISE, "look packed"),
    "noise behind a text": (b"a text\n" * 999 + NOISE, "look packed"),
    "noise in a zip": (zipped(NOISE), "look packed"),
    "zstd with a dictionary": (
        zstandard.ZstdCompressor(dict_data=SEVERAL).compress(PLAIN),
        "dictionary",
    ),
    "zip without its directory": (zipped(PLAIN)[:-90], "cut short"),
    "ORC with its start cut off": (STUB + ORC[9:], "ORC"),
    "ORC before a tail": (ORC + STUB, "ORC"),
    "Arrow before a tail": (FEATHER + STUB, "Arrow"),
    "RAR behind a stub": (STUB + b"Rar!\x1a\x07\x01\0" + NOISE, "RAR"),
    "RAR in Base64": (base64.b64encode(b"Rar!\x1a\x07\x01\0" + NOISE), "RAR"),
    "RAR in a column": (blob(b"Rar!\x1a\x07\x01\0" + NOISE), "RAR"),
    "lrzip": (b"LRZI" + NOISE, "lrzip"),
    "compress": (b"\x1f\x9d\x90" + NOISE, "compress"),
    "LHA": (b"\x21\x1d-lh5-" + NOISE, "look packed"),
    "cut SQLite of packed values": (blob_in_sqlite()[:5_000], "SQLite database that is cut short"),
    "damaged stream of a PDF": (pdf(_damaged(ZLIB, 9)), "a damaged stream"),
    "damaged zlib in Base64": (base64.b64encode(_damaged(ZLIB, 500)), "zlib data"),
    "damaged ORC in Base64": (base64.b64encode(_damaged(ORC, len(ORC) - 16)), "ORC"),
    "damaged gzip in ar in Base64": (
        base64.b64encode(b"!<arch>\n" + _damaged(GZIP, 99) + NOISE),
        "look packed",
    ),
    "packed data after a long text": (
        gzip.compress(b"a text\n" * 1_200_000 + GZIP, 1),
        "a decoded text inside packed data",
    ),
}


@pytest.mark.parametrize("what", UNREAD)
def test_what_is_not_opened_is_listed(tmp_path: Path, what: str) -> None:
    content, reason = UNREAD[what]
    (tmp_path / "x").write_bytes(content)
    (file,) = search(tmp_path).files
    assert reason in " ".join(it.reason for it in file.unread)


def test_a_text_that_holds_too_many_containers_is_listed(tmp_path: Path) -> None:
    content = GZIP
    for _ in range(9):
        content = gzip.compress(content)
    (tmp_path / "x").write_bytes(base64.b64encode(content))
    (file,) = search(tmp_path).files
    assert "inside more than 8 others" in " ".join(it.reason for it in file.unread)


@pytest.mark.parametrize("mark", [b"\x89PNG\r\n\x1a\n", b"\0\0\0\x20ftypisom", b"\x7fELF", b"PFA1"])
def test_pictures_films_and_programs_are_not_called_packed(mark: bytes) -> None:
    evenness = Evenness(mark)
    evenness.take(mark + NOISE + bytes(5_000))
    assert not evenness.is_packed


def _stream_of_arrow() -> bytes:
    sink, table = io.BytesIO(), pa.table({"email": EMAILS})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


_TEXT = "\n".join(EMAILS).encode()


@pytest.mark.parametrize(
    "content",
    [_stream_of_arrow(), gzip.compress(_TEXT), bz2.compress(_TEXT), zstandard.compress(_TEXT)],
    ids=["Arrow stream", "gzip", "bzip2", "zstd"],
)
def test_damaged_files_in_base64_are_found_or_listed(tmp_path: Path, content: bytes) -> None:
    places = [12, len(content) // 2, len(content) - 16]
    variants = [*(_damaged(content, at) for at in places), content[: len(content) * 2 // 3]]
    for n, damaged in enumerate(variants):
        (tmp_path / f"{n}.b64").write_bytes(base64.b64encode(damaged))
        (tmp_path / f"{n}.gz.b64").write_bytes(base64.b64encode(gzip.compress(damaged)))
    silent = 2 * len(variants) - len(search(tmp_path).files)
    assert not silent


def test_an_arrow_stream_in_base64_is_found(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(base64.b64encode(_stream_of_arrow()))
    assert "email" in columns_found(tmp_path)


def test_packed_values_of_a_database_in_an_archive_in_base64_are_found(tmp_path: Path) -> None:
    database = sqlite3.connect(":memory:")
    database.execute("create table t(b blob)")
    rows = [(zlib.compress(it.encode()),) for it in EMAILS]
    database.executemany("insert into t values(?)", rows)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("db", database.serialize())
    (tmp_path / "x").write_bytes(base64.b64encode(archive.getvalue()))
    assert "email" in columns_found(tmp_path)


@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.parametrize("tail", [b"the end\n", bytes(512), b"cut"])
def test_whole_blocks_of_avro_are_searched_and_the_rest_is_listed(
    tmp_path: Path, codec: str, tail: bytes
) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "c", "type": "string"}]}
    file = io.BytesIO()
    fastavro.writer(file, schema, [{"c": it} for it in EMAILS], codec, sync_interval=400)
    content = file.getvalue()[:-20] if tail == b"cut" else file.getvalue() + tail
    (tmp_path / "x").write_bytes(STUB + content)
    (found,) = search(tmp_path).files
    assert any(it.passed > 20 and "column" in it.place for it in found.found)
    assert any("Avro" in it.reason for it in found.unread)


#: No window of these bytes looks packed.
_EVEN = bytes([0, 1, 0, 2, 0, 3, 0, 9]) * 40
CUT: dict[str, bytes] = {
    "gzip": GZIP,
    "zlib": ZLIB,
    "bzip2": bz2.compress(PLAIN),
    "xz": XZ,
    "zstd": zstandard.compress(PLAIN),
    "lz4": lz4.frame.compress(PLAIN),
    "snappy": snappy_framed(PLAIN),
    "zip": zipped(PLAIN),
    "Parquet": PARQUET,
    "ORC": ORC,
    "Arrow": FEATHER,
    "SQLite": blob_in_sqlite(PLAIN),
}


@pytest.mark.parametrize("content", [FEATHER, STREAM], ids=["file", "stream"])
def test_a_cut_arrow_file_is_said_to_be_cut_short(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content[: len(content) // 2])
    (file,) = search(tmp_path).files
    assert {it.reason for it in file.unread} == {"an Arrow file that is cut short or damaged"}


def test_a_few_bytes_after_an_arrow_stream_are_no_damage(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(STREAM + b"ab")
    (file,) = search(tmp_path).files
    assert not file.unread


@pytest.mark.parametrize("what", CUT)
def test_what_is_cut_short_inside_other_bytes_is_listed(tmp_path: Path, what: str) -> None:
    content = CUT[what]
    (tmp_path / "x").write_bytes(_EVEN + content[: len(content) * 3 // 4])
    (file,) = search(tmp_path).files
    assert any(what in it.reason for it in file.unread)


@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_orc_whose_first_index_is_packed_is_listed_if_it_is_cut(tmp_path: Path, codec: str) -> None:
    table, file = pa.table({"n": [7] * 5_000}), io.BytesIO()
    orc.write_table(table, file, compression=codec, row_index_stride=100)
    content = file.getvalue()
    (tmp_path / "x").write_bytes(_EVEN + content[: len(content) * 3 // 4])
    (found,) = search(tmp_path).files
    assert any("ORC" in it.reason for it in found.unread)


def test_what_is_whole_inside_other_bytes_and_marks_in_programs_are_not_listed(
    tmp_path: Path,
) -> None:
    for what, content in CUT.items():
        if what != "snappy":
            (tmp_path / what).write_bytes(_EVEN + content + _EVEN)
    marks = (b"PK\3\4", b"PAR1", b"PARE", b"ORC", b"ARROW1", *STREAM_MARKS)
    (tmp_path / "marks").write_bytes(_EVEN + b"".join(mark + b"\xda\4zip\0" for mark in marks))
    rows = zlib.compress(PLAIN, 0)
    (tmp_path / "picture").write_bytes(
        _EVEN + b"IDAT" + rows[:900] + b"crc_" + b"IDAT" + rows[900:]
    )
    assert not [it for file in search(tmp_path).files for it in file.unread]


_OWN: Final = b"\1\2\3\0OWN1" + bytes(range(32))


def _zip64() -> bytes:
    """A zip archive whose directory is found by the records of zip64."""
    stored = zipped(PLAIN)
    at = stored.rindex(b"PK\5\6")
    size, start = struct.unpack("<LL", stored[at + 12 : at + 20])
    record = struct.pack("<4sQHHLLQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, size, start)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, at, 1)
    last = struct.pack("<4sHHHHLLH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return stored[:at] + record + locator + last


@pytest.mark.parametrize(
    "content",
    [_OWN + ZLIB, STUB + _zip64() + bytes(70_000), _OWN + blob_in_sqlite()],
    ids=["zlib", "zip64", "SQLite"],
)
@pytest.mark.parametrize(
    "write",
    [
        bytes,
        base64.b64encode,
        lambda it: it.hex().encode(),
        lambda it: json.dumps([it.decode("latin-1")]).encode(),
        blob,
    ],
    ids=["bare", "b64", "hex", "JSON", "blob"],
)
def test_packed_data_inside_unknown_bytes_is_found(
    tmp_path: Path, content: bytes, write: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "x").write_bytes(write(content))
    assert columns_found(tmp_path) == {"email"}


@pytest.mark.parametrize(
    "content",
    [NOISE, _OWN + ZLIB[2:], _damaged(ZLIB, 12), b"MSCF\0\0\0\0" + NOISE],
    ids=["noise", "deflate", "zlib", "cabinet"],
)
@pytest.mark.parametrize(
    "write",
    [
        base64.b64encode,
        base64.encodebytes,
        base64.b32encode,
        base64.b85encode,
        lambda it: it.hex().encode(),
        lambda it: str([*it]).encode(),
        lambda it: "".join(f"%{byte:02x}" for byte in it).encode(),
        lambda it: json.dumps({"data": it.decode("latin-1")}).encode(),
        blob,
    ],
    ids=["b64", "lines", "b32", "b85", "hex", "numbers", "percent", "JSON", "blob"],
)
def test_unknown_bytes_are_listed_however_they_are_written(
    tmp_path: Path, content: bytes, write: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "x").write_bytes(b"data " + write(content) if write is not blob else blob(content))
    (file,) = search(tmp_path).files
    assert len(file.unread) == 1


def test_a_zip64_archive_without_its_record_is_listed(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(STUB + _zip64().replace(b"PK\6\6", b"PK\6\0") + bytes(70_000))
    (file,) = search(tmp_path).files
    assert "zip64" in " ".join(it.reason for it in file.unread)


@pytest.mark.parametrize(
    "head",
    [
        bytes.fromhex("3082049130820279a0030201020201"),
        bytes.fromhex("30820944020100300d06092a8648"),
        b"\0\0\0\7ssh-rsa",
        b"\xff\xff\xff\xff\0\0\0\x1e\1\0\0",
        b"\xff\xd8\xff\xe0",
    ],
    ids=["certificate", "key", "ssh", "filter of Hudi", "JPEG"],
)
def test_keys_pictures_and_filters_in_base64_are_not_called_packed(
    tmp_path: Path, head: bytes
) -> None:
    (tmp_path / "x").write_bytes(base64.encodebytes(head + NOISE))
    (tmp_path / "y").write_bytes(b"signature: " + base64.b64encode(NOISE[:512]))
    assert not search(tmp_path).files
