"""Rotation at a real OpenBao: versions, rewrapping inside, throttling, a token that goes away."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.kms.vault.transit import VaultKmsClient
from secure_bloom.encryption.policy_tables import ColumnRule, EncryptionOptions
from testing.openbao import OpenBao
from testing.tables import customers

ROWS, FILES = 20, 6


@pytest.fixture
def keys(openbao: OpenBao, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Names of two new master keys, for the footer and a column."""
    monkeypatch.setenv("VAULT_TOKEN", openbao.root)
    number = len(openbao.key_names())
    return openbao.make_key(f"rotated_footer_{number}"), openbao.make_key(f"rotated_pii_{number}")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What our client asks of the server from now on: verb and key."""
    asked: list[tuple[str, str]] = []
    ask = VaultKmsClient._transit

    def counted(self: VaultKmsClient, verb: str, name: str, *texts: str) -> Any:
        asked.append((verb, name))
        return ask(self, verb, name, *texts)

    monkeypatch.setattr(VaultKmsClient, "_transit", counted)
    return asked


def policy(
    server: OpenBao,
    keys: tuple[str, str],
    *,
    twice: bool = True,
    mode: FooterMode = FooterMode.ENCRYPTED,
    inside: bool = True,
) -> sb.KeyPolicy:
    return sb.KeyPolicy(
        kms=server.table(retry_seconds=20),
        footer_key=keys[0],
        footer_mode=mode,
        columns={"email": ColumnRule(path="email", key=keys[1])},
        encryption=EncryptionOptions(double_wrapping=twice, internal_storage=inside),
    )


def lake(folder: Path, wanted: sb.KeyPolicy) -> Path:
    folder.mkdir()
    for number in range(FILES):
        pq.write_table(customers(ROWS, number), folder / f"{number}.parquet")
    assert not sb.reencrypt(folder, policy=wanted).failed
    return folder


def lake_of_runs(folder: Path, wanted: sb.KeyPolicy) -> Path:
    """Files that were written in a run each, so each has KEKs of its own."""
    folder.mkdir()
    for number in range(FILES):
        path = folder / f"{number}.parquet"
        pq.write_table(customers(ROWS, number), path)
        assert not sb.reencrypt(path, policy=wanted).failed
    return folder


def rotated(server: OpenBao, keys: tuple[str, str]) -> None:
    for key in keys:
        server.ask("POST", f"transit/keys/{key}/rotate", {})


def used(folder: Path) -> dict[tuple[str, str | None], int]:
    return dict(sb.keys_used(folder, keys=None).files_by_key)


def test_a_new_version_is_rewrapped_inside_and_the_columns_key_never_comes_here(
    openbao: OpenBao,
    keys: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    calls: list[tuple[str, str]],
) -> None:
    wanted = policy(openbao, keys)
    folder = lake(tmp_path / "t", wanted)
    assert sb.keys_used(folder, keys=wanted.kms_client()).files_by_key == {
        (key, "1"): FILES for key in keys
    }
    rotated(openbao, keys)
    footer, column = keys
    rights = {f"{verb}/{footer}": "update" for verb in ("decrypt", "encrypt")}
    rights |= {f"rewrap/{column}": "update"}
    monkeypatch.setenv("VAULT_TOKEN", openbao.token(openbao.allow(f"rotator-{column}", rights)))
    calls.clear()
    report = sb.rotate_keys(folder, policy=wanted)
    assert {file.status for file in report.files} == {"rotated"}, report.failed
    # The column's KEK is renewed inside.  The footer's is opened, and a new one of the run wrapped.
    assert sorted(calls) == sorted([("rewrap", column), ("unwrap", footer), ("wrap", footer)])
    again = sb.rotate_keys(folder, policy=wanted)
    assert {file.status for file in again.files} == {"unchanged"}
    assert sb.keys_used(folder).files_by_key == {(footer, "2"): FILES}
    monkeypatch.setenv("VAULT_TOKEN", openbao.root)
    assert sb.keys_used(folder, keys=wanted.kms_client()).files_by_key == {
        (key, "2"): FILES for key in keys
    }
    # Files that the old version wrapped could be destroyed now: nothing opens by it.
    for key in keys:
        openbao.ask("POST", f"transit/keys/{key}/config", {"min_decryption_version": 2})
    assert sb.read_table(folder, policy=wanted).num_rows == FILES * ROWS


def test_a_kek_of_its_own_for_each_file_is_asked_about_once(
    openbao: OpenBao, keys: tuple[str, str], tmp_path: Path, calls: list[tuple[str, str]]
) -> None:
    wanted = policy(openbao, keys)
    lake_of_runs(tmp_path / "t", wanted)
    rotated(openbao, keys)
    calls.clear()
    report = sb.rotate_keys(tmp_path, policy=wanted)
    assert {file.status for file in report.files} == {"rotated"}, report.failed
    footer, column = keys
    assert calls.count(("unwrap", footer)) == calls.count(("rewrap", column)) == FILES
    # Besides, in all: one new KEK that all footers share.
    assert len(calls) == 2 * FILES + 1
    assert sb.read_table(tmp_path, policy=wanted).num_rows == FILES * ROWS


def test_a_kek_that_columns_share_with_the_footer_is_asked_about_once(
    openbao: OpenBao, keys: tuple[str, str], tmp_path: Path, calls: list[tuple[str, str]]
) -> None:
    wanted = policy(openbao, (keys[1], keys[1]))
    folder = lake_of_runs(tmp_path / "t", wanted)
    rotated(openbao, keys)
    calls.clear()
    report = sb.rotate_keys(folder, policy=wanted)
    assert {file.status for file in report.files} == {"rotated"}, report.failed
    # Given out to open the footer: all that it wraps comes under one new KEK of the run.
    assert sorted(verb for verb, _ in calls) == ["unwrap"] * FILES + ["wrap"]
    openbao.ask("POST", f"transit/keys/{keys[1]}/config", {"min_decryption_version": 2})
    assert sb.read_table(folder, policy=wanted).num_rows == FILES * ROWS


@pytest.mark.parametrize("mode", [FooterMode.ENCRYPTED, FooterMode.SIGNED])
def test_keys_outside_are_renewed_inside_the_kms_with_footers_closed(
    openbao: OpenBao,
    keys: tuple[str, str],
    tmp_path: Path,
    calls: list[tuple[str, str]],
    mode: FooterMode,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = keys[1]
    wanted = policy(openbao, (key, key), inside=False, mode=mode)
    one, many = lake(tmp_path / "one", wanted), lake_of_runs(tmp_path / "many", wanted)
    data = {path: path.read_bytes() for path in tmp_path.glob("*/*.parquet")}
    rotated(openbao, keys)
    # The right to renew is enough: this token opens nothing.
    rights = {f"rewrap/{key}": "update"}
    monkeypatch.setenv("VAULT_TOKEN", openbao.token(openbao.allow(f"renewer-{key}", rights)))
    for folder, keks in ((one, 1), (many, FILES)):
        calls.clear()
        report = sb.rotate_keys(folder, policy=wanted)
        assert {file.status for file in report.files} == {"rotated"}, report.failed
        assert {(file.master_keys_before, file.master_keys) for file in report.files} == {
            ((key,), (key,))
        }
        assert calls == [("rewrap", key)] * keks
        assert any("were not opened" in note for note in report.notes) is (
            mode is FooterMode.ENCRYPTED
        )
        again = sb.rotate_keys(folder, policy=wanted)
        assert {file.status for file in again.files} == {"unchanged"}
    assert {path: path.read_bytes() for path in tmp_path.glob("*/*.parquet")} == data
    monkeypatch.setenv("VAULT_TOKEN", openbao.root)
    openbao.ask("POST", f"transit/keys/{key}/config", {"min_decryption_version": 2})
    for folder in (one, many):
        assert sb.read_table(folder, policy=wanted).num_rows == FILES * ROWS


def test_keys_outside_are_moved_by_name_with_footers_closed(
    openbao: OpenBao, keys: tuple[str, str], tmp_path: Path, calls: list[tuple[str, str]]
) -> None:
    wanted = policy(openbao, keys, inside=False)
    folder, new = lake(tmp_path / "t", wanted), openbao.make_key(f"{keys[1]}_new")
    rotated(openbao, keys)
    calls.clear()
    report = sb.rotate_keys(folder, policy=wanted, moves={keys[1]: new})
    assert {file.master_keys for file in report.files} == {tuple(sorted((keys[0], new)))}
    # The footer's key does not move: nobody asks for it, and its version stays.
    assert sorted(calls) == sorted([("unwrap", keys[1]), ("read", new), ("wrap", new)])
    used = sb.keys_used(folder, keys=wanted.kms_client()).files_by_key
    assert used == {(keys[0], "1"): FILES, (new, "1"): FILES}


def test_keys_outside_that_the_policy_assigns_otherwise_need_their_footer(
    openbao: OpenBao, keys: tuple[str, str], tmp_path: Path
) -> None:
    folder = lake(tmp_path / "t", policy(openbao, keys, inside=False))
    new = openbao.make_key(f"{keys[1]}_new")
    wanted = replace(policy(openbao, (keys[0], new), inside=False), older_keys=frozenset({keys[1]}))
    report = sb.rotate_keys(folder, policy=wanted)
    assert {file.status for file in report.files} == {"rotated"}, report.failed
    assert {it.key for file in report.files for it in file.columns} == {None, new}
    signed = policy(openbao, (keys[0], new), inside=False, mode=FooterMode.SIGNED)
    failed = sb.rotate_keys(folder, policy=signed).failed
    assert len(failed) == FILES
    assert all("the policy says that the footer is signed" in str(it.error) for it in failed)


def test_a_client_that_lives_long_sees_versions_that_are_made_later(
    openbao: OpenBao, keys: tuple[str, str], tmp_path: Path
) -> None:
    wanted = policy(openbao, keys)
    folder, client = lake(tmp_path / "t", wanted), wanted.kms_client()
    for _ in range(2):
        rotated(openbao, keys)
        report = sb.rotate_keys(folder, policy=wanted, keys=client)
        assert {file.status for file in report.files} == {"rotated"}
    assert sb.keys_used(folder, keys=client).files_by_key == {(key, "3"): FILES for key in keys}


def test_another_master_key_costs_two_calls_a_kek(
    openbao: OpenBao, keys: tuple[str, str], tmp_path: Path, calls: list[tuple[str, str]]
) -> None:
    folder, new = lake(tmp_path / "t", policy(openbao, keys)), openbao.make_key(f"{keys[1]}_new")
    calls.clear()
    report = sb.rotate_keys(folder, policy=policy(openbao, keys), moves={keys[1]: new})
    assert {file.master_keys for file in report.files} == {tuple(sorted((keys[0], new)))}
    asked = [call for call in calls if call[1] in (keys[1], new)]
    assert sorted(asked) == sorted([("unwrap", keys[1]), ("read", new), ("wrap", new)])


def test_a_token_that_is_revoked_in_mid_run_leaves_done_files_done_and_the_rest_for_later(
    openbao: OpenBao, keys: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = policy(openbao, keys, twice=False)
    folder = lake(tmp_path / "t", wanted)
    rotated(openbao, keys)
    rights = {f"{verb}/{key}": "update" for verb in ("decrypt", "rewrap") for key in keys}
    rights |= {f"keys/{key}": "read" for key in keys}
    token = openbao.token(openbao.allow(f"leaver-{keys[1]}", rights))
    monkeypatch.setenv("VAULT_TOKEN", token)
    gone, numbers, ask = Event(), count(1), VaultKmsClient._transit
    # A file takes three calls.  After so many two files are done, and not all can be.
    before = 3 * FILES - 4

    def waiting(self: VaultKmsClient, verb: str, name: str, *texts: str) -> Any:
        assert next(numbers) <= before or gone.wait(60)
        return ask(self, verb, name, *texts)

    def leave(done: int, total: int) -> None:
        if done == 2:
            openbao.revoke(token)
            gone.set()

    monkeypatch.setattr(VaultKmsClient, "_transit", waiting)
    report = sb.rotate_keys(folder, policy=wanted, progress=leave)
    states = {file.status for file in report.files}
    assert {"rotated", "failed"} == states
    assert all("refuses the token" in str(file.error) for file in report.failed)
    assert token not in json.dumps(report.to_dict())
    monkeypatch.setenv("VAULT_TOKEN", openbao.root)
    finished = sb.rotate_keys(folder, policy=wanted)
    assert not finished.failed
    assert sum(file.status == "rotated" for file in finished.files) == len(report.failed)
    assert sb.read_table(folder, policy=wanted).num_rows == FILES * ROWS


def test_throttling_is_waited_out(
    openbao: OpenBao, keys: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = policy(openbao, keys, twice=False)
    folder = lake(tmp_path / "t", wanted)
    rotated(openbao, keys)
    quota = f"sys/quotas/rate-limit/q{keys[1]}"
    openbao.ask("POST", quota, {"rate": 8, "interval": "1s", "path": f"transit/rewrap/{keys[1]}"})
    try:
        report = sb.rotate_keys(folder, policy=wanted)
    finally:
        openbao.ask("DELETE", quota)
    assert {file.status for file in report.files} == {"rotated"}, report.failed


def test_a_wrapped_key_of_another_server_is_refused_by_name(
    openbao: OpenBao, keys: tuple[str, str], tmp_path: Path
) -> None:
    wanted = policy(openbao, keys)
    folder = lake(tmp_path / "t", wanted)
    file = folder / "0.parquet"
    content = file.read_bytes()
    at = content.rindex(b"vault:v1:") + len(b"vault:v1:")
    other = base64.b64encode(bytes(60))[: len(b"A" * 8)]
    file.write_bytes(content[:at] + other + content[at + len(other) :])
    before = file.read_bytes()
    [failed] = sb.rotate_keys(file, policy=wanted, moves={keys[1]: keys[0]}).failed
    assert "does not fit" in str(failed.error)
    assert file.read_bytes() == before
