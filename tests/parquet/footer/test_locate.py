"""Where the footer stands, and what an end that is none is told."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest

from secure_bloom.errors import (
    FormatError,
)
from secure_bloom.parquet.footer.locate import read_tail, with_trailer
from secure_bloom.storage import CountedFile, open_input
from secure_bloom.storage.column_mapping import ColumnMapping, NamedField
from testing.tables import Mode, write


def _small(folder: Path, mode: Mode) -> Path:
    table = pa.table({"email": ["a@example.com"]})
    return write(folder / "x.parquet", table, mode, column_keys={"k_pii": ["email"]})


@pytest.mark.parametrize(("text", "requests"), [(100, 1), (200_000, 2)])
def test_a_footer_of_any_size_is_found(tmp_path: Path, text: int, requests: int) -> None:
    table = pa.table({"id": [1, 2, 3]}).replace_schema_metadata({"k": "v" * text})
    path = write(tmp_path / "x.parquet", table)
    content = path.read_bytes()
    with open_input(str(path)) as file:
        counted = CountedFile(file)
        whole = read_tail(counted)
    assert counted.requests == requests
    assert content[whole.offset :] == with_trailer(whole.clear, b"PAR1")
    path.write_bytes(content + b"PAR1 and a torn end")
    with open_input(str(path)) as file:
        torn = read_tail(file, end=len(content))
        assert (torn.offset, torn.clear) == (whole.offset, whole.clear)
        with pytest.raises(FormatError):
            read_tail(file)


def test_a_tail_has_the_names_that_its_table_gives(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", pa.table({"id": [1]}))
    names = ColumnMapping(members={"id": NamedField(name="number")})
    with open_input(str(path)) as file:
        alone = read_tail(file)
        assert alone.column_names is None
        assert alone.scan is not None
        file.column_names = names
        assert dataclasses.replace(read_tail(file), scan=alone.scan) == dataclasses.replace(
            alone, column_names=names
        )


def test_a_file_may_be_a_footer_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", pa.table({"id": [1]}))
    with open_input(str(path)) as file:
        clear = read_tail(file).clear
    path.write_bytes(b"PAR1" + with_trailer(clear, b"PAR1"))
    with open_input(str(path)) as file:
        assert (read_tail(file).offset, read_tail(file).clear) == (4, clear)


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        (b"PAR1\0\0\0PAR1", "not a Parquet file: it has 11 bytes", None),
        (b"PAR1\0\0\0\0PAR1", "Thrift structure is damaged after byte 0", None),
        (b"PAR1\1\0\0\0PAR1", "the footer's length is 1, the file has 12 bytes", None),
        (
            b"PAR1 no footer",
            "not a Parquet file, or cut short: it does not end in PAR1 or PARE",
            "if a run with --in-place was killed here, the next such run repairs the file",
        ),
    ],
)
def test_an_end_that_is_none_says_what_is_wrong(
    tmp_path: Path, content: bytes, message: str, hint: str | None
) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(content)
    with open_input(str(path)) as file, pytest.raises(FormatError) as caught:
        read_tail(file)
    assert (caught.value.message, caught.value.hint) == (message, hint)


_TEXT = (
    "not a Parquet file: it ends as a text does, such as CSV or JSON",
    "write the table as Parquet; of a folder only Parquet files are taken",
)
_CUT = (
    "not a Parquet file, or cut short: it does not end in PAR1 or PARE",
    "if a run with --in-place was killed here, the next such run repairs the file",
)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"id,name\r\n1,a\tb\r\n2,c\r\n", _TEXT),
        ("id,name\n1,Zo\u00eb\n".encode(), _TEXT),
        # The last 256 bytes begin within a character, which is no damage.
        (("\u00eb" * 200 + "x").encode(), _TEXT),
        # What stands before them does not count.
        (b"\0" * 100 + b"x" * 256, _TEXT),
        (b"x" * 40 + b"\0" + b"x" * 40, _CUT),
        (b"x" * 40 + b"\xff" + b"x" * 40, _CUT),
        (b"x" * 80 + "\u00eb".encode()[:1], _CUT),
        # A cell's text, at which a Parquet file was cut.
        (b"PAR1" + b"x" * 300, _CUT),
        (b"PARE" + b"x" * 300, _CUT),
    ],
)
def test_a_text_is_told_from_a_file_that_was_cut(
    tmp_path: Path, content: bytes, told: tuple[str, str]
) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(content)
    with open_input(str(path)) as file, pytest.raises(FormatError) as caught:
        read_tail(file)
    assert (caught.value.message, caught.value.hint) == told


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.SIGNED, Mode.ENCRYPTED])
def test_a_footer_fills_its_length(tmp_path: Path, mode: Mode) -> None:
    content = _small(tmp_path, mode).read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    body = content[-8 - length : -8] + b"!"
    path = tmp_path / "longer.parquet"
    path.write_bytes(b"PAR1" + with_trailer(body, content[-4:]))
    with open_input(str(path)) as file, pytest.raises(FormatError) as caught:
        read_tail(file)
    signature = 28 if mode is Mode.SIGNED else 0
    assert caught.value.message == (
        "the encrypted footer module does not fill the footer's length"
        if mode is Mode.ENCRYPTED
        else f"the footer takes {length - signature} bytes and a signature of {signature}, "
        f"its length says {length + 1}"
    )
