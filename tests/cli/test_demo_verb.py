"""`demo`: refused before Spark starts where it cannot go well; tests/spark/test_demo.py runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.cli import main
from secure_bloom.spark.demo import FILES


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["demo", *words])
    shown = capsys.readouterr()
    return int(str(ended.value.code)), shown.out, shown.err


def test_too_few_rows_are_refused_and_nothing_is_made(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, err = run(capsys, str(tmp_path / "demo"), "--rows", str(FILES - 1))
    assert (code, out) == (2, "")
    assert err.startswith(f"secure-bloom: error: {FILES - 1} rows do not fill {FILES} files")
    assert "secure-bloom: hint: give a larger --rows" in err
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize("rows", ["many", "1.5"])
def test_rows_that_are_no_number_are_told(capsys: pytest.CaptureFixture[str], rows: str) -> None:
    code, out, err = run(capsys, "--rows", rows)
    assert (code, out) == (2, "")
    assert "--rows" in err


def test_the_help_says_what_it_needs_and_where_the_table_goes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0
    for word in ("FOLDER", "Java 17", '"spark"', "Exit code"):
        assert word in out
