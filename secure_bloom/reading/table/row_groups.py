"""The row groups of a footer: their numbers at once, their column chunks when they are used."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import cast

import numpy as np

from secure_bloom.parquet.footer.scan import NUMBERS, FooterOutline
from secure_bloom.parquet.structures.metadata import RowGroup


class FooterRowGroups:
    """The row groups of one file, in its order.

    ``rows`` has the number of rows of each.  ``chunk_offsets`` says where each column chunk starts
    in the bytes of the footer.  A read looks at few row groups of a table, so there is no object
    for each.
    """

    def __init__(self, outline: FooterOutline, columns: int) -> None:
        count = len(outline.row_groups)
        every = np.frombuffer(outline.numbers(), np.int64)
        self._groups = outline.row_groups
        self._numbers = every[: count * NUMBERS].reshape(count, NUMBERS)
        self.chunk_offsets = every[count * NUMBERS :].reshape(count, columns)

    @functools.cached_property
    def rows(self) -> list[int]:
        """The number of rows of each."""
        return cast("list[int]", self._numbers[:, 0].tolist())

    @functools.cached_property
    def ordinals(self) -> list[int]:
        """The ordinal of each in AADs; writers may leave it out, then it is the position."""
        ordinals = self._numbers[:, 2].tolist()
        return [index if ordinal < 0 else ordinal for index, ordinal in enumerate(ordinals)]

    def __len__(self) -> int:
        return len(self._groups)

    def __getitem__(self, index: int) -> RowGroup:
        return self._groups[index]

    def __iter__(self) -> Iterator[RowGroup]:
        return iter(self._groups)
