"""A function of one read opens a table and puts one question to it: one way through the code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.api.read import open_table
from secure_bloom.reading import Table
from testing.tables import KEYRING, Mode, customers, write

FUNCTIONS: list[Callable[..., object]] = [
    sb.read_table,
    sb.read_batches,
    sb.explain,
    sb.plan_read,
    lambda paths, **keys: sb.probe(paths, "id", 1, **keys),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "x.parquet", customers(40), Mode.ENCRYPTED)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_function_opens_one_table_and_closes_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, function: Callable[..., object]
) -> None:
    opened: list[Table] = []
    start = Table.__init__

    def noted(table: Table, asked: object) -> None:
        opened.append(table)
        start(table, asked)  # type: ignore[arg-type]

    monkeypatch.setattr(Table, "__init__", noted)
    function(path, keys=KEYRING)
    (table,) = opened
    assert repr(table).endswith("closed>")


def test_an_opened_table_stays_open(path: Path) -> None:
    table = open_table(path, keys=KEYRING)
    assert table.read(limit=3).num_rows == 3
    assert repr(table).startswith(f"<Table {path}: 1 file, ")
