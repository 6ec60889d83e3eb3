"""Files under other keys: beside Spark and pyarrow, which decode and encode them, and beside `cp`.

`python -m benchmarks.suites.rekeying FOLDER ROWS RUNS` is the process that the first cases run in:
Spark's start-up and one run of each side do not count.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

import secure_bloom as sb
from benchmarks.harness.data import fresh_copy, write_keyring, write_wide
from benchmarks.harness.results import Measure, Result
from benchmarks.harness.sessions import local_session
from benchmarks.harness.timing import Side, medians, python
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import unlock
from secure_bloom.parquet.footer.seal import close_footer
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.spark import session_config
from secure_bloom.storage import open_input, replace_tail
from testing.tables import KEYRING, crypto_factory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SENSITIVE = {"id": "k_finance", "email": "k_pii"}
#: Bytes of a file of a lake, of which many are rotated.
_FILE_ROWS = 83_000


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """Files, one and many."""
    rows, runs = (200_000, 1) if quick else (4_000_000, 3)
    yield from _one_file(folder, rows, runs)
    yield from _many_files(folder / "lake", 20 if quick else 1000, 1)


def _one_file(folder: Path, rows: int, runs: int) -> Iterator[Result]:
    times = json.loads(python("-m", __spec__.name, folder, str(rows), str(runs)))
    encrypt = f"encrypt {rows:,} rows x 11 columns, 2 of them sensitive"
    for other, against, goal in (
        ("spark", "Spark reads, writes encrypted", 15.0),
        ("pyarrow", "pyarrow reads, writes encrypted", 7.0),
        ("cp", "cp, synced", None),
    ):
        yield Result(
            case=encrypt,
            against=against,
            unit="s",
            ours=times["encrypt"],
            other=times[other],
            goal=goal,
            note="into another folder; footer encrypted, AES-GCM, two column keys; ours ends on "
            "the disk",
        )
    yield Result(
        case=f"re-key {rows:,} rows x 11 columns, all encrypted",
        against="cp, synced",
        unit="s",
        ours=times["rekey"],
        other=times["cp"],
        measure=Measure.TIMES,
        goal=3.0,
        note="in place; new data keys and a new AAD for every module",
    )


def main() -> None:
    """The process that is measured; prints the medians as JSON."""
    folder, rows, runs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    some, everything = policies(folder)
    plain, work = write_wide(folder / "plain.parquet", rows), folder / "work.parquet"
    sealed = folder / "sealed" / plain.name
    reencrypt(plain, everything, output=sealed.parent)
    with local_session(2, folder, session_config(some)) as spark:
        times = medians(
            Side(
                run=lambda: reencrypt(plain, some, output=folder / "out"),
                before=lambda: removed(folder / "out"),
            ),
            Side(
                run=lambda: reencrypt(work, everything, new_data_keys=True),
                before=lambda: fresh_copy(sealed, work),
            ),
            Side(run=lambda: by_spark(spark, plain, folder / "spark")),
            Side(run=lambda: by_pyarrow(plain, folder / "arrow.parquet")),
            Side(run=lambda: synced_copy(sealed, folder / "copy.parquet"), before=os.sync),
            runs=runs,
        )
    names = ("encrypt", "rekey", "spark", "pyarrow", "cp")
    print(json.dumps(dict(zip(names, times, strict=True))))


def policies(folder: Path) -> tuple[sb.KeyPolicy, sb.KeyPolicy]:
    """Two sensitive columns; all of them under the footer's key."""
    write_keyring(folder)
    kms = {"client": "keyring", "keyring": "keyring.json"}
    rules = {name: ColumnRule(path=name, key=key) for name, key in SENSITIVE.items()}
    return (
        sb.KeyPolicy(kms=kms, base=folder, footer_key="k_footer", columns=rules),
        sb.KeyPolicy(kms=kms, base=folder, footer_key="k_footer", uniform=True),
    )


def reencrypt(path: Path, policy: sb.KeyPolicy, **options: object) -> None:
    """Re-encrypt, and stop where that is not what was done."""
    report = sb.reencrypt(path, policy=policy, **options)  # type: ignore[arg-type]
    if [file.status for file in report.files] != ["reencrypted"]:
        raise SystemExit(f"nothing was encrypted: {report.files[0].error}")


def removed(folder: Path) -> None:
    """Without the output of the round before, and with all of it on the disk."""
    shutil.rmtree(folder, ignore_errors=True)
    os.sync()


def by_spark(spark: SparkSession, source: Path, target: Path) -> None:
    """Decode and encode the file; the session's properties say what is encrypted."""
    spark.read.parquet(str(source)).write.mode("overwrite").parquet(str(target))


def by_pyarrow(source: Path, target: Path) -> None:
    """As many row groups, and the same codec as before."""
    configuration = pe.EncryptionConfiguration(
        footer_key="k_footer", column_keys={key: [name] for name, key in SENSITIVE.items()}
    )
    properties = crypto_factory().file_encryption_properties(
        pe.KmsConnectionConfig(), configuration
    )
    table = pq.read_table(source)
    pq.write_table(table, target, row_group_size=len(table) // 4, encryption_properties=properties)


def synced_copy(source: Path, target: Path) -> None:
    """What ``cp`` and ``sync`` do."""
    subprocess.run(["cp", str(source), str(target)], check=True)
    with target.open("rb") as file:
        os.fsync(file.fileno())


def _many_files(folder: Path, count: int, runs: int) -> Iterator[Result]:
    folder.mkdir()
    some, _ = policies(folder)
    first = folder / "00000.parquet"
    write_wide(folder / "plain", _FILE_ROWS * 2)
    reencrypt(folder / "plain", some, output=folder / "made")
    (folder / "plain").unlink()
    shutil.move(folder / "made" / "plain", first)
    (folder / "made").rmdir()
    size = first.stat().st_size / 1e6
    for number in range(1, count):
        shutil.copyfile(first, folder / f"{number:05}.parquet")
    os.sync()
    files = sorted(folder.glob("*.parquet"))
    there_and_back = iter([{"k_pii": "k_new"}, {"k_new": "k_pii"}] * (runs + 1))
    kms = sb.Keyring(master_keys={**KEYRING.master_keys, "k_new": bytes(32)})

    def rotate() -> None:
        report = sb.rotate_keys(files, policy=some, moves=next(there_and_back), keys=kms)
        if {file.status for file in report.files} != {"rotated"}:
            raise SystemExit(f"not rotated: {report.failed[:1]}")

    times = medians(
        Side(run=rotate, before=os.sync),
        Side(run=partial(copy_again, files, kms), before=os.sync),
        runs=runs,
    )
    yield Result(
        case=f"rotate the master key of {count:,} files of {size:.0f} MB",
        against="an add of nothing: their footers read, the files copied",
        unit="s",
        ours=times[0],
        other=times[1],
        measure=Measure.TIMES,
        goal=1.3,
        note="both replace and sync each file, as many at a time as there are cores",
    )


def copy_again(files: list[Path], kms: sb.Keyring) -> None:
    """Open each footer, write the file again with the same one."""

    def copy(path: Path) -> None:
        with open_input(str(path)) as file:
            footer = unlock(read_tail(file), file_keys(KeyResolver(kms), file))
            replace_tail(file, footer.tail.offset, [close_footer(footer, footer.plain)])

    for _ in in_order(copy, files, os.cpu_count() or 1):
        pass


if __name__ == "__main__":
    main()
