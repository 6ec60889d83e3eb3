"""A policy, keys or moves that no run can work with are refused before any file is opened."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.lakes.plain_files import FilesTarget
from secure_bloom.rekeying.rekey_work import reencryption, rotation
from secure_bloom.runs.loop import run
from secure_bloom.runs.runner import LocalRunner
from testing.tables import KEYRING

POLICY = sb.KeyPolicy(
    footer_key="k_footer", columns={"email": ColumnRule(path="email", key="k_pii")}
)
UNKNOWN = sb.KeyPolicy(footer_key="k_nowhere")


def test_a_policy_that_encrypts_nothing_is_refused() -> None:
    with pytest.raises(sb.PolicyError, match="encrypts nothing") as caught:
        reencryption(sb.KeyPolicy(), KEYRING)
    assert "decrypt" in str(caught.value.hint)


@pytest.mark.parametrize("keys", [None, sb.ExplicitKeys(footer=bytes(16))])
def test_new_keys_need_a_kms(keys: sb.ExplicitKeys | None) -> None:
    with pytest.raises(sb.PolicyError, match="no KMS to wrap new keys"):
        reencryption(POLICY, keys)
    with pytest.raises(sb.PolicyError, match="there is no KMS"):
        rotation(POLICY, {}, keys)


def test_a_master_key_that_the_kms_does_not_have_is_refused() -> None:
    with pytest.raises(sb.PolicyError, match="k_nowhere"):
        reencryption(UNKNOWN, KEYRING)
    with pytest.raises(sb.PolicyError, match="k_nowhere"):
        rotation(UNKNOWN, {}, KEYRING)


def test_a_move_to_a_key_that_is_moved_itself_is_refused() -> None:
    with pytest.raises(sb.PolicyError, match="the new key of another: k_footer, k_pii"):
        rotation(POLICY, {"k_pii": "k_footer", "k_footer": "k_pii"}, KEYRING)
    with pytest.raises(sb.PolicyError, match="does not have master keys k_nowhere"):
        rotation(POLICY, {"k_pii": "k_nowhere"}, KEYRING)


def test_reports_come_in_order_and_progress_counts_every_file(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    for number in range(4):
        pq.write_table(pa.table({"id": [number]}), lake / f"{number}.parquet")
    (lake / "2.parquet").write_text("no Parquet file")
    policy = sb.KeyPolicy(footer_key="k_footer", uniform=True)
    open_work = partial(reencryption, policy, KEYRING, only_changes=True)
    seen: list[tuple[int, int]] = []
    target = FilesTarget(paths=lake, output=tmp_path / "new")
    done = run(open_work, target, LocalRunner(jobs=2), lambda *now: seen.append(now))
    assert [Path(report.path).name for report in done.reports] == [
        f"{number}.parquet" for number in range(4)
    ]
    assert [report.status for report in done.reports] == [
        *["reencrypted"] * 2,
        "failed",
        "reencrypted",
    ]
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        "0.parquet",
        "1.parquet",
        "3.parquet",
    }
