"""The catalog and the S3 server of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from testing.storage import port, s3_rights
from tests.lakes.iceberg.tables import in_settings

__all__ = ["catalog", "port", "s3_rights"]


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqlCatalog:
    """A catalog in a folder of the test, by the name that the settings have."""
    return in_settings(tmp_path, monkeypatch)
