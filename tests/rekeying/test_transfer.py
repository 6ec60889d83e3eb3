"""Data goes from one protection into another page by page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MIB = 1024 * 1024
#: Re-encrypts files one after the other, twice each; by how many MiB each takes more than all
#: before.
_PROGRAM = """
import re, sys
from pathlib import Path
import secure_bloom as sb

def peak():
    # Not ru_maxrss: Linux counts the process that started this one into that.
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s*([0-9]+) kB", status)[1]) >> 10

policy = sb.KeyPolicy(footer_key="k", uniform=True)
keys = sb.Keyring(master_keys={"k": bytes(16)})
for path in sys.argv[1:]:
    before = peak()
    for _ in range(2):
        assert not sb.reencrypt(path, policy=policy, keys=keys, new_data_keys=True).failed
    print(peak() - before)
"""


def written(path: Path, page: int, pages: int) -> Path:
    """A file of one chunk with so many pages, each of one value of ``page`` MiB."""
    schema = pa.schema([("x", pa.binary())])
    options = {"use_dictionary": False, "write_statistics": False, "write_batch_size": 1}
    with pq.ParquetWriter(path, schema, compression="none", **options) as writer:
        writer.write_table(pa.table({"x": [bytes(page * MIB)] * pages}, schema))
    assert path.stat().st_size > page * pages * MIB
    return path


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is told by /proc")
def test_memory_is_that_of_a_few_pages_however_large_a_chunk_is(tmp_path: Path) -> None:
    files = [
        written(tmp_path / "first", 1, 1),  # what is loaded once
        written(tmp_path / "small", 1, 64),
        written(tmp_path / "large", 8, 10),
    ]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *map(str, files)],
        capture_output=True,
        text=True,
        check=True,
    )
    _, small, large = map(int, done.stdout.split())
    # A page is held as it is stored, in clear and sealed; and one that is being written.
    assert small < 24
    assert large < 7 * 8
