"""Reports and numbers in a file that an option names: whole, or not at all."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.storage.output_files import metrics_text, write_metrics

NUMBERS = {"seconds": (1.25, "Duration.")}


def test_a_pipe_takes_the_numbers_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
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


FILES_AND_SECONDS = {
    'files{status="added"}': (3, "Files of the run."),
    'files{status="failed"}': (0, "Files of the run."),
    "seconds": (1.25, "Duration."),
}


def test_each_name_has_its_help_and_type_once() -> None:
    assert metrics_text("add", FILES_AND_SECONDS) == (
        "# HELP secure_bloom_add_files Files of the run.\n"
        "# TYPE secure_bloom_add_files gauge\n"
        'secure_bloom_add_files{status="added"} 3\n'
        'secure_bloom_add_files{status="failed"} 0\n'
        "# HELP secure_bloom_add_seconds Duration.\n"
        "# TYPE secure_bloom_add_seconds gauge\n"
        "secure_bloom_add_seconds 1.25\n"
    )
