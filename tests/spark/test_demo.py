"""The demo as a newcomer sees it: in a terminal of 80 columns, from start to end."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError
from secure_bloom.spark.demo import run_demo
from testing.spark.cluster import POLICY
from tests.pages import Session, blocks

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark_installed")]

COLUMNS = 80
ROWS = 6000
DEMO = [sys.executable, "-m", "secure_bloom", "demo"]
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a run printed: as it came, and the text alone, line by line."""

    folder: Path
    code: int
    raw: str

    @property
    def lines(self) -> list[str]:
        text = self.raw.replace("\x1b[2K", "\n").replace("\r", "\n")
        return [line.rstrip() for line in _ESCAPES.sub("", text).split("\n") if line.strip()]


def run_in_terminal(command: list[str], columns: int) -> tuple[int, str]:
    """Exit code and output of a command whose three standard files are a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        environment.pop(name, None)
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        output = b""
        while chunk := _read(ours):
            output += chunk
    os.close(ours)
    return process.returncode, output.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # Linux's way to say that nobody has the other end open any more
        return b""


@pytest.fixture(scope="module")
def run(spark_installed: None, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("demo") / "a folder"
    code, raw = run_in_terminal([*DEMO, str(folder), "--rows", str(ROWS)], COLUMNS)
    return Run(folder=folder, code=code, raw=raw)


def test_the_demo_ends_with_a_table_of_lookups(run: Run) -> None:
    assert run.code == 0, run.raw
    start = next(i for i, line in enumerate(run.lines) if "rows scanned" in line)
    header, _rule, *rows = run.lines[start : start + 6]
    assert re.split(r"\s{2,}", header.strip()) == [
        "e-mail",
        "filters",
        "rows found",
        "row groups read",
        "rows scanned",
        "seconds",
    ]
    cells = [re.split(r"\s{2,}", row.strip())[:-1] for row in rows]
    groups = len(
        [g for f in sb.inspect(run.folder / "customers", keys=_keys()).files for g in f.row_groups]
    )
    assert cells == [
        ["present", "not used", "1", f"{groups} of {groups}", f"{ROWS:,}"],
        ["present", "used", "1", f"1 of {groups}", f"{ROWS // groups:,}"],
        ["absent", "not used", "0", f"{groups} of {groups}", f"{ROWS:,}"],
        ["absent", "used", "0", f"0 of {groups}", "0"],
    ]


def _keys() -> sb.KmsClient:
    return sb.KeyPolicy.load(POLICY).kms_client()


def test_every_line_but_the_commands_fits_the_terminal(run: Run) -> None:
    commands = [i for i, line in enumerate(run.lines) if line.startswith("The table and its keys")]
    assert all(len(line) <= COLUMNS for line in run.lines[: commands[0]])
    assert "…" not in run.raw


def test_progress_is_seen_and_gone_in_the_end(run: Run) -> None:
    bars = [line for line in run.lines if "adding filters on the executors" in line]
    assert any(re.search(r"━ \d/8$", line) for line in bars)
    assert re.search(r"• 32 Bloom filters added", "\n".join(run.lines))


def test_spark_keeps_its_own_talk_in_a_log(run: Run) -> None:
    assert not re.search(r"WARN|log4j|incubator|jdk\.|Spark's default", run.raw)
    assert "log4j" in (run.folder / "spark.log").read_text()


def test_no_key_is_printed_or_logged(run: Run) -> None:
    keyring = json.loads((run.folder / "keys" / "dev-keyring.json").read_text())
    log = (run.folder / "spark.log").read_text()
    for text in keyring["master_keys"].values():
        for form in (text, base64.b64decode(text).hex()):
            assert form not in run.raw
            assert form not in log
    # A key of 16 bytes in base64, or in hexadecimal digits.
    assert not re.search(r"[A-Za-z0-9+/]{22}==|\b[0-9a-f]{32}\b", run.raw)


def test_the_keyring_is_for_its_owner_alone(run: Run) -> None:
    assert (run.folder / "keys" / "dev-keyring.json").stat().st_mode & 0o077 == 0


def test_the_commands_it_ends_with_work(run: Run) -> None:
    cd, inspect, probe = (line.strip() for line in run.lines[-3:])
    assert cd == f"cd {shlex.quote(str(run.folder))}"
    # Where the program is on PATH its bare name is printed; tests may run without it.
    answers = [
        subprocess.run(
            f"{cd} && {command}", shell=True, capture_output=True, text=True, check=False
        )
        for command in (inspect, probe)
    ]
    assert [answer.returncode for answer in answers] == [0, 0]
    assert "encrypted footer" in answers[0].stdout
    assert answers[1].stderr == ""


def test_the_commands_of_the_readme_work(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(run.folder, tmp_path / "my-demo")
    monkeypatch.chdir(tmp_path)
    [block] = [block for block in blocks("../README.md") if "cd my-demo" in block.text]
    Session().do(block)


def test_a_folder_that_holds_something_is_refused_and_left(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    done = subprocess.run([*DEMO, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "new or empty folder" in done.stderr
    assert str(tmp_path) in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_too_few_rows_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="do not fill"):
        run_demo(tmp_path / "new", 3)
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_off_a_terminal_the_output_is_plain_text(tmp_path: Path) -> None:
    done = subprocess.run(
        [*DEMO, str(tmp_path), "--rows", "100"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stderr.strip() == ""
    assert "\x1b" not in done.stdout
    assert "1 of 8" in done.stdout
