"""A catalog of pyiceberg in the layout of Iceberg's Java HadoopCatalog, so both share tables.

Iceberg's spec, "File System Tables": metadata files are called ``v1.metadata.json`` and so on.  A
commit is a new file of the next number, which must not be there yet.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import AVAILABLE_CATALOGS, CatalogType
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import update_table_metadata
from pyiceberg.utils.config import Config


class HadoopCatalog(NoopCatalog):
    """Tables in folders below the property `warehouse`."""

    def create_table(  # type: ignore[override]
        self,
        identifier: str,
        schema: Schema | pa.Schema,
        *,
        partition_spec: Any = UNPARTITIONED_PARTITION_SPEC,
        properties: dict[str, str] | None = None,
        **_: Any,
    ) -> Table:
        folder = self._folder(identifier)
        (folder / "metadata").mkdir(parents=True)
        known = self._convert_schema_if_needed(schema)
        made = new_table_metadata(
            known, partition_spec, UNSORTED_SORT_ORDER, folder.as_uri(), dict(properties or {})
        )
        self._write(folder, 1, made)
        return self.load_table(identifier)

    def load_table(self, identifier: Any) -> Table:
        folder = self._folder(identifier)
        if not (number := _last(folder)):
            raise NoSuchTableError(identifier)
        location = _file(folder, number).as_uri()
        io = load_file_io(dict(self.properties), location)
        metadata = FromInputFile.table_metadata(io.new_input(location))
        return Table(self.identifier_to_tuple(identifier), metadata, location, io, self)

    def commit_table(
        self, table: Table, requirements: Sequence[Any], updates: Sequence[Any]
    ) -> CommitTableResponse:
        folder = self._folder(table.name())
        number = _last(folder)
        current = self.load_table(table.name()).metadata
        for requirement in requirements:
            requirement.validate(current)
        changed = update_table_metadata(current, tuple(updates))
        self._write(folder, number + 1, changed)
        location = _file(folder, number + 1).as_uri()
        return CommitTableResponse.model_validate(
            {"metadata": changed, "metadata-location": location}
        )

    def _write(self, folder: Path, number: int, metadata: Any) -> None:
        part = folder / "metadata" / f"part-{os.getpid()}-{os.urandom(4).hex()}"
        part.write_text(metadata.model_dump_json(exclude_none=True))
        try:
            os.link(part, _file(folder, number))
        except FileExistsError:
            raise CommitFailedException(f"version {number} is there already") from None
        finally:
            part.unlink()
        (folder / "metadata" / "version-hint.text").write_text(str(number))

    def _folder(self, identifier: Any) -> Path:
        return Path(self.properties["warehouse"], *self.identifier_to_tuple(identifier))


def _last(folder: Path) -> int:
    names = (folder / "metadata").glob("v*.metadata.json")
    return max((int(it.name[1:].partition(".")[0]) for it in names), default=0)


def _file(folder: Path, number: int) -> Path:
    return folder / "metadata" / f"v{number}.metadata.json"


def in_settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> HadoopCatalog:
    """A catalog called ``lake`` that pyiceberg's settings know."""
    warehouse = str(folder / "warehouse")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__TYPE", CatalogType.IN_MEMORY.value)
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", warehouse)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    # Settings cannot name a class, so this one is in the place of a catalog that nobody uses here.
    monkeypatch.setitem(
        AVAILABLE_CATALOGS, CatalogType.IN_MEMORY, lambda name, given: HadoopCatalog(name, **given)
    )
    return HadoopCatalog("lake", warehouse=warehouse)
