"""Names that a table gives the columns of its files."""

from __future__ import annotations

from secure_bloom.storage.column_mapping import ColumnMapping, NamedField


def test_a_field_is_found_by_name_or_id() -> None:
    names = ColumnMapping(members={"a": NamedField(name="x"), 3: NamedField(name="y")})
    found = [names.find("a", None), names.find("b", 3), names.find("b", None)]
    assert [one and one.name for one in found] == ["x", "y", None]
