"""`secure-bloom hudi` as its users meet it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testing.command_line import run
from testing.hudi_files import base_file, base_table
from testing.tables import Mode, keyring_json, write

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
    counts = "2 skipped by range, 0 by filter, 0 read, 0 failed; 0 false positives"
    assert f"2 files: {counts}" in nowhere.stdout


def test_tables_show_what_was_done(lake: Path) -> None:
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


def test_errors_end_with_exit_code_two(lake: Path) -> None:
    out = lake / "out"
    for verb in (("add", out), ("show", out), ("lookup", out, KEYS[0])):
        failed = run("hudi", *verb)
        assert failed.returncode == 2, verb
        assert f"secure-bloom: error: {out / 'a.parquet'}: " in failed.stderr
        assert "secure-bloom: hint: " in failed.stderr
    assert "no key is given" in run("hudi", "lookup", out).stderr
    assert "--num-entries is 0" in run("hudi", "add", out, "--num-entries", "0").stderr


def test_every_verb_has_help() -> None:
    for verb in ("show", "add", "lookup"):
        assert "Exit code" in run("hudi", verb, "--help").stdout
        assert verb in run("hudi", "--help").stdout


def test_keys_from_a_file_depended_on_the_locale(lake: Path) -> None:
    place = base_file(lake / "names.parquet", ["zoë", "bo"])
    (lake / "keys.txt").write_bytes("\ufeffzoë\r\nbo".encode())
    looked = run("hudi", "lookup", place, "--from", lake / "keys.txt", "--json", LC_ALL="C")
    assert (looked.returncode, json.loads(looked.stdout)["keys_found"]) == (0, 2)
    (lake / "keys.csv").write_text("name,id\nzoë,1\n,2\n")
    looked = run("hudi", "lookup", place, "--from", f"{lake / 'keys.csv'}:name", "--json")
    assert (looked.returncode, json.loads(looked.stdout)["keys_found"]) == (0, 1)
    assert "note: 1 empty cell of" in looked.stderr
    (lake / "keys.txt").write_bytes("zoë".encode("latin-1"))
    failed = run("hudi", "lookup", place, "--from", lake / "keys.txt")
    assert failed.returncode == 2
    assert failed.stderr.splitlines()[0].endswith("keys.txt: is not UTF-8 text")
    assert "hint: convert it first" in failed.stderr


def test_a_damaged_filter_is_shown_as_unreadable(lake: Path) -> None:
    pairs = {"org.apache.hudi.bloomfilter": "no base64"}
    table = base_table(["k1"]).replace_schema_metadata(pairs)
    damaged, out = write(lake / "out" / "c.parquet", table), lake / "out"
    shown = run("hudi", "show", damaged, lake / "out" / "b.parquet")
    assert shown.returncode == 2
    assert "c.parquet  unreadable" in shown.stdout
    assert f"secure-bloom: error: {damaged}: the filter is not base64" in shown.stderr
    document = json.loads(run("hudi", "show", damaged, "--json").stdout)
    assert document["files"][0]["error"] == f"{damaged}: the filter is not base64 text"
    inspected = run("inspect", out / "c.parquet")
    assert inspected.returncode == 0
    assert "Hudi record keys: filter that cannot be read: the filter is not" in inspected.stdout


def test_files_that_failed_are_counted(lake: Path) -> None:
    looked = run("hudi", "lookup", lake / "out", "k1")
    assert looked.returncode == 2
    assert "1 read, 1 failed" in looked.stdout
    document = json.loads(run("hudi", "lookup", lake / "out", "k1", "--json").stdout)
    assert document["files_failed"] == 1


def test_a_key_that_a_failed_file_may_hold_is_unknown(lake: Path) -> None:
    out = lake / "out"
    looked = run("hudi", "lookup", out, KEYS[250], "none")
    assert looked.returncode == 2
    assert looked.stdout.startswith(f"{KEYS[250]}  {out / 'b.parquet'}\nnone  unknown\n")
    document = json.loads(run("hudi", "lookup", out, KEYS[250], "none", "--json").stdout)
    assert document["keys"] == {KEYS[250]: [str(out / "b.parquet")], "none": []}
    assert (document["keys_found"], document["keys_unknown"]) == (1, 1)
    keyring = ("--keyring", lake / "keyring.json")
    document = json.loads(run("hudi", "lookup", out, "none", *keyring, "--json").stdout)
    assert document["keys_unknown"] == 0


def test_a_key_could_write_on_the_terminal(lake: Path) -> None:
    looked = run("hudi", "lookup", lake / "out" / "b.parquet", "hidden\b\b")
    assert looked.stdout.startswith("hidden\\x08\\x08  nowhere\n")


def test_a_table_without_rows_has_no_empty_frame(lake: Path) -> None:
    shown = run("hudi", "show", lake / "out" / "a.parquet", "--range")
    assert (shown.returncode, shown.stdout) == (2, "")
    failed = run("hudi", "add", lake / "out" / "a.parquet")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert "--max-entries is -1" in run("hudi", "add", lake, "--max-entries", "-1").stderr


def test_a_hint_stands_behind_the_errors_that_it_is_for(lake: Path) -> None:
    (lake / "out" / "m.parquet").write_bytes(b"no Parquet file")
    base_file(lake / "out" / "z.parquet", ["k1"], Mode.ENCRYPTED)
    lines = run("hudi", "show", lake / "out").stderr.splitlines()
    kinds = [line.split(": ")[1] for line in lines]
    assert kinds == ["error", "error", "hint", "error", "hint"]
    assert [name in lines[1] for name in ("m.parquet", "z.parquet")] == [False, True]


def test_a_column_s_values_are_found_beside_the_filter_of_another(lake: Path) -> None:
    path = lake / "out" / "b.parquet"
    run("hudi", "add", path)
    looked = run("hudi", "lookup", path, "user3@example.com", "--column", "email")
    assert (looked.returncode, f"user3@example.com  {path}" in looked.stdout) == (0, True)
    assert "1 file: " in looked.stdout
    assert "1 read without a filter" in looked.stdout
    assert run("hudi", "add", path, "--column", "email").returncode == 2
    assert "_hoodie_record_key" in run("hudi", "show", path).stdout
    run("hudi", "add", path, "--column", "email", "--replace-filters")
    assert "email" in run("hudi", "show", path).stdout
    document = json.loads(run("hudi", "show", path, "--json").stdout)
    assert document["files"][0]["hudi"]["column"] == "email"


def test_a_key_that_is_a_path_is_an_error(lake: Path) -> None:
    first, second = lake / "out" / "b.parquet", lake / "out" / "a.parquet"
    for key in (second, lake / "out", "gone/away.parquet", "s3://lake/a.parquet"):
        looked = run("hudi", "lookup", first, key, KEYS[250])
        assert (looked.returncode, looked.stdout) == (2, "")
        assert f"error: {key} is a f" in looked.stderr
        assert "lookup takes one PATH" in looked.stderr
        assert "--from" in looked.stderr
    base_file(lake / "c.parquet", [str(second)])
    (lake / "keys.txt").write_text(str(second))
    assert run("hudi", "lookup", lake / "c.parquet", "--from", lake / "keys.txt").returncode == 0
    assert run("hudi", "lookup", first, "a.parquet", "long" * 2000).returncode == 1


def test_an_index_of_paimon_is_shown_by_another_verb(lake: Path) -> None:
    (lake / "x.parquet.index").write_bytes(b"an index, as far as its name says")
    shown = run("hudi", "show", lake / "x.parquet.index")
    assert shown.returncode == 2
    assert "secure-bloom paimon show" in shown.stderr
    assert "--in-place" not in shown.stderr
