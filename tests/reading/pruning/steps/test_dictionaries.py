"""A dictionary rules a row group out only where it has all values of the column."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from tests.reading.pruning.steps.test_statistics import skipped_by
from tests.surgery import flip, opened
from tests.tables import KEYRING, Mode, write


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
