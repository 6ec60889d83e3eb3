"""docs/schemas: the documents of ``--json``, held to what every verb really prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.reports.base import SCHEMA_VERSION
from testing import delta_logs
from testing.command_line import run
from testing.hudi_files import base_file
from testing.project import ROOT
from testing.tables import Mode, customers, keyring_json, write

SCHEMAS = ROOT / "docs" / "schemas"
POLICY = """
[kms]
client = "keyring"
keyring = "keyring.json"
[footer]
key = "k_footer"
[columns.email]
key = "k_pii"
bloom = true
[columns.city]
bloom = true
"""
#: Verb -> runs that show what its document can hold; {0} is the folder.  They build on each other.
RUNS: dict[str, list[str]] = {
    "add": [
        "add {0}/lake --policy {0}/policy.toml --dry-run",
        "add {0}/lake --policy {0}/policy.toml",
        "add {0}/lake {0}/damaged.parquet --policy {0}/policy.toml -v",
        "add {0}/delta --column id",
    ],
    "advise": [
        "advise {0}/plain",
        "advise {0}/lake --policy {0}/policy.toml --queries {0}/queries.sql",
    ],
    "probe": [
        "probe {0}/lake city rome nowhere --policy {0}/policy.toml",
        "probe {0}/damaged.parquet city rome",
    ],
    "read": [
        "read {0}/lake --policy {0}/policy.toml --where id=7",
        "read {0}/lake --policy {0}/policy.toml --where id=7 --output {0}/found.csv",
        "read {0}/lake --policy {0}/policy.toml --where city='rome' --limit 3 --explain",
        "read {0}/lake --policy {0}/policy.toml --where id=7 --explain --plan-only",
    ],
    "sql": [
        "sql select/**/id/**/from/**/'{0}/lake'/**/where/**/id=7 --policy {0}/policy.toml",
        "sql select/**/id/**/from/**/'{0}/lake' --policy {0}/policy.toml --output {0}/all.csv",
    ],
    "audit": [
        "audit {0}/lake --policy {0}/policy.toml",
        "audit {0}/plain --policy {0}/policy.toml --ignore column-in-clear",
        "audit {0}/signed --policy {0}/signed.toml",
        "audit {0}/lake --policy {0}/absent.toml",
        "audit {0}/lake --policy {0}/absent.toml --ignore policy-column-unknown",
        "audit {0}/lake --policy {0}/wrong.toml",
    ],
    "reencrypt": ["reencrypt {0}/plain --policy {0}/policy.toml --output {0}/other"],
    "decrypt": ["decrypt {0}/lake --policy {0}/policy.toml --output {0}/clear"],
    "rotate": ["rotate {0}/lake {0}/damaged.parquet --policy {0}/policy.toml --dry-run"],
    "keys-used": ["keys used {0}/lake {0}/damaged.parquet --policy {0}/policy.toml"],
    "keys-check": [
        "keys check --policy {0}/policy.toml",
        "keys check --policy {0}/unknown.toml -v",
    ],
    "policy-check": [
        "policy check {0}/policy.toml",
        "policy check {0}/wrong.toml --table {0}/plain",
    ],
    "hudi-add": ["hudi add {0}/hudi --keyring {0}/keyring.json"],
    "hudi-show": ["hudi show {0}/hudi {0}/plain --keyring {0}/keyring.json"],
    "hudi-lookup": ["hudi lookup {0}/hudi key-1 nothing --keyring {0}/keyring.json"],
    "paimon-build": ["paimon build {0}/plain {0}/damaged.parquet --column id:fpp=0.001"],
    "paimon-probe": ["paimon probe {0}/plain id=5"],
    "paimon-show": ["paimon show {0}/plain", "paimon show {0}/empty.index"],
    "inspect": [
        "inspect {0}/lake --check --policy {0}/policy.toml",
        "inspect {0}/lake {0}/plain {0}/damaged.parquet {0}/hudi --keyring {0}/keyring.json",
    ],
    "trace": [
        "trace {0}/queries.sql --values-of {0}/plain:city",
        "trace {0}/found.csv {0}/damaged.parquet --values-of {0}/plain:id",
    ],
    "error": ["probe {0}/nothing x y", "fly"],
}


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What each run prints, by verb."""
    folder = tmp_path_factory.mktemp("schemas")
    prepare(folder)
    return {verb: [printed(line, folder) for line in lines] for verb, lines in RUNS.items()}


def prepare(folder: Path) -> None:
    """Tables in several modes, a damaged file, a keyring and policies."""
    keyring = folder / "keyring.json"
    keyring.write_text(keyring_json())
    keyring.chmod(0o600)
    (folder / "policy.toml").write_text(POLICY)
    footer = 'key = "k_footer"'
    signed = POLICY.replace(footer, f'{footer}\nmode = "plaintext"')
    (folder / "signed.toml").write_text(signed)
    (folder / "queries.sql").write_text("select * from t where id in (1, 2)\nnonsense (\n")
    (folder / "wrong.toml").write_text(f"{POLICY}[columns.absent]\nblom = true\n")
    (folder / "absent.toml").write_text(f"{POLICY}[columns.absent]\nbloom = true\n")
    (folder / "unknown.toml").write_text(POLICY.replace("k_pii", "k_gone"))
    for name in ("lake", "plain", "signed", "hudi"):
        (folder / name).mkdir()
    column_keys = {"k_pii": ["email"]}
    write(folder / "lake/0.parquet", customers(40), Mode.ENCRYPTED, column_keys=column_keys)
    write(folder / "signed/0.parquet", customers(40), Mode.SIGNED, column_keys=column_keys)
    sb.add_bloom_filters(folder / "signed", policy=folder / "signed.toml")
    pq.write_table(customers(40), folder / "plain/0.parquet")
    delta_logs.commit(folder / "delta", 0, *delta_logs.start(), delta_logs.add("0.parquet"))
    pq.write_table(customers(40).select(["id"]), folder / "delta/0.parquet")
    base_file(folder / "hudi/0.parquet", ["key-1", "key-2"])
    damaged = (folder / "plain/0.parquet").read_bytes()
    (folder / "damaged.parquet").write_bytes(damaged[:-8] + bytes(8))
    (folder / "empty.index").touch()


def printed(line: str, folder: Path) -> dict[str, Any]:
    """The document of a run."""
    done = run(*line.format(folder).split(), "--json")
    assert done.stdout, (line, done.stderr)
    return json.loads(done.stdout)


def closed(schema: Any) -> Any:
    """The schema that allows no other keys, so that none is printed that is not described."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: closed(part) for name, part in schema.items()}
    is_object = "properties" in schema and "additionalProperties" not in schema
    return {**parts, "additionalProperties": False} if is_object else parts


def schema_of(verb: str) -> dict[str, Any]:
    return json.loads((SCHEMAS / f"{verb}.json").read_text())


def test_every_verb_has_a_schema_and_every_schema_a_verb() -> None:
    assert {path.stem for path in SCHEMAS.glob("*.json")} == set(RUNS)


@pytest.mark.parametrize("verb", RUNS)
def test_what_a_verb_prints_is_what_its_schema_says(
    verb: str, documents: dict[str, list[dict[str, Any]]]
) -> None:
    schema = schema_of(verb)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["properties"]["schema_version"] == {"const": SCHEMA_VERSION}
    for document in documents[verb]:
        jsonschema.Draft202012Validator(closed(schema)).validate(document)


@pytest.mark.parametrize("verb", RUNS)
def test_a_schema_describes_every_list_with_something_in_it(
    verb: str, documents: dict[str, list[dict[str, Any]]]
) -> None:
    """A list that is empty in every run would hold the schema to nothing."""
    filled = {name for document in documents[verb] for name, value in document.items() if value}
    assert filled or verb == "policy-check"
