"""Compile the kernels into their cache by a small piece of everything that uses them.

``make`` runs it beside the installation, where a core is idle: a test that came first would wait.
It needs nothing but what the package itself needs.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import secure_bloom as sb
from secure_bloom.hudi import SimpleBloomFilter
from secure_bloom.kernels import hudi_bloom, xxh64
from secure_bloom.kernels.loading import CompiledCode
from secure_bloom.kernels.machine_code import PROTOTYPES, compiled_loops
from secure_bloom.paimon.bloom_filter64 import BloomFilter64
from secure_bloom.paimon.hashing import hash_longs
from secure_bloom.storage.memory_budget import VARIABLE

ROWS, GROUP = 2000, 250


def compile_kernels(folder: Path) -> None:
    """Add filters to a file in ``folder``, look for rows, and use the two other kinds of filter."""
    for name in PROTOTYPES:
        compiled_loops._loaded(name)
    _parquet(folder)
    keys = [str(i) for i in range(9)]
    hudi = SimpleBloomFilter(len(keys), 0.01)
    hudi.insert_many(keys)
    assert hudi.check_many(keys).all()
    key = (np.frombuffer(b"key", np.uint8), np.uint64(0), np.uint64(3), np.uint32(0))
    hudi_bloom.hash_key(True, *key)
    xxh64.hash_span(*key[:3])
    paimon, hashes = BloomFilter64.sized(9, 0.01), hash_longs(np.arange(9))
    paimon.insert_hashes(hashes)
    assert paimon.check_hashes(hashes).all()


def _parquet(folder: Path) -> None:
    widths = {
        name: pa.array([i.to_bytes(width, "big") for i in range(ROWS)], pa.binary(width))
        for name, width in (("twelve", 12), ("sixteen", 16), ("three", 3))
    }
    columns = {
        "text": pa.array([f"key-{i}" for i in range(ROWS)]),
        "long": pa.array(range(ROWS), pa.int64()),
        "int": pa.array([None, *range(1, ROWS)], pa.int32()),
        "double": pa.array(np.arange(ROWS) / 2),
        "float": pa.array(np.arange(ROWS) / 2, pa.float32()),
        **widths,
    }
    table = pa.table(columns).take(np.random.default_rng(0).permutation(ROWS))
    for dictionary in (False, True):
        path = folder / f"{dictionary}.parquet"
        pq.write_table(table, path, row_group_size=GROUP, use_dictionary=dictionary)
    assert not sb.add_bloom_filters(folder, columns=list(columns)).failed
    for name, values in columns.items():
        for some in (values[-1:], values[-3:]):
            where = (name, "in", some.to_pylist())
            assert sb.read_table(folder, where=where).num_rows == 2 * len(some)
    assert sb.read_table(folder, where=("long", "<", 7)).num_rows == 14
    # Strings are decoded here where the budget leaves no room for what their pages may hold.
    with mock.patch.dict(os.environ, {VARIABLE: "2MiB"}):
        assert sb.read_table(folder, columns=["text"]).num_rows == 2 * ROWS


if __name__ == "__main__":
    # Compiled code is used for any amount of data.
    CompiledCode.is_worth = lambda _self, _saved: True  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as place:
        compile_kernels(Path(place))
