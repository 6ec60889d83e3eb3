"""Each form, both ways: a value is found in what is written of it, and no other value is."""

from __future__ import annotations

import base64
import binascii
import codecs
import datetime
import decimal
import gzip
import hashlib
import html
import json
import pickle
import quopri
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.kernels.words import fold
from secure_bloom.tracing import encodings
from secure_bloom.tracing.index import WordIndex
from secure_bloom.tracing.lake import occurrences
from secure_bloom.tracing.search import confirm, trace_text
from secure_bloom.tracing.subjects import SearchedColumn
from secure_bloom.tracing.verdicts import Meaning
from testing.quick_cases import examples

_SMALL = st.text("abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=9)
_NUMBER = st.integers(10, 99_999)
TEXTS = st.builds("{}.{}{}@{}.fi".format, _SMALL, _SMALL, _NUMBER, _SMALL)
WIDE = st.builds("jürgen.öz{}{}@straße.de".format, _SMALL, _NUMBER)
CODES = st.builds("DE{}".format, st.integers(10**19, 10**20 - 1))
#: Not dense, as the numbers of a counter are: these are left out.
NUMBERS = st.integers(1, 999_999).map(lambda n: 10**11 + n * 900_001).filter(lambda n: n % 10)
DECIMALS = NUMBERS.map(lambda n: decimal.Decimal(n) / 100)
BYTES = st.integers(0, 1 << 64).map(lambda n: hashlib.sha256(b"%d" % n).digest())
DOUBLES = NUMBERS.map(lambda n: n / 1000)
SMALL_DOUBLES = st.integers(10**8, 10**9 - 1).filter(lambda n: n % 10).map(lambda n: n / 1e14)
TIMES = st.datetimes(
    datetime.datetime(1980, 1, 1), datetime.datetime(2029, 12, 31)
).map(lambda it: it.replace(microsecond=0))  # fmt: skip
LATE_DAYS = st.dates(datetime.date(2000, 1, 1), datetime.date(2024, 12, 31))
DAYS = st.dates(datetime.date(1930, 1, 1), datetime.date(2029, 12, 31))


def grouped(text: str, mark: str) -> bytes:
    return mark.join(text[i : i + 4] for i in range(0, len(text), 4)).encode()


def escaped(text: str, form: str) -> bytes:
    return "".join(it if it.isalnum() else form.format(ord(it)) for it in text).encode()


def hidden(text: str, at: str, dot: str) -> bytes:
    return text.replace("@", at).replace(".", dot).encode()


def uuencoded(text: str) -> bytes:
    """A file as uuencode writes it, in lines of 45 bytes."""
    content = text.encode()
    lines = (binascii.b2a_uu(content[start : start + 45]) for start in range(0, len(content), 45))
    return b"begin 644 x\n" + b"".join(lines) + b"`\nend\n"


def rtf(text: str, form: str) -> bytes:
    letters = (it if it.isascii() else form.format(ord(it)) for it in text)
    return ("{\\rtf1\\ansi " + "".join(letters) + "\\par}").encode()


def dated(day: datetime.date, form: str) -> bytes:
    return day.strftime(form).encode()


def java(number: float) -> str:
    """As Double.toString of Java writes large and small numbers."""
    value = decimal.Decimal(repr(number))
    return f"{value.scaleb(-value.adjusted()).normalize():f}E{value.adjusted()}"


def digested(text: str, name: str, write: Callable[[bytes], bytes]) -> bytes:
    return write(hashlib.new(name, text.encode()).digest())


DIGESTS: dict[str, Callable[[bytes], bytes]] = {
    "hexadecimal": lambda digest: digest.hex().encode(),
    "capitals": lambda digest: digest.hex().upper().encode(),
    "Base64": base64.b64encode,
}

#: The name of a form -> values that have it, and the function from a value to what is written.
FORMS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], bytes]]] = {
    "UTF-8": (WIDE, str.encode),
    "UTF-16 with a mark": (WIDE, lambda it: it.encode("utf-16")),
    "UTF-16-LE": (WIDE, lambda it: it.encode("utf-16-le")),
    "UTF-16-BE": (WIDE, lambda it: it.encode("utf-16-be")),
    "UTF-16-BE with a mark": (WIDE, lambda it: b"\xfe\xff" + it.encode("utf-16-be")),
    "UTF-32": (WIDE, lambda it: it.encode("utf-32")),
    "Latin-1": (WIDE, lambda it: it.encode("latin-1")),
    "Base64": (TEXTS, lambda it: base64.b64encode(it.encode())),
    "Base64, URL-safe": (WIDE, lambda it: base64.urlsafe_b64encode(it.encode())),
    "Base64 in a longer text": (TEXTS, lambda it: base64.b64encode(f'{{"a": "{it}"}}'.encode())),
    "Base64 of gzip": (TEXTS, lambda it: base64.b64encode(gzip.compress(it.encode()))),
    "Base32": (TEXTS, lambda it: base64.b32encode(it.encode())),
    "hexadecimal": (TEXTS, lambda it: it.encode().hex().encode()),
    "hexadecimal, capitals": (TEXTS, lambda it: it.encode().hex().upper().encode()),
    "percent": (WIDE, lambda it: quote(it, safe="").encode()),
    "quoted-printable": (WIDE, lambda it: quopri.encodestring(it.encode(), quotetabs=True)),
    "JSON": (WIDE, lambda it: json.dumps(it).encode()),
    "octal": (TEXTS, lambda it: escaped(it, "\\{:03o}")),
    "Python": (TEXTS, lambda it: escaped(it, "\\x{:02x}")),
    "HTML": (WIDE, lambda it: html.escape(it).encode("ascii", "xmlcharrefreplace")),
    "HTML, hexadecimal": (TEXTS, lambda it: escaped(it, "&#x{:x};")),
    "reversed": (TEXTS, lambda it: it[::-1].encode()),
    "capitals": (WIDE, lambda it: it.replace("ß", "ẞ").upper().replace("ẞ", "ß").encode()),
    "hidden by words": (TEXTS, lambda it: hidden(it, " at ", ".")),
    "hidden by two words": (TEXTS, lambda it: hidden(it, " at ", " dot ")),
    "hidden in brackets": (TEXTS, lambda it: b"c@d.e " + hidden(it, " [AT] ", "(dot)")),
    "bytes in hexadecimal": (TEXTS, lambda it: it.encode().hex(" ").encode()),
    "bytes in decimals": (TEXTS, lambda it: str(list(it.encode())).encode()),
    "Base85": (TEXTS, lambda it: base64.b85encode(it.encode() * 2)),
    "uuencode": (TEXTS, lambda it: uuencoded(f"a,{it},b")),
    "RTF": (TEXTS, lambda it: escaped(it, "\\'{:02x}")),
    "RTF, letters as numbers": (WIDE, lambda it: rtf(it, "\\u{}?")),
    "RTF, letters of Latin-1": (WIDE, lambda it: rtf(it, "\\'{:02x}")),
    **{
        f"pickle, protocol {protocol}": (TEXTS, partial(pickle.dumps, protocol=protocol))
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    },
    "pickle of bytes": (TEXTS, lambda it: pickle.dumps([it.encode(), 7])),
    "spaces": (TEXTS, lambda it: it.replace("@", "\t@ ").replace(".", " . ").encode()),
    "groups of four": (CODES, lambda it: grouped(it, " ")),
    "groups with dashes": (CODES, lambda it: grouped(it, "-")),
    "number": (NUMBERS, lambda it: str(it).encode()),
    "number with zeros before it": (NUMBERS, lambda it: f"{it:020}".encode()),
    "number as hexadecimal bytes": (NUMBERS, lambda it: str(it).encode().hex().encode()),
    "number with commas": (NUMBERS, lambda it: f"{it:,}".encode()),
    "number as a decimal": (NUMBERS, lambda it: f"{it}.00".encode()),
    "number as a double": (NUMBERS, lambda it: f"{it}.0".encode()),
    "number with an exponent": (NUMBERS, lambda it: f"{it:.{len(str(it)) - 1}e}".encode()),
    "decimal": (DECIMALS, lambda it: f"{it:.2f}".encode()),
    "decimal in groups": (DECIMALS, lambda it: f"{it:,.2f}".encode()),
    "decimal, shortest": (DECIMALS, lambda it: f"{it.normalize():f}".encode()),
    "binary as hexadecimal": (BYTES, lambda it: it.hex().encode()),
    "binary as Base64": (BYTES, base64.b64encode),
    "binary as Base64, URL-safe": (BYTES, lambda it: base64.urlsafe_b64encode(it).rstrip(b"=")),
    "SHA-256 of binary": (BYTES, lambda it: hashlib.sha256(it).hexdigest().encode()),
    "double of Java": (DOUBLES, lambda it: java(it).encode()),
    "small double of Java": (SMALL_DOUBLES, lambda it: java(it).encode()),
    "double of C": (DOUBLES, lambda it: java(it).replace("E", "e+0").encode()),
    "decimal with an exponent": (DECIMALS, lambda it: f"{it.normalize():e}".encode()),
    "marks after their letters": (WIDE, lambda it: unicodedata.normalize("NFD", it).encode()),
    "letters with their marks": (
        WIDE.map(partial(unicodedata.normalize, "NFD")),
        lambda it: unicodedata.normalize("NFC", it).encode(),
    ),
    "Korean": (
        st.builds("김철수{}@{}.kr".format, _NUMBER, _SMALL),
        lambda it: unicodedata.normalize("NFKD", it).encode(),
    ),
    "date as days of the epoch": (
        LATE_DAYS, lambda it: str((it - datetime.date(1970, 1, 1)).days).encode()),
    "date with a time": (DAYS, lambda it: f"{it}T00:00:00".encode()),
    **{
        f"time {form}": (TIMES, partial(dated, form=form))
        for form in (
            "%Y-%m-%d %H:%M:%S", "%Y%m%dT%H%M%S", "%d.%m.%Y %H:%M:%S.000", "%m/%d/%Y %H:%M:%S",
            "%d/%b/%Y:%H:%M:%S +0000", "%a, %d %B %Y %H:%M:%S", "%b %d, %Y %H:%M:%S",
            "%y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%SZ", "%Y-%m-%d %H:%M:%S+00",
            *(f"%Y-%m-%dT%H:%M:%S{fraction}{zone}" for fraction, zone in (
                ("", ""), (".000", ""), ("", "Z"), (".000", "Z"), ("", "+00:00"),
                (".000000", "+0000"), (".000000000", "Z"))),
        )
    },
    **{
        f"date {form}": (DAYS, partial(dated, form=form))
        for form in (
            "%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%d %b %Y", "%B %d, %Y", "%d-%B-%Y",
            "%y-%m-%d",
        )
    },
    **{
        f"{name}, {how}": (TEXTS, partial(digested, name=name, write=write))
        for name in ("md5", "sha1", "sha256", "sha512", "sha512_256")
        for how, write in DIGESTS.items()
    },
    "MD5 of capitals": (TEXTS, lambda it: digested(it.upper(), "md5", DIGESTS["hexadecimal"])),
}  # fmt: skip
#: Columns of few values are found by their share, so that many values are written.
FEW = [name for name in FORMS if name.startswith(("date ", "time "))]


def column(values: list[Any]) -> SearchedColumn:
    def arrays() -> Iterator[pa.Array]:
        yield pa.array(values)

    return SearchedColumn(name="x", values=arrays)


def findings(values: list[Any], written: bytes) -> list[tuple[Meaning, bool]]:
    """Return the verdicts on a text, and whether all words that were compared were confirmed."""
    index = WordIndex.build([column(values)], 1 << 20)
    trace = trace_text("x", "", written, index)
    confirm([trace], index)
    found = (it for part in trace.parts for it in occurrences(part, index))
    return [(it.verdict, 0 < it.confirmed == it.compared) for it in found]


def test_binary_of_a_fixed_length_is_found_in_base64_and_its_letters_are_no_words() -> None:
    values = [hashlib.md5(b"%d" % n).digest() for n in range(99)]
    fixed = SearchedColumn(name="x", values=lambda: iter([pa.array(values, pa.binary(16))]))
    index = WordIndex.build([fixed], 1 << 20)
    meanings = []
    for written in (map(base64.b64encode, values), (fold(it) for it in values)):
        trace = trace_text("x", "", b"\n".join(written), index)
        confirm([trace], index)
        meanings.append([it.verdict for part in trace.parts for it in occurrences(part, index)])
    assert meanings == [[Meaning.VALUES], []]


@pytest.mark.parametrize("form", FORMS)
@examples(5)
@given(data=st.data())
def test_a_form_is_found_and_is_of_one_value_alone(form: str, data: st.DataObject) -> None:
    strategy, write = FORMS[form]
    count = 40 if form in FEW else 3
    values = data.draw(st.lists(strategy, min_size=2 * count, max_size=2 * count, unique=True))
    written = b"\n".join(map(write, values[:count]))
    if form.startswith(("UTF-16", "UTF-32")):
        written = write("\n".join(values[:count]))
    assert findings(values[:count], written) == [(Meaning.VALUES, True)]
    others = [it for it in values[count:] if fold(write(it)) not in fold(written)]
    assert findings(others, written) == []


def test_a_counter_is_no_list_of_days() -> None:
    days = [datetime.date(2000, 1, 1) + datetime.timedelta(days=6 * n) for n in range(1_500)]
    numbers = [(it - datetime.date(1970, 1, 1)).days for it in days]
    assert findings(days, "\n".join(map(str, numbers)).encode()) == [(Meaning.VALUES, True)]
    assert findings(days, "\n".join(map(str, range(10_000, 20_000))).encode()) == []


def test_a_new_form_is_a_pair_of_functions_in_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """ROT13: when a text may have it, and how it is decoded."""
    value = "anna.smith42@post.fi"
    written = codecs.encode(value, "rot13").encode()
    assert findings([value], written) == []

    def rot13(text: bytes) -> bytes:
        return codecs.encode(text.decode("latin-1"), "rot13").encode("latin-1")

    monkeypatch.setattr(encodings, "_WHOLE", (*encodings._WHOLE, (lambda _: True, rot13)))
    assert findings([value], written) == [(Meaning.VALUES, True)]
