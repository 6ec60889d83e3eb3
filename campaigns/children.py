"""Processes of campaigns: a worker that is a fresh Python, and children that it forks."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from campaigns.outcome import Effort
from campaigns.pieces import Tally
from testing.interleaving import HANG_SECONDS, HangError


def run_worker(module: str, effort: Effort, **environment: str) -> Tally:
    """Run ``python -m module`` with the effort; the tally that is the JSON of its last line."""
    done = subprocess.run(
        [sys.executable, "-m", module, json.dumps(asdict(effort))],
        env={**os.environ, "SECURE_BLOOM_DEBUG": "1", **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Tally.parse(done.stdout.splitlines()[-1])


def in_time(work: Callable[[], Any]) -> Any:
    """Work in this process; HangError when it hangs."""

    def late(*_: object) -> None:
        raise HangError(f"it hangs for {HANG_SECONDS} seconds")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(HANG_SECONDS)
    try:
        return work()
    finally:
        signal.alarm(0)


class Child:
    """A forked process that works and answers in JSON."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._reader, writer = os.pipe()
        self.status = 0
        self._id = os.fork()
        if self._id == 0:
            _work_and_exit(work, writer)
        os.close(writer)

    def answer(self) -> Any:
        """What it answers; None when a signal ended it; HangError when it hangs."""
        answer = b""
        while select.select([self._reader], [], [], HANG_SECONDS)[0]:
            data = os.read(self._reader, 65536)
            if not data:
                self._end()
                return None if os.WIFSIGNALED(self.status) else json.loads(answer)
            answer += data
        self.kill()
        raise HangError(f"it hangs for {HANG_SECONDS} seconds")

    def kill(self) -> bool:
        """Kill it; whether it was alive."""
        os.kill(self._id, signal.SIGKILL)
        self._end()
        return os.WIFSIGNALED(self.status)

    def _end(self) -> None:
        _, self.status = os.waitpid(self._id, 0)
        os.close(self._reader)


def _work_and_exit(work: Callable[[], Any], writer: int) -> None:
    try:
        os.write(writer, json.dumps(work()).encode())
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)
