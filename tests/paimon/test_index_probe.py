"""Asking indexes: files, folders, index files; with types from the data or from the caller."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom import paimon
from secure_bloom.bloom.verdicts import Verdict
from secure_bloom.errors import PolicyError
from secure_bloom.paimon import And, FileIndex, Index, as_predicate, must_read, typed_forms
from secure_bloom.paimon.index_probe import FileVerdict, PaimonProbe
from tests.paimon.conftest import verdicts
from tests.paimon.test_skipping import TYPES, VECTORS, WRONG_IN_JAVA
from tests.paimon.vectors import predicate_of


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("id = 5", ["maybe", "absent"]),
        ("id in (105, 106)", ["absent", "maybe"]),
        ("id in (5, 106)", ["maybe", "maybe"]),
        ("id = 500 or name = 'n3'", ["maybe", "absent"]),
        ("id = 5 and name = 'n6'", ["maybe", "absent"]),
        ("id = 5 and name = 'x'", ["absent", "absent"]),
        ("id = 500 and amount > 3", ["absent", "absent"]),
        ("id = 500 or amount = 3", ["maybe", "maybe"]),
        ("not id = 5", ["maybe", "maybe"]),
        ("not id < 5", ["maybe", "maybe"]),
        ("score = 0 and id = 3", ["maybe", "absent"]),
        ("score = -0.0 and id = 3", ["maybe", "absent"]),
        ("score = 7", ["absent", "absent"]),
        (("id", "=", 5), ["maybe", "absent"]),
        ([("id", "=", 5), ("name", "=", "n5")], ["maybe", "absent"]),
        (("score", "=", float("nan")), ["maybe", "maybe"]),
        ("amount = 3", ["no_filter", "no_filter"]),
        ("nobody = 3", ["no_filter", "no_filter"]),
    ],
)
def test_files_are_skipped_for_a_condition(lake: Path, where: object, wanted: list[str]) -> None:
    assert verdicts(lake, where) == [*wanted, "no_filter"]


def test_an_index_file_is_probed_by_name_with_the_types_of_its_data_file(lake: Path) -> None:
    report = paimon.probe(lake / "1.parquet.index", "id = 105")
    assert report.verdicts == {Verdict.MAYBE}
    assert paimon.probe(lake / "1.parquet.index", "id = 5").verdicts == {Verdict.ABSENT}


def test_a_file_uri_leads_to_its_index(lake: Path) -> None:
    odd = lake / "odd%20 name.parquet"
    (lake / "2.parquet").rename(odd)
    uri = odd.as_uri()
    assert paimon.build_index(uri, ["id"]).index == f"{odd}.index"
    assert paimon.probe(f"{uri}.index", "id = 205").verdicts == {Verdict.MAYBE}


@pytest.mark.parametrize(
    "where", ["id = 'secret'", "id in (1, 'secret')", "score = 'secret'", "id = '5.0.0'"]
)
def test_a_value_that_is_none_of_the_column_stops_the_question(lake: Path, where: str) -> None:
    with pytest.raises(PolicyError, match="not one the column can hold") as refused:
        paimon.probe(lake, where)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("id = 3000000000", ["absent", "maybe"]),
        (("id", "=", 3_000_000_000), ["absent", "maybe"]),
        ("id in (1, 3000000000)", ["maybe", "maybe"]),
        ("id in (7, 3000000000)", ["absent", "maybe"]),
        ("id = 9223372036854775808", ["absent", "absent"]),
        ("id = 2.5", ["absent", "absent"]),
        (("id", "=", 2.5), ["absent", "absent"]),
        ("ts = 1970-01-01T00:00:00.000001", ["absent", "maybe"]),
        ("ts = 1970-01-01T00:00:00.002", ["maybe", "maybe"]),
        ("real = 1e300", ["absent", "maybe"]),
        ("fixed = 'abc'", ["absent", "maybe"]),
        ("fixed = 'cd'", ["maybe", "maybe"]),
    ],
)
def test_an_older_file_s_smaller_type_stopped_the_whole_question(
    evolved: Path, where: object, wanted: list[str]
) -> None:
    assert verdicts(evolved, where) == wanted


@pytest.mark.parametrize(("where", "failing"), [("other = 'a'", 1), ("other = 'x'", 1)])
def test_a_value_of_another_kind_fails_that_file_alone(
    evolved: Path, where: str, failing: int
) -> None:
    files = paimon.probe(evolved, where).files
    assert "not one the column can hold" in str(files[failing].error)
    assert files[1 - failing].verdict is not None
    with pytest.raises(PolicyError):
        paimon.probe(evolved / "b.parquet", where)


def test_a_column_that_one_file_lacks_fails_that_file_alone(evolved: Path) -> None:
    pq.write_table(pa.table({"renamed": [1]}), evolved / "c.parquet")
    (evolved / "c.parquet.index").write_bytes((evolved / "b.parquet.index").read_bytes())
    assert [str(f.verdict) for f in paimon.probe(evolved, "id = 2").files] == [
        "maybe",
        "maybe",
        "None",
    ]


def test_indexes_beside_orc_files_are_found_in_folders(lake: Path) -> None:
    (lake / "1.parquet").rename(lake / "1.orc")
    (lake / "1.orc").write_bytes(b"ORC" + bytes(20))
    (lake / "1.parquet.index").rename(lake / "1.orc.index")
    (lake / "0.parquet").unlink()
    types = {"id": "BIGINT"}
    for place in (lake, lake / "*", [lake / "*.index", lake / "2.parquet"]):
        files = paimon.probe(place, "id = 105", types=types).files
        assert [str(file.verdict) for file in files] == ["absent", "maybe", "no_filter"]
    shown = paimon.show(lake)
    assert len(shown.indexes) == 2
    assert shown.without == (str(lake / "2.parquet"),)
    (failed, *_) = paimon.probe(lake / "1.orc", "id = 105").files
    assert "--type id=BIGINT" in str(failed.hint)


def test_a_deep_predicate_ended_in_a_recursion_error(lake: Path) -> None:
    deep: Any = paimon.as_predicate("id = 5")
    for _ in range(5000):
        deep = paimon.And((deep,))
    with pytest.raises(PolicyError, match="deeper than 100"):
        paimon.probe(lake, deep)
    for wrong in (paimon.And(("id",)), paimon.Or(5)):  # type: ignore[arg-type]
        with pytest.raises(PolicyError):
            paimon.as_predicate(wrong)


@pytest.mark.parametrize("where", ["id =", "id = 5 and", "= 5", "(id = 5", "id ~ 5", ""])
def test_what_is_no_condition_is_an_error(lake: Path, where: str) -> None:
    with pytest.raises(PolicyError):
        paimon.probe(lake, where)


def test_a_damaged_index_is_reported_and_stops_no_other(lake: Path) -> None:
    (lake / "0.parquet.index").write_bytes(b"damaged")
    broken, whole, _ = paimon.probe(lake, "id = 105").files
    assert "0.parquet.index" in str(broken.error)
    assert (broken.verdict, whole.verdict) == (None, Verdict.MAYBE)


def test_an_index_of_a_column_without_a_hash_keeps_the_file(lake: Path) -> None:
    """A decimal column with an index of another type has no values that we could look for."""
    index = FileIndex.from_bytes((lake / "0.parquet.index").read_bytes())
    index = index.with_indexes([("amount", Index(type="bsi", body=b"x"))])
    (lake / "0.parquet.index").write_bytes(index.to_bytes())
    assert verdicts(lake, "amount = 3")[0] == "maybe"


def test_the_error_for_an_empty_condition_has_a_hint(lake: Path) -> None:
    for where in ("", "  "):
        with pytest.raises(PolicyError, match="is empty") as refused:
            paimon.probe(lake, where)
        assert "leave it out" not in str(refused.value.hint)


def test_a_column_that_no_file_has_is_named_in_a_note(lake: Path) -> None:
    report = paimon.probe(lake, "nme = 1 or id = 5")
    assert len(report.notes) == 1
    assert "no file has a column nme" in report.notes[0]
    assert "did you mean name" in report.notes[0]
    assert report.verdicts == {Verdict.MAYBE, Verdict.NO_FILTER}
    assert paimon.probe(lake, "amount = 3").notes == ()
    # What cannot be read may have it.
    (lake / "3.orc").write_bytes(b"ORC" + bytes(20))
    assert paimon.probe(lake, "nme = 1").notes == ()


def test_verdicts_are_those_of_all_files() -> None:
    files = (
        FileVerdict(path="x", verdict=Verdict.ABSENT),
        FileVerdict(path="y", verdict=Verdict.MAYBE),
        FileVerdict(path="z", error="damaged"),
    )
    probe = PaimonProbe(files=files)
    assert probe.verdicts == {Verdict.ABSENT, Verdict.MAYBE}
    assert [file.path for file in probe.failed] == ["z"]
    assert [file["verdict"] for file in json.loads(probe.to_json())["files"]] == [
        "absent",
        "maybe",
        None,
    ]


def test_a_value_that_all_indexes_have_keeps_the_file_whatever_java_said() -> None:
    name, written = WRONG_IN_JAVA
    (case,) = (case for case in VECTORS["cases"] if case["name"] == name)
    assert case["answers"][case["predicates"].index(written)] == 0
    index, forms = FileIndex.from_bytes(base64.b64decode(case["file"])), typed_forms(TYPES)
    assert must_read(index, predicate_of(["=", "k", 3], TYPES), forms)
    asked = predicate_of(written, TYPES)
    assert must_read(index, asked, forms)


def test_a_predicate_has_an_end() -> None:
    deep = as_predicate("id = 5")
    for _ in range(5000):
        deep = And((deep,))
    with pytest.raises(PolicyError, match="deeper than 100"):
        must_read(FileIndex(), deep, typed_forms({}))
