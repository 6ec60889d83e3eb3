"""A server in a process of its own that answers Vault's decrypt after a while.

``python -m testing.slow_vault SECONDS`` prints its port.  A wrapped key is the
key itself, ``vault:v1:BASE64``.  What it counted is the answer to any other request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator

from testing.project import ROOT

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class _Server:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.calls = 0

    async def serve(self) -> None:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1])) if length else b""
                answer = json.dumps({"data": await self._data(head, body)}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer))
                writer.write(answer)
                await writer.drain()

    async def _data(self, head: bytes, body: bytes) -> dict[str, object]:
        if b"/decrypt/" not in head:
            return {"calls": self.calls}
        self.calls += 1
        await asyncio.sleep(self.seconds)
        return {"plaintext": json.loads(body)["ciphertext"].removeprefix("vault:v1:")}


@contextlib.contextmanager
def slow_server(seconds: float) -> Iterator[str]:
    """A running server; its address."""
    command = [sys.executable, "-m", __name__, str(seconds)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(_Server(float(sys.argv[1])).serve())
