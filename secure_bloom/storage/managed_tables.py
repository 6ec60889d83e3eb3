"""Tables whose own log records their files' sizes: Delta, Iceberg and Hudi.

Their readers trust the recorded size to find the footer, so a file replaced under them is broken.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.storage.folder_trees import Tree
from secure_bloom.storage.listing import expand
from secure_bloom.storage.tree_of import tree_of

_LOGS = ("_delta_log", ".hoodie", "metadata")


def refuse_managed(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> None:
    """Raise :class:`UnsupportedFeatureError` when a path is, holds or lies in a managed table.

    Looks at the folders above each path up to the root, and at all folders below it.  A table
    whose log is kept elsewhere (Iceberg with ``write.metadata.path``) cannot be seen.
    """
    checked: set[str] = set()
    for path in expand(paths):
        tree = tree_of(path)
        for parent in tree.parents(path):
            if parent not in checked:
                checked.add(parent)
                _refuse(parent, _kind_by_asking(tree, parent))
        if tree.is_folder(path):
            _refuse_below(tree, path)


def _refuse_below(tree: Tree, top: str) -> None:
    for folder, folders, _ in tree.walk(top):
        _refuse(folder, _kind_by_names(tree, folder, folders))


def _kind_by_asking(tree: Tree, folder: str) -> str | None:
    # Access to a bucket is often granted below one prefix only: no reason to give up.
    present = [name for name in _LOGS if tree.can_see_folder(tree.join(folder, name))]
    return _kind_by_names(tree, folder, present)


def _kind_by_names(tree: Tree, folder: str, folders: list[str]) -> str | None:
    if "_delta_log" in folders:
        return "a Delta"
    if ".hoodie" in folders:
        return "a Hudi"
    if "metadata" in folders and any(
        ".metadata.json" in name for name in tree.names(tree.join(folder, "metadata"))
    ):
        return "an Iceberg"
    return None


def _refuse(folder: str, kind: str | None) -> None:
    if kind is not None:
        raise UnsupportedFeatureError(
            f"{kind} table: its log records the size of every file, and replacing or extending "
            "one under it breaks the table",
            hint="write the table's rows to plain Parquet files and add filters there",
            path=folder,
        )
