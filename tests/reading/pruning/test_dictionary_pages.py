"""Values looked up in dictionaries: how often pages are read, and when the search is given up."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.parquet.decompression import decompressed
from secure_bloom.parquet.dictionary_pages import ClaimedDictionary, open_dictionary
from secure_bloom.reading.pruning import dictionary_pages
from secure_bloom.reading.pruning.dictionary_pages import ChunkDictionary, has_all_values
from tests.surgery import opened

MODULE = dictionary_pages.__name__
GROUPS, TERMS = 3, 25


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rows = range(300)
    # Two columns, so that terms on both are no list of values of one.
    table = pa.table({"a": [i % 40 for i in rows], "s": [f"s{i % 40:02}" for i in rows]})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=100, compression="zstd")
    return tmp_path / "x.parquet"


def test_a_dictionary_is_read_once_for_all_terms(path: Path) -> None:
    where = " or ".join(f"(a = {i} and s = 's{i:02}x')" for i in range(TERMS))
    with (
        mock.patch(f"{MODULE}.open_dictionary", wraps=open_dictionary) as read,
        mock.patch(f"{MODULE}.decompressed", wraps=decompressed) as text,
    ):
        assert sb.read_table(path, where=where).num_rows == 0
    assert 0 < read.call_count <= 2 * GROUPS
    assert 0 < text.call_count <= 2 * GROUPS


def test_headers_of_data_pages_are_read_where_the_value_is_not_there(path: Path) -> None:
    with opened(path) as it:
        chunk = it.chunk(0, "s")
        assert has_all_values(chunk)
        found = ChunkDictionary(it.file, chunk)
        with mock.patch.object(ClaimedDictionary, "is_full", return_value=True) as walk:
            assert found.may_have([b"s07"])
            assert walk.call_count == 0
            assert not found.may_have([b"nowhere"])
            assert not found.may_have([b"else"])
            assert walk.call_count == 1


def test_the_search_is_given_up_where_it_costs_more_than_it_can_save(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dictionary_pages, "_MAX_WORK", 3 * 40 * 7)
    with opened(path) as it:
        found = ChunkDictionary(it.file, it.chunk(0, "s"))
        assert [found.may_have([b"nowhere"]) for _ in range(5)] == [False] * 3 + [True] * 2
