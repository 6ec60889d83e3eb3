"""Every file of the public corpus, and every sample in its modes, reads whole and in part."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from testing.project import CORPUS
from tests.interop.samples import rows
from tests.interop.test_corpus import FILES_AND_KEYS, KEYS, NEEDS_CORPUS, placed


@pytest.mark.parametrize(("source", "name", "kind"), FILES_AND_KEYS)
def test_a_file_reads_whole_and_in_part(
    source: Path | None, name: str, kind: str, tmp_path: Path
) -> None:
    path = placed(source, name, tmp_path)
    whole = sb.read_table(path, keys=KEYS[kind])
    assert whole.num_rows > 0
    if source is None:
        assert whole.to_pydict() == rows().to_pydict()
    elif not name.endswith(".encrypted"):
        assert whole.equals(pq.ParquetFile(path).read())
    column = whole.column_names[0]
    value = whole.column(column).drop_null()[-1]
    found = sb.read_table(path, where=[(column, "=", value)], keys=KEYS[kind])
    assert 0 < found.num_rows <= whole.num_rows
    assert set(found.column(column).to_pylist()) == {value.as_py()}


@NEEDS_CORPUS
def test_files_of_one_table_are_alike_under_all_modes() -> None:
    """The corpus has the same rows in several modes of encryption."""
    names = [p.name for p in Path(CORPUS).glob("encrypt_*.encrypted") if "disable" not in p.name]
    tables = [sb.read_table(CORPUS / name, keys=KEYS["explicit"]) for name in sorted(names)]
    assert len(tables) >= 4
    assert all(table.schema == tables[0].schema for table in tables)
