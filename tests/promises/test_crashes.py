"""A crash leaves the old file or the new one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import secure_bloom as sb
from testing.tables import customers, write

#: Children die before the first, the second, ... call that changes the disk, until one does all.
DYING = """
import os, signal, sys
import pyarrow.parquet
import secure_bloom as sb
from secure_bloom.storage import open_folder

path, old = sys.argv[1], open(sys.argv[1], "rb").read()
seen = set()
for life in range(60):
    with open(path, "wb") as file:
        file.write(old)
    child = os.fork()
    if child == 0:
        left = life
        def dying(call):
            def step(*arguments, **options):
                global left
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1
                return call(*arguments, **options)
            return step
        names = ("fchmod", "copy_file_range", "pwritev", "fsync", "link", "unlink", "rename")
        for name in names:
            setattr(os, name, dying(getattr(os, name)))
        open_folder.exchange_names = dying(open_folder.exchange_names)
        sb.add_bloom_filters(path, columns="id")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    content = open(path, "rb").read()
    assert content == old or sb.probe(path, "id", [1]).files[0].row_groups[0].filter, life
    seen.add(content == old)
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0
        break
assert life >= 5, life
print(sorted(seen))
"""


def test_a_crash_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(5))
    done = subprocess.run(
        [sys.executable, "-c", DYING, str(path)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "[False, True]\n", done.stderr


def test_the_next_add_in_place_removes_a_torn_tail(tmp_path: Path) -> None:
    whole = write(tmp_path / "x.parquet", customers(500))
    old = whole.read_bytes()
    sb.add_bloom_filters(whole, columns="id", in_place=True)
    new = whole.read_bytes()
    for torn in (len(old) + 40, len(new) - 1):
        path = tmp_path / "torn.parquet"
        path.write_bytes(new[:torn])
        sb.add_bloom_filters(path, columns="id", in_place=True)
        assert path.read_bytes()[: len(old)] == old
        assert sb.probe(path, "id", [1]).files[0].row_groups[0].filter
        assert sb.read_table(path).num_rows == 500
