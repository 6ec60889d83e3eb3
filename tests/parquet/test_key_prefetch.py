"""A KMS that is far away: many keys are asked for side by side, and shared ones once."""

from __future__ import annotations

import base64
import json
import os
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
from secure_bloom.encryption.kms import kms_client
from secure_bloom.encryption.kms.calls import AT_ONCE
from secure_bloom.encryption.policy_tables import ColumnRule, EncryptionOptions
from testing.slow_vault import slow_server
from testing.tables import KEYRING, Mode, crypto_factory, customers, write

POLICY = sb.KeyPolicy(
    footer_key="k_footer",
    columns={"email": ColumnRule(path="email", key="k_pii", bloom=sb.BloomFilterOptions())},
)
#: How long the server of the slow test takes for a call.
SECONDS = 0.05
WHERE = "email = 'nobody@example.com'"
READS: dict[str, Callable[[Path, sb.KmsClient], object]] = {
    "read": lambda folder, kms: sb.read_table(folder, keys=kms),
    "read where": lambda folder, kms: sb.read_table(folder, where=WHERE, keys=kms),
    "probe": lambda folder, kms: sb.probe(folder, "email", ["nobody@example.com"], keys=kms),
    "inspect": lambda folder, kms: sb.inspect(folder, keys=kms),
    "audit": lambda folder, kms: sb.audit(folder, policy=POLICY, keys=kms),
    "add": lambda folder, kms: sb.add_bloom_filters(
        folder, columns={"email": sb.BloomFilterOptions()}, keys=kms, dry_run=True
    ),
    "rotate": lambda folder, kms: sb.rotate_keys(
        folder, policy=POLICY, moves={"k_nobody": "k_pii"}, keys=kms, dry_run=True
    ),
    "keys used": lambda folder, kms: sb.keys_used(folder, keys=kms),
}
#: Keys of footers alone.
FOOTERS_ALONE = {"rotate", "keys used"}


class FarAwayKms:
    """Answers late, and notes how many calls were under way at a time."""

    def __init__(self, seconds: float = 0.02) -> None:
        self.seconds = seconds
        self.calls: list[str] = []
        self.wraps = 0
        self.most = self.now = 0
        self.lock = threading.Lock()

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        with self._under_way():
            self.wraps += 1
        return KEYRING.wrap_key(key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        with self._under_way():
            self.calls.append(wrapped_key)
        return KEYRING.unwrap_key(wrapped_key, master_key_identifier)

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        with self.lock:
            yield
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self.seconds)
        with self.lock:
            self.now -= 1


def lake(folder: Path, files: Iterable[int], *, double_wrapping: bool = True) -> Path:
    """Files that have keys of their own, as of a Spark task each."""
    folder.mkdir()
    configuration = pe.EncryptionConfiguration(
        footer_key="k_footer", column_keys={"k_pii": ["email"]}, double_wrapping=double_wrapping
    )
    for number in files:
        properties = crypto_factory().file_encryption_properties(
            pe.KmsConnectionConfig(), configuration
        )
        path = folder / f"{number:05}.parquet"
        pq.write_table(customers(5, number), path, encryption_properties=properties)
    return folder


@pytest.fixture(scope="module")
def with_own_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lake(tmp_path_factory.mktemp("lake") / "own", range(120))


@pytest.mark.parametrize("verb", READS)
def test_keys_of_their_own_are_asked_for_side_by_side_and_once(
    with_own_keys: Path, verb: str
) -> None:
    kms = FarAwayKms()
    READS[verb](with_own_keys, kms)
    trials = 2 if verb == "audit" else 0
    files = 120 if verb in FOOTERS_ALONE else 240
    assert len(kms.calls) == len(set(kms.calls)) == files + trials
    assert 8 <= kms.most <= AT_ONCE


def test_single_wrapping_too(tmp_path: Path) -> None:
    folder, kms = lake(tmp_path / "single", range(100), double_wrapping=False), FarAwayKms()
    sb.add_bloom_filters(folder, columns={"email": sb.BloomFilterOptions()}, keys=kms, dry_run=True)
    assert len(kms.calls) == len(set(kms.calls)) == 200
    assert 8 <= kms.most <= AT_ONCE


def test_files_under_keys_of_their_own_come_under_others_side_by_side(
    with_own_keys: Path, tmp_path: Path
) -> None:
    kms = FarAwayKms()
    older = frozenset({"k_pii", "k_geo"})
    policy = sb.KeyPolicy(footer_key="k_footer", uniform=True, older_keys=older)
    report = sb.reencrypt(with_own_keys, policy=policy, keys=kms, output=tmp_path)
    assert not report.failed
    assert len(kms.calls) == len(set(kms.calls)) == 240
    # One KEK of the run wraps the new keys.
    assert kms.wraps == 1
    assert 8 <= kms.most <= AT_ONCE


def test_new_keys_that_the_kms_wraps_itself_are_wrapped_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    for number in range(60):
        pq.write_table(customers(5, number), tmp_path / "plain" / f"{number:02}.parquet")
    policy = replace(POLICY, encryption=EncryptionOptions(double_wrapping=False))
    kms = FarAwayKms()
    report = sb.reencrypt(tmp_path / "plain", policy=policy, keys=kms, output=tmp_path / "sealed")
    assert not report.failed
    assert kms.wraps == 120
    assert 8 <= kms.most <= AT_ONCE
    assert sb.read_table(tmp_path / "sealed", keys=KEYRING).num_rows == 300


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["read where", "audit", "probe"])
def test_ten_thousand_files_under_one_kek_cost_one_call_a_key(tmp_path: Path, verb: str) -> None:
    first = write(
        tmp_path / "first", customers(5), Mode.ENCRYPTED, column_keys={"k_pii": ["email"]}
    )
    (tmp_path / "many").mkdir()
    for number in range(10_000):
        os.link(first, tmp_path / "many" / f"{number:05}.parquet")
    kms = FarAwayKms()
    READS[verb](tmp_path / "many", kms)
    assert len(kms.calls) == 2 + (2 if verb == "audit" else 0)


class ClearKms:
    """Wraps nothing: keys in clear, in the form of Vault's."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return f"vault:v1:{base64.b64encode(key_bytes).decode()}"

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        raise NotImplementedError


@pytest.mark.slow
def test_a_thousand_keks_take_an_eighth_of_one_call_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening alone, by Vault's client: a condition that no file's statistics let through."""
    pytest.importorskip("hvac", reason="needs the extra vault")
    monkeypatch.setenv("VAULT_TOKEN", "any")
    configuration = pe.EncryptionConfiguration(footer_key="k", uniform_encryption=True)
    for number in range(1000):
        factory = pe.CryptoFactory(lambda _: sb.PyarrowKms(ClearKms()))
        pq.write_table(
            customers(5, number),
            tmp_path / f"{number:05}.parquet",
            encryption_properties=factory.file_encryption_properties(
                pe.KmsConnectionConfig(), configuration
            ),
        )
    without_delay, _ = read_through(tmp_path, 0)
    seconds, calls = read_through(tmp_path, SECONDS)
    print(f"{calls} calls: {seconds:.2f} s, {without_delay:.2f} s without the delay")
    assert calls == 1000
    # What the machine takes for the rest is none of the KMS's.
    assert seconds - without_delay < calls * SECONDS / 8


def read_through(folder: Path, delay: float) -> tuple[float, int]:
    """How long opening all files takes, and how many calls it makes."""
    with slow_server(delay) as url:
        kms = kms_client({"client": "vault", "address": url}, folder)
        start = time.perf_counter()
        assert sb.read_table(folder, where=WHERE, keys=kms).num_rows == 0
        seconds = time.perf_counter() - start
        with urllib.request.urlopen(url) as answer:
            return seconds, json.load(answer)["data"]["calls"]
