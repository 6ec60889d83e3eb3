"""The files that lies are told in: small, and with every kind of page, column and index."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import secure_bloom as sb
from testing.tables import KEYRING, Mode, write

#: Rows of a row group and of a page.
GROUP, PAGE = 120, 20
ROWS = 2 * GROUP


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One way to write the table; ``filters`` are the columns that get a Bloom filter."""

    options: dict[str, Any]
    mode: Mode = Mode.PLAIN
    filters: tuple[str, ...] = ()

    def write(self, path: Path) -> Path:
        """The honest file, with pages of 20 rows."""
        options = {
            "row_group_size": GROUP,
            "write_batch_size": PAGE,
            "data_page_size": 1,
            "write_page_index": True,
            **self.options,
        }
        keys = {"k_pii": ["number", "word", "mixed"]}
        write(path, table(), self.mode, column_keys=keys, **options)
        if self.filters:
            report = sb.add_bloom_filters(path, columns=list(self.filters), keys=KEYRING)
            assert not report.failed
        return path


#: ``mixed`` falls back from its dictionary after some pages; ``word`` and ``few`` do not.
_DICTIONARY = {"dictionary_pagesize_limit": 150, "use_dictionary": ["word", "few", "mixed"]}
SHAPES = {
    "v1": Shape(options={**_DICTIONARY, "compression": "SNAPPY"}),
    "v2": Shape(
        options={**_DICTIONARY, "compression": "ZSTD", "data_page_version": "2.0"},
    ),
    "no-index": Shape(options={**_DICTIONARY, "compression": "NONE", "write_page_index": False}),
    "filters": Shape(
        options={**_DICTIONARY, "compression": "NONE"},
        filters=("number", "optional", "word", "few"),
    ),
    "encrypted": Shape(
        options={**_DICTIONARY, "compression": "SNAPPY"},
        mode=Mode.ENCRYPTED,
        filters=("number", "word"),
    ),
}


def table() -> pa.Table:
    """Ascending numbers and texts, so that pages are apart; nulls, NaN, both zeros, lists."""
    rows = range(ROWS)
    return pa.table(
        {
            "number": pa.array([10 * i for i in rows], pa.int64()),
            "optional": pa.array(
                [None if PAGE <= i % GROUP < 2 * PAGE or i % 7 == 0 else i for i in rows],
                pa.int32(),
            ),
            "word": pa.array([f"w{i // PAGE:02}" for i in rows]),
            "few": pa.array([None if i % 5 == 0 else i // 3 % 10 for i in rows], pa.int64()),
            "mixed": pa.array([f"m{i // 3 if i % GROUP < 60 else i:03}" for i in rows]),
            "real": pa.array([_real(i) for i in rows], pa.float64()),
            "items": pa.array(
                [None if i % 11 == 0 else [i, i + 1][: i % 3] for i in rows], pa.list_(pa.int32())
            ),
        },
        schema=pa.schema(
            [
                pa.field("number", pa.int64(), nullable=False),
                pa.field("optional", pa.int32()),
                pa.field("word", pa.string(), nullable=False),
                pa.field("few", pa.int64()),
                pa.field("mixed", pa.string()),
                pa.field("real", pa.float64()),
                pa.field("items", pa.list_(pa.int32())),
            ]
        ),
    )


def _real(i: int) -> float:
    special = {3: math.nan, 5: 0.0, 9: -0.0, 11: math.inf}
    return special.get(i % 50, i / 4)
