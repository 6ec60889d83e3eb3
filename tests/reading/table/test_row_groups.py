"""Row groups by their numbers: an ordinal that is missing is the position."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from secure_bloom.parquet.footer.scan import outline
from secure_bloom.parquet.structures.metadata import FileMetaData
from secure_bloom.reading.table.row_groups import FooterRowGroups
from tests.surgery import opened
from tests.tables import write


def test_numbers_ordinals_and_chunks(tmp_path: Path) -> None:
    table = pa.table({"a": range(30), "b": range(30)})
    with opened(write(tmp_path / "x.parquet", table, row_group_size=10)) as it:
        metadata: FileMetaData = it.footer.metadata
        for group in metadata.row_groups:
            del group.ordinal
        metadata.row_groups[1].ordinal = 7
        groups = FooterRowGroups(outline(metadata.encode()), 2)
    assert groups.rows == [10, 10, 10]
    assert groups.ordinals == [0, 7, 2]
    assert [group.ordinal for group in groups] == [None, 7, None]
    paths = [[chunk.meta_data.path_in_schema for chunk in g.columns] for g in groups]  # type: ignore[union-attr]
    assert paths == [[["a"], ["b"]]] * 3
    assert groups[1] is groups[1]
