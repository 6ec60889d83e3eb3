"""A row group is counted for the first step that rules it out; conditions count together."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.encryption.kms import Keyring
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, write

ROWS, GROUP = 90, 30


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Three row groups of plain values with filters, and a file without a row, in two folders."""
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        table = pa.table({"id": range(ROWS), "even": [2 * i for i in range(ROWS)]})
        path = tmp_path / f"day={day}" / "x.parquet"
        pq.write_table(table, path, row_group_size=GROUP, use_dictionary=False)
        options = sb.BloomFilterOptions(fpp=1e-6)
        assert not sb.add_bloom_filters(path, columns={"id": options, "even": options}).failed
    pq.write_table(table.slice(0, 0), tmp_path / "day=1" / "empty.parquet")
    return tmp_path


@pytest.mark.parametrize(
    ("where", "skipped"),
    [
        # The file without rows is that in every case, also where its folder would rule it out.
        ("day = 3", {"partition value": 6}),
        ("day = 1 and id = 1000", {"partition value": 3, "statistics": 3}),
        ("day = 1 and id = 40", {"partition value": 3, "statistics": 2}),
        # 41 is between the bounds of one row group, and no value.
        ("day = 1 and even = 41", {"partition value": 3, "statistics": 2, "Bloom filter": 1}),
        (
            "day = 1 and (even = 41 or id = 1000)",
            {"partition value": 3, "statistics": 2, "Bloom filter": 1},
        ),
        (
            "day = 1 and (even = 41 or id = 5)",
            {"partition value": 3, "statistics": 2},
        ),
        ("id >= 0", {}),
    ],
)
def test_the_first_step_that_rules_a_row_group_out_is_named(
    lake: Path, where: str, skipped: dict[str, int]
) -> None:
    found = {step: count for step, count in sb.explain(lake, where=where).skipped.items() if count}
    assert {step: count for step, count in found.items() if step != "no rows"} == skipped


def test_a_row_group_without_rows_is_skipped_for_that(lake: Path) -> None:
    path = lake / "day=1" / "empty.parquet"
    groups = pq.ParquetFile(path).metadata.num_row_groups
    assert sb.explain(path, where="id = 5").skipped == ({"no rows": groups} if groups else {})


def test_a_condition_whose_key_is_missing_rules_nothing_out_and_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(ROWS), Mode.ENCRYPTED, row_group_size=GROUP)
    few = Keyring(master_keys={"k_footer": MASTER_KEYS["k_footer"]})
    options = {"columns": ["id"], "keys": few, "without_filter_keys": True}
    report = sb.explain(path, where="email = 'nobody' and id < 0", **options)
    assert report.skipped == {"statistics": 3}
    report = sb.explain(path, where="email = 'nobody' and id >= 0", **options)
    assert (report.skipped, report.rows) == ({}, ROWS)
    notes = {note.text for group in report.files[0].row_groups for note in group.notes}
    assert "no key for column email: the condition is left out" in notes
    # With the key the same condition leaves no row group.
    assert sb.explain(path, where="email = 'nobody'", columns=["id"], keys=KEYRING).rows == 0
