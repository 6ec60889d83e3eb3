"""A column that a table has dropped or renamed gets the key of the name that it had."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table.update import RemoveSchemasUpdate

import secure_bloom as sb
from testing import delta_logs as logs
from testing.tables import KEYRING, Mode, customers, write
from tests.auditing.examples import POLICY, Example, rules
from tests.lakes.iceberg.tables import NAME, in_settings, people

ROWS = 40
WANTED = replace(POLICY, columns=rules(email="k_pii"))
ANEW = [logs.mapped("city", 2), logs.mapped("email", 3)]
CHANGES = {
    "dropped": [logs.mapped("city", 2)],
    "renamed": [logs.mapped("contact", 1), logs.mapped("city", 2)],
    "made anew": ANEW,
}


def _schema(*columns: dict[str, object]) -> dict[str, object]:
    return logs.metadata(*columns, delta_columnMapping_mode="name")


def _mapped(folder: Path, name: str, after: list[dict[str, object]]) -> str:
    """A table in clear whose live file has `col-1`, which was `name` when the file was written."""
    rows = customers(ROWS)
    path = write(
        folder / "x.parquet", pa.table({"col-1": rows["email"], "col-2": rows["city"]}), Mode.PLAIN
    )
    bounds = {"col-1": "user1@example.com", "col-2": "c1"}
    stats = json.dumps({"numRecords": ROWS, "minValues": bounds, "maxValues": bounds})
    first = _schema(logs.mapped(name, 1), logs.mapped("city", 2))
    logs.commit(folder, 0, logs.protocol("columnMapping"), first)
    logs.commit(folder, 1, logs.add(path.name, path.stat().st_size, stats=stats))
    logs.commit(folder, 2, _schema(*after))
    return str(folder)


def _keys(report: sb.RekeyReport) -> dict[str, str | None]:
    (file,) = report.files
    assert file.error is None
    return {it.column: it.key for it in file.columns}


def _last_commit(folder: str) -> str:
    return max(Path(folder, "_delta_log").glob("*.json")).read_text()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["email", "E-Mail"])
def test_a_delta_column_is_encrypted_under_the_key_of_its_older_name(
    tmp_path: Path, change: str, name: str
) -> None:
    folder = _mapped(tmp_path, name, CHANGES[change])
    report = sb.reencrypt(folder, policy=WANTED, keys=KEYRING, allow_missing_columns=True)
    shown = "contact" if change == "renamed" else "col-1 (not in the table)"
    assert _keys(report) == {shown: "k_pii", "city": None}
    added = next(json.loads(it) for it in _last_commit(folder).splitlines() if '"add"' in it)["add"]
    assert "col-2" in added["stats"]
    assert "user1" not in added["stats"]
    live = [
        (it.id, it.column)
        for it in Example(path=tmp_path, policy=WANTED).audit().findings
        if it.id == "column-in-clear" and "does not name" not in it.what
    ]
    assert live == []
    if name == "email":
        now = shown if change == "renamed" else name
        wanted = replace(POLICY, columns=rules(**{now: "k_finance"}))
        assert _keys(sb.rotate_keys(folder, policy=wanted, keys=KEYRING))[shown] == "k_finance"


def test_a_dropped_column_is_not_missing(tmp_path: Path) -> None:
    folder = _mapped(tmp_path, "email", CHANGES["dropped"])
    assert _keys(sb.reencrypt(folder, policy=WANTED, keys=KEYRING))["city"] is None
    with pytest.raises(sb.PolicyError, match="no column emial"):
        sb.reencrypt(folder, policy=replace(WANTED, columns=rules(emial="k_pii")), keys=KEYRING)


def test_a_rule_for_the_present_name_decides(tmp_path: Path) -> None:
    folder = _mapped(tmp_path, "email", CHANGES["renamed"])
    wanted = replace(POLICY, columns=rules(email="k_pii", contact=None, city="k_finance"))
    report = sb.reencrypt(folder, policy=wanted, keys=KEYRING, allow_missing_columns=True)
    assert _keys(report) == {"contact": None, "city": "k_finance"}


def test_a_column_that_no_schema_of_the_log_names_is_under_the_footers_key(tmp_path: Path) -> None:
    """Commits that were cleaned up took the name with them: nobody knows if it was sensitive."""
    folder = _mapped(tmp_path, "email", ANEW)
    for version in (0, 1, 2):
        Path(folder, "_delta_log", f"{version:020d}.json").unlink()
    size = (tmp_path / "x.parquet").stat().st_size
    stats = json.dumps({"minValues": {"col-1": "user1"}, "maxValues": {"col-1": "user1"}})
    logs.commit(tmp_path, 0, logs.protocol("columnMapping"), _schema(*ANEW))
    logs.commit(tmp_path, 1, logs.add("x.parquet", size, stats=stats))
    report = sb.reencrypt(folder, policy=WANTED, keys=KEYRING)
    assert _keys(report) == {"col-1 (not in the table)": "k_footer", "city": None}
    assert "user1" not in _last_commit(folder).split('"add"')[1]
    again = sb.reencrypt(folder, policy=WANTED, keys=KEYRING)
    assert {it.status for it in again.files} == {"unchanged"}
    other = replace(WANTED, footer_key="k_finance")
    assert _keys(sb.rotate_keys(folder, policy=other, keys=KEYRING))["city"] is None


def test_a_schema_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    folder = _mapped(tmp_path, "email", CHANGES["dropped"])
    # Two columns of one place: an error of this schema alone.
    logs.commit(tmp_path, 3, _schema(logs.mapped("x", 7), logs.mapped("y", 7)))
    logs.commit(tmp_path, 4, _schema(*CHANGES["dropped"]))
    assert _keys(sb.reencrypt(folder, policy=WANTED, keys=KEYRING))["city"] is None
    found = {(it.id, it.column) for it in Example(path=tmp_path, policy=WANTED).audit().findings}
    assert ("column-in-clear", "email") in found


@pytest.mark.parametrize("change", ["renamed", "dropped", "dropped, schema removed"])
def test_an_iceberg_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    catalog = in_settings(tmp_path, monkeypatch)
    table = people(catalog, files=1)
    is_renamed = change == "renamed"
    with table.update_schema() as update:
        if is_renamed:
            update.rename_column("email", "contact")
        else:
            update.delete_column("email")
    if "removed" in change:
        catalog.commit_table(table, (), (RemoveSchemasUpdate(schema_ids=[0]),))
    wanted = sb.KeyPolicy(footer_key="k_footer", columns=rules(email="k_pii"))
    report = sb.reencrypt(NAME, policy=wanted, keys=KEYRING, allow_missing_columns=True)
    shown = "contact" if is_renamed else "email (not in the table)"
    assert _keys(report)[shown] == "k_pii"
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    for manifest in snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
            assert 2 not in (entry.data_file.lower_bounds or {})


def _findings(place: str, policy: sb.KeyPolicy, **options: object) -> set[tuple[str, str | None]]:
    report = sb.audit(place, policy=policy, keys=KEYRING, **options)  # type: ignore[arg-type]
    return {(it.id, it.column) for it in report.findings}


def _renamed(form: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table in clear whose column `email` is called `contact` now."""
    if form == "delta":
        return _mapped(folder, "email", CHANGES["renamed"])
    table = people(in_settings(folder, monkeypatch), files=1)
    with table.update_schema() as update:
        update.rename_column("email", "contact")
    return NAME


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_rule_for_the_new_name_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    place = _renamed(form, tmp_path, monkeypatch)
    with pytest.raises(sb.PolicyError, match="no column email"):
        sb.reencrypt(place, policy=WANTED, keys=KEYRING)
    new = replace(WANTED, columns=rules(contact="k_pii"))
    assert _keys(sb.reencrypt(place, policy=new, keys=KEYRING))["contact"] == "k_pii"
    # The old file is in the table's folder still.
    found = _findings(place, new)
    assert ("column-in-clear", "contact") in found
    assert "policy-column-unknown" not in {it for it, _ in found}


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_dropped_column_without_a_rule_stays_in_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    if form == "delta":
        place = _mapped(tmp_path, "email", CHANGES["dropped"])
    else:
        place, table = NAME, people(in_settings(tmp_path, monkeypatch), files=1)
        with table.update_schema() as update:
            update.delete_column("email")
    city = replace(WANTED, columns=rules(city="k_pii"))
    keys = _keys(sb.reencrypt(place, policy=city, keys=KEYRING))
    assert sorted(keys.values(), key=str) == (
        [None, "k_pii"] if form == "delta" else [None, None, "k_pii"]
    )
    found = _findings(place, WANTED)
    assert ("column-in-clear", "email") in found
    # Live files have it: the rule is about a column that is there.
    assert ("policy-column-unknown", "email") not in found


def test_a_renamed_column_of_a_plain_folder_is_another_column(tmp_path: Path) -> None:
    for name in ("email", "mail"):
        write(tmp_path / f"{name}.parquet", pa.table({name: ["a@example.org"]}), Mode.PLAIN)
    place = str(tmp_path)
    assert sb.read_table(place).num_columns == 2
    report = sb.reencrypt(place, policy=WANTED, keys=KEYRING)
    assert {it.column: it.key for file in report.files for it in file.columns} == {
        "email": "k_pii",
        "mail": None,
    }
    assert _findings(place, WANTED) == set()
    assert _findings(place, WANTED, strict=True) == {("policy-column-unclassified", "mail")}
    both = replace(WANTED, columns=rules(email="k_pii", mail="k_pii"))
    report = sb.reencrypt(place, policy=both, keys=KEYRING)
    assert {it.key for file in report.files for it in file.columns} == {"k_pii"}
