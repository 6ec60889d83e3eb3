"""Find the tree of folders of a path: that of the local disk, or that of its object store."""

from __future__ import annotations

from secure_bloom.storage.folder_trees import LocalTree, Tree
from secure_bloom.storage.paths import is_object_uri


def tree_of(path: str) -> Tree:
    """Return the tree that a path belongs to; pyarrow is loaded only for object stores."""
    if not is_object_uri(path):
        return LocalTree()
    from secure_bloom.storage.object_trees import ObjectTree

    return ObjectTree()
