"""Write an object of a store other than S3, so that it is visible whole or not at all.

pyarrow's output streams cannot be aborted.  Closing one, leaving its ``with`` block or losing the
last reference to it completes the upload with the bytes so far (apache/arrow#40502): a cut object.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import secrets
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from typing import Any

from secure_bloom.errors import FormatError

# Other stores (HDFS, Azure) truncate the old object when a stream to its key is opened.
_VISIBLE_WHEN_CLOSED = {"gcs"}


def upload(
    filesystem: Any,
    key: str,
    chunks: Iterable[bytes],
    size: int,
    check: Callable[[], None],
) -> None:
    """Write the chunks, ``size`` bytes in all, as the object ``key`` of a ``pyarrow.fs`` store.

    ``check`` is called right before the object becomes visible, and may raise to prevent that.
    After an exception, what stood at the key stands there still.
    """
    if filesystem.type_name in _VISIBLE_WHEN_CLOSED:
        _write_out_of_reach(filesystem, key, chunks, check)
    else:
        _write_beside(filesystem, key, chunks, size, check)


def _write_out_of_reach(
    filesystem: Any,
    key: str,
    chunks: Iterable[bytes],
    check: Callable[[], None],
) -> None:
    """Write in another thread: Ctrl-C interrupts only the main one, so it never loses a stream."""
    cancelled = threading.Event()
    outcome: list[BaseException | None] = []
    finished = _thread.allocate_lock()
    finished.acquire()

    def write() -> None:
        try:
            _write_or_abandon(filesystem, key, chunks, check, cancelled)
        except BaseException as error:
            outcome.append(error)
        else:
            outcome.append(None)
        finished.release()

    try:
        # No pool, Thread or Future: their locks are taken in Python code, and a Ctrl-C between the
        # taking and the `with` leaves such a lock taken for ever.  A bare lock has no such gap.
        _thread.start_new_thread(write, ())
        finished.acquire()
    except RuntimeError:
        raise  # no thread was started: there is nothing to wait for
    except BaseException:
        cancelled.set()
        if not outcome:
            finished.acquire()
        raise
    if outcome[0] is not None:
        raise outcome[0]


def _write_or_abandon(
    filesystem: Any,
    key: str,
    chunks: Iterable[bytes],
    check: Callable[[], None],
    cancelled: threading.Event,
) -> None:
    stream = filesystem.open_output_stream(key, compression=None)
    try:
        for chunk in chunks:
            stream.write(chunk)
            stream.flush()  # or all chunks would wait in memory for a slow network
            if cancelled.is_set():
                raise CancelledError
        check()
        stream.close()
    except BaseException:
        # The stream must not be closed, and Python would close it with the last reference.  So one
        # reference is added that nobody removes: the upload is never completed.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(stream))
        raise


def _write_beside(
    filesystem: Any,
    key: str,
    chunks: Iterable[bytes],
    size: int,
    check: Callable[[], None],
) -> None:
    """Write under a hidden name, then move: atomic where the store's rename is.

    HDFS refuses to rename onto a file, and pyarrow deletes the old one first: a kill between the
    two leaves the new content under the hidden name only.  A kill earlier leaves a part of it.
    """
    folder, _, name = key.rpartition("/")
    staged = f"{folder}/.{name}.{secrets.token_hex(4)}.secure-bloom"
    filesystem.create_dir(folder)
    try:
        with filesystem.open_output_stream(staged, compression=None) as stream:
            for chunk in chunks:
                stream.write(chunk)
        written = filesystem.get_file_info(staged).size
        if written != size:
            raise FormatError(f"the store holds {written} bytes of the new file, not {size}")
        check()
        filesystem.move(staged, key)
    except BaseException:
        with contextlib.suppress(Exception):
            filesystem.delete_file(staged)
        raise
