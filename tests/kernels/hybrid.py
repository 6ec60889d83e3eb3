"""Encode numbers as the RLE / bit-packing hybrid, in runs that a test chooses."""

from __future__ import annotations

from collections.abc import Sequence


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def repeated(number: int, times: int, width: int) -> bytes:
    """A run of one number."""
    return varint(times << 1) + number.to_bytes((width + 7) // 8, "little")


def packed(numbers: Sequence[int], width: int) -> bytes:
    """A bit-packed run; its last group is filled up with zeros."""
    groups = (len(numbers) + 7) // 8
    bits = sum(number << width * i for i, number in enumerate(numbers))
    return varint(groups << 1 | 1) + bits.to_bytes(groups * width, "little")
