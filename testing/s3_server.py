"""An S3 server (moto) in a process of its own; prints its port, and ends when stdin does.

In the test's own process it would wait for the interpreter lock that pyarrow may hold.  Requests
are noted in the file that is named as its argument, one a line: method, path, range of bytes.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.server import ThreadedMotoServer
from werkzeug.serving import WSGIRequestHandler


def note_requests(log: Path) -> None:
    """Have the server write down what it is asked."""

    def note(handler: WSGIRequestHandler, *_: object) -> None:
        path = handler.path.partition("?")[0]
        with log.open("a") as file:
            file.write(f"{handler.command} {path} {handler.headers.get('Range')}\n")

    WSGIRequestHandler.log_request = note  # type: ignore[method-assign]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        note_requests(Path(sys.argv[1]))
    # Which service a host is, moto finds out by listing its folder, at each request twice.
    find = DomainDispatcherApplication.get_backend_for_host
    DomainDispatcherApplication.get_backend_for_host = functools.cache(find)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    print(server.get_host_and_port()[1], flush=True)
    sys.stdin.read()
    server.stop()
