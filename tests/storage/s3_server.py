"""An S3 server (moto) in a process of its own; prints its port, and ends when stdin does.

In the test's own process it would wait for the interpreter lock that pyarrow may hold.
"""

from __future__ import annotations

import sys

from moto.server import ThreadedMotoServer

if __name__ == "__main__":
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    print(server.get_host_and_port()[1], flush=True)
    sys.stdin.read()
    server.stop()
