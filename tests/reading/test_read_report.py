"""A report of a read says in a few words what was read."""

from __future__ import annotations

from secure_bloom.reading.read_report import ReadReport
from tests.reading.test_file_reports import FILES


def test_a_few_words() -> None:
    report = ReadReport(rows=4, has_condition=True, files_left=1, files=FILES)
    words = "2 of 4 row groups and 246 of 2,000 bytes read"
    assert repr(report) == f"<ReadReport: 4 rows, {words}>"
    planned = ReadReport(rows=None, has_condition=True, files_left=0, files=FILES)
    assert repr(planned) == f"<ReadReport: planned, {words}>"
