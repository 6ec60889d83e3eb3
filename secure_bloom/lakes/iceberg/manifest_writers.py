"""Writers of manifests: pyiceberg's for data files, and one for delete files, which it lacks.

Iceberg's specification, "Manifests": the header of a manifest says which files it lists.
"""

from __future__ import annotations

from typing import Any, Final

from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.manifest import (
    ManifestContent,
    ManifestEntry,
    ManifestWriter,
    ManifestWriterV2,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
    write_manifest,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, ListType, NestedField, StructType

#: Entries of delete files are read with the fields of this version (the data file that all deletes
#: are of, the place of a vector).  All of them are optional, and are carried.
_FIELDS: Final = 3
#: A list of INT, as the specification says.  pyiceberg has one of LONG, which Java cannot read.
_EQUALITY_IDS: Final = NestedField(
    135, "equality_ids", ListType(136, IntegerType(), element_required=True), required=False
)


class _DeleteManifestWriter(ManifestWriterV2):  # type: ignore[misc, unused-ignore]
    """Writes entries of delete files."""

    def __init__(self, spec: PartitionSpec, schema: Schema, *given: Any) -> None:
        super().__init__(spec, schema, *given)
        found = data_file_with_partition(spec.partition_type(schema), _FIELDS)
        file = StructType(*(_EQUALITY_IDS if it.field_id == 135 else it for it in found.fields))
        self._of_entries = manifest_entry_schema_with_data_file(_FIELDS, file)

    def content(self) -> ManifestContent:
        """Return the kind of files that the manifest lists."""
        return ManifestContent.DELETES

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        """Return the writer of the file, whose header says that it lists delete files."""
        like = super().new_writer()
        return AvroOutputFile[ManifestEntry](
            output_file=like.output_file,
            file_schema=self._of_entries,
            schema_name=like.schema_name,
            metadata={**like.metadata, "content": "deletes"},
        )


def manifest_writer(content: ManifestContent, version: Any, *given: Any) -> ManifestWriter:
    """Return the writer of a manifest. ``given`` are the other arguments of ``write_manifest``."""
    if content == ManifestContent.DELETES:
        return _DeleteManifestWriter(*given)
    return write_manifest(version, *given)
