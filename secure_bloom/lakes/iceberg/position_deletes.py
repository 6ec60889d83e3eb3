"""Carry position deletes on to a new data file, because they name the old one by its path.

    part-0.parquet       <-  deletes-1.parquet, deletes-2.parquet
    part-0.sb-x.parquet  <-  part-0.sb-x.deletes.parquet    the same positions

Iceberg's specification, "Position Delete Files": sorted by path and position, which are columns
with reserved field ids.  The deleted rows themselves, which some writers keep there, are left out.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

from secure_bloom.errors import FormatError
from secure_bloom.lakes.iceberg.commit_table import CommitTable
from secure_bloom.lakes.iceberg.deletes import FILE_PATH_FIELD, PositionFile
from secure_bloom.lakes.iceberg.kept_entries import KeptEntry
from secure_bloom.running.memory_budget import DecodedBytes
from secure_bloom.storage import name_of, sibling

_POSITION_FIELD: Final = 2147483545
_NEWEST: Final = 3


def _column(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, nullable=False, metadata={"PARQUET:field_id": str(number)})


_SCHEMA: Final = pa.schema(
    [
        _column("file_path", pa.string(), FILE_PATH_FIELD),
        _column("pos", pa.int64(), _POSITION_FIELD),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDeletes:
    """A new position delete file, and the entries of the old ones whose positions it has.

    ``opened`` is the path that opens it here.
    """

    data_file: DataFile
    opened: str
    sequence_number: int
    old: tuple[KeptEntry, ...] = field(repr=False)


class DeleteCarrier:
    """Writes position delete files for new data files. Each old one is read once."""

    def __init__(self, table: CommitTable, deletes: Mapping[str, tuple[KeptEntry, ...]]) -> None:
        self._table = table
        self._deletes = deletes
        self._files: dict[str, PositionFile] = {}
        self._kept = DecodedBytes("what the delete files of the table delete")

    def place(self, path: str, new: str) -> str | None:
        """Return the location of the deletes of a new data file, or None if it needs none."""
        if not self._deletes.get(path):
            return None
        stem, _, suffix = name_of(new).rpartition(".")
        return sibling(new, f"{stem}.deletes.{suffix}")

    def write(self, data_file: KeptEntry, new: str) -> NewDeletes | None:
        """Write the deletes of a new data file. Return None if no row of the old one is deleted."""
        old = data_file.data_file
        location, deletes = self.place(old.file_path, new), self._deletes.get(old.file_path, ())
        if location is None:
            return None
        positions = np.unique(
            np.concatenate([self._file(it).positions(old.file_path) for it in deletes])
        )
        if len(positions) and not 0 <= positions[0] <= positions[-1] < old.record_count:
            raise FormatError("a delete file names a row that its data file does not have")
        content = _content(new, positions)
        with self._table.io.new_output(location).create(overwrite=False) as stream:
            stream.write(content)
        path = {FILE_PATH_FIELD: new.encode()}
        record = DataFile.from_args(
            _table_format_version=_NEWEST,
            content=DataFileContent.POSITION_DELETES,
            file_path=location,
            file_format=FileFormat.PARQUET,
            partition=old.partition,
            record_count=len(positions),
            file_size_in_bytes=len(content),
            # Equal bounds are one whole path: readers look at the file for this data file alone.
            lower_bounds=path,
            upper_bounds=path,
            referenced_data_file=new,
        )
        record.spec_id = old.spec_id
        return NewDeletes(
            data_file=record,
            opened=self._table.new_path(location),
            sequence_number=max(it.sequence_number or 0 for it in deletes),
            old=tuple(deletes),
        )

    def _file(self, entry: KeptEntry) -> PositionFile:
        place = self._table.location(entry.data_file.file_path)
        return self._files.setdefault(place, PositionFile(place, self._kept))


def _content(path: str, positions: Sequence[int] | np.ndarray) -> bytes:
    columns = [pa.array([path] * len(positions), pa.string()), pa.array(positions, pa.int64())]
    stream = io.BytesIO()
    pq.write_table(pa.table(columns, schema=_SCHEMA), stream)
    return stream.getvalue()
