"""An audit says what the metadata of a Paimon table shows of sensitive columns."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pypaimon_rust")

import secure_bloom as sb
from testing.paimon_tables import Warehouse

POLICY = """
[footer]
key = "k_footer"
[columns.email]
key = "k_pii"
[columns.day]
key = "k_pii"
"""


@pytest.fixture
def lake(tmp_path: Path) -> Warehouse:
    (tmp_path / "policy.toml").write_text(POLICY)
    return Warehouse(path=str(tmp_path / "lake"))


def findings(lake: Warehouse, path: str, name: str) -> set[tuple[str | None, str | None]]:
    report = sb.audit(path, policy=Path(lake.path).parent / "policy.toml", without_keys=True)
    return {(it.path, it.column) for it in report.findings if it.id == name}


@pytest.mark.parametrize("threshold", ["0 b", "1 kb"])
def test_an_index_in_clear_of_a_sensitive_column_is_found(lake: Warehouse, threshold: str) -> None:
    folder = lake.create("id bigint, mail string", file_index__in_manifest_threshold=threshold)
    lake.insert([(1, "a"), (2, "b")])
    # The file calls the column by a name that no policy has.
    lake.sql("alter table t rename column mail to email")
    assert findings(lake, folder, "paimon-index-in-clear") == set()
    sb.paimon.build_index(folder, ["email"])
    found = findings(lake, folder, "paimon-index-in-clear")
    assert {column for _, column in found} == {"email"}
    assert findings(lake, f"paimon://{lake.path}/default.t", "paimon-index-in-clear") == found


def test_bounds_and_partitions_in_manifests_are_found(lake: Warehouse) -> None:
    folder = lake.create(
        "id bigint, mail string, day date", partitioned="day", row_tracking__enabled="true"
    )
    lake.insert([(1, "a", "date '2024-01-01'")])
    lake.sql("alter table t rename column mail to email")
    assert findings(lake, folder, "table-log-in-clear") == {(folder, "day"), (folder, "email")}
    # Older manifests count too.
    lake.sql("delete from t where id = 1")
    assert (folder, "email") in findings(lake, folder, "table-log-in-clear")


def test_a_column_that_was_renamed_has_its_older_names_too(lake: Warehouse) -> None:
    """The policy knows the name that the column had: before the file was written, or in it."""
    folder = lake.create("id bigint, email string", file_index__in_manifest_threshold="1 kb")
    lake.insert([(1, "a")])
    lake.sql("alter table t rename column email to e2")
    lake.insert([(2, "b")])
    lake.sql("alter table t rename column e2 to contact")
    sb.paimon.build_index(folder, ["contact"])
    assert findings(lake, folder, "table-log-in-clear") == {(folder, "email")}
    assert {column for _, column in findings(lake, folder, "paimon-index-in-clear")} == {"email"}
    clear = findings(lake, folder, "column-in-clear")
    assert {column for _, column in clear} == {"email"}
    assert len({path for path, _ in clear}) == 2
