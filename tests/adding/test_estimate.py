"""The estimate at the end of a dry run: what a run costs, from a sample of the files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.adding.estimate import SampledTarget, estimated
from secure_bloom.adding.report import CostEstimate, FileAddReport, FilterReport
from secure_bloom.adding.rewrite import Rewriter
from secure_bloom.errors import PolicyError
from secure_bloom.lakes.plain_files import FilesTarget
from secure_bloom.storage import InputFile


def lake(folder: Path, files: int) -> Path:
    """Files of 200 to 4,000 rows."""
    for number in range(files):
        rows = 200 + 3_800 * (number * 37 % files) // files
        ids = pa.array(range(number * 10_000, number * 10_000 + rows))
        pq.write_table(
            pa.table({"id": ids, "text": [f"{it}" for it in ids.to_pylist()]}),
            folder / f"{number:03}.parquet",
        )
    return folder


def estimate_of(path: Path, **options: object) -> CostEstimate:
    found = sb.add_bloom_filters(path, columns=["id"], dry_run=True, **options).estimate
    assert found is not None
    return found


def test_a_sample_says_about_what_the_run_then_does(tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in lake(tmp_path, 60).iterdir()}
    report = sb.add_bloom_filters(tmp_path, columns=["id"], dry_run=True, sample=12)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert len(report.files) == 12
    assert "only 12 of 60 files were planned" in report.notes[-1]
    found = report.estimate
    assert found is not None
    done = sb.add_bloom_filters(tmp_path, columns=["id"])
    grown = done.totals["bytes_after"] - done.totals["bytes_before"]
    assert (found.files, found.sampled_files) == (60, 12)
    assert found.bytes == done.totals["bytes_before"]
    assert abs(found.bytes_added - grown) <= found.margin * found.bytes_added <= 0.5 * grown
    assert found.share_added == pytest.approx(found.bytes_added / found.bytes, abs=1e-6)
    assert done.estimate is None


def test_all_files_give_the_exact_growth(tmp_path: Path) -> None:
    lake(tmp_path, 5)
    found = estimate_of(tmp_path)
    done = sb.add_bloom_filters(tmp_path, columns=["id"])
    assert found.bytes_added == done.totals["bytes_after"] - done.totals["bytes_before"]
    assert (found.margin, found.sampled_files) == (0.0, 5)
    assert 0 < found.cpu_hours < 0.01
    assert list(found.hours) == ["1", "8", "64", "512"]
    assert found.hours["1"] >= found.hours["512"] > 0


def test_of_many_files_some_are_planned(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "0.parquet")
    for number in range(1, 1_200):
        os.link(tmp_path / "0.parquet", tmp_path / f"{number}.parquet")
    found = estimate_of(tmp_path)
    assert (found.files, found.sampled_files) == (1_200, 128)
    again = estimate_of(tmp_path)
    assert again.bytes_added == found.bytes_added


def test_a_dry_run_plans_each_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs no more than the run, and its own CPU time is the estimate's."""
    planned: list[str] = []
    plan = Rewriter.plan

    def counted(self: Rewriter, file: InputFile, *rest: Any) -> Any:
        planned.append(file.path)
        return plan(self, file, *rest)

    monkeypatch.setattr(Rewriter, "plan", counted)
    found = estimate_of(lake(tmp_path, 4), jobs=1)
    assert sorted(planned) == sorted(map(str, tmp_path.iterdir()))
    assert found.cpu_hours > 0


def test_a_sample_is_for_a_dry_run(tmp_path: Path) -> None:
    lake(tmp_path, 1)
    with pytest.raises(PolicyError, match="sample is for a dry run"):
        sb.add_bloom_filters(tmp_path, columns=["id"], sample=3)


@pytest.mark.parametrize(
    ("size", "requests"), [(2**20, 5), (2**30, 8 + 2 * 28 + 4 + 2)], ids=["1 MiB", "1 GiB"]
)
def test_requests_are_those_that_the_benchmark_of_objects_counts(size: int, requests: int) -> None:
    """5.03 for an object of 1 MiB, 64 for one of 1 GiB with filters in 28 chunks."""
    filters = (FilterReport(row_group=0, column="a", source="pages", action="added"),) * 28
    report = FileAddReport(
        path="a",
        status="added",
        seconds=1.0,
        bytes_before=size,
        bytes_after=size + 14_700_584,
        filters=filters,
    )
    target = SampledTarget(target=FilesTarget(paths=[]))
    target.every = target.chosen = ["a"]
    found = estimated(target, [report], 1.0, sizes={"a": size})
    assert found is not None
    assert found.requests == requests
    # Reading a log and committing is the work of one process: 70 microseconds a file.
    assert found.hours["512"] * 3600 == pytest.approx(found.cpu_hours * 3600 / 512, rel=0.1)
