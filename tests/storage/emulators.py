"""Servers of other programs: on a free port, ended when the tests end, however they end."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

#: Ends the server, and itself, when its standard input closes: when pytest ends, however it ends.
_GUARD = '("$@"; kill -KILL 0) & read -r _; kill -KILL 0'


@contextlib.contextmanager
def emulator(command: Callable[[str], list[str]], health: str) -> Iterator[str]:
    """A server that cannot choose a port by itself; the port, once it answers at ``health``.

    ``command`` is what starts it on a port, ``health`` an address with the port left open.
    """
    for _ in range(5):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        with _started(command(port)) as server:
            if _answers(server, health.format(port)):
                yield port
                return
    pytest.fail(f"{command('PORT')} does not answer")


@contextlib.contextmanager
def _started(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        ["sh", "-c", _GUARD, "sh", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as server:
        yield server


def _answers(server: subprocess.Popen[bytes], health: str) -> bool:
    while server.poll() is None:
        try:
            with urlopen(health, timeout=30):
                return True
        except HTTPError:
            return True  # it answers, though not everybody
        except OSError:
            time.sleep(0.02)
    return False
