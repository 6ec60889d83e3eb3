"""`secure-bloom add` on an Iceberg table, as its users see it: in the terminal and as JSON."""

from __future__ import annotations

import json

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import IdentityTransform

import secure_bloom as sb
from secure_bloom.encryption.policy_tables import ColumnRule
from testing.command_line import run
from testing.tables import KEYRING
from tests.lakes.iceberg.tables import NAME, people


@pytest.mark.parametrize("verbose", [(), ("--verbose",)])
def test_a_commit_is_a_line_in_the_terminal(catalog: SqlCatalog, verbose: tuple[str, ...]) -> None:
    table = people(catalog)
    done = run("add", NAME, "--column", "email", *verbose)
    assert done.returncode == 0, done.stderr
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    assert f"committed snapshot {snapshot.snapshot_id}: replace, 3 files replaced, " in done.stdout


def test_a_dry_run_shows_the_commit_without_an_id(catalog: SqlCatalog) -> None:
    people(catalog)
    done = run("add", NAME, "--column", "email", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "would be a new snapshot: replace, 3 files replaced, " in done.stdout


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_a_commit_is_in_the_document(catalog: SqlCatalog, dry_run: tuple[str, ...]) -> None:
    people(catalog)
    done = run("add", NAME, "--column", "email", "--json", *dry_run)
    assert done.returncode == 0, done.stderr
    (commit,) = json.loads(done.stdout)["commits"]
    assert commit["operation"] == "replace"
    assert (commit["version"] is None) == bool(dry_run)
    assert len(commit["files"]) == 3


BY_CITY = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "town"))


def test_a_condition_that_no_file_matches_is_a_note_with_the_partitions(
    catalog: SqlCatalog,
) -> None:
    people(catalog, spec=BY_CITY)
    add = ("add", NAME, "--column", "email", "--json")
    for words in (add, (*add, "--dry-run")):
        done = run(*words, "--where", "city = 'oslo'")
        assert done.returncode == 0, done.stderr
        (note,) = json.loads(done.stdout)["notes"]
        assert note == "no live file has city = 'oslo': city is 'city0', 'city1', 'city2'"
    # Bounds decide on other columns, and the value may be that of a column with a key.
    (note,) = json.loads(run(*add, "--where", "email = 'zz@x'").stdout)["notes"]
    assert note == "no live file matches the condition on email"
    (note,) = json.loads(run(*add, "--where", "email = 'zz@x' and city = 'oslo'").stdout)["notes"]
    assert note == (
        "no live file matches the condition on email, city: city is 'city0', 'city1', 'city2'"
    )
    # Partition values of a column with a key are in no note.
    rules = {"city": ColumnRule(path="city", key="k_pii")}
    policy = sb.KeyPolicy(footer_key="k_footer", columns=rules)
    hidden = sb.add_bloom_filters(
        NAME, columns="email", policy=policy, keys=KEYRING, where="city = 'oslo'"
    )
    assert hidden.notes == ("no live file matches the condition on city",)
    assert "no live file" not in run(*add, "--where", "city = 'city1'").stdout


def test_a_dropped_column_is_named_as_one(catalog: SqlCatalog) -> None:
    table = people(catalog)
    with table.update_schema() as change:
        change.delete_column("city")
    for column, said in (
        ("city", "error: column city was dropped from the table"),
        ("cyti", "error: there is no column cyti"),
    ):
        done = run("add", NAME, "--column", column)
        assert done.returncode == 2
        assert said in done.stderr
        assert "(not in the table)" not in done.stderr
