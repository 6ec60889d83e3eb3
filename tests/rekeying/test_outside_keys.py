"""Keys whose material is outside change with the footer closed, as far as that tells enough."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from testing.tables import customers
from tests.rekeying.lake import KEYS, policy

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
