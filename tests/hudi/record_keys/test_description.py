"""What is told of a footer's filter to anyone."""

from __future__ import annotations

from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom import hudi
from secure_bloom.hudi.filter_reader import show
from testing.hudi_files import base_table
from testing.tables import write
from tests.hudi.test_filter_reader import MAX, MIN

FILTER, TYPE = "org.apache.hudi.bloomfilter", "hoodie_bloom_filter_type_code"


def with_pairs(path: Path, pairs: dict[str, str]) -> Path:
    return write(path, base_table(["a", "b"]).replace_schema_metadata(pairs))


def small(text: str = "a") -> str:
    made = hudi.SimpleBloomFilter(10, 0.01)
    made.insert(text)
    return made.serialize()


@pytest.mark.parametrize("pairs", [{FILTER: "AAAA"}, {FILTER: small(), TYPE: "CUCKOO"}], ids=str)
def test_a_filter_that_cannot_be_read_is_an_error_and_a_note(
    tmp_path: Path, pairs: dict[str, str]
) -> None:
    path = with_pairs(tmp_path / "x.parquet", {**pairs, MIN: "a", MAX: "b"})
    with pytest.raises(sb.SecureBloomError, match=r"x\.parquet: "):
        hudi.read_record_key_filter(path)
    (file,) = sb.inspect(path).files
    assert file.hudi is not None
    assert file.hudi.note
    assert (file.hudi.type, file.hudi.range, file.error) == (None, True, None)


def test_keys_of_a_range_are_shown_only_on_request(tmp_path: Path) -> None:
    path = with_pairs(tmp_path / "x.parquet", {FILTER: small(), MIN: "secret-a", MAX: "secret-b"})
    report = show(path)
    assert "secret" not in repr(report) + str(report.to_dict()) + str(sb.inspect(path).to_dict())
    assert "secret" not in repr(hudi.read_record_key_filter(path))
    (file,) = report.with_ranges()["files"]
    assert (file["min_key"], file["max_key"], file["hudi"]["range"]) == (
        "secret-a",
        "secret-b",
        True,
    )
