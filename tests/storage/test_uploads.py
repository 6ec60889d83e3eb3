"""Uploads: an object is visible whole or not at all, and Ctrl-C ends them at any moment."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

#: Threads take turns after every few instructions, so that a Ctrl-C falls between any two of them.
INTERRUPTED_OFTEN = """
import io, os, signal, sys
from secure_bloom.storage.uploads import upload
sys.setswitchinterval(1e-6)
class Store:
    type_name = "gcs"
    def open_output_stream(self, key, **options):
        os.kill(os.getpid(), signal.SIGINT)
        return io.BytesIO()
ends = 0
for _ in range(6000):
    try:
        upload(Store(), "key", [b"new"], 3, lambda: None)
    except KeyboardInterrupt:
        ends += 1
print(ends)
"""


def test_ctrl_c_ends_an_upload_at_any_moment(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    """With the locks of `concurrent.futures` it never returned, once in some hundred times."""
    done = run(INTERRUPTED_OFTEN)
    assert (done.stdout, done.stderr) == ("6000\n", "")
