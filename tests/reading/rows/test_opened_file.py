"""The file whose footer was read is opened late, once, and is no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.errors import FileChangedError, MissingPathError
from secure_bloom.storage import InputFile, open_input
from testing.tables import Mode, customers, write
from tests.reading.rows.test_column_decoder import opened


def test_nothing_is_open_before_it_is_needed_and_after_the_end(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(10), Mode.PLAIN, row_group_size=5)
    it = opened(path)
    calls = []

    def counted(name: str) -> InputFile:
        calls.append(name)
        return open_input(name)

    it._open_input = counted
    assert it.close() == []
    assert calls == []
    start = it.pages().read_at(0, 4)
    assert (bytes(start), it.pages() is it.pages(), it.file() is it.file()) == (b"PAR1", True, True)
    assert it.source().metadata.num_rows == 10
    assert calls == [str(path)]
    assert it.close() == [(0, 4)]
    assert it.close() == []


def test_another_file_in_its_place_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(10), Mode.PLAIN, row_group_size=5)
    it = opened(path)
    other = write(tmp_path / "other.parquet", customers(10), Mode.PLAIN, row_group_size=5)
    other.rename(path)
    with pytest.raises(FileChangedError, match="changed after its footer was read"):
        it.file()


def test_a_file_that_is_gone_meanwhile_is_told(tmp_path: Path) -> None:
    """VACUUM of a table's engine removes files beside a reader of an older version."""
    path = write(tmp_path / "x.parquet", customers(10), Mode.PLAIN, row_group_size=5)
    it = opened(path)
    it.file()
    path.unlink()
    # pyarrow opens it by its name again.
    with pytest.raises(MissingPathError, match="no such file") as caught:
        it.source()
    it.close()
    assert caught.value.path == str(path)
