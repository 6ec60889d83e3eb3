"""Files of a few bytes that promise gigabytes: decoded in parts, or refused by name."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.parquet.memory_files import MemoryColumn, memory_file
from secure_bloom.parquet.structures.metadata import (
    CompressionCodec,
    Encoding,
    FieldRepetitionType,
    PageType,
    Type,
)
from secure_bloom.running.memory_budget import VARIABLE, memory_budget, reserved
from testing.thrift.metadata import DataPageHeader, DictionaryPageHeader, PageHeader, SchemaElement

MANY = 1_000_000_000
_RLE = Encoding.RLE


def _varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def _dictionary(content: bytes) -> tuple[PageHeader, bytes]:
    detail = DictionaryPageHeader.of(num_values=1, encoding=Encoding.PLAIN)
    return _header(PageType.DICTIONARY_PAGE, content, dictionary_page_header=detail), content


def _data(content: bytes, values: int, encoding: Encoding) -> tuple[PageHeader, bytes]:
    detail = DataPageHeader.of(
        num_values=values,
        encoding=encoding,
        definition_level_encoding=_RLE,
        repetition_level_encoding=_RLE,
    )
    return _header(PageType.DATA_PAGE, content, data_page_header=detail), content


def _header(kind: PageType, content: bytes, **detail: object) -> PageHeader:
    return PageHeader.of(
        type=kind,
        uncompressed_page_size=len(content),
        compressed_page_size=len(content),
        **detail,
    )


def _write(
    path: Path,
    of: Type,
    pages: list[tuple[PageHeader, bytes]],
    rows: int,
    *,
    codec: CompressionCodec = CompressionCodec.UNCOMPRESSED,
    dictionary: bool = True,
) -> Path:
    required = FieldRepetitionType.REQUIRED
    schema = [
        SchemaElement.of(name="schema", num_children=1),
        SchemaElement.of(name="v", type=of, repetition_type=required),
    ]
    column = MemoryColumn(
        path=["v"],
        type=of,
        codec=codec,
        values=rows,
        pages=[(header.encode(), body) for header, body in pages],
        has_dictionary=dictionary,
    )
    nodes = [element.encode() for element in schema]
    path.write_bytes(memory_file(nodes, [column], rows))
    return path


def _run_of(count: int) -> bytes:
    """The indices of so many values, all the first entry of the dictionary."""
    return b"\1" + _varint(count << 1) + b"\0"


def equal_numbers(path: Path) -> Path:
    pages = [
        _dictionary((7).to_bytes(8, "little")),
        _data(_run_of(MANY), MANY, Encoding.RLE_DICTIONARY),
    ]
    return _write(path, Type.INT64, pages, MANY)


def equal_texts(path: Path) -> Path:
    text = bytes(1 << 20)
    rows = 1_000_000
    entry = len(text).to_bytes(4, "little") + text
    pages = [_dictionary(entry), _data(_run_of(rows), rows, Encoding.RLE_DICTIONARY)]
    return _write(path, Type.BYTE_ARRAY, pages, rows)


def large_page(path: Path, size: int = 2_000_000_000) -> Path:
    """A page of zeros that zstd makes small; its text is that of one value."""
    piece = pa.Codec("zstd").compress(bytes(1 << 20)).to_pybytes()
    content = piece * (size >> 20)
    header, _ = _data(content, size >> 23, Encoding.PLAIN)
    header.uncompressed_page_size = size >> 20 << 20
    pages = [(header, content)]
    zstd = CompressionCodec.ZSTD
    return _write(path, Type.INT64, pages, size >> 23, codec=zstd, dictionary=False)


_PROGRAM = """
import re
from pathlib import Path
import secure_bloom as sb
try:
    {statement}
except sb.SecureBloomError as error:
    print(error)
# Not ru_maxrss: Linux counts the process that started this one into that.
print(int(re.search(r"VmHWM:\\s*([0-9]+) kB", Path("/proc/self/status").read_text())[1]) >> 10)
"""


def _measured(statement: str) -> tuple[str, int]:
    """What it says, and the most MiB that its process took."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(statement=statement)],
        capture_output=True,
        text=True,
        check=True,
    )
    *told, peak = done.stdout.splitlines()
    return "\n".join(told), int(peak)


def test_a_run_of_a_billion_values_is_read_in_parts(tmp_path: Path) -> None:
    path = equal_numbers(tmp_path / "x.parquet")
    assert path.stat().st_size < 400
    told, peak = _measured(f"print(sb.read_table({str(path)!r}, limit=1).num_rows)")
    assert told == "1"
    assert peak < 1024


def test_long_texts_of_a_dictionary_are_read_in_parts(tmp_path: Path) -> None:
    path = equal_texts(tmp_path / "x.parquet")
    told, peak = _measured(
        f"print(sum(1 for _, b in zip(range(20), sb.read_batches({str(path)!r}))))"
    )
    assert told == "20"
    assert peak < 1024


@pytest.mark.parametrize(
    "statement",
    [
        "sb.read_table({path!r}, limit=1)",
        "sb.read_table({path!r}, where='v = 5')",
        "print(sb.add_bloom_filters({path!r}, columns=['v']).files[0].error)",
        "print(sb.inspect({path!r}).files[0].error)",
    ],
)
def test_a_page_that_promises_more_than_the_budget_is_refused_by_name(
    tmp_path: Path, statement: str
) -> None:
    path = large_page(tmp_path / "x.parquet")
    assert path.stat().st_size < 200_000
    told, peak = _measured(statement.format(path=str(path)))
    assert peak < 1024
    if "inspect" not in statement:
        assert "column v: a page takes 1,999,634,432 bytes decoded" in told


def test_the_budget_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = large_page(tmp_path / "x.parquet", 64 << 20)
    monkeypatch.setenv(VARIABLE, "32 MiB")
    with pytest.raises(sb.UnsupportedFeatureError, match="67,108,864 bytes decoded") as caught:
        sb.read_table(path)
    assert VARIABLE in str(caught.value.hint)
    monkeypatch.setenv(VARIABLE, "1GiB")
    assert sb.read_table(path).num_rows == 8
    for text in ("", "much", "0", "-1", "1.5GiB"):
        monkeypatch.setenv(VARIABLE, text)
        with pytest.raises(sb.PolicyError, match=VARIABLE):
            memory_budget()


def test_threads_share_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "100")
    taken, most, lock = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal taken, most
        for _ in range(20):
            with reserved(60):
                with lock:
                    taken += 60
                    most = max(most, taken)
                with lock:
                    taken -= 60

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 60


def test_one_that_is_larger_goes_on_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "100")
    with reserved(1000):
        pass
