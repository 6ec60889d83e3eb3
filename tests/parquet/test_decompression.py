"""A page has exactly as many bytes as its header promises, or is an error."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.errors import FormatError
from secure_bloom.parquet.decompression import decompressed, is_decompressed_here
from secure_bloom.parquet.structures.metadata import CompressionCodec
from tests.lying.editing import Place, edit

CODECS = {
    "snappy": CompressionCodec.SNAPPY,
    "gzip": CompressionCodec.GZIP,
    "brotli": CompressionCodec.BROTLI,
    "zstd": CompressionCodec.ZSTD,
    "lz4_raw": CompressionCodec.LZ4_RAW,
}
TEXT = bytes(range(80)) * 300


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("text", [b"", b"a", TEXT])
def test_a_body_has_the_size_that_was_promised(name: str, text: bytes) -> None:
    body = pa.compress(text, codec=name, asbytes=True)
    assert bytes(decompressed(CODECS[name], body, len(text))) == text


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("size", [-1, 0, 1, len(TEXT) - 1, len(TEXT) + 1, 2 * len(TEXT)])
def test_another_size_is_an_error(name: str, size: int) -> None:
    body = pa.compress(TEXT, codec=name, asbytes=True)
    with pytest.raises(FormatError):
        decompressed(CODECS[name], body, size)


@pytest.mark.parametrize("body", [b"", b"\xff", b"\xff" * 40])
@pytest.mark.parametrize("name", CODECS)
def test_what_is_no_compressed_body_is_an_error(name: str, body: bytes) -> None:
    with pytest.raises(FormatError):
        decompressed(CODECS[name], body, 80)


def test_several_members_of_gzip_are_one_text() -> None:
    body = pa.compress(TEXT, codec="gzip", asbytes=True) * 2
    assert bytes(decompressed(CompressionCodec.GZIP, body, 2 * len(TEXT))) == 2 * TEXT
    with pytest.raises(FormatError):
        decompressed(CompressionCodec.GZIP, body, 2 * len(TEXT) + 1)


def test_what_is_not_compressed_has_its_size_too() -> None:
    assert decompressed(CompressionCodec.UNCOMPRESSED, b"abc", 3) == b"abc"
    with pytest.raises(FormatError):
        decompressed(CompressionCodec.UNCOMPRESSED, b"abc", 4)


def test_other_codecs_are_not_decompressed_here() -> None:
    assert not is_decompressed_here(CompressionCodec.LZO)
    with pytest.raises(FormatError):
        decompressed(CompressionCodec.LZO, b"abc", 3)


@pytest.mark.parametrize("dictionary", [False, True], ids=["data page", "dictionary page"])
@pytest.mark.parametrize("codec", ["snappy", "gzip", "brotli", "lz4", "zstd"])
def test_a_page_that_ends_early_gives_no_filter(
    tmp_path: Path, codec: str, dictionary: bool
) -> None:
    """Memory that nobody initialised would have gone into it, and the report said "added"."""
    honest, path = tmp_path / "honest.parquet", tmp_path / "x.parquet"
    rows = pa.array([i % 50 for i in range(200)], pa.int64())
    table = pa.table([rows], schema=pa.schema([pa.field("x", pa.int64(), nullable=False)]))
    pq.write_table(table, honest, compression=codec, use_dictionary=dictionary)

    def cut(place: Place) -> None:
        with place.pages() as pages:
            page = pages[0]
            name = "lz4_raw" if codec == "lz4" else codec
            size = page.header.uncompressed_page_size
            text = pa.decompress(page.body, decompressed_size=size, codec=name, asbytes=True)
            page.body = pa.compress(text[:-8], codec=name, asbytes=True)
            page.header.compressed_page_size = len(page.body)

    assert edit(honest, path, 0, "x", cut)
    before = path.read_bytes()
    (file,) = sb.add_bloom_filters(path, columns=["x"]).files
    assert file.error is not None
    assert path.read_bytes() == before
    with pytest.raises(sb.SecureBloomError):
        sb.read_table(path, where=[("x", "=", 1)])
