"""Where things stand: the project itself, and the shared material that a clone may lack."""

from __future__ import annotations

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
