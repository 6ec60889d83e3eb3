"""A column that was dropped or renamed is judged by the names that it had."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.types import StringType

import secure_bloom as sb
from secure_bloom.auditing.older_names import OlderNames
from secure_bloom.lakes import list_tables
from testing import delta_logs as logs
from testing.tables import Mode, customers, write
from tests.auditing.datasets import ids
from tests.auditing.examples import POLICY, Example, rules

ROWS = 40
EMAIL_ONLY = replace(POLICY, columns=rules(email="k_pii"))


def _clear(report: sb.findings.AuditReport) -> set[tuple[str, str | None]]:
    return {(it.id, it.column) for it in report.findings}


def _schema(*columns: dict[str, object]) -> dict[str, object]:
    return logs.metadata(*columns, delta_columnMapping_mode="name")


def _mapped(folder: Path, after: list[dict[str, object]], *, stats: str | None = None) -> None:
    """A mapped table whose live file has `col-1`, which was `email` when the file was written."""
    table = pa.table({"col-1": customers(ROWS)["email"], "col-2": customers(ROWS)["city"]})
    path = write(folder / "x.parquet", table, Mode.ENCRYPTED, column_keys={"k_finance": ["col-2"]})
    first = _schema(logs.mapped("email", 1), logs.mapped("city", 2))
    logs.commit(folder, 0, logs.protocol("columnMapping"), first)
    fields = {} if stats is None else {"stats": stats}
    logs.commit(folder, 1, logs.add(path.name, path.stat().st_size, **fields))
    logs.commit(folder, 2, _schema(*after))


CHANGES = {
    "dropped": [logs.mapped("city", 2)],
    "renamed": [logs.mapped("contact", 1), logs.mapped("city", 2)],
    "made anew": [logs.mapped("city", 2), logs.mapped("email", 3)],
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_delta_column(tmp_path: Path, change: str) -> None:
    bounds = {"col-1": "user1@example.com"}
    stats = json.dumps({"numRecords": ROWS, "minValues": bounds, "maxValues": bounds})
    _mapped(tmp_path, CHANGES[change], stats=stats)
    report = Example(path=tmp_path, policy=EMAIL_ONLY).audit()
    found = _clear(report)
    assert ("column-in-clear", "email") in found
    assert ("table-log-in-clear", "email") in found
    assert "user1" not in str(report.to_dict())


def test_a_delta_column_whose_log_was_shortened_has_the_name_in_its_file(tmp_path: Path) -> None:
    """A table that was mapped later: its older files have names, not ids of columns."""
    table = pa.table({"email": customers(ROWS)["email"], "city": customers(ROWS)["city"]})
    path = write(tmp_path / "x.parquet", table, Mode.ENCRYPTED, column_keys={"k_finance": ["city"]})
    named = {"delta.columnMapping.physicalName": "city", "delta.columnMapping.id": 2}
    after = _schema(logs.column("city", "string", **named), logs.mapped("email", 3))
    logs.commit(tmp_path, 0, logs.protocol("columnMapping"), after)
    logs.commit(tmp_path, 1, logs.add(path.name, path.stat().st_size))
    assert ("column-in-clear", "email") in _clear(Example(path=tmp_path, policy=EMAIL_ONLY).audit())


def test_a_rule_for_the_present_name_is_about_this_column(tmp_path: Path) -> None:
    _mapped(tmp_path, CHANGES["renamed"])
    allowed = replace(POLICY, columns=rules(email="k_pii", contact=None))
    assert "column-in-clear" not in ids(Example(path=tmp_path, policy=allowed).audit())


def test_an_old_file_of_the_table_is_judged_too(tmp_path: Path) -> None:
    _mapped(tmp_path, CHANGES["made anew"])
    live = write(
        tmp_path / "y.parquet",
        pa.table({"col-2": ["a"]}),
        Mode.ENCRYPTED,
        column_keys={"k_finance": ["col-2"]},
    )
    logs.commit(tmp_path, 3, logs.remove("x.parquet"), logs.add(live.name, live.stat().st_size))
    assert ("column-in-clear", "email") in _clear(Example(path=tmp_path, policy=EMAIL_ONLY).audit())


@pytest.mark.parametrize("change", ["dropped", "renamed", "made anew"])
def test_an_iceberg_column(tmp_path: Path, change: str) -> None:
    catalog = InMemoryCatalog("tests", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    rows = customers(ROWS).select(["email", "city"])
    table = catalog.create_table("db.t", schema=rows.schema)
    table.append(rows)
    with table.update_schema() as update:
        if change == "renamed":
            update.rename_column("email", "contact")
        else:
            update.delete_column("email")
    if change == "made anew":
        with table.update_schema() as update:
            update.add_column("email", StringType())
    place = table.metadata_location.removeprefix("file://")
    found = _clear(Example(path=Path(place), policy=EMAIL_ONLY).audit())
    assert ("column-in-clear", "email") in found
    assert ("table-log-in-clear", "email") in found


def test_each_schema_is_one_mapping(tmp_path: Path) -> None:
    _mapped(tmp_path, CHANGES["renamed"])
    logs.commit(tmp_path, 3, _schema(logs.mapped("city", 2)))
    older = OlderNames(list_tables([str(tmp_path)]))
    names = older.of(str(tmp_path / "x.parquet"))
    assert [sorted(it.name for it in each.members.values()) for each in names] == [
        ["city", "email"],
        ["city", "contact"],
        ["city"],
    ]
    assert older.of("elsewhere/x.parquet") == ()
