"""The lines of a log, and their fields, are checked where they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.errors import FormatError
from secure_bloom.tables import snapshot
from tests.tables.delta_logs import (
    commit,
    log_of,
    start,
)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"add": 1}',
        '{"add": {"path": 1}}',
        '{"add": {"path": "../x", "size": 1}}',
        '{"add": {"path": "x", "size": -1}}',
        '{"add": {"path": "x", "size": 1, "deletionVector": {}}}',
        '{"metaData": {"schemaString": "["}}',
        '{"metaData": {"schemaString": "{}", "configuration": []}}',
        "[" * 100_000,
    ],
)
def test_a_log_that_is_none_is_an_error(tmp_path: Path, line: str) -> None:
    commit(tmp_path, 0, *start())
    (log_of(tmp_path) / f"{1:020}.json").write_text(line)
    with pytest.raises(FormatError):
        snapshot(tmp_path)
