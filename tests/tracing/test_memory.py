"""What a search keeps does not grow with the column, nor with the file."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secure_bloom.tracing.index import WordIndex
from secure_bloom.tracing.search import trace_parts
from secure_bloom.tracing.sources import Part
from secure_bloom.tracing.subjects import SearchedColumn

BATCH = 100_000


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


def test_a_column_that_does_not_fit_takes_less_memory_and_is_searched_in_part() -> None:
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
