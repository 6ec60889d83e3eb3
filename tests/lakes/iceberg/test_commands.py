"""`secure-bloom add` on an Iceberg table, as its users see it: in the terminal and as JSON."""

from __future__ import annotations

import json

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from testing.command_line import run
from tests.lakes.iceberg.tables import NAME, people


@pytest.mark.parametrize("verbose", [(), ("--verbose",)])
def test_a_commit_is_a_line_in_the_terminal(catalog: SqlCatalog, verbose: tuple[str, ...]) -> None:
    table = people(catalog)
    done = run("add", NAME, "--column", "email", *verbose)
    assert done.returncode == 0, done.stderr
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    assert f"committed version {snapshot.snapshot_id}: replace, 3 files replaced, " in done.stdout


def test_a_dry_run_shows_the_commit_without_an_id(catalog: SqlCatalog) -> None:
    people(catalog)
    done = run("add", NAME, "--column", "email", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "would be a new version: replace, 3 files replaced, " in done.stdout


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_a_commit_is_in_the_document(catalog: SqlCatalog, dry_run: tuple[str, ...]) -> None:
    people(catalog)
    done = run("add", NAME, "--column", "email", "--json", *dry_run)
    assert done.returncode == 0, done.stderr
    (commit,) = json.loads(done.stdout)["commits"]
    assert commit["operation"] == "replace"
    assert (commit["version"] is None) == bool(dry_run)
    assert len(commit["files"]) == 3
