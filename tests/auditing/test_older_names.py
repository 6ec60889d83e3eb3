"""A column that was dropped or renamed is judged by the names that it had."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import StringType

import secure_bloom as sb
from secure_bloom.auditing.table_places import OlderNames
from secure_bloom.calling.options import FooterMode
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


CONDITION = {"operation": "DELETE", "operationParameters": {"predicate": "[\"(%s#1 = 'a')\"]"}}


def _texts(kind: str, name: str) -> list[dict[str, object]]:
    """The actions of a version in which a text quotes values of the first column."""
    first = logs.mapped(name, 1)
    others = [logs.mapped("city", 2)]
    configuration = {"delta_columnMapping_mode": "name"}
    actions: list[dict[str, object]] = []
    if kind == "default":
        first["metadata"]["CURRENT_DEFAULT"] = "'user1@example.com'"
    elif kind == "derived":
        computed = logs.mapped("domain", 3)
        computed["metadata"]["delta.generationExpression"] = f"substr({name}, 1, 4)"
        others.append(computed)
    elif kind == "constraint":
        configuration["delta_constraints_c"] = f"{name} != 'user1@example.com'"
    else:
        predicate = CONDITION["operationParameters"]["predicate"] % name.upper()  # type: ignore[index]
        actions.append({"commitInfo": CONDITION | {"operationParameters": {"p": predicate}}})
    return [logs.metadata(first, *others, **configuration), *actions]


@pytest.mark.parametrize("kind", ["condition", "default", "constraint", "derived"])
@pytest.mark.parametrize("rule", ["email", "contact"])
def test_a_text_of_a_delta_log_calls_a_column_by_any_of_its_names(
    tmp_path: Path, kind: str, rule: str
) -> None:
    _mapped(tmp_path, CHANGES["renamed"])
    other = "contact" if rule == "email" else "email"
    logs.commit(tmp_path, 3, *_texts(kind, other))
    logs.commit(tmp_path, 4, _schema(*CHANGES["renamed"]))
    policy = replace(POLICY, columns=rules(**{rule: "k_pii"}))
    found = _clear(Example(path=tmp_path, policy=policy).audit())
    if kind == "derived":
        assert ("column-derived-in-clear", "domain") in found
    else:
        assert ("table-log-in-clear", rule) in found


def _encrypted(folder: Path, after: list[dict[str, object]], *, key: str) -> Path:
    table = pa.table({"col-1": customers(ROWS)["email"], "col-2": customers(ROWS)["city"]})
    path = write(folder / "x.parquet", table, Mode.ENCRYPTED, column_keys={key: ["col-1"]})
    first = _schema(logs.mapped("email", 1), logs.mapped("city", 2))
    logs.commit(folder, 0, logs.protocol("columnMapping"), first)
    logs.commit(folder, 1, logs.add(path.name, path.stat().st_size), _schema(*after))
    return folder


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("key", ["k_pii", "k_finance"])
def test_a_rule_of_an_older_name_is_one_of_the_file(tmp_path: Path, change: str, key: str) -> None:
    """The rule is needed as long as a file has the column, and says which key it has."""
    folder = _encrypted(tmp_path, CHANGES[change], key=key)
    policy = replace(POLICY, columns=rules(email="k_pii", city=None))
    found = {name for name, _ in _clear(Example(path=folder, policy=policy).audit())}
    assert found == (set() if key == "k_pii" else {"column-wrong-key", "key-not-in-policy"})


def test_a_schema_of_arrow_has_the_names_of_the_file(tmp_path: Path) -> None:
    field = pa.field("col-1", pa.string(), metadata={"note": "such as user1@example.com"})
    table = pa.table([customers(ROWS)["email"]], schema=pa.schema([field]))
    write(tmp_path / "x.parquet", table, Mode.SIGNED, column_keys={"k_pii": ["col-1"]})
    size = (tmp_path / "x.parquet").stat().st_size
    named = _schema(logs.mapped("email", 1))
    logs.commit(tmp_path, 0, logs.protocol("columnMapping"), named, logs.add("x.parquet", size))
    signed = replace(EMAIL_ONLY, footer_mode=FooterMode.SIGNED)
    assert "schema-in-clear" in ids(Example(path=tmp_path, policy=signed).audit())


def _iceberg(folder: Path, rows: pa.Table, *partitions: str) -> Table:
    catalog = InMemoryCatalog("tests", warehouse=str(folder))
    catalog.create_namespace("db")
    without_bounds = {"write.metadata.metrics.default": "none"}
    table = catalog.create_table("db.t", schema=rows.schema, properties=without_bounds)
    with table.update_spec() as update:
        for name in partitions:
            update.add_field(name, IdentityTransform(), f"part_{name}")
    table.append(rows)
    return table


def _place(table: Table) -> Path:
    return Path(table.metadata_location.removeprefix("file://"))


def _audited(table: Table) -> set[tuple[str, str | None]]:
    return _clear(Example(path=_place(table), policy=EMAIL_ONLY).audit())


def test_values_that_partitioned_older_files_of_iceberg_are_in_old_manifests(
    tmp_path: Path,
) -> None:
    table = _iceberg(tmp_path, customers(3).select(["email", "city"]), "email")
    with table.update_spec() as update:
        update.remove_field("part_email")
    with table.update_schema() as schema:
        schema.rename_column("email", "contact")
    table.overwrite(table.scan().to_arrow())
    for part in (tmp_path / "db" / "t" / "data").glob("part_email=*"):
        shutil.rmtree(part)
    assert ("table-log-in-clear", "email") in _audited(table.refresh())


@pytest.mark.parametrize("kind", ["default", "statistics"])
def test_metadata_of_iceberg_show_defaults_and_hashes_of_values(tmp_path: Path, kind: str) -> None:
    table = _iceberg(tmp_path, customers(3).select(["email", "city"]))
    document = json.loads(_place(table).read_text())
    if kind == "default":
        document |= {"format-version": 3, "next-row-id": 0}
        document["schemas"][0]["fields"][0]["write-default"] = "user1@example.com"
    else:
        number = document["current-snapshot-id"]
        blob = {"type": "apache-datasketches-theta-v1", "fields": [1], "sequence-number": 1}
        sizes = {"file-size-in-bytes": 9, "file-footer-size-in-bytes": 1}
        blobs = [blob | {"snapshot-id": number}]
        found = {"snapshot-id": number, "statistics-path": "s.stats", "blob-metadata": blobs}
        document["statistics"] = [found | sizes]
    assert ("table-log-in-clear", "email") not in _audited(table)
    _place(table).write_text(json.dumps(document))
    assert ("table-log-in-clear", "email") in _audited(table)


def test_a_copy_in_the_folder_of_an_iceberg_table_has_no_ids_of_fields(tmp_path: Path) -> None:
    table = _iceberg(tmp_path, pa.table({"id": [1]}))
    write(tmp_path / "db" / "t" / "data" / "backup.parquet", customers(ROWS))
    assert ("column-in-clear", "email") in _audited(table)


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
