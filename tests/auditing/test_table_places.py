"""Each finding counts for the table that its place belongs to: a log, a folder, another file."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from rich.console import Console

import secure_bloom as sb
from secure_bloom.auditing.findings import AuditReport
from secure_bloom.auditing.formats.html import render_html
from secure_bloom.auditing.formats.terminal import render_text
from secure_bloom.encryption.policy import KeyPolicy
from testing.tables import KEYRING, customers, keyring_json
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
