"""Shares and names for a terminal."""

from __future__ import annotations

import io

import pytest

from secure_bloom.cli.terminal_tables import percent, print_table, short_names


def test_no_share_is_no_text() -> None:
    assert percent(None) is None
    assert "%" in str(percent(0.25))


@pytest.fixture
def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)


def test_a_folder_that_all_share_is_left_out(on_a_terminal: None) -> None:
    names = short_names(["/lake/table/a.parquet", "/lake/table/b.parquet"])
    assert list(names.values()) == ["a.parquet", "b.parquet"]


def test_partitions_keep_their_folder_below_the_one_that_all_share(on_a_terminal: None) -> None:
    paths = [f"s3://lake/table/day=2026-11-2{day}/part-0.parquet" for day in (0, 1)]
    names = short_names(paths)
    assert list(names.values()) == [
        "day=2026-11-20/part-0.parquet"[:17] + "….parquet",
        "day=2026-11-21/part-0.parquet"[:17] + "….parquet",
    ]


def test_a_wide_terminal_cuts_no_name_that_fits(
    on_a_terminal: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "day=2026-11-20/part-00000-0c5f2f7e.c000.parquet"
    monkeypatch.setenv("COLUMNS", "200")
    assert list(short_names([f"/lake/{path}", "/lake/x"]).values()) == [path, "x"]


def test_names_that_a_cut_would_make_equal_stay_whole(on_a_terminal: None) -> None:
    names = [f"part-00000-0000000000{n}-0000.c000.parquet" for n in range(2)]
    assert list(short_names([f"lake/{name}" for name in names]).values()) == names


def test_long_names_lose_their_middle(on_a_terminal: None) -> None:
    (name,) = short_names([f"/lake/part-00000-{'0' * 60}.parquet"]).values()
    assert name.startswith("part-00000")
    assert name.endswith(".parquet")
    assert len(name) < 40


def test_programs_get_whole_names() -> None:
    path = f"/lake/part-00000-{'0' * 60}.parquet"
    assert short_names([path]) == {path: path}


def test_a_pipe_gets_what_a_terminal_of_enough_columns_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [["日本", 7], ["[red]e\u0301", None], [None, 1_000]]
    print_table(["name", "n>"], rows, title="all [x]")
    piped = capsys.readouterr().out
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_table(["name", "n>"], rows, title="all [x]")
    drawn = capsys.readouterr().out
    assert [it.rstrip() for it in piped.splitlines()] == [it.rstrip() for it in drawn.splitlines()]


def test_a_title_is_one_line_however_narrow_the_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    title = "row groups of 8 files, by what the filter of email says"
    print_table(["n>"], [[1]], title=title)
    assert capsys.readouterr().out.splitlines()[0].rstrip() == title


def test_cells_never_wrap(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["name", "n>"], [["x" * 150, 1], ["y", 22]])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert any("x" * 150 in line for line in lines)


def test_on_a_terminal_that_is_too_narrow_no_cell_is_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    rows = [["customer.billing_address.postal_code", "text", "in clear", None, 7]]
    headers = ["column", "type", "key", "filters", "bytes>"]
    print_table(headers, rows, title="row group 0")
    assert capsys.readouterr().out.splitlines() == [
        "row group 0",
        "customer.billing_address.postal_code",
        "  type text, key in clear, bytes 7",
    ]
    monkeypatch.setenv("COLUMNS", "80")
    print_table(headers, rows)
    assert "───" in capsys.readouterr().out


def test_a_table_in_a_pipe_has_100_columns_and_loses_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    path, key = f"lake/{'x' * 90}.parquet", "k" * 120
    print_table(("file", "status", "key", "rows>"), [[path, "a status " * 12, key, 3]])
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == path
    assert f"  {key}," in lines
    assert all(len(line) <= 100 for line in lines if key not in line)
    print_table(("file", "rows>"), [["x" * 90, 3]])
    assert "───" in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "60")
    print_table(("file", "rows>"), [["x" * 90, 3]])
    assert capsys.readouterr().out.splitlines() == ["x" * 90, "  rows 3"]


def test_a_table_is_printed_to_a_stream_without_an_encoding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    print_table(("file", "rows>"), [["a.parquet", 3]])
    assert "a.parquet     3" in stream.getvalue()
