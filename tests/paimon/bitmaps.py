"""Bitmap indexes, as Paimon 0.9 writes them."""

from __future__ import annotations

import struct

import pyroaring

from secure_bloom.paimon import Index


def bitmap(values: list[int | None]) -> Index:
    """A bitmap index of an INT column."""
    nulls = {row for row, value in enumerate(values) if value is None}
    bodies, places = b"", {}
    sets = {None: nulls} if nulls else {}
    for value in dict.fromkeys(each for each in values if each is not None):
        sets[value] = {row for row, each in enumerate(values) if each == value}
    for value, rows in sets.items():
        places[value] = -1 - min(rows) if len(rows) == 1 else len(bodies)
        bodies += pyroaring.BitMap(rows).serialize() if len(rows) > 1 else b""
    head = struct.pack(">Biib", 1, len(values), len(sets) - bool(nulls), bool(nulls))
    head += struct.pack(">i", places.pop(None)) if nulls else b""
    entries = b"".join(struct.pack(">ii", value, place) for value, place in places.items())
    return Index(type="bitmap", body=head + entries + bodies)
