"""Record keys: those of the rows, in the order of Java."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.errors import FormatError, SecureBloomError
from secure_bloom.hudi.key_column import (
    decoded_size,
    key_chunks,
    key_ordinal,
    key_range,
    packed,
    read_keys,
)
from testing.surgery import opened


def test_only_a_column_of_texts_has_keys(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": ["a"], "n": [1]}), tmp_path / "x.parquet")
    with opened(tmp_path / "x.parquet") as it:
        assert key_ordinal(it.footer, "k") == 0
        for name in ("n", "nobody"):
            with pytest.raises(SecureBloomError, match=name):
                key_ordinal(it.footer, name)


def test_the_range_is_over_all_parts() -> None:
    found = key_range([packed(pa.array(["m", "b"])), packed(pa.array(["z"]))])
    assert found is not None
    assert (found.min_key, found.max_key) == ("b", "z")


def test_no_key_has_no_range() -> None:
    assert key_range([]) is None


def test_a_key_that_is_no_utf8_is_an_error() -> None:
    text = pa.array([b"\xff\xfe"]).view(pa.binary()).view(pa.string())
    with pytest.raises(FormatError) as caught:
        packed(text)
    assert "xff" not in str(caught.value)


def test_a_long_key_of_many_rows_is_in_memory_once(tmp_path: Path) -> None:
    keys = pa.array(["k" * 1_000] * 9_999 + ["last"])
    pq.write_table(pa.table({"k": keys}), tmp_path / "x.parquet")
    with opened(tmp_path / "x.parquet") as it:
        [chunk] = key_chunks(it.footer.read, "k")
        [array] = read_keys(it.file, chunk)
    assert array.nbytes < 100_000
    assert decoded_size(array) == 9_999 * 1_004 + 8
    every = b"".join(packed(array).each())
    assert every == b"k" * 9_999_000 + b"last"
