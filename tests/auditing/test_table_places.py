"""Each finding counts for the table that its place belongs to: a log, a folder, another file."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from rich.console import Console

import secure_bloom as sb
from secure_bloom.auditing.findings import AuditReport
from secure_bloom.auditing.formats.html import render_html
from secure_bloom.auditing.formats.terminal import render_text
from secure_bloom.encryption.policy import KeyPolicy
from testing.command_line import run
from testing.tables import KEYRING, MASTER_KEYS, customers, keyring_json
from tests.auditing.examples import EXAMPLES, POLICY, ROWS, rules, sound
from tests.lakes.iceberg.tables import NAME, in_settings


def _lake(folder: Path) -> Path:
    """Tables with a mistake in a log, other files, names of folders, or none; and a loose file."""
    lake = folder / "lake"
    for name in ("events", "people", "staff", "orders"):
        (lake / name).mkdir(parents=True)
    EXAMPLES["table-log-in-clear"](lake / "events")
    EXAMPLES["partition-in-clear"](lake / "people")
    sound(lake / "orders")
    path = sound(lake / "staff")
    (lake / "staff" / "old").mkdir()
    pq.write_table(customers(ROWS), lake / "staff" / "old" / "copy.bak")
    (lake / "staff" / "keyring.json").write_text(keyring_json())
    material = f"_KEY_MATERIAL_FOR_gone.{path.name}.json"
    (lake / "staff" / material).write_text("{}")
    (lake / "loose.bak").write_bytes((lake / "staff" / "old" / "copy.bak").read_bytes())
    return lake


def _policy() -> KeyPolicy:
    names = [f"{it}/*" for it in ("events", "people", "staff", "orders")]
    return replace(POLICY, tables={name: replace(POLICY, table=name) for name in names})


def _text(report: AuditReport, *, verbose: bool = False) -> str:
    file = io.StringIO()
    render_text(report, Console(file=file, width=200), verbose=verbose)
    return file.getvalue()


@pytest.mark.parametrize("named", [True, False], ids=["tables", "folders"])
def test_each_finding_counts_for_its_table(tmp_path: Path, named: bool) -> None:
    lake = _lake(tmp_path)
    policy = _policy() if named else POLICY
    report = sb.audit(lake, policy=policy, keys=KEYRING)
    shown = {
        it["table"].removeprefix(f"{lake}/").removesuffix("/*"): (it["findings"], it["worst"])
        for it in report.to_dict()["tables"]
    }
    places = [(it.path or "").removeprefix(f"{lake}/").partition("/")[0] for it in report.findings]
    assert shown["events"] == (places.count("events"), "critical") == (1, "critical")
    assert shown["people"] == (places.count("people"), "critical")
    assert shown["staff"] == (places.count("staff"), "critical")
    assert places.count("staff") >= 4
    assert shown["orders"] == (0, None)
    # A file of no table counts for none, and is a finding.
    assert len(shown) == 4
    assert "loose.bak" in places

    text = re.sub(r"\s+", " ", _text(report))
    assert re.search(r"events(/\*)? \(1 file\): 1 critical ", text), text
    assert re.search(r"orders(/\*)? \(1 file\): clean ", text), text
    page = render_html(report, subject="lake", created=datetime.now(UTC))
    assert re.search(r'events(/\*)?</th><td>1</td><td class="critical">1</td>', page)


def test_the_lines_of_tables_say_what_they_count(tmp_path: Path) -> None:
    """A mistake in three files is one mistake at the end of the report, and three findings."""
    for name in ("a", "b", "c"):
        folder = tmp_path / "people" / name
        folder.mkdir(parents=True)
        sound(folder, column_keys={"k_finance": ["iban"]})
    (tmp_path / "orders").mkdir()
    sound(tmp_path / "orders")
    tables = {name: replace(POLICY, table=name) for name in ("people/*", "orders/*")}
    report = sb.audit(tmp_path, policy=replace(POLICY, tables=tables), keys=KEYRING)
    lines = _text(report).splitlines()
    at = lines.index("people/* (3 files): 3 critical")
    assert lines[at - 1] == "findings by table, each file counted:"
    assert lines[-1].endswith("1 critical")
    page = render_html(report, subject="lake", created=datetime.now(UTC))
    assert "The findings of each table, each file counted." in page


def test_a_column_that_no_file_of_a_table_has_counts_for_it(tmp_path: Path) -> None:
    policies = {}
    for name in ("people", "orders"):
        (tmp_path / name).mkdir()
        sound(tmp_path / name)
        policies[f"{name}/*"] = replace(POLICY, table=f"{name}/*")
    odd = replace(policies["people/*"], columns={**POLICY.columns, **rules(emial="k_pii")})
    policy = replace(POLICY, tables={**policies, "people/*": odd})
    tables = sb.audit(tmp_path, policy=policy, keys=KEYRING).to_dict()["tables"]
    assert [(it["table"], it["findings"]) for it in tables] == [("people/*", 1), ("orders/*", 0)]


def test_the_metadata_of_an_iceberg_table_is_a_place_of_it(tmp_path: Path) -> None:
    """Bounds are in manifests, named by the metadata file; the table's data files are elsewhere."""
    catalog = InMemoryCatalog("places", warehouse=str(tmp_path / "lake"))
    catalog.create_namespace("db")
    table = catalog.create_table("db.people", customers(ROWS).schema)
    table.append(customers(ROWS))
    folder = Path(table.metadata_location).parents[1]
    (tmp_path / "lake" / "orders").mkdir()
    sound(tmp_path / "lake" / "orders")
    roots = [table.metadata_location, tmp_path / "lake" / "orders"]
    report = sb.audit(roots, policy=POLICY, keys=KEYRING)
    (people, *_) = report.tables
    own = [it for it in report.findings if str(folder) in str(it.path)]
    assert {"table-log-in-clear", "column-in-clear"} <= {it.id for it in own}
    assert sum(people.findings.values()) == len(own)
    assert json.loads(report.to_json())["tables"][0]["findings"] == len(own)


def test_a_table_that_a_sample_left_out_is_used(tmp_path: Path) -> None:
    names = ("orders", "people", "staff")
    for name in names:
        (tmp_path / name).mkdir()
        sound(tmp_path / name)
    tables = {f"{it}/*": replace(POLICY, table=f"{it}/*") for it in (*names, "gone")}
    policy = replace(POLICY, tables=tables)
    report = sb.audit(tmp_path, policy=policy, keys=KEYRING, sample=1)
    unused = [it.what for it in (*report.findings, *report.notes) if it.id == "policy-table-unused"]
    assert unused == ['no file belongs to [tables."gone/*"]']


def test_a_table_of_a_catalog_is_audited_beside_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = in_settings(tmp_path, monkeypatch)
    table = catalog.create_table("db.people", customers(ROWS).schema)
    table.append(customers(ROWS))
    folder = tmp_path / "protected"
    folder.mkdir()
    sound(folder)
    for roots in ([NAME, str(folder)], [str(folder), NAME]):
        report = sb.audit(roots, policy=POLICY, keys=KEYRING)
        assert {it.table for it in report.tables} == {NAME, str(folder)}
        fixes = {it.fix for it in report.findings if it.id == "column-in-clear"}
        assert fixes
        assert all(f"secure-bloom reencrypt {NAME}" in it for it in fixes)
    # A folder above the table does not say which of its files count, and the hint says what does.
    with pytest.raises(sb.UnsupportedFeatureError, match="whoever reads") as caught:
        sb.audit(Path(table.location().removeprefix("file://")).parent, policy=POLICY, keys=KEYRING)
    assert "give iceberg://CATALOG/NAMESPACE.TABLE in the place of" in str(caught.value.hint)


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
