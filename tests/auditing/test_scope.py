"""A report says what the audit was told to look at, and what it did not look at."""

from __future__ import annotations

import hashlib
import json
from io import StringIO
from pathlib import Path

from rich.console import Console

from secure_bloom.auditing.formats.html import render_html
from secure_bloom.auditing.formats.sarif import render_sarif
from secure_bloom.auditing.formats.terminal import render_text
from secure_bloom.auditing.scope import AuditScope
from testing.tables import Mode
from tests.auditing.examples import POLICY, Example, sound

POLICY_TEXT = '[footer]\nkey = "k_footer"\n[columns.email]\nkey = "k_pii"\n'


def test_a_policy_file_is_named_with_its_digest(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY_TEXT)
    scope = Example(path=sound(tmp_path), policy=policy).audit(ignore="mixed-rules").scope
    assert scope.policy == str(policy)
    assert scope.policy_sha256 == hashlib.sha256(POLICY_TEXT.encode()).hexdigest()
    assert scope.settings() == ["--ignore mixed-rules"]
    assert scope.versions.keys() == {"secure-bloom", "pyarrow", "python"}


def test_the_digest_is_that_of_included_files_too(tmp_path: Path) -> None:
    policy, more = tmp_path / "policy.toml", tmp_path / "more.toml"
    policy.write_text('include = ["more.toml"]\n' + POLICY_TEXT)
    example = Example(path=sound(tmp_path), policy=policy)
    digests = []
    for text in ("[columns.iban]\n", "[columns.zip]\n"):
        more.write_text(text)
        wanted = hashlib.sha256(policy.read_bytes() + more.read_bytes()).hexdigest()
        assert example.audit(ignore=["policy-column-unknown"]).scope.policy_sha256 == wanted
        digests.append(wanted)
    assert digests[0] != digests[1]


def test_a_policy_that_cannot_be_used_is_named_too(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("blom = 1\n")
    assert Example(path=sound(tmp_path), policy=policy).audit().scope.policy == str(policy)


def test_a_policy_made_in_python_has_no_name(tmp_path: Path) -> None:
    scope = Example(path=sound(tmp_path), policy=POLICY).audit(check_values=True).scope
    assert (scope.policy, scope.policy_sha256) == (None, None)
    assert scope.settings() == ["--check-values"]


def test_what_options_leave_out_is_told() -> None:
    everything = AuditScope(options={"check_values": True, "spark_properties": True})
    assert everything.not_looked_at() == []
    little = AuditScope(options={"without_keys": True}, files_left_out=9_990)
    assert [words.partition(" (")[0] for words in little.not_looked_at()] == [
        "9,990 files that are not in the sample",
        "what only a key opens",
        "values in data pages",
        "properties of Spark sessions",
    ]


def test_every_report_says_why_a_finding_is_accepted(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    accepted = '[[audit.ignore]]\nfinding = "column-in-clear:email"\nreason = "a test table"\n'
    policy.write_text(POLICY_TEXT + accepted + "until = 2999-01-31\n")
    report = Example(path=sound(tmp_path, Mode.PLAIN), policy=policy).audit()
    assert "column-in-clear" in {it.id for it in report.ignored}
    why = "a test table (until 2999-01-31)"
    assert report.to_dict()["scope"]["accepted"] == {"column-in-clear:email": why}
    # No option was given.
    assert report.scope.settings() == []
    printed = StringIO()
    render_text(report, Console(file=printed, width=200))
    for text in (render_sarif(report), render_html(report), printed.getvalue()):
        assert why in text
    results = json.loads(render_sarif(report))["runs"][0]["results"]
    [said] = [it["suppressions"][0]["justification"] for it in results if "suppressions" in it]
    assert said == why
