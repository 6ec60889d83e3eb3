"""Key material beside a file: at every moment it opens the data that stands there."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom import hudi, paimon
from secure_bloom.parquet.key_material_files import key_material_name
from secure_bloom.storage.staged_file import StagedFile, temporary_name
from testing.storage import end_before
from tests.rekeying.lake import KEYS, policy


def test_a_crash_before_the_data_leaves_a_file_that_opens_at_the_target_too(
    file: Path, outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    sb.reencrypt(file, policy=outside, keys=KEYS, output=out)
    before = (out / "x.parquet").read_bytes()

    end_before(monkeypatch, "x.parquet")
    with pytest.raises(KeyboardInterrupt):
        sb.reencrypt(file, policy=outside, keys=KEYS, output=out)
    monkeypatch.undo()
    assert (out / "x.parquet").read_bytes() == before
    assert sb.read_table(out / "x.parquet", keys=KEYS).num_rows == 50
    sb.reencrypt(file, policy=outside, keys=KEYS, output=out)
    assert len(json.loads((out / key_material_name("x.parquet")).read_text())) == 2


def test_material_that_a_killed_run_left_goes_with_the_next_run(file: Path, outside: Path) -> None:
    sb.reencrypt(file, policy=outside, keys=KEYS)
    material = file.parent / key_material_name(file.name)
    whole = json.loads(material.read_text())
    material.write_text(json.dumps({"old": next(iter(whole.values())), **whole}))
    dry = sb.reencrypt(file, policy=outside, keys=KEYS, dry_run=True)
    assert "old" in json.loads(material.read_text())
    assert dry.files[0].status == "unchanged"
    assert sb.reencrypt(file, policy=outside, keys=KEYS).files[0].status == "unchanged"
    assert json.loads(material.read_text()) == whole
    assert sb.read_table(file, keys=KEYS).num_rows == 50


def test_a_write_that_fails_leaves_no_key_material(
    file: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, publish = file.read_bytes(), StagedFile.publish

    def full(staged: StagedFile, over: tuple[object, ...] | None = None) -> None:
        if staged.name == file.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        publish(staged, over)

    monkeypatch.setattr(StagedFile, "publish", full)
    report = sb.reencrypt(file, policy=outside, keys=KEYS)
    assert report.failed
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_a_hidden_file_of_a_killed_run_beside_key_material_goes(file: Path, outside: Path) -> None:
    sb.reencrypt(file, policy=outside, keys=KEYS)
    out = file.parent.parent / "out"
    left = out / temporary_name(key_material_name(file.name))
    for _ in range(2):
        sb.add_bloom_filters(file, columns=["email"], keys=KEYS, output=out)
        assert not left.exists()
        left.write_bytes(b"{}")


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
    stays = "stays unchanged, and shows values in clear: remove it, or build it anew"
    assert report.notes == (
        f"{file}: the old content stays under 1 other name (hard link)",
        f"{file}: x.parquet.index {stays}",
    )
    assert sb.reencrypt(file, policy=signed, keys=KEYS).notes == ()
