"""Names of new files: beside the old ones, and known again as ours."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.lakes.delta.run_record import is_of_run, new_path
from secure_bloom.lakes.new_files import new_paths, new_run
from testing import delta_logs as logs
from testing.delta_tables import data_files, named

RUN = "0123456789abcdef"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x.parquet", f"x.sb-{RUN}.parquet"),
        ("day=a%2520b/p-c000.snappy.parquet", f"day=a%2520b/p-c000.snappy.sb-{RUN}.parquet"),
        ("x.sb-fedcba9876543210.parquet", f"x.sb-{RUN}.parquet"),
        ("x.parquet.encrypted", f"x.sb-{RUN}.parquet.encrypted"),
        ("x", f"x.sb-{RUN}.parquet"),
        ("file:///other/table/x.parquet", f"x.sb-{RUN}.parquet"),
        ("s3://other/table/x.parquet", f"x.sb-{RUN}.parquet"),
    ],
)
def test_a_new_file_stands_beside_the_old_one_in_this_table(old: str, new: str) -> None:
    assert new_path(old, RUN) == new
    assert is_of_run(new, RUN)


def test_two_long_names_get_two_names_that_files_may_have() -> None:
    long = "p" * 240
    names = {new_path(f"d/{long}{end}.parquet", RUN) for end in "ab"}
    assert len(names) == 2
    for name in names:
        assert len(f"_KEY_MATERIAL_FOR_{name.removeprefix('d/')}.json") <= 255
        assert is_of_run(name, RUN)


@pytest.mark.parametrize(
    "path",
    [
        f"../x.sb-{RUN}.parquet",
        f"%2e%2e/x.sb-{RUN}.parquet",
        f"/etc/x.sb-{RUN}.parquet",
        f"file:///etc/x.sb-{RUN}.parquet",
        "x.parquet",
        f"sb-{RUN}.d/x.parquet",
        "x.sb-fedcba9876543210.parquet",
    ],
)
def test_no_other_path_is_taken_for_one_of_a_run(path: str) -> None:
    assert not is_of_run(path, RUN)


def test_runs_have_names_of_their_own() -> None:
    assert len({new_run() for _ in range(100)}) == 100


PATHS = [
    "folder/part-0.parquet",
    "folder//part-0.parquet",
    "folder/./part-0.parquet",
    "file:///other/table/day=1/part-0.parquet",
    "file:///other/table/day=2/part-0.parquet",
    "/other/table/part-0.parquet",
    "part-0.parquet",
    "part-0",
    "part-0.sb-fedcba9876543210.parquet",
    "PART-0.parquet",
    "day=1/part-0.parquet",
    "d/a%20b.parquet",
    "d/a b.parquet",
    "d%2Fa b.parquet",
    "e/caf%C3%A9.parquet",
    "e/cafe%CC%81.parquet",
    *(f"file:///{folder}/{'p' * 240}.parquet" for folder in "ab"),
]


def test_each_old_path_gets_a_new_one_of_its_own() -> None:
    """Also where a disk ignores case, or decodes names."""
    found = new_paths(PATHS, lambda path, hashed: new_path(path, RUN, hashed=hashed))
    assert list(found) == PATHS
    stored = {unicodedata.normalize("NFC", unquote(it)).casefold() for it in found.values()}
    assert len(stored) == len(PATHS)
    assert all(is_of_run(new, RUN) for new in found.values())


@pytest.mark.parametrize("fails", [False, True])
def test_a_shallow_clone_of_a_table_with_one_name_in_all_partitions(
    tmp_path: Path, fails: bool
) -> None:
    other, clone = tmp_path / "other", tmp_path / "clone"
    adds = []
    for day in range(3):
        path = other / f"day={day}" / "part-0.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table({"id": range(day * 10, day * 10 + 10)}), path)
        if fails and day == 1:
            path.write_bytes(b"PAR1 broken PAR1")
        values = {"day": str(day)}
        adds.append(logs.add(path.as_uri(), path.stat().st_size, partitionValues=values))
    columns = (logs.column("id"), logs.column("day", "string"))
    logs.commit(clone, 0, *logs.start(*columns, partitions=["day"]), *adds)
    report = sb.add_bloom_filters(clone, columns="id")
    assert [it.status for it in report.files].count("added") == (2 if fails else 3)
    assert len(named(str(clone), 1, "add")) == (2 if fails else 3)
    if not fails:
        found = sb.read_table(clone)
        assert sorted(found["id"].to_pylist()) == list(range(30))
    assert len(data_files(clone)) == (2 if fails else 3)
