"""The row groups of a footer: their numbers at once, their column chunks when they are used."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from secure_bloom.parquet.structures.metadata import ColumnChunk
from secure_bloom.parquet.structures.records import LaterRecords, RecordSource


class RowGroupSummary(NamedTuple):
    """The fields of a RowGroup that a reader uses, by their names there."""

    num_rows: int
    total_byte_size: int
    ordinal: int | None
    columns: Sequence[ColumnChunk]


class FooterRowGroups:
    """The row groups of one file, in its order.

    ``numbers`` has a row for each: its rows, its bytes, and its ordinal, below 0 where it has none.
    ``chunk_offsets`` says where each column chunk starts in ``plain``, the bytes of the footer.
    A read looks at few row groups of a table, so there is no object for each.
    """

    def __init__(
        self, plain: bytes, numbers: NDArray[np.int64], chunk_offsets: NDArray[np.int64]
    ) -> None:
        self.numbers = numbers
        self.chunk_offsets = chunk_offsets
        self._plain = plain
        self._known: dict[int, RowGroupSummary] = {}

    @functools.cached_property
    def rows(self) -> list[int]:
        """The number of rows of each."""
        return cast("list[int]", self.numbers[:, 0].tolist())

    @functools.cached_property
    def ordinals(self) -> list[int]:
        """The ordinal of each in AADs; writers may leave it out, then it is the position."""
        ordinals = self.numbers[:, 2].tolist()
        return [index if ordinal < 0 else ordinal for index, ordinal in enumerate(ordinals)]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> RowGroupSummary:
        found = self._known.get(index)
        if found is None:
            rows, size, ordinal = self.numbers[index].tolist()
            columns = LaterRecords(self._source, self.chunk_offsets[index].tolist())
            found = RowGroupSummary(rows, size, None if ordinal < 0 else ordinal, columns)
            self._known[index] = found
        return found

    def __iter__(self) -> Iterator[RowGroupSummary]:
        return map(self.__getitem__, range(len(self)))

    @functools.cached_property
    def _source(self) -> RecordSource[ColumnChunk]:
        return RecordSource(ColumnChunk, self._plain)
