"""The part of the step that runs in tasks needs little of the package."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark_installed")]

_PROGRAM = """
import sys
import secure_bloom.adding.rewrite, secure_bloom.spark.add_task, secure_bloom.spark.file_task
rooms = {name.split(".")[1] for name in sys.modules if name.startswith("secure_bloom.")}
print(*sorted(rooms & {"advising", "auditing", "hudi", "lakes", "reading", "rekeying"}))
print("pyarrow" in sys.modules)
"""


def test_a_worker_does_not_load_what_only_the_driver_needs() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True)
    assert (done.stdout.split("\n")[:2], done.stderr) == (["", "False"], "")
