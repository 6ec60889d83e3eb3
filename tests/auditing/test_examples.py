"""Every id has an example that triggers it and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.auditing.findings import Severity
from secure_bloom.auditing.rules import RULES
from tests.auditing.examples import EXAMPLES, POLICY, SIGNED, Example, filtered
from tests.auditing.page import PAGE, render
from tests.surgery import assert_tells_no_secret
from tests.tables import KEYRING, Mode


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_triggers_its_id_and_nothing_else(tmp_path: Path, name: str) -> None:
    report = EXAMPLES[name](tmp_path).audit()
    found = report.notes if RULES[name].severity is Severity.NOTE else report.findings
    assert {finding.id for finding in found} == {name}
    # Only what is seen where a footer cannot be read comes with that.
    assert {finding.id for finding in report.ignored} <= {"unchecked-footer"}
    for finding in found:
        assert finding.severity is RULES[name].severity
        assert finding.fix == RULES[name].fix
        assert_tells_no_secret(finding.what)


@pytest.mark.parametrize(
    "name", [name for name, rule in RULES.items() if "secure-bloom reencrypt PATH" in rule.fix]
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
