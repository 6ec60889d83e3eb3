"""Apply equality deletes: remove rows whose key columns have the deleted values, nulls included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from secure_bloom.errors import FormatError
from secure_bloom.lakes.iceberg.deletes import EqualityFile, KeyColumn
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.structures.metadata import SchemaElement
from secure_bloom.reading.rows.column_decoder import Columns

#: A column of a file as decoded columns give it: the top-level column, then members.
_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keys:
    """Deleted values of the same key columns, and the columns of the file that have these keys.

    A path is None for a column that the file lacks.
    """

    columns: tuple[KeyColumn, ...]
    paths: tuple[_Path | None, ...]
    deleted: pa.Table


class EqualityDeletes:
    """The equality deletes of one file. ``needed`` has the columns that are read to apply them."""

    def __init__(self, files: Sequence[EqualityFile], footer: Footer) -> None:
        by_columns: dict[tuple[KeyColumn, ...], list[EqualityFile]] = {}
        for file in files:
            by_columns.setdefault(file.columns, []).append(file)
        self._by_columns = by_columns
        self._paths = {
            columns: tuple(_path_of(footer, column.path) for column in columns)
            for columns in by_columns
        }
        tops = (path[0] for paths in self._paths.values() for path in paths if path is not None)
        self.needed = tuple(dict.fromkeys(tops))
        self._keys: list[_Keys] | None = None

    def lives(self, columns: Columns, count: int) -> NDArray[np.bool_]:
        """Return a mask of the rows that no delete matches."""
        if self._keys is None:
            self._keys = list(self._read())
        lives = np.ones(count, np.bool_)
        for keys in self._keys:
            found = [
                _values(columns, path, column, count)
                for path, column in zip(keys.paths, keys.columns, strict=True)
            ]
            lives &= ~equal_rows(found, keys.deleted.columns)
        return lives

    def _read(self) -> Iterator[_Keys]:
        for columns, files in self._by_columns.items():
            deleted = pa.concat_tables([file.rows() for file in files])
            yield _Keys(columns=columns, paths=self._paths[columns], deleted=deleted)


def _path_of(footer: Footer, ids: Sequence[int]) -> _Path | None:
    """Return the path, in the names of a file, of the field that a path of field ids leads to."""
    for nodes in footer.columns.nodes.values():
        if nodes[0].field_id == ids[0]:
            return _below(nodes, ids)
    return None


def _below(nodes: Sequence[SchemaElement], ids: Sequence[int]) -> _Path | None:
    """Return the names on the path that field ids lead through, or None for an unknown id.

    ``nodes`` are a whole branch, depth first. The first id is the id of its first node.
    """
    path, position = [nodes[0].name], 0
    for field_id in ids[1:]:
        members = _members(nodes, position)
        found = next((at for at in members if nodes[at].field_id == field_id), None)
        if found is None:
            return None
        path.append(nodes[found].name)
        position = found
    return tuple(path)


def _members(nodes: Sequence[SchemaElement], position: int) -> Iterator[int]:
    """Yield the positions of a node's children."""
    at = position + 1
    for _ in range(nodes[position].num_children or 0):
        yield at
        open_nodes = 1
        while open_nodes:
            open_nodes += (nodes[at].num_children or 0) - 1
            at += 1


def _values(columns: Columns, path: _Path | None, key: KeyColumn, count: int) -> pa.ChunkedArray:
    """Return the values of a key column in the table's type."""
    if path is None:
        return pa.chunked_array([pa.repeat(key.default, count)])
    column = columns[path[0]]
    for name in path[1:]:
        column = pc.struct_field(column, name)
    try:
        return column.cast(key.type)
    except pa.ArrowException:
        raise FormatError(
            f"a value does not fit {key.type}, the column's type in the table's deletes",
            column=".".join(path),
        ) from None


def equal_rows(
    columns: Sequence[pa.ChunkedArray], deleted: Sequence[pa.ChunkedArray]
) -> NDArray[np.bool_]:
    """Return a mask of the rows that have the values of a deleted row in all columns."""
    equal = np.ones(len(columns[0]), np.bool_)
    mine = np.zeros(len(columns[0]), np.int64)
    theirs = np.zeros(len(deleted[0]), np.int64)
    for column, values in zip(columns, deleted, strict=True):
        known = values.unique()
        number = _numbers(column, known)
        equal &= number >= 0
        # Numbers of the combinations so far: fewer than deleted rows, so the next ones fit.
        combined, theirs = np.unique(
            theirs * len(known) + _numbers(values, known), return_inverse=True
        )
        wanted = mine * len(known) + number
        mine = np.minimum(np.searchsorted(combined, wanted), max(len(combined) - 1, 0))
        equal &= len(combined) > 0 and combined[mine] == wanted
    return equal


def _numbers(column: pa.ChunkedArray, known: pa.Array) -> NDArray[np.int64]:
    """Return the index of each value among the known values, or -1 if it is not among them.

    A null equals a null, a NaN equals a NaN, and zeros of different sign differ, as in Iceberg's
    own reader.
    """
    places = pc.index_in(column, value_set=known).fill_null(-1)
    return np.asarray(places.to_numpy(), np.int64)
