"""A stream by a function that reads at a place."""

from __future__ import annotations

import io

from secure_bloom.running.positioned_stream import PositionedStream

CONTENT = bytes(range(256))


def test_a_stream_reads_as_a_file_does() -> None:
    # Three bytes at most for each call.
    stream = PositionedStream(lambda at, size: CONTENT[at : at + min(size, 3)], len(CONTENT))
    assert io.BufferedReader(stream, 16).read() == CONTENT
    assert stream.read(1) == b""
    assert (stream.seek(-2, io.SEEK_END), stream.tell()) == (254, 254)
    assert stream.read(9) == CONTENT[254:]
    stream.seek(10)
    stream.seek(5, io.SEEK_CUR)
    assert stream.read(2) == CONTENT[15:17]
    assert stream.seek(-1) == 0
