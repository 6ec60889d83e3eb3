"""Where things are: the project, shared material that a clone may lack, this machine's CPU."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "secure_bloom"
SHARED = ROOT.parent / "shared"
CORPUS = SHARED / "parquet-testing"
VECTORS = ROOT / "tests" / "vectors"
#: Why a test is skipped where a clone stands alone.
NO_CORPUS = "needs files of the public corpus, ../shared/parquet-testing"
NO_VECTORS = "needs files that Hudi or Paimon wrote, ../shared/vectors"
ENCRYPTED_CORPUS = sorted(p.name for p in CORPUS.glob("*.encrypted")) or ["its files"]


def cpu_model(cpuinfo: Path) -> str:
    """The CPU's name."""
    lines: Iterable[str] = cpuinfo.read_text().splitlines() if cpuinfo.exists() else ()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
