"""The place of an Iceberg table's metadata file, as its catalog tells it.

``iceberg://CATALOG/NAMESPACE.TABLE`` names a table of a catalog in the settings of pyiceberg:
``.pyiceberg.yaml`` and the environment (``PYICEBERG_CATALOG__NAME__URI``).
"""

from __future__ import annotations

from typing import Any, Final

from secure_bloom.errors import PolicyError

_SCHEME: Final = "iceberg://"
INSTALL: Final = "pip install 'pyiceberg>=0.12'"
#: The end of the name of a metadata file.
METADATA_SUFFIX: Final = ".metadata.json"


def is_in_catalog(path: str) -> bool:
    """Whether the path names a table of a catalog."""
    return path.lower().startswith(_SCHEME)


def metadata_file(path: str) -> str:
    """The metadata file of the table's current version.

    Raises PolicyError where pyiceberg knows no such catalog, or the catalog no such table, or does
    not answer.
    """
    name, _, table = path[len(_SCHEME) :].partition("/")
    if not name or "." not in table:
        raise PolicyError(
            "names no table of a catalog", hint="iceberg://CATALOG/NAMESPACE.TABLE does", path=path
        )
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError as exc:
        raise PolicyError("pyiceberg is not installed", hint=INSTALL, path=path) from exc
    try:
        return str(
            _without_classes_of_tables(load_catalog(name)).load_table(table).metadata_location
        )
    except Exception as exc:
        # Without the text, which may quote the catalog's address and what it is opened with.
        raise PolicyError(
            f"the catalog {name} does not give the table {table} ({type(exc).__name__})",
            hint="try `pyiceberg --catalog NAME describe NAMESPACE.TABLE`; "
            "pyiceberg's settings say where a catalog is",
            path=path,
        ) from None


def _without_classes_of_tables(catalog: Any) -> Any:
    """The catalog, which then opens files by its own properties alone.

    Properties of a table can name a class that pyiceberg imports to open its files
    (``py-io-impl``), and whoever writes a table writes its properties.
    """
    from pyiceberg.io import load_file_io

    catalog._load_file_io = lambda _properties=None, location=None: load_file_io(
        catalog.properties, location
    )
    return catalog
