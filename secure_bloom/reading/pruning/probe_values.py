"""The values of a lookup as arrays: the form in which compiled code compares them with bounds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from secure_bloom.parquet.structures.metadata import ColumnMetaData
from secure_bloom.parquet.value_order import ByteOrder, byte_order_of
from secure_bloom.predicates.tree import LOOKUPS
from secure_bloom.reading.pruning.column_predicates import ColumnPredicate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProbeValues:
    """The PLAIN encodings of the values, ascending, one behind the other.

    Value ``i`` is ``values[offsets[i]:offsets[i + 1]]``.  ``path`` is the column's
    ``path_in_schema`` as its metadata encode it.
    """

    order: ByteOrder
    path: NDArray[np.uint8]
    values: NDArray[np.uint8] = field(repr=False)
    offsets: NDArray[np.int64] = field(repr=False)

    @classmethod
    def of(cls, predicate: ColumnPredicate) -> ProbeValues | None:
        """None where the predicate is no lookup, or where bytes alone do not tell the order."""
        order = byte_order_of(predicate.leaf)
        if predicate.condition.operator not in LOOKUPS or order is None or not predicate.values:
            return None
        if any(len(value.encodings) != 1 for value in predicate.values):
            return None
        encodings = [value.encodings[0] for value in predicate.values]
        path = ColumnMetaData.of(path_in_schema=list(predicate.leaf.path)).encode()
        return cls(
            order=order,
            # The list alone: without the header of its field and the end of the structure.
            path=np.frombuffer(path[1:-1], np.uint8),
            values=np.frombuffer(b"".join(encodings), np.uint8),
            offsets=np.cumsum([0, *map(len, encodings)], dtype=np.int64),
        )
