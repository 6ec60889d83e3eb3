"""Blocks of the docs that need Spark, typed as written, in the session that these tests share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import secure_bloom as sb
from secure_bloom import hudi
from secure_bloom.spark import register, session_config
from secure_bloom.spark.audit_job import FINDINGS_SCHEMA
from testing.tables import Mode, customers, write
from tests.pages import DOCS, Session, blocks, development_keys
from tests.spark.versions import since_4_0
from tests.test_pages import lake_under_an_older_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def placed(text: str, folder: Path) -> str:
    """The text with whole paths: the JVM has the folder that it was started in."""
    return re.sub(r'"(?=(?:keys/)?\w+(?:/|\.toml)")', f'"{folder}/', text)


@pytest.mark.filterwarnings("error::UserWarning")
def test_the_python_of_the_readme(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And docs/keys.md's, under the same policy; `test_readme` does it in a JVM of its own."""
    monkeypatch.chdir(tmp_path)
    development_keys()
    [on_keys] = [block for block in blocks("keys.md", "python") if "getOrCreate()" in block.text]
    on_keys_text = on_keys.text.replace("policy.toml", "keys/policy.toml")
    config = session_config("keys/policy.toml")
    try:
        names = {}
        for text in (*(block.text for block in blocks("../README.md", "python")), on_keys_text):
            exec(placed(text, tmp_path), names)
    finally:
        for name in filter(spark.conf.isModifiable, config):
            spark.conf.unset(name)
    shown = capsys.readouterr().out
    assert "k_finance" in shown
    assert "maybe" in shown
    assert {path.read_bytes()[-4:] for path in tmp_path.glob("out/*.parquet")} == {b"PARE"}


def test_the_block_on_changing_keys(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    lake_under_an_older_key()
    [block] = [block for block in blocks("rotation.md", "python") if "spark" in block.text]
    exec(placed(block.text, tmp_path), {"spark": spark})
    assert "error" in capsys.readouterr().out
    used = sb.keys_used("lake", keys=sb.Keyring.load("keyring.json")).files_by_key
    assert used == {("k_footer", None): 1, ("k_pii_2026", None): 1}


def test_the_block_on_audits(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    development_keys()
    Path("protected").mkdir()
    write(tmp_path / "protected" / "0.parquet", customers(5), Mode.PLAIN)
    [block] = [block for block in blocks("audit.md", "python") if "spark" in block.text]
    text = block.text.replace("policy.toml", "keys/policy.toml")
    names: dict[str, Any] = {"spark": spark}
    exec(placed(text, tmp_path), names)
    assert "column-in-clear" in capsys.readouterr().out
    found = names["found"].select("id").distinct().collect()
    accepted = "".join(f'[[audit.ignore]]\nfinding = "{it.id}"\nreason = "known"\n' for it in found)
    policy = Path("keys/policy.toml")
    policy.write_text(f"{policy.read_text()}\n{accepted}")
    exec(placed(text, tmp_path), names)
    assert names["found"].isEmpty()
    listed = (DOCS / "audit.md").read_text().partition("with the\ncolumns ")[2].partition(":")[0]
    fields = [field.split()[0] for field in FINDINGS_SCHEMA.split(", ")]
    assert re.findall(r"`(\w+)`", listed) == fields


@since_4_0
def test_the_block_on_record_keys_of_hudi(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    columns = "_hoodie_record_key string, email string, iban string, national_id long"
    rows = [(f"key-{n}", "x", "y", n) for n in range(9)]
    # The table of the page is in clear, and the session encrypts.
    plain = {"parquet.encryption.footer.key": "", "parquet.encryption.column.keys": ""}
    written = spark.createDataFrame(rows, columns).coalesce(1).write.options(**plain)
    written.parquet(f"{tmp_path}/table")
    hudi.add_record_key_filter("table")
    incoming = spark.createDataFrame([("key-7",), ("nowhere",)], "record_key string")
    names = {"spark": spark, "incoming": incoming}
    [block] = [block for block in blocks("hudi.md", "python") if "spark" in block.text]
    exec(placed(block.text, tmp_path), names)
    paths = {row.record_key: row.path for row in names["tagged"].collect()}  # type: ignore[attr-defined]
    assert paths["nowhere"] is None
    assert str(paths["key-7"]).endswith(".parquet")


@since_4_0
def test_the_block_of_sql(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "customers.parquet", customers(5), Mode.PLAIN)
    register(spark)
    [block] = blocks("spark.md", "sql")
    text = block.text.replace("/lake/customers", f"{tmp_path}/customers.parquet")
    text = text.replace(", policy 'keys/policy.toml'", "")
    spark.sql(text.strip().rstrip(";"))
    assert spark.table("customers").count() == 5
    spark.catalog.dropTempView("customers")


@pytest.mark.slow
def test_the_start_of_a_data_engineer_leads_to_a_clean_audit(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    development_keys()
    reader = Session()
    for block in blocks("start/engineer.md"):
        # The JVM has the folder it was started in, and the session its own configuration.
        block = type(block)(
            language=block.language,
            title=None,
            text=block.text.replace('"customers"', f'"{tmp_path}/customers"').replace(
                '"keys/policy.toml"', f'"{tmp_path}/keys/policy.toml"'
            ),
        )
        reader.do(block)
    assert reader.names["report"].where("error is not null").isEmpty()
    assert "user7@example.com" in capsys.readouterr().out
    assert reader.shown[-1].rstrip().endswith("clean")
