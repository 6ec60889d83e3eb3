"""The audit on executors, and of what Spark itself writes when it is told wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import PolicyError
from secure_bloom.running.memory_budget import VARIABLE
from secure_bloom.spark import add_bloom_filters, audit, reencrypt
from testing.command_line import run
from testing.spark.cluster import POLICY, Cluster
from testing.spark.parquet_java import PLAIN_WRITE
from tests.spark.typed_tables import data_files
from tests.spark.versions import since_4_0

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

ENCRYPTION = "parquet.encryption."


def customers(spark: SparkSession, files: int = 1, rows: int = 400) -> DataFrame:
    return (
        spark.range(rows)
        .repartition(files)
        .selectExpr(
            "concat('user', id, '@example.com') AS email",
            "concat('DE', id) AS iban",
            "id * 1000003 AS national_id",
            "element_at(array('it', 'no', 'fr'), cast(id % 3 + 1 AS int)) AS country",
        )
    )


def ids(report: sb.findings.AuditReport) -> set[tuple[str, str | None]]:
    return {(finding.id, finding.column) for finding in report.findings}


@pytest.fixture(scope="module")
def sound(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table in four files that Spark wrote under the policy, with filters."""
    folder = tmp_path_factory.mktemp("audited") / "customers"
    customers(spark, files=4).write.parquet(str(folder))
    done = add_bloom_filters(spark, str(folder), policy=POLICY)
    assert done.filter("error is not null").isEmpty()
    return folder


def test_what_spark_writes_under_the_policy_is_clean(sound: Path) -> None:
    report = sb.audit(sound, policy=POLICY, check_values=True)
    assert report.findings == ()
    assert (report.files, report.columns_checked) == (4, 16)


def test_what_an_earlier_report_has_is_ignored(
    spark: SparkSession, sound: Path, tmp_path: Path
) -> None:
    policy, last = tmp_path / "policy.toml", tmp_path / "last.json"
    keyring = POLICY.with_name("dev-keyring.json")
    text = POLICY.read_text().replace("dev-keyring.json", str(keyring))
    policy.write_text(text.replace("[columns.country]", '[columns.country]\nkey = "k_pii"'))
    first = sb.audit(sound, policy=policy)
    assert ("column-in-clear", "country") in ids(first)
    last.write_text(first.to_json())
    rows = audit(spark, str(sound), policy, baseline=last).collect()
    assert {row.ignored for row in rows} == {True}
    assert {(row.id, row.column) for row in rows} >= ids(first)


def test_jobs_on_several_tables_take_each_by_its_own_rules(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One policy of a company: `iban` is in one table alone, and `code` in the other."""
    keyring = POLICY.with_name("dev-keyring.json")
    policy = tmp_path / "policy.toml"
    policy.write_text(
        f'[kms]\nclient = "keyring"\nkeyring = "{keyring}"\n[footer]\nkey = "k_footer"\n'
        '[tables."people".columns.iban]\nkey = "k_pii"\nbloom = true\n'
        '[tables."orders".columns.code]\nkey = "k_finance"\nbloom = true\n'
    )
    for table, column in (("people", "iban"), ("orders", "code")):
        rows = pa.table({"id": [1, 2], column: ["x1", "x2"]})
        (tmp_path / table).mkdir()
        pq.write_table(rows, tmp_path / table / "a.parquet")
    tables = [str(tmp_path / "people"), str(tmp_path / "orders")]
    assert reencrypt(spark, tables, policy).filter("error is not null").isEmpty()
    done = add_bloom_filters(spark, tables, policy)
    assert {(row.column, row.key) for row in done.collect()} == {
        ("iban", "k_pii"),
        ("code", "k_finance"),
    }
    assert audit(spark, tables, policy).filter("not ignored").collect() == []


@since_4_0
def test_a_signed_footer_of_spark_is_clean_with_a_note_on_its_size_statistics(
    spark: SparkSession, tmp_path: Path, policy: KeyPolicy
) -> None:
    folder = str(tmp_path / "signed")
    options = {f"{ENCRYPTION}plaintext.footer": "true"}
    customers(spark).write.options(**options).parquet(folder)
    text = POLICY.read_text().replace('mode = "encrypted"', 'mode = "plaintext"')
    signed = tmp_path / "policy.toml"
    keyring = POLICY.with_name("dev-keyring.json")
    signed.write_text(text.replace("dev-keyring.json", str(keyring)))
    sb.add_bloom_filters(folder, policy=signed)
    report = sb.audit(folder, policy=signed)
    assert report.findings == ()
    assert {(note.id, note.column) for note in report.notes} == {
        ("sizes-in-clear", column) for column in ("email", "iban", "national_id")
    }


def test_a_column_that_the_options_forgot_is_in_clear(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "forgotten")
    keys = {f"{ENCRYPTION}column.keys": "k_pii:national_id;k_finance:iban"}
    customers(spark).write.options(**keys).parquet(folder)
    columns = KeyPolicy.load(POLICY).bloom_columns()
    del columns["email"]
    sb.add_bloom_filters(folder, columns=columns, policy=POLICY)
    report = sb.audit(folder, policy=POLICY, ignore=["filter-missing:email"])
    assert ids(report) == {("column-in-clear", "email")}


def test_a_misspelt_option_leaves_everything_in_clear(spark: SparkSession, tmp_path: Path) -> None:
    """`footer.kye`: parquet-java ignores it, and Spark writes a plain file without a word."""
    folder = str(tmp_path / "misspelt")
    options = {**PLAIN_WRITE, f"{ENCRYPTION}footer.kye": "k_footer"}
    customers(spark).write.options(**options).parquet(folder)
    report = sb.audit(folder, policy=POLICY, ignore=["filter-missing"], spark_properties=options)
    assert {name for name, _ in ids(report)} == {
        "column-in-clear",
        "footer-not-encrypted",
        "spark-no-encryption",
        "spark-unknown-word",
    }


@since_4_0
def test_a_filter_of_a_misspelt_column_is_missing(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "unfiltered")
    options = {
        "parquet.bloom.filter.enabled#iban": "true",
        "parquet.bloom.filter.enabled#national_id": "true",
        "parquet.bloom.filter.enabled#emial": "true",
        "parquet.bloom.filter.expected.ndv#iban": "400",
        "parquet.bloom.filter.expected.ndv#national_id": "400",
        "parquet.enable.dictionary": "false",
    }
    customers(spark).write.options(**options).parquet(folder)
    sb.add_bloom_filters(folder, columns=["country"], policy=POLICY)
    report = sb.audit(folder, policy=POLICY, check_values=True)
    assert ids(report) == {("filter-missing", "email")}
    told = sb.audit(folder, policy=POLICY, spark_properties=options).findings
    assert ("spark-column-unknown", "emial") in {(f.id, f.column) for f in told}


def test_the_executors_find_what_the_driver_finds(
    spark: SparkSession, sound: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    for path in data_files(sound)[:2]:
        (folder / path.name).write_bytes(path.read_bytes())
    customers(spark).write.options(**PLAIN_WRITE).mode("append").parquet(str(folder))
    (folder / "_KEY_MATERIAL_FOR_gone.parquet.json").write_text("{}")
    ignore = ["filter-missing:email"]
    seen: list[tuple[int, int]] = []
    rows = audit(
        spark, str(folder), POLICY, ignore=ignore, progress=lambda *told: seen.append(told)
    ).collect()
    report = sb.audit(folder, policy=POLICY, ignore=ignore)
    for findings, ignored in ((report.findings, False), (report.ignored, True)):
        assert [row.asDict() for row in rows if row.ignored is ignored] == [
            {**finding.to_dict(), "ignored": ignored} for finding in findings
        ]
    assert report.findings
    assert report.ignored
    assert seen[-1] == (3, 3)


def numbers_of(file: Path) -> dict[str, float]:
    """The numbers of a run that do not depend on when and for how long it ran."""
    lines = [line.split() for line in file.read_text().splitlines() if not line.startswith("#")]
    return {name: float(number) for name, number in lines if "seconds" not in name}


def test_the_numbers_are_those_of_the_command(
    spark: SparkSession, sound: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "mixed"
    shutil.copytree(sound, folder)
    pq.write_table(pa.table({"email": ["a@x.example"]}), folder / "clear.parquet")
    (folder / "torn.parquet").write_bytes(b"PAR1 and no more")
    ours, theirs = tmp_path / "spark.prom", tmp_path / "command.prom"
    audit(spark, str(folder), POLICY, metrics=ours)
    done = run("audit", folder, "--policy", POLICY, "--metrics", theirs)
    assert done.returncode == 1, done.stderr
    numbers = numbers_of(ours)
    assert numbers == numbers_of(theirs)
    assert numbers["secure_bloom_audit_files"] == 6
    assert numbers["secure_bloom_audit_files_unread"] == 1
    assert numbers['secure_bloom_audit_findings{severity="critical"}'] >= 1
    assert "secure_bloom_audit_seconds " in ours.read_text()


def test_numbers_replace_no_rows_and_no_policy(
    spark: SparkSession, sound: Path, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY.read_text())
    for place in (data_files(sound)[0], policy):
        before = place.read_bytes()
        with pytest.raises(PolicyError, match="would replace a file that is not a report"):
            audit(spark, str(sound), policy, metrics=place)
        assert place.read_bytes() == before
    with pytest.raises(PolicyError, match="no folder"):
        audit(spark, str(sound), policy, metrics=tmp_path / "gone" / "audit.prom")


def test_values_are_searched_for_on_the_executors(
    spark: SparkSession, sound: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "leaky"
    shutil.copytree(sound, folder)
    leaky = customers(spark).selectExpr("*", "email AS note")
    leaky.write.mode("append").parquet(str(folder))
    (folder / "dump.csv").write_text("\n".join(f"{n},user{n}@example.com" for n in range(50)))
    rows = audit(spark, str(folder), POLICY, check_values=True).collect()
    report = sb.audit(folder, policy=POLICY, check_values=True)
    wanted = [(it.id, it.path, it.column) for it in report.findings]
    assert sorted((it.id, it.path, it.column) for it in rows if not it.ignored) == sorted(wanted)
    leaks = {(Path(str(it.path)).suffix, it.column) for it in rows if it.id == "values-in-clear"}
    assert leaks >= {(".parquet", "note"), (".csv", "email")}


def test_values_that_do_not_fit_into_memory_are_searched_for_on_executors(
    spark: SparkSession, sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In files of tables, which tasks search, and in others and in names, which the driver does."""
    folder = tmp_path / "wide"
    shutil.copytree(sound, folder)
    customers(spark, rows=20_000).write.mode("append").parquet(str(folder))
    last = [f"USER{n}@example.com" for n in range(19_900, 20_000)]
    pq.write_table(pa.table({"note": last}), folder / "notes.parquet")
    (folder / "dump.csv").write_text("\n".join(last))
    monkeypatch.setenv(VARIABLE, "1MiB")
    # What the workers of Python get.
    monkeypatch.setitem(spark.sparkContext.environment, VARIABLE, "1MiB")
    rows = audit(spark, str(folder), POLICY, check_values=True).collect()
    leaks = {(Path(str(it.path)).suffix, it.column) for it in rows if it.id == "values-in-clear"}
    assert leaks == {(".parquet", "note"), (".csv", "email")}
    assert not [it for it in rows if it.id == "unchecked-values"]


def test_a_clean_table_gives_no_row_that_counts(spark: SparkSession, sound: Path) -> None:
    """Short values of two columns were not searched for, which a note says."""
    rows = audit(spark, str(sound), str(POLICY), check_values=True)
    assert rows.where("not ignored").isEmpty()
    assert {row.id for row in rows.collect()} == {"values-not-searched"}


def test_what_cannot_be_audited_is_an_error_of_the_driver(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(PolicyError, match="no such file"):
        audit(spark, str(tmp_path / "nowhere"), POLICY)


def _on_cluster(spark: SparkSession, folder: str, policy: str) -> list[list[str | None]]:
    from secure_bloom.spark import audit as audit_on_spark

    return [[row.id, row.column] for row in audit_on_spark(spark, folder, policy).collect()]


@pytest.mark.slow
def test_executors_of_a_cluster_ask_the_kms_themselves(
    cluster: Cluster, spark: SparkSession, sound: Path, tmp_path: Path
) -> None:
    assert cluster.run(_on_cluster, str(sound), str(POLICY)) == []
    folder = str(tmp_path / "plain")
    customers(spark).write.options(**PLAIN_WRITE).parquet(folder)
    found = cluster.run(_on_cluster, folder, str(POLICY))
    assert ["column-in-clear", "email"] in found
