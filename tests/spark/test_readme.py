"""Sessions of the README, docs/keys.md and docs/spark.md, typed in processes of their own.

`test_pages` types the first two in the session that the tests share.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.encryption.policy import KeyPolicy
from testing.project import ROOT
from testing.spark.cluster import WITHOUT_GENERATED_CODE
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, keyring_json, write

README = (ROOT / "README.md").read_text()
KEYS_PAGE = (ROOT / "docs" / "keys.md").read_text()
SPARK_PAGE = (ROOT / "docs" / "spark.md").read_text()


def _blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def _typed(session: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a session in a folder, in a process whose JVM is its own."""
    defaults = {"spark.ui.enabled": "false", **WITHOUT_GENERATED_CODE}
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text(
        "".join(f"{name} {value}\n" for name, value in defaults.items())
    )
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", session],
        cwd=folder,
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_CONF_DIR": str(folder / "conf"),
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done


@pytest.mark.slow
@pytest.mark.spark
def test_the_python_of_the_readme_runs_as_written(spark_installed: None, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "keys", tmp_path / "keys")
    for path in (tmp_path / "keys").iterdir():
        path.chmod(0o600)
    after_a_write, from_python = _blocks("python")
    policy = (ROOT / "keys" / "policy.toml").read_text()
    beside_the_keys = policy.replace('"dev-keyring.json"', '"keys/dev-keyring.json"')
    (tmp_path / "policy.toml").write_text(beside_the_keys)
    done = _typed(f"{after_a_write}{from_python}spark.stop()\n{_ON_KEYS}", tmp_path)
    assert "k_finance" in done.stdout
    assert "maybe" in done.stdout
    assert {path.read_bytes()[-4:] for path in tmp_path.glob("new/*.parquet")} == {b"PARE"}


#: The session of docs/keys.md, in a JVM that is there already, and what shows that it encrypts.
_ON_KEYS = (
    next(text for text in _blocks("python", KEYS_PAGE) if "getOrCreate()" in text)
    + 'customers = spark.range(9).selectExpr("string(id) as email", "string(id) as iban",\n'
    + '    "id as national_id", "\'it\' as country")\n'
    + 'customers.write.parquet("new")\n'
    + 'assert spark.read.parquet("new").count() == 9\n'
)


@pytest.mark.slow
@pytest.mark.spark
def test_the_source_works_in_a_session_that_was_told_nothing(
    spark_installed: None, tmp_path: Path
) -> None:
    """Its JVM has neither the KMS class nor a property of encryption."""
    (tmp_path / "customers").mkdir()
    write(tmp_path / "customers" / "0.parquet", customers(600), Mode.ENCRYPTED)
    assert not sb.add_bloom_filters(tmp_path / "customers", columns=["email"], keys=KEYRING).failed
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "keyring.json").write_text(keyring_json())
    (tmp_path / "keys" / "keyring.json").chmod(0o600)
    (tmp_path / "keys" / "policy.toml").write_text(
        '[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n'
    )
    (example,) = _blocks("python", SPARK_PAGE)
    done = _typed(example, tmp_path)
    assert "user77@example.com" in done.stdout
    assert "600" in done.stdout
    for key in MASTER_KEYS.values():
        assert base64.b64encode(key).decode() not in done.stdout + done.stderr


def test_the_policy_of_the_readme_loads(tmp_path: Path) -> None:
    (text,) = _blocks("toml")
    (tmp_path / "policy.toml").write_text(text)
    policy = KeyPolicy.load(tmp_path / "policy.toml")
    assert policy.master_keys() == {"k_footer", "k_pii"}
    assert set(policy.bloom_columns()) == {"email", "country"}


def test_the_links_of_the_readme_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
