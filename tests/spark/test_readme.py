"""The README's sessions, typed as written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from secure_bloom.encryption.policy import KeyPolicy
from tests.project import ROOT

README = (ROOT / "README.md").read_text()


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.spark
def test_the_python_of_the_readme_runs_as_written(spark_installed: None, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "keys", tmp_path / "keys")
    for path in (tmp_path / "keys").iterdir():
        path.chmod(0o600)
    after_a_write, from_python = _blocks("python")
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", after_a_write + from_python],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "k_finance" in done.stdout
    assert "maybe" in done.stdout


def test_the_policy_of_the_readme_loads(tmp_path: Path) -> None:
    (text,) = _blocks("toml")
    (tmp_path / "policy.toml").write_text(text)
    policy = KeyPolicy.load(tmp_path / "policy.toml")
    assert policy.master_keys() == {"k_footer", "k_pii"}
    assert set(policy.bloom_columns()) == {"email", "country"}


def test_the_links_of_the_readme_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
