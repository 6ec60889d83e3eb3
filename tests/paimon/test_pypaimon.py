"""Paimon's Python library reads the tables, and its snapshots follow the committed ones."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pypaimon_rust")

import secure_bloom as sb
from testing.paimon_tables import Warehouse, latest
from testing.pypaimon_judge import LIBRARY, MISSING, pypaimon

# `make test-all` installs it.
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not LIBRARY.is_dir(), reason=MISSING)]
OPTIONS = {"id": sb.paimon.IndexOptions(items=100, fpp=1e-6)}


@pytest.mark.parametrize("threshold", ["0 b", "1 kb"])
def test_rows_are_the_same_and_its_snapshot_follows(tmp_path: Path, threshold: str) -> None:
    lake = Warehouse(path=str(tmp_path))
    folder = lake.create("id bigint, name string", file_index__in_manifest_threshold=threshold)
    lake.insert([(1, "a"), (100, "b")])
    lake.insert([(2, "c"), (101, "d")])
    rows = pypaimon(lake.path, "read")
    sb.paimon.build_index(folder, OPTIONS)
    assert pypaimon(lake.path, "read") == rows == lake.rows()
    assert pypaimon(lake.path, "read", "id", 100) == [{"id": 100, "name": "b"}]
    assert pypaimon(lake.path, "read", "id", 57) == []
    pypaimon(lake.path, "insert", 7, "z")
    assert latest(folder)["id"] == 4
    # Its snapshot has sizes of manifest lists, which the next one must have too.
    report = sb.paimon.build_index(folder, OPTIONS)
    assert sorted(file.status for file in report.files) == ["built", "unchanged", "unchanged"]
    assert pypaimon(lake.path, "read") == lake.rows()
    assert len(lake.rows()) == 5
    assert latest(folder)["deltaManifestListSize"] > 0
    # A stream sees each row once.
    lake.insert([(9, "late")])
    assert [row["id"] for row in sorted(pypaimon(lake.path, "stream"), key=lambda r: r["id"])] == [
        1,
        2,
        7,
        9,
        100,
        101,
    ]
