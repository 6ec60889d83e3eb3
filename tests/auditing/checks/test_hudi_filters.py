"""Hudi's filters of record keys are noted where no rule forbids them (`hudi_filters`)."""

from __future__ import annotations

from pathlib import Path

import pytest

import secure_bloom as sb
from testing.tables import KEYRING, Mode
from tests.auditing.datasets import ids
from tests.auditing.examples import POLICY, SIGNED, Example, sound


@pytest.mark.parametrize("column", ["email", "city"])
@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED], ids=lambda mode: mode.name)
def test_a_filter_is_a_note_or_a_finding(tmp_path: Path, mode: Mode, column: str) -> None:
    path = sound(tmp_path, mode)
    run = sb.hudi.add_record_key_filter(path, column=column, keys=KEYRING)
    report = Example(path=path, policy=SIGNED if mode is Mode.SIGNED else POLICY).audit()
    noted = [it.what for it in report.notes if it.id == "hudi-filter-present"]
    if mode is Mode.SIGNED and column == "email":
        # The writer refuses it, so there is nothing to note.
        assert (len(run.failed), noted, ids(report)) == (1, [], [])
    else:
        readers = "anyone" if mode is Mode.SIGNED else "whoever has the footer key"
        assert noted == [f"{readers} can ask which record keys Hudi's filter holds"]
        assert "hudi-record-keys-in-clear" not in ids(report)
