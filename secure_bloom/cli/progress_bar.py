"""Show progress on stderr: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from secure_bloom.cli.verbosity import is_quiet

#: Seconds between two lines of the log; a run that is shorter writes none.
_INTERVAL: Final = 10.0
#: Apart from what the library logs: the command shows that it goes on, and no other line.
_LOG = logging.getLogger("secure_bloom.progress")
#: ISO 8601, in UTC.
_FORMAT, _TIME = "%(asctime)sZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S"


@contextmanager
def progress_bar(what: str, *, quiet: bool) -> Iterator:  # type: ignore[type-arg]
    """Show a bar if stderr is a terminal, else print a log line every ten seconds.

    With ``quiet``, or with ``-q``, nothing is shown.
    """
    if is_quiet():
        yield None
    elif not sys.stderr.isatty():
        yield _logged(what)
    elif quiet:
        yield None
    else:
        yield from _drawn(what)


def _drawn(what: str) -> Iterator:  # type: ignore[type-arg]
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _logged(what: str) -> Callable[[int, int], None]:
    if not _LOG.handlers:
        formatter = logging.Formatter(_FORMAT, _TIME)
        formatter.converter = time.gmtime
        handler = logging.StreamHandler()
        handler.setFormatter(formatter)
        _LOG.addHandler(handler)
        _LOG.setLevel(logging.INFO)
    last = time.monotonic()

    def log(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _INTERVAL:
            last = now
            _LOG.info("%s: %s of %s", what, f"{done:,}", f"{total:,}")

    return log
