"""``secure-bloom`` as its users meet it: a process, its exit code, stdout and stderr.

Most of what such a process costs are its imports.  So the processes are forked from one that has
pyarrow and has done nothing else.
"""

from __future__ import annotations

import gc
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import secure_bloom.cli
from secure_bloom.running import settle_process

COMMAND = [sys.executable, "-m", "secure_bloom"]
#: Python reads these when it starts: a process that is given one cannot be forked.
_READ_AT_START = ("PYTHON", "LC_", "LANG")
_IMPORTS = [
    "cryptography.hazmat.primitives.ciphers.aead",
    "gzip",
    "numpy.ma",
    "pyarrow.parquet",
    "rich.console",
    "rich.table",
    "secure_bloom.auditing.formats.terminal",
    "secure_bloom.bloom.build",
    "secure_bloom.cli",
    "secure_bloom.reading.kept_table",
    "secure_bloom.reading.rows.export",
    "secure_bloom.reading.table.table_state",
    "secure_bloom.reading.table_read",
    "tomllib",
]
#: What extras bring, polars as DuckDB's bridge to tables.  The catalogs of pyiceberg stay out: they
#: read the environment as they load.
_OPTIONAL = ["duckdb", "polars.io.plugins", "pyiceberg.io.pyarrow", "sqlalchemy.orm", "sqlglot"]
_SECONDS = 120

Done = subprocess.CompletedProcess[str]


def run(*arguments: object, **environment: str) -> Done:
    """``secure-bloom`` with these arguments, in a terminal of 200 columns."""
    words = [str(argument) for argument in arguments]
    variables = {**os.environ, "COLUMNS": "200", **environment}
    if any(name.startswith(_READ_AT_START) for name in environment):
        return subprocess.run(
            [*COMMAND, *words], capture_output=True, text=True, timeout=_SECONDS, env=variables
        )
    return run_forked(_fork_server(), words, variables)


def run_forked(server: ForkServer, words: list[str], variables: Mapping[str, str]) -> Done:
    """``secure-bloom`` with these words and variables, in a process forked from ``server``."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        code = server.run(words, variables, [out, err])
        # Bytes, since reading text would lose the carriage returns that tests look for.
        texts = [file.read_bytes().decode() for file in (out, err)]
        return subprocess.CompletedProcess(words, code, *texts)


class ForkServer:
    """The process that others are forked from; it ends with this one."""

    def __init__(self, **environment: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "testing.command_line"],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )

    def run(self, words: list[str], variables: Mapping[str, str], files: list[Path]) -> int:
        """The exit code of ``secure-bloom`` with these words; stdout and stderr in two files."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {
            "words": words,
            "variables": dict(variables),
            "files": [str(file) for file in files],
            "folder": str(Path.cwd()),
        }
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@cache
def _fork_server() -> ForkServer:
    return ForkServer()


def _serve() -> None:
    """Fork a process for each line of standard input, and print its exit code."""
    # As `python -m secure_bloom` begins.  So no process takes Python apart at its end, which would
    # copy most of the memory that it shares with this one.
    settle_process()
    for module in _IMPORTS:
        import_module(module)
    for module in _OPTIONAL:
        with suppress(ImportError):
            import_module(module)
    for name in secure_bloom.__all__:
        getattr(secure_bloom, name)
    for verb in pkgutil.iter_modules(secure_bloom.cli.__path__, "secure_bloom.cli."):
        import_module(verb.name)
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(**json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(words: list[str], variables: dict[str, str], files: list[str], folder: str) -> NoReturn:
    """In the child: be ``python -m secure_bloom`` with these words."""
    from secure_bloom.cli import main

    signal.alarm(_SECONDS)
    for number, name in enumerate([os.devnull, *files]):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), number)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    sys.argv = ["secure-bloom", *words]
    main()
    raise AssertionError("main exits")


if __name__ == "__main__":
    _serve()
