"""A file in clear, and policies for it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from testing.tables import customers
from tests.rekeying.lake import policy


@pytest.fixture
def signed(tmp_path: Path) -> Path:
    path = tmp_path / "signed.toml"
    path.write_text(policy(mode="plaintext", columns={"email": "k_pii"}))
    return path


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside.toml"
    path.write_text(policy(columns={"email": "k_pii"}, encryption='key_material = "external"'))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "t").mkdir()
    pq.write_table(customers(50), tmp_path / "t" / "x.parquet")
    return tmp_path / "t" / "x.parquet"
