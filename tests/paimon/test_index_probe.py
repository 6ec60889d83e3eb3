"""Asking indexes: files, folders, index files; with types from the data or from the caller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom import paimon
from secure_bloom.bloom.probe import Verdict
from secure_bloom.errors import PolicyError
from secure_bloom.paimon import FileIndex, Index, data_types, physical_values
from secure_bloom.paimon.data_types import TypeRoot, hashed_form
from secure_bloom.paimon.stored_types import leaf_of
from tests.tables import KEYRING, Mode, customers, write


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Three files of 100 ids each, all but the last with an index."""
    for part in range(3):
        ids = range(100 * part, 100 * part + 100)
        table = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "name": [f"n{i}" for i in ids],
                "amount": pa.array(ids, pa.decimal128(9, 2)),
                "score": pa.array([float(i % 3) for i in ids]),
            }
        )
        pq.write_table(table, tmp_path / f"{part}.parquet")
        if part < 2:
            options = paimon.IndexOptions(fpp=1e-6)
            columns = dict.fromkeys(["id", "name", "score"], options)
            paimon.build_index(tmp_path / f"{part}.parquet", columns)
    return tmp_path


def verdicts(lake: Path, where: object) -> list[str]:
    return [str(file.verdict) for file in paimon.probe(lake, where).files]


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


def test_an_index_file_alone_needs_types(lake: Path) -> None:
    alone = (lake / "1.parquet.index").rename(lake / "lone.orc.index")
    (file,) = paimon.probe(alone, "id = 105").failed
    assert "lone.orc" in str(file.error)
    types = {"id": "BIGINT NOT NULL", "name": paimon.DataType.parse("STRING")}
    assert paimon.probe(alone, "id = 105", types=types).verdicts == {Verdict.MAYBE}
    assert paimon.probe(alone, "name = 'n5'", types=types).verdicts == {Verdict.ABSENT}


def test_a_time_that_is_given_a_type_is_found(tmp_path: Path) -> None:
    table = pa.table({"c": pa.array([36_000_123], pa.time32("ms"))})
    pq.write_table(table, tmp_path / "data.parquet")
    paimon.build_index(tmp_path / "data.parquet", {"c": paimon.IndexOptions(fpp=1e-9)})
    for types in ({}, {"c": "TIME(3)"}):
        probed = paimon.probe(tmp_path, "c = 10:00:00.123", types=types)
        assert probed.verdicts == {Verdict.MAYBE}
        assert paimon.probe(tmp_path, "c = 10:00:01", types=types).verdicts == {Verdict.ABSENT}


@pytest.mark.parametrize(
    ("paimon_type", "value"),
    [
        ("TINYINT", "-5"),
        ("SMALLINT", "300"),
        ("INT", "70000"),
        ("BIGINT", "-9000000000"),
        ("FLOAT", "1.5"),
        ("DOUBLE", "1e300"),
        ("DATE", "2024-03-01"),
        ("TIMESTAMP(3)", "2024-03-01T10:00:00.123"),
        ("TIMESTAMP(6)", "2024-03-01T10:00:00.123456"),
        ("TIMESTAMP_LTZ(6)", "2024-03-01T10:00:00.123456Z"),
        ("TIMESTAMP(9)", "2024-03-01T10:00:00.123456789"),
        ("VARCHAR(20)", "é"),
        ("BYTES", "hex:00ff"),
    ],
)
def test_a_type_that_is_given_hashes_as_the_file_s_own(
    tmp_path: Path, paimon_type: str, value: str
) -> None:
    """The same question, once with the type from the data file and once with Paimon's name."""
    arrow = {
        "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64(),
        "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "DATE": pa.date32(),
        "TIMESTAMP(3)": pa.timestamp("ms"),
        "TIMESTAMP(6)": pa.timestamp("us"), "TIMESTAMP_LTZ(6)": pa.timestamp("us", "UTC"),
        "TIMESTAMP(9)": pa.timestamp("ns"), "VARCHAR(20)": pa.string(), "BYTES": pa.binary(),
    }[paimon_type]  # fmt: skip
    content = b"\0\xff" if paimon_type == "BYTES" else value
    if pa.types.is_floating(arrow):
        content = float(value)
    array = pa.array([content])
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"c": array if array.type == arrow else array.cast(arrow)}), path)
    paimon.build_index(path, {"c": paimon.IndexOptions(fpp=1e-9)})
    for types in ({}, {"c": paimon_type}):
        assert paimon.probe(path, f"c = '{value}'", types=types).verdicts == {Verdict.MAYBE}
    other = {"FLOAT": "2.5", "DOUBLE": "2.5"}.get(paimon_type)
    if other is not None:
        assert paimon.probe(path, f"c = {other}").verdicts == {Verdict.ABSENT}


@pytest.mark.parametrize(
    "where", ["id = 'secret'", "id in (1, 'secret')", "score = 'secret'", "id = 5.0.0"]
)
def test_a_value_that_is_none_of_the_column_stops_the_question(lake: Path, where: str) -> None:
    with pytest.raises(PolicyError, match="not one the column can hold") as refused:
        paimon.probe(lake, where)
    assert "secret" not in str(refused.value)


@pytest.fixture
def evolved(tmp_path: Path) -> Path:
    """A table whose columns grew: an older file, and one with larger types."""
    old = {
        "id": pa.array([1, 2], pa.int32()),
        "ts": pa.array([1, 2], pa.timestamp("ms")),
        "real": pa.array([1.5, 2.5], pa.float32()),
        "other": ["a", "b"],
        "fixed": pa.array([b"ab", b"cd"], pa.binary(2)),
    }
    new = {
        "id": pa.array([3_000_000_000, 2], pa.int64()),
        "ts": pa.array([1, 2000], pa.timestamp("us")),
        "real": pa.array([1e300, 2.5]),
        "other": [1, 2],
        "fixed": pa.array([b"abc", b"cd"]),
    }
    for name, columns in (("a", old), ("b", new)):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table(columns), path)
        paimon.build_index(path, dict.fromkeys(columns, paimon.IndexOptions(fpp=1e-9)))
    return tmp_path


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


@pytest.mark.parametrize(("where", "failing"), [("other = 'a'", 1), ("other = x", 1)])
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


@pytest.mark.parametrize(
    ("where", "types"),
    [
        ("id = 1", {"id": "INT"}),
        ("id = 3000000000", {"id": "INT"}),
        ("id = '1'", {"id": "STRING"}),
        ("ts = 1970-01-01T00:00:00.002", {"ts": "TIMESTAMP(3)"}),
        ("real = 2.5", {"real": "FLOAT"}),
        ("real = 2", {"real": "BIGINT"}),
    ],
)
def test_a_type_that_contradicts_the_footer_is_an_error(
    evolved: Path, where: str, types: dict[str, str]
) -> None:
    newer = evolved / "b.parquet"
    for path in (newer, f"{newer}.index"):
        with pytest.raises(PolicyError, match=f"type given is {next(iter(types.values()))[:5]}"):
            paimon.probe(path, where, types=types)
    newer.rename(evolved / "elsewhere")  # then the type given is all that is known
    assert paimon.probe(f"{newer}.index", where, types=types).verdicts <= set(Verdict)


@pytest.mark.parametrize("types", [{"ts": "TIMESTAMP(6)"}, {"ts": "TIMESTAMP_LTZ(9)"}])
def test_types_of_one_form_are_no_contradiction(evolved: Path, types: dict[str, str]) -> None:
    where = "ts = 1970-01-01T00:00:00.002"
    assert paimon.probe(evolved / "b.parquet", where, types=types).verdicts == {Verdict.MAYBE}


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
    with pytest.raises(PolicyError, match="deeper than 100"):
        paimon.must_read(FileIndex(), deep, paimon.typed_forms({}))
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


def test_an_encrypted_footer_without_its_key_asks_for_types(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(50), Mode.ENCRYPTED)
    paimon.build_index(path, ["id"], keys=KEYRING)
    (file,) = paimon.probe(path, "id = 5").failed
    assert "keyring" in str(file.hint)
    assert "--type id=BIGINT" in str(file.hint)
    assert paimon.probe(path, "id = 5", keys=KEYRING).verdicts == {Verdict.MAYBE}
    assert paimon.probe(path, "id = 5", types={"id": "BIGINT"}).verdicts == {Verdict.MAYBE}


def test_an_index_of_a_column_without_a_hash_keeps_the_file(lake: Path) -> None:
    """A decimal column with an index of another type has no values that we could look for."""
    index = FileIndex.from_bytes((lake / "0.parquet.index").read_bytes())
    index = index.with_indexes([("amount", Index(type="bsi", body=b"x"))])
    (lake / "0.parquet.index").write_bytes(index.to_bytes())
    assert verdicts(lake, "amount = 3")[0] == "maybe"


def test_show_describes_what_anyone_can_see(lake: Path) -> None:
    report = paimon.show(lake)
    assert report.without == (str(lake / "2.parquet"),)
    first = report.indexes[0]
    assert first.path == str(lake / "0.parquet.index")
    assert first.bytes == (lake / "0.parquet.index").stat().st_size
    told = {each.column: each for each in first.indexes}
    assert (told["id"].type, told["id"].hash_functions) == ("bloom-filter", 20)
    assert told["id"].values == pytest.approx(100, abs=3)
    assert told["name"].values == pytest.approx(100, abs=3)


def test_show_describes_foreign_empty_and_damaged_indexes(lake: Path) -> None:
    index = FileIndex().with_indexes(
        [
            ("a", Index(type="future", body=b"abc")),
            ("b", Index(type="bloom-filter", body=None)),
            ("c", Index(type="bloom-filter", body=b"")),
        ]
    )
    (lake / "0.parquet.index").write_bytes(index.to_bytes())
    (lake / "1.parquet.index").write_bytes(b"")
    damaged = paimon.show(lake).failed
    assert [Path(each.path).name for each in damaged] == ["1.parquet.index"]
    told = [(each.type, each.bytes, each.note) for each in paimon.show(lake).indexes[0].indexes]
    assert told[0] == ("future", 3, None)
    assert told[1][:2] == ("bloom-filter", 0)
    assert "no value" in str(told[1][2])
    assert "-4 bytes" in str(told[2][2])


def test_rules_are_taken_by_name(lake: Path) -> None:
    as_paimon = paimon.probe(lake / "0.parquet", "id = 500", rules="paimon-0.9")
    assert as_paimon.rules is paimon.Rules.PAIMON_0_9
    assert as_paimon.verdicts == {Verdict.ABSENT}
    assert as_paimon.files[0].note is None
    assert paimon.probe(lake, "id = 5").rules is paimon.Rules.SAFE
    with pytest.raises(PolicyError) as refused:
        paimon.probe(lake, "id = 5", rules="paimon-2")
    assert "safe and paimon-0.9" in str(refused.value.hint)


@pytest.mark.parametrize("root", list(TypeRoot))
def test_an_example_is_as_wide_as_any_value(root: TypeRoot) -> None:
    """So that the end of a bitmap's list of values is found, by a stored type as by a given one."""
    data_type = paimon.DataType.parse(root)
    values = {"FLOAT": 1.5, "DOUBLE": 1.5, "TIMESTAMP": (1, 0), "TIMESTAMP_LTZ": (1, 0)}
    is_text = root in (TypeRoot.CHAR, TypeRoot.VARCHAR, TypeRoot.STRING)
    is_bytes = root in (TypeRoot.BINARY, TypeRoot.VARBINARY, TypeRoot.BYTES)
    value = values.get(root, "a" if is_text else b"a" if is_bytes else 1)
    form = hashed_form(data_type, value)
    leaf = leaf_of("c", data_type)
    for example in (data_types.example_form(data_type), physical_values.example_form(leaf)):
        assert example is not None
        assert type(example.content) is type(form.content)
        assert isinstance(form.content, bytes) or example.width == form.width


@pytest.mark.parametrize(
    ("number", "wanted"),
    [
        ("5.0", ["maybe", "absent"]),
        ("5.", ["maybe", "absent"]),
        ("1e1", ["maybe", "absent"]),
        ("+1.05E2", ["absent", "maybe"]),
        ("0e999", ["maybe", "absent"]),
        ("-0.0", ["maybe", "absent"]),
        ("5.5", ["absent", "absent"]),
        ("1e-1", ["absent", "absent"]),
        ("1e19", ["absent", "absent"]),
        ("-1e999999999", ["absent", "absent"]),
    ],
)
def test_a_whole_number_may_have_other_spellings(
    lake: Path, number: str, wanted: list[str]
) -> None:
    assert verdicts(lake, f"id = {number}") == [*wanted, "no_filter"]
    assert verdicts(lake, f"id in (700, '{number}')") == [*wanted, "no_filter"]


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


def test_the_hint_beside_an_orc_file_is_to_give_types(lake: Path) -> None:
    (lake / "1.parquet.index").rename(lake / "1.orc.index")
    (lake / "1.orc").write_bytes(b"ORC" + bytes(20))
    for path in (lake / "1.orc", lake / "1.orc.index"):
        (file,) = paimon.probe(path, "id = 5").failed
        assert str(file.hint).startswith("give the types")
        assert "such as --type id=BIGINT" in str(file.hint)
