"""Names that a table gives the columns of its files."""

from __future__ import annotations

from secure_bloom.storage.column_mapping import (
    ColumnMapping,
    NamedField,
    OlderColumn,
    older_columns,
)
from testing.growth import growth


def test_a_field_is_found_by_name_or_id() -> None:
    names = ColumnMapping(members={"a": NamedField(name="x"), 3: NamedField(name="y")})
    found = [names.find("a", None), names.find("b", 3), names.find("b", None)]
    assert [one and one.name for one in found] == ["x", "y", None]


def test_older_columns_have_the_paths_that_files_show() -> None:
    def struct(**fields: NamedField) -> ColumnMapping:
        return ColumnMapping(members={f"col-{it}": fields[it] for it in fields})

    home = struct(z=NamedField(name="zip"), c=NamedField(name="city"))
    tags = ColumnMapping(inner=(struct(t=NamedField(name="text")),))
    now = struct(
        h=NamedField(name="address", inside=struct(c=NamedField(name="city"))),
        t=NamedField(name="tags", inside=tags),
    )
    then = struct(
        h=NamedField(name="home", inside=home),
        t=NamedField(name="labels", inside=tags),
        m=NamedField(name="pairs", inside=ColumnMapping(inner=(None, None))),
    )
    found = {".".join(it.path): ".".join(it.shown) for it in older_columns(now, [then, now, then])}
    assert (
        found.items()
        >= {
            "home": "address",
            "home.zip": "address.col-z (not in the table)",
            "home.city": "address.city",
            "labels": "tags",
            "labels.list.element.text": "tags.list.element.text",
            "pairs": "col-m (not in the table)",
            "pairs.key_value.value": "col-m (not in the table).key_value.value",
        }.items()
    )
    # What is inside a type without names may be a list: its levels are those of any list.
    assert found["home.zip.list.element"] == "address.col-z (not in the table).list.element"
    assert older_columns(now, [now]) == []
    assert older_columns(now, [then])[0] == OlderColumn(("home",), ("address",))
    assert now.shown(("address", "col-z", "x")) == ("address", "col-z (not in the table)", "x")


def test_names_of_a_wide_table_are_looked_up() -> None:
    """Each one without going through all fields."""

    def translated(columns: int) -> None:
        members = {f"col-{n}": NamedField(name=f"c{n}") for n in range(columns)}
        names = ColumnMapping(members=members)
        for n in range(columns):
            assert names.stored(f"c{n}") == f"col-{n}"
            assert names.logical(f"col-{n}") == f"c{n}"
            assert names.has_field(f"c{n}")
            assert names.shown((f"c{n}",)) == (f"c{n}",)

    assert growth(translated, 50) < 5
