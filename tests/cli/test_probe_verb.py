"""What a terminal shows of a probe: counts for each value, and the row groups that may have it."""

from __future__ import annotations

import pytest

from secure_bloom.bloom.verdicts import FileProbe, ProbeReport, RowGroupProbe, Verdict
from secure_bloom.cli.probe_verb import print_probe_report


def report(*verdicts: Verdict) -> ProbeReport:
    groups = (
        RowGroupProbe(row_group=i, filter=True, verdicts={"7": verdict})
        for i, verdict in enumerate(verdicts)
    )
    return ProbeReport(column="id", files=(FileProbe(path="a.parquet", row_groups=tuple(groups)),))


def shown(capsys: pytest.CaptureFixture[str], report: ProbeReport, *, verbose: bool) -> str:
    print_probe_report(report, verbose=verbose)
    return capsys.readouterr().out


def test_row_groups_that_may_have_the_value_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, report(Verdict.ABSENT, Verdict.MAYBE), verbose=False)
    assert "7 may be in\n  a.parquet, row group 1\n" in text
    assert "row group 0" not in text


def test_one_file_is_one_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert "row groups of 1 file, by" in shown(capsys, report(Verdict.ABSENT), verbose=False)


def test_where_every_file_failed_there_is_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    failed = ProbeReport(column="id", files=(FileProbe(path="a.parquet", row_groups=()),))
    assert shown(capsys, failed, verbose=False) == ""


def test_a_file_that_failed_may_have_the_value(capsys: pytest.CaptureFixture[str]) -> None:
    failed = FileProbe(path="b.parquet", error="b.parquet: key 'k' of column id is not available")
    alone = ProbeReport(column="id", files=(failed,))
    text = "unknown: no filter of id could be asked in 1 file\n"
    assert shown(capsys, alone, verbose=False) == text
    assert "1 file, unknown: 1 failed and may hold a value" in repr(alone)
    both = ProbeReport(column="id", files=(*report(Verdict.ABSENT).files, failed))
    text = shown(capsys, both, verbose=False)
    assert "unknown: 1 file failed" in text
    assert "7  absent" not in text
    maybe = ProbeReport(column="id", files=(*report(Verdict.MAYBE).files, failed))
    assert "unknown" not in shown(capsys, maybe, verbose=False)


def test_five_are_named_and_all_with_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    many = report(*[Verdict.MAYBE] * 7)
    text = shown(capsys, many, verbose=False)
    assert text.count("a.parquet, row group") == 5
    assert "and 2 more row groups: -v names them all" in text
    assert shown(capsys, many, verbose=True).count("a.parquet, row group") == 7


def test_a_value_that_is_nowhere_has_no_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert "may be in" not in shown(capsys, report(Verdict.ABSENT), verbose=True)


def test_of_several_values_each_has_one_line_and_those_that_may_be_there_come_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    verdicts = {"1": Verdict.ABSENT, "2": Verdict.NO_FILTER, "3": Verdict.MAYBE}
    group = RowGroupProbe(row_group=0, filter=True, verdicts=verdicts)
    several = ProbeReport(column="id", files=(FileProbe(path="a.parquet", row_groups=(group,)),))
    lines = shown(capsys, several, verbose=False).splitlines()
    assert [line.split()[:2] for line in lines if line.strip()][3:] == [
        ["3", "maybe"],
        ["2", "no"],
        ["1", "absent"],
        ["-v", "names"],
    ]
    assert "a.parquet" not in "".join(lines)
    assert "3 may be in\n  a.parquet, row group 0" in shown(capsys, several, verbose=True)
    answers = {"1": "absent", "2": "no_filter", "3": "maybe"}
    assert several.to_dict()["values"] == answers
