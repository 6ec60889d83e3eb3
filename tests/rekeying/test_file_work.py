"""A policy's columns are looked for in the files of a run, before one is written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.errors import WorkerLostError
from secure_bloom.rekeying.file_work import RekeyWork, check_columns
from secure_bloom.rekeying.rekey_work import reencryption
from secure_bloom.runs.work import FileTask
from testing.tables import KEYRING


def work(column: str, *, needs_columns: bool = True) -> RekeyWork:
    rules = {column: ColumnRule(path=column, key="k_pii")}
    policy = sb.KeyPolicy(footer_key="k_footer", columns=rules)
    return reencryption(policy, KEYRING, needs_columns=needs_columns)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "0.parquet").write_text("no Parquet file")
    for number, name in enumerate(("id", "email"), 1):
        pq.write_table(pa.table({name: ["x"]}), tmp_path / f"{number}.parquet")
    return sorted(map(str, tmp_path.iterdir()))


def test_a_column_that_one_file_has_is_enough(files: list[str]) -> None:
    check_columns(files, work("email"))
    work("email").check(files)


def test_a_misspelt_column_is_refused(files: list[str]) -> None:
    with pytest.raises(sb.PolicyError, match="emial"):
        work("emial").check(files)
    # A table's schema has said which columns there are.
    work("emial", needs_columns=False).check(files)


def test_a_file_whose_process_died_is_one_step_that_failed() -> None:
    found = work("email").failed(FileTask("a.parquet"), WorkerLostError("has died"))
    assert (found.path, found.status) == ("a.parquet", "failed")
    assert work("email").steps_of(found) == 1
