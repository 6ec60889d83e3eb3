"""Names from files, paths and keys neither drive a terminal nor command a CI runner.

Every verb runs over files, columns, keys and folders with hostile names, and what it printed is
looked at as bytes.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import pty
import re
import subprocess
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.cli import main
from secure_bloom.cli.verbs import _VERBS
from secure_bloom.encryption.policy_tables import toml_string
from testing.command_line import COMMAND, run

#: A title, an 8-bit escape, a turned direction, lines of their own, and commands of CI runners.
EVIL = (
    "\x1b]0;owned\x07",
    "\x9b31mred",
    "a\u202eb",
    "two\n::error file=x,line=1::lines",
    "::warning::x",
    "##vso[task.setvariable variable=x]y",
    "##[error]x",
    "back\rover",
    "del\x7f",
)
#: The longest ones are together in one name, of a folder, a file and a key.
NAME = "::error ::" + "".join(EVIL[:3]) + "##[group]\r\n::stop-commands::x"
COMMAND_TO_RUNNER = re.compile(r"::[A-Za-z]|##[\w.-]*\[")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a hostile name, with plain files, a policy and a keyring of hostile names."""
    root = tmp_path_factory.mktemp("hostile")
    folder = root / NAME
    folder.mkdir()
    table = pa.table(
        {"id": range(40)} | {name: [name + str(i) for i in range(40)] for name in EVIL}
    )
    for number in range(1):
        pq.write_table(table, folder / f"{number}{NAME}.parquet", row_group_size=20)
    (root / f"broken{NAME}.parquet").write_bytes(b"PAR1 is not enough")
    keyring = root / f"keyring{NAME}.json"
    names = [NAME, *EVIL]
    keys = {name: base64.b64encode(bytes([n]) * 16).decode() for n, name in enumerate(names)}
    keyring.write_text(json.dumps({"version": 1, "master_keys": keys}))
    keyring.chmod(0o600)
    columns = (f"[columns.{toml_string(n)}]\nkey = {toml_string(n)}\nbloom = true\n" for n in EVIL)
    (root / f"policy{NAME}.toml").write_text(
        f'[kms]\nclient = "keyring"\nkeyring = {toml_string(keyring.name)}\n'
        f"[footer]\nkey = {toml_string(NAME)}\n" + "".join(columns)
    )
    return root


def _scenes(root: Path) -> dict[str, list[list[str]]]:
    """For each verb the command lines to try, in an order in which each finds what it needs."""
    folder, policy = str(root / NAME), str(root / f"policy{NAME}.toml")
    keyring, broken = str(root / f"keyring{NAME}.json"), str(root / f"broken{NAME}.parquet")
    sealed, clear = str(root / f"sealed{NAME}"), str(root / f"clear{NAME}")
    file = str(root / NAME / f"0{NAME}.parquet")
    missing = str(root / f"missing{NAME}")
    column = ["--column", EVIL[3]]
    given = ["--policy", policy]
    return {
        "policy": [["policy", "init", folder], ["policy", "check", policy, "--table", folder]],
        "advise": [
            ["advise", folder],
            ["advise", folder, "--format", "json"],
            ["advise", missing],
            ["advise", folder, "--column", NAME],
        ],
        "reencrypt": [
            ["reencrypt", folder, *given, "--output", sealed],
            ["reencrypt", missing, *given],
        ],
        "add": [
            ["add", folder, *column, "--column", EVIL[4], "--dry-run"],
            ["add", folder, *column, "--column", EVIL[4]],
            ["add", sealed, *given],
            ["add", sealed, *column],
            ["add", broken, *column],
            ["add", folder, "--column", NAME],
        ],
        "probe": [
            ["probe", folder, EVIL[3], NAME, EVIL[0]],
            ["probe", sealed, EVIL[3], EVIL[3] + "7", *given],
            ["probe", folder, NAME, "x"],
            ["probe", broken, EVIL[3], "x"],
        ],
        "read": [
            ["read", sealed, *given, "--where", "id = 7", "--format", "table"],
            ["read", folder, "--where", "id = 7", "--format", "jsonl"],
            ["read", folder, "--where", f"{json.dumps('::warning::x')} = 'x'", "--explain"],
            ["read", folder, "--where", f'"{NAME}" = 1'],
            ["read", sealed, "--where", f"\"{EVIL[4]}\" = '1'", "--explain"],
            ["read", missing],
            ["read", folder, "--columns", f'"{NAME}"'],
        ],
        "sql": [
            ["sql", "select * from t", "--table", f"t={folder}", "--format", "table"],
            ["sql", f"select {json.dumps(NAME)} from t", "--table", f"t={sealed}"],
            ["sql", "select * from t", "--table", f"t={missing}"],
            ["sql", f"select {json.dumps(NAME)}"],
        ],
        "inspect": [
            ["inspect", sealed],
            ["inspect", sealed, *given, "--check"],
            ["inspect", broken],
        ],
        "audit": [
            *(
                ["audit", place, *given, "--format", form]
                for place in (sealed, folder)
                for form in ("text", "json", "sarif", "html")
            ),
            ["audit", root.as_posix(), *given],
            ["audit", missing, *given],
        ],
        "keys": [
            ["keys", "check", *given],
            ["keys", "used", sealed, "-k", keyring],
            ["keys", "used", broken],
            ["keys", "new", str(root / f"new{NAME}.json"), *given],
        ],
        "rotate": [
            ["rotate", sealed, *given, "--from", NAME, "--to", EVIL[0], "--dry-run"],
            ["rotate", sealed, *given, "--dry-run"],
        ],
        "decrypt": [
            ["decrypt", sealed, *given, "--output", clear],
            ["decrypt", broken, "--output", clear],
        ],
        "hudi": [
            ["hudi", "add", file, "--column", EVIL[4]],
            ["hudi", "show", file],
            ["hudi", "lookup", file, EVIL[4] + "7", NAME],
        ],
        "paimon": [
            [
                "paimon",
                "build",
                file,
                "--column",
                EVIL[4],
                "--output",
                str(root / f"x{NAME}.index"),
            ],
            ["paimon", "show", str(root / f"x{NAME}.index")],
            ["paimon", "probe", str(root / f"x{NAME}.index"), f"\"{EVIL[4]}\" = 'x'"],
        ],
        "trace": [
            ["trace", folder, "--values-of", f"{folder}:{NAME}"],
            ["trace", sealed, "--values-of", f"{sealed}:{EVIL[4]}", *given],
            ["trace", missing, "--values-of", f"{folder}:{NAME}"],
            ["trace", folder, "--values-of", NAME],
        ],
        "demo": [["demo", str(root / NAME)]],
        "help": [["help", NAME]],
        "completion": [["completion", NAME]],
    }


def test_no_verb_prints_a_name_that_acts(
    lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warnings.showwarning", warnings.showwarning)
    # The demo ends where it looks for Java.
    monkeypatch.setenv("JAVA_HOME", str(lake))
    monkeypatch.setenv("PATH", str(lake))
    scenes = _scenes(lake)
    assert set(scenes) == set(_VERBS)
    failures = []
    for lines in scenes.values():
        for line in lines:
            for more in (["-v"], ["--json"]):
                if more == ["--json"] and line[0] in ("policy", "help", "completion", "demo"):
                    continue
                with pytest.raises(SystemExit):
                    main([*line, *more])
                done = capsys.readouterr()
                for stream, text in (("stdout", done.out), ("stderr", done.err)):
                    found = _acting(text)
                    if found:
                        failures.append((*line[:2], *more, stream, found))
    assert failures == []


def _acting(text: str) -> str | None:
    """Return the first part of an output that would act, with what is around it."""
    for place, char in enumerate(text):
        if not char.isprintable() and char != "\n":
            return repr(text[max(0, place - 40) : place + 20])
    command = COMMAND_TO_RUNNER.search(text)
    return command and repr(text[max(0, command.start() - 40) : command.end() + 20])


def test_a_terminal_gets_no_name_of_csv_that_acts_and_a_program_gets_it_exactly(lake: Path) -> None:
    folder = str(lake / NAME)
    words = ["read", folder, "--where", "id = 7", "--format", "csv"]
    piped = run(*words).stdout
    rows = list(csv.reader(io.StringIO(piped, newline="")))
    assert rows[0] == ["id", *EVIL]
    assert rows[1] == ["7", *(f"{name}7" for name in EVIL)]
    for form in ("csv", "table", "jsonl"):
        shown = _on_terminal([*words[:-1], form])
        # Colours of a table are the program's own.
        assert _acting(re.sub(r"\x1b\[[0-9;]*m", "", shown)) is None
        assert "owned" in shown


def _on_terminal(words: list[str]) -> str:
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        process = subprocess.Popen([*COMMAND, *words], stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = b""
        # The last program that has the terminal open is gone: EIO.
        try:
            while part := terminal.read(65536):
                shown += part
        except OSError:
            pass
        process.wait()
    return shown.decode().replace("\r\n", "\n")
