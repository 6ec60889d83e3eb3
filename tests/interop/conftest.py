"""Files before and after they got filters, made once for all readers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache

import pytest

import secure_bloom as sb
from testing.columns import Column
from testing.tables import ArrowKms, Mode
from testing.typed_files import TypedFile, typed_file

Pairs = Callable[[Column, str, Mode], tuple[TypedFile, TypedFile]]
#: The fixture of all readers; Spark's tests take it too.
Modes = Callable[[Column, str], tuple[Mode, ...]]


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    """A small file of a type, encoding and mode, and its copy with filters.

    The keys are an object of pyarrow's own interface, the one that its CryptoFactory gets too.
    """
    kms = ArrowKms()

    @cache
    def pair(column: Column, encoding: str, mode: Mode) -> tuple[TypedFile, TypedFile]:
        before = typed_file(tmp_path_factory.mktemp("pair"), column, encoding, mode, row_groups=3)
        target = before.path.parent / "filtered"
        report = sb.add_bloom_filters(before.path, columns=[column.leaf], keys=kms, output=target)
        assert not report.failed
        return before, dataclasses.replace(before, path=target / before.path.name)

    return pair
