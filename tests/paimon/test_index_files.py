"""Where the index of a data file stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.errors import FormatError
from secure_bloom.paimon.index_files import (
    data_path,
    find_indexed,
    index_path,
    is_index,
    read_beside,
    read_whole,
)
from secure_bloom.storage import open_input


def test_an_index_stands_beside_its_data_file(tmp_path: Path) -> None:
    data = tmp_path / "x.parquet"
    data.write_bytes(b"PAR1 data")
    index = tmp_path / "x.parquet.index"
    index.write_bytes(b"not an index")
    with open_input(str(data)) as file:
        assert index_path(file) == str(index)
        assert not is_index(file)
        with pytest.raises(FormatError):
            read_beside(file)
    with open_input(str(index)) as file:
        assert is_index(file)
        assert data_path(file) == str(data)
        with pytest.raises(FormatError):
            read_whole(file)


def test_no_index_is_none(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 data")
    with open_input(str(tmp_path / "x.parquet")) as file:
        assert read_beside(file) is None


def test_data_files_of_any_format_and_lonely_indexes_are_found(tmp_path: Path) -> None:
    for name in ("a.orc", "a.orc.index", "b.parquet", "lonely.parquet.index"):
        (tmp_path / name).write_bytes(b"data")
    found = [Path(path).name for path in find_indexed(str(tmp_path))]
    assert found == ["a.orc", "b.parquet", "lonely.parquet.index"]
