"""No lake that shows something of a sensitive column passes an audit."""

from __future__ import annotations

from pathlib import Path

import pytest

from testing.surgery import assert_tells_no_secret
from tests.auditing.datasets import ids
from tests.auditing.ways import EMAIL
from tests.auditing.ways_in_structures import WAYS


@pytest.mark.parametrize("name", WAYS)
def test_a_lake_that_leaks_is_not_clean(tmp_path: Path, name: str) -> None:
    way = WAYS[name]
    report = way.build(tmp_path).audit(**way.options)
    assert set(way.told) & set(ids(report))
    for finding in report.findings:
        assert EMAIL not in finding.message
        assert_tells_no_secret(finding.what)
