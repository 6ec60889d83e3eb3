"""The report on a terminal: one paragraph a mistake, 80 columns, and no harm from a path."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from rich.console import Console

from secure_bloom.auditing.findings import AuditReport, Finding
from secure_bloom.auditing.formats import render_html, render_text
from tests.auditing.formats import reports
from tests.auditing.formats.reports import finding, unchecked


def text_of(report: AuditReport, width: int = 80) -> str:
    stream = io.StringIO()
    render_text(report, Console(file=stream, width=width))
    return stream.getvalue()


def report_of(*found: Finding, **settings: object) -> AuditReport:
    settings = {"paths": ("lake/part-0.parquet",), "columns_checked": 4, **settings}
    return AuditReport(findings=found, **settings)  # type: ignore[arg-type]


def test_a_paragraph_has_the_mistake_its_places_and_the_fix() -> None:
    paths = tuple(f"lake/dt=1/part-{n}.parquet" for n in range(5))
    found = tuple(finding(path=path, row_group=g) for path in paths for g in (0, 1))
    text = text_of(AuditReport(findings=found, paths=paths, columns_checked=20))
    assert (
        text
        == """\
 critical  column-in-clear  column email
  stored in clear, the policy asks for key k_pii
  5 files, 10 row groups
    part-0.parquet
    part-1.parquet
    part-2.parquet
    and 2 more
  fix: write the files anew under the policy, then delete these

paths are below lake/dt=1/
5 files looked at, 20 of their columns checked
the files do not obey the policy: 1 critical
"""
    )


def test_what_led_to_it_is_told_where_it_is_asked_for() -> None:
    stream, report = (
        io.StringIO(),
        report_of(replace(unchecked("lake/part-0.parquet"), causes=("TimeoutError",))),
    )
    render_text(report, Console(file=stream, width=80), verbose=True)
    assert "  cause: TimeoutError\n  fix: " in stream.getvalue()
    assert "cause: " not in text_of(report)


def test_v_names_all_files_and_tables() -> None:
    paths = tuple(f"lake/t{n}/x.parquet" for n in range(30))
    report = AuditReport(
        findings=tuple(finding(path=path) for path in paths),
        paths=paths,
        table_of={path: path.rpartition("/")[0] for path in paths},
    )
    stream = io.StringIO()
    render_text(report, Console(file=stream, width=80), verbose=True)
    lines = stream.getvalue().splitlines()
    assert [line for line in lines if line.startswith("    t")] == [
        f"    t{n}/x.parquet" for n in range(30)
    ]
    assert {f"t{n} (1 file): 1 critical" for n in range(30)} <= set(lines)
    assert "more" not in stream.getvalue()
    assert "and 27 more" in text_of(report)
    assert "and 10 tables with" in text_of(report)


def test_the_folder_of_all_files_is_named() -> None:
    """The path of a finding on a log is the folder, as it was given: with a slash."""
    report = report_of(finding(path="lake/", column="email"))
    assert "\n  1 file\n    lake/\n" in text_of(report)
    page = render_html(report, subject="lake", created=datetime.now(UTC))
    assert "<li>lake/</li>" in page


def test_10_000_files_with_one_mistake_are_one_paragraph() -> None:
    paths = tuple(reports.day_paths(100, 100))
    report = AuditReport(findings=tuple(finding(path=path) for path in paths), paths=paths)
    text = text_of(report)
    assert text.count("column-in-clear") == 1
    assert "10,000 files" in text
    assert len(text.splitlines()) == 12


@pytest.mark.parametrize("width", [80, 40])
def test_nothing_is_wider_than_the_console(width: int) -> None:
    long = f"lake/{'x' * 200}/part-00000-6b0f1c1e-8a51-4f0e-9b57-0d8a0f2b7c11.parquet"
    report = report_of(
        *reports.large_report().findings,
        *(finding(path=long, column=f"struct.{'long_' * 9}{n}", what="long") for n in range(9)),
        ignored=(finding(path=long, column="c" * 300),),
    )
    text = text_of(report, width)
    assert max(map(len, text.splitlines())) <= width
    assert long.removeprefix("lake/") in "".join(text.split())


def test_lines_have_no_blanks_at_their_ends() -> None:
    assert all(line == line.rstrip() for line in text_of(reports.large_report()).splitlines())


def test_ignored_findings_are_counted_and_shown() -> None:
    text = text_of(report_of(ignored=tuple(finding(path=f"lake/{n}") for n in range(7))))
    assert "ignored: column-in-clear column email" in text
    assert "(7 files)" in text
    assert text.splitlines()[-1] == "clean: 1 ignored"


def test_clean_is_said_in_one_word() -> None:
    assert text_of(reports.clean_report()).splitlines() == [
        "paths are below lake/customers/",
        "8 files looked at, 32 of their columns checked",
        "clean",
    ]


def test_unchecked_findings_are_not_clean() -> None:
    text = text_of(report_of(unchecked("lake/part-0.parquet")))
    assert " unchecked  unchecked-footer" in text
    assert text.splitlines()[-1] == (
        "nothing wrong found, but not all could be checked: 1 unchecked"
    )


def test_an_audit_of_no_file_is_not_clean() -> None:
    assert text_of(AuditReport()).splitlines()[-1] == "no file was looked at"


def test_an_error_beside_the_files_is_no_finding_of_a_file() -> None:
    text = text_of(report_of(finding("policy-column-unknown", path=None)))
    assert "in the policy, or the dataset as a whole" in text
    assert "the files do not obey" not in text


def test_a_path_does_not_drive_the_terminal() -> None:
    evil = "lake/\x1b]0;owned\x07\x1b[2J[red]x[/red]\udcff.parquet"
    text = text_of(report_of(finding(path=evil, column="\x1b[31m", what="\x9b2J")))
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert r"\x1b]0;owned\x07\x1b[2J[red]x[/red]\udcff.parquet" in text
