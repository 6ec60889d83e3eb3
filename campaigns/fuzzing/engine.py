"""All targets one after the other, each in a process whose death is a finding too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from campaigns import ROOT
from campaigns.fuzzing.targets import TARGETS
from campaigns.outcome import Outcome

#: Kernels check their bounds, and are compiled for that into a place of their own.
_CHECKED = {"NUMBA_BOUNDSCHECK": "1", "PYTHONWARNINGS": "ignore"}


def fuzz(trials: int, seed: int, *, by_coverage: bool = False) -> Outcome:
    """So many inputs, shared among the targets."""
    done, failures, memory = 0, list[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        for name, target in TARGETS.items():
            found = _run(name, max(10, round(trials * target.share)), seed, folder, by_coverage)
            done += found["trials"]
            failures += found["failures"]
            memory = max(memory, found["memory"])
            print(f"{name}: {found['trials']:,} inputs", file=sys.stderr)
    return Outcome(
        tried=f"{'Inputs chosen by coverage' if by_coverage else 'Mutated inputs'} of "
        f"{len(TARGETS)} kinds ({', '.join(name.replace('_', ' ') for name in TARGETS)}): named "
        f"errors only, no hang over 5 s, bounds of kernels checked, at most {memory >> 20} MiB",
        trials=done,
        failures=tuple(failures),
    )


def _run(name: str, trials: int, seed: int, folder: str, by_coverage: bool) -> dict[str, Any]:
    arguments = [name, str(trials), str(seed), *(["--coverage"] if by_coverage else [])]
    with tempfile.TemporaryDirectory(dir=folder) as corpus:
        environment = {**os.environ, **_CHECKED, "NUMBA_CACHE_DIR": folder, "FUZZ_CORPUS": corpus}
        done = subprocess.run(
            [sys.executable, "-m", "campaigns.fuzzing.child", *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    try:
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        told = f"{name}: the process ended by itself: {last[0]} (seed {seed})"
        return {"trials": 0, "failures": [told], "memory": 0}
    return found
