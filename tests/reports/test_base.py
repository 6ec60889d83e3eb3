"""Reports are documents, tables and a few words, whichever function gave them."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.hudi.filter_reader import show
from secure_bloom.reports.base import Report
from testing.tables import KEYRING, Mode, customers, write

PRESENT = str(customers(40)["email"][7])
REPORTS: dict[str, Callable[[Path], Report]] = {
    "add": lambda path: sb.add_bloom_filters(path, columns="email", keys=KEYRING),
    "probe": lambda path: sb.probe(path, "email", [PRESENT, "nobody"], keys=KEYRING),
    "inspect": lambda path: sb.inspect(path, keys=KEYRING),
    "audit": lambda path: sb.audit(path, policy=sb.KeyPolicy(), keys=KEYRING),
    "explain": lambda path: sb.explain(path, where=[("email", "=", PRESENT)], keys=KEYRING),
    "keys_used": lambda path: sb.keys_used(path, keys=KEYRING),
    "rotate": lambda path: sb.rotate_keys(
        path, policy=sb.KeyPolicy(), keys=KEYRING, moves={"k_pii": "k_finance"}
    ),
    "hudi.show": lambda path: show(path, keys=KEYRING),
    "hudi.lookup": lambda path: sb.hudi.lookup(path, [PRESENT], column="email", keys=KEYRING),
    "paimon.build": lambda path: sb.paimon.build_indexes(
        path, columns=["email"], keys=KEYRING, allow_clear_index=True
    ),
    "paimon.show": lambda path: sb.paimon.show(path),
    "paimon.probe": lambda path: sb.paimon.probe(path, "id = 5", keys=KEYRING),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "x.parquet", customers(40), Mode.ENCRYPTED, row_group_size=20)


@pytest.mark.parametrize("verb", REPORTS)
def test_a_report_is_a_document_a_table_and_a_few_words(verb: str, path: Path) -> None:
    report = REPORTS[verb](path)
    assert json.loads(report.to_json()) == report.to_dict()
    assert _types(report.to_dict()) <= {dict, list, str, int, float, bool, type(None)}
    table = report.to_arrow()
    assert table.num_rows == len(list(report.records()))
    assert len(repr(report)) < 160
    assert PRESENT not in repr(report)
    assert PRESENT not in report._repr_html_()


@pytest.mark.skipif(importlib.util.find_spec("pandas") is not None, reason="pandas is installed")
def test_without_pandas_a_report_says_what_to_do(path: Path) -> None:
    with pytest.raises(sb.PolicyError, match="needs pandas") as caught:
        REPORTS["inspect"](path).to_pandas()
    assert "to_arrow()" in str(caught.value.hint)


def _types(value: object) -> set[type]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {type(value)}.union(*map(_types, parts))


def test_a_row_is_the_innermost_part_with_all_that_it_stands_in(path: Path) -> None:
    rows = REPORTS["add"](path).to_arrow().to_pylist()
    assert [(row["path"], row["row_group"], row["action"]) for row in rows] == [
        (str(path), 0, "added"),
        (str(path), 1, "added"),
    ]
    verdicts = REPORTS["probe"](path).to_arrow().to_pylist()
    assert [(row["row_group"], row["value"], row["verdict"]) for row in verdicts] == [
        (0, PRESENT, "maybe"),
        (0, "nobody", "absent"),
        (1, PRESENT, "absent"),
        (1, "nobody", "absent"),
    ]


def test_a_few_words_say_what_came_out(path: Path) -> None:
    assert repr(REPORTS["add"](path)) == "<AddReport: 1 file (1 added)>"
    assert repr(REPORTS["add"](path)) == "<AddReport: 1 file (1 unchanged)>"
    assert repr(REPORTS["probe"](path)) == (
        "<ProbeReport: column email, 1 file, 1 of 2 row groups may hold a value>"
    )
    assert repr(REPORTS["inspect"](path)) == "<InspectReport: 1 file (1 encrypted)>"


def test_no_row_group_may_hold_one_of_no_values(path: Path) -> None:
    report = sb.probe(path, "email", [], keys=KEYRING)
    assert "0 of 2 row groups may hold a value" in repr(report)
    report = sb.probe(path, "id", [1], keys=KEYRING)
    assert "2 of 2 row groups may hold a value, 2 without a filter" in repr(report)


def test_a_file_that_failed_has_a_row_too(path: Path) -> None:
    (row,) = sb.probe(path, "email", "a", keys=sb.Keyring(master_keys={})).to_arrow().to_pylist()
    assert row["path"] == str(path)
    assert row["verdict"] is None
    assert row["error"]


def test_a_notebook_sees_no_column_that_says_nothing(path: Path) -> None:
    shown = sb.inspect(path)._repr_html_()
    assert ">footer</th>" in shown
    assert ">error</th>" not in shown
    assert ">hudi</th>" not in shown


def test_a_notebook_sees_no_more_than_some_rows_and_no_markup_of_a_file(tmp_path: Path) -> None:
    for number in range(30):
        write(tmp_path / f"<b>{number}.parquet", customers(5), Mode.PLAIN)
    shown = sb.inspect(tmp_path)._repr_html_()
    assert shown.count("<tr>") == 21
    assert "more rows" in shown
    assert "<b>" not in shown
