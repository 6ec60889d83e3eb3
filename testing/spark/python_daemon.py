"""Spark's daemon of Python workers, with what a worker imports loaded before it forks them.

``python_daemon.py -m pyspark.daemon MODULE`` stands for ``python -m pyspark.daemon MODULE``.  A
worker imports its module, pyarrow and this package, for a third of a second, and few of them serve
more than one task.
"""

from __future__ import annotations

import gc
import runpy
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

_IMPORTS = [
    "pyarrow.parquet",
    "cryptography.hazmat.primitives.ciphers.aead",
    "secure_bloom.spark.file_task",
    "secure_bloom.spark.source",
    "secure_bloom.adding.rewrite",
]


def _serve(name: str, worker: str) -> None:
    sys.path[0] = str(Path.cwd())  # as of `python -m`
    for module in (worker, *_IMPORTS):
        with suppress(ImportError):
            import_module(module)
    gc.freeze()
    sys.argv = [name, worker]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _serve(*sys.argv[2:])
