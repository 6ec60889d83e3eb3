"""Numbers of a run for Prometheus."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.reports.prometheus import metrics_text, write_metrics

NUMBERS = {
    'files{status="added"}': (3, "Files of the run."),
    'files{status="failed"}': (0, "Files of the run."),
    "seconds": (1.25, "Duration."),
}


def test_each_name_has_its_help_and_type_once() -> None:
    assert metrics_text("add", NUMBERS) == (
        "# HELP secure_bloom_add_files Files of the run.\n"
        "# TYPE secure_bloom_add_files gauge\n"
        'secure_bloom_add_files{status="added"} 3\n'
        'secure_bloom_add_files{status="failed"} 0\n'
        "# HELP secure_bloom_add_seconds Duration.\n"
        "# TYPE secure_bloom_add_seconds gauge\n"
        "secure_bloom_add_seconds 1.25\n"
    )


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "add.prom"
    path.write_text("old")
    write_metrics(path, "add", NUMBERS)
    assert path.read_text() == metrics_text("add", NUMBERS)
    with pytest.raises(TypeError):
        write_metrics(path, "add", {"files": (object(), "No number.")})  # type: ignore[dict-item]
    assert path.read_text() == metrics_text("add", NUMBERS)
    assert [it.name for it in tmp_path.iterdir()] == ["add.prom"]
    with pytest.raises(PolicyError, match="the metrics cannot be written"):
        write_metrics(tmp_path / "gone" / "add.prom", "add", NUMBERS)
