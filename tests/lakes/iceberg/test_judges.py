"""DuckDB reads the same rows as before from a table with filters, where deletes apply too."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.table import Table

import secure_bloom as sb
from secure_bloom.encryption.policy_tables import ColumnRule
from testing.tables import KEYRING
from tests.lakes.iceberg.judges import by_duckdb
from tests.lakes.iceberg.tables import (
    NAME,
    data_files,
    delete_equal,
    delete_positions,
    in_settings,
    local,
    people,
    rows,
)


def _current(table: Table) -> tuple[str, int | None]:
    return str(local(table.refresh().metadata_location)), None


def _head(table: Table) -> int:
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def test_duckdb_reads_the_same_rows_after_each_verb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = people(in_settings(tmp_path, monkeypatch))
    delete_equal(table, [7, 150], "eq")
    table.append(rows(7, 1))  # comes after the delete, so it stays
    delete_positions(table, data_files(table)[0], [0], "pos")
    before, head = _current(table), _head(table)
    report = sb.add_bloom_filters(NAME, columns=["email"])
    assert len(report.commits[0].files) == 4
    after = _current(table)
    assert after != before
    # DuckDB reads no encrypted file: those that are decrypted again have the same rows and deletes.
    policy = sb.KeyPolicy(
        footer_key="k_footer", columns={"email": ColumnRule(path="email", key="k_pii")}
    )
    sb.reencrypt(NAME, policy=policy, keys=KEYRING)
    sb.rotate_keys(NAME, policy=policy, keys=KEYRING, moves={"k_pii": "k_finance"})
    sb.decrypt(NAME, keys=KEYRING)
    last = _current(table)
    old, new, travelled, decrypted = by_duckdb([before, after, (last[0], head), last])
    # Of 301 rows, two are deleted by their values and one by its position.
    assert len(old) == 298
    assert 150 not in {row["id"] for row in old}
    assert new == old
    assert travelled == old
    assert decrypted == old
    assert sb.read_table(NAME).sort_by("id").to_pylist() == old
