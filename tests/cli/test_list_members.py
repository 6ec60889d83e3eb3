"""Members of lists have one name in `--columns`, `--where` and `probe`, in either spelling."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from testing.command_line import run


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    rows = {
        "phones": [[{"number": "81", "kind": "home"}], None],
        "tags": [["a", "b"], []],
        "of": [{"tags": [1, 2]}, {"tags": [3]}],
    }
    pq.write_table(pa.table(rows), tmp_path / "0.parquet")
    return tmp_path


@pytest.mark.parametrize("name", ["tags.element", "tags.list.element", "TAGS.Element", "tags"])
def test_elements_of_a_list_of_values_are_compared_by_each_name(lake: Path, name: str) -> None:
    assert sb.read_table(lake, f"{name} = 'b'", columns=["tags"]).num_rows == 1
    assert sb.read_table(lake, f"{name} = 'c'").num_rows == 0


@pytest.mark.parametrize("name", ["of.tags", "of.tags.element", "of.tags.list.element"])
def test_lists_in_structures_are_compared_too(lake: Path, name: str) -> None:
    assert sb.read_table(lake, f"{name} = 3").num_rows == 1


@pytest.mark.parametrize(
    "name", ["phones.element.number", "phones.list.element.number", "phones.number"]
)
@pytest.mark.parametrize("condition", ["= '81'", "is null", "= 81"])
def test_no_hint_proposes_what_was_refused(lake: Path, name: str, condition: str) -> None:
    done = run("read", lake, "--where", f"{name} {condition}")
    assert done.returncode == 2
    assert "elements of a list of structures are not compared" in done.stderr
    assert "did you mean" not in done.stderr
    assert "secure-bloom sql" in done.stderr


def test_elements_are_not_tested_for_null(lake: Path) -> None:
    with pytest.raises(sb.PolicyError, match="elements of a list are not tested for null"):
        sb.read_table(lake, "tags.element is null")


@pytest.mark.parametrize("name", ["phones.element.number", "phones.list.element.number"])
def test_probe_takes_both_spellings(lake: Path, name: str) -> None:
    found = sb.probe(lake, name, "81")
    assert found.column == "phones.list.element.number"
    assert len(found.files) == 1
    done = run("probe", lake, name, "81")
    assert (done.returncode, done.stderr) == (3, ""), done.stderr
