"""A KMS that goes away in the middle: done files stay done, a second run finishes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
from secure_bloom.cli import main
from secure_bloom.encryption.policy import KeyPolicy
from testing.openbao import OpenBao
from testing.tables import customers
from tests.parquet.test_key_prefetch import POLICY, FarAwayKms, lake

FILES = 30


class LeavingKms(FarAwayKms):
    """Away after some calls, as a server that was stopped."""

    def __init__(self, calls: int) -> None:
        super().__init__(0)
        self.left = calls

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        self.left -= 1
        if self.left < 0:
            raise ConnectionRefusedError(111, "Connection refused")
        return super().unwrap_key(wrapped_key, master_key_identifier)


def digests(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()}


@pytest.mark.parametrize("in_place", [False, True])
def test_done_files_stay_done_and_a_second_run_finishes(tmp_path: Path, in_place: bool) -> None:
    folder = lake(tmp_path / "lake", range(FILES))
    before = digests(folder)
    first = sb.add_bloom_filters(folder, policy=POLICY, keys=LeavingKms(21), in_place=in_place)
    added = [file for file in first.files if file.status == "added"]
    assert 0 < len(added) < FILES
    assert len(first.failed) == FILES - len(added)
    for file in first.failed:
        assert "LeavingKms is not available" in str(file.error)
        assert "Connection refused" in str(file.error)
    after = digests(folder)
    assert after.keys() == before.keys()
    failed = {Path(file.path).name for file in first.failed}
    assert {name for name in before if before[name] == after[name]} == failed
    second = sb.add_bloom_filters(folder, policy=POLICY, keys=FarAwayKms(0), in_place=in_place)
    assert sorted({file.status for file in second.files}) == ["added", "unchanged"]
    assert sum(file.status == "added" for file in second.files) == len(failed)


def test_a_token_that_ends_in_mid_run_is_told_and_a_new_one_finishes(
    openbao: OpenBao,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("BAO_TOKEN", openbao.root)
    for name in ("run_footer", "run_pii"):
        openbao.make_key(name)
    policy = tmp_path / "policy.toml"
    policy.write_text(
        f'[kms]\nclient = "vault"\naddress = "{openbao.address}"\n'
        '[footer]\nkey = "run_footer"\n[columns.email]\nkey = "run_pii"\nbloom = true\n'
    )
    kms = sb.PyarrowKms(KeyPolicy.load(policy).kms_client())
    (tmp_path / "lake").mkdir()
    for number in range(6):
        properties = pe.CryptoFactory(lambda _: kms).file_encryption_properties(
            pe.KmsConnectionConfig(),
            pe.EncryptionConfiguration(footer_key="run_footer", column_keys={"run_pii": ["email"]}),
        )
        path = tmp_path / "lake" / f"{number}.parquet"
        pq.write_table(customers(5, number), path, encryption_properties=properties)
    # Six calls: the token's own look-up, and the keys of two files and a half.
    monkeypatch.setenv("BAO_TOKEN", openbao.token("root", num_uses=6))
    code, shown = add(tmp_path / "lake", policy, capsys)
    assert code == 2
    assert "refuses the token: HTTP 403" in shown
    monkeypatch.setenv("BAO_TOKEN", openbao.root)
    assert add(tmp_path / "lake", policy, capsys)[0] == 0
    verdicts = sb.probe(tmp_path / "lake", "email", ["nobody@example.com"], policy=policy).verdicts
    assert set(verdicts) == {sb.Verdict.ABSENT}


def add(folder: Path, policy: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(["add", str(folder), "--policy", str(policy)])
    shown = capsys.readouterr()
    return int(str(ended.value.code)), shown.err
