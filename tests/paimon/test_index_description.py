"""What an index shows to anyone who can read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom import paimon
from secure_bloom.paimon import FileIndex, Index


def test_show_describes_what_anyone_can_see(lake: Path) -> None:
    report = paimon.show(lake)
    assert report.without == (str(lake / "2.parquet"),)
    first = report.indexes[0]
    assert first.path == str(lake / "0.parquet.index")
    assert first.bytes == (lake / "0.parquet.index").stat().st_size
    told = {each.column: each for each in first.indexes}
    assert (told["id"].type, told["id"].hash_functions) == ("bloom-filter", 20)
    assert told["id"].values == pytest.approx(100, abs=3)
    assert told["name"].values == pytest.approx(100, abs=3)


def test_show_describes_foreign_empty_and_damaged_indexes(lake: Path) -> None:
    index = FileIndex().with_indexes(
        [
            ("a", Index(type="future", body=b"abc")),
            ("b", Index(type="bloom-filter", body=None)),
            ("c", Index(type="bloom-filter", body=b"")),
        ]
    )
    (lake / "0.parquet.index").write_bytes(index.to_bytes())
    (lake / "1.parquet.index").write_bytes(b"")
    damaged = paimon.show(lake).failed
    assert [Path(each.path).name for each in damaged] == ["1.parquet.index"]
    told = [(each.type, each.bytes, each.note) for each in paimon.show(lake).indexes[0].indexes]
    assert told[0] == ("future", 3, None)
    assert told[1][:2] == ("bloom-filter", 0)
    assert "no value" in str(told[1][2])
    assert "-4 bytes" in str(told[2][2])
