"""Bytes that are not what they say they are, for the kernels that pass over Thrift structures."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from secure_bloom.kernels import extension

#: The extension; tests that use it are skipped without it.
native: Any = extension.native
needs_native = pytest.mark.skipif(native is None, reason=f"runs on {extension.description}")
#: In place of an offset, and of a number that a structure does not have.
NOWHERE, ABSENT = -1, -(2**63)

_LARGE = [b"\xff" * size + b"\x7f" for size in (1, 3, 4, 7, 8, 9, 12)]
#: What a hostile writer would put in: numbers without end, large or below zero, headers of all
#: types in both forms, lists and maps that claim much, structures that do not end.
_POISON = [
    *_LARGE,
    b"\xff" * 12,
    b"\x80" * 9 + b"\x00",
    *[bytes([kind]) for kind in range(16)],
    *[bytes([kind]) + b"\x80\x80" for kind in range(16)],
    *[bytes([kind, 0x80, 0x80, 0x04]) for kind in range(16)],
    *[bytes([0x10 | kind]) for kind in range(16)],
    *[bytes([0xF0 | kind]) + large for kind in (3, 5, 8, 9, 12) for large in _LARGE],
    *[bytes([kind]) + large for kind in (0x18, 0x1A, 0x1B) for large in _LARGE],
    b"\x1c" * 40,
    b"\x19" * 40,
    b"\x1b\x01\xbb" * 20,
    b"\x00",
    b"\x1b\x00",
    b"\x1b\x02\x00",
    b"\x19\x30",
    b"\x1d",
    b"\x17",
]


@st.composite
def mutations(draw: st.DrawFn, original: bytes, start: int = 0) -> bytes:
    """``original`` with a few changes behind byte ``start``."""
    data = bytearray(original)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(start, max(start, len(data))))
        poison = draw(st.sampled_from(_POISON) | st.binary(max_size=4))
        taken = draw(st.sampled_from([0, 0, 1, 1, len(poison), 20, len(data)]))
        data[at : at + taken] = poison
    return bytes(data)
