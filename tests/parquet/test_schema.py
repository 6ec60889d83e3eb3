"""Columns are found in any schema, named as a person names them, and refused with a hint."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.parquet.footer.scan import scan_footer
from secure_bloom.parquet.schema import (
    leaves,
    renamed_elements,
    renamed_leaves,
    require_filterable,
    select,
    unknown_column,
)
from secure_bloom.parquet.structures.metadata import FieldRepetitionType, Type
from secure_bloom.storage.column_mapping import ColumnMapping, NamedField
from testing.thrift import trees
from testing.thrift.metadata import FileMetaData, SchemaElement

NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("address", pa.struct([("zip", pa.string()), ("geo", pa.struct([("lat", pa.float64())]))])),
        ("addresses", pa.list_(pa.string())),
        ("tags", pa.map_(pa.string(), pa.list_(pa.int32()))),
        ("digest", pa.binary(20)),
    ]
)


def _schema(schema: pa.Schema) -> list[SchemaElement]:
    sink = io.BytesIO()
    pq.write_table(schema.empty_table(), sink)
    content = sink.getvalue()
    length = int.from_bytes(content[-8:-4], "little")
    return list(FileMetaData(trees.decode(content[-8 - length : -8])[0]).schema)


def _group(name: str, children: int) -> SchemaElement:
    return SchemaElement.of(name=name, num_children=children)


def _column(name: str, **fields: object) -> SchemaElement:
    return SchemaElement.of(**{"name": name, "type": Type.INT32, **fields})


def test_leaves_stand_in_the_order_and_under_the_names_that_pyarrow_gives_them() -> None:
    sink = io.BytesIO()
    pq.write_table(NESTED.empty_table(), sink)
    wanted = pq.ParquetFile(sink).schema
    found = leaves(_schema(NESTED))
    assert [leaf.name for leaf in found] == [wanted.column(i).path for i in range(len(wanted))]
    assert [leaf.type.name for leaf in found] == [
        wanted.column(i).physical_type for i in range(len(wanted))
    ]


def test_a_leaf_knows_whether_a_row_may_hold_it_twice_and_how_wide_it_is() -> None:
    found = {leaf.name: leaf for leaf in leaves(_schema(NESTED))}
    repeated = {name for name, leaf in found.items() if leaf.is_repeated}
    assert repeated == {"addresses.list.element", "tags.key_value.key"} | {
        "tags.key_value.value.list.element"
    }
    assert found["digest"].width == 20
    assert found["address.geo.lat"].width == 8
    assert found["address.zip"].width is None
    assert found["address.geo.lat"].repetitions == (FieldRepetitionType.OPTIONAL,) * 3


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("id", ["id"]),
        ("address", ["address.zip", "address.geo.lat"]),
        ("address.zip", ["address.zip"]),
        ("addresses", ["addresses.list.element"]),
        ("addr", []),
        ("address.zi", []),
        ("", []),
    ],
)
def test_a_name_means_a_leaf_or_all_leaves_below_it(name: str, wanted: list[str]) -> None:
    found = leaves(_schema(NESTED))
    assert [found[i].name for i in select(found, name)] == wanted


@pytest.mark.parametrize(
    "schema",
    [
        [],
        [_group("root", 2), _column("a")],
        [_group("root", 1), _column("a"), _column("b")],
        [_group("root", 1), _group("deep", 5), _column("a")],
        [_group(str(i), 1) for i in range(300)] + [_column("a")],
    ],
    ids=["nothing", "too few", "too many", "too few below", "too deep"],
)
def test_a_list_that_is_not_one_tree_is_refused(schema: list[SchemaElement]) -> None:
    with pytest.raises(FormatError, match="schema"):
        leaves(schema)


@pytest.mark.parametrize("length", [None, 0, -1])
def test_a_fixed_length_that_cannot_be_is_refused_by_name(length: int | None) -> None:
    element = _column("a", type=Type.FIXED_LEN_BYTE_ARRAY)
    if length is not None:
        element.type_length = length
    (leaf,) = leaves([_group("root", 1), element])
    with pytest.raises(FormatError, match=f"type_length of column a is {length}"):
        _ = leaf.width


def test_a_boolean_column_is_refused() -> None:
    flag, number = leaves([_group("r", 2), _column("flag", type=Type.BOOLEAN), _column("n")])
    require_filterable(number)
    with pytest.raises(UnsupportedFeatureError, match="flag is BOOLEAN"):
        require_filterable(flag)


def test_an_unknown_name_gets_those_that_come_close() -> None:
    error = unknown_column("emial", ["email", "iban", "email"])
    assert "emial" in error.message
    assert error.hint == "did you mean email"
    assert unknown_column("zzz", ["email", "iban"]).hint == "there are email, iban"


def test_a_name_with_a_dot_is_no_child_of_its_prefix() -> None:
    columns = leaves(_schema(pa.schema([("x", pa.int32()), ("x.y", pa.int32())])))
    assert select(columns, "x") == [0]
    assert select(columns, "x.y") == [1]


def test_another_case_is_a_close_match() -> None:
    assert unknown_column("ID", ["id", "name"]).hint == "did you mean id"


def elements(schema: pa.Schema) -> list[SchemaElement]:
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink)
    data = sink.getvalue().to_pybytes()
    length = int.from_bytes(data[-8:-4], "little")
    return list(scan_footer(data[-8 - length : -8]).schema.elements)


def named(**members: Any) -> ColumnMapping:
    return ColumnMapping(members={key: NamedField(name=name) for key, name in members.items()})


def test_what_is_inside_is_renamed_too() -> None:
    inner = pa.struct({"a": pa.int64(), "b": pa.int64()})
    schema = pa.schema({"l": pa.list_(inner), "m": pa.map_(pa.string(), inner), "s": inner})
    names = ColumnMapping(
        members={
            "l": NamedField(name="list", inside=ColumnMapping(inner=(named(a="A", b="B"),))),
            "m": NamedField(name="map", inside=ColumnMapping(inner=(None, named(b="B")))),
            "s": NamedField(name="struct", inside=named(a="A", b="B")),
        }
    )
    found = renamed_leaves(elements(schema), names)
    assert [leaf.name for leaf in found] == [
        "list.list.element.A",
        "list.list.element.B",
        "map.key_value.key",
        "map.key_value.value.a (not in the table)",
        "map.key_value.value.B",
        "struct.A",
        "struct.B",
    ]
    assert found[0].stored_path == ("l", "list", "element", "a")


def test_a_field_is_found_by_its_id() -> None:
    x, other = (
        pa.field(name, pa.int64(), metadata={"PARQUET:field_id": number})
        for name, number in (("x", "7"), ("id", "8"))
    )
    names = ColumnMapping(members={7: NamedField(name="id")})
    schema = pa.schema([x, other])
    found = renamed_leaves(elements(schema), names)
    assert [leaf.name for leaf in found] == ["id", "id (not in the table)"]


def test_a_name_that_is_gone_never_becomes_that_of_another() -> None:
    names = named(x="y (not in the table)")
    found = renamed_leaves(elements(pa.schema({"x": pa.int64(), "y": pa.int64()})), names)
    assert [leaf.name for leaf in found] == ["y (not in the table)", "y (not in the table)'"]


def test_the_schema_of_the_file_stays_as_it_is() -> None:
    schema = elements(pa.schema({"x": pa.int64()}))
    renamed_elements(schema, named(x="y"))
    assert [node.name for node in schema] == ["schema", "x"]


def test_a_schema_that_is_no_list_is_damage() -> None:
    schema = elements(pa.schema({"s": pa.struct({"a": pa.int64(), "b": pa.int64()})}))
    names = ColumnMapping(
        members={"s": NamedField(name="l", inside=ColumnMapping(inner=(named(),)))}
    )
    with pytest.raises(FormatError, match="one repeated node"):
        renamed_elements(schema, names)
    assert len(renamed_elements(schema, named(s="l"))) == 4
