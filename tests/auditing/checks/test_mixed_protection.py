"""Files of one dataset that are protected in different ways."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from testing.tables import Mode, customers, write
from tests.auditing.datasets import batch, ids
from tests.auditing.examples import (
    EXAMPLES,
    Example,
)


def test_files_of_two_schemas_are_not_under_different_rules(tmp_path: Path) -> None:
    batch(tmp_path, 2)
    more = customers(30).append_column("age", pa.array([7] * 30))
    write(tmp_path / "new.parquet", more, Mode.ENCRYPTED)
    assert ids(Example(path=tmp_path).audit()) == []


def test_the_minority_differs_from_the_majority(tmp_path: Path) -> None:
    report = EXAMPLES["mixed-rules"](tmp_path).audit()
    (finding,) = report.findings
    assert (finding.path, finding.column) == (str(tmp_path / "x.parquet"), "city")
    assert finding.what == "the column is under k_pii, in most files in clear"
