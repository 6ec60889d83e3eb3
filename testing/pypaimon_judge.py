"""Paimon's Python library as a judge, beside the environment: it needs a pyarrow below 20."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from testing.project import ROOT

LIBRARY = ROOT / ".venv/pypaimon"
MISSING = "needs pypaimon: make install-pypaimon"


def pypaimon(warehouse: str, verb: str, *arguments: object) -> Any:
    """What a verb of the worker prints."""
    worker = Path(__file__).with_name("pypaimon_worker.py")
    done = subprocess.run(
        [sys.executable, str(worker), warehouse, verb, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(LIBRARY)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
