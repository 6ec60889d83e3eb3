"""The tables that are measured on, and adding filters to them."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import secure_bloom as sb
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.stored import read_bloom_filter
from secure_bloom.encryption.policy import KeyPolicy
from testing.surgery import Opened
from testing.tables import keyring_json

#: The columns that get filters: int64 and 24-byte strings, all distinct.
COLUMNS = ("id", "email")
WORDS = ("word0", "word1", "word2")
ROW_GROUPS = 4
POLICY = "policy.toml"
#: Who makes the filters whose sizes are compared.
OURS, PYARROW = "secure-bloom", "pyarrow's default"
PYARROW_TOLD, SPARK_TOLD = "pyarrow told the exact number", "Spark told the exact number"


def wide_table(rows: int) -> pa.Table:
    """Eleven columns: the two of ``COLUMNS`` and nine others."""
    rng = np.random.default_rng(0)
    ids = rng.permutation(rows).astype(np.int64) * 2654435761
    emails = np.char.add(np.char.zfill(ids.astype("U20"), 20), "@x.y")
    columns = {"id": pa.array(ids), "email": pa.array(emails)}
    columns |= {f"score{i}": pa.array(rng.normal(size=rows)) for i in range(3)}
    columns |= {f"count{i}": pa.array(rng.integers(0, 1000, rows)) for i in range(3)}
    words = np.array(["alpha", "beta", "gamma", "delta"])
    columns |= {word: pa.array(words[rng.integers(0, 4, rows)]) for word in WORDS}
    return pa.table(columns)


def write_wide(path: Path, rows: int, **options: Any) -> Path:
    """That table in four row groups."""
    pq.write_table(wide_table(rows), path, row_group_size=rows // ROW_GROUPS, **options)
    return path


def add(path: Path, columns: Any = COLUMNS, **options: Any) -> None:
    """Add filters, and stop where that is not what was done."""
    report = sb.add_bloom_filters(path, columns=columns, **options)
    if report.failed or any(file.status != "added" for file in report.files):
        raise SystemExit(f"nothing was added: {report.files[0].error}")


def fresh_copy(source: Path, target: Path) -> None:
    """A new copy of a file or a folder, on the disk already: our fsync must not pay for it."""
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)
    os.sync()


def copy_beside(source: Path, target: Path) -> None:
    """As :func:`fresh_copy` of a folder of many files; the copy before stays, under another name.

    ext4 does not use the inodes of removed files again for minutes: who makes files then looks past
    all of them, each time, and would pay for the removal.
    """
    if target.exists():
        target.rename(target.with_name(f"{target.name}-{time.monotonic_ns()}"))
    fresh_copy(source, target)


def stored_filter(it: Opened, column: str) -> SplitBlockBloomFilter:
    """The filter of a column of the first row group; it must have one."""
    stored = read_bloom_filter(it.file, it.chunk(0, column))
    if stored is None:
        raise SystemExit(f"{it.file.name} has no filter of {column}")
    return stored.filter


def write_policy(folder: Path, keys: Mapping[str, str]) -> KeyPolicy:
    """The policy of these columns and their keys, with a keyring; all of them get filters."""
    keyring = write_keyring(folder)
    tables = [f'[columns.{column}]\nkey = "{key}"\nbloom = true' for column, key in keys.items()]
    kms = f'[kms]\nclient = "keyring"\nkeyring = "{keyring.name}"\n[footer]\nkey = "k_footer"'
    path = folder / POLICY
    path.write_text("\n".join([kms, *tables]))
    return KeyPolicy.load(path)


def write_keyring(folder: Path) -> Path:
    """The keys of all files that are encrypted here."""
    path = folder / "keyring.json"
    path.write_text(keyring_json())
    path.chmod(0o600)
    return path
