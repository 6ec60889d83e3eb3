"""Pages of the docs that need no Spark, typed as written."""

from __future__ import annotations

import base64
import datetime
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import click
import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.cli.verbs import cli
from testing.command_line import run
from testing.hudi_files import base_file
from testing.paimon_tables import Warehouse
from testing.project import ROOT
from testing.tables import Mode, customers, keyring_json
from tests.pages import (
    DOCS,
    Block,
    Session,
    blocks,
    development_keys,
    every_page,
    pages,
    words_of_the_docs,
)

Names: TypeAlias = dict[str, Any]


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """In an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Session()


def customers_under_the_policy(folder: str) -> None:
    """A table with filters as the development policy wants it."""
    development_keys()
    count = 60
    table = pa.table(
        {
            "email": [f"user{n}@example.com" for n in range(count)],
            "iban": [f"DE{n:020d}" for n in range(count)],
            "national_id": pa.array(range(count), pa.int64()),
            "country": ["it", "no", "de"] * 20,
        }
    )
    Path(folder).mkdir()
    encryption = sb.pyarrow_encryption("keys/policy.toml", table.schema)
    properties = encryption.encryption_properties()
    pq.write_table(table, f"{folder}/0.parquet", encryption_properties=properties)
    sb.add_bloom_filters(folder, policy="keys/policy.toml")


def table_and_queries() -> None:
    customers_under_the_policy("customers")
    Path("queries.sql").write_text("select * from customers where email = 'user7@example.com'\n")


def test_the_start_of_an_analyst_leads_to_a_row(reader: Session) -> None:
    reader.follow("start/analyst.md")
    assert reader.names["rows"].column("email").to_pylist() == ["user7@example.com"]
    [explained] = [text for text in reader.shown if "row groups:" in text]
    assert "row groups: 1 of 10 read" in explained
    assert "skipped by Bloom filter" in explained


def test_the_start_of_a_security_team_leads_to_a_clean_audit(reader: Session) -> None:
    reader.follow("start/security.md")
    assert "column-in-clear" in next(text for text in reader.shown if "critical" in text)
    assert reader.shown[-1].rstrip().endswith("clean")
    assert "column-in-clear" in Path("audit.html").read_text()
    assert "column-in-clear" in Path("audit.sarif").read_text()


def hudi_tables() -> Names:
    """A table with filters, and a copy without."""
    Path("keyring.json").write_text(keyring_json())
    Path("keyring.json").chmod(0o600)
    kms = '[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n'
    Path("policy.toml").write_text(f'{kms}[footer]\nkey = "k_footer"\n')
    for name, mode in (("table", Mode.PLAIN), ("copy", Mode.ENCRYPTED)):
        Path(name).mkdir()
        base_file(Path(name, "a.parquet"), ["some-key", "key-1"], mode)
    sb.hudi.add_record_key_filter("table")
    return {"keys": sb.Keyring.load("keyring.json")}


def paimon_files() -> Names:
    """Data files, and indexes beside files of another format."""
    Path("data").mkdir()
    tags = pa.array([[("city", "rome")], [("city", "oslo")]], pa.map_(pa.string(), pa.string()))
    ids = pa.array([5, 6], pa.int64())
    days = pa.array([datetime.date(2024, 3, 1)] * 2)
    rows = {"id": ids, "k": ids, "name": ["anna", "bo"], "day": days, "tags": tags}
    pq.write_table(pa.table(rows), "data/part-0.parquet")
    lake = Warehouse(path=str(Path("lake").resolve()))
    lake.create("id bigint, day date", name="orders", partitioned="day")
    lake.insert([(5, "date '2026-11-20'")], name="orders")
    sb.paimon.build_index("data/part-0.parquet", ["id", "day"])
    made = Path("data/part-0.parquet.index")
    for name in ("bucket-0", "bucket-1"):
        Path(name).mkdir()
        Path(name, "data-0.orc").write_bytes(b"ORC")
        Path(name, "data-0.orc.index").write_bytes(made.read_bytes())
    Path("data-1.orc.index").write_bytes(made.read_bytes())
    embedded = made.read_bytes()
    made.unlink()
    [index] = sb.paimon.FileIndex.from_bytes(embedded).indexes("id")
    return {"keys": None, "embedded": embedded, "body": index.body}


def lake_under_an_older_key() -> Names:
    """A table and a Delta table, and a policy that names a newer key for a column."""
    names = ("k_footer", "k_pii_2025", "k_pii_2026")
    keyring = Path("keyring.json")
    keyring.write_text(keyring_json({name: os.urandom(16) for name in names}))
    keyring.chmod(0o600)
    policy = '[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n[footer]\nkey = "k_footer"\n'
    Path("old.toml").write_text(f'{policy}[columns.email]\nkey = "k_pii_2025"\n')
    Path("policy.toml").write_text(
        f'{policy}[columns.email]\nkey = "k_pii_2026"\n[keys.k_pii_2025]\nretired = true\n'
    )
    Path("new-keyring.json").write_text(keyring_json({name: os.urandom(16) for name in names}))
    Path("new-keyring.json").chmod(0o600)
    Path("new.toml").write_text(
        policy.replace("keyring.json", "new-keyring.json") + '[columns.email]\nkey = "k_pii_2026"\n'
    )
    Path("lake").mkdir()
    pq.write_table(customers(5), "lake/0.parquet")
    # No bounds in the log, which encryption would not hide.
    bounded = {"delta.dataSkippingStatsColumns": "id"}
    deltalake.write_deltalake("events", customers(5), configuration=bounded)
    for table in ("lake", "events"):
        sb.reencrypt(table, policy="old.toml")
    return {}


def orders() -> None:
    """A Delta table of two versions."""
    for ids, note in (([5, 6], "early"), ([7], "late")):
        days = [datetime.date(2026, 1, 1 + (i > 6)) for i in ids]
        rows = pa.table({"id": pa.array(ids, pa.int64()), "day": days, "note": [note] * len(ids)})
        deltalake.write_deltalake("orders", rows, partition_by=["day"], mode="append")


def plain_lake_with_filters() -> None:
    """A plain file and a Delta table, whose e-mails have filters."""
    Path("lake").mkdir()
    rows = pa.table({"email": [f"user{n}@example.com" for n in range(200)]})
    deltalake.write_deltalake("events", rows)
    sb.add_bloom_filters("events", columns=["email"])
    pq.write_table(rows, "lake/0.parquet", row_group_size=100)
    sb.add_bloom_filters("lake", columns=["email"])


def dump_and_backups() -> None:
    """A table, a dump with values of it, and two folders without."""
    customers_under_the_policy("out")
    Path("dump.csv").write_text("".join(f"{n};user{n}@example.com\n" for n in range(20)))
    for folder in ("backups", "notes"):
        Path(folder).mkdir()
        Path(folder, "a.txt").write_text("The backup of Monday is whole.\n")


def analysts_table() -> None:
    """The one that the start of an analyst makes."""
    Session().follow("start/analyst.md")


#: Pages, and what makes the folder that they find, with the names that their Python knows.
SETTINGS: dict[str, Callable[[], Names | None]] = {
    "advise.md": table_and_queries,
    "audit.md": lambda: customers_under_the_policy("out"),
    "hudi.md": hudi_tables,
    "leak-search.md": dump_and_backups,
    "many-lookups.md": analysts_table,
    "paimon.md": paimon_files,
    "reading.md": analysts_table,
    "reading/conditions.md": analysts_table,
    "reading/skipped.md": analysts_table,
    "remove-and-upgrade.md": plain_lake_with_filters,
    "tables.md": orders,
}

#: Pages that a test of their own types from end to end, and where it stands.
WHOLE = {
    "delta.md": "test_pages::test_filters_of_a_delta_table_are_committed",
    "object-stores.md": "test_pages::test_rights_in_a_store_are_a_document",
    "rotation.md": "test_pages::test_a_key_that_has_leaked_opens_nothing_after_the_steps",
    "start/analyst.md": "test_pages::test_the_start_of_an_analyst_leads_to_a_row",
    "start/engineer.md": (
        "spark/test_pages::test_the_start_of_a_data_engineer_leads_to_a_clean_audit"
    ),
    "start/security.md": "test_pages::test_the_start_of_a_security_team_leads_to_a_clean_audit",
}

#: Words of a block, of which a page has one, and the test that runs that block.
SINGLE = {
    "../README.md": {
        "make demo": "test_pages::test_the_readme_names_targets_of_the_makefile",
        "cd my-demo": "spark/test_demo::test_the_commands_of_the_readme_work",
        "session_config(": "spark/test_pages::test_the_python_of_the_readme",
        "sb.read_table(": "spark/test_pages::test_the_python_of_the_readme",
        "[footer]": "spark/test_readme::test_the_policy_of_the_readme_loads",
    },
    "audit.md": {
        "upload-sarif": "test_pages::test_the_workflow_of_the_page_on_audits_fails_by_what_is_new",
        "secure_bloom.spark import audit": "spark/test_pages::test_the_block_on_audits",
    },
    "executors.md": {
        "--py-files": "spark/test_operate_page::test_the_package_comes_by_py_files",
    },
    "hudi.md": {"hudi_lookup(": "spark/test_pages::test_the_block_on_record_keys_of_hudi"},
    "keys.md": {
        "company.toml --table": "test_pages::test_the_policy_of_several_tables_protects_each",
        "include = ": "test_pages::test_the_policy_of_several_tables_protects_each",
        "master_keys": "test_pages::test_the_keyring_of_the_page_on_keys_loads",
        "policy init": "test_keys_page::test_the_commands_and_the_client_of_pyarrow_can_be_typed",
        **dict.fromkeys(
            (
                'example.com:8200"\n\n',
                'auth = "kubernetes"',
                *(f'client = "{client}"\n' for client in ("aws", "gcp", "azure", "keyring")),
            ),
            "test_keys_page::test_every_policy_is_complete",
        ),
        "# writer:": "test_keys_page::test_a_writer_can_wrap_and_nothing_else",
        "# step:": "test_keys_page::test_a_step_or_reader_can_do_all_of_its_verbs_and_not_wrap",
        "# auditor:": "test_keys_page::test_an_auditor_can_audit",
        "getOrCreate()": "spark/test_pages::test_the_python_of_the_readme",
        "sb.PyarrowKms": "test_keys_page::test_the_commands_and_the_client_of_pyarrow_can_be_typed",
        "class OurKms:": "test_keys_page::test_the_class_of_ones_own_serves",
        "class OurKms implements": "spark/test_keys_page::test_the_template_for_the_jvm_serves",
        "/jars/our-kms.jar": "spark/test_keys_page::test_the_template_for_the_jvm_serves",
    },
    "operate-on-spark.md": {
        "# add_filters.py": "spark/test_operate_page::test_spark_submit_runs_the_job",
        "spark-submit": "spark/test_operate_page::test_spark_submit_runs_the_job",
        "getLogger": "spark/test_operate_page::test_the_block_on_logs_shows_two_lines_of_numbers",
        "reports/first": "spark/test_operate_page::test_the_report_block_runs",
        '"events/"': "spark/test_operate_page::"
        "test_the_incremental_block_takes_new_files_of_two_hours",
        "def write_batch": "spark/test_streaming::"
        "test_each_micro_batch_gets_filters_and_one_that_runs_again_adds_no_row",
        "def append_batch": "spark/test_streaming::"
        "test_each_micro_batch_of_a_delta_table_gets_filters_once",
        "# dags/filters.py": "spark/test_operate_page::test_the_block_for_airflow_is_a_dag",
        "# connect.py": "spark/test_connect::test_a_client_adds_filters_and_hears_of_failures",
        "start-connect-server.sh": "spark/test_connect::test_the_commands_of_the_page_work",
        "rows_scanned": "spark/test_operate_page::"
        "test_the_block_on_rows_scanned_says_what_it_prints",
        "spark_properties": "spark/test_operate_page::"
        "test_the_blocks_on_one_write_encrypt_one_table",
    },
    "iceberg.md": {
        "secure_bloom.spark": "spark/test_iceberg_job::test_executors_write_and_the_driver_commits"
    },
    "rotation.md": {"secure_bloom.spark": "spark/test_pages::test_the_block_on_changing_keys"},
    "spark.md": {
        "register(": "spark/test_readme::test_the_source_works_in_a_session_that_was_told_nothing",
        "CREATE TEMPORARY VIEW": "spark/test_pages::test_the_block_of_sql",
    },
}


@pytest.mark.parametrize("page", pages())
def test_every_block_is_run_by_a_test_that_is_there(page: str) -> None:
    single = SINGLE.get(page, {})
    for words in single:
        assert len([block for block in blocks(page) if words in block.text]) == 1, words
    if page not in SETTINGS and page not in WHOLE:
        assert [block.text for block in blocks(page) if not is_single(page, block)] == []
    for test in {*single.values(), *([WHOLE[page]] if page in WHOLE else [])}:
        module, _, name = test.partition("::")
        assert f"\ndef {name}(" in (ROOT / "tests" / f"{module}.py").read_text(), test


def is_single(page: str, block: Block) -> bool:
    """Whether a test of its own runs the block."""
    return any(words in block.text for words in SINGLE.get(page, {}))


def test_no_page_is_listed_that_has_no_code() -> None:
    assert {*SETTINGS, *WHOLE, *SINGLE} <= set(pages())
    assert not set(SETTINGS) & set(WHOLE)


@pytest.mark.parametrize("page", every_page())
def test_every_fence_says_what_it_holds(page: str) -> None:
    """Code has the name of its language; what is no code is ``text``, and begins with no prompt."""
    text = (DOCS / page).read_text()
    fences = re.findall(r"^ *(?:>|[-*] )* *((?:`{3,}|~{3,}).*)$", text, re.MULTILINE)
    for opening, closing in zip(fences[::2], fences[1::2], strict=True):
        assert re.fullmatch(r"```\w+(?: title=\"[^\"]+\")?", opening), opening
        assert closing == "```"
    assert "```text\n$ " not in text


def test_the_readme_names_targets_of_the_makefile() -> None:
    [block] = [block for block in blocks("../README.md") if "make demo" in block.text]
    assert [command for command, _, _ in block.commands()] == ["make demo", "make test"]
    Session().do(block)


def test_the_readme_is_read_in_five_minutes() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 1_300


def test_the_docs_have_one_home_for_a_fact_and_stay_short() -> None:
    assert sum(words_of_the_docs().values()) <= 54_400


def test_the_keyring_of_the_page_on_keys_loads(tmp_path: Path) -> None:
    [block] = blocks("keys.md", "json")
    path = tmp_path / "keyring.json"
    path.write_text(block.text.replace('"base64"', f'"{base64.b64encode(bytes(16)).decode()}"'))
    path.chmod(0o600)
    keyring = sb.Keyring.load(path)
    assert keyring.unwrap_key(keyring.wrap_key(bytes(32), "k_pii"), "k_pii") == bytes(32)


def test_the_policy_of_several_tables_protects_each(reader: Session) -> None:
    text = next(block.text for block in blocks("keys.md", "toml") if "include" in block.text)
    Path("teams").mkdir()
    Path("teams", "logs.toml").write_text('[tables."logs/*".columns.ip]\nkey = "k_pii"\n')
    Path("company.toml").write_text(text)
    policy = sb.KeyPolicy.load("company.toml")
    assert policy.for_table("lake/orders").own_key_for("iban") == "k_finance"
    assert policy.for_table("lake/orders").own_key_for("tenant_id") == "k_pii"
    assert policy.for_table("s3://bucket/logs/x.parquet").own_key_for("ip") == "k_pii"
    with pytest.raises(sb.PolicyError, match="several tables"):
        policy.for_table("logs/orders")
    vault = 'client = "vault"\naddress = "https://vault.example.com:8200"'
    assert vault in text
    company = text.replace(vault, 'client = "keyring"\nkeyring = "keyring.json"')
    Path("company.toml").write_text(company)
    names = ("k_footer", "k_pii", "k_finance")
    Path("keyring.json").write_text(keyring_json({name: os.urandom(16) for name in names}))
    Path("keyring.json").chmod(0o600)
    tables = {
        "customers": {"tenant_id": [1], "email": ["a@x.org"]},
        "orders": {"order_id": [7], "iban": ["DE00"]},
    }
    for name, rows in tables.items():
        Path("lake", name).mkdir(parents=True)
        pq.write_table(pa.table(rows), f"lake/{name}/0.parquet")
    [block] = [it for it in blocks("keys.md", "console") if "company.toml" in it.text]
    reader.do(block)
    used = sb.keys_used("lake", policy="company.toml").files_by_key
    assert {name: count for (name, _), count in used.items()} == {
        "k_finance": 1,
        "k_footer": 2,
        "k_pii": 1,
    }


def test_rights_in_a_store_are_a_document(reader: Session) -> None:
    reader.follow("object-stores.md")


def type_page(reader: Session, page: str) -> None:
    """Do what each block says, but those that have a test of their own."""
    for block in blocks(page):
        if not is_single(page, block):
            reader.do(block)


@pytest.mark.parametrize("page", SETTINGS)
def test_a_page_can_be_typed(page: str, reader: Session) -> None:
    reader.names |= SETTINGS[page]() or {}
    type_page(reader, page)


def test_a_key_that_has_leaked_opens_nothing_after_the_steps(reader: Session) -> None:
    lake_under_an_older_key()
    before = set(Path("events").glob("*.parquet"))
    type_page(reader, "rotation.md")
    assert not before & set(Path("events").glob("*.parquet"))
    keyring = json.loads(Path("keyring.json").read_text())
    del keyring["master_keys"]["k_pii_2025"]
    Path("keyring.json").write_text(json.dumps(keyring))
    rows = sb.read_table("events", policy="policy.toml")
    assert rows.column("email").to_pylist() == customers(5).column("email").to_pylist()


def test_the_workflow_of_the_page_on_audits_fails_by_what_is_new(reader: Session) -> None:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML, which moto brings")
    if shutil.which("jq") is None:
        pytest.skip("needs jq, which the machines of GitHub Actions have")
    customers_under_the_policy("out")
    pq.write_table(customers(5), "out/known.parquet")
    made, workflow = blocks("audit.md", "console")[1], blocks("audit.md", "yaml")[0]
    [(make_baseline, _, _)] = made.commands()
    assert run(*shlex.split(make_baseline)[1:]).returncode == 1
    steps = yaml.safe_load(workflow.text)["jobs"]["audit"]["steps"]
    [audit] = [it["run"] for it in steps if it.get("run", "").startswith("secure-bloom ")]
    [prepare] = [it["run"] for it in steps if it.get("run", "").startswith("jq ")]

    def alerts() -> list[tuple[str, str]]:
        subprocess.run(prepare, shell=True, check=True)
        results = json.loads(Path("upload.sarif").read_text())["runs"][0]["results"]
        found = [(it["ruleId"], it["locations"][0]["physicalLocation"]) for it in results]
        return [(rule, place["artifactLocation"]["uri"]) for rule, place in found]

    assert run(*shlex.split(audit)[1:]).returncode == 0
    assert "out/known.parquet" in Path("audit.sarif").read_text()
    assert [rule for rule, _ in alerts() if rule == "column-in-clear"] == []
    pq.write_table(customers(5), "out/new.parquet")
    assert run(*shlex.split(audit)[1:]).returncode == 1
    assert ("column-in-clear", "out/new.parquet") in alerts()
    # A table in a store: GitHub takes paths without a scheme alone.
    stored = Path("audit.sarif").read_text().replace('"out/', '"s3://lake/out/')
    Path("audit.sarif").write_text(stored)
    assert ("column-in-clear", "lake/out/new.parquet") in alerts()
    Path("audit-baseline.json").write_text("{}")
    assert run(*shlex.split(audit)[1:]).returncode == 2


def _leaf(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that the words name, and its arguments."""
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found is not None, words
        command, words = found, words[1:]
    return command, words


@pytest.mark.parametrize("page", pages())
def test_every_line_of_a_console_is_one_that_the_program_takes(page: str) -> None:
    for block in blocks(page, "console"):
        for line, _, _ in block.commands():
            name, *words = shlex.split(line)
            if name == "secure-bloom":
                command, arguments = _leaf(words)
                command.make_context(command.name, arguments)


@pytest.mark.parametrize("page", pages())
def test_every_block_of_python_uses_names_that_are_there(page: str) -> None:
    for block in blocks(page, "python"):
        compile(block.text, page, "exec")
        for line in block.text.splitlines():
            if line.startswith(("from secure_bloom", "import secure_bloom")):
                exec(line, {})


#: Pages of the site that a hook makes, so that no file is there (docs/_site/reference.py).
MADE = {
    (DOCS / "reference" / f"{name}.md").resolve() for name in ("command-line", "errors", "json")
}


def test_every_picture_and_link_of_the_docs_leads_somewhere() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
            made = (page.parent / target).resolve() in MADE
            assert made or (page.parent / target).exists(), (page, target)


def test_filters_of_a_delta_table_are_committed(reader: Session) -> None:
    deltalake = pytest.importorskip("deltalake", reason="needs the package deltalake")
    reader.follow("delta.md")
    assert deltalake.DeltaTable("lake/events").version() == 3
    assert "would be version 1" in reader.shown[0]
    assert "committed" not in reader.shown[2]
    assert [commit.version for commit in reader.names["report"].commits] == [3]
