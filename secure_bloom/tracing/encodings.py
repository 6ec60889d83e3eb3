"""Texts inside a text: escapes of URLs, mail, JSON and HTML, dumps, Base85, UTF-16, Latin-1.

    for inner in decoded(text, digests.append): ...   texts and files that the text holds, encoded

Base64, Base32 and hexadecimal are decoded by :mod:`.runs`.

A digest looks like any other encoded word. A word that has the length of a digest is reported as a
possible digest.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import quopri
import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, pairwise
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Final
from urllib.parse import unquote_to_bytes

import numpy as np
from numpy.typing import NDArray

from secure_bloom.kernels.words import alphabet, find_runs
from secure_bloom.tracing.runs import DIGEST_SIZES, LONGEST_KEY, is_text

_PERCENT: Final = re.compile(rb"%[0-9A-Fa-f]{2}")
_QUOTED: Final = re.compile(rb"=\r?\n|=40|=3[Dd]|=2[Ee]|=20|=[C-F][0-9A-F]=")
_ESCAPE: Final = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([0-3][0-7]{2}))")
#: Bytes as letters of Latin-1 in JSON: a control character that texts lack, and what each byte is.
_IN_JSON: Final = re.compile(rb"\\u00[89][0-9a-fA-F]")
_OF_JSON: Final = re.compile(rb"\\(?:u00([0-9a-fA-F]{2})|([\"\\/bfnrt]))")
_SHORT_IN_JSON: Final = dict(zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True))
_IN_RTF: Final = re.compile(rb"\\(?:'([0-9a-fA-F]{2})|u(-?[0-9]{3,5}) ?\??)")
#: Letters of East Asian width, U+FF01 to U+FF5E.
_EAST: Final = re.compile(rb"(?:\xef[\xbc\xbd][\x80-\xbf]){4}")
#: What follows the letter it belongs to: marks of Latin, Greek and Cyrillic, of Arabic, parts of
#: Korean syllables, marks of Japanese.  And the first bytes of these.
_APART: Final = re.compile(
    rb"\xcc[\x80-\xbf]|\xcd[\x80-\xaf]|\xd9[\x93-\x95]|\xe1[\x85-\x87][\x80-\xbf]"
    rb"|\xe3\x82[\x99\x9a]"
)
_STARTS_APART: Final = b"\xcc\xcd\xd9\xe1\xe3"
#: Bytes of any kind have such marks by chance, but are no UTF-8: more of them than this share.
_OTHER_SHARE: Final = 0.05
_ENTITY: Final = re.compile(rb"&(?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z]+\d*);")
#: Colours of a terminal.
_COLOUR: Final = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
#: What the tags of paragraphs, lines and cells are not.
_INSIDE: Final = (
    rb"(?!(?:[\w-]+:)?(?:p|h[1-6]?|br|cr|tab|div|t[dhcr]|tbl|si|li|item|row|line-break|list-item)"
    rb"[\s/>])"
)
#: Tags inside a text: of HTML and of spreadsheets, and any of Office and OpenDocument.
_TAG: Final = (
    rb"/?%b(?:b|i|u|em|strong|span|a|r|t|wbr|font|mark|code|small|su[bp]|del|ins"
    rb"|rPr|sz|color|rFont|family|charset|scheme|strike|vertAlign"
    rb"|(?:w\w{0,6}|a\d*|x|mc|text):[\w-]{1,40})(?:\s[^<>]{0,2000})?/?>"
) % _INSIDE
#: What is before and after such tags. Around other tags of XML there must be letters of a word.
_IN_TEXT, _IN_WORD = rb"[^<>\t\r\n\0]", rb"[\w@.\x80-\xff-]"
_OTHER: Final = _INSIDE + rb"[A-Za-z][\w:.-]{0,40}(?:\s[^<>]{0,2000})?"
#: Tags in a row: empty ones, ends, and starts if the last one has its end.  Bytes of chance have no
#: such tags.
_ROWS: Final = (
    (_IN_TEXT, rb"%b(?:<%b)*(?=%b)" % (_TAG, _TAG, _IN_TEXT)),
    (_IN_WORD, rb"(?:%b/><)*%b/>(?=%b)" % (_OTHER, _OTHER, _IN_WORD)),
    (_IN_WORD, rb"(?:/%b><)*/%b>(?=%b)" % (_OTHER, _OTHER, _IN_WORD)),
    (
        _IN_WORD,
        rb"(?:%b><)*%b(?P<name>[A-Za-z][\w:.-]{0,40})(?:\s[^<>]{0,2000})?>"
        rb"(?=%b[^<>]{0,200}</(?P=name)>)" % (_OTHER, _INSIDE, _IN_WORD),
    ),
)
_INLINE: Final = re.compile(b"|".join(rb"<(?<=%b<)%b" % row for row in _ROWS))
#: Bytes as numbers: in hexadecimal with a mark between two, in dumps with offsets, in decimals.
_SPACED: Final = re.compile(rb"(?:(?:0x)?[0-9A-Fa-f]{2}[ ,:-]{1,2}){7,}(?:0x)?[0-9A-Fa-f]{2}\b")
_DUMPED: Final = re.compile(
    rb"^[0-9a-fA-F]{6,}:?[ \t]+((?:[0-9a-fA-F]{2} {0,2}){2,32})(?= |$)", re.MULTILINE
)
_DECIMALS: Final = re.compile(rb"(?:-?\b\d{1,3}, ?){8,}-?\b\d{1,3}\b")
_NUMBERS: Final = re.compile(
    b"|".join(it.pattern for it in (_SPACED, _DUMPED, _DECIMALS)), re.MULTILINE
)
_PAIR: Final = re.compile(rb"(?:0x)?([0-9A-Fa-f]{2})")
#: Doubles with more digits than they need, and the exponents of these.
_LONG_DOUBLE: Final = re.compile(rb"\d\.\d{16,40}[eE][+-]\d{2,3}")
_EXPONENTS: Final = tuple(
    (mark, re.compile(rb"%b\d\d(?<=\d{16}%b\d\d)" % (2 * (re.escape(mark),))))
    for mark in (b"e+", b"e-", b"E+", b"E-")
)
#: What programs in Java, Rust and Visual Basic write at each byte of such lists.
_CAST: Final = re.compile(rb"\(byte\) ?(?=-?[0-9])")
_TYPE: Final = re.compile(rb"(?<=[0-9A-Fa-f])_?u8\b")
_BASIC: Final = re.compile(rb"&H(?=[0-9A-Fa-f]{2}\b)")
#: The characters of such lists, and the fewest of them.
_OF_NUMBERS, _SHORTEST_LIST = alphabet(b"0123456789abcdefABCDEFx \t,:-"), 17
_MOST_PARTS: Final = 1 << 16
#: Base85 and Ascii85: runs of their characters, of which some are no characters of Base64.
_GRAPHIC, _SHORTEST_85 = alphabet(bytes(range(0x21, 0x7F))), 25
_ADOBE: Final = re.compile(rb"<~([!-uz\s]{10,})~>")
_IN_85: Final = b"!#$%&()*;<>?@^`{|}~"
#: Addresses as people hide them from programs: `anna (at) post (dot) fi`, `anna at post.fi`.
_HIDDEN: Final = re.compile(
    rb"\s*[\[(] ?(?:at|dot) ?[\])]\s*| at (?=[\w-]+(?:\.| dot )\w)| dot (?=\w)", re.IGNORECASE
)
_UUENCODED: Final = re.compile(rb"^begin [0-7]{3,4} .*\n((?:[!-M][ -`]{1,84}\r?\n)+)", re.MULTILINE)
_OPCODES: Final = re.compile(rb"\n[as]*V")
#: What precedes a text in pickles of later protocols, with its length, and what follows it.
_COUNTED: Final = re.compile(rb"[XTB]([\x04-\xff][\0-\xff])\0\0|[UC\x8c]([\x04-\xff])", re.DOTALL)
_MEMOS: Final = frozenset(b"qr\x94")
#: An address that another follows without a mark: its end is that of a usual domain.
_GLUED: Final = re.compile(
    rb"(\.(?:com|org|net|edu|gov|info|io|de|fr|it|es|nl|fi|se|no|dk|pl|ch|at|be|uk|eu|us|cn|jp|br))"
    rb"(?=[A-Za-z0-9._+-]+@)"
)
_WIDE: Final = re.compile(rb"(?:[^\0-\x08]\0){6,}|(?:\0[^\0-\x08]){6,}")
#: Texts of more NULs than this share are UTF-16.
_WIDE_SHARE: Final = 0.2
#: NULs in a row that are kept of more.
_LONGEST_GAP: Final = 16
_SPACE: Final = re.compile(rb"\0{%d,}" % (_LONGEST_GAP + 1))
_NUL_AS_LINE: Final = bytes.maketrans(b"\0", b"\n")
#: This many NULs with one byte between each two may be a text in UTF-16.
_FEWEST_NULS: Final = 6
#: Bytes on both sides of an escape that are decoded with it: a word with its marks has fewer.
_AROUND: Final = 1024
#: The bytes that end a run of graphic characters, in which a file may be encoded.
_IS_GAP: Final = np.array([not 0x21 <= byte <= 0x7E for byte in range(256)])


def decoded(text: bytes, digest: Callable[[bytes], None]) -> Iterator[bytes]:
    """Yield the texts that a text holds in another encoding. ``digest`` gets possible digests."""
    for mark, pattern, decode in _ESCAPES:
        if mark in text and (around := _around(text, pattern)):
            yield decode(around)
    for has, decode in _WHOLE:
        if has(text):
            yield decode(text)
    yield from _wide(text)
    yield from _pairs(text, digest)


def byte_order(head: bytes) -> str | None:
    """Return the encoding of the byte-order mark at a text's start, or None without one."""
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
    """Return the parts of a text that have escapes, each with the bytes around it.

    The rest of the text is not decoded, because decoding would not change it. Bytes of any kind
    have some escapes by chance. If they were decoded whole, they would be searched once for each
    order of the encodings.
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
    """Return whether a text is a pickle of protocol 0, which writes a letter before each value."""
    return text.startswith((b"(", b"c", b"V")) and text.rstrip().endswith(b".") and b"\np" in text


def _has_counted(text: bytes) -> bool:
    return 0 in text and _COUNTED.search(text) is not None


def _from_pickle(text: bytes) -> bytes:
    """Return the texts in binary pickles. The byte after a text may be a letter (an opcode)."""
    found = []
    for match in _COUNTED.finditer(text):
        end = match.end() + int.from_bytes(match[1] or match[2], "little")
        if end < len(text) and text[end] in _MEMOS and is_text(text[match.end() : end]):
            found.append(text[match.end() : end])
    return b"\n".join(found)


def _has_glued(text: bytes) -> bool:
    # Lines of a table have one or two addresses.
    signs, lines = (_count(text, mark) for mark in b"@\n")
    return signs > 1 + 2 * lines and _GLUED.search(text) is not None


def _count(text: bytes, byte: int) -> int:
    """Return how often a text has a byte. `bytes.count` is ten times slower if there are many."""
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == byte))


def _is_latin(text: bytes) -> bool:
    """Return whether a text has Latin-1 letters. Other binary files rarely pass this test."""
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


def _samples(text: bytes) -> list[bytes]:
    starts = range(0, len(text), _SAMPLED_EVERY)
    return [text] if len(starts) == 1 else [text[at : at + _SAMPLE] for at in starts]


#: Of a long text this many first bytes of each part are looked at, and the size of a part.
_SAMPLE, _SAMPLED_EVERY = 1 << 8, 1 << 17


def _pairs(text: bytes, digest: Callable[[bytes], None]) -> Iterator[bytes]:
    """Yield the bytes that hex dumps and programs write as numbers, one number for each byte."""
    if not any(_NUMBERS.search(_lists(it)) for it in _samples(text)):
        return
    lists = _lists(text)
    dumped = _DUMPED.findall(lists)
    if dumped:
        yield _of_pairs(b"".join(dumped))
    else:
        found = [_of_pairs(match[0]) for match in _SPACED.finditer(lists)]
        for plain in found:
            if len(plain) in DIGEST_SIZES:
                digest(plain)
        yield b"\n".join(found)
    yield _from_decimals(lists)


def _lists(text: bytes) -> bytes:
    """Return the parts of a text that may be lists of numbers, each part on its own line."""
    return b"\n".join(_parts(text, _OF_NUMBERS, _SHORTEST_LIST))


def _parts(text: bytes, characters: NDArray[np.uint8], least: int) -> list[bytes]:
    """Return the parts of a text that have at least ``least`` bytes, all among ``characters``."""
    spans = np.empty((_MOST_PARTS, 2), np.int64)
    count = find_runs(np.frombuffer(text, np.uint8), characters, least, spans)
    return [text[start:end] for start, end in spans[:count].tolist()]


def _of_pairs(text: bytes) -> bytes:
    return bytes.fromhex(b"".join(_PAIR.findall(text)).decode())


def _from_decimals(text: bytes) -> bytes:
    rows = ([int(it) for it in match[0].split(b",")] for match in _DECIMALS.finditer(text))
    # Java has signed bytes.
    found = (row for row in rows if min(row) >= -128 and max(row) < 256)
    return b"\n".join(bytes(it & 0xFF for it in row) for row in found)


def _has_85(text: bytes) -> bool:
    parts = (_parts(it, _GRAPHIC, _SHORTEST_85) for it in _samples(text))
    return any(map(_may_be_85, chain.from_iterable(parts)))


def _may_be_85(run: bytes) -> bool:
    odd = len(run) - len(run.translate(None, _IN_85))
    return len(run) < 20 * odd < 10 * len(run)


def _from_85(text: bytes) -> bytes:
    """Return the texts in runs of Base85 and of Ascii85, and what long runs hold."""
    runs = list(filter(_may_be_85, _parts(text, _GRAPHIC, _SHORTEST_85)))
    heads = b"".join(run[:_HEAD_OF_85] for run in runs)
    groups = np.frombuffer(heads, np.uint8).reshape(-1, _HEAD_OF_85 // 5, 5)
    texts = []
    for values, decode in _DECODERS_OF_85:
        # Most runs are something else.
        numbers = values[groups] @ _PLACES
        for i in np.flatnonzero(((numbers >= 0) & (numbers < 1 << 32)).all(axis=1)).tolist():
            if 4 * len(runs[i]) > 5 * LONGEST_KEY or is_text(numbers[i].astype(">u4").tobytes()):
                with suppress(ValueError):
                    texts.append(decode(runs[i]))
    return b"\n".join(texts)


def _values_of_85(characters: bytes) -> NDArray[np.int64]:
    """Return a table from bytes to digits. Every other byte makes a number negative."""
    values = np.full(256, -(1 << 40))
    values[list(characters)] = np.arange(85)
    return values


_HEAD_OF_85: Final = 20
_PLACES: Final = 85 ** np.arange(4, -1, -1)
_DECODERS_OF_85: Final[tuple[tuple[NDArray[np.int64], Callable[[bytes], bytes]], ...]] = (
    (
        _values_of_85(
            f"{digits}{ascii_uppercase}{ascii_lowercase}!#$%&()*+-;<=>?@^_`{{|}}~".encode()
        ),
        base64.b85decode,
    ),
    (_values_of_85(bytes(range(0x21, 0x76))), base64.a85decode),
)


def _from_adobe(text: bytes) -> bytes:
    found = []
    for packed in _ADOBE.findall(text):
        with suppress(ValueError):
            found.append(base64.a85decode(packed))
    return b"\n".join(found)


def _from_rtf(text: bytes) -> bytes:
    def letters(match: re.Match[bytes]) -> bytes:
        if match[1] is not None:
            return bytes.fromhex(match[1].decode())
        # Numbers from 32,768 on are written as negative ones.
        return chr(int(match[2]) & 0xFFFF).encode("utf-8", "surrogatepass")

    return _IN_RTF.sub(letters, text)


def _narrow(text: bytes) -> bytes:
    return unicodedata.normalize("NFKC", text.decode("utf-8", "ignore")).encode()


def _has_apart(text: bytes) -> bool:
    return any(it in text for it in _STARTS_APART) and _APART.search(text) is not None


def _composed(text: bytes) -> bytes:
    """Return a text in the normal form NFKC. Nothing if it has this form, or is no UTF-8."""
    letters = text.decode("utf-8", "ignore")
    if len(letters.encode()) < (1 - _OTHER_SHARE) * len(text):
        return b""
    found = unicodedata.normalize("NFKC", letters)
    return b"" if found == letters else found.encode()


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


def _from_json(text: bytes) -> bytes:
    def byte(match: re.Match[bytes]) -> bytes:
        code = int(match[1], 16) if match[1] else _SHORT_IN_JSON[match[2][0]]
        return bytes([code])

    return _OF_JSON.sub(byte, text)


def _from_html(text: bytes) -> bytes:
    return html.unescape(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogatepass")


def _shown(text: bytes) -> bytes:
    return _HIDDEN.sub(lambda match: b"@" if b"a" in match[0].lower() else b".", text)


def _from_latin(text: bytes) -> bytes:
    return text.decode("cp1252", "replace").encode()


#: A byte that each escape has, the escapes, and what decodes a text that has some.
_ESCAPES: Final[tuple[tuple[bytes, re.Pattern[bytes], Callable[[bytes], bytes]], ...]] = (
    (b"%", _PERCENT, unquote_to_bytes),
    (b"=", _QUOTED, quopri.decodestring),
    (b"\\", _ESCAPE, _unescaped),
    (b"\\u00", _IN_JSON, _from_json),
    (b"\\", _IN_RTF, _from_rtf),
    (b"&", _ENTITY, _from_html),
    (b"\x1b", _COLOUR, partial(_COLOUR.sub, b"")),
    (b"\xef", _EAST, _narrow),
    (b"<", _INLINE, partial(_INLINE.sub, b"")),
    *(
        (mark, pattern, partial(_LONG_DOUBLE.sub, lambda it: repr(float(it[0])).encode()))
        for mark, pattern in _EXPONENTS
    ),
    (b"(byte)", _CAST, partial(_CAST.sub, b"")),
    (b"u8", _TYPE, partial(_TYPE.sub, b"")),
    (b"&H", _BASIC, partial(_BASIC.sub, b"0x")),
    (b"(", re.compile(rb"\( ?(?:at|dot) ?\)", re.IGNORECASE), _shown),
    (b"[", re.compile(rb"\[ ?(?:at|dot) ?\]", re.IGNORECASE), _shown),
    (b" at ", re.compile(rb" at (?=[\w-]+(?:\.| dot )\w)"), _shown),
)
_WHOLE: Final[tuple[tuple[Callable[[bytes], object], Callable[[bytes], bytes]], ...]] = (
    (_is_latin, _from_latin),
    (_has_apart, _composed),
    (_has_glued, partial(_GLUED.sub, rb"\1 ")),
    (_has_uu, _from_uu),
    (_is_pickle, partial(_OPCODES.sub, b"\n")),
    (lambda text: b"~" in text and b"<~" in text, _from_adobe),
    (_has_85, _from_85),
    (_has_counted, _from_pickle),
)


def _wide(text: bytes) -> Iterator[bytes]:
    """Yield texts in UTF-16 that begin without a byte-order mark."""
    nulls = _count(text, 0) if 0 in text else 0
    if nulls < _FEWEST_NULS:
        return
    if nulls > _WIDE_SHARE * len(text):
        # Empty space is no text.
        text = _SPACE.sub(bytes(_LONGEST_GAP), text)
        yield text.translate(None, b"\0")
        for start in (0, 1):
            for name in ("utf-16-le", "utf-16-be"):
                wide = text[start:].decode(name, "ignore").encode("utf-8", "ignore")
                # NULs end a text, or it is UTF-32.  Without them it is not decoded again.
                yield wide.translate(_NUL_AS_LINE)
                if _count(wide, 0) > _WIDE_SHARE * len(wide):
                    yield wide.translate(None, b"\0")
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
