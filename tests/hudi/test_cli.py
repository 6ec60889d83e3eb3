"""`secure-bloom hudi` as its users meet it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.hudi.files import base_file
from tests.tables import Mode, keyring_json
from tests.test_cli import run

KEYS = [f"key-{i:04d}" for i in range(300)]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """An encrypted and a plain base file in ``lake/out``, and a keyring beside."""
    (tmp_path / "out").mkdir()
    base_file(tmp_path / "out" / "a.parquet", KEYS[:200], Mode.ENCRYPTED)
    base_file(tmp_path / "out" / "b.parquet", KEYS[200:])
    keyring = tmp_path / "keyring.json"
    keyring.write_text(keyring_json())
    keyring.chmod(0o600)
    return tmp_path


def test_add_show_and_lookup(lake: Path) -> None:
    out, keyring = lake / "out", ("--keyring", lake / "keyring.json")
    added = run("hudi", "add", out, *keyring, "--type", "simple", "--fpp", "0.001", "--json")
    assert (added.returncode, added.stderr) == (0, "")
    document = json.loads(added.stdout)
    assert [file["status"] for file in document["files"]] == ["added", "added"]
    assert [file["filters"][0]["values"] for file in document["files"]] == [200, 100]
    assert len(document["notes"]) == 2

    shown = run("hudi", "show", out, *keyring, "--json")
    (first, _) = json.loads(shown.stdout)["files"]
    assert shown.returncode == 0
    assert (first["hudi"]["type"], first["hudi"]["num_hashes"]) == ("SIMPLE", 10)
    assert first["min_key"] is None
    assert KEYS[0] not in shown.stdout
    ranged = run("hudi", "show", out, *keyring, "--range")
    assert KEYS[0] in ranged.stdout
    assert KEYS[299] in ranged.stdout

    (lake / "keys.txt").write_text(f"{KEYS[5]}\n\nnone\n")
    looked = run("hudi", "lookup", out, KEYS[250], "--from", lake / "keys.txt", *keyring, "--json")
    document = json.loads(looked.stdout)
    assert looked.returncode == 0
    assert document["keys"] == {
        KEYS[250]: [str(out / "b.parquet")],
        KEYS[5]: [str(out / "a.parquet")],
        "none": [],
    }
    assert (document["keys_found"], document["files_read"]) == (2, 2)
    nowhere = run("hudi", "lookup", out, "none", *keyring, "-v")
    assert nowhere.returncode == 1
    assert "2 files: 2 skipped by range, 0 by filter, 0 read; 0 false positives" in nowhere.stdout


def test_tables_tell_what_was_done(lake: Path) -> None:
    out, keyring = lake / "out", ("--keyring", lake / "keyring.json")
    dry = run("hudi", "add", out, *keyring, "--dry-run", "-v")
    assert dry.returncode == 0
    assert "note: a dry run, nothing was written" in dry.stdout
    assert "k_footer" in dry.stdout
    assert "note: " + str(out / "b.parquet") + ": a plaintext footer shows anyone" in dry.stdout
    assert "none" in run("hudi", "show", out, *keyring).stdout
    run("hudi", "add", out, *keyring, "--in-place")
    assert "DYNAMIC_V0" in run("hudi", "show", out, *keyring, "-v").stdout
    inspected = run("inspect", out, *keyring)
    assert "Hudi record keys: DYNAMIC_V0 filter of 1.1 KiB in 1 row" in inspected.stdout
    assert "a.parquet  replaced" in run("hudi", "add", out, *keyring, "--replace-filters").stdout


def test_errors_are_told_and_end_with_two(lake: Path) -> None:
    out = lake / "out"
    for verb in (("add", out), ("show", out), ("lookup", out, KEYS[0])):
        failed = run("hudi", *verb)
        assert failed.returncode == 2, verb
        assert f"secure-bloom: error: {out / 'a.parquet'}: " in failed.stderr
        assert "secure-bloom: hint: " in failed.stderr
    assert "no key is given" in run("hudi", "lookup", out).stderr
    assert "num_entries is 0" in run("hudi", "add", out, "--num-entries", "0").stderr


def test_every_verb_has_help() -> None:
    for verb in ("show", "add", "lookup"):
        assert "Exit code" in run("hudi", verb, "--help").stdout
        assert verb in run("hudi", "--help").stdout
