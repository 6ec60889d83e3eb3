"""Texts inside a text: Base64, hexadecimal, escapes of URLs, mail, JSON and HTML, UTF-16, Latin-1.

    for inner in decoded(text, digests.append): ...   texts and files that the text holds, encoded

A digest looks like any other encoded word. It is reported where its length is that of one.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import quopri
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice, pairwise
from typing import Final
from urllib.parse import unquote_to_bytes

import numpy as np
import pyarrow as pa

from secure_bloom.kernels.words import find_runs
from secure_bloom.tracing.forms import DIGESTS

#: A run of this many characters of Base64 may hold a value.
_SHORTEST_RUN: Final = 16
_MOST_RUNS: Final = 1 << 16
_HEX: Final = re.compile(rb"[0-9a-fA-F]+")
#: What begins hexadecimal digits in programs and in SQL.
_PREFIX: Final = re.compile(rb"^0?x(?=[0-9a-fA-F]+$)")
_BASE32: Final = re.compile(rb"(?:[A-Z2-7]{16,}|[a-z2-7]{16,})={0,6}")
_PERCENT: Final = re.compile(rb"%[0-9A-Fa-f]{2}")
_QUOTED: Final = re.compile(rb"=\r?\n|=40|=3[Dd]|=2[Ee]|=20|=[C-F][0-9A-F]=")
_ESCAPE: Final = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([0-3][0-7]{2}))")
_IN_RTF: Final = re.compile(rb"\\'([0-9a-fA-F]{2})")
#: Letters of East Asian width, U+FF01 to U+FF5E.
_EAST: Final = re.compile(rb"(?:\xef[\xbc\xbd][\x80-\xbf]){4}")
_ENTITY: Final = re.compile(rb"&(?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z]+\d*);")
#: Colours of a terminal, and tags inside a word.
_COLOUR: Final = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_INLINE: Final = re.compile(
    rb"(?<=[\w@.-])(?:</?(?:b|i|u|em|strong|span|a|r|t|wbr|font|mark|code|small|text:span"
    rb"|[aw]:(?:r|t|rPr|proofErr))(?:\s[^<>]{0,200})?/?>)+(?=[\w@.-])"
)
#: Bytes as numbers: in hexadecimal with a mark between two, in dumps with offsets, in decimals.
_SPACED: Final = re.compile(rb"(?:(?:0x)?[0-9A-Fa-f]{2}[ ,:-]{1,2}){7,}(?:0x)?[0-9A-Fa-f]{2}\b")
_DUMPED: Final = re.compile(
    rb"^[0-9a-fA-F]{6,}:?[ \t]+((?:[0-9a-fA-F]{2} {0,2}){2,32})(?= |\||\r?$)", re.MULTILINE
)
_DECIMALS: Final = re.compile(rb"(?:\b\d{1,3}, ?){8,}\d{1,3}\b")
_PAIR: Final = re.compile(rb"(?:0x)?([0-9A-Fa-f]{2})")
#: Base85 and Ascii85: runs of their characters, of which some are no characters of Base64.
_BASE85: Final = re.compile(rb"[!-~]{25,}")
_ADOBE: Final = re.compile(rb"<~([!-uz\s]{10,})~>")
_IN_85: Final = b"!#$%&()*;<>?@^`{|}~"
_OBFUSCATED: Final = re.compile(rb"\s*[\[(] ?(?:(at)|dot) ?[\])]\s*", re.IGNORECASE)
_UUENCODED: Final = re.compile(rb"^begin [0-7]{3,4} .*\n((?:[!-M][ -`]{1,84}\r?\n)+)", re.MULTILINE)
_OPCODES: Final = re.compile(rb"\n[as]*V")
_LINE_ENDS: Final = (b"\n", b"\r\n", b"\\n", b"\n ")
#: An address that another follows without a mark: its end is that of a usual domain.
_GLUED: Final = re.compile(
    rb"(\.(?:com|org|net|edu|gov|info|io|de|fr|it|es|nl|fi|se|no|dk|pl|ch|at|be|uk|eu|us|cn|jp|br))"
    rb"(?=[A-Za-z0-9._+-]+@)"
)
_WIDE: Final = re.compile(rb"(?:[^\0-\x08]\0){6,}|(?:\0[^\0-\x08]){6,}")
_UUID: Final = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SIZES: Final = frozenset(DIGESTS.values())
#: Texts of more NULs than this share are UTF-16.
_WIDE_SHARE: Final = 0.2
#: This many NULs with one byte between each two may be a text in UTF-16.
_FEWEST_NULS: Final = 6
#: Bytes on both sides of an escape that are decoded with it: a word with its marks has fewer.
_AROUND: Final = 1024
#: The bytes that end a run of graphic characters, in which a file may be encoded.
_IS_GAP: Final = np.array([not 0x21 <= byte <= 0x7E for byte in range(256)])


def decoded(text: bytes, digest: Callable[[bytes], None]) -> Iterator[bytes]:
    """Yield the texts that a text holds in another encoding; ``digest`` gets possible digests."""
    for mark, pattern, decode in _ESCAPES:
        if mark in text and (around := _around(text, pattern)):
            yield decode(around)
    for has, decode in _WHOLE:
        if has(text):
            yield decode(text)
    yield from _wide(text)
    yield from _pairs(text, digest)
    yield from _runs(text, digest)


def byte_order(head: bytes) -> str | None:
    """Return the encoding that the mark at the start of a text names, or None without a mark."""
    for mark, name in (
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if head.startswith(mark):
            return name
    return None


def _around(text: bytes, pattern: re.Pattern[bytes]) -> bytes:
    """Return the parts of a text that have escapes, each with the bytes and runs around it.

    Decoding changes nothing else, and the text was searched.  Bytes of any kind have some escapes
    by chance: decoded whole, they would be searched once for each order of the encodings.
    """
    escapes: list[tuple[int, int]] = []
    match = pattern.search(text)
    while match is not None:
        # Escapes in the bytes that follow have the same bytes around them, and as many more.
        escapes.append((match.start() - _AROUND, match.end() + 2 * _AROUND))
        match = pattern.search(text, match.end() + _AROUND)
    if not escapes:
        return b""
    firsts, lasts = np.clip(np.array(escapes), 0, len(text)).T
    inside = np.flatnonzero(_IS_GAP[np.frombuffer(text, np.uint8)])
    gaps = np.concatenate([[-1], inside, [len(text)]])
    starts = gaps[np.searchsorted(gaps, firsts, "right") - 1] + 1
    ends = gaps[np.searchsorted(gaps, lasts)]
    cuts = np.flatnonzero(starts[1:] > ends[:-1])
    spans = zip(starts[[0, *(cuts + 1)]].tolist(), ends[[*cuts, -1]].tolist(), strict=True)
    # Lines of Base64 that do not follow each other are not joined over an empty line.
    return b"\n\n".join(text[start:end] for start, end in spans)


def _is_pickle(text: bytes) -> bool:
    """Return whether a text is a pickle of protocol 0, where a letter precedes each value."""
    return text.startswith((b"(", b"c", b"V")) and text.rstrip().endswith(b".") and b"\np" in text


def _has_glued(text: bytes) -> bool:
    # Lines of a table have one or two addresses.
    signs, lines = (_count(text, mark) for mark in b"@\n")
    return signs > 1 + 2 * lines and _GLUED.search(text) is not None


def _count(text: bytes, byte: int) -> int:
    """Return how often a text has a byte. `bytes.count` is ten times slower if there are many."""
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == byte))


def _is_latin(text: bytes) -> bool:
    """Return whether a text has letters of Latin-1. Few bytes of other files are all such."""
    if text.isascii() or _count(text, 0) * 8 > len(text):
        return False
    try:
        text.decode()
    except UnicodeDecodeError as error:
        # The end of the text may cut a character.
        return error.start < len(text) - 4
    return False


def _has_uu(text: bytes) -> bool:
    # Zeros are written as a mark that few texts have.
    return b"`" in text and b"begin " in text and _UUENCODED.search(text) is not None


def _from_uu(text: bytes) -> bytes:
    """Return the files that uuencode wrote into a text."""
    found = []
    for block in _UUENCODED.findall(text):
        for line in block.splitlines():
            with suppress(binascii.Error):
                found.append(binascii.a2b_uu(line))
    return b"".join(found)


def _has(pattern: re.Pattern[bytes], text: bytes) -> bool:
    """Return whether a text has a pattern; of a long one a part is looked at, for speed."""
    return any(pattern.search(it) for it in _samples(text))


def _samples(text: bytes) -> list[bytes]:
    starts = range(0, len(text), _SAMPLED_EVERY)
    return [text] if len(starts) == 1 else [text[at : at + _SAMPLE] for at in starts]


#: Of a long text this many first bytes of each part are looked at, and the size of a part.
_SAMPLE, _SAMPLED_EVERY = 1 << 8, 1 << 17


def _pairs(text: bytes, digest: Callable[[bytes], None]) -> Iterator[bytes]:
    """Yield the bytes that are written in hexadecimal one by one, as in dumps and programs."""
    if _has(_DUMPED, text):
        yield _of_pairs(b"".join(_DUMPED.findall(text)))
    elif _has(_SPACED, text):
        found = [_of_pairs(match[0]) for match in _SPACED.finditer(text)]
        for plain in found:
            if len(plain) in _SIZES:
                digest(plain)
        yield b"\n".join(found)


def _of_pairs(text: bytes) -> bytes:
    return bytes.fromhex(b"".join(_PAIR.findall(text)).decode())


def _from_decimals(text: bytes) -> bytes:
    rows = ([int(it) for it in match[0].split(b",")] for match in _DECIMALS.finditer(text))
    return b"\n".join(bytes(row) for row in rows if max(row) < 256)


def _has_85(text: bytes) -> bool:
    return any(_may_be_85(match[0]) for it in _samples(text) for match in _BASE85.finditer(it))


def _may_be_85(run: bytes) -> bool:
    odd = len(run) - len(run.translate(None, _IN_85))
    return len(run) < 20 * odd < 10 * len(run)


def _from_85(text: bytes) -> bytes:
    """Return the texts in runs of Base85 and of Ascii85."""
    found = []
    runs = (match[0] for match in _BASE85.finditer(text))
    for run in islice(filter(_may_be_85, runs), _MOST_RUNS):
        for decode in (base64.b85decode, base64.a85decode):
            with suppress(ValueError):
                # Most runs are something else.
                if _is_text(decode(run[:20])):
                    found.append(decode(run))
    return b"\n".join(found)


def _from_adobe(text: bytes) -> bytes:
    found = []
    for packed in _ADOBE.findall(text):
        with suppress(ValueError):
            found.append(base64.a85decode(packed))
    return b"\n".join(found)


def _from_rtf(text: bytes) -> bytes:
    return _IN_RTF.sub(lambda match: bytes.fromhex(match[1].decode()), text)


def _narrow(text: bytes) -> bytes:
    return unicodedata.normalize("NFKC", text.decode("utf-8", "ignore")).encode()


def _unescaped(text: bytes) -> bytes:
    def character(match: re.Match[bytes]) -> bytes:
        code = int(match[1] or match[2] or match[3], 8 if match[3] else 16)
        if match[1] is None:
            return bytes([code])
        return chr(code).encode("utf-16-le", "surrogatepass")

    def letters(match: re.Match[bytes]) -> bytes:
        if match[1] is None:
            return character(match)
        return chr(int(match[1], 16)).encode("utf-8", "surrogatepass")

    return _ESCAPE.sub(letters, text)


def _from_html(text: bytes) -> bytes:
    return html.unescape(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogatepass")


def _without_words(text: bytes) -> bytes:
    return _OBFUSCATED.sub(lambda match: b"@" if match[1] else b".", text)


def _from_latin(text: bytes) -> bytes:
    return text.decode("cp1252", "replace").encode()


#: A byte that each escape has, the escapes, and what decodes a text that has some.
_ESCAPES: Final[tuple[tuple[bytes, re.Pattern[bytes], Callable[[bytes], bytes]], ...]] = (
    (b"%", _PERCENT, unquote_to_bytes),
    (b"=", _QUOTED, quopri.decodestring),
    (b"\\", _ESCAPE, _unescaped),
    (b"&", _ENTITY, _from_html),
    (b"\x1b", _COLOUR, partial(_COLOUR.sub, b"")),
    (b"\xef", _EAST, _narrow),
    (b"<", _INLINE, partial(_INLINE.sub, b"")),
)
_WHOLE: Final[tuple[tuple[Callable[[bytes], object], Callable[[bytes], bytes]], ...]] = (
    (_is_latin, _from_latin),
    (_has_glued, partial(_GLUED.sub, rb"\1 ")),
    (_has_uu, _from_uu),
    (_is_pickle, partial(_OPCODES.sub, b"\n")),
    (lambda text: _has(_DECIMALS, text), _from_decimals),
    (lambda text: b"~" in text and b"<~" in text, _from_adobe),
    (_has_85, _from_85),
    (lambda text: text.startswith(b"{\\rtf"), _from_rtf),
    (lambda text: b"@" not in text and _has(_OBFUSCATED, text), _without_words),
)


def _wide(text: bytes) -> Iterator[bytes]:
    """Yield texts in UTF-16 without a mark."""
    nulls = _count(text, 0) if 0 in text else 0
    if nulls < _FEWEST_NULS:
        return
    if nulls > _WIDE_SHARE * len(text):
        yield text.replace(b"\0", b"")
        for start in (0, 1):
            for name in ("utf-16-le", "utf-16-be"):
                wide = text[start:].decode(name, "ignore")
                yield wide.encode("utf-8", "ignore")
        return
    spans = _alternating(text)
    found = (it[0] for start, end in spans for it in _WIDE.finditer(text[start:end]))
    yield b"\n".join(it.replace(b"\0", b"") for it in found)


def _alternating(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield the spans in which every second byte is NUL, with a byte before and after."""
    nuls = np.flatnonzero(np.frombuffer(text, np.uint8) == 0)
    bounds = [0, *(np.flatnonzero(np.diff(nuls) != 2) + 1).tolist(), len(nuls)]
    for first, end in pairwise(bounds):
        if end - first >= _FEWEST_NULS:
            yield max(0, int(nuls[first]) - 1), int(nuls[end - 1]) + 2


def _runs(text: bytes, digest: Callable[[bytes], None]) -> Iterator[bytes]:
    """Yield what runs of Base64, Base32 and hexadecimal digits hold, and report digests."""
    spans = np.empty((_MOST_RUNS, 2), np.int64)
    data, start = np.frombuffer(text, np.uint8), 0
    found: list[bytes] = []
    while start < len(text):
        count = find_runs(data[start:], _SHORTEST_RUN, spans)
        runs = (spans[:count] + start).tolist()
        for run in _joined(text, runs):
            found += _of_run(run, digest)
        if count < _MOST_RUNS:
            break
        start = runs[-1][1]
    files = [it for it in found if not _is_text(it)]
    yield from files
    if len(found) > len(files):
        yield b"\n".join(it for it in found if _is_text(it))


def _joined(text: bytes, spans: list[list[int]]) -> Iterator[bytes]:
    """Yield runs; those on lines of one length, as mail has them, are joined."""
    joined: list[bytes] = []
    for (start, end), (following, _) in pairwise([*spans, [len(text) + 9, 0]]):
        run = text[start:end]
        # Padding is no part of a run.
        gap = text[end:following]
        joined.append(run)
        # Digests on lines look like lines of one text.
        if len(run) // 2 in _SIZES and _HEX.fullmatch(run):
            yield run
        is_line = len(run) >= 60 and len(run) % 4 == 0 and gap in _LINE_ENDS
        goes_on = is_line and following < len(text)
        if not goes_on:
            if len(joined) > 1:
                # The last line may be shorter than a run.
                rest = re.match(rb"\r?\n([A-Za-z0-9+/_-]{1,%d})(?:=|\s|$)" % _SHORTEST_RUN, gap)
                yield b"".join(joined) + (rest[1] if rest else b"")
            else:
                yield run
            joined = []


def _of_run(run: bytes, digest: Callable[[bytes], None]) -> Iterator[bytes]:
    """Yield what a run holds: a text, a file, or the texts in other bytes.

    What may be a digest is reported.
    """
    run = run if _HEX.fullmatch(run) else _PREFIX.sub(b"", run)
    if run.isdigit() or _UUID.fullmatch(run):
        return
    inner: list[bytes] = []
    for plain in _plain_forms(run):
        if len(plain) in _SIZES:
            digest(plain)
        for content in (plain, *_inflated(plain)):
            if is_content(content):
                yield content
                return
        inner += _INNER.findall(plain)
    if inner:
        yield b"\n".join(inner)


#: A text between other bytes, as messages of Protocol Buffers and FlatBuffers have them.  Bytes of
#: chance rarely have one.
_INNER: Final = re.compile(rb"[\x20-\x7e]{8,}")


def _plain_forms(run: bytes) -> Iterator[bytes]:
    """Yield the bytes that a run may encode in each of the encodings."""
    if _HEX.fullmatch(run) and len(run) % 2 == 0:
        yield bytes.fromhex(run.decode())
    for part in _parts(run):
        plain = _from_base64(part)
        if plain is not None:
            yield plain
    if _BASE32.fullmatch(run):
        with suppress(binascii.Error, ValueError):
            yield base64.b32decode(run.upper() + b"=" * (-len(run) % 8))


def _inflated(plain: bytes) -> Iterator[bytes]:
    """Yield what bytes hold that deflate packed, as in messages of SAML, or brotli."""
    unpacker = zlib.decompressobj(wbits=-15)
    with suppress(zlib.error):
        content = unpacker.decompress(plain, _LONGEST_INFLATED)
        if unpacker.eof and not unpacker.unused_data and len(plain) >= _SHORTEST_RUN:
            yield content
    if len(plain) >= _SHORTEST_BROTLI:
        packed = pa.input_stream(pa.py_buffer(plain), compression="brotli")
        with suppress(OSError):
            yield packed.read(_LONGEST_INFLATED)


#: Shorter bytes are keys and digests.
_SHORTEST_BROTLI: Final = 65
_LONGEST_INFLATED: Final = 1 << 20


def _parts(run: bytes) -> Iterator[bytes]:
    """Yield a run, without what may come before Base64 in a longer text, and its parts."""
    yield run
    for cut in range(1, 4):
        yield run[cut:]
    # A path or a name may have marks that are characters of Base64 too.
    for mark in (b"/", b"-", b"_", b"+"):
        if mark in run:
            yield from (it for it in run.split(mark) if len(it) >= _SHORTEST_RUN)


def _from_base64(run: bytes) -> bytes | None:
    run = run.translate(bytes.maketrans(b"-_", b"+/"))
    if len(run) % 4 == 1:
        run = run[:-1]
    try:
        return base64.b64decode(run + b"=" * (-len(run) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


#: The first bytes of files that are looked into where they are encoded.
_FILES: Final = (
    b"PAR1", b"PARE", b"\x1f\x8b\x08", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"PK\3\4",
    b"\x04\x22\x4d\x18", b"ARROW1", b"ORC", b"Obj\x01", b"SQLite format 3\0", b"\xff\xfe",
    b"\xfe\xff", b"\x78\x9c", b"\x78\xda", b"\x78\x01", b"\x78\x5e", b"7z\xbc\xaf", b"Rar!\x1a\x07",
    b"\xff\x06\0\0sNaPpY", b"\x82SNAPPY\0", b"\x02\x21\x4c\x18",
)  # fmt: skip


def is_content(plain: bytes) -> bool:
    """Return whether decoded bytes are a text or a file, and not what any word decodes to."""
    return len(plain) >= 5 and (_is_text(plain) or plain.startswith(_FILES))


_PRINTABLE: Final = bytes(range(0x20, 0x7F)) + b"\t\r\n"


def _is_text(plain: bytes) -> bool:
    head = plain[:4096]
    odd = head.translate(None, _PRINTABLE)
    if len(odd) * 8 <= len(head):
        return True
    if odd.count(0) * 5 >= len(head) * 2:
        return len(odd) - odd.count(0) <= len(head) // 8
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:
            return False
    return not any(byte < 0x20 for byte in odd)
