"""Whole datasets: what counts, what is ignored, and the report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.auditing.findings import Severity
from secure_bloom.errors import PolicyError
from testing import delta_logs as logs
from testing.tables import KEYRING, Mode
from tests.auditing.datasets import ids
from tests.auditing.examples import (
    EXAMPLES,
    POLICY,
    Example,
    set_key_metadata,
    sound,
)


class TestWhatCounts:
    def test_a_column_in_clear_is_found_at_its_place(self, tmp_path: Path) -> None:
        path = sound(tmp_path, column_keys={"k_finance": ["iban"]}, row_group_size=30)
        report = Example(path=path).audit()
        assert [(f.path, f.row_group, f.column) for f in report.findings] == [
            (str(path), 0, "email"),
            (str(path), 1, "email"),
        ]
        place = f"{path}: row group 1: column email: "
        assert report.findings[1].message == (
            f"{place}the policy says k_pii, the column is stored in clear"
        )

    def test_a_table_without_files_has_no_unknown_columns(self, tmp_path: Path) -> None:
        """No file tells what columns there are; that there is none is told."""
        logs.commit(tmp_path, 0, *logs.start(logs.column("email", "string")))
        assert ids(sb.audit(tmp_path, policy=POLICY, keys=KEYRING)) == ["unchecked-file"]

    def test_ignored_findings_are_kept_apart(self, tmp_path: Path) -> None:
        found = Example(path=sound(tmp_path, Mode.PLAIN))
        every = found.audit()
        assert Counter(ids(every)) == {"column-in-clear": 2, "footer-not-encrypted": 1}
        report = found.audit(ignore=["footer-not-encrypted", "column-in-clear:iban"])
        assert [(f.id, f.column) for f in report.findings] == [("column-in-clear", "email")]
        assert [(f.id, f.column) for f in report.ignored] == [
            ("footer-not-encrypted", None),
            ("column-in-clear", "iban"),
        ]
        assert len(report.to_dict()["ignored"]) == 2

    def test_less_severe_findings_are_ignored_too(self, tmp_path: Path) -> None:
        report = Example(path=sound(tmp_path, Mode.PLAIN)).audit(severity="critical")
        assert set(ids(report)) == {"column-in-clear"}
        assert [f.id for f in report.ignored] == ["footer-not-encrypted"]

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"ignore": ["column-in-claer"]}, ["column-in-claer", "column-in-clear"]),
            ({"severity": "hihg"}, ["hihg", "high"]),
            ({"sample": 0}, ["at least one"]),
        ],
    )
    def test_an_option_that_means_nothing_is_an_error(
        self, tmp_path: Path, options: Mapping[str, object], words: list[str]
    ) -> None:
        with pytest.raises(PolicyError) as caught:
            Example(path=sound(tmp_path)).audit(**options)
        for word in words:
            assert word in f"{caught.value} {caught.value.hint}"

    def test_columns_that_could_not_be_looked_at_are_not_counted(self, tmp_path: Path) -> None:
        found = EXAMPLES["unchecked-column"](tmp_path)
        assert found.audit().columns_checked == 4
        assert found.audit(keys=None, without_keys=True).columns_checked == 0

    def test_a_column_of_which_something_is_unchecked_is_not_counted(self, tmp_path: Path) -> None:
        assert EXAMPLES["unchecked-values"](tmp_path).audit(check_values=False).columns_checked == 5
        assert EXAMPLES["unchecked-values"](tmp_path).audit().columns_checked == 4

    def test_a_forged_footer_counts_for_nothing(self, tmp_path: Path) -> None:
        report = EXAMPLES["unchecked-signature"](tmp_path).audit()
        assert report.columns_checked == 0

    def test_one_text_to_ignore_is_one_item(self, tmp_path: Path) -> None:
        path = sound(tmp_path, column_keys={"k_finance": ["iban"]})
        report = Example(path=path).audit(ignore="column-in-clear:email")
        assert (ids(report), len(report.ignored)) == ([], 1)

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            ({"severity": "hihg"}, "did you mean 'high'"),
            ({"ignore": ["column-in-clear:"]}, "names no column"),
            ({"sample": "3"}, "sample"),
            ({"sample": True}, "sample"),
            ({"policy": {"columns": {}}}, "policy"),
            ({"policy": None}, "policy"),
            ({"paths": None}, "path"),
            ({"paths": [None]}, "path"),
        ],
    )
    def test_an_argument_that_cannot_be_is_an_error_for_people(
        self, tmp_path: Path, options: dict[str, object], told: str
    ) -> None:
        arguments = {"paths": sound(tmp_path), "policy": POLICY, "keys": KEYRING, **options}
        with pytest.raises(PolicyError) as raised:
            sb.audit(arguments.pop("paths"), **arguments)
        assert told in f"{raised.value} {raised.value.hint}"

    def test_a_name_without_end_is_cut(self, tmp_path: Path) -> None:
        path = sound(tmp_path)
        name = json.dumps("A" * 60_000).encode()
        set_key_metadata(path, "email", lambda metadata: metadata.replace(b'"k_pii"', name))
        findings = Example(path=path).audit().findings
        assert "column-wrong-key" in {finding.id for finding in findings}
        assert max(len(finding.what) for finding in findings) < 600


def test_the_report_is_json(tmp_path: Path) -> None:
    report = Example(path=sound(tmp_path, Mode.PLAIN)).audit(ignore=["footer-not-encrypted"])
    document = json.loads(json.dumps(report.to_dict()))
    assert document.keys() == {
        *("schema_version", "findings", "ignored", "notes", "files", "columns_checked", "scope"),
        *("leak_search", "verdict", "counts", "tables"),
    }
    assert document["findings"][0].keys() == {
        "causes",
        "id",
        "severity",
        "path",
        "row_group",
        "column",
        "table",
        "message",
        "fix",
    }
    assert document["findings"][0]["severity"] == Severity.CRITICAL
