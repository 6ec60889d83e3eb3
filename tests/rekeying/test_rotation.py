"""Master keys change: the old one opens nothing any more, and no byte of data has moved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.errors import FileChangedError
from secure_bloom.rekeying.rekey_report import RekeyedFile
from secure_bloom.rekeying.rotation import Rotation
from tests.rekeying.lake import KEYS, policy, rows, write_lake


class CountingKms:
    """A keyring that tells how often it was asked; ``lost`` keys are gone."""

    def __init__(self, lost: str | None = None) -> None:
        self.calls: list[str] = []
        self._lost = lost

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        self.calls.append("wrap")
        return KEYS.wrap_key(key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        self.calls.append("unwrap")
        if master_key_identifier == self._lost:
            raise PermissionError
        return KEYS.unwrap_key(wrapped_key, master_key_identifier)


_MODES = {
    "encrypted": policy(),
    "signed": policy(mode="plaintext"),
    "single": policy(encryption="double_wrapping = false"),
    "outside": policy(encryption='key_material = "external"'),
}


@pytest.fixture(params=list(_MODES))
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    files = write_lake(tmp_path / "plain")
    (tmp_path / "old.toml").write_text(_MODES[request.param])
    (tmp_path / "new.toml").write_text(_MODES[request.param].replace("k_pii", "k_new"))
    sb.reencrypt(files, policy=tmp_path / "old.toml", keys=KEYS, output=tmp_path / "table")
    return tmp_path / "table"


def test_files_come_to_the_keys_that_the_policy_names_now(table: Path) -> None:
    policy_path = table.parent / "new.toml"
    before = {path: path.read_bytes() for path in table.glob("*.parquet")}
    report = sb.rotate_keys(str(table), policy=policy_path, keys=KEYS)
    assert {file.status for file in report.files} == {"rotated"}, report.failed
    assert {file.master_keys_before for file in report.files} == {("k_footer", "k_pii")}
    assert {file.master_keys for file in report.files} == {("k_footer", "k_new")}
    retired = CountingKms(lost="k_pii")
    for path, old in before.items():
        assert sb.read_table(path, keys=retired) == rows()
        # All but the footer is as it was, byte for byte.
        data = len(old) - 8 - int.from_bytes(old[-8:-4], "little")
        assert path.read_bytes()[:data] == old[:data]
    again = sb.rotate_keys(str(table), policy=policy_path, keys=KEYS)
    assert {file.status for file in again.files} == {"unchanged"}


def test_named_keys_move_and_all_others_stay(table: Path) -> None:
    moves = {"k_footer": "k_new"}
    report = sb.rotate_keys(str(table), policy=table.parent / "old.toml", moves=moves, keys=KEYS)
    assert {file.master_keys for file in report.files} == {("k_new", "k_pii")}
    used = sb.keys_used(str(table), keys=KEYS)
    assert used.files_by_key == {("k_new", None): 4, ("k_pii", None): 4}
    assert all(sb.read_table(path, keys=KEYS) == rows() for path in table.glob("*.parquet"))


def test_keys_are_used_as_found_without_any_key(table: Path) -> None:
    used = sb.keys_used(str(table))
    assert ("k_footer", None) in used.files_by_key
    document = json.loads(json.dumps(used.to_dict()))
    assert {key["master_key"] for key in document["keys"]} <= {"k_footer", "k_pii"}


def test_a_dry_run_writes_nothing(table: Path) -> None:
    before = {path: path.read_bytes() for path in table.iterdir()}
    report = sb.rotate_keys(str(table), policy=table.parent / "new.toml", keys=KEYS, dry_run=True)
    assert {file.status for file in report.files} == {"rotated"}
    assert {path: path.read_bytes() for path in table.iterdir()} == before


def test_a_kek_is_renewed_once_a_run(tmp_path: Path) -> None:
    files = write_lake(tmp_path / "plain")
    (tmp_path / "old.toml").write_text(policy())
    (tmp_path / "new.toml").write_text(
        policy(columns={"email": "k_new", "s": "k_new"}, more="[keys.k_pii]")
    )
    sb.reencrypt(files, policy=tmp_path / "old.toml", keys=KEYS, output=tmp_path / "table")
    kms = CountingKms()
    sb.rotate_keys(str(tmp_path / "table"), policy=tmp_path / "new.toml", keys=kms)
    # The footer's KEK is unwrapped to open the footers, the columns' to move it.
    assert sorted(kms.calls) == ["unwrap", "unwrap", "wrap"]


def test_what_is_encrypted_otherwise_is_refused(tmp_path: Path) -> None:
    files = write_lake(tmp_path / "plain")
    (tmp_path / "p.toml").write_text(policy())
    (tmp_path / "signed.toml").write_text(policy(mode="plaintext"))
    plain = sb.rotate_keys(files, policy=tmp_path / "p.toml", keys=KEYS)
    assert all("not encrypted" in str(file.error) for file in plain.files)
    sb.reencrypt(files, policy=tmp_path / "p.toml", keys=KEYS)
    other = sb.rotate_keys(files, policy=tmp_path / "signed.toml", keys=KEYS)
    assert all("reencrypt" in str(file.hint) for file in other.files)


def test_a_key_that_the_kms_does_not_have_stops_the_run(tmp_path: Path) -> None:
    files = write_lake(tmp_path / "plain")
    (tmp_path / "p.toml").write_text(policy())
    with pytest.raises(sb.PolicyError, match="k_nowhere"):
        sb.rotate_keys(files, policy=tmp_path / "p.toml", moves={"k_pii": "k_nowhere"}, keys=KEYS)


def test_a_kms_that_goes_away_leaves_what_is_done_and_a_second_run_finishes(
    tmp_path: Path,
) -> None:
    files = write_lake(tmp_path / "plain")
    single = "double_wrapping = false"
    (tmp_path / "old.toml").write_text(policy(encryption=single))
    (tmp_path / "new.toml").write_text(
        policy(encryption=single, columns={"email": "k_new", "s": "k_new"}, more="[keys.k_pii]")
    )
    sb.reencrypt(files, policy=tmp_path / "old.toml", keys=KEYS)

    class Tiring(CountingKms):
        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
            if self.calls.count("wrap") >= 5:
                raise ConnectionError
            return super().wrap_key(key_bytes, master_key_identifier)

    report = sb.rotate_keys(files, policy=tmp_path / "new.toml", keys=Tiring())
    assert {"rotated", "failed"} <= {file.status for file in report.files}
    assert all(sb.read_table(path, keys=KEYS) == rows() for path in files)
    finished = sb.rotate_keys(files, policy=tmp_path / "new.toml", keys=KEYS)
    assert {file.status for file in finished.files} == {"rotated", "unchanged"}


@pytest.mark.parametrize("table", ["encrypted"], indirect=True)
def test_a_file_that_another_writer_replaced_is_tried_once_more(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine, lost = Rotation._rotate, set()

    def losing(self: Rotation, path: str, target: str | None) -> RekeyedFile:
        if path not in lost:
            lost.add(path)
            raise FileChangedError("the file was changed after it was read")
        return genuine(self, path, target)

    monkeypatch.setattr(Rotation, "_rotate", losing)
    report = sb.rotate_keys(str(table), policy=table.parent / "new.toml", keys=KEYS)
    assert {file.status for file in report.files} == {"rotated"}
    assert len(lost) == len(report.files)
