"""Buckets on two servers, because neither does all that S3 does.

moto wants parts of 5 MiB and ignores the conditions of a completion; ministack does the reverse.
Neither knows conditions on the copy of a part.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from secure_bloom.storage import open_input, replace_tail
from secure_bloom.storage.s3.parts import LEAST_PART
from tests.storage.conftest import Bucket

KEY = "lake/ts=2024-01-01 00%3A00/part ü+0.parquet"
SMALL = b"small " * 1000
LARGE = b"0123456789abcdef" * (LEAST_PART // 16 + 1000)
TAIL = [b"filter", b"", b"footer"]
SIZES = pytest.mark.parametrize("old", [SMALL, LARGE], ids=["small", "large"])
#: Ends the server, and itself, when its standard input closes: when pytest ends, however it ends.
_GUARD = '("$@"; kill -KILL 0) & read -r _; kill -KILL 0'
_HEALTH = "http://127.0.0.1:{}/_ministack/health"


@contextlib.contextmanager
def ministack() -> Iterator[str]:
    """A second S3 server; its port, which it cannot choose by itself."""
    pytest.importorskip("ministack", reason="needs the package ministack")
    for _ in range(5):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        with _started(port) as server:
            if _answers(server, port):
                yield port
                return
    pytest.fail("ministack does not answer")


@contextlib.contextmanager
def _started(port: str) -> Iterator[subprocess.Popen[bytes]]:
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "GATEWAY_PORT": port,
            "BIND_HOST": "127.0.0.1",
            "SERVICES": "s3",
            "LOG_LEVEL": "ERROR",
            "TMPDIR": folder,
            "S3_DATA_DIR": folder,
        }
        with subprocess.Popen(
            ["sh", "-c", _GUARD, "sh", sys.executable, "-m", "ministack"],
            env=os.environ | settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as server:
            yield server


def _answers(server: subprocess.Popen[bytes], port: str) -> bool:
    while server.poll() is None:
        try:
            with urlopen(_HEALTH.format(port)) as answer:
                return bool(answer.status == 200)
        except (URLError, ConnectionError):
            time.sleep(0.02)
    return False


@pytest.fixture(scope="session")
def ports(port: str) -> Iterator[dict[str, str]]:
    """Where the servers listen."""
    with ministack() as other:
        yield {"moto": port, "ministack": other}


@pytest.fixture(params=["moto", "ministack"])
def any_bucket(request: pytest.FixtureRequest, ports: dict[str, str], s3_rights: None) -> Bucket:
    """A new bucket on each server."""
    return Bucket(ports[request.param])


def open_uploads(bucket: Bucket) -> list[str]:
    """Keys of uploads that were begun and neither completed nor aborted."""
    found = bucket.client.list_multipart_uploads(Bucket=bucket.name)
    return [upload["Key"] for upload in found.get("Uploads", [])]


def new(old: bytes) -> bytes:
    return old[:-100] + b"".join(TAIL)


def replaced(bucket: Bucket, key: str = KEY, **options: Any) -> int:
    with open_input(bucket.uri(key)) as file:
        return replace_tail(file, file.size - 100, TAIL, **options)
