"""What a KMS is asked when master keys rotate: on a real OpenBao, which renews keys by itself."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow.parquet as pq

import secure_bloom as sb
from benchmarks.harness.results import Measure, Result
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.kms.vault.transit import VaultKmsClient
from secure_bloom.encryption.policy_tables import ColumnRule, EncryptionOptions
from secure_bloom.parquet.key_material_files import key_material_name
from secure_bloom.rekeying.new_keys import KeyMaker
from secure_bloom.rekeying.reencryption import Reencryption
from testing.openbao import openbao_server
from testing.tables import customers

#: So many files are written at a time.
_WRITERS: Final = 8


class _Lake(NamedTuple):
    """How the files are wrapped: ``columns`` is their master key, ``keks`` how many there are."""

    files: int
    name: str
    columns: str
    keks: int
    is_inside: bool
    #: Calls of a run that grow neither with its files nor with its KEKs.
    of_the_run: int
    note: str


def _lakes(some: int, files: int) -> tuple[_Lake, ...]:
    return (
        _Lake(
            some,
            "a KEK for each file and master key, keys in footers",
            *("k_pii", 2 * some, True, 1),
            "KEKs of columns are renewed inside OpenBao, those of footers are given out, to open "
            "them, and all footers share a new one",
        ),
        _Lake(
            files,
            "a KEK for each file, keys in footers",
            *("k_footer", files, True, 1),
            "each KEK is given out, to open the footer, and all files share a new one",
        ),
        _Lake(
            files,
            "a KEK for each file, keys outside",
            *("k_footer", files, False, 0),
            "renewed inside OpenBao, footers stay closed",
        ),
        _Lake(
            files,
            "one KEK in all, keys in footers",
            *("k_footer", 1, True, 1),
            "no KMS gives a key out, to open footers, and renews it in one call",
        ),
        _Lake(
            files,
            "one KEK in all, keys outside",
            *("k_footer", 1, False, 0),
            "renewed inside OpenBao, footers stay closed",
        ),
    )


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """A KEK for each file, with and without one for each master key, and one KEK in all."""
    some, many = (25, 50) if quick else (1_000, 10_000)
    (folder / "bao").mkdir()
    with openbao_server(folder / "bao") as server:
        os.environ["VAULT_TOKEN"] = server.root
        for name in ("k_footer", "k_pii"):
            server.make_key(name)
        for number, lake in enumerate(_lakes(some, many)):
            policy = sb.KeyPolicy(
                kms=server.table(),
                footer_key="k_footer",
                columns={"email": ColumnRule(path="email", key=lake.columns)},
                encryption=EncryptionOptions(internal_storage=lake.is_inside),
            )
            path = folder / f"lake{number}"
            write_lake(path, policy, lake.files, lake.files if lake.keks > 1 else 1)
            for name in ("k_footer", "k_pii"):
                server.ask("POST", f"transit/keys/{name}/rotate", {})
            asked = rotated_calls(path, policy)
            shutil.rmtree(path)
            yield Result(
                case=f"calls to a KMS to renew the keys of {lake.files:,} files: {lake.name}",
                unit="calls a KEK",
                ours=sum(asked.values()) / lake.keks,
                measure=Measure.VALUE,
                goal=None if lake.keks == 1 and lake.is_inside else 1.0,
                tolerance=lake.of_the_run / lake.keks,
                note=", ".join(f"{calls:,} {verb}" for verb, calls in sorted(asked.items()))
                + f": {lake.note}",
            )


def write_lake(folder: Path, policy: sb.KeyPolicy, files: int, runs: int) -> None:
    """Small files that are written in so many runs, each with KEKs of its own."""
    folder.mkdir()
    plain = folder / "plain"
    pq.write_table(customers(5), plain)
    kms = policy.kms_client()

    def write(run: int) -> Path:
        work = Reencryption(
            resolver=KeyResolver(None), policy=policy, maker=KeyMaker(kms, policy.encryption)
        )
        made = folder / f"{run:05}.parquet"
        if work.reencrypt(str(plain), str(made)).status != "reencrypted":
            raise SystemExit("nothing was encrypted")
        return made

    with ThreadPoolExecutor(_WRITERS) as threads:
        made = list(threads.map(write, range(runs)))
    for number in range(runs, files):
        _copy(made[number % runs], folder / f"{number:05}.parquet")
    plain.unlink()


def _copy(file: Path, copy: Path) -> None:
    shutil.copyfile(file, copy)
    material = file.with_name(key_material_name(file.name))
    if material.exists():
        shutil.copyfile(material, copy.with_name(key_material_name(copy.name)))


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
