"""Files of a run in other processes: same reports, same bytes, nothing lost, no key to be seen."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import secure_bloom as sb
from secure_bloom.adding.report import AddReport, FileAddReport
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.running.ordered_pool import AT_ONCE
from testing.project import ROOT
from testing.surgery import filter_of
from testing.tables import KEYRING, SECRETS, Mode, customers, keyring_json, write
from testing.waiting import eventually
from tests.adding.worker_kms import DeadlyKms, LockedKms, WorkerKms

#: Far longer than anything here takes: a test that would hang fails.
_PATIENCE = 120.0
NEEDS_PROC = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="the system has no /proc"
)


def _lake(folder: Path, files: int, mode: Mode = Mode.ENCRYPTED) -> Path:
    folder.mkdir()
    first = write(folder / "000.parquet", customers(20), mode)
    for i in range(1, files):
        shutil.copyfile(first, folder / f"{i:03}.parquet")
    return folder


def _add(folder: Path, **options: Any) -> AddReport:
    return sb.add_bloom_filters(folder, columns=["email", "id"], **{"keys": KEYRING, **options})


def _told(report: AddReport, folder: Path) -> list[FileAddReport]:
    """The files of a report, without what depends on the clock and on the folder."""
    return [
        replace(
            file,
            seconds=0,
            path=Path(file.path).name,
            error=file.error and file.error.removeprefix(str(folder)),
        )
        for file in report.files
    ]


@pytest.mark.parametrize(
    "mode",
    [pytest.param(Mode.PLAIN, marks=pytest.mark.slow), Mode.ENCRYPTED],
    ids=lambda mode: mode.name,
)
def test_two_processes_do_what_one_does(tmp_path: Path, mode: Mode) -> None:
    one, two = (_lake(tmp_path / name, 12, mode) for name in ("one", "two"))
    for folder in (one, two):
        (folder / "003.parquet").write_bytes(b"PAR1 no file PAR1")
    alone, shared = _add(one, jobs=1), _add(two, jobs=2)
    assert _told(alone, one) == _told(shared, two)
    assert [file.status for file in shared.files].count("failed") == 1
    assert shared.failed[0].path == str(two / "003.parquet")
    for path in sorted(one.iterdir()):
        other = (two / path.name).read_bytes()
        assert len(other) == path.stat().st_size
        # Encrypted modules differ by their nonces.
        assert mode is Mode.ENCRYPTED or other == path.read_bytes()
    assert filter_of(two / "000.parquet", 0, "email").check(b"user1@example.com")
    assert {file.status for file in _add(two, jobs=2).files} == {"unchanged", "failed"}


def test_a_dry_run_of_one_file_starts_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: threading.Thread) -> None:
        pytest.fail("a thread was started")

    monkeypatch.setattr(threading.Thread, "start", start)
    path = write(tmp_path / "x.parquet", customers(20))
    content = path.read_bytes()
    report = sb.add_bloom_filters(path, columns=["email"], dry_run=True)
    assert [file.status for file in report.files] == ["added"]
    assert path.read_bytes() == content


def test_outputs_dry_runs_and_progress_are_as_in_one_process(tmp_path: Path) -> None:
    lake, seen = _lake(tmp_path / "lake", 8), list[tuple[int, int]]()
    before = [path.read_bytes() for path in sorted(lake.iterdir())]
    dry = _add(lake, jobs=2, dry_run=True)
    report = _add(lake, jobs=2, output=tmp_path / "new", progress=lambda *step: seen.append(step))
    assert [path.read_bytes() for path in sorted(lake.iterdir())] == before
    assert [file.bytes_after for file in dry.files] == [
        (tmp_path / "new" / path.name).stat().st_size for path in sorted(lake.iterdir())
    ]
    assert report.failed == ()
    assert seen[0] == (0, 16)
    assert seen[-1] == (16, 16)
    assert seen == sorted(seen)


def test_a_client_of_the_callers_goes_to_the_workers_and_is_asked_once_a_key(
    tmp_path: Path,
) -> None:
    _add(_lake(tmp_path / "lake", 20), keys=WorkerKms(str(tmp_path)), jobs=2)
    seen = list(tmp_path.glob("*.seen"))
    assert 1 <= len(seen) <= 2
    # A footer and a column key, both under keys that all files share.
    calls = (tmp_path / "calls").read_text().split()
    assert all(calls.count(path.stem) <= 2 * AT_ONCE for path in seen)


def test_a_client_that_cannot_be_pickled_is_asked_here(tmp_path: Path) -> None:
    report = _add(_lake(tmp_path / "lake", 6), keys=LockedKms(str(tmp_path)), jobs=2)
    assert {file.status for file in report.files} == {"added"}
    assert list(tmp_path.glob("*.seen")) == []


def test_a_killed_worker_fails_the_files_it_had_and_no_others(tmp_path: Path) -> None:
    lake = _lake(tmp_path / "lake", 30)
    report = _add(lake, keys=DeadlyKms(str(tmp_path)), jobs=2)
    assert 1 <= len(report.failed) <= AT_ONCE
    for file in report.failed:
        assert "has died (SIGKILL)" in str(file.error)
        assert str(file.error).startswith(file.path)
    assert sorted(path.name for path in lake.iterdir()) == [f"{i:03}.parquet" for i in range(30)]
    again = _add(lake, jobs=2)
    assert again.failed == ()
    assert {file.status for file in again.files} == {"added", "unchanged"}


def test_in_place_a_killed_worker_leaves_nothing_that_another_run_cannot_mend(
    tmp_path: Path,
) -> None:
    lake = _lake(tmp_path / "lake", 10)
    _add(lake, keys=DeadlyKms(str(tmp_path)), jobs=2, in_place=True)
    assert _add(lake, jobs=2, in_place=True).failed == ()


@NEEDS_PROC
def test_no_key_is_on_a_command_line_or_in_an_environment(tmp_path: Path) -> None:
    _add(_lake(tmp_path / "lake", 8), keys=WorkerKms(str(tmp_path)), jobs=2)
    seen = [path.read_bytes() for path in tmp_path.glob("*.seen")]
    assert seen
    for told in seen:
        assert b"PATH=" in told
        assert not any(secret.encode() in told for secret in SECRETS)


SCRIPT = """
import sys
import secure_bloom as sb
from secure_bloom.running import worker_processes
print("begun")
started = worker_processes._started
worker_processes._started = lambda opening: print("worker") or started(opening)
report = sb.add_bloom_filters({lake!r}, columns=["email"], keys={keys}, jobs=2)
print(*sorted(file.status for file in report.files))
"""
OWN_CLIENT = """
class Kms:
    def __init__(self):
        self.keys = sb.Keyring.load({keyring!r})
    def wrap_key(self, key, name): return self.keys.wrap_key(key, name)
    def unwrap_key(self, key, name): return self.keys.unwrap_key(key, name)
"""


@pytest.mark.parametrize(
    "own_client",
    [
        pytest.param(False, id="keyring", marks=pytest.mark.slow),
        pytest.param(True, id="a class of the script"),
    ],
)
def test_a_script_without_a_guard_is_run_once(tmp_path: Path, own_client: bool) -> None:
    lake, keyring = _lake(tmp_path / "lake", 4), tmp_path / "keyring.json"
    keyring.write_text(keyring_json())
    keyring.chmod(0o600)
    keys = "Kms()" if own_client else f"sb.Keyring.load({str(keyring)!r})"
    client = OWN_CLIENT.format(keyring=str(keyring)) if own_client else ""
    script = SCRIPT.format(lake=str(lake), keys=keys).replace(
        'print("begun")', client + 'print("begun")'
    )
    done = subprocess.run(
        [sys.executable, "-"], input=script, capture_output=True, text=True, cwd=ROOT
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["begun", "worker", "worker", *["added"] * 4]


@pytest.fixture
def waiting_run(tmp_path: Path) -> Any:
    """``add --jobs 2`` of which every worker waits for its first key."""
    lake, policy = _lake(tmp_path / "lake", 40), tmp_path / "policy.toml"
    policy.write_text(
        f'[kms]\nclient = "tests.adding.worker_kms:WaitingKms"\nfolder = "{tmp_path}"\n'
        '[footer]\nkey = "k_footer"\n[columns.email]\nkey = "k_pii"\nbloom = true\n'
    )
    KeyPolicy.load(policy)
    command = [sys.executable, "-m", "secure_bloom", "add", str(lake), "--policy", str(policy)]
    run = subprocess.Popen(
        [*command, "--jobs", "2"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    try:
        assert eventually(lambda: len(list(tmp_path.glob("*.seen"))) == 2 or run.poll() is not None)
        yield run, lake
    finally:
        # Its workers too: one that still waits would hold the pipe open for ever.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.communicate()


def _sockets(pid: int) -> set[str]:
    """The sockets that a process has open; none of one that has ended."""
    found = set()
    with contextlib.suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.add(os.readlink(descriptor))  # noqa: PTH115
    return {name for name in found if name.startswith("socket:")}


def _is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    # One that nobody waits for any more is a zombie until the system's first process does.
    return status.rpartition(")")[2].split()[0] != "Z"


@NEEDS_PROC
@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_when_a_run_ends_its_workers_finish_their_files_and_end(
    waiting_run: tuple[subprocess.Popen[str], Path], tmp_path: Path, blow: signal.Signals
) -> None:
    run, lake = waiting_run
    before = {path: path.read_bytes() for path in lake.iterdir()}
    workers = [int(path.stem) for path in tmp_path.glob("*.seen")]
    talks = _sockets(run.pid)
    # The whole group, as Ctrl-C on a terminal.
    os.killpg(run.pid, blow)
    # Not before nobody talks to the workers: they would get more files.  A thread that is not dead
    # yet keeps the sockets of a killed process open, although none is listed any more.
    if blow is signal.SIGKILL:
        run.wait(timeout=_PATIENCE)
    assert eventually(lambda: not talks & _sockets(run.pid))
    (tmp_path / "go").touch()
    _, said = run.communicate(timeout=_PATIENCE)
    assert eventually(lambda: not any(map(_is_alive, workers)))
    if blow is signal.SIGINT:
        assert run.returncode == 130
        assert said.strip().count("\n") == 0
        assert "interrupted; finished files keep their changes" in said
    assert {path: path.read_bytes() for path in lake.iterdir()}.keys() == before.keys()
    changed = [path for path, content in before.items() if path.read_bytes() != content]
    assert len(changed) <= 2 * AT_ONCE
    for path in changed:
        assert filter_of(path, 0, "email").byte_count > 0
