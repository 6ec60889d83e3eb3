"""What a process that is ours alone sets for itself, and a caller's process never gets."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from secure_bloom.cli import main
from testing.project import ROOT
from testing.tables import customers, read, write

THREADS = """
import os, threading
from secure_bloom.running import settle_process
settle_process()
import numpy
print(len(os.listdir("/proc/self/task")))
"""

END = """
import atexit
from secure_bloom.running import end_process, settle_process
settle_process()
atexit.register(print, "cleaned up")
print("answer")
end_process(3)
"""


def test_the_end_cleans_up_and_prints_all() -> None:
    done = subprocess.run([sys.executable, "-c", END], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "answer\ncleaned up\n")


#: Prints how many of 300 processes ended otherwise than by their exit code.  Each ends while a
#: thread of pyarrow may still have to free memory of Python.
ABORTS = """
import io, os, sys
import pyarrow as pa, pyarrow.parquet as pq
from secure_bloom.running import end_process, settle_process
sys.setswitchinterval(100)
written = io.BytesIO()
pq.write_table(pa.table({f"c{i}": list(range(9)) for i in range(5)}), written)
content, others = written.getvalue(), 0
for _ in range(300):
    if not (child := os.fork()):
        settle_process()
        pq.ParquetFile(pa.BufferReader(content), pre_buffer=False).read().column(0)
        end_process(3)
    others += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 3
print(others)
"""


@pytest.mark.slow  # without the quick end about 5 of 300 abort, on a busy machine
def test_a_thread_of_a_library_cannot_abort_the_end() -> None:
    done = subprocess.run([sys.executable, "-c", ABORTS], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_numpy_starts_no_threads() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", THREADS], capture_output=True, text=True, env=environment
    )
    assert (done.stdout.strip(), done.stderr) == ("1", "")


def test_a_callers_process_stays_as_it_is(tmp_path: Path) -> None:
    path, before = write(tmp_path / "x.parquet", customers(5)), dict(os.environ)
    threshold = gc.get_threshold()
    with pytest.raises(SystemExit):
        main(["inspect", str(path)])
    assert gc.get_threshold() == threshold
    assert dict(os.environ) == before


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_error_and_no_file_gets_its_number(
    tmp_path: Path, closed: str
) -> None:
    path = write(tmp_path / "x.parquet", customers(50))
    for verb in (f"inspect {path}", f"add {path} -c email --in-place"):
        assert shell(f"{verb} {closed}").returncode == 0
    assert read(path, encrypted=False).equals(customers(50))


def test_a_closed_stdin_gives_no_values(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(50))
    done = shell(f"probe {path} email --from - <&-")
    assert (done.returncode, "no value is given" in done.stderr) == (2, True)


def test_a_current_folder_that_was_removed_matters_to_relative_paths_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(50))
    before = f"mkdir {tmp_path}/d && cd {tmp_path}/d && rmdir {tmp_path}/d"
    assert shell(f"inspect {path}", before).returncode == 0
    done = shell("inspect x.parquet", before)
    assert done.returncode == 2
    assert "secure-bloom: error: the current folder was removed\n" in done.stderr


def test_ctrl_c_during_imports_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["secure-bloom"].partition(":")
    for how in (["-m", "secure_bloom"], ["-c", f"from {module} import {function} as f; f()"]):
        done = subprocess.run(
            [sys.executable, *how],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
        )
        assert (done.returncode, done.stderr) == (130, "secure-bloom: error: interrupted\n")


def shell(verb: str, before: str = "true") -> subprocess.CompletedProcess[str]:
    """The verb, run by a shell that closes streams or removes folders under it."""
    script = f"{before} && {sys.executable} -m secure_bloom {verb}"
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)


ADD = """
import sys
from secure_bloom.cli import main
sys.argv = ["secure-bloom", "add", {path!r}, "--column", "email", "--column", "id", "--json"]
try:
    main()
except SystemExit as end:
    assert end.code in (0, None), end.code
heavy = {{"pyarrow.compute", "pyarrow.parquet", "cryptography", "ssl", "rich"}}
print(*sorted(heavy & set(sys.modules)), file=sys.stderr)
"""


def test_adding_to_a_small_plain_file_loads_nothing_heavy_but_numpy_and_pyarrow(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "x.parquet", customers(1000))
    done = subprocess.run(
        [sys.executable, "-c", ADD.format(path=str(path))], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr.strip()) == (0, "")
    assert '"status": "added"' in done.stdout
