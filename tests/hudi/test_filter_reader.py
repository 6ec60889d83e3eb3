"""What footers say of record keys: files of Hudi's own, and damaged ones."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

import secure_bloom as sb
from secure_bloom import hudi
from secure_bloom.errors import FormatError, IntegrityError, KeyUnavailableError
from secure_bloom.hudi.filter_reader import show
from secure_bloom.hudi.record_keys.footer_entry import FILTER_TYPES
from tests.hudi.files import base_file, base_table
from tests.hudi.vectors import SHARED, cases
from tests.project import NO_VECTORS
from tests.surgery import flip
from tests.tables import KEYRING, Mode, write

NEEDS_SHARED = pytest.mark.skipif(not (SHARED / "hudi_real.json").exists(), reason=NO_VECTORS)
FILTER, TYPE = "org.apache.hudi.bloomfilter", "hoodie_bloom_filter_type_code"
MIN, MAX = "hoodie_min_record_key", "hoodie_max_record_key"


def with_pairs(path: Path, pairs: dict[str, str]) -> Path:
    return write(path, base_table(["a", "b"]).replace_schema_metadata(pairs))


def small(text: str = "a") -> str:
    made = hudi.SimpleBloomFilter(10, 0.01)
    made.insert(text)
    return made.serialize()


@NEEDS_SHARED
def test_files_of_released_hudi_versions_are_made_again_bit_for_bit() -> None:
    for case in cases("hudi_real.json", SHARED):
        kind: Any = FILTER_TYPES[case["hoodie_bloom_filter_type_code"]]
        made = kind(60_000, 1e-9, 100_000)
        made.insert_many(case["keys"])
        digest = hashlib.sha256(made.serialize().encode()).hexdigest()
        assert digest == case["text_sha256"], case["file"]
        assert made.to_bytes().hex().startswith(case["header"])


@NEEDS_SHARED
def test_a_file_in_a_table_of_hudi_is_read() -> None:
    (case,) = (case for case in cases("hudi_real.json", SHARED) if case.get("here"))
    path = SHARED / "hudi_parquet" / Path(case["file"]).name
    stored = hudi.read_record_key_filter(path)
    assert stored is not None
    assert stored.filter is not None
    assert (stored.min_key, stored.max_key) == (case[MIN], case[MAX])
    assert all(map(stored.filter.check, case["keys"]))
    (file,) = sb.inspect(path).files
    assert file.hudi is not None
    assert (file.hudi.type, file.hudi.bytes, file.hudi.rows) == ("DYNAMIC_V0", 323_496, 1)


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


def test_an_encrypted_footer_hides_it_and_a_signed_one_is_checked(tmp_path: Path) -> None:
    for mode in (Mode.ENCRYPTED, Mode.SIGNED):
        path = base_file(tmp_path / f"{mode.name}.parquet", ["a", "b"], mode)
        hudi.add_record_key_filter(path, keys=KEYRING)
    with pytest.raises(KeyUnavailableError):
        hudi.read_record_key_filter(tmp_path / "ENCRYPTED.parquet")
    signed = tmp_path / "SIGNED.parquet"
    assert hudi.read_record_key_filter(signed) is not None
    flip(signed, signed.read_bytes().index(b"hoodie_min_record_key") + 30)
    with pytest.raises((IntegrityError, FormatError)):
        hudi.read_record_key_filter(signed, keys=KEYRING)


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
