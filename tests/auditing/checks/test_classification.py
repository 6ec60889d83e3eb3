"""With `--strict` the policy must speak of each column."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from testing.command_line import run
from testing.tables import KEYRING, MASTER_KEYS, customers, keyring_json
from tests.auditing.examples import POLICY, ROWS, sound

_POLICY = """
[kms]
client = "keyring"
keyring = "keys.json"
[footer]
key = "k_footer"
[columns.email]
key = "k_pii"
[columns.iban]
key = "k_finance"
"""


def _unruled(folder: Path, policy: str, **options: object) -> list[str | None]:
    path = folder / "policy.toml"
    path.write_text(_POLICY + policy)
    (folder / "keys.json").write_text(keyring_json(MASTER_KEYS))
    report = sb.audit(folder / "table", policy=path, keys=KEYRING, strict=True, **options)  # type: ignore[arg-type]
    assert {it.id for it in report.findings} <= {"policy-column-unclassified"}
    return [it.column for it in report.findings]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    folder = tmp_path / "table" / "country=FI"
    folder.mkdir(parents=True)
    sound(folder, table=customers(ROWS).append_column("tax_id", pa.array(range(ROWS))))
    return tmp_path


def test_columns_that_no_rule_names_are_findings(table: Path) -> None:
    others = [name for name in customers(1).column_names if name not in ("email", "iban")]
    assert _unruled(table, "") == [*others, "tax_id", "country"]
    listed = [*(name for name in others if name != "city"), "ci*", "country"]
    assert _unruled(table, f"[classified]\nclear = {listed}") == ["tax_id"]
    assert _unruled(table, f"[columns.tax_id]\n[classified]\nclear = {listed}") == []
    assert _unruled(table, '[columns."*"]') == []


def test_a_rule_for_all_columns_takes_no_key(table: Path) -> None:
    path = table / "policy.toml"
    path.write_text(_POLICY + '[columns."*"]\nkey = "k_pii"\n')
    report = sb.audit(table / "table", policy=path, keys=KEYRING)
    assert [it.id for it in report.findings] == ["policy-invalid"]
    assert "uniform = true" in report.findings[0].message


def test_columns_with_values_like_personal_data_are_notes(tmp_path: Path) -> None:
    """Neither the note nor its reason has a value."""
    mails = pa.array([f"{i}@post.fi" for i in range(ROWS)])
    mixed = pa.array(["", *(f"{i}@post.fi" for i in range(2, ROWS)), ""])
    later = pa.array([*(None for _ in range(ROWS // 2)), *mails.to_pylist()[ROWS // 2 :]])
    made = customers(ROWS).append_column("contact", mails).append_column("note", mixed)
    made = made.append_column("later", later)
    path = sound(tmp_path, table=made, row_group_size=ROWS // 2)
    report = sb.audit(path, policy=POLICY, keys=KEYRING)
    assert report.verdict == "clean"
    found = {it.column: it.what for it in report.notes if it.id == "policy-column-looks-sensitive"}
    assert found.keys() == {"contact", "later"}
    assert "e-mail addresses" in found["contact"]
    assert "@post.fi" not in found["contact"]


#: The values of a column that says nothing by its name, and what the note calls them.
CONTENTS: dict[str, tuple[list[object], str]] = {
    "IBANs": (["DE89370400440532013000", "GB82WEST12345698765432"] * 30, "IBANs"),
    "cards": (["4111 1111 1111 1111", "5500-0000-0000-0004"] * 30, "card numbers"),
    "cards as numbers": ([4111111111111111, 5500000000000004] * 30, "card numbers"),
    "phones": (["+49 30 1234567", "+1 (555) 010-9999"] * 30, "phone numbers"),
    "SSN": (["123-45-6789", "987-65-4321"] * 30, "national ids"),
    "CPF": (["123.456.789-09", "987.654.321-00"] * 30, "national ids"),
    "NINO": (["QQ123456C", "AB654321D"] * 30, "national ids"),
}


@pytest.mark.parametrize("what", CONTENTS)
def test_contents_like_personal_data_are_a_note(tmp_path: Path, what: str) -> None:
    values, kind = CONTENTS[what]
    path = sound(tmp_path, table=customers(ROWS).append_column("x", pa.array(values)))
    report = sb.audit(path, policy=POLICY, keys=KEYRING, check_values=True)
    (note,) = (it for it in report.notes if it.id == "policy-column-looks-sensitive")
    assert (note.column, kind in note.what) == ("x", True)
    assert not any(str(value) in report.to_json() for value in values)


def test_other_numbers_are_no_cards(tmp_path: Path) -> None:
    values = pa.array([4111111111111111 + n for n in range(ROWS)])
    path = sound(tmp_path, table=customers(ROWS).append_column("x", values))
    report = sb.audit(path, policy=POLICY, keys=KEYRING, check_values=True)
    assert "policy-column-looks-sensitive" not in {it.id for it in report.notes}


def test_the_command_line_takes_strict(table: Path) -> None:
    path = table / "policy.toml"
    path.write_text(_POLICY)
    (table / "keys.json").write_text(keyring_json(MASTER_KEYS))
    assert run("audit", str(table / "table"), "--policy", str(path)).returncode == 0
    assert run("audit", str(table / "table"), "--policy", str(path), "--strict").returncode == 1
