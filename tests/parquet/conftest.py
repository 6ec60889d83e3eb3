"""A file of many small pages, with an index of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from testing.surgery import Opened, opened
from testing.tables import Mode, write

ROWS = 60
TABLE = pa.table(
    {"n": [None if i % 6 == 0 else i for i in range(ROWS)], "list": [[i] for i in range(ROWS)]}
)


@pytest.fixture(params=[Mode.PLAIN, Mode.ENCRYPTED], ids=lambda mode: mode.name)
def paged_file(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    path = write(
        tmp_path / "x.parquet",
        TABLE,
        request.param,
        column_keys={"k_pii": ["n"]},
        write_page_index=True,
        data_page_size=64,
        write_batch_size=8,
        use_dictionary=False,
    )
    with opened(path) as it:
        yield it
