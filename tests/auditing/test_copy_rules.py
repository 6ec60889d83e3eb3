"""A file that readers skip may be a copy of any table, wherever it lies."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from testing.command_line import run
from testing.tables import MASTER_KEYS, keyring_json

PEOPLE = pa.table({"id": [1, 2], "email": ["anna@post.fi", "ben@post.fi"]})
NEWS = pa.table({"id": [1, 2], "title": ["a", "b"]})

_START = '[kms]\nclient = "keyring"\nkeyring = "keys.json"\n[footer]\nkey = "k_footer"\n'
_PEOPLE = '[tables."lake/crm/customers/*".columns.email]\nkey = "k_pii"\n'
_ANY = '[tables."*"]\n'


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    lake = tmp_path / "lake"
    for name, table in (("crm/customers", PEOPLE), ("news", NEWS), ("list", PEOPLE)):
        (lake / name).mkdir(parents=True)
        pq.write_table(table, lake / name / "0.parquet")
    (tmp_path / "keys.json").write_text(keyring_json(MASTER_KEYS))
    return lake


def _found(lake: Path, policy: str) -> set[tuple[str, str, str | None]]:
    path = lake.parent / "policy.toml"
    path.write_text(_START + policy)
    sb.reencrypt(lake, policy=path, allow_missing_columns=True)
    report = sb.audit(lake, policy=path)
    return {
        (it.id, str(Path(it.path or "").relative_to(lake)), it.column) for it in report.findings
    }


@pytest.mark.parametrize(
    "place", [".backup/_copy.parquet", "crm/_copy.parquet", "_copy.parquet", "news/_copy.parquet"]
)
@pytest.mark.parametrize(
    "others",
    [_ANY, '[tables."lake/*"]\n', '[tables."*".classified]\nclear = ["*", "id"]\n'],
    ids=["any", "lake", "classified"],
)
def test_a_copy_in_clear_is_found_wherever_it_lies(lake: Path, place: str, others: str) -> None:
    (lake / place).parent.mkdir(exist_ok=True)
    pq.write_table(PEOPLE, lake / place)
    assert _found(lake, _PEOPLE + others) == {("column-in-clear", place, "email")}


def test_what_may_be_in_clear_where_it_lies_is_no_finding(lake: Path) -> None:
    """Old files of a table whose live files have the column in clear, and columns by name."""
    (lake / "list" / "old").mkdir()
    for name in ("list/_copy.parquet", "list/old/_copy.parquet", "list/.hidden.parquet"):
        pq.write_table(PEOPLE, lake / name)
    assert not _found(lake, _PEOPLE + _ANY)
    (lake / ".backup").mkdir()
    pq.write_table(PEOPLE, lake / ".backup" / "_copy.parquet")
    assert _found(lake, _PEOPLE + _ANY)
    for allowed in ('.classified]\nclear = ["ema*"]\n', ".columns.email]\n"):
        assert not _found(lake, f'{_PEOPLE}[tables."*"{allowed}')


def test_a_copy_in_the_folder_of_a_table_has_its_rules(lake: Path) -> None:
    pq.write_table(PEOPLE, lake / "news" / "_copy.parquet")
    assert not _found(lake, f'{_PEOPLE}{_ANY}[tables."news/*".columns.id]\n')
    pq.write_table(PEOPLE, lake / "crm" / "customers" / "_copy.parquet")
    place = "crm/customers/_copy.parquet"
    found = _found(lake, f'{_PEOPLE}{_ANY}[tables."news/*".columns.id]\n')
    assert found == {("column-in-clear", place, "email")}


def test_a_copy_under_the_key_of_its_table_is_no_finding(lake: Path) -> None:
    """Two tables have a column of the same name under different keys."""
    policy = f'{_PEOPLE}[tables."list/*".columns.email]\nkey = "k_finance"\n{_ANY}'
    assert not _found(lake, policy)
    (lake / ".backup").mkdir()
    for name in ("crm/customers", "list"):
        copy = lake / ".backup" / f"_{Path(name).name}.parquet"
        copy.write_bytes((lake / name / "0.parquet").read_bytes())
    report = sb.audit(lake, policy=lake.parent / "policy.toml")
    assert not [it for it in report.findings if "backup" in str(it.path)]


def test_folders_and_logs_of_copies_have_the_rules_of_all_tables(lake: Path) -> None:
    (lake / ".backup" / "email=anna@post.fi").mkdir(parents=True)
    pq.write_table(NEWS, lake / ".backup" / "email=anna@post.fi" / "_0.parquet")
    (lake / ".old").mkdir()
    stats = json.dumps({"numRecords": 1, "minValues": {"email": "anna@post.fi"}})
    add = {"path": "0.parquet", "partitionValues": {}, "size": 1, "stats": stats}
    (lake / ".old" / "part.json").write_text(json.dumps({"add": add}))
    found = {(name, column) for name, _, column in _found(lake, _PEOPLE + _ANY)}
    assert {("partition-in-clear", "email"), ("table-log-in-clear", "email")} <= found
    path = lake.parent / "policy.toml"
    assert "anna" not in run("audit", lake, "--policy", path, "--json").stdout


def test_an_empty_partition_of_a_live_table_has_the_rules_of_the_table(lake: Path) -> None:
    for name, table in (("email=a", NEWS), ("email=b", None)):
        (lake / "byname" / name).mkdir(parents=True)
        if table is not None:
            pq.write_table(table, lake / "byname" / name / "0.parquet")
    assert not _found(lake, _PEOPLE + _ANY)
