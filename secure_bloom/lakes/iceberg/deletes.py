"""Deletes of an Iceberg table: which delete files apply to a data file, and which rows they delete.

    position deletes   file_path, pos           of the same or a later data sequence number
    deletion vector    a blob of a Puffin file  the same; replaces position deletes
    equality deletes   values of columns        of a later data sequence number alone

Iceberg's specification, "Scan Planning" and "Delete Formats".  Each delete file is read once, when
it is needed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secure_bloom.errors import FormatError, located
from secure_bloom.lakes.deletion_vectors import VECTOR_COST, checked_vector
from secure_bloom.parquet.metadata_rows import metadata_rows
from secure_bloom.running.memory_budget import DecodedBytes, refuse_beyond
from secure_bloom.storage import open_input

#: The field of a position delete file that names the data file.  Iceberg's spec, "Reserved Field
#: IDs".
FILE_PATH_FIELD: Final = 2147483546
_PATH, _POSITION = "file_path", "pos"
#: Contents of a data file.  In manifests of version 1 pyiceberg gives the bare number.
DATA, _POSITION_DELETES = 0, 1
#: Fields of a data file in a manifest that pyiceberg has no names for: the file that all deletes
#: are of, and the place of a deletion vector.
_REFERENCED_FILE, _OFFSET, _LENGTH = 17, 18, 19
_VOID = "void"
#: Memory that a deleted row takes at least: its position, its file, and both in another order.
_ROW_BYTES: Final = 32
#: What a delete file takes in the list of a data file to which it applies.
REFERENCE_BYTES: Final = 8


class PositionFile:
    """A position delete file: the positions of deleted rows, by data file.

    ``kept`` counts what all delete files of a table keep in memory together.
    """

    def __init__(self, path: str, kept: DecodedBytes) -> None:
        self.path = path
        self._kept = kept
        self._lock = threading.Lock()
        self._positions: Mapping[str, NDArray[np.int64]] | None = None

    def __reduce__(self) -> tuple[type[PositionFile], tuple[str, DecodedBytes]]:
        """Pickle without the content, which the other process reads again if it needs it."""
        return PositionFile, (self.path, self._kept)

    def positions(self, data_file: str) -> NDArray[np.int64]:
        """Return the positions for a data file, which is named as in the metadata."""
        with self._lock:
            if self._positions is None:
                with located(path=self.path):
                    self._positions = _by_path(_parquet(self.path, [_PATH, _POSITION]))
                    self._kept.add(sum(it.nbytes for it in self._positions.values()))
        return self._positions.get(data_file, np.empty(0, np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorBlob:
    """A deletion vector in a Puffin file."""

    path: str
    offset: int
    length: int
    cardinality: int

    def positions(self, rows: int) -> NDArray[np.int64]:
        """Return the positions. Raises FormatError for a damaged vector."""
        with located(path=self.path):
            # Read, and taken apart: the metadata name its length.
            refuse_beyond(VECTOR_COST * self.length, "a deletion vector")
            with open_input(self.path) as file:
                framed = file.read_at(self.offset, self.length)
            return checked_vector(framed, rows, self.cardinality)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedPositions:
    """The deleted rows of one data file, by position. ``data_file`` is its name in the metadata."""

    data_file: str
    files: tuple[PositionFile, ...] = ()
    vector: VectorBlob | None = None

    def positions(self, rows: int) -> NDArray[np.int64]:
        """Return the positions of deleted rows in a file of ``rows`` rows, ascending.

        Raises FormatError for a position that the file does not have.
        """
        if self.vector is not None:
            found = self.vector.positions(rows)
        else:
            found = np.unique(np.concatenate([it.positions(self.data_file) for it in self.files]))
        if len(found) and not 0 <= found[0] <= found[-1] < rows:
            raise FormatError(f"a delete file names a row outside the file's {rows} rows")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumn:
    """A column of equality deletes: its id, the ids of its path, and its type in the table.

    ``default`` is the value in files that lack the column.
    """

    field_id: int
    path: tuple[int, ...]
    type: pa.DataType
    default: pa.Scalar = field(repr=False)


class EqualityFile:
    """An equality delete file: it deletes rows that have its values in the key columns."""

    def __init__(self, path: str, columns: tuple[KeyColumn, ...], kept: DecodedBytes) -> None:
        self.path = path
        self._kept = kept
        self.columns = columns
        self._lock = threading.Lock()
        self._rows: pa.Table | None = None

    def __reduce__(
        self,
    ) -> tuple[type[EqualityFile], tuple[str, tuple[KeyColumn, ...], DecodedBytes]]:
        """Pickle without the content, which the other process reads again if it needs it."""
        return EqualityFile, (self.path, self.columns, self._kept)

    def rows(self) -> pa.Table:
        """Return the deleted values, with one column for each key column, in the table's type."""
        with self._lock:
            if self._rows is None:
                with located(path=self.path):
                    self._rows = self._read()
        return self._rows

    def _read(self) -> pa.Table:
        data = _parquet(self.path)
        arrays = [_column_of_id(data, it.path).cast(it.type) for it in self.columns]
        self._kept.add(sum(it.nbytes for it in arrays))
        return pa.Table.from_arrays(arrays, names=[str(it.field_id) for it in self.columns])


def _parquet(path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of a delete file.

    Raises FormatError if it is not Parquet or lacks a column.
    """
    with open_input(path) as file:
        data = file.all_bytes()
    decoded, schemas = DecodedBytes("the delete file"), list[pa.Schema]()

    def choose(schema: pa.Schema) -> Sequence[str]:
        if columns is not None and not set(columns) <= set(schema.names):
            raise FormatError(f"the delete file has no columns {' and '.join(columns)}")
        wanted = columns or schema.names
        schemas.append(pa.schema([schema.field(name) for name in wanted]))
        return wanted

    batches = []
    # A path has as many copies as it has deleted rows: they stay in the dictionary.
    paths = columns[:1] if columns else ()
    for batch in metadata_rows(path, data, decoded, choose, dictionaries=paths):
        decoded.add(batch.num_rows * (_ROW_BYTES if columns else 0) + batch.nbytes)
        batches.append(batch)
    return pa.Table.from_batches(batches, schemas[0])


def _by_path(rows: pa.Table) -> Mapping[str, NDArray[np.int64]]:
    """Return the positions of each data file, ascending."""
    if rows.column(_PATH).null_count or rows.column(_POSITION).null_count:
        raise FormatError("the delete file has a row without a file or a position")
    if not rows.num_rows:
        return {}
    column = rows.column(_PATH)
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    paths = pa.concat_arrays(encoded.unify_dictionaries().chunks)
    codes = paths.indices.to_numpy(zero_copy_only=False)
    positions = rows.column(_POSITION).cast(pa.int64()).to_numpy()
    order = np.lexsort((positions, codes))
    ends = np.searchsorted(codes[order], np.arange(len(paths.dictionary)), side="right")
    parts = np.split(positions[order], ends[:-1])
    return dict(zip(paths.dictionary.to_pylist(), parts, strict=True))


def _column_of_id(data: pa.Table, path: Sequence[int]) -> pa.ChunkedArray:
    """Return the column at a path of ids, through structures."""
    found = _field_of_id(data.schema, path[0])
    column = data.column(found)
    for field_id in path[1:]:
        index = _field_of_id(column.type, field_id)
        # Flattened: a member is null where the structure is.
        column = pa.chunked_array(
            [chunk.flatten()[index] for chunk in column.chunks], type=column.type.field(index).type
        )
    return column


def _field_of_id(fields: Iterable[pa.Field], field_id: int) -> int:
    for index, column in enumerate(fields):
        if (column.metadata or {}).get(b"PARQUET:field_id") == str(field_id).encode():
            return index
    raise FormatError(f"the equality delete file has no column with the id {field_id}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDeletes:
    """The deletes that apply to one data file."""

    positions: DeletedPositions | None = None
    equality: tuple[EqualityFile, ...] = ()


class DeleteIndex:
    """The delete files of a snapshot, indexed by the data files that they apply to.

    ``opened`` returns the path of a location. ``key_column`` returns the column with an id.
    """

    def __init__(
        self,
        specs: Mapping[int, Any],
        opened: Callable[[str], str],
        key_column: Callable[[int], KeyColumn],
    ) -> None:
        #: Why rows cannot be read, if a delete file is of a kind that is not known here.
        self.refused: str | None = None
        self._kept = DecodedBytes("what the delete files of the table delete")
        self._specs = specs
        self._opened = opened
        self._key_column = key_column
        self._vectors: dict[str, tuple[int, VectorBlob]] = {}
        self._of_path: dict[str, list[tuple[int, PositionFile]]] = {}
        self._of_partition: dict[object, list[tuple[int, PositionFile]]] = {}
        #: The key None is for deletes of a spec without partitions, which apply everywhere.
        self._equal: dict[object, list[tuple[int, EqualityFile]]] = {}
        self._shared: dict[tuple[int, int], tuple[Any, ...]] = {}

    def add(self, entry: Any) -> None:
        """Add a delete file."""
        file, number = entry.data_file, entry.sequence_number or 0
        form = str(file.file_format.value).upper()
        if file.content == _POSITION_DELETES and form == "PUFFIN":
            self._add_vector(file, number)
        elif form != "PARQUET":
            self.refused = f"the table has a delete file in {form}"
        elif file.content == _POSITION_DELETES:
            place = self._opened(file.file_path)
            if path := only_path(file):
                self._of_path.setdefault(path, []).append((number, PositionFile(place, self._kept)))
            else:
                key = partition_of(file)
                self._of_partition.setdefault(key, []).append(
                    (number, PositionFile(place, self._kept))
                )
        else:
            self._add_equality(file, number)

    def of(self, entry: Any) -> FileDeletes:
        """Return the deletes that apply to a data file."""
        file, number = entry.data_file, entry.sequence_number or 0
        path, partition = file.file_path, partition_of(file)
        vector, positions = self._vectors.get(path), None
        if vector is not None and vector[0] >= number:
            positions = DeletedPositions(data_file=path, vector=vector[1])
        else:
            files = self._since(self._of_path.get(path), number)
            if files := files + self._since(self._of_partition.get(partition), number):
                positions = DeletedPositions(data_file=path, files=files)
        # Equality deletes apply to older files alone.
        everywhere = self._since(self._equal.get(None), number + 1)
        equality = everywhere + self._since(self._equal.get(partition), number + 1)
        return FileDeletes(positions=positions, equality=equality)

    def _since(self, listed: list[tuple[int, Any]] | None, number: int) -> tuple[Any, ...]:
        """Return the delete files whose sequence number is at least ``number``.

        Data files of one commit share one result, because all delete files of a partition may apply
        to each of its data files.
        """
        if not listed:
            return ()
        key = (id(listed), number)
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = tuple(it for later, it in listed if later >= number)
            self._kept.add(REFERENCE_BYTES * len(found))
        return found

    def _add_vector(self, file: Any, number: int) -> None:
        path, offset, length = (file[at] for at in (_REFERENCED_FILE, _OFFSET, _LENGTH))
        if path is None or offset is None or length is None:
            raise FormatError("an entry of a deletion vector lacks its data file, offset or length")
        if path in self._vectors:
            raise FormatError("the snapshot has two deletion vectors for one data file")
        self._vectors[path] = (
            number,
            VectorBlob(
                path=self._opened(file.file_path),
                offset=offset,
                length=length,
                cardinality=file.record_count,
            ),
        )

    def _add_equality(self, file: Any, number: int) -> None:
        if not file.equality_ids:
            raise FormatError("an entry of an equality delete file names no columns")
        columns = tuple(map(self._key_column, file.equality_ids))
        fields = self._specs[file.spec_id].fields
        # A spec whose fields were all removed from a table of version 1 has void transforms.
        is_global = all(str(it.transform) == _VOID for it in fields)
        key = None if is_global else partition_of(file)
        place = EqualityFile(self._opened(file.file_path), columns, self._kept)
        self._equal.setdefault(key, []).append((number, place))


def only_path(file: Any) -> str | None:
    """Return the data file that all deletes of a file apply to, or None for several."""
    if file[_REFERENCED_FILE] is not None:
        return str(file[_REFERENCED_FILE])
    low, high = (
        (bounds or {}).get(FILE_PATH_FIELD) for bounds in (file.lower_bounds, file.upper_bounds)
    )
    # Bounds may be cut short, but two that are equal are one whole path.
    return str(low.decode()) if low is not None and low == high else None


def partition_of(file: Any) -> object:
    """Return the spec and the values of a file's partition, for comparing two files."""
    # As texts: a NaN is not equal to itself.
    return file.spec_id, tuple(map(repr, file.partition or ()))
