"""A report of a read says in a few words what was read."""

from __future__ import annotations

import pytest

from secure_bloom.reading.file_reports import FileReadReport, ReadTotals
from secure_bloom.reading.pruning.plan import Note, Reason, RowGroupPlan, Step
from secure_bloom.reading.read_report import ReadReport, advice
from tests.reading.test_file_reports import FILES


def test_a_few_words() -> None:
    report = ReadReport(rows=4, has_condition=True, files_left=1, files=FILES)
    words = "2 of 4 row groups and 246 of 2,000 bytes read"
    assert repr(report) == f"<ReadReport: 4 rows, {words}>"
    planned = ReadReport(rows=None, has_condition=True, files_left=0, files=FILES)
    assert repr(planned) == f"<ReadReport: planned, {words}>"


def read(*groups: RowGroupPlan, has_condition: bool = True, size: int = 10**9) -> list[str]:
    file = FileReadReport(
        path="a.parquet",
        row_groups=groups,
        bytes_footer=1000,
        bytes_judged_by=1000,
        bytes_pages=10,
        bytes_full_scan=size,
        filters=("other",),
    )
    return advice(ReadTotals(has_condition=has_condition, files=(file,)))


def group(ordinal: int, *, found: int = 0, **note: object) -> RowGroupPlan:
    notes = (Note(column="x", step=None, text="", **note),) if note else ()  # type: ignore[arg-type]
    return RowGroupPlan(row_group=ordinal, rows=100, rows_found=found, notes=notes)


def several(count: int = 5, **note: object) -> list[RowGroupPlan]:
    return [group(i, **note) for i in range(count)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("note", "told"),
    [
        ({"reason": Reason.NO_FILTER}, "x has no filter in 5 row groups that had to be read (ther"),
        ({"reason": Reason.OTHER_PARTS}, "under `or` every part must be ruled out"),
        ({"reason": Reason.NO_LOOKUP}, "a filter answers = and in, and the condition on x is"),
        ({"reason": Reason.NO_SINGLE_FORM}, "no filter can be asked for the value of x"),
        ({"reason": Reason.NO_KEY}, "the key of x is missing"),
        ({"fpp": 0.3}, "the filter of x is too full: 30.0 % of what is not there passes"),
        ({"fpp": 0.01, "chance": 0.5}, "the condition has many values of x"),
    ],
)
def test_what_kept_row_groups_from_being_skipped(note: dict[str, object], told: str) -> None:
    (sentence,) = read(*several(**note))
    assert sentence.startswith(told)


def test_row_groups_with_a_match_are_no_fault_of_a_filter() -> None:
    matching = [group(i, found=1, fpp=0.3) for i in range(2)]
    assert read(*matching, group(2), group(3), group(4)) == []


def test_a_read_without_a_condition_reads_all() -> None:
    assert read(*several(), has_condition=False) == [
        "there is no condition (--where), so every row group is read"
    ]


def test_a_common_value_and_a_single_row_group() -> None:
    (common,) = read(*[group(i, found=3) for i in range(5)])
    assert common.startswith("5 of 5 row groups hold rows that match")
    (single,) = read(group(0, found=1))
    assert single.startswith("there is one row group")


def test_small_files_are_told_where_something_was_skipped() -> None:
    skipped = [RowGroupPlan(row_group=i, rows=9, skipped_by=Step.BLOOM_FILTER) for i in range(3)]
    (sentence,) = read(*skipped, size=5000)
    assert sentence.startswith("the files are small")
    assert read(*skipped) == []
