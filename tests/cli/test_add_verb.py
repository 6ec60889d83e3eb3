"""`secure-bloom add`: what it writes, leaves alone and refuses."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from testing import tables
from testing.command_line import run
from testing.tables import MASTER_KEYS
from tests.cli.conftest import POLICY, assert_error


def test_add_twice_finds_nothing_to_do(lake: Path) -> None:
    run("add", lake / "out", "--policy", lake / "policy.toml")
    before = [path.read_bytes() for path in sorted((lake / "out").iterdir())]
    again = run("add", lake / "out", "--policy", lake / "policy.toml")
    assert again.returncode == 0
    assert "unchanged" in again.stdout
    assert "12 kept" in again.stdout
    assert [path.read_bytes() for path in sorted((lake / "out").iterdir())] == before


def test_dry_run_and_output_leave_the_input_alone(lake: Path) -> None:
    before = (lake / "out" / "part-0.parquet").read_bytes()
    policy = ("--policy", lake / "policy.toml")
    dry = run("add", lake / "out", *policy, "--dry-run", "--json")
    assert json.loads(dry.stdout)["files"][0]["status"] == "added"
    copied = run("add", lake / "out", *policy, "--output", lake / "new")
    assert copied.returncode == 0, copied.stderr
    assert (lake / "out" / "part-0.parquet").read_bytes() == before
    new = lake / "new" / "part-0.parquet"
    assert new.stat().st_size > len(before)
    assert tables.read(new).equals(tables.read(lake / "out" / "part-0.parquet"))


def test_a_failing_file_does_not_stop_the_others(lake: Path) -> None:
    (lake / "out" / "part-00.parquet").write_bytes(b"PAR1 this is not a footer PAR1")
    done = run("add", lake / "out", "--policy", lake / "policy.toml", "--json")
    assert_error(done, "part-00.parquet")
    statuses = {Path(f["path"]).name: f["status"] for f in json.loads(done.stdout)["files"]}
    assert statuses == {
        "part-0.parquet": "added",
        "part-00.parquet": "failed",
        "part-1.parquet": "added",
    }


def test_a_master_key_that_does_not_fit_is_an_error_and_the_file_stays(lake: Path) -> None:
    wrong = {**MASTER_KEYS, "k_pii": bytes(24)}
    (lake / "wrong.json").write_text(tables.keyring_json(wrong))
    (lake / "wrong.json").chmod(0o600)
    before = (lake / "out" / "part-0.parquet").read_bytes()
    done = run("add", lake / "out", "--column", "email", "--keyring", lake / "wrong.json")
    assert_error(done, "part-0.parquet", "email", "k_pii")
    assert (lake / "out" / "part-0.parquet").read_bytes() == before


def test_a_boolean_column_and_an_unknown_master_key_are_errors_before_any_write(lake: Path) -> None:
    pq.write_table(pa.table({"flag": [True], "n": [1]}), lake / "flags.parquet")
    before = (lake / "flags.parquet").read_bytes()
    assert_error(run("add", lake / "flags.parquet", "--column", "flag"), "BOOLEAN", "flag")
    assert (lake / "flags.parquet").read_bytes() == before
    policy = lake / "typo.toml"
    policy.write_text(POLICY.replace("k_pii", "k_pij"))
    assert_error(run("add", lake / "out", "--policy", policy), "k_pij", "k_pii")


def test_a_column_name_may_hold_colons_and_is_given_once(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a b:c": [1, 2]}), path)
    done = run("add", path, "--column", "a b:c:fpp=0.1:max_bytes=64", "--json")
    (report,) = json.loads(done.stdout)["files"][0]["filters"]
    assert (report["column"], report["fpp_requested"]) == ("a b:c", 0.1)
    assert_error(run("add", path, "--column", "a b:c", "--column", "a b:c:fpp=0.5"), "twice")


@pytest.mark.parametrize("way", ["itself", "dots", "link"])
def test_an_output_folder_that_is_the_input_is_refused(lake: Path, way: str) -> None:
    before = (lake / "out" / "part-0.parquet").read_bytes()
    policy = lake / "policy.toml"
    output = {"itself": lake / "out", "dots": lake / "out" / ".." / "out", "link": lake / "link"}[
        way
    ]
    (lake / "link").symlink_to("out")
    done = run("add", lake / "out", "--policy", policy, "--output", output)
    assert_error(done, "overwrite the input")
    assert (lake / "out" / "part-0.parquet").read_bytes() == before


def test_clear_files_of_a_sensitive_column_are_brought_under_the_policy_by_the_hint(
    tmp_path: Path,
) -> None:
    (tmp_path / "keyring.json").write_text(tables.keyring_json())
    (tmp_path / "keyring.json").chmod(0o600)
    (tmp_path / "policy.toml").write_text(POLICY + '[columns.absent]\nkey = "k_pii"\n')
    (tmp_path / "out").mkdir()
    for number in range(5):
        tables.write(tmp_path / "out" / f"{number}.parquet", tables.customers(20))
    words = ("add", tmp_path / "out", "--policy", tmp_path / "policy.toml")
    failed = run(*words)
    assert failed.returncode == 2
    (hint,) = [line for line in failed.stderr.splitlines() if "hint:" in line]
    command = hint.partition("hint: secure-bloom ")[2].partition(" brings files")[0]
    assert json.loads(run(*words, "--json").stdout)["files"][0]["hint"] in hint
    done = run(*shlex.split(command))
    assert done.returncode == 0, done.stderr
    assert run(*words).returncode == 0


def test_a_structure_without_its_columns_is_one_error_of_the_run(tmp_path: Path) -> None:
    for number in range(12):
        table = pa.table({"id": [1], "a": [{"b": 1, "c": 2}]})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    done = run("add", tmp_path, "-c", "a")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("secure-bloom: error:") == 1
    assert "the same in" not in done.stderr
    assert "a.*" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("add", "LAKE", "-c", "emial"),
        ("advise", "LAKE", "-c", "emial"),
        ("hudi", "add", "LAKE", "-c", "emial"),
        ("paimon", "build", "LAKE", "-c", "emial"),
        ("paimon", "build", "LAKE", "-c", "email", "-c", "emial"),
        ("probe", "LAKE", "emial", "x"),
        ("read", "LAKE", "--where", "emial = 'x'"),
        ("read", "LAKE", "--where", "id = 1", "--columns", "emial"),
        ("trace", "LAKE", "--values-of", "LAKE:emial"),
    ],
    ids=" ".join,
)
def test_a_mistake_in_a_columns_name_is_one_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    for number in range(6):
        table = pa.table({"id": [number], "email": [f"{number}@x.example"]})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    if words[0] in ("add", "hudi", "paimon"):
        (tmp_path / "5.parquet").write_bytes(b"PAR1 damaged PAR1")
    before = sorted(tmp_path.iterdir())
    done = run(*(word.replace("LAKE", str(tmp_path)) for word in words))
    assert done.returncode == 2
    assert done.stderr.count("secure-bloom: error:") == 1
    assert "there is no column emial" in done.stderr
    assert "did you mean email" in done.stderr
    assert done.stdout == ""
    assert sorted(tmp_path.iterdir()) == before


def test_a_summary_has_totals_and_failed_files_alone(tmp_path: Path) -> None:
    for number in range(30):
        pq.write_table(pa.table({"id": [number]}), tmp_path / f"{number:02}.parquet")
    (tmp_path / "30.parquet").write_bytes(b"PAR1 damaged PAR1")
    words = ("add", tmp_path, "-c", "id", "--summary")
    dry = run(*words, "--dry-run")
    assert "parquet" not in dry.stdout
    assert re.search(r"31 files: 30 would be added, 1 failed; \d+\.\d", dry.stdout)
    assert "filters: 30 would be added" in dry.stdout
    document = json.loads(run(*words, "--json").stdout)
    assert [Path(file["path"]).name for file in document["files"]] == ["30.parquet"]
    totals = document["totals"]
    assert (totals["files"], totals["statuses"]) == (31, {"added": 30, "failed": 1})
    assert totals["filters"] == {"added": 30}
    sizes = [path.stat().st_size for path in tmp_path.glob("[0-2]*.parquet")]
    assert totals["bytes_after"] == sum(sizes)
    assert 0 < totals["filter_bytes"] < totals["bytes_after"] - totals["bytes_before"]
    assert document["seconds"] > 0


@pytest.mark.parametrize("verb", ["reencrypt", "rotate", "decrypt", "hudi add", "paimon build"])
def test_every_verb_that_writes_files_has_a_summary(verb: str) -> None:
    assert "--summary" in run(*verb.split(), "--help").stdout
