"""Compute how many bytes a file of an Iceberg table's metadata takes when pyiceberg decodes it.

    metadata.json        JSON, maybe packed by gzip; each part becomes an object of pyiceberg
    manifest, list       Avro, in any codec; each record becomes an object of pyiceberg

A hostile file can claim any number of records, and any unpacked size, at no cost. So both are
checked here, before pyiceberg decodes anything.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import Final

from secure_bloom.errors import FormatError
from secure_bloom.lakes.avro_blocks import MAGIC, AvroBlocks
from secure_bloom.lakes.avro_costs import AvroCost
from secure_bloom.running.memory_budget import DecodedBytes, json_size, refuse_beyond

_GZIP: Final = b"\x1f\x8b"
#: Parquet and Puffin: delete files, whose readers have checks of their own.
_CHECKED_ELSEWHERE: Final = (b"PAR1", b"PFA1")
_PIECE: Final = 1 << 20
#: What pyiceberg makes of a byte of JSON, of a byte of a record, and of a record of one byte.
_JSON_COST, _BYTE_COST, _RECORD_COST = 4, 12, 1536
#: What pyiceberg makes of an item of a list that has members.
_ITEM_COST, _KEY_AND_VALUE = 200, 2
_WHAT = "a file of the table's metadata"


def check_decoded_size(data: bytes, decoded: DecodedBytes) -> None:
    """Add the decoded size of a metadata file to ``decoded``.

    Raises MemoryBudgetError beyond the budget, and FormatError for a damaged Avro file.
    """
    if data.startswith(MAGIC):
        decoded.add(_avro_size(data))
    elif not data.startswith(_CHECKED_ELSEWHERE):
        text = b"".join(_bounded(_inflated(data), 2)) if data.startswith(_GZIP) else data
        decoded.add(_JSON_COST * json_size(text))


def check_blocks(data: bytes) -> None:
    """Check a manifest whose records are decoded one by one, and forgotten.

    Raises MemoryBudgetError if a block takes more than the budget, and FormatError for damage.
    """
    blocks = AvroBlocks(io.BytesIO(data), lambda _: None)
    cost = max(_BYTE_COST, _cost_of_items(blocks.cost))
    for _, content in blocks:
        # One record may have all bytes of its block.
        refuse_beyond(2 * len(data) + cost * len(content) + _RECORD_COST, _WHAT)


def _bounded(pieces: Iterator[bytes], cost: int) -> Iterator[bytes]:
    """Yield the pieces. Raises MemoryBudgetError if they take too much at ``cost`` a byte."""
    size = 0
    for piece in pieces:
        size += len(piece)
        refuse_beyond(cost * size, _WHAT)
        yield piece


def _avro_size(data: bytes) -> int:
    unpacked = records = 0

    def count(size: int) -> None:
        nonlocal unpacked
        unpacked += size
        refuse_beyond(cost * unpacked, _WHAT)

    blocks = AvroBlocks(io.BytesIO(data), count)
    cost = max(_BYTE_COST, _cost_of_items(blocks.cost))
    for number, _ in blocks:
        records += number
        refuse_beyond(cost * unpacked + _RECORD_COST * records, _WHAT)
    return cost * unpacked + _RECORD_COST * records


def _cost_of_items(cost: AvroCost) -> int:
    """Return an upper bound of the decoded bytes for each encoded byte in lists of structures."""
    sizes = [0]
    for it in cost.lists:
        # Lists of a key and a value become dictionaries.
        if it.item.members not in (0, _KEY_AND_VALUE):
            sizes.append(_ITEM_COST // it.item.least)
        sizes.append(_cost_of_items(it.item))
    return max(sizes)


def _inflated(data: bytes) -> Iterator[bytes]:
    """Yield the text of a gzip file, member by member, in pieces."""
    while data:
        one = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            while piece := one.decompress(data, _PIECE):
                yield piece
                data = one.unconsumed_tail
        except zlib.error:
            raise FormatError("a file of the table's metadata cannot be unpacked") from None
        data = one.unused_data
