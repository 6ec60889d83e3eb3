"""Damaged metadata and catalogs that do not answer are named errors, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.utils.config import Config

import secure_bloom as sb
from secure_bloom.errors import (
    AccessDeniedError,
    FileChangedError,
    FormatError,
    MissingPathError,
    PolicyError,
)
from tests.lakes.iceberg.tables import NAME, committed_meanwhile, local, people


def _files(table: Table) -> dict[str, bytes]:
    folder = local(table.location())
    return {str(it): it.read_bytes() for it in folder.rglob("*") if it.is_file()}


@pytest.mark.parametrize("kind", ["*-m0.avro", "snap-*.avro"], ids=["manifest", "list"])
@pytest.mark.parametrize("content", [b"", b"Obj\x01 and no Avro"], ids=["empty", "no Avro"])
def test_a_damaged_manifest(catalog: SqlCatalog, kind: str, content: bytes) -> None:
    table = people(catalog, files=1)
    (damaged,) = local(table.location()).rglob(kind)
    damaged.write_bytes(content)
    before = _files(table)
    with pytest.raises(
        FormatError, match=r"cannot read the table's manifests|the file is empty|Avro file wants"
    ):
        sb.add_bloom_filters(NAME, columns=["email"])
    assert _files(table) == before


def test_a_catalog_that_cannot_be_reached(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = people(catalog, files=1)
    before = _files(table)
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", "http://127.0.0.1:9/secret-path")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    with pytest.raises(PolicyError, match="cannot be reached") as caught:
        sb.add_bloom_filters(NAME, columns=["email"])
    assert "secret-path" not in str(caught.value)
    assert _files(table) == before


def test_a_table_that_is_dropped_and_not_made_again(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = people(catalog)
    before = _files(table)
    with (
        committed_meanwhile(monkeypatch, lambda: catalog.drop_table("db.people")),
        pytest.raises((MissingPathError, FileChangedError)),
    ):
        sb.add_bloom_filters(NAME, columns=["email"])
    assert _files(table) == before


def test_no_right_to_commit(
    catalog: SqlCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = people(catalog, files=1)
    before = _files(table)
    read_only = f"sqlite:///file:{tmp_path / 'catalog.db'}?mode=ro&uri=true"
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", read_only)
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__INIT_CATALOG_TABLES", "false")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    with pytest.raises(AccessDeniedError, match="denies access"):
        sb.add_bloom_filters(NAME, columns=["email"])
    after = _files(table)
    # pyiceberg leaves the metadata file that it wrote before it asked; nothing refers to it.
    assert {name for name in after if not name.endswith(".metadata.json")} == {
        name for name in before if not name.endswith(".metadata.json")
    }
    assert {name: after[name] for name in before} == before


def test_a_metadata_file_that_is_not_there_has_a_hint_of_similar_names(tmp_path: Path) -> None:
    (tmp_path / "00001-ab.metadata.json").touch()
    with pytest.raises(sb.MissingPathError) as caught:
        sb.read_table(tmp_path / "00001-ac.metadata.json")
    assert "00001-ab.metadata.json" in str(caught.value.hint)
