"""What a footer says about record keys, in all its forms."""

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
