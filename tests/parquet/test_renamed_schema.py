"""A schema under the table's names: by name and by id, within lists and maps, old forms too."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.errors import FormatError
from secure_bloom.parquet.footer.scan import scan_footer
from secure_bloom.parquet.renamed_schema import renamed_elements, renamed_leaves
from secure_bloom.parquet.structures.metadata import SchemaElement
from secure_bloom.storage.column_mapping import ColumnMapping, NamedField


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
