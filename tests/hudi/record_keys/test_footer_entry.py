"""What a footer says about record keys, in all its forms."""

from __future__ import annotations

from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom import hudi
from tests.hudi.record_keys.test_description import FILTER, TYPE, small, with_pairs
from tests.hudi.test_filter_reader import MAX, MIN


def test_a_file_that_says_nothing_has_no_filter(tmp_path: Path) -> None:
    path = with_pairs(tmp_path / "x.parquet", {"other": "pair"})
    assert hudi.read_record_key_filter(path) is None
    assert sb.inspect(path).to_dict()["files"][0]["hudi"] is None


@pytest.mark.parametrize(
    ("pairs", "type_code", "ends"),
    [
        ({"com.uber.hoodie.bloomfilter": small()}, "SIMPLE", (None, None)),
        ({FILTER: small(), TYPE: "simple"}, "SIMPLE", (None, None)),
        ({FILTER: small(), "com.uber.hoodie.bloomfilter": "junk"}, "SIMPLE", (None, None)),
        ({MIN: "a", MAX: "b"}, None, ("a", "b")),
        ({FILTER: small(), MIN: "a"}, "SIMPLE", (None, None)),
    ],
    ids=["older name", "type in small letters", "both names", "range alone", "half a range"],
)
def test_forms_of_the_entry(
    tmp_path: Path,
    pairs: dict[str, str],
    type_code: str | None,
    ends: tuple[str | None, str | None],
) -> None:
    stored = hudi.read_record_key_filter(with_pairs(tmp_path / "x.parquet", pairs))
    assert stored is not None
    assert (stored.type_code, stored.min_key, stored.max_key) == (type_code, *ends)
