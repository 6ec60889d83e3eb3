"""An audit of 1,000 files of 20 columns, timed: `python -m benchmarks.suites.audit [FILES]`.

The files are encrypted, have filters of four columns and obey the policy.  The most memory that
the process ever had is told too, after a tenth of the files and after all of them.
"""

from __future__ import annotations

import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

import secure_bloom as sb
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule
from testing.tables import KEYRING, Mode, write

FILES = 1000
COLUMNS = 20
ROWS = 20_000
FILTERED = {"c0": "k_pii", "c1": "k_pii", "c2": "k_finance", "c3": None}


def main() -> None:
    """Write the files, audit them, print seconds and memory."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else FILES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        policy = dataset(folder, files)
        for part in ("part-00*", "*"):
            paths = sorted(folder.glob(f"{part}.parquet"))
            started = time.perf_counter()
            report = sb.audit(paths, policy=policy, keys=KEYRING)
            seconds = time.perf_counter() - started
            if report.findings:
                raise SystemExit(f"not clean: {report.findings[0].message}")
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            rate = f"{1000 * seconds / report.files:.1f} ms a file"
            print(f"{report.files} files: {seconds:.1f} s, {rate}, {most} MiB at most")


def dataset(folder: Path, files: int) -> KeyPolicy:
    """So many copies of one file, and the policy they obey."""
    rules = {
        name: ColumnRule(path=name, key=key, bloom=sb.BloomFilterOptions())
        for name, key in FILTERED.items()
    }
    table = pa.table({f"c{i}": [f"{i}-{j}" for j in range(ROWS)] for i in range(COLUMNS)})
    keys = {"k_pii": ["c0", "c1"], "k_finance": ["c2"]}
    first = write(
        folder / "part-0000.parquet",
        table,
        Mode.ENCRYPTED,
        column_keys=keys,
        row_group_size=ROWS,
        write_page_index=True,
    )
    sb.add_bloom_filters(first, columns=list(FILTERED), keys=KEYRING)
    for i in range(1, files):
        shutil.copyfile(first, folder / f"part-{i:04}.parquet")
    return KeyPolicy(footer_key="k_footer", columns=rules)


if __name__ == "__main__":
    main()
