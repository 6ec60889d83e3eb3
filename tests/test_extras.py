"""Without any extra every verb works, and what an extra is for names it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from secure_bloom.cli.verbs import _VERBS as VERBS
from testing.command_line import Done, ForkServer, run_forked
from testing.project import ROOT
from testing.tables import Mode, customers, keyring_json, write

#: Extra -> the top-level modules of its packages, and of what they need.
MODULES = {
    "all": [],
    "advise": ["sqlglot"],
    "aws": ["boto3", "botocore", "s3transfer"],
    "azure": ["azure"],
    "gcp": ["google", "grpc"],
    "iceberg": ["pyiceberg", "sqlalchemy"],
    "paimon": ["fastavro"],
    "pandas": ["pandas"],
    "polars": ["polars"],
    "spark": ["pyspark", "py4j", "pandas"],
    "sql": ["duckdb", "polars"],
    "trace": ["fastavro", "lz4", "py7zr", "zstandard"],
    "vault": ["hvac", "requests"],
}
#: Extras of the project's own work.
_WORK = {"bench", "dev", "docs", "measure"}
_BLOCKER = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""
_POLICY = """
[kms]
client = "keyring"
keyring = "keyring.json"
[footer]
key = "k_footer"
[columns.email]
key = "k_pii"
bloom = true
"""
#: What works without any extra, in this order, and its exit code.
WORKS = {
    "policy init encrypted -k keyring.json": 0,
    "policy init --schema 'email string'": 0,
    "policy check policy.toml --table encrypted -k keyring.json": 0,
    "keys new more.json k_more": 0,
    "keys check -p policy.toml": 0,
    "advise encrypted -p policy.toml": 0,
    "add encrypted -p policy.toml": 0,
    "add plain --column email": 0,
    "probe encrypted email nobody@example.com -p policy.toml": 1,
    "inspect encrypted -p policy.toml --check": 0,
    "read encrypted --where \"email = 'user7@example.com'\" -p policy.toml": 0,
    "read plain --format csv --limit 1": 0,
    "trace queries.sql --values-of plain:email": 0,
    "audit encrypted -p policy.toml": 1,  # iban, in clear statistics of the other columns
    "keys used encrypted -p policy.toml": 0,
    "reencrypt plain -p policy.toml": 0,
    "rotate plain -p policy.toml": 0,
    "decrypt encrypted --output clear -p policy.toml": 0,
    "hudi show clear": 0,
    "paimon build clear --column email": 0,
    "paimon probe clear \"email = 'nobody@example.com'\"": 1,
    "paimon show clear": 0,
    "completion bash": 0,
    "help audit": 0,
    "--version": 0,
}
#: What needs an extra -> the extra.
NEEDS = {
    "demo new-demo": "spark",
    "advise other --queries queries.sql": "advise",
    "keys check -p aws.toml": "aws",
    "keys check -p azure.toml": "azure",
    "keys check -p gcp.toml": "gcp",
    "keys check -p vault.toml": "vault",
    "read encrypted -p vault.toml": "vault",
    "read iceberg://lake/db.customers": "iceberg",
    "probe iceberg://lake/db.customers email a": "iceberg",
    "inspect iceberg://lake/db.customers": "iceberg",
    "audit iceberg://lake/db.customers -p policy.toml": "iceberg",
    "advise iceberg://lake/db.customers": "iceberg",
    "add iceberg://lake/db.customers --column email": "iceberg",
    "sql \"select * from 'plain'\"": "sql",
    "read iceberg/metadata/v1.metadata.json": "iceberg",
    "inspect iceberg/metadata/v1.metadata.json": "iceberg",
}
KMS = {
    "aws": 'region = "eu-west-1"',
    "azure": 'vault_url = "https://lake.vault.azure.net"',
    "gcp": 'key_ring = "projects/p/locations/l/keyRings/r"',
    "vault": 'address = "http://127.0.0.1:1"',
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables, policies for each KMS, a log of queries."""
    made = tmp_path_factory.mktemp("extras")
    for name in ("encrypted", "plain", "other", "iceberg/metadata"):
        (made / name).mkdir(parents=True)
    write(made / "encrypted" / "a.parquet", customers(), Mode.ENCRYPTED)
    write(made / "plain" / "a.parquet", customers(), Mode.PLAIN)
    write(made / "other" / "a.parquet", customers(), Mode.PLAIN)
    (made / "iceberg" / "metadata" / "v1.metadata.json").write_text("{}")
    (made / "keyring.json").write_text(keyring_json())
    (made / "keyring.json").chmod(0o600)
    (made / "queries.sql").write_text("email = 'a'\n")
    (made / "policy.toml").write_text(_POLICY)
    for client, words in KMS.items():
        kms = f'[kms]\nclient = "{client}"\n{words}\n'
        (made / f"{client}.toml").write_text(kms + _POLICY[_POLICY.index("[footer]") :])
    return made


@pytest.fixture(scope="module")
def bare(folder: Path) -> ForkServer:
    """The command line in a Python that has no package of any extra, workers included."""
    names = {name for modules in MODULES.values() for name in modules}
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(_BLOCKER.format(names=names))
    return ForkServer(PYTHONPATH=str(site))


def test_every_extra_is_blocked() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras["optional-dependencies"]) - _WORK == set(MODULES)


def test_every_verb_is_tried() -> None:
    assert {line.split()[0] for line in [*WORKS, *NEEDS]} - {"--version"} == set(VERBS)


def test_without_any_extra_every_verb_works(
    folder: Path, bare: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for line, code in WORKS.items():
        done = run_forked(bare, shlex.split(line), os.environ)
        assert done.returncode == code, (line, done.stderr)
        assert "unforeseen" not in done.stderr, line


@pytest.mark.parametrize("line", NEEDS)
def test_what_an_extra_is_for_names_it(
    folder: Path, bare: ForkServer, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(folder)
    done = run_forked(bare, shlex.split(line), os.environ)
    assert done.returncode == 2
    error, hint = done.stderr.splitlines()
    assert re.search(r" needs [\w.]+, which is not installed$", error), error
    assert hint == f"secure-bloom: hint: pip install 'secure-bloom[{NEEDS[line]}]'"


def test_spark_names_its_extra_when_it_is_imported(folder: Path, bare: ForkServer) -> None:
    del bare  # its folder has the blocker
    script = "try: import secure_bloom.spark\nexcept ImportError as e: print(e, e.hint, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(folder / "site")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "secure_bloom.spark needs pyspark, which is not installed",
        "pip install 'secure-bloom[spark]'",
    ]


@pytest.mark.slow
def test_a_wheel_without_extras_works_and_pip_adds_one_by_the_hint(tmp_path: Path) -> None:
    """A real environment; skipped where no package index answers."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, ROOT], check=True
    )
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    pip = [python, "-m", "pip", "install", "-q", *tmp_path.glob("*.whl")]
    if subprocess.run(pip).returncode:
        pytest.skip("no package index answers")
    (tmp_path / "t").mkdir()
    write(tmp_path / "t" / "a.parquet", customers(), Mode.PLAIN)

    def ran(*arguments: str) -> Done:
        return subprocess.run(arguments, capture_output=True, text=True, cwd=tmp_path)

    program = str(tmp_path / "venv" / "bin" / "secure-bloom")
    assert ran(program, "add", "t", "--column", "email").returncode == 0
    assert ran(program, "probe", "t", "email", "nobody").returncode == 1
    (tmp_path / "log.sql").write_text("email = 'user7@example.com'\n")
    queries = ["advise", "t", "--queries", "log.sql"]
    refused = ran(program, *queries)
    assert refused.returncode == 2
    command = refused.stderr.splitlines()[-1].removeprefix("secure-bloom: hint: ")
    words = shlex.split(command)
    assert words == ["pip", "install", "secure-bloom[advise]"]
    done = ran(python, "-m", *words)
    assert done.returncode == 0, done.stderr
    assert ran(program, *queries).returncode == 0
