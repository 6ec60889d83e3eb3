"""Every id has an example that triggers it and nothing else."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import secure_bloom as sb
from secure_bloom.auditing.findings import Severity
from secure_bloom.auditing.formats.mistakes import group_report, parts_of_fix
from secure_bloom.auditing.formats.terminal import render_text
from secure_bloom.auditing.rules import RULES
from testing.surgery import assert_tells_no_secret
from testing.tables import KEYRING, Mode, customers, write
from tests.auditing.examples import EXAMPLES, POLICY, SIGNED, Example, filtered
from tests.auditing.page import PAGE, render


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_triggers_its_id_and_nothing_else(tmp_path: Path, name: str) -> None:
    wrong = EXAMPLES[name](tmp_path)
    report = wrong.audit()
    found = report.notes if RULES[name].severity is Severity.NOTE else report.findings
    assert {finding.id for finding in found} == {name}
    # Only what is seen where a footer cannot be read comes with that.
    assert {finding.id for finding in report.ignored} <= {"unchecked-footer"}
    for finding in found:
        assert finding.severity is RULES[name].severity
        # A command names the file; what is removed is named where one file is shown.
        place = str(wrong.path) if "secure-bloom" in finding.fix else "PATH"
        said = finding.fix.replace(place, "PATH")
        # Of a table log the part that is about the table's format.
        assert said == RULES[name].fix or (name == "table-log-in-clear" and said in RULES[name].fix)
        assert_tells_no_secret(finding.what)


def test_a_fix_is_a_command_to_copy(tmp_path: Path) -> None:
    folder, policy = tmp_path / "my lake", tmp_path / "policy.toml"
    folder.mkdir()
    policy.write_text('[footer]\nkey = "k_footer"\n[columns.email]\nkey = "k_pii"\nbloom = true\n')
    write(folder / "x.parquet", customers(10), Mode.PLAIN)
    (folder / "x.parquet.bak").write_bytes((folder / "x.parquet").read_bytes())
    report = sb.audit(folder, policy=policy, keys=KEYRING)
    fixes = [it.fix for it in report.findings if it.id == "column-in-clear"]
    command = f"`secure-bloom reencrypt {shlex.quote(str(folder))} --policy {policy}`"
    assert any(fix.startswith(command) for fix in fixes)
    shown = [mistake.fix for mistake in group_report(report) if mistake.paths[0].endswith(".bak")]
    assert shown
    assert all(f"`rm -f {shlex.quote(str(folder / 'x.parquet.bak'))}`" in fix for fix in shown)


def test_the_fix_removes_all_copies_by_one_command(tmp_path: Path) -> None:
    folder, policy = tmp_path / "my lake", tmp_path / "policy.toml"
    folder.mkdir()
    policy.write_text('[footer]\nkey = "k_footer"\n[columns.email]\nkey = "k_pii"\n')
    write(folder / "x.parquet", customers(10), Mode.ENCRYPTED)
    copies = [folder / name for name in ("a 'b.bak", "-rf.old", ".x.swp")]
    for copy in copies:
        write(copy, customers(10), Mode.PLAIN)
    report = sb.audit(folder, policy=policy, keys=KEYRING, severity="critical")
    ((command, _),) = [part for part in parts_of_fix(group_report(report)[0].fix) if part[1]]
    console = Console(file=io.StringIO(), width=40)
    render_text(report, console)
    assert f"\n    {command}\n" in console.file.getvalue()  # type: ignore[attr-defined]
    subprocess.run(command, shell=True, check=True)
    assert [path.name for path in folder.iterdir()] == ["x.parquet"]
    in_json = json.loads(report.to_json())["findings"]
    assert all(shlex.quote(it["path"]) in it["fix"] for it in in_json)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, rule in RULES.items()
        # Keys and old entries of a log have to leave the lake, too.
        if "secure-bloom reencrypt PATH" in rule.fix
        and name not in ("keys-in-lake", "table-log-in-clear")
    ],
)
def test_what_re_encryption_is_said_to_mend_it_mends(tmp_path: Path, name: str) -> None:
    wrong = EXAMPLES[name](tmp_path)
    sb.reencrypt(wrong.path, policy=wrong.policy, keys=KEYRING, output=tmp_path / "new")
    assert replace(wrong, path=tmp_path / "new").audit().findings == ()


def test_every_id_has_an_example() -> None:
    assert list(EXAMPLES) == list(RULES)


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize(
    ("mode", "policy"),
    [(Mode.ENCRYPTED, POLICY), (Mode.SIGNED, SIGNED)],
    ids=["encrypted", "signed"],
)
def test_a_sound_file_is_clean(tmp_path: Path, mode: Mode, policy: object, values: bool) -> None:
    path = filtered(tmp_path, "email", "city", "score", mode=mode)
    report = Example(path=path, policy=policy).audit(check_values=values)
    assert report.findings == ()
    assert (report.files, report.columns_checked) == (1, 5)


def test_the_page_on_audits_has_every_finding() -> None:
    """`python -m tests.auditing.page` writes the reference anew."""
    assert PAGE.read_text() == render()
