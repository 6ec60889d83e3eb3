"""Reports and numbers in a file that an option names: whole, or not at all."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.reports.prometheus import metrics_text
from secure_bloom.storage.output_files import require_report_file, write_metrics

NUMBERS = {"seconds": (1.25, "Duration.")}


def test_no_report_replaces_a_part_of_a_log(tmp_path: Path) -> None:
    commit = tmp_path / "_delta_log" / "0.json"
    commit.parent.mkdir()
    commit.write_text("{}")
    with pytest.raises(PolicyError, match="not a report"):
        require_report_file(commit)
    require_report_file(tmp_path / "new.json")
    require_report_file(None)


def test_a_pipe_takes_the_numbers_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        require_report_file(pipe)
        write_metrics(pipe, "add", NUMBERS)
        assert reader.stdout is not None
        assert reader.stdout.read() == metrics_text("add", NUMBERS)
    assert pipe.is_fifo()


def test_numbers_replace_a_file_whole_and_follow_its_link(tmp_path: Path) -> None:
    path, link = tmp_path / "add.prom", tmp_path / "link.prom"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    write_metrics(link, "add", NUMBERS)
    assert link.is_symlink()
    assert (path.read_text(), path.stat().st_mode & 0o777) == (
        metrics_text("add", NUMBERS),
        0o600,
    )
    new = tmp_path / "new.prom"
    write_metrics(new, "add", NUMBERS)
    # The collector is another user.
    assert new.stat().st_mode & 0o777 == 0o644
    gone = tmp_path / "gone" / "add.prom"
    with pytest.raises(PolicyError, match="the metrics cannot be written"):
        write_metrics(gone, "add", NUMBERS)
