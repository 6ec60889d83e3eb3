"""Base files for tests: record keys and a column beside them, in every footer mode."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from testing.tables import Mode, write

KEY_COLUMN = "_hoodie_record_key"


def base_table(keys: Sequence[str | None]) -> pa.Table:
    rows = len(keys)
    return pa.table(
        {
            KEY_COLUMN: pa.array(keys, pa.string()),
            "email": [f"user{i}@example.com" for i in range(rows)],
            "iban": [f"DE{i:020d}" for i in range(rows)],
        }
    )


def base_file(
    path: Path, keys: Sequence[str | None], mode: Mode = Mode.PLAIN, **options: Any
) -> Path:
    """A file whose key column has a key of its own, where the mode has such keys."""
    column_keys = {"k_pii": [KEY_COLUMN], "k_finance": ["iban"]}
    return write(path, base_table(keys), mode, column_keys=column_keys, **options)
