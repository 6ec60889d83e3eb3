"""A table of a catalog is found by its name, and nothing that its owner writes is run."""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.utils.config import Config

import secure_bloom as sb
from secure_bloom.errors import PolicyError
from secure_bloom.lakes.iceberg.catalog import is_in_catalog, load_table

TABLE = "iceberg://lake/db.people"


@pytest.fixture(autouse=True)
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalog of one table in pyiceberg's settings, which it reads when it is imported.

    The table's properties name a class of a module that leaves this trace when it is imported.
    """
    uri, warehouse = f"sqlite:///{tmp_path / 'catalog.db'}", (tmp_path / "warehouse").as_uri()
    catalog = SqlCatalog("lake", uri=uri, warehouse=warehouse)
    catalog.create_namespace("db")
    table = catalog.create_table("db.people", pa.schema({"id": pa.int64(), "name": pa.string()}))
    table.append(pa.table({"id": [1, 2], "name": ["Ada", "Bob"]}))
    table.delete("id = 1")
    metadata = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(metadata.read_text())
    document["properties"]["py-io-impl"] = "planted.Files"
    metadata.write_text(json.dumps(document))
    trace = tmp_path / "trace"
    (tmp_path / "planted.py").write_text(f"import pathlib\npathlib.Path({str(trace)!r}).touch()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", uri)
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", warehouse)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    return trace


def test_the_catalog_says_which_version_counts(trace: Path) -> None:
    assert sb.read_table(TABLE).to_pylist() == [{"id": 2, "name": "Bob"}]
    assert len(sb.probe(TABLE, "name", "Bob").files) == len(sb.inspect(TABLE).files) == 1
    # What a table's owner writes into its properties chooses no code.
    assert not trace.exists()


def test_an_audit_looks_at_its_files() -> None:
    report = sb.audit(TABLE, policy=sb.KeyPolicy(columns={}))
    assert len(report.paths) == 1
    assert all(finding.severity != "unchecked" for finding in report.findings)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("iceberg://lake/db.nobody", "has no table db.nobody"),
        ("iceberg://sea/db.people", "no settings for the catalog sea, but for: .*lake"),
    ],
)
def test_a_table_that_is_not_there_is_an_error(path: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message) as caught:
        sb.inspect(path)
    assert caught.value.path == path
    assert "sqlite" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("iceberg://lake/db.peple", "did you mean iceberg://lake/db.people"),
        ("iceberg://lake/db.PEOPLE", "did you mean iceberg://lake/db.people"),
        ("iceberg://lake/dbs.people", "did you mean iceberg://lake/db.people"),
        ("iceberg://lake/db.zz", "`pyiceberg --catalog lake list db` shows the tables of db"),
        ("iceberg://lake/zz.people", "`pyiceberg --catalog lake list` shows the namespaces"),
    ],
)
def test_the_hint_for_a_misspelt_table_is_a_table_or_a_command_that_runs(
    path: str, hint: str
) -> None:
    with pytest.raises(PolicyError) as caught:
        sb.inspect(path)
    assert caught.value.hint == hint


@pytest.mark.parametrize("path", ["iceberg://lake", "iceberg:///db.t", "iceberg://lake/t"])
def test_a_name_has_a_catalog_a_namespace_and_a_table(path: str) -> None:
    assert is_in_catalog(path)
    with pytest.raises(PolicyError, match="not a table name; wanted iceberg://CATALOG/"):
        load_table(path)


def test_without_pyiceberg_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog", None)
    with pytest.raises(PolicyError, match="not installed") as caught:
        load_table(TABLE)
    assert caught.value.hint == "pip install 'secure-bloom[iceberg]'"


def test_a_query_over_a_table_of_a_catalog_names_it() -> None:
    with sb.open_table(TABLE) as table:
        for name in ("self", f"'{TABLE}'", "'db.people'"):
            assert table.sql(f"select count(*) as n from {name}").to_pylist() == [{"n": 1}]
