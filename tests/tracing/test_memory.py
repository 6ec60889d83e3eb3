"""What a search keeps does not grow with the column, nor with the file."""

from __future__ import annotations

import hashlib
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from secure_bloom.tracing.content import Part
from secure_bloom.tracing.index import WordIndex
from secure_bloom.tracing.lake import candidates, search_files
from secure_bloom.tracing.search import trace_parts
from secure_bloom.tracing.subjects import SearchedColumn
from secure_bloom.tracing.verdicts import Meaning

BATCH = 100_000
CITIES = SearchedColumn(name="city", values=lambda: iter([pa.array(["Oslo", "Bern", "Graz"])]))


def column(batches: int) -> SearchedColumn:
    def values() -> Iterator[pa.Array]:
        for n in range(batches):
            numbers = pa.array(np.arange(n * BATCH, (n + 1) * BATCH)).cast(pa.string())
            yield pc.binary_join_element_wise("anna", numbers, "@post.fi", "")

    return SearchedColumn(name="email", values=values)


def peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "written",
    [
        str,
        str.upper,
        lambda it: it.encode().hex(),
        lambda it: it[::-1],
        lambda it: hashlib.sha256(it.encode()).hexdigest(),
    ],
    ids=["as written", "capitals", "hexadecimal", "backwards", "digests"],
)
def test_a_column_that_does_not_fit_is_searched_for_in_all_forms(
    tmp_path: Path, written: Callable[[str], str]
) -> None:
    lines = [written(f"anna{n}@post.fi") for n in range(3, 2 * BATCH, BATCH // 9)]
    (tmp_path / "x").write_text("\n".join(lines))
    (tmp_path / "y").write_text("\n".join(written(f"bert{n}@post.fi") for n in range(900)))
    index = WordIndex.build([column(2), CITIES], 1 << 20)
    assert [it.is_whole for it in index.columns] == [False, True]
    report = search_files(list(candidates([str(tmp_path)])), index)
    [file] = report.files
    assert (file.path, file.found[0].confirmed) == (str(tmp_path / "x"), len(lines))
    wide, cities = report.columns
    assert (wide.is_whole, wide.is_estimated, cities.is_estimated) == (True, True, False)
    assert wide.values == pytest.approx(2 * BATCH, rel=0.1)
    assert cities.values == 3


def test_what_does_not_fit_of_a_file_either_is_said(tmp_path: Path) -> None:
    """A file with all values of a column: more words pass than there is memory for."""
    [values] = column(1).values()
    (tmp_path / "x").write_text("\n".join(values.to_pylist()))
    index = WordIndex.build([column(1)], 1 << 20)
    report = search_files(list(candidates([str(tmp_path)])), index)
    assert [it.is_whole for it in report.columns] == [False]
    assert [it.verdict for it in report.files[0].found] == [Meaning.VALUES]


def test_a_search_for_a_column_that_does_not_fit_keeps_to_its_memory(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("anna77@post.fi\n" * 10)
    found = list(candidates([str(tmp_path)]))

    def search(memory: int) -> Callable[[], object]:
        return lambda: search_files(found, WordIndex.build([column(20)], memory))

    small, whole = (peak(search(memory)) for memory in (1 << 20, 1 << 30))
    assert small < whole * 2 / 3


def test_an_index_of_a_column_that_does_not_fit_takes_less_memory() -> None:
    built: list[WordIndex] = []

    def build(memory: int) -> None:
        built.append(WordIndex.build([column(20)], memory))

    small, whole = (peak(partial(build, memory)) for memory in (1 << 20, 1 << 30))
    assert [it.columns[0].is_whole for it in built] == [False, True]
    assert small < whole * 2 / 3
    assert built[0].entries.nbytes + built[0].blocks.nbytes <= 1 << 20


def test_a_long_text_is_searched_in_blocks() -> None:
    index = WordIndex.build([column(1)], 1 << 24)
    piece = b"some other text, 4711 and more\n" * 30_000
    text = (it for _ in range(60) for it in [piece, b"anna77@post.fi\n"])
    (part,) = trace_parts("", [Part(place="", pieces=text)], index).parts
    assert part.size > 50 << 20

    def search(pieces: int) -> Callable[[], object]:
        parts = [Part(place="", pieces=(piece for _ in range(pieces)))]
        return lambda: trace_parts("", parts, index)

    assert peak(search(40)) < 1.5 * peak(search(10))
