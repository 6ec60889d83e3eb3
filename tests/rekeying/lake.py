"""A small lake with everything that moves: codecs, page versions, indexes, filters, checksums."""

from __future__ import annotations

import datetime
import functools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import secure_bloom as sb
from testing.tables import made_once

ROWS = 3000
KEYS = sb.Keyring(
    master_keys={name: bytes([i]) * 16 for i, name in enumerate(["k_footer", "k_pii", "k_new"])}
)


@functools.cache
def rows() -> pa.Table:
    """Flat and nested columns, nulls, a dictionary, all distinct values."""
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "id": rng.integers(0, 1 << 40, ROWS),
            "email": [None if i % 97 == 0 else f"user{i}@example.com" for i in range(ROWS)],
            "country": rng.choice(["it", "no", "de"], ROWS),
            "tags": [[str(i % 7)] * (i % 3) for i in range(ROWS)],
            "s": [{"a": i, "b": str(i)} for i in range(ROWS)],
            "day": [datetime.date(2020, 1, 1 + i % 28) for i in range(ROWS)],
        }
    )


#: Of each file of the lake: the version of its data pages, its codec, whether it has an index of
#: pages, and whether they have checksums.
WAYS = [
    ("1.0", "snappy", True, True),
    ("1.0", "none", False, False),
    ("2.0", "zstd", True, False),
    ("2.0", "none", True, True),
]


def write_lake(folder: Path) -> list[Path]:
    """Plain files of :func:`rows`, each written in another way, some with filters."""
    _write_files(folder)
    return _paths(folder)


def _paths(folder: Path) -> list[Path]:
    return [folder / f"{version}-{codec}.parquet" for version, codec, *_ in WAYS]


@made_once
def _write_files(folder: Path) -> None:
    files = _paths(folder)
    for path, (version, codec, has_index, has_checksums) in zip(files, WAYS, strict=True):
        pq.write_table(
            rows(),
            path,
            row_group_size=1100,
            data_page_version=version,
            compression=codec,
            write_page_index=has_index,
            write_page_checksum=has_checksums,
            data_page_size=4000,
        )
    sb.add_bloom_filters(
        files[:3], columns={"email": sb.BloomFilterOptions(), "id": sb.BloomFilterOptions()}
    )


def policy(
    *,
    mode: str = "encrypted",
    columns: dict[str, str] | None = None,
    uniform: bool = False,
    encryption: str = "",
    footer_key: str = "k_footer",
    more: str = "",
) -> str:
    """The text of a policy; ``columns`` maps them to master keys."""
    keyed = {"email": "k_pii", "s": "k_pii"} if columns is None else columns
    lines = [
        "[footer]",
        f'key = "{footer_key}"',
        f'mode = "{mode}"',
        f"uniform = {str(uniform).lower()}",
        more,
        "[encryption]",
        encryption,
        *(f'[columns."{name}"]\nkey = "{key}"' for name, key in keyed.items()),
    ]
    return "\n".join(lines) + "\n"
