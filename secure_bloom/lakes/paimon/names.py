"""The names of Paimon tables: ``paimon://WAREHOUSE/DATABASE.TABLE`` is a folder of a warehouse.

    paimon:///lake/default.orders              ->  /lake/default.db/orders
    paimon:///lake/default.orders$branch_test  ->  /lake/default.db/orders/branch/branch-test
    /lake/default.db/orders/branch/branch-test  itself

The folder of a branch has schemas, snapshots and tags. Manifests and data are in the folder of the
table.
"""

from __future__ import annotations

import re
from typing import Final

from secure_bloom.errors import MissingPathError, PolicyError, UnsupportedFeatureError
from secure_bloom.storage import is_object_uri, join, local_path
from secure_bloom.storage.dispatch import tree_of

SCHEME: Final = "paimon://"
SCHEMA_FOLDER: Final = "schema"
_BRANCHES: Final = "branch"
_PREFIX: Final = "branch-"
_MAIN: Final = "main"
_NAMED_BRANCH = re.compile(r"(.+)\$branch_([^/$]+)/?", re.DOTALL)
_BRANCH_FOLDER = re.compile(rf"(.+)/{_BRANCHES}/{_PREFIX}[^/]+", re.DOTALL)


def is_named(path: str) -> bool:
    """Return whether a path names a table of a warehouse, or a branch, also by the branch's folder.

    The folder of a branch is in that of the table, whose own snapshots name other files.
    """
    if path.startswith(SCHEME):
        return True
    if _BRANCH_FOLDER.fullmatch(path.rstrip("/")):
        return _has_schemas(_plain_folder(path))
    found = _NAMED_BRANCH.fullmatch(path)
    return found is not None and _has_schemas(_plain_folder(found[1]))


def table_folder(path: str) -> str:
    """Return the folder of a table or branch. ``path`` is its name in a warehouse, or its folder.

    Raises PolicyError for an invalid name, or a table or branch that does not exist.
    """
    if not is_named(path):
        return _plain_folder(path)
    branched = _NAMED_BRANCH.fullmatch(path)
    table, branch = (path, _MAIN) if branched is None else branched.groups()
    folder = _in_warehouse(table) if table.startswith(SCHEME) else _plain_folder(table)
    if branch == _MAIN:
        return folder
    found = join(join(folder, _BRANCHES), _PREFIX + branch)
    if not _has_schemas(found):
        names = ", ".join(branch_folders(folder))
        raise MissingPathError(
            f"the table has no branch {branch}",
            hint=f"its branches: {names}" if names else "it has no branches",
            path=path,
        )
    return found


def root_of(folder: str) -> str:
    """Return the folder that has the manifests and data of a table. A branch shares its table's."""
    found = _BRANCH_FOLDER.fullmatch(folder)
    return folder if found is None else found[1]


def branch_folders(root: str) -> dict[str, str]:
    """Return the folders of all branches of a table but its main one, by their names."""
    tree, branches = tree_of(root), join(root, _BRANCHES)
    names = sorted(tree.names(branches)) if tree.is_folder(branches) else []
    return {it.removeprefix(_PREFIX): join(branches, it) for it in names if it.startswith(_PREFIX)}


def _plain_folder(path: str) -> str:
    found = local_path(path)
    return found if is_object_uri(found) else found.rstrip("/") or "/"


def _has_schemas(folder: str) -> bool:
    return tree_of(folder).is_folder(join(folder, SCHEMA_FOLDER))


def _in_warehouse(path: str) -> str:
    warehouse, slash, name = path.removeprefix(SCHEME).rpartition("/")
    database, dot, table = name.partition(".")
    if not (slash and warehouse and database and dot and table):
        raise PolicyError(
            "not the name of a Paimon table",
            hint="write paimon://WAREHOUSE/DATABASE.TABLE, as in paimon:///data/lake/default.orders",
            path=path,
        )
    try:
        is_object_uri(warehouse)
    except UnsupportedFeatureError:
        raise PolicyError(
            "catalogs that are a service are not supported: a warehouse is a folder, on a disk or "
            "in a store",
            hint="give the table's folder, which the catalog names",
            path=path,
        ) from None
    folder = join(join(warehouse, f"{database}.db"), table)
    if not _has_schemas(folder):
        missing = folder if tree_of(folder).is_folder(warehouse) else warehouse
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
