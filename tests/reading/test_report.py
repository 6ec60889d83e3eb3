"""A report of a read adds its files up, and says in a few words what was read."""

from __future__ import annotations

from secure_bloom.reading.file_reports import FileReadReport
from secure_bloom.reading.pruning.plan import Note, Reason, RowGroupPlan, Step
from secure_bloom.reading.report import ReadReport


def file(*groups: RowGroupPlan, name: str = "a.parquet") -> FileReadReport:
    return FileReadReport(
        path=name,
        row_groups=groups,
        bytes_footer=100,
        bytes_judged_by=20,
        bytes_pages=3,
        bytes_full_scan=1000,
    )


READ = RowGroupPlan(row_group=0, rows=10, rows_found=1)
PART = RowGroupPlan(row_group=1, rows=10, ranges=((0, 2), (5, 6)), rows_found=3)
SKIPPED = RowGroupPlan(row_group=2, rows=10, skipped_by=Step.BLOOM_FILTER)
REPORT = ReadReport(
    rows=4, has_condition=True, files_left=1, files=(file(READ, PART), file(SKIPPED, SKIPPED))
)


def test_files_are_added_up() -> None:
    assert (REPORT.row_groups, REPORT.row_groups_read) == (4, 2)
    assert (REPORT.bytes_read, REPORT.bytes_full_scan) == (246, 2000)
    assert REPORT.skipped == {"Bloom filter": 2}


def test_a_few_words() -> None:
    words = "2 of 4 row groups and 246 of 2,000 bytes read"
    assert repr(REPORT) == f"<ReadReport: 4 rows, {words}>"
    planned = ReadReport(rows=None, has_condition=True, files_left=0, files=REPORT.files)
    assert repr(planned) == f"<ReadReport: planned, {words}>"


def test_rows_looked_at_are_those_of_ranges_and_none_of_skipped_row_groups() -> None:
    groups = [g for it in REPORT.to_dict()["files"] for g in it["row_groups"]]
    assert [group["rows_looked_at"] for group in groups] == [10, 3, 0, 0]
    assert [group["skipped_by"] for group in groups] == [None, None, *["Bloom filter"] * 2]


def test_notes_are_plain_values_in_the_document() -> None:
    note = Note(column="x", step=Step.BLOOM_FILTER, text="maybe", reason=Reason.FILTER_MAYBE)
    group = RowGroupPlan(row_group=0, rows=1, rows_found=0, notes=(note,))
    document = file(group).to_dict()["row_groups"][0]["notes"][0]
    assert (document["step"], document["reason"]) == ("Bloom filter", "filter: maybe")
