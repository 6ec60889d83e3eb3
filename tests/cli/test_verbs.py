"""The command line as its users meet it: a process, its exit code, stdout and stderr."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.cli.verbs import Verbs, cli
from secure_bloom.encryption.kms import Keyring
from testing import tables
from testing.command_line import COMMAND, run
from tests.cli.conftest import assert_clean, assert_error


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
        ["--in-place", "--output"],
    ),
    (("probe", "{out}", "email"), ["VALUE"]),
    (("probe", "{out}", "id", "many", "--keyring", "{keyring}"), ["whole number", "id"]),
    (("inspect",), ["PATH"]),
    (("inspect", "{policy}"), ["policy.toml", "not a Parquet file"]),
    (("fly",), ["fly"]),
    (("add", "--fast"), ["--fast"]),
    (("add", "x", "--since"), ["--since", "see secure-bloom add --help"]),
    (("add", "x", "--since", "2026-11-20"), ["is not a whole number", "history()", "--where"]),
    (("read", "x", "--version", "2026-11-20"), ["is not a whole number", "--timestamp"]),
    (("paimon", "build", "x", "--since", "1d"), ["is not a whole number", "history()"]),
    (("paimon", "build", "x", "--since"), ["--since", "see secure-bloom paimon build --help"]),
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

    monkeypatch.setattr("secure_bloom.api.inspect.inspect", explode)
    with pytest.raises(SystemExit) as caught:
        main(["inspect", "anything"])
    assert caught.value.code == 2
    shown = capsys.readouterr().err
    assert "RuntimeError" in shown
    assert "alice" not in shown


def test_keyring_of_the_tests_is_one_that_loads(lake: Path) -> None:
    assert Keyring.load(lake / "keyring.json").has_key("k_pii")


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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("path", ["f.parquet", "missing.parquet"])
def test_a_full_disk_behind_stdout_is_an_error_in_one_line(tmp_path: Path, path: str) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "f.parquet")
    command = [*COMMAND, "inspect", str(tmp_path / path), "--json"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    first, *hints = done.stderr.splitlines()
    assert first.startswith("secure-bloom: error: ")
    assert all(line.startswith("secure-bloom: hint: ") for line in hints)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_a_lost_report_of_a_verb_that_writes_says_that_the_files_are_done(
    tmp_path: Path, form: list[str]
) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "f.parquet")
    before = (tmp_path / "f.parquet").read_bytes()
    command = [*COMMAND, "add", str(tmp_path), "--column", "id", *form]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    lost = "all is done, but the report cannot be written: No space left on device"
    assert done.stderr.splitlines() == [
        f"secure-bloom: error: {lost}",
        "secure-bloom: hint: run again for a report: finished files are left as they are",
    ]
    assert (tmp_path / "f.parquet").read_bytes() != before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("verb", "end"),
    [
        (["probe", "missing.parquet", "id", "1"], "full"),
        (["audit", "."], "gone"),
        (["add", ".", "--column", "id"], "gone"),
    ],
    ids=["probe", "audit", "add"],
)
def test_an_error_that_stderr_does_not_take_keeps_its_exit_code(
    tmp_path: Path, verb: list[str], end: str
) -> None:
    """Code 1 would say that the value is absent, or that the audit found something."""
    pq.write_table(pa.table({"id": [1]}), tmp_path / "f.parquet")
    before = (tmp_path / "f.parquet").read_bytes()
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1" * 8)
    ours, theirs = os.pipe()
    os.close(ours)
    with open(theirs, "wb") as gone, Path("/dev/full").open("wb") as full:  # noqa: PTH123
        done = subprocess.run(
            [*COMMAND, *verb],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=full if end == "full" else gone,
            check=False,
        )
    assert done.returncode == 2
    assert ((tmp_path / "f.parquet").read_bytes() != before) == (verb[0] == "add")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_waits_for_a_pipe_that_is_full_and_does_not_wait(
    tmp_path: Path, stream: str
) -> None:
    """Other programs at the same pipe or terminal make it one that does not wait."""
    pq.write_table(pa.table({"id": [1]}), tmp_path / "f.parquet")
    path = tmp_path / ("f.parquet" if stream == "stdout" else "missing.parquet")
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    filled = os.write(theirs, bytes(1 << 20))
    command = [*COMMAND, "inspect", str(path)]
    with subprocess.Popen(command, **{stream: theirs}) as process:
        os.close(theirs)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        with open(ours, "rb") as reader:  # noqa: PTH123
            text = reader.read()[filled:].decode()
    assert process.returncode == (0 if stream == "stdout" else 2)
    assert path.name in text


@pytest.mark.parametrize(
    ("encoding", "verb"),
    [
        ("ascii", ["add", "--column", "id", "--color", "always"]),
        ("latin-1", ["add", "--column", "id"]),
        ("latin-1", ["advise"]),
    ],
    ids=["colors", "add", "advise"],
)
def test_a_name_that_the_encoding_of_stdout_lacks_loses_no_report(
    tmp_path: Path, encoding: str, verb: list[str]
) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "\u65e5.parquet")
    done = subprocess.run(
        [*COMMAND, verb[0], str(tmp_path), *verb[1:]],
        cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if verb[0] != "advise":
        assert "\u65e5".encode() in done.stdout or b"\\u65e5" in done.stdout


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


def test_no_argument_shows_the_help() -> None:
    done = run()
    assert done.returncode == 0
    assert "add filters, data untouched" in done.stdout
    assert "...\n" not in done.stdout.partition("Commands:")[2]


def test_the_help_of_all_verbs_imports_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Verbs, "get_command", lambda *_: pytest.fail("a verb was imported"))
    assert "\n  audit       Check every file" in cli.get_help(click.Context(cli))


@pytest.mark.parametrize("words", [("add",), ("keys", "used"), ("hudi", "lookup")])
def test_help_of_a_verb_is_its_own(words: tuple[str, ...]) -> None:
    shown = run("help", *words)
    assert shown.returncode == 0
    assert shown.stdout == run(*words, "--help").stdout


def test_an_unknown_verb_is_told() -> None:
    assert_error(run("help", "keys", "usd"), "there is no verb keys usd")
    done = run("audi", "lake")
    assert_error(done, "there is no verb audi")
    assert "secure-bloom: hint: did you mean audit?\n" in done.stderr


def test_what_is_wrong_with_an_argument_reads_like_other_errors() -> None:
    assert_error(run("completion", "tcsh"), "error: invalid value for '{bash|zsh|fish}': 'tcsh'")
    choices = "missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish\n"
    assert_error(run("completion"), choices)
    assert_error(run("keys", "usd"), "no such command 'usd'. Did you mean 'used'?")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes(shell: str) -> None:
    done = run("completion", shell)
    assert done.returncode == 0
    assert "_SECURE_BLOOM_COMPLETE" in done.stdout
    if shutil.which(shell):
        check = subprocess.run([shell, "-n"], input=done.stdout, text=True, capture_output=True)
        assert check.returncode == 0, check.stderr


def test_descriptions_are_whole_when_a_shell_completes() -> None:
    for words in ("", "keys "):
        environment = {
            **os.environ,
            "_SECURE_BLOOM_COMPLETE": "fish_complete",
            "COMP_WORDS": f"secure-bloom {words}",
            "COMP_CWORD": "",
        }
        done = subprocess.run(COMMAND, env=environment, capture_output=True, text=True)
        assert done.stdout.count("\t") >= 3
        assert "..." not in done.stdout
    # Else fish shows a description up to its first comma.
    assert 'string split --max 1 ","' in run("completion", "fish").stdout
