"""How much a verb says, wherever on the line that is asked for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.cli.verbosity import print_line
from testing.command_line import run


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for number in range(12):
        (tmp_path / f"{number:02}.parquet").write_text("id,email\n1,a@example.com\n")
    return tmp_path


def test_one_mistake_in_many_files_is_one_paragraph(lake: Path) -> None:
    done = run("inspect", lake)
    assert done.returncode == 2
    assert done.stderr.count("not a Parquet file: it ends as a text does") == 3
    assert "the same in 9 more files: -v names them" in done.stderr
    assert done.stderr.count("secure-bloom: hint:") == 1


@pytest.mark.parametrize("before", [True, False])
def test_verbose_may_stand_before_the_verb_and_after(lake: Path, before: bool) -> None:
    words = ("-v", "inspect", lake) if before else ("inspect", lake, "-v")
    assert run(*words).stderr.count("not a Parquet file") == 12


def test_quiet_leaves_notes_out(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [1], "email": ["x"]}), tmp_path / "b.parquet")
    words = ("add", tmp_path, "--column", "email", "--dry-run")
    assert "note: " in run(*words).stdout
    assert "note: " not in run(*words, "-q").stdout
    assert "note: " not in run("-q", *words).stdout


def test_quiet_leaves_notes_of_every_verb_out(tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    pq.write_table(pa.table({"id": ["a"]}), tmp_path / "table" / "a.parquet")
    for words in (
        ("hudi", "add", tmp_path / "table", "--column", "id", "--dry-run"),
        ("decrypt", tmp_path / "table", "--output", tmp_path / "clear"),
    ):
        loud, quiet = run(*words), run(*words, "-q")
        assert "note: " in loud.stdout + loud.stderr
        assert "note: " not in quiet.stdout + quiet.stderr


def test_nothing_is_said_to_be_in_clear_if_every_file_failed(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing more")
    failed = run("decrypt", tmp_path / "a.parquet", "--output", tmp_path / "clear")
    assert failed.returncode == 2
    assert "in clear" not in failed.stdout + failed.stderr


def test_a_dry_run_says_what_would_be(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    shown = run("add", tmp_path, "-c", "id", "-n").stdout
    assert "would be added" in shown
    assert "filters: 1 would be added; the files would be" in shown


def test_colours_are_as_asked_for(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    assert "\x1b[" in run("inspect", tmp_path, "--color", "always").stdout
    assert "\x1b[" not in run("inspect", tmp_path, "--color", "never").stdout


def test_many_files_have_one_table(tmp_path: Path) -> None:
    for number in range(12):
        pq.write_table(pa.table({"id": [1]}), tmp_path / f"{number:02}.parquet")
    shown = run("inspect", tmp_path).stdout
    assert "12 files, 12 rows, 12 row groups" in shown
    assert "bits set" not in shown
    assert run("inspect", tmp_path, "-v").stdout.count("bits set") == 12


def test_nothing_that_a_file_says_drives_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_line("evil \x1b[2J\u202e name")
    line = capsys.readouterr().out.rstrip("\n")
    assert line.isprintable()
    assert "evil" in line


def test_errors_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    print_line("wrong", err=True)
    seen = capsys.readouterr()
    assert (seen.out, seen.err) == ("", "wrong\n")


@pytest.mark.parametrize(
    "words",
    [
        ("add", "LAKE", "--column", "id", "--dry-run"),
        ("advise", "LAKE"),
        ("audit", "LAKE", "--policy", "POLICY"),
        ("hudi", "add", "LAKE", "--column", "email", "--dry-run"),
        ("inspect", "LAKE"),
        ("keys", "used", "LAKE", "--key", "k_none"),
        ("paimon", "show", "LAKE"),
        ("policy", "check", "POLICY"),
        ("probe", "LAKE", "id", "7"),
        ("read", "LAKE", "--where", "id = 1", "--explain"),
        ("reencrypt", "LAKE", "--policy", "POLICY", "--allow-missing-columns", "--dry-run"),
        ("trace", "POLICY", "--values-of", "LAKE:email"),
    ],
    ids=lambda words: "-".join(words[:2]).lower(),
)
def test_quiet_prints_nothing_but_errors(tmp_path: Path, words: tuple[str, ...]) -> None:
    pq.write_table(pa.table({"id": [1], "email": ["x"]}), tmp_path / "a.parquet")
    places = {"LAKE": str(tmp_path), "POLICY": "keys/policy.toml"}
    given = [places.get(word, word.replace("LAKE", str(tmp_path))) for word in words]
    loud, quiet = run(*given), run(*given, "-q")
    assert loud.stdout
    assert (quiet.stdout, quiet.stderr) == ("", "")
    assert quiet.returncode == loud.returncode


def test_quiet_leaves_hints_out_and_no_error(lake: Path) -> None:
    for words in (("inspect", lake), ("add", lake, "-c", "id", "--no-such-option")):
        quiet = run(*words, "-nq" if words[0] == "add" else "-q")
        assert quiet.returncode == 2
        assert "secure-bloom: error:" in quiet.stderr
        assert "hint:" not in quiet.stderr
        assert "hint:" in run(*words).stderr


def test_quiet_prints_data_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    assert run("read", path, "-q").stdout == "id\n1\n"
    assert '"files"' in run("inspect", path, "-q", "--json").stdout
