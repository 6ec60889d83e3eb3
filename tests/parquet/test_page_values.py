"""Values of rows are copied out of pages; a page with anything unusual is left to pyarrow."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from secure_bloom.kernels.loops import Sought
from secure_bloom.parquet.page_values import PageValues, StoredDictionary, joined
from secure_bloom.parquet.pages import read_pages
from secure_bloom.parquet.value_arrays import Binary
from testing.surgery import opened
from testing.tables import write

TEXTS = [f"text {n % 7}" if n % 5 else None for n in range(40)]


def pages_of(path: Path, **options: Any) -> tuple[StoredDictionary | None, list[PageValues]]:
    write(path, pa.table({"a": TEXTS}), data_page_size=1, write_batch_size=20, **options)
    with opened(path) as it:
        chunk = it.chunk(0, "a")
        pages = read_pages(it.file, chunk)
        leaf, codec = chunk.leaf, chunk.codec
        dictionaries = [StoredDictionary.of(leaf, codec, it) for it in pages if it.is_dictionary]
        values = [PageValues.of(leaf, codec, it) for it in pages if not it.is_dictionary]
    return dictionaries[0] if dictionaries else None, [it for it in values if it is not None]


@pytest.mark.parametrize("dictionary", [True, False])
def test_values_of_some_rows_are_copied(tmp_path: Path, dictionary: bool) -> None:
    entries, [first, second] = pages_of(tmp_path / "x.parquet", use_dictionary=dictionary)
    parts = [page.take(np.array([0, 3, 19]), entries) for page in (first, second)]
    found = joined([part for part in parts if part is not None])
    assert isinstance(found.entries, Binary)
    assert found.is_valid is not None
    assert found.is_valid.tolist() == [False, True, True] * 2
    texts, ends = found.entries.data.tobytes(), found.entries.offsets.tolist()
    wanted = [TEXTS[row] for row in (3, 19, 23, 39)]
    assert [texts[a:b].decode() for a, b in itertools.pairwise(ends)] == wanted


@pytest.mark.parametrize("dictionary", [True, False])
def test_rows_with_a_value_are_found(tmp_path: Path, dictionary: bool) -> None:
    entries, [first, _] = pages_of(tmp_path / "x.parquet", use_dictionary=dictionary)
    sought = Sought.of([b"text 3"])
    found = first.find(sought, None if entries is None else entries.find(sought))
    assert found is not None
    assert found.tolist() == [n for n, text in enumerate(TEXTS[:20]) if text == "text 3"]


def test_without_its_dictionary_a_page_is_left_to_pyarrow(tmp_path: Path) -> None:
    _, [first, _] = pages_of(tmp_path / "x.parquet")
    assert first.take(np.array([1]), None) is None
    assert first.find(Sought.of([b"text 3"]), None) is None
