"""Object container files of Avro, written byte by byte."""

from __future__ import annotations


def number(value: int) -> bytes:
    value, out = value << 1 if value >= 0 else (-value << 1) - 1, b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def framed(value: bytes) -> bytes:
    return number(len(value)) + value


def avro(schema: bytes, codec: str, records: int, content: bytes) -> bytes:
    meta = {b"avro.schema": schema, b"avro.codec": codec.encode()}
    head = number(len(meta)) + b"".join(framed(k) + framed(v) for k, v in meta.items())
    sync = bytes(16)
    block = number(records) + framed(content)
    return b"Obj\x01" + head + b"\0" + sync + block + sync
