"""A verdict for each data file."""

from __future__ import annotations

import json

from secure_bloom.bloom.probe import Verdict
from secure_bloom.paimon.probe_report import FileVerdict, PaimonProbe
from secure_bloom.paimon.skipping_rules import Rules


def test_verdicts_are_those_of_all_files() -> None:
    files = (
        FileVerdict(path="x", verdict=Verdict.ABSENT),
        FileVerdict(path="y", verdict=Verdict.MAYBE),
        FileVerdict(path="z", error="damaged"),
    )
    probe = PaimonProbe(rules=Rules.SAFE, files=files)
    assert probe.verdicts == {Verdict.ABSENT, Verdict.MAYBE}
    assert [file.path for file in probe.failed] == ["z"]
    assert [file["verdict"] for file in json.loads(probe.to_json())["files"]] == [
        "absent",
        "maybe",
        None,
    ]
