"""A filter skips a row group, or the explanation says why it did not, or was not asked."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.reading.pruning.plan import Note
from testing.surgery import filter_place, flip
from testing.tables import KEYRING, Mode, write

TABLE = pa.table(
    {
        "n": [i * 7 for i in range(3000)],
        "other": list(range(3000)),
        "flag": [i % 2 == 0 for i in range(3000)],
        "half": pa.array([i / 2 for i in range(3000)], pa.float32()),
    }
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pq.write_table(TABLE, tmp_path / "x.parquet", use_dictionary=False)
    columns = {"n": sb.BloomFilterOptions(fpp=0.001), "half": sb.BloomFilterOptions()}
    assert not sb.add_bloom_filters(tmp_path / "x.parquet", columns=columns).failed
    return tmp_path / "x.parquet"


def notes_of(path: Path, where: str) -> list[Note]:
    (file,) = sb.explain(path, where=where).files
    return [it for group in file.row_groups for it in group.notes if it.step == "Bloom filter"]


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("n > 7", "no lookup"),
        ("other = 5", "no filter"),
        ("flag = true", "never a filter"),
        ("n = 8 or other > 5", "other parts"),
        ("n = 14", "filter: maybe"),
    ],
)
def test_why_a_filter_skips_nothing_is_told(path: Path, where: str, reason: str) -> None:
    assert reason in {note.reason for note in notes_of(path, where)}


def test_the_chance_of_a_list_is_that_of_all_its_values(path: Path) -> None:
    (one,), (ten,) = notes_of(path, "n = 14"), notes_of(path, f"n in {tuple(range(7, 77, 7))}")
    assert one.chance == one.fpp == ten.fpp
    assert ten.fpp is not None
    assert ten.chance == pytest.approx(1 - (1 - ten.fpp) ** 10)
    assert ten.text.endswith("% for 10 values together")


def test_all_parts_of_an_or_must_be_ruled_out(path: Path) -> None:
    assert sb.explain(path, where="n = 8 or half = 0.3").skipped == {"Bloom filter": 1}
    assert sb.explain(path, where="n = 8 or half = 0.5").skipped == {}


def test_a_filter_that_fails_its_tag_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", TABLE, Mode.ENCRYPTED, column_keys={"k_pii": ["n"]})
    assert not sb.add_bloom_filters(path, columns=["n"], keys=KEYRING).failed
    flip(path, filter_place(path, 0, "n").stop - 100)
    with pytest.raises(sb.IntegrityError, match="row group 0, column n"):
        sb.read_table(path, where="n = 8", keys=KEYRING)
