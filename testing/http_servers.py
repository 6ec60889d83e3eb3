"""A client of a server of the test: OpenBao, or one that answers as it is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from secure_bloom.encryption.kms import KmsClient, kms_client
from testing.openbao import OpenBao

DEK = bytes(range(16))


def client_of(server: OpenBao, **words: Any) -> KmsClient:
    return kms_client(server.table(**words), Path())


def as_token(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("VAULT_TOKEN", token)


Answer = Callable[[str, str, bytes], tuple[int, dict[str, str], bytes]]


@contextmanager
def http_server(answer: Answer) -> Iterator[str]:
    """A server on loopback that answers as it is told; its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, headers, content = answer(self.command, self.path, body)
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = _answer  # noqa: N815 - names of http.server

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
