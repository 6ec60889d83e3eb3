"""Copies in odd notations: dumps, colours, tags, Base85, lists of bytes, dates in words."""

from __future__ import annotations

import base64
import datetime
import hashlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from secure_bloom.tracing.index import WordIndex
from secure_bloom.tracing.subjects import SearchedColumn
from tests.tracing.people import PEOPLE, columns_found, found_in, search, subject

EMAILS = [str(it) for it in PEOPLE["email"][:40]]
PLAIN = "\n".join(EMAILS).encode()
PAIRS = [email.split("@") for email in EMAILS]


def _dump(content: bytes, *, words: bool) -> bytes:
    """As `hexdump -C` writes bytes, or as `xxd` does."""
    lines = []
    for start in range(0, len(content), 16):
        row = content[start : start + 16]
        shown = "".join(chr(it) if 0x20 <= it < 0x7F else "." for it in row)
        if words:
            lines.append(f"{start:08x}: {row.hex(' ', -2):<39}  {shown}")
        else:
            lines.append(f"{start:08x}  {row[:8].hex(' ')}  {row[8:].hex(' '):<23}  |{shown}|")
    return "\n".join(lines).encode()


def _document() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        spans = (f"<text:p>{it[:4]}<text:span>{it[4:]}</text:span></text:p>" for it in EMAILS)
        archive.writestr("content.xml", "".join(spans))
    return file.getvalue()


#: What documents write between two pieces of a word: format -> before, between, after.
_CUTS: dict[str, tuple[str, str, str]] = {
    "Word, bold": (
        "<w:p><w:r><w:t>",
        "</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>",
        "</w:t></w:r></w:p>",
    ),
    "Word, a font and a bookmark": (
        "<w:p><w:r><w:t>",
        '</w:t></w:r><w:bookmarkStart w:id="0"/><w:r><w:rPr><w14:ligatures/></w:rPr><w:t x="y">',
        "</w:t></w:r></w:p>",
    ),
    "Word, a link": (
        "<w:p><w:r><w:t>Write to</w:t></w:r><w:r><w:br/><w:t>",
        '</w:t></w:r><w:hyperlink r:id="rId5" w:history="1"><w:r><w:rPr><w:b/></w:rPr><w:t>',
        "</w:t></w:r></w:hyperlink><w:r><w:tab/><w:t>today.</w:t></w:r></w:p>",
    ),
    "spreadsheet": (
        "<si><r><t>",
        '</t></r><r><rPr><b/><sz val="9"/><rFont val="A"/></rPr><t>',
        "</t></r></si>",
    ),
    "spreadsheet, with a prefix": (
        "<x:si><x:r><x:t>",
        "</x:t></x:r><x:r><x:t>",
        "</x:t></x:r></x:si>",
    ),
    "slide": (
        "<a:p><a:r><a:t>",
        '</a:t></a:r><a:r><a:rPr lang="de" b="1"><a:latin typeface="A"/></a:rPr><a:t>',
        "</a:t></a:r></a:p>",
    ),
    "OpenDocument": (
        "<text:p>",
        '<text:bookmark text:name="x"/><text:span text:style-name="T1"><text:a xlink:href="x">',
        "</text:a></text:span></text:p>",
    ),
    "a link in HTML": (
        "<p>",
        f'<a class="m" href="https://mail.org/?{"x" * 900}"><b>',
        "</b></a></p>",
    ),
    "XML": ("<p>", '<hi rend="bold">', "</hi></p>"),
    "XML, an end": ("<p><hi><w>", "</w></hi>", "</p>"),
    "XML, a page": ("<p>", '<pb n="7"/>', "</p>"),
}


def _cut(form: str) -> bytes:
    before, between, after = _CUTS[form]
    return "".join(f"{before}{it[:5]}{between}{it[5:]}{after}" for it in EMAILS).encode()


def _bytes_in_lists(write: Callable[[pa.Table, io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    lists = pa.array([list(it.encode()) for it in EMAILS], pa.list_(pa.uint8()))
    write(pa.table({"a": lists}), file)
    return file.getvalue()


FOUND: dict[str, bytes] = {
    "Base85": base64.b85encode(PLAIN),
    "Base85 of each": b"\n".join(base64.b85encode(it.encode()) for it in EMAILS),
    "Ascii85": base64.a85encode(PLAIN),
    "Ascii85 of Adobe": base64.a85encode(PLAIN, adobe=True, wrapcol=76),
    "Base64 of brotli": base64.b64encode(pa.Codec("brotli").compress(PLAIN).to_pybytes()),
    "Base32 in small letters": base64.b32encode(PLAIN).lower(),
    "colours": "".join(
        f"\x1b[32mINFO\x1b[0m \x1b[1;31m{local}\x1b[0m\x1b[33m@{domain}\x1b[0m\n"
        for local, domain in PAIRS
    ).encode(),
    "hexdump": _dump(PLAIN, words=False),
    "xxd": _dump(PLAIN, words=True),
    "bytes of C": ("char d[] = {" + ", ".join(f"0x{it:02x}" for it in PLAIN) + "};").encode(),
    "bytes as decimals": str(list(PLAIN)).encode(),
    "bytes of Java": ", ".join(f"(byte) 0x{it:02x}" for it in PLAIN).encode(),
    "decimals of Java": ",".join(f"(byte){it}" for it in PLAIN).encode(),
    "bytes of Rust": ", ".join(f"{it}u8" for it in PLAIN).encode(),
    "hexadecimal bytes of Rust": ", ".join(f"0x{it:02x}_u8" for it in PLAIN).encode(),
    "bytes of Visual Basic": ", ".join(f"&H{it:02X}" for it in PLAIN).encode(),
    "bytea of PostgreSQL": "".join(f"1\t\\\\x{it.encode().hex()}\n" for it in EMAILS).encode(),
    "digests with colons": "\n".join(
        hashlib.md5(it.encode()).digest().hex(":").upper() for it in EMAILS
    ).encode(),
    "OpenDocument": _document(),
    "tags in HTML": "".join(f"<b>{a}</b>@<i>{b}</i> " for a, b in PAIRS).encode(),
    "breaks in HTML": "".join(f"{it[:5]}<wbr>{it[5:]}<br>" for it in EMAILS).encode(),
    "RTF": ("{\\rtf1 " + "\\par ".join(f"{a}\\'40{b}" for a, b in PAIRS) + "}").encode(),
    "wide letters": "\n".join(
        "".join(chr(ord(letter) + 0xFEE0) for letter in it) for it in EMAILS
    ).encode(),
    "words for marks": "\n".join(
        it.replace("@", " [at] ").replace(".", " (dot) ") for it in EMAILS
    ).encode(),
    **{f"{form}, cut": _cut(form) for form in _CUTS},
    "lists of bytes in Parquet": _bytes_in_lists(pq.write_table),
    "lists of bytes in Arrow": _bytes_in_lists(feather.write_feather),
}


@pytest.mark.parametrize("what", FOUND)
def test_copies_in_odd_notations_are_found(tmp_path: Path, what: str) -> None:
    (tmp_path / "x").write_bytes(FOUND[what])
    assert columns_found(tmp_path) == {"email"}


@pytest.mark.parametrize("form", ["%.16e", "%.17e", "%.18E", "%.25e"])
def test_doubles_with_more_digits_than_they_need_are_found(tmp_path: Path, form: str) -> None:
    """As C and ``numpy.savetxt`` write them."""
    salaries = [it for it in PEOPLE["salary"] if isinstance(it, float)]
    small = [it / 7e12 for it in salaries]
    for name, values in (("x", salaries), ("y", small)):
        (tmp_path / name).write_text(" ".join(form % it for it in values[:900]))
    column = SearchedColumn(name="small", values=lambda: iter([pa.array(small)]))
    index = WordIndex.build([subject("salary"), column], 1 << 20)
    assert [found_in(it) for it in search(tmp_path, index).files] == [{"salary"}, {"small"}]


def test_signed_bytes_of_java_are_found(tmp_path: Path) -> None:
    signed = [(it ^ 0x80) - 0x80 for it in "\n".join(map(str, PEOPLE["umlaut"][:9])).encode()]
    (tmp_path / "x").write_text(str(signed))
    assert columns_found(tmp_path) == {"umlaut"}


def test_a_name_in_two_formats_is_found(tmp_path: Path) -> None:
    bold = '</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">'
    names = "".join(
        f"<w:p><w:t>{bold.join(str(it).split(' '))}</w:t></w:p>" for it in PEOPLE["name"]
    )
    (tmp_path / "x").write_text(names)
    (tmp_path / "y").write_text(names.replace(bold, f" {bold}"))
    umlauts = (str(it).replace("ü", f"ü{bold}") for it in PEOPLE["umlaut"])
    (tmp_path / "z").write_text("".join(f"<w:p><w:t>{it}</w:t></w:p>" for it in umlauts))
    assert [found_in(it) for it in search(tmp_path).files] == [{"name"}, {"name"}, {"umlaut"}]


def _epoch(day: datetime.date) -> int:
    return (day - datetime.date(1970, 1, 1)).days * 86_400


_GERMAN = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"
_SPANISH = (
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
)
DATES: dict[str, Callable[[datetime.date], str]] = {
    "German": lambda it: f"{it.day}. {_GERMAN.split()[it.month - 1]} {it.year}",
    "Spanish": lambda it: f"{it.day} de {_SPANISH.split()[it.month - 1]} de {it.year}",
    "Spanish, short": lambda it: f"{it.day} {_SPANISH.split()[it.month - 1]} {it.year}",
    "with weekday": lambda it: f"{it:%A, %d %B %Y}",
    "week": lambda it: f"{it:%G-W%V-%u}",
    "day of the year": lambda it: f"{it:%Y-%j}",
    "seconds": lambda it: str(_epoch(it)),
    "milliseconds": lambda it: str(_epoch(it) * 1000),
    "nanoseconds": lambda it: str(_epoch(it) * 10**9),
    "ordinal": lambda it: f"{it:%B} {it.day}{_end(it.day)}, {it.year}",
    **{
        form: form.format
        for form in (
            "{0.day}.{0.month}.{0.year}", "{0.day}/{0.month}/{0.year}", "{0.day}.{0:%m.%Y}",
            "{0.month}/{0.day}/{0.year}", "{0.month}/{0:%d/%Y}", "{0.year}-{0.month}-{0.day}",
            "{0:%b} {0.day}, {0.year}", "{0:%B} {0.day}, {0.year}", "{0.day} {0:%b} {0.year}",
            "{0.day}.{0.month}.{0.year} 00:00", "{0:%b}  {0.day} {0.year} 00:00:00",
        )
    },
}  # fmt: skip
TIMES: dict[str, Callable[[datetime.datetime], str]] = {
    "nanoseconds": lambda it: f"{_epoch(it.date()) + it.hour * 3600 + it.minute * 60}123456789",
    **{
        form: form.format
        for form in (
            "{0.day}.{0.month}.{0.year} {0:%H:%M:%S}", "{0.month}/{0.day}/{0.year} {0:%H:%M:%S}",
            "{0.year}-{0.month}-{0.day} {0:%H:%M:%S}", "{0:%b} {0.day}, {0.year} {0:%H:%M:%S}",
            "{0:%B} {0.day} {0.year} {0:%H:%M:%S}", "{0:%d-%b-%Y %H:%M:%S}",
        )
    },
}  # fmt: skip


def _end(day: int) -> str:
    place = day % 10 if day % 10 <= 3 and day not in (11, 12, 13) else 0
    return "thstndrd"[2 * place : 2 * place + 2]


@pytest.mark.parametrize("what", DATES)
def test_dates_in_other_notations_are_found(tmp_path: Path, what: str) -> None:
    born = [it for it in PEOPLE["born"][:1_500] if isinstance(it, datetime.date)]
    (tmp_path / "x").write_text("\n".join(map(DATES[what], born)))
    assert columns_found(tmp_path) == {"born"}


@pytest.mark.parametrize("what", TIMES)
def test_times_in_other_notations_are_found(tmp_path: Path, what: str) -> None:
    days = [it for it in PEOPLE["born"][:100] if isinstance(it, datetime.date)]
    times = [
        datetime.datetime(it.year, it.month, it.day, n % 24, n % 60) for n, it in enumerate(days)
    ]
    whole = pa.array(times, pa.timestamp("ns")).cast(pa.int64()).to_numpy() + 123456789
    column = pa.array(whole).cast(pa.timestamp("ns", "Asia/Tokyo"))
    index = WordIndex.build([SearchedColumn(name="at", values=lambda: iter([column]))], 1 << 20)
    (tmp_path / "x").write_text("\n".join(map(TIMES[what], times)))
    assert columns_found(tmp_path, index) == {"at"}
