"""The command line as its users meet it: a process, its exit code, stdout and stderr."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.encryption.keys import Keyring
from tests import tables
from tests.command_line import COMMAND, run
from tests.project import ROOT
from tests.surgery import filter_place
from tests.tables import MASTER_KEYS, SECRETS, Mode

POLICY = """
[kms]
client = "keyring"
keyring = "keyring.json"
[footer]
key = "k_footer"
[columns.email]
key = "k_pii"
bloom = { fpp = 0.01 }
[columns.iban]
key = "k_finance"
bloom = true
[columns.city]
bloom = { fpp = 0.05, max_bytes = 65536 }
"""


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two encrypted files of customers in ``lake/out``, a keyring and a policy beside them."""
    (tmp_path / "out").mkdir()
    for part in range(2):
        tables.write(
            tmp_path / "out" / f"part-{part}.parquet",
            tables.customers(900, seed=part).slice(part * 300, 600),
            Mode.ENCRYPTED,
            row_group_size=300,
        )
    (tmp_path / "policy.toml").write_text(POLICY)
    keyring = tmp_path / "keyring.json"
    keyring.write_text(tables.keyring_json())
    keyring.chmod(0o600)
    return tmp_path


def assert_clean(done: subprocess.CompletedProcess[str]) -> None:
    """No traceback and no secret, whatever happened."""
    for text in (done.stdout, done.stderr):
        assert "Traceback" not in text
        assert not [secret for secret in SECRETS if secret in text]


def assert_error(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert_clean(done)
    assert done.returncode == 2, done.stderr
    lines = done.stderr.splitlines()
    assert lines
    assert all(line.startswith("secure-bloom: ") for line in lines), done.stderr
    assert any(line.startswith("secure-bloom: error: ") for line in lines)
    for word in words:
        assert word in done.stderr


def test_add_probe_and_inspect_do_the_main_job(lake: Path) -> None:
    added = run("add", lake / "out", "--policy", lake / "policy.toml", "--json")
    assert_clean(added)
    assert added.returncode == 0, added.stderr
    files = json.loads(added.stdout)["files"]
    assert [file["status"] for file in files] == ["added", "added"]
    assert {f["column"]: (f["encrypted"], f["key"]) for f in files[0]["filters"]} == {
        "email": (True, "k_pii"),
        "iban": (True, "k_finance"),
        "city": (False, None),
    }
    for file in files:
        assert file["bytes_after"] == Path(file["path"]).stat().st_size > file["bytes_before"]
        assert [f["row_group"] for f in file["filters"]] == [0, 0, 0, 1, 1, 1]
        assert all(f["fpp"] <= f["fpp_requested"] for f in file["filters"])

    keyring = ("--keyring", lake / "keyring.json")
    email = tables.read(lake / "out" / "part-0.parquet")["email"][0].as_py()
    probed = run("probe", lake / "out", "email", email, "nobody", *keyring, "--json")
    assert probed.returncode == 0, probed.stderr
    document = json.loads(probed.stdout)
    assert document["column"] == "email"
    groups = [group for file in document["files"] for group in file["row_groups"]]
    assert document["files"][0]["row_groups"][0]["verdicts"][email] == "maybe"
    assert {group["verdicts"]["nobody"] for group in groups} == {"absent"}

    inspected = run("inspect", lake / "out", *keyring, "--json")
    file = json.loads(inspected.stdout)["files"][0]
    assert (file["footer"], file["algorithm"], file["rows"]) == ("encrypted", "AES_GCM_V1", 600)
    columns = {c["column"]: c for c in file["row_groups"][0]["columns"]}
    assert (columns["email"]["encrypted"], columns["email"]["key"]) == ("column_key", "k_pii")
    assert columns["score"]["bloom"] is None
    assert {"offset", "length", "bytes", "fpp", "fill"} <= set(columns["city"]["bloom"])


def test_add_twice_finds_nothing_to_do(lake: Path) -> None:
    run("add", lake / "out", "--policy", lake / "policy.toml")
    before = [path.read_bytes() for path in sorted((lake / "out").iterdir())]
    again = run("add", lake / "out", "--policy", lake / "policy.toml")
    assert again.returncode == 0
    assert "unchanged" in again.stdout
    assert "12 kept" in again.stdout
    assert [path.read_bytes() for path in sorted((lake / "out").iterdir())] == before


def test_the_exit_code_of_probe_is_its_answer(lake: Path) -> None:
    keyring = ("--keyring", lake / "keyring.json")
    assert run("probe", lake / "out", "email", "nobody", *keyring).returncode == 3
    run("add", lake / "out" / "part-0.parquet", "--column", "email", *keyring)
    assert run("probe", lake / "out", "email", "nobody", *keyring).returncode == 3
    run("add", lake / "out", "--column", "email", *keyring)
    assert run("probe", lake / "out", "email", "nobody", *keyring).returncode == 1
    email = tables.read(lake / "out" / "part-1.parquet")["email"][5].as_py()
    assert run("probe", lake / "out", "email", email, *keyring).returncode == 0
    assert run("probe", lake / "out", "mail", "nobody", *keyring).returncode == 2


def test_tables_on_stdout_name_files_columns_and_keys(lake: Path) -> None:
    added = run("add", lake / "out", "--policy", lake / "policy.toml", "-v")
    assert_clean(added)
    for word in (
        "part-0.parquet",
        "added",
        "email",
        "k_pii",
        "k_finance",
        "in clear",
        "dictionary",
    ):
        assert word in added.stdout
    inspected = run("inspect", lake / "out", "--policy", lake / "policy.toml")
    for word in ("encrypted footer", "AES_GCM_V1", "2 of 2", "in clear", "k_pii", "k_footer"):
        assert word in inspected.stdout
    probed = run("probe", lake / "out", "email", "nobody", "--policy", lake / "policy.toml")
    assert "nobody" in probed.stdout


def test_inspect_without_keys_says_what_shows(lake: Path) -> None:
    done = run("inspect", lake / "out" / "part-0.parquet", "--json")
    file = json.loads(done.stdout)["files"][0]
    assert done.returncode == 0
    assert (file["footer"], file["key"], file["row_groups"]) == ("encrypted", "k_footer", [])


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


BAD_CALLS = [
    (("add", "{out}", "--column", "mail", "--keyring", "{keyring}"), ["mail", "email"]),
    (("add", "{out}", "--column", "email:fpp=2", "--keyring", "{keyring}"), ["fpp", "0 and 1"]),
    (("add", "{out}", "--column", "email:ffp=0.1", "--keyring", "{keyring}"), ["ffp"]),
    (("add", "{out}", "--column", "email:fpp=x", "--keyring", "{keyring}"), ["fpp"]),
    (("add", "{out}", "--column", "email:max_bytes=7", "--keyring", "{keyring}"), ["max_bytes"]),
    (("add", "{out}"), ["column"]),
    (("add", "{out}", "--column", "email"), ["part-0.parquet", "k_footer"]),
    (("add", "{out}", "--policy", "{nothing}"), ["nothing"]),
    (("add", "{out}", "--column", "email", "--keyring", "{nothing}"), ["nothing"]),
    (("add", "{nothing}", "--column", "email", "--keyring", "{keyring}"), ["nothing"]),
    (("add", "{out}/*.orc", "--column", "email", "--keyring", "{keyring}"), ["orc"]),
    (
        (
            "add",
            "{out}",
            "--column",
            "email",
            "--keyring",
            "{keyring}",
            "--in-place",
            "--output",
            "x",
        ),
        ["in_place", "output"],
    ),
    (("probe", "{out}", "email"), ["VALUE"]),
    (("probe", "{out}", "id", "many", "--keyring", "{keyring}"), ["whole number", "id"]),
    (("inspect",), ["PATH"]),
    (("inspect", "{policy}"), ["policy.toml", "not a Parquet file"]),
    (("fly",), ["fly"]),
    (("add", "--fast"), ["--fast"]),
]


@pytest.mark.parametrize(("arguments", "words"), BAD_CALLS, ids=lambda p: " ".join(p)[:60])
def test_a_bad_call_is_an_error_in_lines_for_people(
    lake: Path, arguments: tuple[str, ...], words: list[str]
) -> None:
    places = {
        "out": lake / "out",
        "keyring": lake / "keyring.json",
        "policy": lake / "policy.toml",
        "nothing": lake / "nothing",
    }
    before = {path: path.read_bytes() for path in lake.rglob("*") if path.is_file()}
    done = run(*(argument.format(**places) for argument in arguments))
    assert_error(done, *words)
    assert {path: path.read_bytes() for path in lake.rglob("*") if path.is_file()} == before


def test_a_boolean_column_and_an_unknown_master_key_are_errors_before_any_write(lake: Path) -> None:
    pq.write_table(pa.table({"flag": [True], "n": [1]}), lake / "flags.parquet")
    before = (lake / "flags.parquet").read_bytes()
    assert_error(run("add", lake / "flags.parquet", "--column", "flag"), "BOOLEAN", "flag")
    assert (lake / "flags.parquet").read_bytes() == before
    policy = lake / "typo.toml"
    policy.write_text(POLICY.replace("k_pii", "k_pij"))
    assert_error(run("add", lake / "out", "--policy", policy), "k_pij", "k_pii")


def test_a_keyring_that_others_can_read_gets_a_warning(lake: Path) -> None:
    (lake / "keyring.json").chmod(0o644)
    done = run("add", lake / "out", "--policy", lake / "policy.toml")
    assert done.returncode == 0
    assert done.stderr.startswith("secure-bloom: warning: ")
    assert "chmod 600" in done.stderr


def test_an_unforeseen_error_is_one_line_without_its_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def explode(*_: object, **__: object) -> None:
        raise RuntimeError("alice@example.com")

    from secure_bloom.cli import main

    monkeypatch.setattr("secure_bloom.inspection.inspect", explode)
    with pytest.raises(SystemExit) as caught:
        main(["inspect", "anything"])
    assert caught.value.code == 2
    shown = capsys.readouterr().err
    assert "RuntimeError" in shown
    assert "alice" not in shown


@pytest.mark.parametrize("verb", ["add", "probe", "inspect", "demo"])
def test_every_verb_has_help_that_names_its_exit_codes(verb: str) -> None:
    done = run(verb, "--help")
    assert done.returncode == 0
    assert "Exit code" in done.stdout
    readme = ROOT / "README.md"
    assert f"secure-bloom {verb}" in readme.read_text()


def test_keyring_of_the_tests_is_one_that_loads(lake: Path) -> None:
    assert Keyring.load(lake / "keyring.json").has_key("k_pii")


def test_inspect_check_ends_with_one_for_a_wrong_filter(tmp_path: Path) -> None:
    path = tables.write(tmp_path / "x.parquet", tables.customers(60))
    run("add", path, "--column", "email")
    assert run("inspect", path, "--check").returncode == 0
    place = filter_place(path, 0, "email")
    content = bytearray(path.read_bytes())
    content[place.stop - 32 : place.stop] = bytes(32)
    path.write_bytes(content)
    assert run("inspect", path).returncode == 0
    done = run("inspect", path, "--check")
    assert_clean(done)
    assert done.returncode == 1
    assert "wrong filter" in done.stdout
    mended = run("add", path, "--column", "email", "--replace-filters")
    assert "queries lost rows" in mended.stdout
    assert run("inspect", path, "--check").returncode == 0


def test_a_column_name_may_hold_colons_and_is_given_once(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a b:c": [1, 2]}), path)
    done = run("add", path, "--column", "a b:c:fpp=0.1:max_bytes=64", "--json")
    (report,) = json.loads(done.stdout)["files"][0]["filters"]
    assert (report["column"], report["fpp_requested"]) == ("a b:c", 0.1)
    assert_error(run("add", path, "--column", "a b:c", "--column", "a b:c:fpp=0.5"), "twice")


@pytest.mark.parametrize(
    "arguments", [("inspect", "nothing"), ("add", "nothing", "--column", "x"), ("fly",)]
)
def test_an_error_is_a_json_document_where_json_is_asked_for(arguments: tuple[str, ...]) -> None:
    done = run(*arguments, "--json")
    assert_error(done)
    document = json.loads(done.stdout)
    assert document["error"] in done.stderr
    assert set(document) == {"schema_version", "error", "hint"}


def test_the_hint_for_a_negative_number_is_how_to_write_it(tmp_path: Path) -> None:
    path = tables.write(tmp_path / "x.parquet", tables.customers(5))
    run("add", path, "--column", "id")
    assert_error(run("probe", path, "id", "-5"), "-- -5")
    assert run("probe", path, "id", "--", "-5").returncode == 1


def test_the_kms_of_a_policy_without_keys_is_used(lake: Path) -> None:
    policy = lake / "filters.toml"
    policy.write_text(
        '[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n[columns.email]\nbloom = true\n'
    )
    done = run("add", lake / "out", "--policy", policy)
    assert done.returncode == 0, done.stderr


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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("path", ["f.parquet", "missing.parquet"])
def test_a_full_disk_behind_stdout_is_an_error_in_one_line(tmp_path: Path, path: str) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "f.parquet")
    command = [*COMMAND, "inspect", str(tmp_path / path), "--json"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("secure-bloom: error: ")


def test_a_reader_that_went_away_ends_every_verb_quietly(lake: Path) -> None:
    keyring = ("--keyring", lake / "keyring.json")
    for verb in (
        ("read", lake / "out", *keyring),
        ("read", lake / "out", *keyring, "--explain"),
        ("inspect", lake / "out", *keyring),
        ("probe", lake / "out", "email", "nobody", *keyring),
    ):
        ours, theirs = os.pipe()
        os.close(ours)
        command = [*COMMAND, *map(str, verb)]
        done = subprocess.run(
            command, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False
        )
        os.close(theirs)
        assert (done.returncode, done.stderr) == (141, ""), verb
