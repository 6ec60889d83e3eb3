"""Literals and columns of different types, and columns whose files differ, in whole reads."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.parquet.structures.metadata import FieldRepetitionType, Type
from testing.python_truths import COMPARISONS
from testing.surgery import Opened, edit_footer
from testing.thrift.metadata import SchemaElement

_START = datetime(2024, 3, 1)


def written(path: Path, array: pa.Array, **options: Any) -> pa.Table:
    """A file of one column in row groups of a row each, with filters where there may be some."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"a": array})
    pq.write_table(table, path, row_group_size=1, **options)
    if not pa.types.is_nested(array.type) and not pa.types.is_boolean(array.type):
        assert not sb.add_bloom_filters(path, columns=["a"]).failed
    return table


@pytest.mark.parametrize(
    ("array", "literals"),
    [
        (
            pa.array([0.1, 0.7, 0.5, -0.0, float("nan"), float("inf"), None], pa.float32()),
            [
                0.1,
                0.7,
                0.5,
                0,
                1e300,
                -1e300,
                1e-60,
                Decimal("0.1"),
                Decimal("0.5"),
                3,
                pa.scalar(0.1, pa.float32()),
                float("nan"),
                float("inf"),
            ],
        ),
        (
            pa.array([0.1, 3.0, float("nan"), None]),
            [0.1, 3, Decimal("0.1"), pa.scalar(0.1, pa.float32())],
        ),
        (
            pa.array([1, 2, 3, -1, None], pa.int32()),
            [
                2,
                2.0,
                2.5,
                -0.5,
                2**31,
                -(2**40),
                Decimal("2.5"),
                Decimal("2.00"),
                float("inf"),
                float("nan"),
                pa.scalar(2, pa.uint8()),
            ],
        ),
        (pa.array([1, 2, 200, None], pa.uint8()), [-1, 1.5, 2, 256, -1e300, 1e300]),
        (
            pa.array([Decimal("1.50"), Decimal("0.10"), Decimal("-1.25"), None]),
            [1.5, 0.1, Decimal("1.555"), Decimal("1.5"), Decimal("-1e20"), float("nan")],
        ),
        (
            pa.array([_START, _START + timedelta(milliseconds=1), None], pa.timestamp("ms")),
            [
                _START,
                _START + timedelta(microseconds=1),
                date(2024, 3, 1),
                pa.scalar(1709251200000000001, pa.timestamp("ns")),
            ],
        ),
        (pa.array([_START.date(), None]), [_START, _START + timedelta(hours=1), date(2024, 3, 1)]),
        (pa.array([time(1), time(2), None], pa.time32("ms")), [time(1), time(1, 0, 0, 1)]),
        (pa.array([timedelta(1), None], pa.duration("ms")), [timedelta(1), timedelta(1, 0, 1)]),
        (pa.array([b"aa", b"ab", None], pa.binary(2)), [b"a", b"ab", b"aba", b""]),
        (pa.array(["a", "b", None]).dictionary_encode(), ["a", "ab"]),
    ],
    ids=lambda of: str(of.type) if isinstance(of, pa.Array) else "",
)
def test_expressions_give_the_rows_of_pyarrow(
    tmp_path: Path, array: pa.Array, literals: list[Any]
) -> None:
    table = written(tmp_path / "x.parquet", array)
    field = pc.field("a")
    for i, literal in enumerate(literals):
        for j, (name, compare) in enumerate(COMPARISONS.items()):
            # Each comparison of each literal as it is or negated, in turns.
            expression = ~compare(field, literal) if (i + j) % 2 else compare(field, literal)
            found = sb.read_table(tmp_path, where=expression)
            wanted = table.filter(expression)
            assert repr(found.to_pydict()) == repr(wanted.to_pydict()), (literal, expression)
            if name in ("=", "<") and isinstance(literal, int | float | Decimal):
                asked = sb.read_table(tmp_path, where=[("a", name, literal)])
                assert repr(asked.to_pydict()) == repr(
                    table.filter(compare(field, literal)).to_pydict()
                )


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (pa.array([0.1, 0.7, 0.5, None], pa.float32()), [[0.1], [0.5, 0.7], [1e-60]]),
        (pa.array([0.1, 0.5, None], pa.float32()), [[Decimal("0.1")], [pa.scalar(0.5)]]),
        (pa.array([1, 2, None], pa.int32()), [[1.0], [1.5], [1, 2**40], ["1"]]),
        (pa.array([Decimal("1.55"), Decimal("0.10")]), [[1.555], [0.1], [1.555, 1e20]]),
        (pa.array([_START], pa.timestamp("ms")), [[_START], [_START + timedelta(microseconds=1)]]),
    ],
    ids=lambda of: str(of.type) if isinstance(of, pa.Array) else "",
)
def test_lists_of_an_expression_are_cast_as_pyarrow_casts_them(
    tmp_path: Path, array: pa.Array, values: list[Any]
) -> None:
    table = written(tmp_path / "x.parquet", array)
    for some in values:
        for expression in (pc.field("a").isin(pa.array(some)), ~pc.field("a").isin(pa.array(some))):
            assert sb.read_table(tmp_path, where=expression).equals(table.filter(expression)), some


@pytest.mark.parametrize(
    ("array", "where", "wanted"),
    [
        (pa.array([1, 2, 2**63 - 1]), "a < 2.5", 2),
        (pa.array([1, 2, 2**63 - 1]), "a = 2.0", 1),
        (pa.array([1, 2, 2**63 - 1]), "a < 9223372036854775807", 2),
        (pa.array([1, 2, 2**63 - 1]), "a < 9223372036854775807.5", 3),
        (pa.array([1, 2, 2**63 - 1]), "a >= 99999999999999999999", 0),
        (pa.array([1, 2, 2**63 - 1]), "not a >= nan", 3),
        (pa.array([0, 2**64 - 1], pa.uint64()), "a > -1", 2),
        (pa.array([0, 2**64 - 1], pa.uint64()), "a in (-1, 18446744073709551615)", 1),
        (pa.array([0, 2**64 - 1], pa.uint64()), "a != -1 and a <= 18446744073709551615.0", 2),
        (pa.array([Decimal("1.50")]), "a > 1.499999999999999999999999", 1),
        (pa.array([_START], pa.timestamp("ns")), "a < '9999-12-31' and a > '0001-01-01'", 1),
        (pa.array([_START], pa.timestamp("s", "UTC")), "a < '2024-03-01T00:00:00.5Z'", 1),
        (pa.array([time(1)], pa.time32("s")), "a < '01:00:00.000000001'", 1),
        (pa.array([b"ab"], pa.binary(2)), "a > 'a' and a < 'abc' and a != 'abc'", 1),
    ],
    ids=str,
)
def test_a_value_between_others_or_beyond_has_a_clear_answer(
    tmp_path: Path, array: pa.Array, where: str, wanted: int
) -> None:
    written(tmp_path / "x.parquet", array)
    assert sb.read_table(tmp_path, where=where).num_rows == wanted


_UTC = _START.replace(tzinfo=UTC)
_UUID = bytes(range(16))


@pytest.mark.parametrize(
    ("left", "right", "wanted"),
    [
        (
            pa.array([1, 2**31 - 1], pa.int32()),
            pa.array([Decimal("1.50")], pa.decimal128(5, 2)),
            pa.decimal128(12, 2),
        ),
        (pa.array([-(2**63), 5]), pa.array([2**64 - 1, 5], pa.uint64()), pa.decimal128(20, 0)),
        (pa.array([-128, 5], pa.int8()), pa.array([2**63 - 1, 5]), pa.int64()),
        (pa.array([5, -1], pa.int32()), pa.array([2**32 - 1, 5], pa.uint32()), pa.int64()),
        (pa.array([0.1, 2.0], pa.float32()), pa.array([0.1, 2.0]), pa.float64()),
        (pa.array([2**31 - 1, 2], pa.int32()), pa.array([0.1, 2.0], pa.float32()), pa.float64()),
        (
            pa.array([Decimal("1.50")], pa.decimal128(5, 2)),
            pa.array([Decimal("1.5000"), Decimal("1.2345")], pa.decimal128(9, 4)),
            pa.decimal128(9, 4),
        ),
        (
            pa.array([Decimal("1.50")], pa.decimal128(38, 2)),
            pa.array([Decimal("1.5"), Decimal("1.2345")], pa.decimal128(38, 10)),
            pa.decimal256(46, 10),
        ),
        (pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", "c"]), pa.string()),
        (
            pa.array(["a", "b"], pa.large_string()),
            pa.array(["b"], pa.string_view()),
            pa.large_string(),
        ),
        (pa.array(["a", "b"]), pa.array([b"b", b"\xff"]), pa.binary()),
        (pa.array([_UUID], pa.uuid()), pa.array([_UUID, bytes(16)], pa.binary(16)), pa.binary(16)),
        (pa.array([b"abc"], pa.binary(3)), pa.array([b"abc", b"d"]), pa.binary()),
        (
            pa.array([_START], pa.timestamp("ms")),
            pa.array([_START, _START + timedelta(microseconds=1)], pa.timestamp("us")),
            pa.timestamp("us"),
        ),
        (
            pa.array([_UTC], pa.timestamp("us", "Europe/Rome")),
            pa.array([_UTC, _UTC + timedelta(1)], pa.timestamp("ms", "UTC")),
            pa.timestamp("us", "UTC"),
        ),
        (
            pa.array([time(1)], pa.time32("ms")),
            pa.array([time(1), time(2)], pa.time64("us")),
            pa.time64("us"),
        ),
        (pa.array([None, None], pa.null()), pa.array([1, None], pa.int16()), pa.int16()),
    ],
    ids=lambda of: str(of.type) if isinstance(of, pa.Array) else "",
)
def test_files_that_differ_make_up_a_type_with_all_their_values(
    tmp_path: Path, left: pa.Array, right: pa.Array, wanted: pa.DataType
) -> None:
    for first, second in ((left, right), (right, left)):
        folder = tmp_path / str(first.type)[:9]
        written(folder / "a.parquet", first)
        written(folder / "b.parquet", second)
        whole = pa.chunked_array([first.cast(wanted), second.cast(wanted)])
        found = sb.read_table(folder)
        assert found.schema.field("a").type == wanted
        assert found.column("a").equals(whole)
        for i, value in enumerate(whole.drop_null()):
            other = (("!=", pc.not_equal), ("<", pc.less))[i % 2]
            for name, compare in (("=", pc.equal), other):
                got = sb.read_table(folder, where=[("a", name, value)]).column("a")
                assert got.equals(whole.filter(compare(whole, value))), (name, value)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.int64(), pa.float64()),
        (pa.decimal128(5, 2), pa.float64()),
        (pa.decimal256(70, 2), pa.decimal256(70, 20)),
        (pa.date32(), pa.timestamp("us", "UTC")),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.bool_(), pa.int32()),
        (pa.string(), pa.int32()),
        (pa.uuid(), pa.string()),
        (pa.list_(pa.int32()), pa.int32()),
        (pa.list_(pa.struct([("x", pa.int64())])), pa.list_(pa.struct([("x", pa.float32())]))),
    ],
    ids=str,
)
def test_types_with_nothing_in_common_are_refused_by_every_read_of_the_column(
    tmp_path: Path, left: pa.DataType, right: pa.DataType
) -> None:
    """The row groups have no rows that could tell, and the condition leaves none to be read."""
    for name, of in (("a", left), ("b", right)):
        table = pa.table({"id": pa.array([1]), "a": pa.array([None], of)})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    told = set()
    for where in (None, "id = 1", "id = 2", "a is null"):
        with pytest.raises(PolicyError, match=r"b\.parquet, column a") as caught:
            sb.read_table(tmp_path, where=where)
        told.add(str(caught.value))
    (message,) = told
    assert "a.parquet and" in message
    assert sb.read_table(tmp_path, columns=["id"]).num_rows == 2
    assert f" {_inner(left)} in " in message.replace("element: ", "item: ")
    assert f" {_inner(right)} here" in message


def _inner(of: pa.DataType) -> pa.DataType:
    return of.value_type.field(0).type if "struct" in str(of) else of


def test_three_types_fit_in_any_order(tmp_path: Path) -> None:
    """Two of them alone make up an int64, which is no double."""
    arrays = [pa.array([1], pa.int32()), pa.array([2], pa.uint32()), pa.array([0.5])]
    for index, array in enumerate(arrays):
        written(tmp_path / f"{index}.parquet", array)
    assert sb.read_table(tmp_path).column("a").to_pylist() == [1.0, 2.0, 0.5]
    assert sb.read_table(tmp_path, where="a = 2").num_rows == 1


def test_a_double_is_no_float_of_a_file_that_has_floats(tmp_path: Path) -> None:
    """0.7 lies between two FLOATs: the bounds of the file say so, and its filter need not."""
    written(tmp_path / "b.parquet", pa.array([0.7, 0.1]))
    table = pa.table({"a": pa.array([0.0, 0.1, 0.7], pa.float32())})
    pq.write_table(table, tmp_path / "a.parquet")
    assert not sb.add_bloom_filters(tmp_path / "a.parquet", columns=["a"]).failed
    for where, count in {"a < 0.7": 4, "a >= 0.7": 1, "a = 0.1": 1, "a != 0.7": 4}.items():
        assert sb.read_table(tmp_path, where=where).num_rows == count, where
    assert sb.explain(tmp_path, where="a in (0.1, 0.7)").row_groups_read == 2
    (tmp_path / "a.parquet").unlink()
    pq.write_table(table.slice(2), tmp_path / "a.parquet")
    assert sb.read_table(tmp_path, where="a < 0.7").num_rows == 2


def test_structures_are_joined_member_by_member(tmp_path: Path) -> None:
    one = pa.struct([pa.field("x", pa.int32(), nullable=False), ("y", pa.list_(pa.string()))])
    other = pa.struct([("z", pa.bool_()), ("y", pa.large_list(pa.string())), ("x", pa.int64())])
    pq.write_table(pa.table({"s": pa.array([{"x": 1, "y": ["a"]}], one)}), tmp_path / "a.parquet")
    pq.write_table(
        pa.table({"s": pa.array([{"x": 2**40, "y": [], "z": True}, None], other)}),
        tmp_path / "b.parquet",
    )
    found = sb.read_table(tmp_path, where="s.x >= 1 or s is null")
    wanted = [("x", pa.int64()), ("y", pa.large_list(pa.string())), ("z", pa.bool_())]
    assert found.schema.field("s").type == pa.struct(wanted)
    assert found.column("s").to_pylist() == [
        {"x": 1, "y": ["a"], "z": None},
        {"x": 2**40, "y": [], "z": True},
        None,
    ]


def test_a_column_that_a_file_lacks_may_be_null(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int32(), nullable=False)])
    pq.write_table(pa.table([[1]], schema=schema), tmp_path / "a.parquet")
    assert not sb.read_table(tmp_path).schema.field("a").nullable
    pq.write_table(pa.table({"b": [1]}), tmp_path / "b.parquet")
    assert sb.read_table(tmp_path).schema.field("a").nullable


def test_an_instant_beyond_the_finer_unit_is_an_error_that_names_its_file(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", pa.array([datetime(9999, 12, 31)], pa.timestamp("us")))
    written(tmp_path / "b.parquet", pa.array([_START], pa.timestamp("ns")))
    with pytest.raises(sb.FormatError, match=r"a\.parquet, column a: a value does not fit"):
        sb.read_table(tmp_path)


@pytest.mark.parametrize("where", [None, "a = 1", "b = 1"])
def test_two_columns_of_one_name_are_refused_with_the_file(
    tmp_path: Path, where: str | None
) -> None:
    pq.write_table(pa.table({"a": [1], "b": [1]}), tmp_path / "a.parquet")
    twice = pa.table([[1], [2], [3]], names=["b", "a", "a"])
    pq.write_table(twice, tmp_path / "b.parquet")
    for path in (tmp_path, tmp_path / "b.parquet"):
        with pytest.raises(PolicyError, match=r"b\.parquet, column a: the file has two columns"):
            sb.read_table(path, where=where)
    pq.write_table(pa.table([[1], [2]], names=["a", "A"]), tmp_path / "b.parquet")
    assert sb.read_table(tmp_path).column_names == ["a", "b", "A"]


#: Empty lists, nulls in lists, null lists, and row groups with one sort alone.
_LISTS: list[Any] = [[1, 2], [], [], [None], [], None, None, None, [3], [None]]


@pytest.mark.parametrize("size", [1, 2, 3, 10])
@pytest.mark.parametrize("of", [pa.list_(pa.int32()), pa.large_list(pa.int32())], ids=str)
def test_a_list_is_null_only_where_there_is_none(
    tmp_path: Path, of: pa.DataType, size: int
) -> None:
    lists = pa.array(_LISTS, of)
    struct = pa.StructArray.from_arrays([lists], ["a"], mask=pa.array([i == 4 for i in range(10)]))
    table = pa.table({"a": lists, "s": struct, "i": range(10)})
    path = tmp_path / "x.parquet"
    pq.write_table(table, path, row_group_size=size, write_page_index=True)
    _hold_null_tests(path, {"a": lists, "s": struct, "s.a": pc.struct_field(struct, "a")})


@pytest.mark.parametrize("is_group", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_lists_of_two_levels(tmp_path: Path, size: int, is_group: bool) -> None:
    """`repeated int32 a`, and the same below a group LIST, as old writers have them."""
    of = pa.list_(pa.field("element", pa.int32(), nullable=False))
    absent: Any = None if is_group else []
    lists = pa.array([[1, 2], [], absent, absent, [3], [], absent, [5]], of)
    schema = pa.schema([pa.field("a", of, nullable=is_group), ("i", pa.int32())])
    path = tmp_path / "x.parquet"
    pq.write_table(
        pa.table([lists, range(8)], schema=schema),
        path,
        row_group_size=size,
        write_page_index=True,
        store_schema=False,
    )
    edit_footer(path, _grouped if is_group else _bare)
    whole = pq.ParquetFile(path).read()
    assert whole.column("a").to_pylist() == lists.to_pylist()
    _hold_null_tests(path, {"a": whole.column("a")})
    # Any element, as in lists of three levels.
    for where, rows in {"a = 1": [0], "a in (2, 5)": [0, 7], "a >= 3": [4, 7], "a = 9": []}.items():
        assert sb.read_table(path, where=where)["i"].to_pylist() == rows, where


def _hold_null_tests(path: Path, columns: dict[str, Any]) -> None:
    whole = pq.ParquetFile(path).read()
    for name, column in columns.items():
        for test, rows in (("is null", pc.is_null(column)), ("is not null", pc.is_valid(column))):
            found = sb.read_table(path, where=f"{name} {test}")
            assert found.equals(whole.filter(rows)), (name, test)


def _repeated(name: str) -> SchemaElement:
    return SchemaElement.of(
        type=Type.INT32, repetition_type=FieldRepetitionType.REPEATED, name=name
    )


def _bare(it: Opened) -> None:
    _rewrite(it, [_repeated("a")], ["a"])


def _grouped(it: Opened) -> None:
    group = it.footer.metadata.schema[1]
    _rewrite(it, [group, _repeated("element")], ["a", "element"])


def _rewrite(it: Opened, nodes: list[SchemaElement], path: list[str]) -> None:
    metadata = it.footer.metadata
    metadata.schema = [metadata.schema[0], *nodes, metadata.schema[-1]]
    for group in metadata.row_groups:
        assert group.columns[0].meta_data is not None
        group.columns[0].meta_data.path_in_schema = path


WITHOUT_A_TYPE = {
    "a wide decimal": [pa.array([Decimal(1)], pa.decimal256(50, 2))],
    "decimals that are wide together": [
        pa.array([Decimal(1)], pa.decimal128(38, 2)),
        pa.array([Decimal(1)], pa.decimal128(18, 4)),
    ],
    "a half float": [pa.array([1.0], pa.float32()).cast(pa.float16())],
}


@pytest.mark.parametrize("name", WITHOUT_A_TYPE)
def test_a_column_that_an_engine_has_no_type_for_fails_only_if_asked_for(
    tmp_path: Path, name: str
) -> None:
    for number, values in enumerate(WITHOUT_A_TYPE[name]):
        inside = pa.StructArray.from_arrays([values], ["v"])
        table = pa.table({"id": [number], "v": values, "p": inside})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    ids = [[number] for number in range(len(WITHOUT_A_TYPE[name]))]
    rows = sb.open_table(tmp_path).scan_polars()
    assert sorted(map(list, rows.select("id").filter(pl.col("id") < 9).collect().rows())) == ids
    asked = "select id from '{0}' where id < 9 order by id"
    assert [list(it.values()) for it in sb.sql(asked.format(tmp_path)).to_pylist()] == ids
    if "decimal" in name:
        for column in ("v", "p"):
            with pytest.raises(UnsupportedFeatureError, match=f"column {column} has decimals"):
                sb.sql(f"select {column} from '{tmp_path}'")
    else:
        assert sb.sql(f"select v, p.v as w from '{tmp_path}'").to_pylist() == [{"v": 1.0, "w": 1.0}]
