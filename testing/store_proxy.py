"""A proxy before an object store: it counts requests and bytes, delays, and fails requests.

    python -m testing.store_proxy PORT      (of the store on this machine)
    python -m testing.store_proxy memory    (a store of its own: ``memory_store``)

It prints its own port, then an answer to each command, a line of JSON on stdin:
``{"delay": 0.03}``, ``{"bytes_a_second": 1e8}``, ``{"fail": {...}}``, ``{"counts": true}``,
``{"put": {"key": "file"}}``.  It ends when stdin does.  In a process of its own it waits for
nobody's interpreter lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from testing.memory_store import MemoryStore
from testing.project import ROOT

_LINE = b"\r\n"
_PIECE = 256 * 1024
#: No body follows these, whatever the headers say.
_WITHOUT_BODY = (204, 304)
_ERROR = "<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"


@dataclass(slots=True)
class Counts:
    """What went through since the last command ``counts``; ``at_once`` is the most under way."""

    requests: int = 0
    bytes_down: int = 0
    bytes_up: int = 0
    at_once: int = 0
    #: Method and target of each request, and how many bytes of body it had and got.
    log: list[tuple[str, str, int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Failure:
    """Requests that fail: the one with this number (from 0), or all ``from_then_on``.

    ``status`` 0 closes the connection; ``after`` is whether the store does what it was asked for
    before, and ``late`` the seconds until it does so after the failure.  Only requests count whose
    head has ``only`` in it, and not ``but``.
    """

    number: int = 0
    from_then_on: bool = False
    status: int = 503
    code: str = "SlowDown"
    after: bool = False
    late: float | None = None
    only: str = ""
    but: str | None = None


@dataclass(slots=True)
class Head:
    """The head of a request or an answer."""

    first: str
    fields: dict[str, str]
    raw: bytes

    @property
    def length(self) -> int:
        """Bytes of the body, if it is not chunked."""
        return int(self.fields.get("content-length", 0))

    @property
    def is_chunked(self) -> bool:
        """Whether the body tells its length piece by piece."""
        return "chunked" in self.fields.get("transfer-encoding", "")


class Line:
    """A network that carries so many bytes a second, of all connections together."""

    def __init__(self, bytes_a_second: float | None = None) -> None:
        self._rate = bytes_a_second
        self._free_at = 0.0

    async def carry(self, length: int) -> None:
        """Wait until the bytes are through."""
        if self._rate is None:
            return
        now = asyncio.get_running_loop().time()
        self._free_at = max(self._free_at, now) + length / self._rate
        # Short waits take longer than they are.
        if self._free_at > now + 0.01:
            await asyncio.sleep(self._free_at - now)


class Proxy:
    """Takes requests for the store at ``port``, or for one in memory."""

    def __init__(self, port: int | None) -> None:
        self._port = port
        self._memory = MemoryStore()
        self._delay = 0.0
        self._line = Line()
        self._failure: Failure | None = None
        self._seen = 0
        self._under_way = 0
        self._counts = Counts()
        self._late: set[asyncio.Task[None]] = set()

    def obey(self, command: Mapping[str, Any]) -> Any:
        """Do what a line of stdin says."""
        if "delay" in command:
            self._delay = command["delay"]
        if "bytes_a_second" in command:
            self._line = Line(command["bytes_a_second"])
        files = command.get("put", {})
        contents = {file: Path(file).read_bytes() for file in set(files.values())}
        for key, file in files.items():
            self._memory.put(key, [contents[file]])
        if "fail" in command:
            self._failure = Failure(**command["fail"]) if command["fail"] else None
            self._seen = 0
        if "counts" in command:
            counts, self._counts = self._counts, Counts(at_once=self._under_way)
            return asdict(counts)
        return None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client, with one of its own to the store."""
        store = _Store(self._port or 0)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await _read_head(reader)
                self._under_way += 1
                self._counts.at_once = max(self._counts.at_once, self._under_way)
                try:
                    goes_on = await self._one(head, reader, writer, store)
                finally:
                    self._under_way -= 1
                if not goes_on:
                    break
        store.close()
        writer.close()

    async def _one(
        self,
        head: Head,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        store: _Store,
    ) -> bool:
        method, target, _ = head.first.split(" ", 2)
        failure = self._failing(head.raw.decode("latin-1"))
        if head.fields.get("expect"):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if self._delay:
            await asyncio.sleep(self._delay)
        if failure and not failure.after:
            up = await _read_body(reader, head)
            self._count(method, target, len(up), 0)
            if failure.late is not None:
                late = asyncio.create_task(_ask_late(self._port or 0, head, up, failure.late))
                self._late.add(late)
                late.add_done_callback(self._late.discard)
            return await _fail(writer, failure, method)
        if self._port is None:
            up, down = await self._from_memory(head, reader, writer)
        else:
            up = await store.ask(head, reader)
            down = await store.answer(method, None if failure else writer)
        self._count(method, target, up, down)
        return await _fail(writer, failure, method) if failure else True

    async def _from_memory(
        self, head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[int, int]:
        method, target, _ = head.first.split(" ", 2)
        body = bytearray()
        async for piece in _pieces(reader, head):
            body += piece
            await self._line.carry(len(piece))
        answer = self._memory.answer(method, target, head.fields, bytes(body))
        down = sum(map(len, answer.body))
        fields = {"Content-Length": str(down)} | answer.fields
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(f"HTTP/1.1 {answer.status} OK\r\n{lines}\r\n".encode())
        for piece in answer.body if method != "HEAD" else ():
            for start in range(0, len(piece), _PIECE):
                writer.write(piece[start : start + _PIECE])
                await self._line.carry(min(_PIECE, len(piece) - start))
                await writer.drain()
        await writer.drain()
        return len(body), down

    def _failing(self, head: str) -> Failure | None:
        failure = self._failure
        if failure is None or failure.only not in head:
            return None
        if failure.but is not None and failure.but in head:
            return None
        number, self._seen = self._seen, self._seen + 1
        is_it = number >= failure.number if failure.from_then_on else number == failure.number
        return failure if is_it else None

    def _count(self, method: str, target: str, up: int, down: int) -> None:
        counts = self._counts
        counts.requests += 1
        counts.bytes_up += up
        counts.bytes_down += down
        counts.log.append((method, target, up, down))


class _Store:
    """A connection to the store, made again when the store has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, head: Head, reader: asyncio.StreamReader) -> int:
        """Pass a request on; the bytes of its body."""
        if self._streams is None or self._streams[0].at_eof():
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 20)
        writer = self._streams[1]
        writer.write(_without(head.raw, b"expect"))
        if head.is_chunked:
            body = await _read_body(reader, head)
            writer.write(body)
            await writer.drain()
            return len(body)
        left = head.length
        while left:
            piece = await reader.read(min(left, _PIECE))
            if not piece:
                raise asyncio.IncompleteReadError(b"", left)
            left -= len(piece)
            writer.write(piece)
            await writer.drain()
        return head.length

    async def answer(self, method: str, to: asyncio.StreamWriter | None) -> int:
        """Pass the answer on; the bytes of its body."""
        assert self._streams is not None
        reader = self._streams[0]
        head = await _read_head(reader)
        status = int(head.first.split(" ", 2)[1])
        while status == 100:
            head = await _read_head(reader)
            status = int(head.first.split(" ", 2)[1])
        if to is not None:
            to.write(head.raw)
        down = 0
        if method != "HEAD" and status not in _WITHOUT_BODY:
            async for piece in _pieces(reader, head):
                down += len(piece)
                if to is not None:
                    to.write(piece)
                    await to.drain()
        if to is not None:
            await to.drain()
        if head.fields.get("connection", "").lower() == "close" or head.first.startswith(
            "HTTP/1.0"
        ):
            self.close()
        return down

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _ask_late(port: int, head: Head, body: bytes, pause: float) -> None:
    """Pass a request on that the client has got a failure for."""
    await asyncio.sleep(pause)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    writer.write(_without(head.raw, b"expect") + body)
    await _read_head(reader)
    writer.close()


async def _read_head(reader: asyncio.StreamReader) -> Head:
    raw = await reader.readuntil(_LINE * 2)
    first, *lines = raw.decode("latin-1").split("\r\n")
    fields = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            fields[name.strip().lower()] = value.strip()
    return Head(first, fields, raw)


async def _read_body(reader: asyncio.StreamReader, head: Head) -> bytes:
    return b"".join([piece async for piece in _pieces(reader, head)])


async def _pieces(reader: asyncio.StreamReader, head: Head) -> Any:
    """The body as it travels, chunks with their marks."""
    if not head.is_chunked:
        left = head.length
        while left:
            piece = await reader.read(min(left, _PIECE))
            if not piece:
                raise asyncio.IncompleteReadError(b"", left)
            left -= len(piece)
            yield piece
        return
    while True:
        line = await reader.readuntil(_LINE)
        size = int(line.partition(b";")[0], 16)
        yield line + await reader.readexactly(size + len(_LINE))
        if size == 0:
            return


def _without(raw: bytes, name: bytes) -> bytes:
    lines = raw.split(_LINE)
    return _LINE.join(line for line in lines if not line.lower().startswith(name + b":"))


async def _fail(writer: asyncio.StreamWriter, failure: Failure, method: str) -> bool:
    """Give an error; whether the connection goes on."""
    if failure.status == 0:
        return False
    body = b"" if method == "HEAD" else _ERROR.format(code=failure.code).encode()
    writer.write(
        f"HTTP/1.1 {failure.status} Failed\r\nContent-Type: application/xml\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    await writer.drain()
    return True


async def _main(port: int | None) -> None:
    proxy = Proxy(port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    commands = asyncio.StreamReader(limit=1 << 26)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(commands), sys.stdin
    )
    while line := await commands.readline():
        print(json.dumps(proxy.obey(json.loads(line))), flush=True)
    # Connections that clients keep open are no reason to complain.
    os._exit(0)


class StoreProxy:
    """A proxy in a process of its own, and what it is told; ``port`` is where it listens."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.port = self._line()

    def tell(self, **command: Any) -> Any:
        """Give a command; the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._line())

    def counts(self) -> Counts:
        """What went through since the last call."""
        return Counts(**self.tell(counts=True))

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextlib.contextmanager
def store_proxy(port: str = "memory") -> Iterator[StoreProxy]:
    """A proxy before the store at a port of this machine, or one with a store of its own."""
    with subprocess.Popen(
        [sys.executable, "-m", "testing.store_proxy", port],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield StoreProxy(process)
        assert process.stdin is not None
        process.stdin.close()


if __name__ == "__main__":
    asyncio.run(_main(None if sys.argv[1] == "memory" else int(sys.argv[1])))
