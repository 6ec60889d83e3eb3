"""Buckets on two servers, because neither does all that S3 does.

moto wants parts of 5 MiB and ignores the conditions of a completion; ministack does the reverse.
Neither knows conditions on the copy of a part.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from secure_bloom.storage import open_input, replace_tail
from secure_bloom.storage.object_writer import LEAST_PART
from testing.storage import Bucket
from tests.storage.emulators import emulator

KEY = "lake/ts=2024-01-01 00%3A00/part ü+0.parquet"
SMALL = b"small " * 1000
LARGE = b"0123456789abcdef" * (LEAST_PART // 16 + 1000)
TAIL = [b"filter", b"", b"footer"]
SIZES = pytest.mark.parametrize("old", [SMALL, LARGE], ids=["small", "large"])
_HEALTH = "http://127.0.0.1:{}/_ministack/health"


@contextlib.contextmanager
def ministack() -> Iterator[str]:
    """A second S3 server; its port."""
    pytest.importorskip("ministack", reason="needs the package ministack")
    with tempfile.TemporaryDirectory() as folder, emulator(_ministack(folder), _HEALTH) as port:
        yield port


def _ministack(folder: str) -> Callable[[str], list[str]]:
    def command(port: str) -> list[str]:
        settings = {
            "GATEWAY_PORT": port,
            "BIND_HOST": "127.0.0.1",
            "SERVICES": "s3",
            "LOG_LEVEL": "ERROR",
            "TMPDIR": folder,
            "S3_DATA_DIR": folder,
        }
        variables = [f"{name}={value}" for name, value in settings.items()]
        return ["env", *variables, sys.executable, "-m", "ministack"]

    return command


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
