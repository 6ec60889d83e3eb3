"""Where things stand: the project itself, and the shared material that a clone may lack."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "secure_bloom"
SHARED = ROOT.parent / "shared"
CORPUS = SHARED / "parquet-testing"
VECTORS = ROOT / "tests" / "vectors"
