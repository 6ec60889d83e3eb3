"""Tables in an object store: each verb, by what the catalog says of the store and nothing else."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

import secure_bloom as sb
from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.lakes.iceberg.catalog import store_grant
from secure_bloom.storage.paths import object_uri
from secure_bloom.storage.store_grants import settings_for
from testing.iceberg_rest import rest_catalog
from testing.store_proxy import store_proxy
from tests.lakes.iceberg.tables import (
    NAME,
    all_rows,
    data_files,
    in_environment,
    in_settings,
    in_store,
    people,
)

SECRET = "s3cr3t-of-the-catalog"
ABSENT = "nobody@example.org"


@pytest.fixture
def settings(port: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    found = in_store(port, monkeypatch)
    return found | {"s3.access-key-id": "testing", "s3.secret-access-key": SECRET}


@pytest.fixture
def table(settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    return people(in_settings(tmp_path, monkeypatch, **settings), files=2)


def test_add_and_each_verb_that_reads(table: Table) -> None:
    before, first = all_rows(table), table.current_snapshot()
    assert first is not None
    report = sb.add_bloom_filters(NAME, columns=["email"])
    assert len(report.commits[0].files) == 2
    assert all_rows(table) == before
    assert sb.read_table(NAME).num_rows == 200
    assert sb.read_table(NAME, where="email = 'user7@example.org'")["id"].to_pylist() == [7]
    assert sb.read_table(NAME, snapshot=first.snapshot_id).num_rows == 200
    assert [file.path for file in sb.inspect(NAME).files] == data_files(table)
    probed = sb.probe(NAME, "email", [ABSENT])
    assert probed.verdicts == {sb.Verdict.ABSENT}
    assert sb.advise(NAME, columns=["email"]).columns[0].column == "email"
    assert SECRET not in repr(report) + repr(probed)


def test_a_run_makes_few_requests(
    port: str, settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store_proxy(port) as proxy:
        settings["s3.endpoint"] = f"http://127.0.0.1:{proxy.port}"
        people(in_settings(tmp_path, monkeypatch, **settings))
        proxy.counts()
        assert len(sb.add_bloom_filters(NAME, columns=["email"]).commits) == 1
        assert proxy.counts().requests <= 6 * 3 + 20


def test_an_audit_looks_at_old_files_and_those_that_no_snapshot_names(
    table: Table, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[footer]\nkey = "k"\n[columns.email]\nkey = "k"\n')
    sb.add_bloom_filters(NAME, columns=["email"])
    stray = data_files(table)[0].replace(".parquet", "-left.parquet")
    with (
        table.io.new_input(data_files(table)[0]).open() as live,
        table.io.new_output(stray).create() as left,
    ):
        left.write(live.read())
    report = sb.audit(NAME, policy=policy, without_keys=True)
    shown = {it.path for it in report.findings if it.id == "column-in-clear"}
    assert len(shown) == 5  # two live, two of the snapshot before, one that no snapshot names
    assert stray in shown
    (fix,) = {it.fix for it in report.findings if it.path == stray}
    assert "remove_orphan_files" in fix


def test_the_settings_end_with_the_table(table: Table) -> None:
    place = data_files(table)[0]
    sb.inspect(NAME)
    gc.collect()
    assert settings_for(object_uri(place)) is None
    with pytest.raises(PolicyError):
        sb.inspect(place)


def test_credentials_that_a_rest_catalog_sends_for_a_table(
    table: Table, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = {name: it for name, it in settings.items() if name.startswith("s3.")}

    def send(loaded: dict[str, Any]) -> None:
        loaded["storage-credentials"] = [{"prefix": table.location(), "config": theirs}]
        # The table's owner cannot lead readers to another store.
        hostile = {"s3.endpoint": "http://127.0.0.1:9", "py-io-impl": "planted.Files"}
        loaded["metadata"]["properties"] |= hostile

    with rest_catalog(table.catalog, send) as address:
        in_environment({"type": "rest", "uri": address}, monkeypatch)
        assert len(sb.add_bloom_filters(NAME, columns=["email"]).commits[0].files) == 2
        assert sb.read_table(NAME, where="id = 7").num_rows == 1


@pytest.mark.parametrize("name", ["s3.signer", "s3.role-arn"])
def test_a_way_into_the_store_that_is_not_known_is_refused(table: Table, name: str) -> None:
    table.io.properties[name] = "S3V4RestSigner"
    with pytest.raises(UnsupportedFeatureError, match=f"sets {name}"):
        store_grant(table, NAME)


def test_a_catalog_in_glue(
    settings: dict[str, str], port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    glue = {
        "glue.endpoint": f"http://127.0.0.1:{port}",
        "glue.region": "us-east-1",
        "glue.access-key-id": "testing",
        "glue.secret-access-key": "testing",
    }
    in_environment({"type": "glue", **settings, **glue}, monkeypatch)
    catalog = load_catalog("lake")
    catalog.create_namespace("db")
    table = people(catalog, files=2)
    before = all_rows(table)
    report = sb.add_bloom_filters(NAME, columns=["email"])
    assert len(report.commits[0].files) == 2
    assert all_rows(catalog.load_table("db.people")) == before
    assert sb.probe(NAME, "email", [ABSENT]).verdicts == {sb.Verdict.ABSENT}
