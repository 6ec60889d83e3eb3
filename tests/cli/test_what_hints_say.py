"""Hints and notes say what is true for the verb that gives them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.cli import main
from secure_bloom.reports.text import human_bytes
from testing.command_line import run
from testing.project import ROOT
from testing.tables import Mode, customers, keyring_json, write
from tests.cli.conftest import assert_clean, assert_error

#: Root without its right to pass over permissions.
_PLAIN_USER = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


def _in_clear(folder: Path) -> Path:
    """A file in clear, a policy with a keyring of its own, and another keyring."""
    (folder / "plain").mkdir()
    pq.write_table(customers(50), folder / "plain" / "a.parquet")
    for name in ("keyring.json", "other.json"):
        (folder / name).write_text(keyring_json())
        (folder / name).chmod(0o600)
    rules = '[footer]\nkey = "k_footer"\n[columns.email]\nkey = "k_pii"\nbloom = true\n'
    kms = '[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n'
    (folder / "policy.toml").write_text(kms + rules)
    (folder / "no-kms.toml").write_text(rules)
    return folder / "plain"


@pytest.mark.parametrize("verb", ["reencrypt", "rotate"])
def test_a_verb_that_makes_new_keys_says_what_its_keyring_is_for(verb: str) -> None:
    shown = " ".join(run(verb, "--help").stdout.split())
    assert "File with the keys of the old files. New keys come from the policy's [kms]" in shown
    assert "else the policy's [kms]" not in shown


def test_the_hint_of_add_says_where_new_keys_come_from(tmp_path: Path) -> None:
    plain, other = _in_clear(tmp_path), ("--keyring", tmp_path / "other.json")
    done = run("add", plain, "--policy", tmp_path / "policy.toml", *other)
    assert_error(done, "secure-bloom reencrypt", "; new keys come from the policy's [kms]")
    done = run("add", plain, "--policy", tmp_path / "no-kms.toml", *other)
    assert_error(done, "secure-bloom reencrypt")
    assert "[kms]" not in done.stderr


def test_add_offers_weaker_files_for_columns_without_a_key_alone(tmp_path: Path) -> None:
    plain = _in_clear(tmp_path)
    policy = ("--policy", tmp_path / "policy.toml")
    done = run("add", plain, *policy)
    assert_error(done, "for filters of columns without a key alone: allow_unprotected=True")
    assert "to read it as it is" not in done.stderr
    # What the hint offers works.
    assert run("add", plain, "--column", "id", *policy, "--allow-unprotected").returncode == 0
    assert_error(run("read", plain, *policy), "to read it as it is: allow_unprotected=True")


def test_a_missing_key_is_passed_over_only_where_rows_are_read(lake: Path) -> None:
    for words in (
        ("add", lake / "out", "--column", "email"),
        ("probe", lake / "out", "email", "x"),
    ):
        assert "--missing-keys" not in run(*words).stderr
    # Without the footer's key no column is known.
    done = run("read", lake / "out")
    assert_error(done, "key 'k_footer' of the footer is not available")
    assert "--missing-keys" not in done.stderr
    few = lake / "few.json"
    few.write_text(keyring_json({"k_footer": b"0123456789012345"}))
    few.chmod(0o600)
    write(lake / "clear.parquet", customers(20), Mode.SIGNED)
    done = run("read", lake / "clear.parquet", "--keyring", few, "--allow-unverified")
    assert "--missing-keys drop" in done.stderr


def test_the_note_on_replaced_filters_says_what_a_later_run_drops(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(300), Mode.PLAIN, row_group_size=100)
    email, both = ("-c", "email"), ("-c", "email", "-c", "iban")
    sb.add_bloom_filters(path, columns=["email", "iban"])
    first = path.stat().st_size
    planned = run("add", path, *email, "--replace-filters", "--in-place", "--dry-run")
    assert "1 file would grow by" in planned.stdout
    assert path.stat().st_size == first
    done = run("add", path, *both, "--replace-filters", "--in-place")
    assert "1 file grew by" in done.stdout
    assert (
        "drops what appends have written, if it is the next run and replaces all filters"
        in done.stdout
    )
    run("add", path, *both, "--replace-filters", "--in-place")
    run("add", path, *email, "--replace-filters", "--in-place")
    appended = path.stat().st_size
    other = tmp_path / "y.parquet"
    other.write_bytes(path.read_bytes())
    # Filters of ibans, which stay, are behind what the first appends have written.
    run("add", other, *email, "--replace-filters")
    run("add", path, *both, "--replace-filters")
    assert first < path.stat().st_size < other.stat().st_size
    assert path.stat().st_size < appended


def test_replaced_filters_that_stay_in_a_file_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(300), Mode.PLAIN, row_group_size=100)
    sb.add_bloom_filters(path, columns=["email", "iban"])
    both, stay = ("-c", "email", "-c", "iban"), "the filters that are replaced stay in them"
    assert stay not in run("add", path, *both, "--replace-filters").stdout
    first = path.stat().st_size
    done = run("add", path, "-c", "email", "--replace-filters", "--json")
    (note,) = json.loads(done.stdout)["notes"]
    assert path.stat().st_size > first
    assert note.startswith(f"1 file grew by {human_bytes(path.stat().st_size - first)}: {stay}")


def test_a_worse_filter_that_is_there_has_the_option_that_replaces_it(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(300), Mode.PLAIN)
    run("add", path, "-c", "id:fpp=0.2")
    done = run("add", path, "-c", "id:fpp=0.0001")
    assert "it was there already; --replace-filters builds it again" in done.stdout
    again = run("add", path, "-c", "id:fpp=0.0001", "--replace-filters")
    assert "--replace-filters builds" not in again.stdout


def test_files_that_need_no_filter_are_copied_to_the_output(tmp_path: Path) -> None:
    lake, out = tmp_path / "lake", tmp_path / "out"
    lake.mkdir()
    for name in "ab":
        write(lake / f"{name}.parquet", customers(5), Mode.PLAIN)
    run("add", lake, "-c", "id")
    planned = run("add", lake, "-c", "id", "-o", out, "--dry-run")
    assert f"2 files that needed no new filter would be copied to {out}" in planned.stdout
    done = run("add", lake, "-c", "id", "-o", out)
    assert f"2 files that needed no new filter were copied to {out}" in done.stdout
    assert (out / "a.parquet").read_bytes() == (lake / "a.parquet").read_bytes()
    assert "copied to" not in run("add", lake, "-c", "id").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("add", "PATH", "-c", "id", "--in-place", "-o", "out"),
            "error: --in-place and --output exclude each other\nsecure-bloom: hint: leave one of",
        ),
        (("add", "PATH", "-c", "id", "--sample", "3"), "error: --sample is for a dry run"),
        (("add", "PATH", "-c", "id", "--sample", "3"), "hint: give --dry-run too\n"),
        (
            ("add", "PATH", "-c", "id", "--where", "id = 1"),
            "--where: 'id' is not a partition column",
        ),
        (("add", "PATH", "-c", "id", "--commit-every", "3"), "error: --commit-every is for the"),
        (("add", "PATH", "-c", "id", "--branch", "x"), "error: --branch is for the folder of"),
        (("add", "PATH"), "hint: name columns (--column NAME), or give a policy (--policy FILE)"),
        (
            ("paimon", "build", "PATH", "-c", "id", "--since", "3"),
            "error: --since is an option of a Paimon",
        ),
        (("reencrypt", "PATH", "-p", "policy.toml", "--since", "3"), "error: --since is for the"),
    ],
    ids=["both", "sample", "dry", "where", "commit", "branch", "columns", "paimon", "reencrypt"],
)
def test_the_command_line_names_its_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    _in_clear(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = run(*(word.replace("PATH", "plain/a.parquet") for word in words))
    assert_error(done, said)


def test_a_dry_run_states_no_size_that_only_a_written_file_shows(tmp_path: Path) -> None:
    plain, policy = _in_clear(tmp_path), ("--policy", tmp_path / "policy.toml")
    for verb in ("reencrypt", "rotate"):
        (planned,) = (sb.reencrypt if verb == "reencrypt" else sb.rotate_keys)(
            plain,
            policy=tmp_path / "policy.toml",
            keys=sb.Keyring.load(tmp_path / "keyring.json"),
            dry_run=True,
        ).files
        assert (planned.changes, planned.bytes_after) in {
            (True, None),
            (False, planned.bytes_before),
        }
    done = run("reencrypt", plain, *policy, "--dry-run")
    assert_clean(done)
    assert "KiB" not in done.stdout


def test_a_dry_run_in_place_has_no_notes_on_what_it_did(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    (tmp_path / "_metadata").write_bytes(b"of another writer")
    planned = run("add", tmp_path / "a.parquet", "-c", "id", "-n").stdout
    assert "_metadata describes files that would change" in planned
    assert "would be out of date" in planned
    assert "got filters" in run("add", tmp_path / "a.parquet", "-c", "id").stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can lay rights down")
@pytest.mark.parametrize("verb", ["add", pytest.param("decrypt", marks=pytest.mark.slow)])
def test_a_folder_that_may_not_be_written_is_the_one_that_is_named(
    tmp_path: Path, verb: str
) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    words = [sys.executable, "-m", "secure_bloom", verb, "a.parquet"]
    words += ["--column", "id"] if verb == "add" else []
    for output, place in (("closed", "closed/a.parquet"), ("closed/x", f"{closed}/x")):
        done = subprocess.run(
            [*_PLAIN_USER, *words, "--output", output],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2
        assert f"error: {place}: " in done.stderr
        assert "permission denied" in done.stderr


@pytest.mark.parametrize("verb", ["add", "reencrypt", "decrypt"])
def test_files_that_are_replaced_below_an_output_folder_are_told(tmp_path: Path, verb: str) -> None:
    plain, output = _in_clear(tmp_path), tmp_path / "out"
    words = [verb, plain, "--output", output]
    words += ["--column", "id"] if verb == "add" else ["--policy", tmp_path / "policy.toml"]
    words += ["--allow-unprotected"] if verb == "decrypt" else []
    note = f"1 file below {output} "
    first = run(*words)
    assert first.returncode == 0, first.stderr
    assert note not in first.stdout
    assert f"{note}would be replaced" in run(*words, "--dry-run").stdout
    assert f"{note}was replaced" in run(*words).stdout


def test_a_version_for_a_plain_folder_gets_the_folder_to_name(tmp_path: Path) -> None:
    done = run("add", _in_clear(tmp_path), "--column", "id", "--since", "1")
    assert_error(done, "such as TABLE/day=2026-11-20")


@pytest.mark.parametrize("verb", ["add", "reencrypt"])
def test_a_column_of_the_policy_that_is_not_there_names_its_file(tmp_path: Path, verb: str) -> None:
    plain = _in_clear(tmp_path)
    policy = tmp_path / "policy.toml"
    policy.write_text(policy.read_text().replace("[columns.email]", "[columns.emial]"))
    weaker = ("--allow-unprotected",) if verb == "add" else ()
    done = run(verb, plain, "--policy", policy, *weaker)
    assert_error(done, f"error: {policy}: there is no column emial", "did you mean email")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can lay rights down")
@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("read", "a.parquet", "--output", "closed/x.csv"), "closed/x.csv"),
        (("policy", "init", "a.parquet", "--output", "closed/x.toml"), "closed/x.toml"),
        (("sql", "select * from 'b.parquet'"), "b.parquet"),
    ],
    ids=lambda it: it[0] if isinstance(it, tuple) else "",
)
def test_what_the_system_denies_says_so_with_what_to_check(
    tmp_path: Path, words: tuple[str, ...], place: str
) -> None:
    for name in ("a", "b"):
        pq.write_table(pa.table({"id": [1, 2]}), tmp_path / f"{name}.parquet")
    (tmp_path / "b.parquet").chmod(0)
    (tmp_path / "closed").mkdir(mode=0o555)
    done = subprocess.run(
        [*_PLAIN_USER, sys.executable, "-m", "secure_bloom", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert f"error: {place}: " in done.stderr
    assert "ermission denied" in done.stderr
    assert "hint: check the permissions" in done.stderr


#: A mistake that people make -> what the hint says.
MISTAKES = {
    "a policy for a keyring": (("inspect", "x.parquet", "-k", "p.toml"), "is given by --policy"),
    "a keyring for a policy": (("audit", "x.parquet", "-p", "k.json"), "is given by --keyring"),
    "a folder for a policy": (("policy", "check", "."), "name a file: this is a folder"),
    "a policy that is there": (
        ("policy", "init", "x.parquet", "-o", "p.toml"),
        "name a file that is not there yet",
    ),
    "a misspelt file of properties": (
        ("audit", "x.parquet", "-p", "p.toml", "--spark-properties", "spark.cnf"),
        "did you mean spark.conf?",
    ),
    "half of a move": (("rotate", "x.parquet", "-p", "p.toml", "--from", "k"), "--from OLD --to"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_people_has_a_hint(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    words, said = MISTAKES[mistake]
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"id": [1]}), "x.parquet")
    Path("p.toml").write_text("[columns.id]\n")
    Path("p.toml").chmod(0o600)
    Path("k.json").write_text('{"version": 1}')
    Path("spark.conf").write_text("")
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    (hint,) = re.findall("hint: (.*)", capsys.readouterr().err)
    assert (ended.value.code, said in hint) == (2, True), hint
