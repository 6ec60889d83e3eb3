"""What was read of each file, as the document of a report has it, and the sums over all files."""

from __future__ import annotations

from secure_bloom.reading.file_reports import FileReadReport, ReadTotals
from secure_bloom.reading.pruning.plan import Note, Reason, RowGroupPlan, Step

READ = RowGroupPlan(row_group=0, rows=10, rows_found=1)
PART = RowGroupPlan(row_group=1, rows=10, ranges=((0, 2), (5, 6)), rows_found=3)
SKIPPED = RowGroupPlan(row_group=2, rows=10, skipped_by=Step.BLOOM_FILTER)


def file(*groups: RowGroupPlan) -> FileReadReport:
    return FileReadReport(
        path="a.parquet",
        row_groups=groups,
        bytes_footer=100,
        bytes_judged_by=20,
        bytes_pages=3,
        bytes_full_scan=1000,
    )


FILES = (file(READ, PART), file(SKIPPED, SKIPPED))


def test_files_are_added_up() -> None:
    totals = ReadTotals(has_condition=True, files=FILES)
    assert (totals.row_groups, totals.row_groups_read) == (4, 2)
    assert (totals.bytes_read, totals.bytes_full_scan) == (246, 2000)
    assert totals.skipped == {"Bloom filter": 2}


def test_rows_looked_at_are_those_of_ranges_and_none_of_skipped_row_groups() -> None:
    groups = [group for it in FILES for group in it.to_dict()["row_groups"]]
    assert [group["rows_looked_at"] for group in groups] == [10, 3, 0, 0]
    assert [group["skipped_by"] for group in groups] == [None, None, *["Bloom filter"] * 2]


def test_notes_are_plain_values_in_the_document() -> None:
    note = Note(column="x", step=Step.BLOOM_FILTER, text="maybe", reason=Reason.FILTER_MAYBE)
    group = RowGroupPlan(row_group=0, rows=1, rows_found=0, notes=(note,))
    document = file(group).to_dict()["row_groups"][0]["notes"][0]
    assert (document["step"], document["reason"]) == ("Bloom filter", "filter: maybe")
