"""A container yields the names and contents of its members, and the spans that are no member."""

from __future__ import annotations

import bz2
import gzip
import io
import random
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.tracing.containers import zip_content
from secure_bloom.tracing.content import Opened, Part, Span, Stream
from secure_bloom.tracing.inner_files import InnerFiles
from secure_bloom.tracing.sources import parts_of
from tests.tracing.people import search
from tests.tracing.test_packings import EMAILS, ORC, blob, blob_in_sqlite


def archive(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as it:
        for name in names:
            it.writestr(name, f"in {name}")
    return file.getvalue()


def test_a_zip_archive_yields_names_members_and_what_is_before_and_after() -> None:
    before, stored = b"a stub", archive("a.txt", "b.txt")
    whole = before + stored + b"a tail"
    opened = Opened.of(len(whole))
    names, first, second, stub, tail = zip_content(io.BytesIO(whole), opened, "x")
    assert isinstance(names, Part)
    assert [*(names.pieces or ())] == [b"a.txt\nb.txt"]
    assert isinstance(first, Stream)
    assert isinstance(second, Stream)
    assert [first.place, second.place] == ["x, member 1", "x, member 2"]
    assert stub == Span("x", 0, len(before))
    assert tail == Span("x", len(before) + len(stored))
    assert not opened.unread


@pytest.mark.parametrize(
    ("stored", "found"),
    [(gzip.compress(b"text"), [b"text"]), (b"\x1f\x8b\x08\0", [])],
    # A packed file has the time, and workers compare the names of tests.
    ids=["packed", "chance"],
)
def test_a_packed_file_inside_another_is_found_and_a_chance_match_is_not(
    stored: bytes, found: list[bytes]
) -> None:
    file = io.BytesIO(b"log line\n" + stored)
    inner = InnerFiles(file, Opened.of(100).budget, "x")
    streams = inner.found("gzip", len(b"log line\n"))
    assert [b"".join(it.pieces) for it in streams if isinstance(it, Stream)] == found


def test_a_sound_tar_that_ends_with_a_zip_archive_is_read_whole() -> None:
    file, stored = io.BytesIO(), archive("a.txt")
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name in ("a.zip", "b.zip"):
            info = tarfile.TarInfo(name)
            info.size = len(stored)
            tar.addfile(info, io.BytesIO(stored))
    whole = file.getvalue()
    opened = Opened.of(len(whole))
    parts = [(it.place, b"".join(it.pieces or ())) for it in parts_of(io.BytesIO(whole), opened)]
    assert not opened.unread
    assert [place for place, text in parts if text == b"in a.txt"] == [
        "member 1, member 1",
        "member 2, member 1",
        "member 1",
    ]
    # An archive after the tar's end is opened.
    opened = Opened.of(len(whole))
    both = io.BytesIO(whole[:-512] + archive("c.txt"))
    assert b"in c.txt" in [b"".join(it.pieces or ()) for it in parts_of(both, opened)]
    assert not opened.unread


_TEXT = ("nothing of interest here, " * 40 + "\n" + "\n".join(EMAILS)).encode()
_GZIP = gzip.compress(_TEXT)
CUT: dict[str, bytes] = {
    "gzip": _GZIP[:60],
    "gzip data": _GZIP[:30] + bytes([_GZIP[30] ^ 0xFF]) + _GZIP[31:],
    "zlib": zlib.compress(_TEXT)[:60],
    "bzip2": bz2.compress(_TEXT)[:60],
    "ORC": ORC[: len(ORC) * 3 // 4],
}


@pytest.mark.parametrize("what", CUT)
@pytest.mark.parametrize("put", [blob, blob_in_sqlite], ids=["Parquet", "SQLite"])
def test_damaged_values_of_a_column_are_listed(
    tmp_path: Path, put: Callable[[bytes], bytes], what: str
) -> None:
    (tmp_path / "x").write_bytes(put(CUT[what]))
    (file,) = search(tmp_path).files
    assert any(what in it.reason for it in file.unread)


def test_values_of_chance_are_not_listed(tmp_path: Path) -> None:
    chance = random.Random(5)
    marks = [b"\x1f\x8b\x08", b"\x78\x9c", b"\x78\x01", b"BZh", b"ORC", b"\x1f\x9d", b"\x60\xea"]
    values = [mark + chance.randbytes(60) for mark in marks for _ in range(30)]
    pq.write_table(pa.table({"key": values}), tmp_path / "x")
    assert not [it for file in search(tmp_path).files for it in file.unread]


def test_a_column_of_many_damaged_values_takes_limited_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secure_bloom.tracing.search._MOST_DAMAGED", 20)
    pq.write_table(pa.table({"key": [_GZIP[: 60 + n] for n in range(30)]}), tmp_path / "x")
    (file,) = search(tmp_path).files
    assert any("values that cannot be unpacked" in it.reason for it in file.unread)


def test_damaged_values_of_a_column_are_counted_in_one_line(tmp_path: Path) -> None:
    pq.write_table(pa.table({"key": [_GZIP[: 60 + n] for n in range(30)]}), tmp_path / "x")
    (file,) = search(tmp_path).files
    assert [it.reason for it in file.unread] == ["gzip data that is cut short, in 30 values"]
