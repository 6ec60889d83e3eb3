"""Decode runs of Base64, Base32 and hexadecimal digits in a text.

    for inner in in_runs(text, digests.append): ...   texts and files that runs hold

A digest looks like any other run. A run that has the length of a digest is reported as a possible
digest.
"""

from __future__ import annotations

import base64
import binascii
import re
import string
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secure_bloom.kernels.words import BASE64, find_runs
from secure_bloom.tracing.forms import DIGESTS
from secure_bloom.tracing.packed import UNPACKABLE, kind_of

#: A run of this many characters of Base64 may hold a value.
_SHORTEST_RUN: Final = 16
#: Runs that are looked at together.
_MOST_RUNS: Final = 1 << 14
#: Lines that go on in the next one have at least these characters.
_SHORTEST_LINE: Final = 60
_HEX: Final = re.compile(rb"[0-9a-fA-F]+")
#: What begins hexadecimal digits in programs and in SQL.
_PREFIX: Final = re.compile(rb"^0?x(?=[0-9a-fA-F]+$)")
#: A number whose digits are written as hexadecimal bytes.
_DIGITS_IN_HEX: Final = re.compile(rb"(?:3[0-9])+")
_BASE32: Final = re.compile(rb"(?:[A-Z2-7]{16,}|[a-z2-7]{16,})={0,6}")
_LINE_ENDS: Final = (b"\n", b"\r\n", b"\\n", b"\n ")
_UUID: Final = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
DIGEST_SIZES: Final = frozenset(DIGESTS.values())


def in_runs(text: bytes, digest: Callable[[bytes], None]) -> Iterator[bytes]:
    """Yield the content of runs of Base64, Base32 and hexadecimal digits, and report digests."""
    spans = np.empty((_MOST_RUNS, 2), np.int64)
    data, start = np.frombuffer(text, np.uint8), 0
    found: list[bytes] = []
    while start < len(text):
        count = find_runs(data[start:], BASE64, _SHORTEST_RUN, spans)
        runs = spans[:count] + start
        for run, are_digests in _joined(text, runs[~_are_names(data, runs)].tolist()):
            found += _of_run(run, digest, are_digests=are_digests)
        if count < _MOST_RUNS:
            break
        start = int(runs[-1, 1])
    files = [it for it in found if not is_text(it)]
    yield from files
    if len(found) > len(files):
        yield b"\n".join(it for it in found if is_text(it))


def _are_names(data: NDArray[np.uint8], spans: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of the runs that are names in programs, such as ``read_all_rows``.

    Nearly all pairs of neighbours in a name are letters of one case, or marks between words.  One
    in 100,000 digests in Base64 looks like a name by chance.  An encoded text in capitals looks
    like a name too, but six of its decoded bytes are ASCII.
    """
    lengths = spans[:, 1] - spans[:, 0]
    found = lengths < _SHORTEST_LINE
    lengths, starts = lengths[found], spans[found, 0]
    if not len(starts):
        return found
    firsts = np.cumsum(lengths) - lengths
    chars = data[np.repeat(starts - firsts, lengths) + np.arange(lengths.sum())]
    left = np.repeat(firsts + lengths, lengths) - np.arange(len(chars))
    cases = _CASES[chars]
    pairs = np.cumsum(np.append(0, (cases & np.append(cases[1:], 0)) != 0))
    # A window at the end of a run is left to those before it.
    window = np.append(pairs[_PAIRS:] - pairs[:-_PAIRS], np.zeros(_PAIRS - 1, np.int64))
    is_odd = (window < _FEWEST_ALIKE) & (left > _PAIRS)
    six = np.append(_SIX[chars], np.zeros(7, np.uint8))
    first, second, third = six[:-3] << 2, six[1:-2] << 4, six[2:-1] << 6
    plain = (first | six[1:-2] >> 4, second | six[2:-1] >> 2, third | six[3:])
    is_ascii = np.logical_and.reduce([_IS_ASCII[it] for it in plain])
    has_text = is_ascii[:-4] & is_ascii[4:] & (left > 7)
    is_other = np.logical_or.reduceat(is_odd | has_text, firsts)
    # Base32 has letters of one case, and no marks.
    found[found] = ~is_other & (np.bitwise_or.reduceat(cases, firsts) == 3)
    return found


#: Neighbours that are looked at together, and how many of them are of one case in a name.
_PAIRS, _FEWEST_ALIKE = 15, 13
_FROM_URLS: Final = bytes.maketrans(b"-_", b"+/")
_DIGITS: Final = (string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/").encode()
_EVERY: Final = bytes(range(256))
#: By character: its case, as a bit, of which the mark between words has both; and its six bits.
_CASES: Final = np.array(
    [
        (it in b"_abcdefghijklmnopqrstuvwxyz") | 2 * (it in b"_ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        for it in _EVERY
    ],
    np.uint8,
)
_SIX: Final = np.array([max(_DIGITS.find(it), 0) for it in _EVERY.translate(_FROM_URLS)], np.uint8)
_IS_ASCII: Final = np.array([0x20 <= it < 0x7F for it in _EVERY])


def _joined(text: bytes, spans: list[list[int]]) -> Iterator[tuple[bytes, bool]]:
    """Yield runs. Runs on consecutive lines of one length, as in mail, are joined.

    With each is whether its lines may be digests.
    """
    joined: list[bytes] = []
    for (start, end), (following, _) in pairwise([*spans, [len(text) + 9, 0]]):
        run = text[start:end]
        # Padding is no part of a run.
        gap = text[end:following]
        joined.append(run)
        # Digests on lines look like lines of one text.
        is_digest = len(run) // 2 in DIGEST_SIZES and _HEX.fullmatch(run) is not None
        if is_digest:
            yield run, True
        is_line = len(run) >= _SHORTEST_LINE and len(run) % 4 == 0 and gap in _LINE_ENDS
        goes_on = is_line and following < len(text)
        if not goes_on:
            if len(joined) > 1:
                # The last line may be shorter than a run.
                rest = re.match(rb"\r?\n([A-Za-z0-9+/_-]{1,%d})(?:=|\s|$)" % _SHORTEST_RUN, gap)
                yield b"".join(joined) + (rest[1] if rest else b""), is_digest
            else:
                yield run, is_digest
            joined = []


def _of_run(run: bytes, digest: Callable[[bytes], None], *, are_digests: bool) -> Iterator[bytes]:
    """Yield the texts and files that a run decodes to, also texts among other bytes.

    Other bytes are yielded if they are longer than a key, and no digests on lines. A possible
    digest is reported to ``digest``.
    """
    # One character, repeated, holds no word. Megabytes of it would be decoded in all ways.
    if run.count(run[:1]) == len(run):
        return
    run = run if _HEX.fullmatch(run) else _PREFIX.sub(b"", run)
    if (run.isdigit() and not _DIGITS_IN_HEX.fullmatch(run)) or _UUID.fullmatch(run):
        return
    inner: list[bytes] = []
    whole = b""
    for plain in _plain_forms(run):
        whole = whole or plain
        if len(plain) in DIGEST_SIZES:
            digest(plain)
        for content in (plain, *_inflated(plain)):
            if is_content(content):
                yield content
                # A short part may be a text by chance.
                if len(plain) > len(whole) - 4 or len(whole) <= LONGEST_KEY:
                    return
        inner += _INNER.findall(plain)
    if len(whole) > LONGEST_KEY and not are_digests:
        yield plain if _BASE32.fullmatch(run) else whole
    if inner:
        yield b"\n".join(inner)


#: Bytes of chance that are not longer are keys, signatures and digests.
LONGEST_KEY: Final = 512
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
    """Yield the content of bytes that are packed by deflate (as in SAML messages) or brotli."""
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
    """Yield a run, the run without its first one to three characters, and its parts between marks.

    Characters of a longer text may precede Base64.
    """
    yield run
    for cut in range(1, 4):
        yield run[cut:]
    # A path or a name may have marks that are characters of Base64 too.
    for mark in (b"/", b"-", b"_", b"+"):
        if mark in run:
            yield from (it for it in run.split(mark) if len(it) >= _SHORTEST_RUN)


def _from_base64(run: bytes) -> bytes | None:
    run = run.translate(_FROM_URLS)
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
    b"\xfe\xff", b"\x78\x9c", b"\x78\xda", b"\x78\x01", b"\x78\x5e", b"7z\xbc\xaf",
    b"\xff\x06\0\0sNaPpY", b"\x82SNAPPY\0", b"\x02\x21\x4c\x18", b"%PDF", b"!<arch>\n",
    *(mark for mark in UNPACKABLE if len(mark) >= 4),
)  # fmt: skip


#: The first bytes of files whose marks are short or are numbers: chance has none of these.
_SURE: Final = re.compile(
    rb"\x1f\x8b\x08[\0-\x1f].{4}[\0\2\4][\0-\x0d\xff]|BZh[1-9]1AY&SY"
    rb"|\xff{4}[^\xff].{2}\0[\x04-\x40]\0{3}"
    # A pickle's frame, archives of ar and tar, and ORC with its first chunk.
    rb"|\x80[\4\5]\x95.{4}\0{4}|!<arch>\n|.{257}ustar|ORC(?=.{200})(?:\n|..[\0-\x0f])",
    re.DOTALL,
)


def is_file(plain: bytes) -> bool:
    """Return whether decoded bytes begin like a file as bytes of chance do not."""
    return _SURE.match(plain) is not None or _begins_zlib(plain)


def _begins_zlib(plain: bytes) -> bool:
    """Return whether the first bytes can be unpacked. Random bytes rarely can.

    A few bytes of chance can be, but not to a text.
    """
    if kind_of(plain[:4]) != "zlib":
        return False
    with suppress(zlib.error):
        found = zlib.decompressobj().decompress(plain[:_PROBED])
        return bool(found) if len(plain) >= 2 * _PROBED else len(found) > 16 and is_text(found)
    return False


#: Bytes that have the whole code of a block of deflate.
_PROBED: Final = 128


def is_content(plain: bytes) -> bool:
    """Return whether decoded bytes are a text or a file. Most words decode to neither by chance."""
    is_known = plain.startswith(_FILES) or is_file(plain)
    return len(plain) >= 5 and (is_known or is_text(plain))


_PRINTABLE: Final = bytes(range(0x20, 0x7F)) + b"\t\r\n"


def is_text(plain: bytes) -> bool:
    """Return whether decoded bytes begin as a text does."""
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
