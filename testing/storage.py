"""A folder to write in, a bucket of an S3 server, and child processes to kill."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from secure_bloom.storage import open_input, replace_tail
from secure_bloom.storage.staged_file import StagedFile

OLD = bytes(range(256)) * 64
KEEP = len(OLD) - 100
TAIL = [b"filter one", b"", b"filter two", b"footer" * 7]
NEW = OLD[:KEEP] + b"".join(TAIL)


@pytest.fixture
def data_file(tmp_path: Path) -> Path:
    path = tmp_path / "part-0.parquet"
    path.write_bytes(OLD)
    return path


@pytest.fixture
def run() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a Python program with arguments; its stdout and exit code."""

    def run_program(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    return run_program


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB; only root may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            subprocess.run(["umount", "-l", str(folder)], check=True)


def end_before(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """End the run by Ctrl-C right before the new file takes the place of ``name``."""
    publish = StagedFile.publish

    def ended(staged: StagedFile, *over: tuple[object, ...] | None) -> None:
        if staged.name == name:
            raise KeyboardInterrupt
        publish(staged, *over)

    monkeypatch.setattr(StagedFile, "publish", ended)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file in a folder, hidden ones too: what a failed write must leave alone."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


class Bucket:
    """A bucket of its own for one test, seen through another client than ours."""

    def __init__(self, port: str, **options: Any) -> None:
        self.name = f"b{uuid.uuid4().hex}"
        self.query = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
        self.client = s3_client(port)
        self.client.create_bucket(Bucket=self.name, **options)

    def uri(self, key: str, scheme: str = "s3") -> str:
        return f"{scheme}://{self.name}/{key}?{self.query}"

    def put(self, *keys: str, body: bytes = OLD) -> None:
        for key in keys:
            self.client.put_object(Bucket=self.name, Key=key, Body=body)

    def objects(self) -> dict[str, bytes]:
        listing = self.client.list_objects_v2(Bucket=self.name).get("Contents", [])
        return {
            entry["Key"]: self.client.get_object(Bucket=self.name, Key=entry["Key"])["Body"].read()
            for entry in listing
        }


@cache
def s3_client(port: str) -> Any:
    """A client takes long to make, and none of them knows what another did."""
    import boto3

    return boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}")


@contextlib.contextmanager
def s3_server(*arguments: object) -> Iterator[str]:
    """An S3 server of its own; its port."""
    pytest.importorskip("boto3")
    pytest.importorskip("moto.server")
    program = Path(__file__).with_name("s3_server.py")
    with subprocess.Popen(
        [sys.executable, str(program), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        assert server.stdin is not None
        server.stdin.close()


#: Servers that end with this process.
_SERVERS = contextlib.ExitStack()


@cache
def _shared_server() -> str:
    return _SERVERS.enter_context(s3_server())


@pytest.fixture(scope="session")
def port() -> str:
    """Where an S3 server listens: one for this process, wherever the fixture is imported."""
    return _shared_server()


@pytest.fixture
def s3_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials that the servers take."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def bucket(port: str, s3_rights: None) -> Bucket:
    """A new bucket, and the right to use it."""
    return Bucket(port)


def replaced(path: Path, **options: str) -> int:
    with open_input(str(path)) as file:
        return replace_tail(file, KEEP, TAIL, **options)


@pytest.fixture(params=["nameless", "named"])
def staging(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of building the new file; the second is that of systems without O_TMPFILE."""
    if request.param == "named":

        def no_nameless_files(self: StagedFile) -> int:
            raise OSError(errno.EOPNOTSUPP, "not here")

        monkeypatch.setattr(StagedFile, "_open_nameless", no_nameless_files)
