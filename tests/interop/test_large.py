"""Column chunks above 2 GiB, where 32-bit sizes end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from testing.surgery import filter_of
from testing.tables import Mode, write

MIB = 1 << 20
#: A few values of 1 MiB, again and again: large in the file, small in memory.
DISTINCT, ROUNDS = 23, 90


def _value(i: int) -> bytes:
    return i.to_bytes(4, "big") * (MIB // 4)


#: Peak memory of a run, in a process of its own.
PROGRAM = """
import re, sys
from pathlib import Path
import secure_bloom as sb
from testing.tables import KEYRING
report = sb.add_bloom_filters(sys.argv[1], columns=["x"], keys=KEYRING)
assert not report.failed, report
# Not ru_maxrss: Linux counts the process that started this one into that.
print(re.search(r"VmHWM:\\s*([0-9]+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.UNIFORM], ids=lambda mode: mode.name)
def test_a_chunk_above_2_gib(tmp_path: Path, mode: Mode) -> None:
    arrays = [pa.array([_value(i)], pa.binary()) for i in range(DISTINCT)]
    table = pa.table({"x": pa.chunked_array(arrays * ROUNDS), "n": range(DISTINCT * ROUNDS)})
    path = write(
        tmp_path / "x.parquet",
        table,
        mode,
        row_group_size=10**6,
        use_dictionary=False,
        compression="none",
        write_statistics=False,
    )
    size = path.stat().st_size
    assert size > 2**31
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    # The chunk is held once; what is decoded of it at a time does not grow with it.
    assert int(done.stdout) * 1024 < size + 512 * MIB
    bloom_filter = filter_of(path, 0, "x")
    assert all(bloom_filter.check(_value(i)) for i in range(DISTINCT))
    assert not any(bloom_filter.check(_value(i)) for i in range(DISTINCT, DISTINCT + 20))
    assert path.stat().st_size - size < 4096
