"""Check the checksums that Hadoop leaves beside a file on a local disk.

    .<name>.crc:  "crc" | 0 | bytes per checksum (4, BE) | a CRC32 (4, BE) of each that many bytes

If another program has written the data file since, the checksums are those of the old file, and
Spark refuses the new file.  org.apache.hadoop.fs.ChecksumFileSystem.
"""

from __future__ import annotations

import zlib

from secure_bloom.auditing.checks.subjects import FileSubject, Findings
from secure_bloom.auditing.rules.contradiction_rules import CHECKSUM_STALE
from secure_bloom.errors import FormatError
from secure_bloom.storage import InputFile, is_object_uri

_MAGIC = b"crc\0"
_SIZE = 4
_HEADER_SIZE = len(_MAGIC) + _SIZE
#: Hadoop has a checksum for every 512 bytes; a larger block than this is not read.
_LARGEST_BLOCK = 1 << 20


def check_checksums(subject: FileSubject) -> Findings:
    """Check that every block has a checksum, and that the first and last checksums are right."""
    file = subject.file
    if is_object_uri(file.path):
        return
    try:
        stored = file.read_sibling(f".{file.name}.crc", limit=_HEADER_SIZE + file.size)
    except FormatError:
        # The checksums are larger than the file itself.
        stored = b""
    if stored is not None and not _are_right(file, stored):
        yield subject.finding(CHECKSUM_STALE, "the .crc file beside it is of other bytes")


def _are_right(file: InputFile, stored: bytes) -> bool:
    block = int.from_bytes(stored[len(_MAGIC) : _HEADER_SIZE], "big")
    if not stored.startswith(_MAGIC) or not 0 < block <= _LARGEST_BLOCK:
        return False
    blocks = -(-file.size // block)
    if len(stored) != _HEADER_SIZE + _SIZE * blocks:
        return False
    return all(_is_right(file, stored, block, ordinal) for ordinal in {0, blocks - 1})


def _is_right(file: InputFile, stored: bytes, block: int, ordinal: int) -> bool:
    start, place = ordinal * block, _HEADER_SIZE + ordinal * _SIZE
    content = file.read_at(start, min(block, file.size - start))
    return zlib.crc32(content) == int.from_bytes(stored[place : place + _SIZE], "big")
