"""The names of Paimon tables: ``paimon://WAREHOUSE/DATABASE.TABLE`` is a folder of a warehouse.

paimon:///lake/default.orders  ->  /lake/default.db/orders
"""

from __future__ import annotations

from typing import Final

from secure_bloom.errors import MissingPathError, PolicyError
from secure_bloom.storage import is_object_uri, join, local_path
from secure_bloom.storage.dispatch import tree_of

SCHEME: Final = "paimon://"
SCHEMA_FOLDER: Final = "schema"


def is_named(path: str) -> bool:
    """Return whether a path names a table of a warehouse."""
    return path.startswith(SCHEME)


def table_folder(path: str) -> str:
    """Return the folder of a table: of a name in a warehouse, or the folder itself.

    Raises PolicyError for a name that is none, or a table that is not there.
    """
    if not is_named(path):
        found = local_path(path)
        return found if is_object_uri(found) else found.rstrip("/") or "/"
    warehouse, slash, name = path.removeprefix(SCHEME).rpartition("/")
    database, dot, table = name.partition(".")
    if not (slash and warehouse and database and dot and table):
        raise PolicyError(
            "not the name of a Paimon table",
            hint="write paimon://WAREHOUSE/DATABASE.TABLE, as in paimon:///data/lake/default.orders",
            path=path,
        )
    folder = join(join(warehouse, f"{database}.db"), table)
    tree = tree_of(folder)
    if not tree.is_folder(join(folder, SCHEMA_FOLDER)):
        missing = folder if tree.is_folder(warehouse) else warehouse
        what = "the warehouse has no such table" if missing == folder else "there is no warehouse"
        raise MissingPathError(what, hint=f"nothing is at {missing}", path=path)
    return folder


def is_table(path: str) -> bool:
    """Return whether a path is a Paimon table: a name in a warehouse, or the table's folder."""
    if is_named(path):
        return True
    tree = tree_of(path)
    schemas = join(table_folder(path), SCHEMA_FOLDER)
    return tree.is_folder(schemas) and any(
        name.startswith("schema-") for name in tree.names(schemas)
    )
