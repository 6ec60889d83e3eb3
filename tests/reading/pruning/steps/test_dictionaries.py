"""A dictionary rules a row group out only where it has all values of the column."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.parquet.decompression import decompressed
from secure_bloom.parquet.dictionary_pages import ClaimedDictionary, open_dictionary
from secure_bloom.reading.pruning.steps import dictionaries
from secure_bloom.reading.pruning.steps.dictionaries import ChunkDictionary, has_all_values
from testing.surgery import flip, opened
from testing.tables import KEYRING, Mode, write
from tests.reading.pruning.steps.test_statistics import skipped_by


def test_a_dictionary_that_has_all_values_rules_others_out(tmp_path: Path) -> None:
    table = pa.table({"x": ["ab", "cd", "zz"] * 100, "n": [1, 513, 9] * 100})
    for mode in (Mode.PLAIN, Mode.ENCRYPTED):
        path = write(tmp_path / f"{mode.name}.parquet", table, mode, column_keys={"k_pii": ["x"]})
        for where, reason in {
            "x = 'bc'": "dictionary",
            "x in ('bd', 'mm')": "dictionary",
            "n = 2": "dictionary",
            # The bytes of 2 stand in 513, across two values' bounds only.
            "n = 7": "dictionary",
        }.items():
            report = sb.explain(path, where=where, keys=KEYRING)
            assert report.skipped == {reason: 1}, where
        assert sb.read_table(path, where="x = 'cd' and n = 513", keys=KEYRING).num_rows == 100


def test_a_dictionary_rules_nothing_out_if_pages_have_other_values(tmp_path: Path) -> None:
    texts = [f"{i:06}" for i in range(20_000)]
    path = tmp_path / "x.parquet"
    table = pa.table({"x": texts})
    pq.write_table(table, path, dictionary_pagesize_limit=1000, write_batch_size=100)
    assert sb.read_table(path, where="x = '019999'").num_rows == 1
    assert skipped_by(path, "x = '01500x'") is None


def test_an_altered_dictionary_page_is_an_error(tmp_path: Path) -> None:
    table = pa.table({"x": ["ab", "cd", "zz"] * 100})
    path = write(tmp_path / "x.parquet", table, Mode.ENCRYPTED, column_keys={"k_pii": ["x"]})
    with opened(path) as it:
        start = it.chunk(0, "x").meta_data.dictionary_page_offset
    assert start is not None
    flip(path, start + 40)
    with pytest.raises(sb.IntegrityError, match="row group 0, column x"):
        sb.read_table(path, where="x = 'bc'", keys=KEYRING)


MODULE = dictionaries.__name__
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
    monkeypatch.setattr(dictionaries, "_MAX_WORK", 3 * 40 * 7)
    with opened(path) as it:
        found = ChunkDictionary(it.file, it.chunk(0, "s"))
        assert [found.may_have([b"nowhere"]) for _ in range(5)] == [False] * 3 + [True] * 2
