"""Select the live files of a run: by partition, and by the version that added them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

import pyarrow as pa

from secure_bloom.errors import PolicyError, located
from secure_bloom.lakes import LiveFile, Snapshot, snapshot
from secure_bloom.lakes.delta.arrow_types import arrow_type, partition_value
from secure_bloom.lakes.delta.log_bounds import IsSecret
from secure_bloom.lakes.delta.replacements import file_key
from secure_bloom.lakes.file_selection import chosen_by_partition, unmatched_note


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSelection:
    """The caller's choice of files: those that ``where`` matches, and that are new ``since``.

    ``where`` is a condition on partition columns, ``since`` a version of the table. ``written`` is
    a time in milliseconds after 1970. Files that were written before it are left out.
    """

    where: str | None = None
    since: int | None = None
    written: int | None = None

    def files(self, table: Snapshot) -> list[LiveFile]:
        """Return the selected files of the table."""
        files = list(table.files)
        if self.since is not None:
            files = _since(table, files, self.since)
        if self.written is not None:
            files = [file for file in files if file.add["modificationTime"] >= self.written]
        return files if self.where is None else _where(table, files, self.where)

    def unmatched(self, table: Snapshot, is_hidden: IsSecret | None) -> Iterator[str]:
        """Yield the note on a condition that no file matches."""
        if self.where is not None and table.files:
            columns = [
                name
                for name in table.metadata.partition_columns
                if is_hidden is None or not is_hidden((name,))
            ]
            yield unmatched_note(
                self.where,
                {name: [it.partition_values[name] for it in table.files] for name in columns},
            )

    def parameters(self) -> dict[str, str]:
        """Return the choice as parameters for the table's history."""
        given = {"predicate": self.where, "since": self.since, "written": self.written}
        return {name: str(value) for name, value in given.items() if value is not None}


def _since(table: Snapshot, files: Sequence[LiveFile], version: int) -> list[LiveFile]:
    """Return the files that were added after a version."""
    if version > table.version:
        raise PolicyError(
            f"since is version {version}, but the latest version of the table is {table.version}",
            path=table.folder,
        )
    before = snapshot(table.folder, version=version)
    # Only paths are compared: a file whose rows were deleted since has a new vector and is no new
    # file.
    known = set() if before is None else {file_key(file.add)[0] for file in before.files}
    return [file for file in files if file.add["path"] not in known]


def _where(table: Snapshot, files: Sequence[LiveFile], text: str) -> list[LiveFile]:
    columns = table.metadata.partition_columns
    chosen = chosen_by_partition(
        text, table.folder, columns, lambda name: _values(table, files, name)
    )
    return list(compress(files, chosen))


def _values(table: Snapshot, files: Sequence[LiveFile], name: str) -> pa.Array:
    kinds = {field["name"]: field["type"] for field in table.metadata.schema["fields"]}
    texts = [file.partition_values[name] for file in files]
    wanted = arrow_type(kinds[name])
    if pa.types.is_binary(wanted):
        # Texts of binary values are escaped: they are compared as the log writes them.
        wanted = pa.string()
    with located(path=table.folder, column=name):
        values = [None if text is None else partition_value(text, wanted) for text in texts]
    return pa.array(values, wanted)
