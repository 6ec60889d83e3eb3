"""Load a table from an Iceberg catalog.

``iceberg://CATALOG/NAMESPACE.TABLE`` names a table of a catalog in the settings of pyiceberg:
``.pyiceberg.yaml`` and the environment (``PYICEBERG_CATALOG__NAME__URI``).

Whoever writes a table writes its properties.  A property can name a class that pyiceberg imports to
open files, or a store that gets the caller's credentials.  So files are opened by the properties of
the catalog, and by those that a REST catalog sends along for this table; names of classes are left
out of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from secure_bloom.errors import (
    AccessDeniedError,
    MissingPathError,
    PolicyError,
    SecureBloomError,
    imported_for,
    located,
)

_SCHEME: Final = "iceberg://"
#: What pyiceberg is imported for.
PURPOSE: Final = "an Iceberg table"
#: The end of the name of a metadata file.
METADATA_SUFFIX: Final = ".metadata.json"
_SETTINGS_HINT: Final = (
    "try `pyiceberg --catalog NAME describe NAMESPACE.TABLE`; pyiceberg's settings say where a "
    "catalog is"
)

#: Exceptions of pyiceberg, by name, as our error and its sentence.
_ERRORS: Final[Mapping[str, tuple[type[PolicyError], str]]] = {
    "NoSuchTableError": (MissingPathError, "the catalog {catalog} has no table {table}"),
    "NoSuchIcebergTableError": (PolicyError, "{table} is no Iceberg table in {catalog}"),
    "NoSuchNamespaceError": (
        MissingPathError,
        "the catalog {catalog} has no namespace for {table}",
    ),
    "ForbiddenError": (AccessDeniedError, "the catalog {catalog} denies access to {table}"),
    "UnauthorizedError": (AccessDeniedError, "the catalog {catalog} does not accept the login"),
    "AuthorizationExpiredError": (AccessDeniedError, "the login to {catalog} has expired"),
    "OAuthError": (AccessDeniedError, "the catalog {catalog} does not accept the login"),
}


#: What databases call a write that they deny: SQLite's name of the error, SQLSTATE of the others.
_DENIED: Final = ("SQLITE_READONLY", "42501")
#: And one that they gave up because of another transaction: PostgreSQL's serialization failure,
#: deadlock, and lock that was not available.
_BUSY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED", "40001", "40P01", "55P03")


def is_denied(error: Exception) -> bool:
    """Return whether the database of a catalog denied a write, and so did none of it."""
    return _is_named(error, _DENIED)


def is_busy(error: Exception) -> bool:
    """Return whether the database of a catalog gave a write up for another one, and did none."""
    return _is_named(error, _BUSY)


def _is_named(error: Exception, wanted: tuple[str, ...]) -> bool:
    # SQLAlchemy keeps the error of the database's own driver.
    cause = getattr(error, "orig", None)
    names = (getattr(cause, name, None) for name in ("sqlite_errorname", "sqlstate", "pgcode"))
    return any(str(name).startswith(wanted) for name in names)


def is_in_catalog(path: str) -> bool:
    """Return whether the path names a table of a catalog."""
    return path.lower().startswith(_SCHEME)


def metadata_file(path: str) -> str:
    """Return the location of the metadata file of the table's current version.

    Raises PolicyError if pyiceberg knows no such catalog, or the catalog no such table, or the
    catalog does not answer.
    """
    return str(load_table(path).metadata_location)


def load_table(path: str) -> Any:
    """Return the pyiceberg table that ``iceberg://CATALOG/NAMESPACE.TABLE`` names."""
    catalog_name, table_name = _parsed(path)
    with located(path=path), imported_for(PURPOSE, "iceberg"):
        from pyiceberg.catalog import load_catalog
    with catalog_errors(path):
        catalog = _without_classes_of_tables(load_catalog(catalog_name))
        table = catalog.load_table(table_name)
        table.io = _file_io(catalog, table)
    return table


def _parsed(path: str) -> tuple[str, str]:
    name, _, table = path[len(_SCHEME) :].partition("/")
    if not name or "." not in table:
        raise PolicyError(
            "names no table of a catalog", hint="iceberg://CATALOG/NAMESPACE.TABLE does", path=path
        )
    return name, table


@contextmanager
def catalog_errors(path: str) -> Iterator[None]:
    """Turn exceptions of a catalog into PolicyError, without their text.

    The text may quote the catalog's address and what it is opened with.
    """
    name, table = _parsed(path)
    try:
        yield
    except SecureBloomError:
        raise
    except Exception as exc:
        kind, sentence = _ERRORS.get(
            "ForbiddenError" if is_denied(exc) else type(exc).__name__,
            (
                PolicyError,
                f"the catalog {{catalog}} does not give {{table}} ({type(exc).__name__})",
            ),
        )
        raise kind(
            sentence.format(catalog=name, table=table), hint=_SETTINGS_HINT, path=path
        ) from None


def _without_classes_of_tables(catalog: Any) -> Any:
    """Return the catalog, which then opens metadata files by its own properties alone."""
    from pyiceberg.io import load_file_io

    catalog._load_file_io = lambda properties=None, location=None: load_file_io(  # noqa: ARG005
        catalog.properties, location
    )
    return catalog


def _file_io(catalog: Any, table: Any) -> Any:
    """Return what opens the table's files: the catalog's settings, then those it sent for them."""
    from pyiceberg.io import load_file_io

    sent = {name: value for name, value in (table.config or {}).items() if "impl" not in name}
    return load_file_io({**catalog.properties, **sent}, table.metadata_location)
