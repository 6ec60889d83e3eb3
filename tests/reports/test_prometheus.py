"""Numbers of a run for Prometheus."""

from __future__ import annotations

from secure_bloom.reports.prometheus import metrics_text

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
