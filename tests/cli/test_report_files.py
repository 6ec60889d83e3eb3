"""Files that reports are written to: whole or not at all, and never in place of rows or keys."""

from __future__ import annotations

import json
import resource
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.storage.output_files import write_report_file
from testing.command_line import COMMAND, run

POLICY = '[footer]\nkey = "k_footer"\n[columns.email]\nkey = "k_pii"\n'


def limited(limit: int, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a verb. No file grows beyond ``limit`` bytes, as if the disk were full."""
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"email": ["a@x.example"]}), tmp_path / "t" / "x.parquet")
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "keys.json").write_text('{"version": 1, "master_keys": {}}')
    return tmp_path


@pytest.mark.parametrize("option", ["--output", "--metrics"])
@pytest.mark.parametrize("name", ["t/x.parquet", "policy.toml", "keys.json", "link"])
def test_no_report_replaces_rows_keys_or_the_policy(lake: Path, option: str, name: str) -> None:
    (lake / "link").symlink_to("policy.toml")
    before = (lake / name).read_bytes()
    done = run("audit", lake / "t", "--policy", lake / "policy.toml", option, lake / name)
    assert (done.returncode, done.stdout) == (2, "")
    assert "would replace a file that is not a report" in done.stderr
    assert (lake / name).read_bytes() == before


def test_metrics_that_cannot_be_written_are_refused_before_files_change(lake: Path) -> None:
    file = lake / "t" / "x.parquet"
    before = file.read_bytes()
    for place in (lake / "gone" / "m.prom", lake / "t"):
        done = run("add", lake / "t", "--column", "email", "--metrics", place)
        assert done.returncode == 2
        assert "a report cannot be written" in done.stderr, done.stderr
        assert file.read_bytes() == before


def test_metrics_say_whether_anything_was_written(lake: Path) -> None:
    words = ("add", lake / "t", "--column", "email", "--json", "--metrics", lake / "m.prom")
    for dry in (["--dry-run"], []):
        document = json.loads(run(*words, *dry).stdout)
        numbers = dict(
            line.rsplit(" ", 1)
            for line in (lake / "m.prom").read_text().splitlines()
            if not line.startswith("#")
        )
        assert numbers["secure_bloom_add_dry_run"] == str(len(dry))
        assert float(numbers["secure_bloom_add_seconds"]) == document["seconds"]


def test_a_run_whose_metrics_are_lost_is_reported_and_said_to_be_done(lake: Path) -> None:
    # The data file fits, its numbers do not.
    place = lake / "m.prom"
    done = limited(1024, "add", lake / "t", "--column", "email", "--metrics", place)
    assert not place.exists()
    assert done.returncode == 2
    assert "1 file: 1 added" in done.stdout
    first, hint = done.stderr.splitlines()
    assert first.startswith("secure-bloom: error: all is done, but ")
    assert "the metrics cannot be written" in first
    assert hint.startswith("secure-bloom: hint: run again for a report")


def test_a_report_that_does_not_fit_leaves_the_old_one(tmp_path: Path) -> None:
    report = tmp_path / "audit.html"
    report.write_text("old")
    with pytest.raises(PolicyError, match="the report cannot be written"):
        write_report_file(report, "\ud800", "the report")
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"email": ["a@x.example"]}), tmp_path / "t" / "x.parquet")
    (tmp_path / "keys.json").write_text('{"version": 1, "master_keys": {}}')
    kms = '[kms]\nclient = "keyring"\nkeyring = "keys.json"\n'
    (tmp_path / "policy.toml").write_text(kms + POLICY)
    words = ("audit", tmp_path / "t", "--policy", tmp_path / "policy.toml", "--format", "html")
    done = limited(1024, *words, "--output", report)
    assert done.returncode == 2
    assert "the report cannot be written" in done.stderr
    assert report.read_text() == "old"
    assert {it.name for it in tmp_path.iterdir()} == {
        "audit.html",
        "keys.json",
        "policy.toml",
        "t",
    }


def test_a_policy_that_does_not_fit_leaves_no_file(tmp_path: Path) -> None:
    schema = ", ".join(f"column_{i} string" for i in range(100))
    done = limited(1024, "policy", "init", "--schema", schema, "-o", tmp_path / "p.toml")
    assert done.returncode == 2
    assert "the policy cannot be written" in done.stderr
    assert list(tmp_path.iterdir()) == []
