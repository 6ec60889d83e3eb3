"""What footers say of record keys: files of Hudi's own, and damaged ones."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

import secure_bloom as sb
from secure_bloom import hudi
from secure_bloom.errors import FormatError, IntegrityError, KeyUnavailableError
from secure_bloom.hudi.record_keys.footer_entry import FILTER_TYPES
from testing.hudi_files import base_file
from testing.project import NO_VECTORS
from testing.surgery import flip
from testing.tables import KEYRING, Mode
from tests.hudi.vectors import SHARED, cases

NEEDS_SHARED = pytest.mark.skipif(not (SHARED / "hudi_real.json").exists(), reason=NO_VECTORS)
MIN, MAX = "hoodie_min_record_key", "hoodie_max_record_key"


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


def test_an_encrypted_footer_hides_it_and_a_signed_one_is_checked(tmp_path: Path) -> None:
    for mode in (Mode.ENCRYPTED, Mode.SIGNED):
        path = base_file(tmp_path / f"{mode.name}.parquet", ["a", "b"], mode)
        hudi.add_record_key_filter(path, keys=KEYRING, allow_clear_entry=True)
    with pytest.raises(KeyUnavailableError):
        hudi.read_record_key_filter(tmp_path / "ENCRYPTED.parquet")
    signed = tmp_path / "SIGNED.parquet"
    assert hudi.read_record_key_filter(signed) is not None
    flip(signed, signed.read_bytes().index(b"hoodie_min_record_key") + 30)
    with pytest.raises((IntegrityError, FormatError)):
        hudi.read_record_key_filter(signed, keys=KEYRING)
