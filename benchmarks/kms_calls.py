"""What a KMS is asked when master keys rotate: on a real OpenBao, which renews keys by itself."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

import secure_bloom as sb
from benchmarks.results import Measure, Result
from secure_bloom.encryption.keys import KeyResolver
from secure_bloom.encryption.keys.vault.client import VaultKmsClient
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.rekeying.new_keys import KeyMaker
from secure_bloom.rekeying.reencryption import Reencryption
from tests.openbao import openbao_server
from tests.tables import customers

#: Calls of a run that do not grow with its files or KEKs.
_OF_THE_RUN: Final = 4


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """A KEK for each file and master key, and one KEK for each master key."""
    many = 50 if quick else 1000
    (folder / "bao").mkdir()
    with openbao_server(folder / "bao") as server:
        os.environ["VAULT_TOKEN"] = server.root
        for name in ("k_footer", "k_pii"):
            server.make_key(name)
        policy = sb.KeyPolicy(
            kms=server.table(),
            footer_key="k_footer",
            columns={"email": ColumnRule(path="email", key="k_pii")},
        )
        for count, keks in ((many, many), (many if quick else 10_000, 1)):
            lake = folder / f"under{keks}"
            write_lake(lake, policy, count, keks)
            for name in ("k_footer", "k_pii"):
                server.ask("POST", f"transit/keys/{name}/rotate", {})
            asked = rotated_calls(lake, policy)
            yield Result(
                case=f"calls to a KMS to renew the keys of {count:,} files, {_under(keks)}",
                unit="calls a KEK",
                ours=sum(asked.values()) / (2 * keks),
                measure=Measure.VALUE,
                goal=1.0,
                tolerance=_OF_THE_RUN / (2 * count),
                note=", ".join(f"{calls:,} {verb}" for verb, calls in sorted(asked.items()))
                + ": OpenBao renews KEKs of columns inside and gives those of footers out; the run "
                "asks for versions and wraps a new KEK for all footers",
            )


def _under(keks: int) -> str:
    return "a KEK for each file and master key" if keks > 1 else "a KEK for each master key"


def write_lake(folder: Path, policy: sb.KeyPolicy, files: int, keks: int) -> None:
    """Small files that are written in so many runs, each with KEKs of its own."""
    folder.mkdir()
    pq.write_table(customers(5), folder / "plain")
    kms = policy.kms_client()
    for run in range(keks):
        part = folder / f"{run:05}.parquet"
        work = Reencryption(
            resolver=KeyResolver(None), policy=policy, maker=KeyMaker(kms, policy.encryption)
        )
        if work.reencrypt(str(folder / "plain"), str(part)).status != "reencrypted":
            raise SystemExit("nothing was encrypted")
    made = sorted(folder.glob("*.parquet"))
    for number in range(keks, files):
        shutil.copyfile(made[number % keks], folder / f"{number:05}.parquet")
    (folder / "plain").unlink()


def rotated_calls(folder: Path, policy: sb.KeyPolicy) -> Counter[str]:
    """Rotate all files; how often our client asked for what."""
    asked: Counter[str] = Counter()
    ask = VaultKmsClient._transit

    def counted(self: VaultKmsClient, verb: str, name: str, *texts: str) -> object:
        asked[verb] += 1
        return ask(self, verb, name, *texts)

    VaultKmsClient._transit = counted  # type: ignore[method-assign,assignment]
    try:
        report = sb.rotate_keys(folder, policy=policy)
    finally:
        VaultKmsClient._transit = ask  # type: ignore[method-assign]
    if {file.status for file in report.files} != {"rotated"}:
        raise SystemExit(f"not rotated: {report.failed[:1]}")
    return asked
