"""Hints of failed files are commands that run, with the arguments of the verb."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import secure_bloom as sb
from secure_bloom.adding.report import AddReport, FileAddReport
from secure_bloom.cli.runnable_hints import with_runnable_hints
from secure_bloom.encryption.trust import REENCRYPT


def test_paths_and_files_are_words_of_a_shell(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"email": ["x"]}), path)
    failed = FileAddReport(path=str(path), status="failed", error="x", hint=f"{REENCRYPT} does it")
    policy = sb.KeyPolicy.load("keys/policy.toml")
    place = tmp_path / "my policy.toml"
    keyring = Path("keys/dev-keyring.json")
    report = with_runnable_hints(AddReport(files=(failed,)), ["a b"], policy, place, keyring)
    assert report.files[0].hint == (
        f"secure-bloom reencrypt 'a b' --policy '{place}' --keyring keys/dev-keyring.json "
        "--allow-missing-columns does it; new keys come from the policy's [kms]"
    )
    # A policy that was made in Python has no file to name.
    same = with_runnable_hints(AddReport(files=(failed,)), ["a b"], policy, None, None)
    assert same.files[0].hint == failed.hint
