"""Row groups by their numbers: an ordinal that is missing is the position."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from secure_bloom.reading.table.row_groups import FooterRowGroups
from tests.surgery import opened
from tests.tables import write


def test_numbers_ordinals_and_chunks(tmp_path: Path) -> None:
    table = pa.table({"a": range(30), "b": range(30)})
    with opened(write(tmp_path / "x.parquet", table, row_group_size=10)) as it:
        outline = it.footer.read.outline
    numbers = np.array([[10, 500, -1], [10, 600, 7], [10, 700, -1]], np.int64)
    groups = FooterRowGroups(outline.plain, numbers, np.array(outline.chunk_offsets, np.int64))
    assert groups.rows == [10, 10, 10]
    assert groups.ordinals == [0, 7, 2]
    assert [group.ordinal for group in groups] == [None, 7, None]
    assert [group.total_byte_size for group in groups] == [500, 600, 700]
    paths = [[chunk.meta_data.path_in_schema for chunk in g.columns] for g in groups]  # type: ignore[union-attr]
    assert paths == [[["a"], ["b"]]] * 3
    assert groups[1] is groups[1]
