"""Escapes in bytes of other kinds are found, and cost no more than a few readings of the bytes."""

from __future__ import annotations

import base64
import gzip
import html
import json
import random
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from secure_bloom.tracing.encodings import decoded
from secure_bloom.tracing.runs import in_runs
from tests.tracing.people import PEOPLE, columns_found, search
from tests.tracing.test_planted import CSV, SOME

_NOISE = random.Random(3).randbytes(1 << 18)
#: Decoded: zeros, of which a long run in Base64 has no character with an escape.
_SPARSE = random.Random(4).randbytes(6_000) + bytes(9_000) + gzip.compress(CSV)

ESCAPES: dict[str, Callable[[str], bytes]] = {
    "percent": lambda text: quote(text, safe="").encode(),
    "percent, twice": lambda text: quote(quote(text, safe=""), safe="").encode(),
    "quoted-printable": lambda text: text.replace("@", "=40").encode(),
    "quoted-printable, broken line": lambda text: text.replace("@", "=\r\n@").encode(),
    "octal": lambda text: text.replace("@", "\\100").encode(),
    "JSON": lambda text: text.replace("@", "\\u0040").encode(),
    "HTML": lambda text: text.replace("@", "&#64;").encode(),
    "UTF-16-LE": lambda text: text.encode("utf-16-le"),
    "UTF-16-BE": lambda text: text.encode("utf-16-be"),
    "HTML in JSON": lambda text: json.dumps(html.escape(text).replace("@", "&#x40;")).encode(),
    "JSON in a URL": lambda text: quote(text.replace("@", "\\u0040")).encode(),
}


@pytest.mark.parametrize("what", ESCAPES)
def test_values_with_escapes_are_found_between_other_bytes(tmp_path: Path, what: str) -> None:
    parts = [ESCAPES[what](text) + b"\n" + _NOISE[: 5_000 + n] for n, text in enumerate(SOME)]
    (tmp_path / "x").write_bytes(_NOISE + b"\n" + b"\n".join(parts) + _NOISE)
    assert "email" in columns_found(tmp_path)


def test_base64_of_texts_between_other_bytes_is_decoded(tmp_path: Path) -> None:
    """As messages of Protocol Buffers are, where most bytes are no text."""
    head, tail = bytes(range(0x80, 0x9E)), bytes(range(20))
    lines = (base64.b64encode(head + text.encode() + tail).decode() for text in SOME)
    (tmp_path / "x.json").write_text("\n".join(f'{{"message": "{line}"}}' for line in lines))
    assert "email" in columns_found(tmp_path)


def test_latin_letters_are_found_between_other_bytes(tmp_path: Path) -> None:
    texts = [str(it).encode("latin-1") for it in PEOPLE["umlaut"][100:109]]
    (tmp_path / "x").write_bytes(_NOISE + b"\n".join([b"", *texts, b""]) + _NOISE)
    assert "umlaut" in columns_found(tmp_path)


def test_a_file_in_an_address_is_whole_where_no_escape_is_for_a_while(tmp_path: Path) -> None:
    stored = quote(base64.b64encode(gzip.compress(_SPARSE, 0)), safe="")
    assert max(map(len, stored.split("%"))) > 9_000
    (tmp_path / "x").write_bytes(_NOISE + b" POST /?file=" + stored.encode() + b" " + _NOISE)
    assert "email" in columns_found(tmp_path)


@pytest.mark.parametrize(
    ("alphabet", "times"), [(range(256), 3), (range(0x20, 0x7F), 12)], ids=["bytes", "characters"]
)
def test_bytes_with_escapes_by_chance_are_decoded_a_few_times(alphabet: range, times: int) -> None:
    text = bytes(random.Random(5).choices(alphabet, k=1 << 20))
    assert sum(map(len, _all_decoded(text, 4))) < times * len(text)


def _all_decoded(text: bytes, depth: int) -> list[bytes]:
    """The texts in a text, and those in these, as deep as they are searched."""
    if depth == 0:
        return []
    inner = [*decoded(text, lambda _: None), *in_runs(text, lambda _: None)]
    return inner + [it for one in inner for it in _all_decoded(one, depth - 1)]


def test_chance_makes_no_streams_that_are_not_read(tmp_path: Path) -> None:
    """A gzip member with reserved flags is none, so that it does not count as one."""
    (tmp_path / "x").write_bytes(b"\x80" + b"\x1f\x8b\x08\xe0" * 2_000 + gzip.compress(CSV))
    (file,) = search(tmp_path).files
    assert not file.unread
    assert "email" in {it.column for it in file.findings}


def test_empty_space_is_no_text_and_what_is_decoded_once_has_no_nuls() -> None:
    """A disk image of zeros took 30 times as long as a text, and numbers of four bytes twice."""
    inner = list(decoded(bytes(1 << 18), lambda _: None))
    assert sum(map(len, inner)) < 1 << 10
    numbers = b"".join((n % 251).to_bytes(4, "little") for n in range(1 << 12))
    assert not any(0 in it for it in decoded(numbers, lambda _: None))
