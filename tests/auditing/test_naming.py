"""Names of keys that an audit may show."""

from __future__ import annotations

import json
from pathlib import Path

from testing.tables import Mode, customers
from tests.auditing.examples import (
    Example,
    set_key_metadata,
    sound,
)


def test_a_key_that_would_drive_a_terminal_is_not_named(tmp_path: Path) -> None:
    path = sound(tmp_path)
    name = json.dumps("\x1b[2J").encode()
    set_key_metadata(path, "email", lambda metadata: metadata.replace(b'"k_pii"', name))
    (finding,) = Example(path=path).audit().findings
    assert finding.id == "key-material-damaged"
    assert finding.message.isprintable()


def test_values_of_a_sensitive_partition_are_in_no_path_of_a_report(tmp_path: Path) -> None:
    for user in ("user1", "user2"):
        below = tmp_path / f"email={user}@example.com" / "day=1"
        below.mkdir(parents=True)
        sound(below, Mode.PLAIN, table=customers(30).drop_columns("email"))
    report = Example(path=tmp_path).audit()
    assert {f.path for f in report.findings if f.id == "column-in-clear"} == {
        f"{tmp_path}/email=***{number}/day=1/x.parquet" for number in (1, 2)
    }
    assert report.paths == (
        f"{tmp_path}/email=***1/day=1/x.parquet",
        f"{tmp_path}/email=***2/day=1/x.parquet",
    )
    assert "@example.com" not in json.dumps(report.to_dict())
