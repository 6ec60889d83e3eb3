"""Every report of ``sb.paimon`` is a document, a table and words for people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from secure_bloom import paimon
from secure_bloom.reports.base import Report


@pytest.mark.parametrize("name", ["BuildReport", "IndexReport", "ShowReport", "PaimonProbe"])
def test_a_report_has_what_all_reports_have(name: str) -> None:
    assert issubclass(getattr(paimon, name), Report)


def test_reports_are_documents(data_file: Path) -> None:
    built = paimon.build_index(data_file, ["id"])
    for report in (
        built,
        paimon.build_indexes(data_file, ["id"]),
        paimon.show(data_file),
        paimon.probe(data_file, "id = 5"),
    ):
        assert str(data_file) in json.dumps(report.to_dict())
        assert str(report) or repr(report)
