"""A run that is killed leaves the old snapshot or the new one; hostile manifests are refused."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("pypaimon_rust")

import secure_bloom as sb
from secure_bloom.lakes.avro_files import decode, decoding_room, encode
from secure_bloom.lakes.paimon.table import paimon_table
from testing.paimon_tables import Warehouse, latest

#: Kills itself before the n-th file of a commit, or after it: a manifest, two lists, the snapshot.
CHILD = """
import os, signal, sys
import secure_bloom as sb
from secure_bloom.lakes.paimon import manifest_commit
from secure_bloom.storage import commit_files, dispatch
folder, wanted, after = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "after"
create, count = dispatch.create_file, 0
def killing(path, content, *, like):
    global count
    count += 1
    if count == wanted and not after:
        os.kill(os.getpid(), signal.SIGKILL)
    create(path, content, like=like)
    if count == wanted:
        os.kill(os.getpid(), signal.SIGKILL)
manifest_commit.create_file = commit_files.create_file = killing
sb.paimon.build_index(folder, ["id"])
"""


@pytest.fixture
def lake(tmp_path: Path) -> Warehouse:
    return Warehouse(path=str(tmp_path))


@pytest.mark.parametrize(
    ("number", "when", "snapshot"),
    [(1, "before", 2), (3, "before", 2), (4, "before", 2), (4, "after", 3)],
)
def test_a_kill_leaves_one_snapshot_whole(
    lake: Warehouse, number: int, when: str, snapshot: int
) -> None:
    folder = lake.create("id bigint, name string", file_index__in_manifest_threshold="0 b")
    lake.insert([(1, "a")])
    lake.insert([(2, "b")])
    rows = lake.rows()
    done = subprocess.run(
        [sys.executable, "-c", CHILD, folder, str(number), when], timeout=120, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert latest(folder)["id"] == snapshot
    assert lake.rows() == rows
    # The hint may be old, which readers expect.
    report = sb.paimon.build_index(folder, ["id"])
    assert {file.status for file in report.files} == {"unchanged" if snapshot == 3 else "built"}
    assert lake.rows() == rows
    assert lake.rows("id = 2") == [{"id": 2, "name": "b"}]


def lie(random: Random, value: Any) -> Any:
    """Another value of the same Avro type."""
    if isinstance(value, dict):
        name = random.choice(sorted(value))
        return value | {name: lie(random, value[name])}
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return random.choice([-1, 0, 1, -2, 2**31 - 1, -(2**31), value + 1])
    if isinstance(value, str):
        return random.choice(["", "..", "../x", "a/b", "x\0", value + "x", "n" * 300])
    if isinstance(value, bytes):
        found = bytearray(value or b"\0")
        found[random.randrange(len(found))] = random.randrange(256)
        return random.choice([bytes(found), b"", bytes(found[:5]), bytes(found) * 3])
    return [lie(random, each) for each in value] if value else ["../x"]


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=[pytest.mark.slow] * (n >= 50)) for n in range(150)]
)
def test_lying_manifests_are_refused_or_read(template: str, seed: int) -> None:
    random = Random(seed)
    path = random.choice(sorted(Path(template, "manifest").iterdir()))
    before = path.read_bytes()
    content = bytearray(before)
    if seed % 2:
        for _ in range(random.randint(1, 3)):
            content[random.randrange(len(content))] = random.randrange(256)
    else:
        found = decode(before, decoding_room())
        records = [lie(random, record) for record in found.records]
        try:
            content = bytearray(encode(found.schema, records))
        except Exception:
            pytest.skip("no value of the Avro type")
    path.write_bytes(content)
    try:
        files = paimon_table(template).files
        sb.read_table(template)
        sb.paimon.build_index(template, ["id"], dry_run=True)
    except sb.SecureBloomError:
        return
    finally:
        path.write_bytes(before)
    assert all(file.startswith(f"{template}/") for file in files)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> str:
    lake = Warehouse(path=str(tmp_path_factory.mktemp("lies")))
    folder = lake.create("id bigint, p string", partitioned="p")
    lake.insert([(1, "a"), (2, "b")])
    lake.insert([(3, "a")])
    sb.paimon.build_index(folder, ["id"], where="p = 'a'")
    return folder
