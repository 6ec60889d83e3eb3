"""Records of a Delta table: its protocol, metadata and live files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """The features that readers and writers of the table must support, by name."""

    min_reader_version: int
    min_writer_version: int
    reader_features: frozenset[str] = frozenset()
    writer_features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMetadata:
    """The last ``metaData`` action.

    ``schema`` is the parsed schema, of type ``struct``. ``physical_names`` maps the name of each
    top-level column to its name in data files and partition values. The two names differ only with
    column mapping.
    """

    schema_string: str
    schema: Mapping[str, Any]
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    column_mapping_mode: str
    physical_names: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVector:
    """The descriptor of a file's deletion vector."""

    storage_type: str
    path_or_inline_dv: str
    offset: int | None
    size_in_bytes: int
    cardinality: int

    @property
    def unique_id(self) -> str:
        """The id that distinguishes this deletion vector from others of the same file."""
        end = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{end}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFile:
    """A file that an ``add`` action names.

    ``path`` is the path or URI that opens the file. It begins with the table's folder as the caller
    gave it, unless the log names a file elsewhere. ``partition_values`` maps the logical name of
    each partition column to its text in the log, or to None for null. ``add`` is the unchanged
    action with all its fields.
    """

    path: str
    size: int
    partition_values: Mapping[str, str | None]
    deletion_vector: DeletionVector | None
    add: Mapping[str, Any] = field(repr=False)

    @property
    def deleted_rows(self) -> int:
        """The number of rows that the deletion vector deletes."""
        return 0 if self.deletion_vector is None else self.deletion_vector.cardinality


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A Delta table at one version.

    ``files`` are in the order of their paths.  ``domains`` are the configurations of the metadata
    domains that are not removed.  ``in_commit_timestamp`` is the timestamp in the version's commit,
    in milliseconds after 1970, or None if the commit has none or is gone.
    """

    folder: str
    version: int
    protocol: Protocol
    metadata: TableMetadata
    domains: Mapping[str, str]
    in_commit_timestamp: int | None
    files: tuple[LiveFile, ...]
