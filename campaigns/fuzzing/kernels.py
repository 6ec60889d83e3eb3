"""Calls of the C extension as bytes: what add and probe hand to each kernel, to be mutated.

    number of the kernel (1) | for each argument: size (2, LE) and content

A number has 8 bytes.  A buffer is as large as its content says, so a sanitizer sees its end.
"""

from __future__ import annotations

import struct
import tempfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import secure_bloom as sb
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.hudi.record_keys.dynamic import DynamicBoundedBloomFilter
from secure_bloom.hudi.record_keys.packed_keys import PackedKeys
from secure_bloom.kernels import extension
from secure_bloom.kernels.loops import paimon_hash
from secure_bloom.paimon.bloom_filter64 import BloomFilter64

#: A filter may have any number of hashes, and callers bound it: more take long, and read no more.
_MOST_HASHES = 64
_SIZE = struct.Struct("<H")
#: Longer arguments are cut: an input has as many bytes as others.
_LONGEST = 4096
#: Calls of each kernel that become seeds.
_CALLS = 4


def kernels() -> list[str]:
    """Return the names of all kernels; none without the extension."""
    names = vars(extension.native) if extension.native else {}
    return sorted(name for name, value in names.items() if callable(value))


def seeds() -> Sequence[bytes]:
    """Return calls that were made by work on small files and filters, of each kernel some."""
    calls: dict[str, list[bytes]] = {}
    with _recorded(calls):
        _work()
    return [call for some in calls.values() for call in some] or [b"\0"]


def call(data: bytes) -> None:
    """Make one call; ValueError and OverflowError say that arguments do not fit."""
    names = kernels()
    if not data or not names:
        return
    name = names[data[0] % len(names)]
    arguments = list(_arguments(data[1:]))
    try:
        getattr(extension.native, name)(*map(_bounded if _counts(name) else _same, arguments))
    except (ValueError, OverflowError, TypeError):
        return


def _counts(name: str) -> bool:
    return name.startswith(("hudi", "paimon"))


def _bounded(argument: object) -> object:
    return argument % _MOST_HASHES if isinstance(argument, int) else argument


def _same(argument: object) -> object:
    return argument


def _arguments(data: bytes) -> Iterator[int | array[int]]:
    at = 0
    while at + 3 <= len(data):
        is_number, (size,) = data[at], _SIZE.unpack_from(data, at + 1)
        content = data[at + 3 : at + 3 + size]
        at += 3 + size
        if is_number & 1:
            yield int.from_bytes(content[:8], "little", signed=True)
        else:
            # As array, because a bytearray has a byte after its end.
            yield array("B", content)


class _Recorder:
    """The extension, of which each call is kept."""

    def __init__(self, native: Any, calls: dict[str, list[bytes]]) -> None:
        self._native, self._calls, self._names = native, calls, kernels()

    def __getattr__(self, name: str) -> Any:
        kernel = getattr(self._native, name)
        return partial(self._keep, name, kernel) if name in self._names else kernel

    def _keep(self, name: str, kernel: Callable[..., int], *arguments: Any) -> int:
        kept = self._calls.setdefault(name, [])
        if len(kept) < _CALLS:
            kept.append(bytes([self._names.index(name)]) + b"".join(map(_encoded, arguments)))
        return kernel(*arguments)


def _encoded(argument: Any) -> bytes:
    is_number = isinstance(argument, int)
    content = (
        int(argument).to_bytes(8, "little", signed=True)
        if is_number
        else bytes(memoryview(argument).cast("B"))[:_LONGEST]
    )
    return bytes([is_number]) + _SIZE.pack(len(content)) + content


@contextmanager
def _recorded(calls: dict[str, list[bytes]]) -> Iterator[None]:
    native = extension.native
    extension.native = native and _Recorder(native, calls)
    try:
        yield
    finally:
        extension.native = native


def _work() -> None:
    """Do what calls each kernel: add, probe, read, and the filters of Hudi and Paimon."""
    rows = 40
    texts = [f"text {number}" for number in range(rows)]
    table = pa.table(
        {
            "i": pa.array([*range(rows - 1), None], pa.int64()),
            "plain": texts,
            "coded": pa.array([text[:6] for text in texts]),
            "fixed": pa.array([text.encode()[-6:] for text in texts], pa.binary(6)),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.parquet")
        pq.write_table(table, path, row_group_size=10, use_dictionary=["coded"], compression="none")
        sb.add_bloom_filters(path, columns=table.column_names)
        for name in table.column_names:
            sb.read_table(path, where=[(name, "in", table[name].to_pylist()[5:8])])
            sb.read_table(path, where=[(name, "=", table[name][5])])
        deltas = {"i": "DELTA_BINARY_PACKED", "plain": "DELTA_BYTE_ARRAY"}
        deltas["coded"] = "DELTA_LENGTH_BYTE_ARRAY"
        pq.write_table(table, path, use_dictionary=False, column_encoding=deltas)
        sb.read_table(path, where=[("fixed", "=", table["fixed"][5])])
    offsets = np.arange(0, 8 * rows + 1, 8)
    bloom_filter = SplitBlockBloomFilter(4)
    bloom_filter.insert_fixed(offsets)
    bloom_filter.insert_binary(offsets, offsets.view(np.uint8))
    bloom_filter.check_hashes(offsets.view(np.uint64))
    keys = PackedKeys.of([text.encode() for text in texts])
    record_keys = DynamicBoundedBloomFilter(8, 0.1, 16)
    record_keys.insert_packed(keys)
    record_keys.check_packed(keys)
    hashes = np.arange(rows, dtype=np.int64) * 0x123456789AB
    index = BloomFilter64.sized(rows, 0.1)
    index.insert_hashes(hashes)
    index.check_hashes(hashes)
    paimon_hash(hashes, hashes.copy())
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(table, Path(folder, "a.parquet"))
        Path(folder, "dump.csv").write_text("\n".join([*texts, "dGV4dCAxMjM0NTY3ODkwMTIzNDU2"]))
        sb.trace(Path(folder, "dump.csv"), values_of=f"{folder}/a.parquet:plain")
