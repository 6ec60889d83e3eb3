"""Pages of the docs that need no Spark, typed as written."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import click
import deltalake
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from pyiceberg.utils.config import Config

import secure_bloom as sb
from secure_bloom.cli.verbs import cli
from testing.command_line import run
from testing.project import ROOT
from testing.tables import customers, keyring_json
from tests.pages import (
    DOCS,
    Block,
    Session,
    blocks,
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


def lake_under_an_older_key() -> None:
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


def analysts_table() -> None:
    """The one that the start of an analyst makes."""
    Session().follow("start/analyst.md")


def security_teams_table() -> None:
    """The one that the start of a security team makes."""
    Session().follow("start/security.md")


def nothing() -> None:
    """The page makes its tables itself."""


#: Pages, and what makes the folder that they say they are typed in.
SETTINGS: dict[str, Callable[[], None]] = {
    "advise.md": analysts_table,
    "audit.md": security_teams_table,
    "hudi.md": nothing,
    "leak-search.md": analysts_table,
    "many-lookups.md": analysts_table,
    "paimon.md": nothing,
    "planning.md": nothing,
    "reading.md": analysts_table,
    "reading/conditions.md": analysts_table,
    "reading/skipped.md": analysts_table,
    "remove-and-upgrade.md": nothing,
    "tables.md": nothing,
}

#: Pages that a test of their own types from end to end, and where it stands.
WHOLE = {
    "delta.md": "test_pages::test_filters_of_a_delta_table_are_committed",
    "iceberg.md": "test_pages::test_filters_of_an_iceberg_table_are_committed",
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
        **dict.fromkeys(
            ("include = ", '[tables."logs/*"', "tables = {", "policy init", "sb.PyarrowKms"),
            "test_pages::test_the_policy_of_several_tables_protects_each",
        ),
        "master_keys": "test_pages::test_the_keyring_of_the_page_on_keys_loads",
        **dict.fromkeys(
            (
                'example.com:8200"\n\n',
                'auth = "kubernetes"',
                *(f'client = "{client}"\n' for client in ("aws", "gcp", "azure")),
                'keyring.json"\n\n',
            ),
            "test_keys_page::test_every_policy_is_complete",
        ),
        "# writer:": "test_keys_page::test_a_writer_can_wrap_and_nothing_else",
        "# step:": "test_keys_page::test_a_step_or_reader_can_do_all_of_its_verbs_and_not_wrap",
        "# auditor:": "test_keys_page::test_an_auditor_can_audit",
        "getOrCreate()": "spark/test_pages::test_the_python_of_the_readme",
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
    assert sum(words_of_the_docs().values()) <= 52_000


def test_the_keyring_of_the_page_on_keys_loads(tmp_path: Path) -> None:
    [block] = blocks("keys.md", "json")
    path = tmp_path / "keyring.json"
    path.write_text(block.text.replace('"base64"', f'"{base64.b64encode(bytes(16)).decode()}"'))
    path.chmod(0o600)
    keyring = sb.Keyring.load(path)
    assert keyring.unwrap_key(keyring.wrap_key(bytes(32), "k_pii"), "k_pii") == bytes(32)


def test_the_policy_of_several_tables_protects_each(reader: Session) -> None:
    for block in blocks("keys.md"):
        reader.do(block)
        if "reencrypt lake/" in block.text:
            break
    assert "email" in Path("policy.toml").read_text()
    policy = sb.KeyPolicy.load("company.toml")
    assert policy.for_table("lake/orders").own_key_for("iban") == "k_finance"
    assert policy.for_table("lake/orders").own_key_for("tenant_id") == "k_pii"
    assert policy.for_table("s3://bucket/logs/x.parquet").own_key_for("ip") == "k_pii"
    with pytest.raises(sb.PolicyError, match="several tables"):
        policy.for_table("logs/orders")
    used = sb.keys_used("lake", policy="company.toml").files_by_key
    assert {name: count for (name, _), count in used.items()} == {
        "k_finance": 1,
        "k_footer": 2,
        "k_pii": 1,
    }
    [factory] = [it for it in blocks("keys.md", "python") if "CryptoFactory" in it.text]
    reader.do(factory)
    assert isinstance(reader.names["factory"], pe.CryptoFactory)


def test_rights_in_a_store_are_a_document(reader: Session) -> None:
    reader.follow("object-stores.md")


def type_page(reader: Session, page: str) -> None:
    """Do what each block says, but those that have a test of their own."""
    for block in blocks(page):
        if not is_single(page, block):
            reader.do(block)


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder that a page says it is typed in; the pages of one setting get copies of it."""

    @cache
    def made(make: Callable[[], None]) -> Path:
        folder = tmp_path_factory.mktemp("setting")
        with contextlib.chdir(folder):
            make()
        return folder

    return lambda page: made(SETTINGS[page])


@pytest.mark.parametrize("page", SETTINGS)
def test_a_page_can_be_typed(page: str, reader: Session, setting: Callable[[str], Path]) -> None:
    shutil.copytree(setting(page), ".", dirs_exist_ok=True)
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
    security_teams_table()
    pq.write_table(customers(5), "protected/known.parquet")
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
    assert "protected/known.parquet" in Path("audit.sarif").read_text()
    assert [rule for rule, _ in alerts() if rule == "column-in-clear"] == []
    pq.write_table(customers(5), "protected/new.parquet")
    assert run(*shlex.split(audit)[1:]).returncode == 1
    assert ("column-in-clear", "protected/new.parquet") in alerts()
    # A table in a store: GitHub takes paths without a scheme alone.
    stored = Path("audit.sarif").read_text().replace('"protected/', '"s3://lake/protected/')
    Path("audit.sarif").write_text(stored)
    assert ("column-in-clear", "lake/protected/new.parquet") in alerts()
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
    assert deltalake.DeltaTable("lake/events").version() == 5
    keys = sb.keys_used("lake/events", policy="policy.toml").files_by_key
    assert {name for name, _ in keys} == {"k_2026", "k_footer"}
    assert "would be version 1" in reader.shown[0]
    assert "committed" not in reader.shown[2]
    assert [commit.version for commit in reader.names["report"].commits] == [3]


def test_filters_of_an_iceberg_table_are_committed(
    reader: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    for block in blocks("iceberg.md"):
        if not is_single("iceberg.md", block):
            reader.do(block)
        if block.title == ".pyiceberg.yaml":
            # pyiceberg reads its settings once in a process, which other tests have made it do.
            monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    people = reader.names["people"].refresh()
    operations = [it.summary.operation.value for it in people.snapshots() if it.summary]
    assert operations == ["append", "append", *["replace"] * 5]
    assert "k_2026" in reader.shown[-2]
    assert people.scan().to_arrow().equals(reader.names["rows"])
