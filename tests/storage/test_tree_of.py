"""A path leads to the tree of its disk or of its store."""

from __future__ import annotations

import pytest

from secure_bloom.storage.dispatch import tree_of
from secure_bloom.storage.folder_trees import LocalTree
from secure_bloom.storage.objects import ObjectTree


@pytest.mark.parametrize("path", ["lake/x.parquet", "/lake", "file:///lake"])
def test_paths_of_the_disk(path: str) -> None:
    assert isinstance(tree_of(path), LocalTree)


@pytest.mark.parametrize("path", ["s3://bucket/lake", "s3a://bucket/lake", "gs://bucket/x"])
def test_paths_of_a_store(path: str) -> None:
    assert isinstance(tree_of(path), ObjectTree)
