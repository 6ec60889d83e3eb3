"""A plan has the files, the keys and what the policy itself gets wrong, before a file is read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.auditing.audit_plan import (
    AuditOptions,
    known_finding,
    known_findings,
    plan_audit,
    selection,
)
from secure_bloom.auditing.findings import Finding, Severity
from secure_bloom.auditing.rules import RULES
from secure_bloom.encryption.spark_properties import CRYPTO_FACTORY
from secure_bloom.errors import PolicyError
from testing.command_line import run
from testing.tables import KEYRING

POLICY = sb.KeyPolicy(columns={})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six files that nobody reads: they hold no Parquet."""
    for number in range(6):
        (tmp_path / f"{number}.parquet").write_bytes(b"none")
    return tmp_path


def test_a_sample_is_spread_over_the_files_and_all_are_listed(folder: Path) -> None:
    plan = plan_audit(folder, POLICY, None, AuditOptions(sample=2))
    assert [Path(file).name for file in plan.files] == ["0.parquet", "3.parquet"]
    assert len(plan.listed) == 6


def test_a_sample_of_no_file_is_refused(folder: Path) -> None:
    with pytest.raises(sb.PolicyError, match="a sample of 0 files"):
        plan_audit(folder, POLICY, None, AuditOptions(sample=0))


def test_an_outsiders_audit_has_no_keys(folder: Path) -> None:
    assert plan_audit(folder, POLICY, KEYRING, AuditOptions()).keys is KEYRING
    assert plan_audit(folder, POLICY, KEYRING, AuditOptions(without_keys=True)).keys is None


def test_a_policy_that_cannot_be_used_is_a_finding_and_no_file_is_audited(folder: Path) -> None:
    policy = folder / "policy.toml"
    policy.write_text("[colums.email]\nkey = 'k_pii'\n")
    plan = plan_audit(folder, policy, None, AuditOptions())
    assert plan.request is None
    assert plan.files == ()
    assert any("colums" in finding.message for finding in plan.findings)


def _finding(severity: Severity = Severity.HIGH, column: str | None = None) -> Finding:
    return Finding(id="column-in-clear", severity=severity, what="w", fix="f", column=column)


def test_a_severity_and_all_above_it_count() -> None:
    chosen = selection((), "medium")
    assert chosen.counts(_finding(Severity.CRITICAL))
    assert chosen.counts(_finding(Severity.MEDIUM))
    assert not chosen.counts(_finding(Severity.LOW))


def test_an_id_is_ignored_everywhere_or_in_one_column() -> None:
    assert not selection(["column-in-clear"], None).counts(_finding(column="email"))
    chosen = selection(["column-in-clear:email"], None)
    assert not chosen.counts(_finding(column="email"))
    assert chosen.counts(_finding(column="iban"))


@pytest.mark.parametrize(("ignore", "severity"), [(["no-such-id"], None), ([], "terrible")])
def test_an_unknown_word_is_refused(ignore: list[str], severity: str | None) -> None:
    with pytest.raises(PolicyError):
        selection(ignore, severity)


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


def test_only_what_is_new_makes_an_audit_fail(lake: Path) -> None:
    policy, last = lake.parent / "policy.toml", lake.parent / "last.json"
    words = ("audit", lake, "--policy", policy)
    first = run(*words, "--json")
    assert first.returncode == 1
    last.write_text(first.stdout)
    done = run(*words, "--baseline", last)
    assert (done.returncode, "clean" in done.stdout) == (0, True), done
    pq.write_table(pa.table({"email": ["a"]}), lake / "customers" / "new.parquet")
    report = sb.audit(lake, policy=policy, baseline=last)
    (finding,) = report.findings
    assert finding.path == str(lake / "customers" / "new.parquet")
    assert {known_finding(it) for it in report.ignored} == known_findings(last)
    assert run(*words, "--baseline", last).returncode == 1
    # The new report is the next baseline, with what was known already.
    last.write_text(report.to_json())
    assert run(*words, "--baseline", last).returncode == 0


def test_another_spelling_of_a_path_is_the_same_path(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, last = lake.parent / "policy.toml", lake.parent / "last.json"
    monkeypatch.chdir(lake.parent)
    (lake.parent / "linked").symlink_to("lake")
    spellings = ("lake", "./lake/", "linked", lake, f"file://{lake}", lake / "../lake", "lake//")
    reports = {str(it): sb.audit(it, policy=policy) for it in spellings}
    for first in ("lake", f"file://{lake}"):
        last.write_text(reports[first].to_json())
        for spelling in spellings:
            assert not sb.audit(spelling, policy=policy, baseline=last).findings, spelling
    # A file of the same name in another folder is another file.
    pq.write_table(pa.table({"email": ["a"]}), lake / "orders" / "new.parquet")
    (lake.parent / "other").mkdir()
    (lake / "orders").rename(lake.parent / "other" / "orders")
    assert len(sb.audit("other", policy=policy, baseline=last).findings) > 1


def test_each_finding_is_known_by_another_spelling_of_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spellings = ("lake/0", "./lake/0", f"{tmp_path}/lake/0", f"../{tmp_path.name}/lake/0")
    for rule in RULES.values():
        found = {known_finding(rule.finding("what", path=it, column="c")) for it in spellings}
        assert len(found) == 1, rule.id
        assert known_finding(rule.finding("what", path="lake/1", column="c")) not in found


def test_a_column_missing_in_one_table_is_new_in_another_table(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"email": ["x"]}), tmp_path / name / "0.parquet")
    policy, last = tmp_path / "policy.toml", tmp_path / "last.json"
    policy.write_text('[tables."a".columns.emial]\n[tables."b".columns.email]\n')
    first = sb.audit(tmp_path, policy=policy)
    assert [(it.id, it.table) for it in first.findings] == [("policy-column-unknown", "a")]
    last.write_text(first.to_json())
    policy.write_text('[tables."a".columns.emial]\n[tables."b".columns.emial]\n')
    report = sb.audit(tmp_path, policy=policy, baseline=last)
    assert [(it.id, it.table) for it in report.findings] == [("policy-column-unknown", "b")]


def test_a_second_wrong_property_of_a_session_is_new(lake: Path) -> None:
    policy, last = lake.parent / "policy.toml", lake.parent / "last.json"
    policy.write_text('[footer]\nkey = "f"\n[columns.email]\nkey = "k"\n')
    shared = {"policy": policy, "without_keys": True}
    start = {"parquet.encryption.footer.kay": "f"}
    first = sb.audit(lake, **shared, spark_properties=start)
    last.write_text(first.to_json())
    assert not sb.audit(lake, **shared, spark_properties=start, baseline=last).findings
    worse = {**start, "parquet.encryption.algoritm": "AES_GCM_V1"}
    assert sb.audit(lake, **shared, spark_properties=worse, baseline=last).findings


def test_one_object_has_one_place_whatever_its_scheme_is() -> None:
    def place(path: str) -> object:
        found = sb.Finding(id="x", severity=Severity.LOW, what="m", fix="f", path=path)
        return known_finding(found)

    assert place("s3a://bucket/lake/0.parquet") == place("S3://bucket/lake/0.parquet")
    assert place("s3://bucket/lake/0.parquet") != place("s3://other/lake/0.parquet")
    assert place("iceberg://shop/a.b") == place("iceberg://shop/a.b")


@pytest.mark.parametrize("text", ["", "[]", '{"findings": 1}', '{"findings": [[]]}', "[" * 100_000])
def test_what_is_no_report(lake: Path, text: str) -> None:
    (lake.parent / "last.json").write_text(text)
    with pytest.raises(sb.PolicyError, match="the baseline is not a report of an audit"):
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
    shown = run("audit", lake, "--policy", policy).stdout.splitlines()
    assert "customers (1 file): 1 low" in shown
    assert "orders (2 files): 1 unchecked" in shown
    run("add", lake / "customers", "--policy", policy)
    shown = run("audit", lake, "--policy", policy).stdout.splitlines()
    assert "customers (1 file): clean" in shown
    # One table is the whole report.
    alone = run("audit", lake / "customers", "--policy", policy).stdout
    assert "(1 file)" not in alone


def test_the_page_is_blank_where_nothing_was_looked_at(lake: Path) -> None:
    page = lake.parent / "audit.html"
    words = ("audit", lake, "--policy", lake.parent / "policy.toml", "--format", "html")
    run(*words, "--output", page)
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
    run(*words, "--output", page, "--sample", "1")
    assert page.read_text().count("1 of 1 file not looked at") == 2 * 3


def test_numbers_of_runs_for_prometheus(lake: Path) -> None:
    policy, metrics = lake.parent / "policy.toml", lake.parent / "run.prom"
    run("audit", lake, "--policy", policy, "--metrics", metrics)
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
    assert run("add", lake, "--policy", policy, "--metrics", metrics).returncode == 2
    text = metrics.read_text()
    for line in ('files{status="added"} 1', 'filters{action="added"} 1', "failures 1"):
        assert f"\nsecure_bloom_add_{line}\n" in text
    assert "secure_bloom_add_seconds 0." in text
    run("audit", lake, "--policy", policy, "--metrics", metrics)
    assert "\nsecure_bloom_audit_filters 1\n" in metrics.read_text()


def test_another_wrong_key_of_a_column_is_new(tmp_path: Path) -> None:
    policies = {name: tmp_path / f"{name}.toml" for name in ("first", "second", "wanted")}
    for name, path in policies.items():
        key = {"first": "k_a", "second": "k_b", "wanted": "k_pii"}[name]
        path.write_text(
            '[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n[footer]\nkey = "k_footer"\n'
            f'[columns.email]\nkey = "{key}"\n'
        )
    keys = ("k_footer", "k_pii", "k_a", "k_b")
    assert run("keys", "new", tmp_path / "keyring.json", *keys).returncode == 0
    table, last = tmp_path / "lake", tmp_path / "last.json"
    table.mkdir()
    found = []
    for name in ("first", "second"):
        pq.write_table(pa.table({"email": ["x"]}), table / "0.parquet")
        assert not sb.reencrypt(table, policy=policies[name]).failed
        report = sb.audit(table, policy=policies["wanted"], baseline=last if found else None)
        found.append([it.id for it in report.findings])
        last.write_text(report.to_json())
        assert not sb.audit(table, policy=policies["wanted"], baseline=last).findings
    assert found == [["column-wrong-key"]] * 2


@pytest.mark.parametrize(
    "tables", ['[tables."a/*"]\n[tables."b/*"]\n', '[tables."*"]\n', ""], ids=["two", "any", "none"]
)
def test_a_partition_column_of_a_new_table_is_new(tmp_path: Path, tables: str) -> None:
    """A table that nobody classified passes no nightly job because another one was accepted."""
    lake, policy, last = tmp_path / "lake", tmp_path / "policy.toml", tmp_path / "last.json"
    policy.write_text(f'[classified]\nclear = ["id"]\n{tables}')
    for folder in ("a/kunde=x", "a/kunde=y"):
        (lake / folder).mkdir(parents=True)
        pq.write_table(pa.table({"id": [1]}), lake / folder / "0.parquet")
    words = ("audit", lake, "--policy", policy, "--strict")
    last.write_text(run(*words, "--json").stdout)
    # Another partition of the table that is known is not new.
    (lake / "a" / "kunde=z").mkdir()
    pq.write_table(pa.table({"id": [1]}), lake / "a" / "kunde=z" / "0.parquet")
    assert run(*words, "--baseline", last).returncode == 0
    (lake / "b" / "kunde=anna").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), lake / "b" / "kunde=anna" / "0.parquet")
    done = run(*words, "--baseline", last)
    assert done.returncode == 1, done.stdout
    (finding,) = sb.audit(lake, policy=policy, strict=True, baseline=last).findings
    assert (finding.path, finding.column) == (str(lake / "b"), "kunde")
    # The report shows which table it is.
    assert f"    {lake / 'b'}" in run(*words, "-v").stdout.replace(
        "    b\n", f"    {lake / 'b'}\n"
    ), run(*words, "-v").stdout


def test_a_rule_for_a_column_is_wrong_in_one_table(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"id": ["x"]}), tmp_path / name / "0.parquet")
    policy, last = tmp_path / "policy.toml", tmp_path / "last.json"
    wrong = '[tables."{0}".columns.c]\nkey = "k"\n[tables."{0}".columns."c.d"]\nbloom = true\n'
    start = '[footer]\nkey = "f"\n'
    policy.write_text(start + wrong.format("a") + '[tables."b".columns.id]\n')
    first = sb.audit(tmp_path, policy=policy, without_keys=True)
    last.write_text(first.to_json())
    policy.write_text(start + wrong.format("a") + wrong.format("b"))
    report = sb.audit(tmp_path, policy=policy, without_keys=True, baseline=last)
    named = {it.table for it in report.findings if it.id == "policy-filter-without-key"}
    assert named == {"b"}
    text = run("audit", tmp_path, "--policy", policy, "--without-keys").stdout
    assert "in the tables a, b" in text


def test_a_session_leaves_a_column_of_a_second_table_in_clear(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"email": ["x"]}), tmp_path / name / "0.parquet")
    policy, last = tmp_path / "policy.toml", tmp_path / "last.json"
    start = '[footer]\nkey = "f"\n[tables.a.columns.email]\nkey = "k"\n[tables.b.columns.email]\n'
    properties = {
        "parquet.crypto.factory.class": CRYPTO_FACTORY,
        "parquet.encryption.footer.key": "f",
    }
    shared = {"without_keys": True, "spark_properties": properties}
    policy.write_text(start)
    last.write_text(sb.audit(tmp_path, policy=policy, **shared).to_json())
    policy.write_text(f'{start}key = "k"\n')
    found = sb.audit(tmp_path, policy=policy, baseline=last, **shared).findings
    assert ("spark-column-unprotected", "b") in {(it.id, it.table) for it in found}
