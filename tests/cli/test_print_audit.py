"""Each form of an audit's report, on stdout or in a file; a report that cannot be written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from secure_bloom.auditing.findings import AuditReport
from secure_bloom.cli.audit_verb import FORMS, write_report, write_text
from secure_bloom.errors import PolicyError

#: What each form begins with.
STARTS = {"text": "paths are below lake/", "json": "{", "sarif": "{", "html": "<!DOCTYPE html>"}
REPORT = AuditReport(paths=("lake/a.parquet",), columns=("email",), columns_checked=1)


@pytest.mark.parametrize("form", FORMS)
def test_stdout_and_a_file_get_the_same(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, form: str
) -> None:
    write_report(form, REPORT, ("lake",), None)
    shown = capsys.readouterr().out
    write_report(form, REPORT, ("lake",), tmp_path / "report")
    stored = (tmp_path / "report").read_text()
    assert shown.startswith(STARTS[form])
    # A page says when it was made.
    assert stored.startswith(STARTS[form]) if form == "html" else stored == shown
    if STARTS[form] == "{":
        json.loads(stored)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="No such file") as caught:
        write_text("x", tmp_path / "nowhere" / "report")
    assert caught.value.path == str(tmp_path / "nowhere" / "report")


def test_what_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="it contains characters that are not text"):
        write_text("\ud800", tmp_path / "report")
