"""Footers passed over by the C extension: what they say is what the Thrift library reads."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thrift.protocol.TProtocol import TType

from secure_bloom.errors import FormatError
from secure_bloom.kernels import extension
from secure_bloom.parquet.footer import scan
from secure_bloom.parquet.footer.columns import FileColumns, SchemaCache
from secure_bloom.parquet.footer.scan import FooterScan, scan_footer
from testing.surgery import opened
from testing.tables import Mode, customers, write
from testing.thrift import trees
from testing.thrift.trees import Map, Sequence, Struct, Value
from tests.kernels import mutations

Fields = dict[int, tuple[int, Value]]


#: These tests are about the C extension.
pytestmark = pytest.mark.skipif(extension.native is None, reason=extension.description)


def nested(rows: int = 100) -> pa.Table:
    return pa.table(
        {
            "email": [f"user{i}@example.com" for i in range(rows)],
            "person": [{"name": "a", "tags": ["x", "y"], "at": {"x": 1.5}} for _ in range(rows)],
            "pairs": pa.array([[("k", 1)]] * rows, pa.map_(pa.string(), pa.int64())),
        }
    )


def footer_of(path: Path) -> bytes:
    with opened(path) as it:
        return it.footer.metadata.encode()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The FileMetaData of a file with 20 row groups."""
    path = tmp_path_factory.mktemp("footers") / "x.parquet"
    return footer_of(write(path, customers(200), Mode.SIGNED, row_group_size=10))


def edited(plain: bytes, change: Callable[[Fields], Any]) -> bytes:
    tree, length = trees.decode(plain)
    assert length == len(plain)
    change(tree.fields)
    return trees.encode(tree)


#: Fields of a FileMetaData of which a scan tells in another way.
OTHERWISE = {"schema", "row_groups"}
#: Fields of a RowGroup that a scan finds.
NUMBERS = ("num_rows", "total_byte_size", "ordinal", "file_offset", "total_compressed_size")


def spelled(value: Any) -> object:
    """All that a record says, by name."""
    if isinstance(value, list):
        return [spelled(item) for item in value]
    spec = getattr(value, "thrift_spec", None)
    if spec is None:
        return value
    names = [field[2] for field in spec if field is not None and field[2] not in OTHERWISE]
    return {name: spelled(vars(value).get(name)) for name in names}


@dataclass(frozen=True)
class Found:
    """A scan, and the columns of its schema."""

    scan: FooterScan
    columns: FileColumns


class Scanner:
    """Scans the footers of one table as a read does."""

    def __init__(self) -> None:
        self._schemas = SchemaCache()

    def of(self, plain: bytes) -> Found:
        return self.found(scan_footer(plain))

    def found(self, scanned: FooterScan) -> Found:
        columns = self._schemas.columns(scanned)
        scanned.check_chunks()
        _ = scanned.numbers
        return Found(scanned, columns)


def said(found: Found) -> dict[str, object]:
    """All that a scan says."""
    scanned = found.scan
    groups = scanned.row_groups
    return {
        "length": scanned.length,
        "metadata": spelled(scanned.metadata),
        "columns": [leaf.name for leaf in found.columns.leaves],
        "schema": found.columns.arrow,
        "groups": [[getattr(group, name) for name in NUMBERS] for group in groups],
        "rows": scanned.rows,
        "ordinals": scanned.ordinals,
        "places": scanned.numbers.tolist()[len(groups) * scan.NUMBERS :],
        "offsets": [list(offsets) for offsets in scanned.chunk_offsets],
    }


def scanned_by_kernel(scanner: Scanner, plain: bytes) -> Found | None:
    """The scan of a footer by the extension alone."""
    found = scan._scanned(plain)
    return None if found is None else scanner.found(found)


def by_library(scanner: Scanner, plain: bytes) -> Found:
    return scanner.found(scan._scanned_by_library(plain))


def assert_same(plain: bytes) -> None:
    scanner = Scanner()
    first = scanner.of(plain)
    found = scanned_by_kernel(scanner, plain)
    assert found is not None
    assert said(found) == said(first) == said(by_library(scanner, plain))
    assert found.columns is first.columns


@pytest.mark.parametrize("group", [10, 14, 1000])
@pytest.mark.parametrize("mode", list(Mode))
def test_files_of_every_mode_say_the_same(tmp_path: Path, mode: Mode, group: int) -> None:
    assert_same(
        footer_of(write(tmp_path / "x.parquet", customers(200), mode, row_group_size=group))
    )


@pytest.mark.parametrize("rows", [0, 1, 100])
def test_nested_columns_say_the_same(tmp_path: Path, rows: int) -> None:
    assert_same(footer_of(write(tmp_path / "x.parquet", nested(rows), row_group_size=30)))


#: Fields that a reader does not know, in every form that is passed over.
UNKNOWN: Fields = {
    10: (TType.BOOL, True),
    11: (TType.BOOL, False),
    12: (TType.DOUBLE, -0.5),
    13: (TType.BYTE, -1),
    14: (TType.I64, -(2**63)),
    15: (TType.I16, -(2**15)),
    16: (TType.SET, Sequence(TType.STRING, [b"a", b"bc"])),
    17: (TType.LIST, Sequence(TType.STRUCT, [Struct({1: (TType.BOOL, False)})] * 20)),
    18: (TType.LIST, Sequence(TType.DOUBLE, [])),
    19: (TType.LIST, Sequence(TType.BOOL, [True, False] * 10)),
    20: (TType.STRUCT, Struct({3: (TType.STRUCT, Struct({2: (TType.I32, 2**31 - 1)}))})),
    500: (TType.STRING, b"x" * 1000),
}
#: The same that only the library reads: no footer has such so far.
OF_THE_LIBRARY: Fields = {
    17: (TType.MAP, Map(TType.STRING, TType.STRUCT, [(b"k", Struct({1: (TType.BOOL, False)}))])),
    18: (TType.LIST, Sequence(TType.LIST, [Sequence(TType.I32, [1])])),
}


def with_each_group(change: Callable[[Fields], Any]) -> Callable[[Fields], None]:
    def changed(fields: Fields) -> None:
        groups = fields[4][1]
        assert isinstance(groups, Sequence)
        for group in groups.items:
            assert isinstance(group, Struct)
            change(group.fields)

    return changed


def with_each_chunk(change: Callable[[Fields], Any]) -> Callable[[Fields], None]:
    def changed(group: Fields) -> None:
        chunks = group[1][1]
        assert isinstance(chunks, Sequence)
        for chunk in chunks.items:
            assert isinstance(chunk, Struct)
            change(chunk.fields)

    return with_each_group(changed)


def no_row_groups(fields: Fields) -> None:
    fields[4] = TType.LIST, Sequence(TType.STRUCT, [])


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(no_row_groups, id="no row groups"),
        pytest.param(lambda fields: fields.pop(5), id="no key_value_metadata"),
        pytest.param(lambda fields: fields.pop(6), id="no created_by"),
        pytest.param(lambda fields: fields.pop(7), id="no column_orders"),
        pytest.param(lambda fields: [fields.pop(i) for i in (8, 9)], id="no encryption"),
        pytest.param(lambda fields: [fields.pop(i) for i in range(5, 10)], id="nothing more"),
        pytest.param(lambda fields: fields.update(UNKNOWN), id="unknown fields"),
        pytest.param(
            with_each_group(lambda group: group.update(UNKNOWN)), id="unknown, of row groups"
        ),
        pytest.param(with_each_chunk(lambda chunk: chunk.update(UNKNOWN)), id="unknown, of chunks"),
        pytest.param(with_each_group(lambda group: group.pop(7)), id="no ordinals"),
        pytest.param(with_each_group(lambda group: group.update({7: (TType.I16, 9)})), id="all 9"),
        pytest.param(lambda fields: fields.update({6: (TType.I32, 1)}), id="number as text"),
        pytest.param(lambda fields: fields.update({6: (TType.STRING, b"\xff")}), id="no UTF-8"),
        pytest.param(lambda fields: fields.update({9: (TType.BOOL, True)}), id="truth as bytes"),
    ],
)
def test_unusual_fields_say_the_same(plain: bytes, change: Callable[[Fields], Any]) -> None:
    assert_same(edited(plain, change))


@pytest.mark.parametrize("field_id", OF_THE_LIBRARY)
@pytest.mark.parametrize(
    "change",
    [lambda change: change, with_each_group, with_each_chunk],
    ids=["", "groups", "chunks"],
)
def test_unknown_maps_are_left_to_the_library(
    plain: bytes, field_id: int, change: Callable[[Any], Callable[[Fields], Any]]
) -> None:
    field = OF_THE_LIBRARY[field_id]
    unusual = edited(plain, change(lambda fields: fields.update({field_id: field})))
    scanner = Scanner()
    scanner.of(plain)
    assert scanned_by_kernel(scanner, unusual) is None
    assert said(scanner.of(unusual)) == said(by_library(Scanner(), unusual))


def test_uuids_are_passed_over(plain: bytes) -> None:
    assert_same(plain[:-1] + b"\x2d" + bytes(range(16)) + b"\x19\x2d" + bytes(32) + b"\x00")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda fields: fields.pop(4), id="no row groups"),
        pytest.param(with_each_group(lambda group: group.pop(3)), id="no num_rows"),
        pytest.param(with_each_group(lambda group: group.pop(2)), id="no total_byte_size"),
        pytest.param(with_each_group(lambda group: group.pop(1)), id="no columns"),
        pytest.param(
            with_each_group(lambda group: group.update({1: (TType.I64, 3)})), id="columns: a number"
        ),
        pytest.param(
            with_each_group(lambda group: group.update({3: (TType.I64, -1)})), id="rows below zero"
        ),
    ],
)
def test_the_refusal_is_that_of_the_library(plain: bytes, change: Callable[[Fields], Any]) -> None:
    scanner, hostile = Scanner(), edited(plain, change)
    scanner.of(plain)
    with pytest.raises(FormatError) as expected:
        said(by_library(scanner, hostile))
    with pytest.raises(FormatError) as refused:
        scanner.of(hostile)
    assert refused.value.message == expected.value.message


def test_a_footer_is_scanned_without_the_library(
    plain: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanner = Scanner()
    first = by_library(scanner, plain)
    monkeypatch.setattr(scan, "_scanned_by_library", None)
    assert said(scanner.of(plain + bytes(7))) == said(first)


def test_files_of_two_schemas_in_turns_keep_their_columns(tmp_path: Path) -> None:
    one, two = (
        footer_of(write(tmp_path / name, pa.table({name: [1, 2]}), store_schema=False))
        for name in ("some", "else")
    )
    assert one[-60:] == two[-60:]
    scanner = Scanner()
    for footer in (one, two):
        scanner.of(footer)
    found = [scanned_by_kernel(scanner, footer) for footer in (one, two, one, two)]
    assert [[leaf.name for leaf in it.columns.leaves] for it in found if it is not None] == [
        ["some"],
        ["else"],
        ["some"],
        ["else"],
    ]


def test_another_text_is_not_that_of_the_file_before(plain: bytes) -> None:
    scanner = Scanner()
    other = edited(plain, lambda fields: fields.update({6: (TType.STRING, b"somebody else")}))
    scanner.of(plain)
    for footer in (plain, other, plain):
        found = scanned_by_kernel(scanner, footer)
        assert found is not None
        assert said(found) == said(by_library(Scanner(), footer))


def test_a_schema_is_not_found_in_a_text_before_it(plain: bytes) -> None:
    """A footer that starts with its texts: one of them ends as a whole footer does."""
    tree, _ = trees.decode(plain)
    text = Struct({1: (TType.STRING, b"k"), 2: (TType.STRING, plain)})
    order = (1, 5, 2, 3, 4, 6, 7)
    fields = tree.fields | {5: (TType.LIST, Sequence(TType.STRUCT, [text]))}
    hostile = trees.encode(Struct({field_id: fields[field_id] for field_id in order}))
    scanner = Scanner()
    first = scanner.of(hostile)
    assert first.scan.length == len(hostile)
    assert scanned_by_kernel(scanner, hostile) is None
    assert said(scanner.of(hostile)) == said(first)


def test_a_footer_known_as_a_whole_says_nothing_of_what_is_behind_it(plain: bytes) -> None:
    tree, _ = trees.decode(plain)
    reordered = {field_id: tree.fields[field_id] for field_id in (3, 1, 2, 4)}
    first = trees.encode(Struct(reordered))
    scanner = Scanner()
    scanner.of(first)
    more = trees.encode(Struct({2: (TType.BOOL, True), 4: tree.fields[4]}))[1:]
    assert scanner.of(first + more).scan.length == len(first)


def outcome(read: Callable[[], Found | None]) -> object:
    try:
        found = read()
        return None if found is None else said(found)
    except FormatError:
        return FormatError


@settings(max_examples=int(os.environ.get("SECURE_BLOOM_EXAMPLES", "25")))
@given(st.data())
def test_hostile_footers_say_what_the_library_reads(plain: bytes, data: st.DataObject) -> None:
    scanner = Scanner()
    scanner.of(plain)
    hostile = data.draw(mutations(plain, start=data.draw(st.sampled_from([0, 200, 400]))))
    found = outcome(lambda: scanned_by_kernel(scanner, hostile))
    if found is not None:
        assert found == outcome(lambda: by_library(scanner, hostile))
