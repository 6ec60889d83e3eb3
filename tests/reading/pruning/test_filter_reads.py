"""Filters of a file are read together, and only where they can change the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.reading.pruning import filter_reads
from secure_bloom.reading.pruning.filter_reads import joined_extents
from secure_bloom.reading.table.coalesced_reads import read_extents
from testing.tables import Mode, write


@pytest.mark.parametrize("has_extension", [False])
def test_filters_are_read_in_one_request_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"x": [f"{i * 7919 % 5000:05}" for i in range(5000)]})
    path = write(tmp_path / "x.parquet", rows, Mode.PLAIN, row_group_size=500)
    sb.add_bloom_filters(path, columns=["x"])
    requests = []
    read = read_extents

    def counted(file: Any, extents: Any) -> Any:
        before = file.requests
        found = read(file, extents)
        requests.append((len(extents), file.requests - before))
        return found

    monkeypatch.setattr(filter_reads, "read_extents", counted)
    assert sb.read_table(path, where="x = '00042'").num_rows == 1
    assert requests == [(10, 1)]
    # A filter that could not change the answer is not read at all.
    requests.clear()
    assert sb.read_table(path, where="x = '00042' or x > '00041'").num_rows == 4958
    assert requests == []


def test_extents_outside_of_the_file_are_not_joined() -> None:
    for start, end in [
        (-1, 9), (0, 0), (5, 4), (1000, 1001), (999, 1001), (2**62, 2**62 + 10),
        (10, -(2**63)), (2**63 - 1, -2), (-(2**63), 1), (5, 2**63 - 1),
    ]:  # fmt: skip
        assert joined_extents([(start, end)], 1000, 10, 1000) is None
        assert joined_extents([(0, 3), (start, end)], 1000, 10, 1000) is None
    assert joined_extents([(20, 30), (0, 10)], 1000, 10, 1000) is None
    assert joined_extents([(0, 10), (9, 30)], 1000, 10, 1000) is None


def test_extents_are_joined_over_small_gaps() -> None:
    extents = [(0, 10), (10, 20), (30, 40), (51, 60), (60, 161)]
    assert joined_extents(extents, 1000, 10, 100) == [
        (0, 40, 0, 3), (51, 60, 3, 4), (60, 161, 4, 5),
    ]  # fmt: skip
    assert joined_extents([], 1000, 10, 100) == []
