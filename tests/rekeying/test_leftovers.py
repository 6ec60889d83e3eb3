"""What still shows the old content of a file is taken out, or told."""

from __future__ import annotations

import os
from pathlib import Path

import secure_bloom as sb
from secure_bloom import hudi, paimon
from tests.rekeying.lake import KEYS, policy


def test_record_keys_of_hudi_go_where_anyone_could_read_them(file: Path, signed: Path) -> None:
    hudi.add_record_key_filter(file, column="email")
    assert b"hoodie_min_record_key" in file.read_bytes()
    assert not sb.reencrypt(file, policy=signed, keys=KEYS).failed
    assert hudi.read_record_key_filter(file, keys=KEYS) is None
    assert b"user0@example.com" not in file.read_bytes()
    assert sb.audit(file, policy=signed, keys=KEYS).findings == ()


def test_record_keys_of_hudi_stay_where_they_show_nothing(file: Path, tmp_path: Path) -> None:
    hudi.add_record_key_filter(file, column="city")
    for mode, column in (("encrypted", "city"), ("plaintext", "email")):
        (tmp_path / "p.toml").write_text(policy(mode=mode, columns={column: "k_pii"}))
        assert not sb.reencrypt(file, policy=tmp_path / "p.toml", keys=KEYS).failed
        entry = hudi.read_record_key_filter(file, keys=KEYS)
        assert entry is not None
        assert entry.min_key == "lyon"


def test_what_still_shows_the_old_content_is_told(file: Path, signed: Path) -> None:
    paimon.build_index(file, ["email"])
    os.link(file, file.parent.parent / "other.parquet")
    report = sb.reencrypt(file, policy=signed, keys=KEYS)
    stays = "stays as it was, and shows values in clear: remove it, or build it anew"
    assert report.notes == (
        f"{file}: the old content stays behind 1 other name (hard link)",
        f"{file}: x.parquet.index {stays}",
    )
    assert sb.reencrypt(file, policy=signed, keys=KEYS).notes == ()
