"""The target of a table that is decrypted into a folder without a log.

Names of folders hold the partition values:

    output/day=2026-11-20/part-0.snappy.parquet
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from secure_bloom.errors import MissingPathError, UnsupportedFeatureError
from secure_bloom.lakes import LiveFile, Snapshot, snapshot
from secure_bloom.lakes.delta.selection import TableSelection
from secure_bloom.lakes.managed_tables import refuse_output
from secure_bloom.lakes.plain_files import FilesTarget
from secure_bloom.runs.work import FileTask
from secure_bloom.storage import join, local_path, name_of
from secure_bloom.storage.listing import check_targets, refuse_inside
from secure_bloom.storage.paths import as_paths


@dataclass(slots=True, kw_only=True)
class BareFolder(FilesTarget):
    """The live files of the Delta table in ``folder``, each written below ``output``."""

    folder: str
    output: str

    def listed(self) -> Sequence[str]:
        """Return the files. Raises the errors of :func:`bare_targets`."""
        targets = bare_targets(self.folder, self.output, self.where)
        refuse_inside(self.output, as_paths(self.paths))
        refuse_output(self.output)
        self.tasks = [FileTask(path=path, target=target) for path, target in targets.items()]
        return list(targets)


_NULL = "__HIVE_DEFAULT_PARTITION__"
#: Characters that Spark escapes in names of folders.  Letters beyond ASCII stay: Spark unescapes
#: single bytes.
_ESCAPED = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""")


def bare_targets(
    folder: str, output: str | os.PathLike[str], where: str | None = None
) -> dict[str, str]:
    """Return the chosen live files of the table in a folder, and the path of each below ``output``.

    Raises UnsupportedFeatureError if a reader of the folder without a log would find other rows
    than the table has.
    """
    table = snapshot(folder)
    if table is None:
        raise MissingPathError("there is no Delta table", path=folder)
    files = TableSelection(where=where).files(table)
    _refuse_others(table, files)
    top = local_path(output)
    targets = {file.path: join(top, _inside(table, file)) for file in files}
    # The log may have files of one name in several folders, which do not come along.
    check_targets(targets)
    return targets


def _refuse_others(table: Snapshot, files: Sequence[LiveFile]) -> None:
    """Raise an error for tables whose rows need more than the files."""
    deleted = [file for file in files if file.deletion_vector is not None]
    if deleted:
        raise UnsupportedFeatureError(
            "rows of the file are deleted by a deletion vector, and would come back in a folder "
            "without a log",
            hint="purge the table first (REORG TABLE ... APPLY (PURGE))",
            path=deleted[0].path,
        )
    if table.metadata.column_mapping_mode != "none":
        raise UnsupportedFeatureError(
            "the column names in the table's files differ from the table's (column mapping), and a "
            "folder without a log cannot map them",
            hint="write the rows that `read` returns instead",
            path=table.folder,
        )


def _inside(table: Snapshot, file: LiveFile) -> str:
    values: Mapping[str, str | None] = file.partition_values
    folders = (
        f"{_escaped(it)}={_NULL if (value := values[it]) is None else _escaped(value)}"
        for it in table.metadata.partition_columns
    )
    # The name alone: the log may have the file below any folder, and only the values count.
    return "/".join((*folders, name_of(file.path)))


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)
