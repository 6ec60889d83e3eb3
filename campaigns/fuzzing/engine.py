"""All targets in slices, each slice in a process whose death is a finding too, one a core."""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from campaigns import ROOT
from campaigns.fuzzing.child import is_sanitized
from campaigns.fuzzing.targets import TARGETS
from campaigns.outcome import Outcome
from campaigns.pieces import PROCESSES, Progress
from campaigns.reliability import commit

#: So many slices has a large run; a smaller one, and one that learns as it goes, has one a target.
_SLICES, _WHOLE = 4, 1_000_000
#: Each target gets this part of the inputs at least, however much an input costs; of ten million
#: they are 100,000.  The rest is shared so that each target gets the same time of the processor.
_LEAST = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """So many inputs of one target, drawn from one seed, at one commit."""

    target: str
    seed: int
    trials: int
    by_coverage: bool
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a slice came to."""

    trials: int
    failures: Sequence[str]
    memory: int


def fuzz(
    trials: int,
    seed: int,
    *,
    by_coverage: bool = False,
    journal: str | None = None,
    words: Sequence[str] = (),
) -> Outcome:
    """So many inputs, shared among the targets; a run that is stopped tells what it has done.

    With ``words`` only targets whose names begin with one of them get inputs.
    With a ``journal`` the next run of the same commit goes on where this one was stopped.
    """
    kept = None if journal is None else Path(journal)
    done: dict[Slice, Found] = {} if kept is None else _read(kept)
    every = slices(trials, seed, by_coverage=by_coverage, words=words)
    left = [it for it in every if it not in done]
    progress = Progress("coverage_fuzz" if by_coverage else "mutation_fuzz", of=len(left))
    with contextlib.suppress(KeyboardInterrupt):
        for piece, found in _run_all(left):
            done[piece] = found
            progress.add(found.trials, len(found.failures))
            if kept is not None:
                with kept.open("a") as file:
                    file.write(json.dumps({**asdict(piece), "found": asdict(found)}) + "\n")
    counted = [done[it] for it in every if it in done]
    names = dict.fromkeys(it.target.replace("_", " ") for it in every)
    return _outcome(counted, by_coverage, tuple(names), left=len(every) - len(counted))


def slices(trials: int, seed: int, *, by_coverage: bool, words: Sequence[str] = ()) -> list[Slice]:
    """All slices of a run, in an order in which each target gets its share of any part of it."""
    count = _SLICES if trials > _WHOLE else 1
    at = commit()
    chosen = {it: TARGETS[it] for it in TARGETS if it.startswith(tuple(words) or "")}
    speed = sum(1 / target.microseconds for target in chosen.values())
    rest = trials * max(0, 1 - _LEAST * len(chosen))
    return [
        Slice(
            target=name,
            seed=seed * _SLICES + number,
            trials=max(
                10, math.ceil((_LEAST * trials + rest / speed / target.microseconds) / count)
            ),
            by_coverage=by_coverage,
            commit=at,
        )
        for number in range(count)
        for name, target in chosen.items()
    ]


def _outcome(
    counted: Sequence[Found], by_coverage: bool, names: Sequence[str], left: int
) -> Outcome:
    stopped = f"; stopped with {left} slices left" if left else ""
    by = " by ASan and UBSan" if is_sanitized() else ""
    memory = max((found.memory for found in counted), default=0)
    return Outcome(
        tried=f"{'Inputs chosen by coverage' if by_coverage else 'Mutated inputs'} of "
        f"{len(names)} kinds ({', '.join(names)}): named "
        f"errors only, no hang over 5 s, bounds of kernels checked{by}, at most {memory >> 20} MiB"
        f"{stopped}",
        trials=sum(found.trials for found in counted),
        failures=tuple(failure for found in counted for failure in found.failures),
    )


def _read(journal: Path) -> dict[Slice, Found]:
    lines = journal.read_text().splitlines() if journal.exists() else []
    rows = [json.loads(line) for line in lines]
    return {Slice(**row): Found(**found) for row in rows for found in [row.pop("found")]}


def _run_all(pieces: Sequence[Slice]) -> Iterator[tuple[Slice, Found]]:
    """Each with what it came to, in the order in which they end."""
    stop = threading.Event()
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(PROCESSES) as executor,
    ):
        running = {executor.submit(_run, it, folder, stop): it for it in pieces}
        try:
            for done in as_completed(running):
                found = done.result()
                if found is not None:
                    yield running[done], found
        finally:
            stop.set()
            executor.shutdown(cancel_futures=True)


def _run(piece: Slice, folder: str, stop: threading.Event) -> Found | None:
    """None where the run was stopped before, or with it."""
    if stop.is_set():
        return None
    numbers = [str(piece.trials), str(piece.seed)]
    arguments = [piece.target, *numbers, *(["--coverage"] if piece.by_coverage else [])]
    with tempfile.TemporaryDirectory(dir=folder) as corpus:
        environment = {**os.environ, "PYTHONWARNINGS": "ignore", "FUZZ_CORPUS": corpus}
        done = subprocess.run(
            [sys.executable, "-m", "campaigns.fuzzing.child", *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    try:
        return Found(**json.loads(done.stdout.strip().splitlines()[-1]))
    except (ValueError, IndexError):
        # Whoever stops the run by Ctrl-C stops its processes too.
        if stop.is_set() or "KeyboardInterrupt" in done.stderr:
            return None
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        told = f"{piece.target}: the process ended by itself: {last[0]} (seed {piece.seed})"
        return Found(trials=0, failures=[told], memory=0)
