"""An audit with an earlier report fails by what is new alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.auditing.baseline import known_finding, known_findings


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two tables, of which one has no filters, and a file that cannot be read."""
    lake = tmp_path / "lake"
    for name, columns in (("orders", {"id": [1]}), ("customers", {"id": [1], "email": ["a"]})):
        (lake / name).mkdir(parents=True)
        pq.write_table(pa.table(columns), lake / name / "x.parquet")
    (lake / "orders" / "bad.parquet").write_bytes(b"PAR1, and no footer PAR1")
    (tmp_path / "policy.toml").write_text("[columns.email]\nbloom = true\n[columns.id]\n")
    return lake


def cli(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "secure_bloom", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_only_what_is_new_makes_an_audit_fail(lake: Path) -> None:
    policy, last = lake.parent / "policy.toml", lake.parent / "last.json"
    words = ("audit", lake, "--policy", policy)
    first = cli(*words, "--json")
    assert first.returncode == 1
    last.write_text(first.stdout)
    done = cli(*words, "--baseline", last)
    assert (done.returncode, "clean" in done.stdout) == (0, True), done
    pq.write_table(pa.table({"email": ["a"]}), lake / "customers" / "new.parquet")
    report = sb.audit(lake, policy=policy, baseline=last)
    (finding,) = report.findings
    assert finding.path == str(lake / "customers" / "new.parquet")
    assert {known_finding(it) for it in report.ignored} == known_findings(last)
    assert cli(*words, "--baseline", last).returncode == 1
    # The new report is the next baseline, with what was known already.
    last.write_text(report.to_json())
    assert cli(*words, "--baseline", last).returncode == 0


@pytest.mark.parametrize("text", ["", "[]", '{"findings": 1}', '{"findings": [[]]}', "[" * 100_000])
def test_what_is_no_report(lake: Path, text: str) -> None:
    (lake.parent / "last.json").write_text(text)
    with pytest.raises(sb.PolicyError, match="the baseline is no report of an audit"):
        sb.audit(lake, policy=lake.parent / "policy.toml", baseline=lake.parent / "last.json")
    with pytest.raises(sb.PolicyError, match="the baseline cannot be read"):
        sb.audit(lake, policy=lake.parent / "policy.toml", baseline=lake.parent / "gone.json")


def test_a_report_counts_by_table(lake: Path) -> None:
    tables = sb.audit(lake, policy=lake.parent / "policy.toml").to_dict()["tables"]
    assert tables == [
        {"table": str(lake / "customers"), "files": 1, "findings": 1, "worst": "low"},
        {"table": str(lake / "orders"), "files": 2, "findings": 1, "worst": "unchecked"},
    ]


def test_the_terminal_has_a_line_for_each_table(lake: Path) -> None:
    policy = lake.parent / "policy.toml"
    shown = cli("audit", lake, "--policy", policy).stdout.splitlines()
    assert "customers (1 file): 1 low" in shown
    assert "orders (2 files): 1 unchecked" in shown
    cli("add", lake / "customers", "--policy", policy)
    shown = cli("audit", lake, "--policy", policy).stdout.splitlines()
    assert "customers (1 file): clean" in shown
    # One table is the whole report.
    alone = cli("audit", lake / "customers", "--policy", policy).stdout
    assert "(1 file)" not in alone


def test_the_page_is_blank_where_nothing_was_looked_at(lake: Path) -> None:
    page = lake.parent / "audit.html"
    words = ("audit", lake, "--policy", lake.parent / "policy.toml", "--format", "html")
    cli(*words, "--output", page)
    rows = {
        name: line
        for line in page.read_text().splitlines()
        for name in ("orders/x", "orders/bad", "customers/x")
        if line.startswith("<tr") and f"{name}.parquet" in line
    }
    assert 'class="blank" title="email: no such column here"' in rows["orders/x"]
    assert 'class="blank"' not in rows["customers/x"]
    assert 'class="clean"' not in rows["orders/bad"]
    assert "<h2>Tables</h2>" in page.read_text()
    # A file of the sample stays as it is; the others are blank, with the reason.
    cli(*words, "--output", page, "--sample", "1")
    assert page.read_text().count("1 of 1 file not looked at") == 2 * 3


def test_numbers_of_runs_for_prometheus(lake: Path) -> None:
    policy, metrics = lake.parent / "policy.toml", lake.parent / "run.prom"
    cli("audit", lake, "--policy", policy, "--metrics", metrics)
    text = metrics.read_text()
    size = sum(file.stat().st_size for file in lake.rglob("x.parquet"))
    numbers = (f"bytes {size}", "filters 0", "failures 1")
    for line in (
        *numbers,
        "files 3",
        "files_unread 1",
        'findings{severity="low"} 1',
        "findings_ignored 0",
    ):
        assert f"\nsecure_bloom_audit_{line}\n" in text
    assert cli("add", lake, "--policy", policy, "--metrics", metrics).returncode == 2
    text = metrics.read_text()
    for line in ('files{status="added"} 1', 'filters{action="added"} 1', "failures 1"):
        assert f"\nsecure_bloom_add_{line}\n" in text
    assert "secure_bloom_add_seconds 0." in text
    cli("audit", lake, "--policy", policy, "--metrics", metrics)
    assert "\nsecure_bloom_audit_filters 1\n" in metrics.read_text()
