"""A server that accepts and never answers is said after three seconds, and given up before 30."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.utils.config import Config

import secure_bloom as sb
import secure_bloom.running.first_answer as module
from secure_bloom.running.first_answer import (
    SAY_SECONDS,
    NoAnswerError,
    WaitingWarning,
    answered,
    has_answered,
    watched,
)


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def closed() -> str:
    """An address that refuses connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


SECRETS = {
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "y",
    "AZURE_STORAGE_KEY": "a2V5",
    "VAULT_TOKEN": "t",
    "PYICEBERG_CATALOG__R__TYPE": "rest",
}
POLICY = """
[kms]
{}
[footer]
key = "k"
"""
KMS = {
    "AWS KMS": 'client = "aws"\nregion = "eu-west-1"\nendpoint_url = "http://{}"',
    "Vault": 'client = "vault"\naddress = "http://{}"',
}
STORES = {
    "S3": "s3://bucket/lake?endpoint_override={}&scheme=http",
    "Google Cloud Storage": "gs://anonymous@bucket/lake?endpoint_override={}&scheme=http",
    "Azure": "abfs://account@{}/container/lake?enable_tls=false",
}
SERVERS = (*STORES, "the catalog r", *KMS)


def path_of(server: str, address: str) -> str:
    return STORES[server].format(address) if server in STORES else "iceberg://r/db.table"


def shown(server: str) -> str:
    return "http://127.0.0.1" if server == "Vault" else server


def environment(address: str) -> dict[str, str]:
    return {**SECRETS, "PYICEBERG_CATALOG__R__URI": f"http://{address}"}


def started(server: str, address: str, folder: Path) -> subprocess.Popen[str]:
    """The command line, which asks a server of this kind at the address."""
    words = ["read", path_of(server, address)]
    if server in KMS:
        folder.mkdir()
        policy = folder / "policy.toml"
        policy.write_text(POLICY.format(KMS[server].format(address)))
        words = ["keys", "check", "--policy", str(policy)]
    return subprocess.Popen(
        [sys.executable, "-m", "secure_bloom", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment(address)},
    )


@contextmanager
def listening() -> Iterator[tuple[str, list[float]]]:
    """The address of a silent server, and when it was first connected to, in a list."""
    connections: list[socket.socket] = []
    asked: list[float] = []

    def accept(server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connections.append(server.accept()[0])
                asked.append(time.monotonic())

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, args=(server,), daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}", asked
        server.shutdown(socket.SHUT_RDWR)
    for connection in connections:
        connection.close()


@pytest.mark.slow
def test_a_silent_server_is_said_after_3_seconds_and_given_up_before_30(tmp_path: Path) -> None:
    """Since it was connected to: how long programs take to start depends on the machine."""
    with ExitStack() as stack:
        running = []
        for server in SERVERS:
            address, asked = stack.enter_context(listening())
            program = stack.enter_context(started(server, address, tmp_path / server))
            running.append((server, asked, program, []))
        readers = [
            threading.Thread(target=_note_lines, args=(program, lines))
            for _, _, program, lines in running
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(timeout=90)
        for server, asked, program, lines in running:
            assert program.wait(timeout=60) == 2
            (said, first), *rest = lines
            assert f"warning: waiting for an answer of {shown(server)}" in first, first
            assert SAY_SECONDS - 0.5 <= said - asked[0] < SAY_SECONDS + 3, server
            words = "is not available" if server in KMS else "no answer in 20 s"
            assert any(words in line for _, line in rest), rest
            assert lines[-1][0] - asked[0] < 30, server


def _note_lines(program: subprocess.Popen[str], lines: list[tuple[float, str]]) -> None:
    assert program.stderr is not None
    lines.extend((time.monotonic(), line) for line in program.stderr)


@pytest.mark.parametrize("server", [*STORES, "the catalog r"])
def test_a_silent_store_is_a_named_error(
    server: str, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SAY_SECONDS", 0.1)
    monkeypatch.setattr(module, "GIVE_UP_SECONDS", 0.5)
    for name, value in environment(silent).items():
        monkeypatch.setenv(name, value)
    # pyiceberg reads its settings once, when it is imported.
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    began = time.monotonic()
    with (
        pytest.warns(WaitingWarning, match="waiting for an answer of"),
        pytest.raises(sb.StoreUnavailableError, match="no answer in "),
    ):
        sb.read_table(path_of(server, silent))
    # A run has many files: the next is not waited for.
    with pytest.raises(sb.StoreUnavailableError):
        sb.read_table(path_of(server, silent))
    assert time.monotonic() - began < 5


def test_what_is_written_to_a_silent_store_ends_too(
    silent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SAY_SECONDS", 0.1)
    monkeypatch.setattr(module, "GIVE_UP_SECONDS", 0.5)
    for name, value in environment(silent).items():
        monkeypatch.setenv(name, value)
    pq.write_table(pa.table({"email": ["a"]}), tmp_path / "x.parquet")
    with (
        pytest.warns(WaitingWarning),
        pytest.raises(sb.StoreUnavailableError, match="the store cannot be reached"),
    ):
        sb.add_bloom_filters(tmp_path, columns="email", output=path_of("S3", silent))


#: The SDKs of the others repeat a refused request until they are given up.
@pytest.mark.parametrize("server", ["the catalog r", *KMS])
def test_a_server_that_refuses_is_a_named_error(server: str, tmp_path: Path) -> None:
    with started(server, closed(), tmp_path / server) as program:
        _, err = program.communicate(timeout=60)
    assert program.returncode == 2
    words = "is not available" if server in KMS else "cannot be reached"
    assert words in err
    assert "Traceback" not in err


@pytest.mark.parametrize("server", STORES)
def test_a_store_that_refuses_is_a_named_error(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GIVE_UP_SECONDS", 4.0)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    path = path_of(server, closed())
    more = "&retry_limit_seconds=1" if server.startswith("Google") else ""
    with pytest.raises(sb.StoreUnavailableError, match="the store cannot be reached"):
        sb.read_table(path + more)


def test_an_answer_is_waited_for_once() -> None:
    threads = [answered("here", threading.current_thread) for _ in range(2)]
    assert threads[0] is not threading.current_thread()
    assert threads[1] is threading.current_thread()
    assert has_answered("here")
    with pytest.raises(ZeroDivisionError):
        answered("there", lambda: 1 // 0)
    assert not has_answered("there")


def test_who_did_not_answer_is_not_asked_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAY_SECONDS", 0.01)
    monkeypatch.setattr(module, "GIVE_UP_SECONDS", 0.05)
    monkeypatch.setattr(module, "_silent", {})
    forever, asked = threading.Event(), list[int]()

    def ask() -> bool:
        asked.append(1)
        return forever.wait()

    with (
        pytest.warns(WaitingWarning, match="waiting for an answer of nowhere"),
        pytest.raises(NoAnswerError),
    ):
        watched("nowhere", ask)
    with pytest.raises(NoAnswerError):
        watched("nowhere", ask)
    assert asked == [1]
    forever.set()
