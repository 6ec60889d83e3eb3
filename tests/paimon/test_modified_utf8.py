"""Names are written and read as Java does, and in one way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import FormatError
from secure_bloom.paimon.container import decode_name, encode_name


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a\0b", b"a\xc0\x80b"),
        ("\U0001f600", b"\xed\xa0\xbd\xed\xb8\x80"),
        ("é列", "é列".encode()),
    ],
)
def test_names_are_in_java_s_own_utf8(text: str, data: bytes) -> None:
    assert encode_name(text) == data
    assert decode_name(data) == text


@pytest.mark.parametrize(
    "data", [b"\0", b"\xf0\x9f\x98\x80", b"\xed\xa0\xbd", b"\xff", b"\xc1\x81"]
)
def test_bytes_that_java_would_not_write_are_no_name(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode_name(data)


@given(st.text())
def test_a_name_is_written_in_one_way(text: str) -> None:
    try:
        assert decode_name(encode_name(text)) == text
    except FormatError:
        assert any(0xD800 <= ord(c) < 0xE000 for c in text)
