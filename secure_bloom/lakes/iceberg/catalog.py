"""Load a table from an Iceberg catalog.

``iceberg://CATALOG/NAMESPACE.TABLE`` names a table of a catalog in the settings of pyiceberg:
``.pyiceberg.yaml`` and the environment (``PYICEBERG_CATALOG__NAME__URI``).

The writers of a table also write its properties.  A property can name a class that pyiceberg
imports to open files, or a store that gets the caller's credentials.  So files are opened by the
properties of the catalog, and by properties that a REST catalog sends for this table. Names of
classes are removed from the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

from secure_bloom.calling.close_names import CloseNames
from secure_bloom.errors import (
    AccessDeniedError,
    MissingPathError,
    PolicyError,
    SecureBloomError,
    StoreUnavailableError,
    UnsupportedFeatureError,
    imported_for,
    located,
)
from secure_bloom.lakes.iceberg.locations import PLACES, TablePlaces, is_local
from secure_bloom.reports.text import shell_word
from secure_bloom.running.first_answer import GIVE_UP_SECONDS, NoAnswerError, watched
from secure_bloom.storage.paths import absolute_path, sibling
from secure_bloom.storage.store_grants import S3Settings, StoreGrant

T = TypeVar("T")


def _is_true(text: str) -> bool:
    return str(text).lower() == "true"


_SCHEME: Final = "iceberg://"
#: What pyiceberg is imported for.
PURPOSE: Final = "an Iceberg table"
#: The end of the name of a metadata file.
METADATA_SUFFIX: Final = ".metadata.json"
#: The property of a catalog that names a class to open files.
_CLASS: Final = "py-io-impl"
_S3_SCHEMES: Final = ("s3://", "s3a://", "s3n://")
#: Settings of S3: how a text is taken, and pyiceberg's names of the property.
_SETTINGS: Final[Mapping[str, tuple[Callable[[str], Any], tuple[str, ...]]]] = {
    "endpoint": (str, ("s3.endpoint",)),
    "region": (str, ("s3.region", "client.region")),
    "access_key": (str, ("s3.access-key-id", "client.access-key-id")),
    "secret_key": (str, ("s3.secret-access-key", "client.secret-access-key")),
    "session_token": (str, ("s3.session-token", "client.session-token")),
    "is_anonymous": (_is_true, ("s3.anonymous",)),
    "is_virtual": (_is_true, ("s3.force-virtual-addressing",)),
    "proxy": (str, ("s3.proxy-uri",)),
    "connect_timeout": (float, ("s3.connect-timeout",)),
    "request_timeout": (float, ("s3.request-timeout",)),
}
#: A signature by the catalog for each request, and a role to take on.
_REFUSED: Final = ("s3.signer", "s3.role-arn", "client.role-arn")
_SETTINGS_HINT: Final = (
    "try `pyiceberg --catalog {name} describe {table}`; pyiceberg's settings say where a catalog is"
)
#: The exceptions of pyiceberg for a table that is not there.
_MISSING: Final = frozenset({"NoSuchTableError", "NoSuchNamespaceError"})

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
    **dict.fromkeys(
        ("ConnectionError", "ConnectTimeout", "ReadTimeout", "TTransportException"),
        (StoreUnavailableError, "the catalog {catalog} cannot be reached"),
    ),
    "OAuthError": (AccessDeniedError, "the catalog {catalog} does not accept the login"),
}


#: What databases call a write that they deny: SQLite's name of the error, SQLSTATE of the others.
_DENIED: Final = ("SQLITE_READONLY", "42501")
#: And one that they gave up because of another transaction: PostgreSQL's serialization failure,
#: deadlock, and lock that was not available.
_BUSY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED", "40001", "40P01", "55P03")


def is_denied(error: Exception) -> bool:
    """Return whether the database of a catalog denied a write and therefore wrote nothing."""
    return _is_named(error, _DENIED)


def is_busy(error: Exception) -> bool:
    """Return whether the database of a catalog refused a write because of another write."""
    return _is_named(error, _BUSY)


def _is_named(error: Exception, wanted: tuple[str, ...]) -> bool:
    # SQLAlchemy keeps the error of the database's own driver.
    cause = getattr(error, "orig", None)
    names = (getattr(cause, name, None) for name in ("sqlite_errorname", "sqlstate", "pgcode"))
    return any(str(name).startswith(wanted) for name in names)


def is_in_catalog(path: str) -> bool:
    """Return whether the path names a table of a catalog."""
    return path.lower().startswith(_SCHEME)


def absolute_place(path: str) -> str:
    """Return the absolute path of a table, for processes that run in another folder.

    The name of a table in a catalog is returned unchanged.
    """
    return path if is_in_catalog(path) else absolute_path(path)


def require_pyiceberg(path: str) -> None:
    """Raise MissingExtraError, whose hint installs pyiceberg, if pyiceberg is missing."""
    with located(path=path), imported_for(PURPOSE, "iceberg"):
        import pyiceberg.catalog  # noqa: F401


def load_table(path: str) -> Any:
    """Return the pyiceberg table that ``iceberg://CATALOG/NAMESPACE.TABLE`` names.

    Raises PolicyError if pyiceberg knows no such catalog, if the catalog does not have the table,
    or if it does not answer.
    """
    catalog_name, table_name = _parsed(path)
    require_pyiceberg(path)
    from pyiceberg.catalog import load_catalog

    _require_settings(catalog_name, path)
    with catalog_errors(path):
        server = f"the catalog {catalog_name}"
        catalog = _of_server(server, catalog_name, partial(load_catalog, catalog_name))
        files = _CatalogIO(catalog, path)
        try:
            table = _of_server(server, catalog_name, partial(catalog.load_table, table_name))
        except Exception as exc:
            if type(exc).__name__ not in _MISSING:
                raise
            sentence = _ERRORS[type(exc).__name__][1].format(catalog=catalog_name, table=table_name)
            hint = _near_tables(catalog, path)
            raise MissingPathError(sentence, hint=hint, path=path) from None
        table.io = files.open(table.metadata_location, table.config or {})
        files.written.of(table)
    return table


def _near_tables(catalog: Any, path: str) -> str:
    """Return the hint for a table that a catalog does not have: tables with similar names."""
    name, table = _parsed(path)
    namespace = table.rpartition(".")[0]
    listing = f"`pyiceberg --catalog {shell_word(name)} list"

    def listed(ask: Callable[..., Iterable[Iterable[str]]], *given: str) -> CloseNames:
        try:
            found = _of_server(f"the catalog {name}", name, partial(ask, *given))
            return CloseNames(".".join(it) for it in found)
        except Exception:
            # It does not list them, or there is no such namespace. Its text may hold credentials.
            return CloseNames(())

    if (spaces := listed(catalog.list_namespaces)).names and namespace not in spaces.names:
        table = (spaces.close(namespace, 1) or [namespace])[0] + table[len(namespace) :]
        namespace = table.rpartition(".")[0]
    if close := listed(catalog.list_tables, namespace).close(table, 3):
        return f"did you mean {', '.join(shell_word(f'{_SCHEME}{name}/{it}') for it in close)}"
    if namespace in spaces.names:
        return f"{listing} {shell_word(namespace)}` shows the tables of {namespace}"
    return f"{listing}` shows the namespaces"


def _require_settings(name: str, path: str) -> None:
    """Raise PolicyError if pyiceberg has no settings for catalog ``name``.

    The error lists the catalogs for which it has settings.
    """
    from pyiceberg.utils.config import Config

    config = Config()
    if config.get_catalog_config(name) is None:
        known = config.config.get("catalog")
        named = ", ".join(sorted(known)) if isinstance(known, dict) else ""
        raise PolicyError(
            f"pyiceberg has no settings for the catalog {name}, "
            + (f"but for: {named}" if named else "nor for any other"),
            hint=f"give it an address, in ~/.pyiceberg.yaml or as "
            f"PYICEBERG_CATALOG__{name.upper()}__URI (Glue: a type, "
            f"PYICEBERG_CATALOG__{name.upper()}__TYPE=glue); settings of Spark's catalogs are not "
            "read; verbs that read take the table's metadata file, too",
            path=path,
        )


def _of_server(server: str, name: str, ask: Callable[[], T]) -> T:
    """Return the answer of a catalog, and wait only a limited time for it.

    A catalog in an SQLite database is asked without a limit.
    """
    from pyiceberg.utils.config import Config

    uri = str((Config().get_catalog_config(name) or {}).get("uri", ""))
    # SQLite may keep to the thread that has opened the database.
    return ask() if uri.startswith("sqlite") else watched(server, ask)


def store_grant(table: Any, path: str) -> StoreGrant | None:
    """Return the right, given by the catalog, to open a table's files. Keep it while they are open.

    Return None if the files are not in S3, or if the catalog gives no right. Then the environment
    decides how they are opened. Raises UnsupportedFeatureError for an unknown way to access S3.
    """
    places = {
        table.metadata.location,
        sibling(table.metadata_location, ""),
        *(table.metadata.properties.get(name, "") for name in PLACES),
    }
    return _grant(places, table.io.properties, path)


def _grant(places: Iterable[str], properties: Mapping[str, str], path: str) -> StoreGrant | None:
    mine = [it for it in places if it.lower().startswith(_S3_SCHEMES)]
    given = {name: value for name, value in properties.items() if value not in (None, "")}
    for name in _REFUSED:
        if mine and name in given:
            raise UnsupportedFeatureError(
                f"the catalog sets {name}, which is not supported here",
                hint="give the catalog s3.access-key-id and s3.secret-access-key, or give neither "
                "and set up the environment of AWS",
                path=path,
            )
    found = {
        name: make(given[key])
        for name, (make, keys) in _SETTINGS.items()
        if (key := next((it for it in keys if it in given), None))
    }
    if not mine or not found:
        return None
    with located(path=path):
        return StoreGrant(places=mine, settings=S3Settings(**found))


def _parsed(path: str) -> tuple[str, str]:
    name, _, table = path[len(_SCHEME) :].partition("/")
    if not name or "." not in table:
        raise PolicyError("not a table name; wanted iceberg://CATALOG/NAMESPACE.TABLE", path=path)
    return name, table


@contextmanager
def catalog_errors(path: str) -> Iterator[None]:
    """Turn exceptions of a catalog into PolicyError, without their text.

    The text may quote the catalog's address and credentials.
    """
    name, table = _parsed(path)
    hint = _SETTINGS_HINT.format(name=shell_word(name), table=shell_word(table))
    try:
        yield
    except SecureBloomError:
        raise
    except NoAnswerError:
        raise StoreUnavailableError(
            f"the catalog {name} does not answer: no answer in {GIVE_UP_SECONDS:.0f} s",
            hint=hint,
            path=path,
        ) from None
    except Exception as exc:
        kind, sentence = _ERRORS.get(
            "ForbiddenError" if is_denied(exc) else type(exc).__name__,
            (
                PolicyError,
                f"the catalog {{catalog}} does not give {{table}} ({type(exc).__name__})",
            ),
        )
        raise kind(sentence.format(catalog=name, table=table), hint=hint, path=path) from None


class _CatalogIO:
    """Makes a catalog open metadata files by its own properties alone, not by those of a table.

    It also keeps the credentials for the store that a REST catalog sends when it loads a table.
    """

    def __init__(self, catalog: Any, path: str) -> None:
        self._properties: Mapping[str, str] = catalog.properties
        self._path = path
        self._sent: dict[str, str] = {}
        #: Where files of the table may be written, once it is loaded.
        self.written = TablePlaces()
        choose: Any = getattr(catalog, "_resolve_storage_credentials", None)

        def chosen(credentials: Any, location: Any) -> Any:
            found = choose(credentials, location)
            self._sent.update(found)
            return found

        if choose is not None:
            catalog._resolve_storage_credentials = chosen
        catalog._load_file_io = lambda properties=None, location=None: self.open(  # noqa: ARG005
            location
        )

    def open(self, location: str | None, more: Mapping[str, str] = {}) -> Any:
        """Return a FileIO for the files of a table, with properties that the catalog sent for it.

        Files in S3 are opened by this package's storage, all other files by pyiceberg.
        """
        sent = {**more, **self._sent}
        no_classes = {name: value for name, value in sent.items() if "impl" not in name}
        properties = {**self._properties, **no_classes}
        from secure_bloom.lakes.iceberg.metadata_files import (
            CatalogFiles,
            CheckedFiles,
            LocalFiles,
        )

        if location is not None and location.lower().startswith(_S3_SCHEMES):
            grant = _grant([sibling(location, "")], properties, self._path)
            return CatalogFiles(properties, grant)
        # Not where the user's own settings name a class for that.
        if location is not None and is_local(location) and _CLASS not in properties:
            return LocalFiles(properties, self.written)
        from pyiceberg.io import load_file_io

        return CheckedFiles(load_file_io(properties, location))
