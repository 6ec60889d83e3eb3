"""Each command that an audit prints runs, names the table it is for, and mends what it says."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config

import secure_bloom as sb
from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.fixes import NamedPlace, Targets
from secure_bloom.auditing.formats.mistakes import group_report, parts_of_fix
from secure_bloom.auditing.rules import RULES
from secure_bloom.calling.options import FooterMode
from secure_bloom.cli import main
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.lakes import list_tables
from testing.tables import KEYRING, customers, keyring_json
from tests.auditing.examples import EXAMPLES, with_rules

ROWS = 30
ROWS_OF_ICEBERG = customers(ROWS).select(["id", "email", "city"])
#: Examples whose fix has a command.
WITH_COMMANDS = [name for name, it in RULES.items() if "`secure-bloom" in it.fix or "`rm" in it.fix]
#: Where more than the command is to be done, by what the fix says.
MORE_TO_DO = {"keys-in-lake", "unchecked-values"}
#: Their commands need keys or a catalog that the example lacks.
OTHER_EXAMPLES = {"key-retired", "table-log-in-clear"}


def policy_file(path: Path, policy: KeyPolicy) -> Path:
    """The policy as a file, with a keyring beside it."""
    lines = ["[kms]", 'client = "keyring"', 'keyring = "keyring.json"']
    if policy.footer_key is not None:
        mode = "plaintext" if policy.footer_mode is FooterMode.SIGNED else "encrypted"
        lines += ["[footer]", f'key = "{policy.footer_key}"', f'mode = "{mode}"']
        lines += ["[encryption]", f"data_key_bits = {policy.encryption.data_key_bits}"]
    for name, rule in policy.columns.items():
        lines.append(f"[columns.{json.dumps(name)}]")
        lines += [] if rule.key is None else [f'key = "{rule.key}"']
        if rule.bloom is not None:
            options = rule.bloom
            lines.append(f"bloom = {{ fpp = {options.fpp}, max_bytes = {options.max_bytes} }}")
    lines += [f"[keys.{name}]\nretired = true" for name in policy.retired_keys]
    path.write_text("\n".join(lines) + "\n")
    keyring = path.parent / "keyring.json"
    keyring.write_text(keyring_json())
    keyring.chmod(0o600)
    return path


def commands(report: sb.findings.AuditReport) -> Iterator[str]:
    """The commands of all mistakes, each once."""
    found = [part for it in group_report(report) for part, is_one in parts_of_fix(it.fix) if is_one]
    yield from dict.fromkeys(found)


def run(command: str) -> None:
    words = shlex.split(command)
    if words[0] == "rm":
        assert subprocess.run(words, check=False).returncode == 0, command
        assert not any(Path(path).exists() for path in words[2:])
        return
    assert words[0] == "secure-bloom"
    with pytest.raises(SystemExit) as ended:
        main(words[1:])
    assert ended.value.code == 0 or words[1] == "inspect", command


def test_keys_are_not_rotated_where_the_policy_has_no_key(tmp_path: Path) -> None:
    lake, keys = tmp_path / "lake", tmp_path / "keys"
    lake.mkdir()
    keys.mkdir()
    policy = policy_file(keys / "policy.toml", EXAMPLES["key-retired"](lake).policy)
    report = sb.audit(lake, policy=policy, keys=KEYRING)
    assert list(commands(report)) == []
    assert "give the column a key in the policy" in report.findings[0].fix


@pytest.mark.parametrize("name", [it for it in WITH_COMMANDS if it not in OTHER_EXAMPLES])
def test_the_command_of_each_finding_runs_and_mends_it(tmp_path: Path, name: str) -> None:
    lake, keys = tmp_path / "my lake", tmp_path / "keys"
    lake.mkdir()
    keys.mkdir()
    wrong = EXAMPLES[name](lake)
    policy = policy_file(keys / "policy.toml", wrong.policy)
    report = sb.audit(lake, policy=policy, **wrong.options)
    assert name in {it.id for it in report.findings}
    made = list(commands(report))
    assert made
    for command in made:
        run(command)
    after = sb.audit(lake, policy=policy, **wrong.options)
    assert name in MORE_TO_DO or name not in {it.id for it in after.findings}


def _sink(folder: Path) -> Path:
    (folder / "_spark_metadata").mkdir(parents=True)
    pq.write_table(customers(ROWS), folder / "part-0.parquet")
    path = folder / "part-0.parquet"
    entry = {"path": f"file://{path}", "size": path.stat().st_size, "isDir": False}
    entry |= {"modificationTime": 0, "blockReplication": 1, "blockSize": 1, "action": "add"}
    (folder / "_spark_metadata" / "0").write_text(f"v1\n{json.dumps(entry)}")
    return folder


@pytest.fixture
def mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake with tables of many formats, all in clear."""
    lake = tmp_path / "lake"
    deltalake.write_deltalake(str(lake / "delta"), customers(ROWS))
    for name, columns in (("customers", customers(ROWS)), ("orders", pa.table({"id": [1, 2]}))):
        folder = lake / "plain" / name / "day=1"
        folder.mkdir(parents=True)
        pq.write_table(columns, folder / "x.parquet")
    pq.write_table(customers(ROWS), lake / "one.parquet")
    _sink(lake / "sink")
    (lake / "hudi" / ".hoodie").mkdir(parents=True)
    pq.write_table(customers(ROWS), lake / "hudi" / "x.parquet")
    prefix = "PYICEBERG_CATALOG__PROD__"
    monkeypatch.setenv(f"{prefix}TYPE", "sql")
    monkeypatch.setenv(f"{prefix}URI", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setenv(f"{prefix}WAREHOUSE", f"file://{tmp_path}/warehouse")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    catalog = load_catalog("prod")
    catalog.create_namespace("db")
    catalog.create_table("db.people", schema=ROWS_OF_ICEBERG.schema).append(ROWS_OF_ICEBERG)
    return lake


def _policy(folder: Path) -> Path:
    folder.mkdir()
    text = (
        '[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n[footer]\nkey = "k_footer"\n'
        '[columns.email]\nkey = "k_pii"\nbloom = true\n[columns.id]\nbloom = true\n'
    )
    (folder / "policy.toml").write_text(text)
    (folder / "keyring.json").write_text(keyring_json())
    (folder / "keyring.json").chmod(0o600)
    return folder / "policy.toml"


def test_the_commands_of_a_mixed_lake_run(mixed: Path, tmp_path: Path) -> None:
    policy = _policy(tmp_path / "keys")
    report = sb.audit([mixed], policy=policy)
    fixes = {it.path: it.fix for it in report.findings if it.id == "column-in-clear"}
    assert f"`secure-bloom reencrypt {mixed}/delta --policy" in str(fixes)
    assert f"`secure-bloom reencrypt {mixed}/plain --policy" in str(fixes)
    assert f"`secure-bloom reencrypt {mixed}/one.parquet --policy" in str(fixes)
    assert "no command of secure-bloom writes into a table of Spark" in str(fixes)
    # Worst first: what is encrypted then gets its filters.
    for command in commands(report):
        run(command)
    after = sb.audit([mixed], policy=policy)
    for command in commands(after):
        run(command)
    left = {
        (it.id, str(it.path).removeprefix(str(mixed)).split("/")[1])
        for it in sb.audit([mixed], policy=policy).findings
        if "does not name" not in it.what and it.id != "table-log-in-clear"
    }
    assert {place for _, place in left} <= {"sink", "hudi"}


@pytest.mark.parametrize(
    "name", ["it's `a` $HOME \"x\\ [a]* ü", "-v\ntwo\x1b[1m"], ids=["quotes", "lines"]
)
def test_commands_run_whatever_a_folder_is_called(tmp_path: Path, name: str) -> None:
    lake, policy = tmp_path / "lake" / name, _policy(tmp_path / f"keys {name}")
    lake.mkdir(parents=True)
    pq.write_table(customers(ROWS), lake / "x.parquet")
    (lake / "_metadata").write_bytes((lake / "x.parquet").read_bytes())
    program = shlex.join([sys.executable, "-m", "secure_bloom"])
    for _ in range(2):
        for command in commands(sb.audit(lake.parent, policy=policy)):
            line = re.sub("^secure-bloom", lambda _: program, command)
            assert subprocess.run(["bash", "-c", line], check=False).returncode == 0, command
    assert sb.audit(lake.parent, policy=policy).findings == ()


def test_the_fix_of_an_index_that_a_manifest_has_removes_no_file(tmp_path: Path) -> None:
    """Without a file that a manifest names, Paimon could not read the table."""
    pytest.importorskip("pypaimon_rust")
    from testing.paimon_tables import Warehouse

    lake = Warehouse(path=str(tmp_path / "lake"))
    folder = lake.create("id bigint, email string", file_index__in_manifest_threshold="1 kb")
    lake.insert([(1, "a")])
    sb.paimon.build_index(folder, ["email"])
    report = sb.audit(folder, policy=_policy(tmp_path / "keys"))
    fixes = {it.fix for it in report.findings if it.id == "paimon-index-in-clear"}
    assert fixes
    assert not any("`" in fix for fix in fixes)


def test_a_missing_filter_of_a_paimon_table_has_the_command_that_builds_its_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pypaimon_rust")
    from testing.paimon_tables import Warehouse

    lake = Warehouse(path=str(tmp_path / "lake"))
    folder = lake.create("id bigint, email string")
    lake.insert([(1, "a")])
    policy = tmp_path / "policy.toml"
    policy.write_text("[columns.email]\nbloom = true\n[columns.id]\n")
    report = sb.audit(tmp_path / "lake", policy=policy)
    (fix,) = {it.fix for it in report.findings if it.id == "filter-missing"}
    assert fix == f"`secure-bloom paimon build {folder} --column email`"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(fix.strip("`"))[1:])
    assert ended.value.code == 0
    # The index is in clear, so a sensitive column gets none by the advice of an audit.
    policy.write_text('[footer]\nkey = "f"\n[columns.email]\nkey = "k"\nbloom = true\n')
    report = sb.audit(tmp_path / "lake", policy=policy, without_keys=True)
    fixes = {it.fix for it in report.findings if it.id == "filter-missing"}
    assert all("`" not in fix for fix in fixes), fixes
    # The parts of the table are no files that somebody left there.
    assert [it.id for it in report.notes if it.id == "other-files"] == []
    (Path(folder) / "snapshot" / "export.csv").write_text("some text")
    notes = sb.audit(tmp_path / "lake", policy=policy, without_keys=True).notes
    (note,) = (it for it in notes if it.id == "other-files")
    assert note.what == "1 other file was not looked at: export.csv"


def test_a_path_with_a_masked_value_is_in_no_command(tmp_path: Path) -> None:
    folder = tmp_path / "email=user1@example.com"
    folder.mkdir()
    pq.write_table(customers(ROWS), folder / "x.parquet")
    (folder / "_metadata").write_bytes((folder / "x.parquet").read_bytes())
    report = sb.audit(folder, policy=_policy(tmp_path / "keys"))
    assert list(commands(report)) == []
    assert "run reencrypt on the files" in str([it.fix for it in report.findings])


def test_the_path_of_a_vacuum_is_a_text_of_sql(tmp_path: Path) -> None:
    lake = tmp_path / "it's"
    deltalake.write_deltalake(str(tmp_path / "t"), customers(ROWS))
    deltalake.DeltaTable(str(tmp_path / "t")).delete("id < 3")
    (tmp_path / "t").rename(lake)
    report = sb.audit(lake, policy=_policy(tmp_path / "keys"))
    assert f": VACUUM '{tmp_path}/it\\u0027s' (" in str([it.fix for it in report.findings]).replace(
        "\\\\", "\\"
    )


def test_a_file_with_two_findings_is_removed_by_either_command(tmp_path: Path) -> None:
    lake, policy = tmp_path / "lake", _policy(tmp_path / "keys")
    lake.mkdir()
    pq.write_table(customers(ROWS), lake / "x.parquet")
    for name in ("_metadata", "copy.bak"):
        (lake / name).write_bytes((lake / "x.parquet").read_bytes())
    removing = [it for it in commands(sb.audit(lake, policy=policy)) if it.startswith("rm ")]
    assert len(removing) == 2
    for command in removing:
        run(command)


def test_a_fix_names_the_column_of_the_property(mixed: Path, tmp_path: Path) -> None:
    report = sb.audit("iceberg://prod/db.people", policy=_policy(tmp_path / "keys"))
    fixes = {it.column: it.fix for it in report.findings if it.id == "table-log-in-clear"}
    assert "write.metadata.metrics.column.email=none" in fixes["email"]
    assert "`secure-bloom reencrypt iceberg://prod/db.people --policy " in fixes["email"]
    for call in ("table.maintenance.expire_snapshots()", "CALL system.expire_snapshots"):
        assert call in fixes["email"]


def test_the_steps_for_iceberg_clean_the_metadata(mixed: Path, tmp_path: Path) -> None:
    """The finding stays until manifests that no snapshot names are gone, as the fix says."""
    policy = _policy(tmp_path / "keys")

    def fixes() -> list[str | None]:
        report = sb.audit("iceberg://prod/db.people", policy=policy)
        return [it.fix for it in report.findings if it.id == "table-log-in-clear"]

    table = load_catalog("prod").load_table("db.people")
    with table.transaction() as change:
        change.set_properties({"write.metadata.metrics.column.email": "none"})
    table.overwrite(ROWS_OF_ICEBERG)
    [fix] = fixes()
    assert "expire older snapshots, and remove manifests and data files that no snapshot" in str(
        fix
    )
    current = table.current_snapshot()
    assert current is not None
    old = [it.snapshot_id for it in table.snapshots() if it.snapshot_id != current.snapshot_id]
    table.maintenance.expire_snapshots().by_ids(old).commit()
    assert fixes() == [fix]
    named = {Path(current.manifest_list).name}
    named |= {Path(it.manifest_path).name for it in current.manifests(table.io)}
    for path in (tmp_path / "warehouse").rglob("*.avro"):
        if path.name not in named:
            path.unlink()
    assert fixes() == []


def test_the_steps_with_deltalake_clean_the_log(tmp_path: Path) -> None:
    """Bounds in the log, and old files in clear, are gone after the steps that the fixes name."""
    folder, policy = tmp_path / "t", _policy(tmp_path / "keys")
    deltalake.write_deltalake(folder, customers(ROWS))
    deltalake.write_deltalake(folder, customers(ROWS), mode="append")
    fixes = {it.id: it.fix for it in sb.audit(folder, policy=policy).findings}
    in_log = fixes["table-log-in-clear"]
    assert f"`secure-bloom reencrypt {folder} --policy {policy}`" in str(in_log)
    assert "dataSkippingStatsColumns" in in_log
    kept = {"delta.dataSkippingStatsColumns": "id", "delta.logRetentionDuration": "interval 0 days"}
    deltalake.DeltaTable(folder).alter.set_table_properties(kept)
    sb.reencrypt(folder, policy=policy)
    sb.add_bloom_filters(folder, policy=policy)
    old = {it.id: it.fix for it in sb.audit(folder, policy=policy).findings}
    steps = re.findall(r"table\.((?:vacuum|create|clean)\w*\([^)]*\))", in_log)
    assert f"deltalake: DeltaTable.{steps[0]}" in old["column-in-clear"]
    for step in steps:
        eval(f"table.{step}", {"table": deltalake.DeltaTable(folder)})
    assert len(steps) == 3
    assert sb.audit(folder, policy=policy).findings == ()


def test_the_fix_with_deltalake_removes_files_of_change_data(tmp_path: Path) -> None:
    """Without ``full=True`` deltalake leaves files that the log never named as data."""
    folder, policy = tmp_path / "t", _policy(tmp_path / "keys")
    settings = {"delta.enableChangeDataFeed": "true", "delta.dataSkippingStatsColumns": "id"}
    deltalake.write_deltalake(folder, customers(ROWS), configuration=settings)
    deltalake.DeltaTable(folder).delete("id < 3")
    sb.reencrypt(folder, policy=policy)
    orphan = folder / "part-00000-of-a-dead-writer.parquet"
    pq.write_table(customers(ROWS), orphan)
    found = [it for it in sb.audit(folder, policy=policy).findings if it.id == "column-in-clear"]
    paths = {str(it.path) for it in found}
    assert any("/_change_data/" in it for it in paths)
    assert str(orphan) in paths
    (step,) = {re.findall(r"DeltaTable\.(vacuum\([^)]*\))", str(it.fix))[0] for it in found}
    eval(f"table.{step}", {"table": deltalake.DeltaTable(folder)})
    after = sb.audit(folder, policy=policy).findings
    assert "column-in-clear" not in {it.id for it in after}


def test_the_commands_of_an_iceberg_table_name_its_catalog(mixed: Path, tmp_path: Path) -> None:
    policy = tmp_path / "filters.toml"
    policy.write_text("[columns.city]\nbloom = true\n")
    uri = "iceberg://prod/db.people"
    report = sb.audit([uri], policy=policy)
    assert list(commands(report)) == [f"secure-bloom add {uri} --policy {policy}"]
    for command in commands(report):
        run(command)
    assert sb.audit([uri], policy=policy).findings == ()
    keys = _policy(tmp_path / "keys")
    secret = sb.audit([uri], policy=keys)
    fixes = {it.fix for it in secret.findings if it.id == "column-in-clear"}
    assert any(f"`secure-bloom reencrypt {uri} --policy" in it for it in fixes)
    run(next(command for command in commands(secret) if " reencrypt " in command))
    used = sb.keys_used(uri, policy=keys)
    assert {name for name, _ in used.files_by_key} == {"k_footer", "k_pii"}


def test_the_fixes_of_a_folder_of_iceberg_name_its_catalog(mixed: Path, tmp_path: Path) -> None:
    """A pattern of the policy for that folder is in use, though no file of it was listed."""
    folder = Path(load_catalog("prod").load_table("db.people").location().removeprefix("file://"))
    policy, orders = _policy(tmp_path / "keys"), mixed / "plain" / "orders"
    section = f'[tables."{folder.parent}/*".columns.email]\n[tables."orders/*"]\n'
    policy.write_text(policy.read_text() + section)
    report = sb.audit([orders, folder.parent], policy=policy)
    fixes = {it.id: it.fix for it in report.findings if str(it.path).startswith(str(folder))}
    assert fixes.keys() >= {"unchecked-feature", "column-in-clear"}
    assert all("iceberg://CATALOG/NAMESPACE.TABLE" in str(it) for it in fixes.values())
    assert "policy-table-unused" not in {it.id for it in report.notes}
    policy.write_text(policy.read_text().replace(f"{folder.parent}/*", "db.people"))
    report = sb.audit([orders, folder.parent], policy=policy)
    assert {it.table: sum(it.findings.values()) for it in report.tables}[str(folder)] >= 2


def test_the_policy_is_corrected_before_a_command_that_would_fail(tmp_path: Path) -> None:
    """No file with a column that is named like a sensitive one gets other keys."""
    lake, policy = tmp_path / "lake", _policy(tmp_path / "keys")
    lake.mkdir()
    pq.write_table(ROWS_OF_ICEBERG, lake / "x.parquet")
    right = policy.read_text()
    policy.write_text(right.replace("columns.email", "columns.emial"))
    report = sb.audit(lake, policy=policy)
    (fix,) = {it.fix for it in report.findings if it.id == "footer-not-encrypted"}
    command = f"secure-bloom reencrypt {lake} --policy {policy}"
    assert f"policy first: name email, which is like a sensitive column; then `{command}`" in fix
    policy.write_text(right)
    run(command)


def test_a_file_of_another_branch_is_brought_under_the_policy_there(
    mixed: Path, tmp_path: Path
) -> None:
    """No expiry of snapshots removes it: it is live."""
    uri, policy = "iceberg://prod/db.people", _policy(tmp_path / "keys")
    table = load_catalog("prod").load_table("db.people")
    head = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_branch(head, "a b").commit()
    table.append(ROWS_OF_ICEBERG, branch="a b")
    run(f"secure-bloom reencrypt {uri} --policy {policy}")
    found = [it for it in sb.audit(uri, policy=policy).findings if it.id == "column-in-clear"]
    assert all(it.what.endswith("in a file of the branch a b") for it in found)
    command = f"secure-bloom reencrypt {uri} --policy {policy} --branch 'a b'"
    assert {parts[0] for it in found for parts in parts_of_fix(str(it.fix)) if parts[1]} == {
        command
    }
    run(command)
    found = [it for it in sb.audit(uri, policy=policy).findings if it.id == "column-in-clear"]
    assert found
    assert all("branch" not in it.what for it in found)


def test_a_target_is_the_highest_place_without_another_table(mixed: Path) -> None:
    targets = Targets(list_tables([str(mixed / "plain")]), [str(mixed)], [str(mixed / "hudi")])
    inside = str(mixed / "plain" / "orders" / "day=1" / "x.parquet")
    assert targets.of(inside) == NamedPlace(str(mixed / "plain"))
    targets = Targets(list_tables([inside]), [inside], [])
    assert targets.of(inside) == NamedPlace(inside)
    objects = Targets(list_tables([inside]), ["s3://b/lake"], ["s3://b/lake/d"])
    assert objects.of("s3://b/lake/p/x.parquet") == NamedPlace("s3://b/lake/p")
    finding = Finding(
        id="x",
        severity=RULES["filter-missing"].severity,
        what="",
        fix="`secure-bloom add PATH --policy FILE`",
        path="s3://b/lake/p/x.parquet",
    )
    assert objects.fix_of(finding, KeyPolicy(), "p.toml") == (
        "`secure-bloom add s3://b/lake/p --policy p.toml`"
    )


@pytest.mark.parametrize("name", ["column-wrong-key", "column-in-clear", "filter-missing"])
def test_no_command_before_the_policy_has_keys_that_exist(tmp_path: Path, name: str) -> None:
    """Every command of a fix takes the policy, and ends with an error about its unknown key."""
    example = EXAMPLES[name](tmp_path)
    assert isinstance(example.policy, KeyPolicy)
    policy = with_rules(example.policy, iban="k_gone")
    report = sb.audit(example.path, policy=policy, keys=KEYRING, **example.options)
    found = [it for it in report.findings if it.id == name]
    assert found
    for finding in found:
        assert finding.fix.startswith("policy first: the KMS has no master key k_gone; then ")
    (unknown,) = (it for it in report.findings if it.id == "policy-key-unknown")
    assert "policy first" not in unknown.fix
    assert not any("policy first" in it.fix for it in example.audit().findings)


def test_the_fix_of_an_older_version_changes_nothing_of_the_current_one(tmp_path: Path) -> None:
    """What the command would do was done already: the old files are what is left."""
    table = tmp_path / "events"
    deltalake.write_deltalake(table, customers(ROWS))
    policy = tmp_path / "policy.toml"
    policy.write_text(
        '[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n[footer]\nkey = "k_footer"\n'
        '[columns.email]\nkey = "k_pii"\n'
    )
    (tmp_path / "keyring.json").write_text(keyring_json())
    sb.reencrypt(table, policy=policy)
    report = sb.audit(table, policy=policy, version=0)
    fixes = {it.fix for it in report.findings if it.id == "column-in-clear"}
    assert len(fixes) == 1
    assert "VACUUM" in str(fixes)
    assert "secure-bloom reencrypt" not in str(fixes)


def test_the_fix_of_a_key_that_the_policy_does_not_name_says_to_name_it(tmp_path: Path) -> None:
    example = EXAMPLES["column-wrong-key"](tmp_path)
    policy = with_rules(example.policy, iban="k_pii")
    assert "k_finance" not in policy.named_keys()
    report = sb.audit(example.path, policy=policy, keys=KEYRING)
    fixes = [it.fix for it in report.findings if it.column == "iban"]
    assert fixes
    assert all(it.startswith("name the old key under [keys] of the policy") for it in fixes)


def test_a_sensitive_partition_column_is_not_to_be_left_out(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", customers(3), partition_by=["email"])
    policy = with_rules(KeyPolicy(footer_key="k_footer"), email="k_pii")
    with pytest.raises(sb.PolicyError, match="email is a partition column") as caught:
        sb.reencrypt(tmp_path / "t", policy=policy, keys=KEYRING)
    assert "write the table again, partitioned by another column" in str(caught.value.hint)
    assert "leave it out" not in str(caught.value.hint)
