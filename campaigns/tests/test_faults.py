"""Short runs of the campaigns against writing, and that they see what they look for."""

from __future__ import annotations

import errno
import itertools
import os
import random
from pathlib import Path
from unittest import mock

import pytest

from campaigns import concurrent_runs, power_loss, random_kills, system_calls
from campaigns.disk_model import PAGE, FileState
from campaigns.outcome import Effort
from campaigns.preload import compiler
from campaigns.scenes import Scene, Told, same_nonces, scenes
from secure_bloom.errors import SecureBloomError
from secure_bloom.storage import append, open_folder
from secure_bloom.storage.durable_writes import write_all
from testing.interleaving import play_inside

QUICK = Effort(quick=True)


@pytest.mark.skipif(compiler() is None, reason="a C compiler is needed")
def test_a_failing_system_call_leaves_the_old_file_or_the_new_one() -> None:
    outcome = system_calls.run(QUICK)
    assert outcome.failures == ()
    assert outcome.trials > 60


# At each system call the test above kills, too.
@pytest.mark.slow
def test_a_kill_at_a_random_moment_leaves_the_old_file_or_the_new_one() -> None:
    outcome = random_kills.run(QUICK)
    assert outcome.failures == ()
    assert outcome.trials >= 30


def test_a_power_cut_leaves_an_error_or_the_right_rows() -> None:
    outcome = power_loss.run(QUICK)
    assert outcome.failures == ()
    assert outcome.trials > 150


def test_a_file_opens_whatever_runs_at_the_same_time_do() -> None:
    outcome = concurrent_runs.run(QUICK)
    assert outcome.failures == ()
    assert outcome.trials >= 30


REMOVES, REPLACES = concurrent_runs.OTHERS
PAUSED = [
    ("plain", "reencrypt outside", "add"),
    ("outside", "reencrypt outside anew", "rotate"),
    ("outside", "reencrypt outside --output", "reencrypt outside --output"),
    ("inside", "add --in-place", REMOVES),
    ("outside", "rotate", REPLACES),
]
PAUSED_TOO = [
    ("plain", "reencrypt outside", "reencrypt outside anew"),
    ("outside", "rotate", "reencrypt outside anew"),
    ("outside", "reencrypt", "reencrypt outside anew"),
    ("inside", "add", REMOVES),
    ("outside", "reencrypt outside anew", REMOVES),
]


@pytest.mark.parametrize(
    ("start", "outer", "inner"),
    [*PAUSED, *(pytest.param(*case, marks=pytest.mark.slow) for case in PAUSED_TOO)],
)
def test_a_run_that_is_paused_at_any_step_loses_no_key(
    start: str, outer: str, inner: str, tmp_path: Path, quick: bool
) -> None:
    # `make test-all` pauses at the other steps, too, and `make faults` at any by chance.
    every = 2 if quick else 1
    found = paused_at_each_step(concurrent_runs.Lake(tmp_path), start, outer, inner, every)
    assert [wrong for wrong in found if wrong is not None] == []
    assert len(found) * every > 5


def paused_at_each_step(
    lake: concurrent_runs.Lake, start: str, outer: str, inner: str, every: int = 1
) -> list[str | None]:
    """What is wrong after the outer run was paused for the inner one after 0, 1, 2... steps.

    Of these steps, ``every`` means all, or each second one.
    """
    found = []
    for at in itertools.count(step=every):
        lake.prepare(lake.starts[start])
        with concurrent_runs.stepping():
            runs = play_inside(lake.work(outer), lake.work(inner), at)
        # A file that is removed before the first step is an error of the run, which is named.
        assert all(isinstance(run.error, SecureBloomError | None) for run in runs)
        others = concurrent_runs.done_by_others(runs)
        found.append(lake.wrong(is_killed=False, others=others))
        if len(runs[0].steps) < at:
            break
    return found


def test_rounds_see_a_file_that_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where names cannot be exchanged."""

    def cannot_exchange(*_: object) -> None:
        raise OSError(errno.ENOSYS, "no")

    monkeypatch.setattr(open_folder, "exchange_names", cannot_exchange)
    lake = concurrent_runs.Lake(tmp_path)
    assert "the file came back" in paused_at_each_step(lake, "inside", "add", REMOVES)
    assert "x.parquet has other rows" in paused_at_each_step(lake, "inside", "add", REPLACES)


def test_the_model_sees_filters_that_a_power_cut_lost(tmp_path: Path) -> None:
    """As when filters and footer were written together and synced once."""

    def write_and_sync_once(fd: int, tail: list[bytes], offset: int) -> None:
        write_all(fd, tail, offset)
        os.fsync(fd)

    with same_nonces(), mock.patch.object(append, "_write_in_steps", write_and_sync_once):
        every = {scene.name: scene for scene in scenes(tmp_path, rows=200)}
        scene = every["add --in-place, no O_DIRECT"]
        judge = power_loss.Judge(scene, tmp_path, random.Random(0), quick=True)
        with scene.setting():
            judge.record(tmp_path / "scene")
    assert any("by its filter" in failure or "mend" in failure for failure in judge.failures)


def test_pages_that_were_not_synced_are_old_new_or_lost() -> None:
    old, new = b"o" * PAGE, b"n" * PAGE
    file = FileState(synced=old, current=old)
    file.write(PAGE, new)
    found = set(file.after_a_power_cut(random.Random(0), samples=5))
    assert found == {old, old + new, old + bytes(PAGE), old + b"\xaa" * PAGE}
    file.sync()
    assert set(file.after_a_power_cut(random.Random(0), samples=5)) == {old + new}


OLD, NEW = (b"old", 0o640), (b"new", 0o640)
SCENE = Scene(name="s", run=lambda _: Told(status="done"), start={"x": OLD}, end={"x": NEW})


@pytest.mark.parametrize(
    ("content", "name", "told", "wrong"),
    [
        (b"old", "", Told(status="failed"), None),
        (b"new", "", Told(status="done"), None),
        (b"new", "", None, None),
        (b"ne", "", None, "neither the old file nor the new one"),
        (b"old", "", Told(status="done"), "said that it was done"),
        (b"new", "", Told(status="failed"), "said that it failed"),
        (b"new", "", Told(status="unfinished"), None),
        (b"old", "", Told(status="unforeseen"), "unforeseen"),
        (b"old", ".x.secure-bloom", None, None),
        (b"old", ".x.secure-bloom", Told(status="failed"), "neither"),
        (b"new", ".x.crc", None, "stale"),
    ],
)
def test_what_counts_as_broken(
    tmp_path: Path, content: bytes, name: str, told: Told | None, wrong: str | None
) -> None:
    start = {"x": OLD, ".x.crc": (b"crc", 0o640)} if name == ".x.crc" else {"x": OLD}
    scene = Scene(name="s", run=SCENE.run, start=start, end={"x": NEW})
    (tmp_path / "x").write_bytes(content)
    (tmp_path / "x").chmod(0o640)
    if name:
        (tmp_path / name).write_bytes(b"crc")
        (tmp_path / name).chmod(0o640)
    found = scene.wrong(tmp_path, told)
    assert (found is None) if wrong is None else (wrong in str(found))
