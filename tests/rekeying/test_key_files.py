"""Key material beside a file: at every moment it opens the data that stands there."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom import hudi, paimon
from secure_bloom.parquet.key_material_files import key_material_name
from secure_bloom.storage.staged_file import StagedFile, temporary_name
from testing.storage import end_before
from testing.tables import customers
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


OUTSIDE = 'key_material = "external"'
BOTH = {"email": "k_pii", "id": "k_pii"}
FIRST = "v1:"


class Renewing:
    """A KMS at version 2 that renews keys itself; it tells what it gave out and renewed."""

    def __init__(self, newest: str = "v2:") -> None:
        self.newest = newest
        self.given_out: list[str] = []
        self.renewed: list[str] = []

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return self.newest + KEYS.wrap_key(key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        self.given_out.append(master_key_identifier)
        return KEYS.unwrap_key(wrapped_key[len(FIRST) :], master_key_identifier)

    def rewrap_key(self, wrapped_key: str, master_key_identifier: str) -> str:
        self.renewed.append(wrapped_key)
        return self.newest + wrapped_key[len(FIRST) :]

    def key_version(self, wrapped_key: str) -> str:
        return wrapped_key[: len(FIRST)]


def written(folder: Path, text: str) -> Path:
    """A file under the policy's ``text``, its keys wrapped by version 1."""
    path, wanted = folder / "x.parquet", folder / "old.toml"
    pq.write_table(customers(50), path)
    wanted.write_text(text)
    assert not sb.reencrypt(path, policy=wanted, keys=Renewing(FIRST)).failed
    return path


def rotated(path: Path, text: str, kms: Renewing, moves: Mapping[str, str] | None = None) -> str:
    new = path.parent / "new.toml"
    new.write_text(text)
    report = sb.rotate_keys(path, policy=new, keys=kms, moves=moves)
    assert not report.failed
    # Whatever was opened for it: the old wrappings are gone, and the rows are there.
    assert FIRST not in material(path).read_text() or moves
    assert sb.read_table(path, keys=Renewing()).num_rows == 50
    return report.files[0].status


def material(path: Path) -> Path:
    return path.with_name(f"_KEY_MATERIAL_FOR_{path.name}.json")


@pytest.mark.parametrize("mode", ["encrypted", "plaintext"])
def test_nothing_is_given_out_where_names_stay(tmp_path: Path, mode: str) -> None:
    text = policy(columns=BOTH, mode=mode, encryption=OUTSIDE)
    path, kms = written(tmp_path, text), Renewing()
    before = path.read_bytes()
    sidecars = [it.with_name(f".{it.name}.crc") for it in (path, material(path))]
    for sidecar in sidecars:
        sidecar.write_bytes(b"of what stands there")
    assert rotated(path, text, kms) == "rotated"
    assert rotated(path, text, kms) == "unchanged"
    assert (kms.given_out, path.read_bytes()) == ([], before)
    # Of the two files one has changed, and Spark would not read it with the checksums of the old.
    assert [it.exists() for it in sidecars] == [True, False]


def test_several_keys_of_columns_are_told_apart_by_the_footer(tmp_path: Path) -> None:
    keys = {"email": "k_pii", "id": "k_new"}
    for mode, opened in (("plaintext", []), ("encrypted", ["k_footer"])):
        folder = tmp_path / mode
        folder.mkdir()
        text, kms = policy(columns=keys, mode=mode, encryption=OUTSIDE), Renewing()
        assert rotated(written(folder, text), text, kms) == "rotated"
        assert kms.given_out == opened


@pytest.mark.parametrize("mode", ["encrypted", "plaintext"])
def test_a_key_goes_to_another_name_only_once_the_footer_is_verified(
    tmp_path: Path, mode: str
) -> None:
    old, new = (
        policy(columns=dict.fromkeys(BOTH, key), mode=mode, encryption=OUTSIDE, more="[keys.k_pii]")
        for key in ("k_pii", "k_new")
    )
    path, kms = written(tmp_path, old), Renewing()
    assert rotated(path, new, kms) == "rotated"
    assert "k_footer" in kms.given_out
    used = sb.keys_used(path, keys=kms).files_by_key
    assert {name for name, _ in used} == {"k_footer", "k_new"}


def test_moves_by_name_leave_the_footer_closed(tmp_path: Path) -> None:
    text = policy(columns=BOTH, encryption=OUTSIDE)
    path, kms = written(tmp_path, text), Renewing()
    assert rotated(path, text, kms, {"k_pii": "k_new"}) == "rotated"
    assert "k_footer" not in kms.given_out


def test_what_the_policy_says_otherwise_is_seen_in_a_footer_in_clear(tmp_path: Path) -> None:
    path = written(tmp_path, policy(columns=BOTH, mode="plaintext", encryption=OUTSIDE))
    new = tmp_path / "new.toml"
    new.write_text(policy(columns={"email": "k_pii"}, mode="plaintext", encryption=OUTSIDE))
    [failed] = sb.rotate_keys(path, policy=new, keys=Renewing()).failed
    assert "column id is in clear, but it is under a key of its own" in str(failed.error)


def test_keys_that_nothing_refers_to_go(tmp_path: Path) -> None:
    text = policy(columns=BOTH, mode="plaintext", encryption=OUTSIDE)
    path = written(tmp_path, text)
    content = json.loads(material(path).read_text())
    content["old"] = next(iter(content.values())).replace("k_pii", "k_lost")
    material(path).write_text(json.dumps(content))
    assert rotated(path, text, Renewing()) == "rotated"
    assert "old" not in json.loads(material(path).read_text())
