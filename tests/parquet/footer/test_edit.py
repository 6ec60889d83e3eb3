"""Filters are entered where a chunk's metadata stand, and every other byte stays as it is."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import FormatError
from secure_bloom.parquet.footer.edit import FilterPlace, with_filters, with_texts
from secure_bloom.parquet.footer.locate import read_tail, with_trailer
from secure_bloom.parquet.footer.opened import Footer, unlock
from secure_bloom.parquet.footer.scan import scan_footer
from secure_bloom.parquet.structures.records import decode_record
from secure_bloom.parquet.structures.splices import Splice, splice, with_fields
from secure_bloom.parquet.structures.wire_fields import find_fields
from secure_bloom.storage import open_input
from testing.tables import KEYRING, Mode, customers, write
from testing.thrift.metadata import ColumnMetaData, KeyValue

KEYS = KeyResolver(KEYRING).for_file()
#: Field 30, an i32 of 7, whose id is written out although a later field could count from it.
LATER = b"\x05\x3c\x0e"


def _read(path: Path) -> Footer:
    with open_input(str(path)) as file:
        return unlock(read_tail(file), KEYS)


def _entered(footer: Footer, *ordinals: tuple[int, int]) -> bytes:
    chunks = [footer.chunk(*ordinal) for ordinal in ordinals]
    return with_filters(
        footer, [FilterPlace(chunk, 1000 + i, 47) for i, chunk in enumerate(chunks)]
    )


def _meta_data(plain: bytes, offset: int) -> bytes:
    field = find_fields(plain, offset).by_id[3]
    return plain[field.value : field.end]


def _with_long_forms(path: Path) -> bytes:
    """A footer whose chunks end with a field of a later format, in a form that few writers use."""
    footer = _read(path)
    plain, splices = footer.plain, []
    for offsets in footer.scan.chunk_offsets:
        for offset in offsets:
            stop = find_fields(plain, find_fields(plain, offset).by_id[3].value).stop
            splices.append(Splice(stop, stop, LATER))
    changed = splice(plain, splices)
    content = path.read_bytes()[: footer.tail.offset]
    path.write_bytes(content + with_trailer(changed, b"PAR1"))
    return changed


def test_nothing_but_the_two_fields_is_new(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(40), row_group_size=20)
    old = _with_long_forms(path)
    footer = _read(path)
    new = _entered(footer, (0, 0), (1, 3))
    grown = with_fields(_meta_data(old, footer.scan.chunk_offsets[0][0]), {})
    assert grown.endswith(LATER + b"\0")
    first = old.index(grown)
    assert new[:first] == old[:first]
    assert new.count(LATER) == old.count(LATER) == 10
    path.write_bytes(path.read_bytes()[: footer.tail.offset] + with_trailer(new, b"PAR1"))
    places = [
        _read(path).chunk(*ordinal).meta_data.bloom_filter_offset
        for ordinal in ((0, 0), (0, 3), (1, 0), (1, 3))
    ]
    assert places == [1000, None, None, 1001]
    without = dict.fromkeys((14, 15))
    edited = _read(path).scan.chunk_offsets
    for before, after in zip(footer.scan.chunk_offsets, edited, strict=True):
        for one, other in zip(before, after, strict=True):
            assert with_fields(_meta_data(new, other), without) == _meta_data(old, one)


def test_files_that_few_writers_make_get_filters(tmp_path: Path) -> None:
    """Such a file was refused: a footer had to come back from its decoded form as it was."""
    path = write(tmp_path / "x.parquet", customers(40), row_group_size=20)
    _with_long_forms(path)
    report = sb.add_bloom_filters(path, columns=["email"])
    assert [file.status for file in report.files] == ["added"]
    assert pq.read_table(path).equals(customers(40))
    (probed,) = sb.probe(path, "email", ["nobody@example.com"]).files
    assert [group.filter for group in probed.row_groups] == [True, True]


def test_metadata_of_their_own_are_encrypted_again(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(40), Mode.SIGNED, row_group_size=20)
    footer = _read(path)
    email = [leaf.name for leaf in footer.leaves].index("email")
    chunk = footer.chunk(1, email)
    new = _entered(footer, (1, email))
    offset = footer.scan.chunk_offsets[1][email]
    module = find_fields(new, offset).by_id[9]
    assert chunk.cipher is not None
    plain = chunk.cipher.decrypt(ModuleType.COLUMN_META_DATA, new[module.value + 2 : module.end])
    sealed = decode_record(ColumnMetaData, plain)
    shown = decode_record(ColumnMetaData, _meta_data(new, offset))
    assert sealed.statistics is not None
    assert shown.statistics is None
    for copy in (sealed, shown):
        assert (copy.bloom_filter_offset, copy.bloom_filter_length) == (1000, 47)
    old_module = chunk.column_chunk.encrypted_column_metadata
    assert old_module is not None
    assert old_module not in new


def test_a_field_that_stands_twice_is_not_edited(tmp_path: Path) -> None:
    """Readers do not agree which one counts."""
    path = write(tmp_path / "x.parquet", customers(10))
    footer = _read(path)
    start = find_fields(footer.plain, footer.scan.chunk_offsets[0][0]).by_id[3].value
    fields = find_fields(footer.plain, start)
    last = fields.by_id[max(fields.by_id)]
    again = bytes([last.type, 2 * max(fields.by_id)]) + footer.plain[last.value : last.end]
    plain = splice(footer.plain, [Splice(fields.stop, fields.stop, again)])
    path.write_bytes(path.read_bytes()[: footer.tail.offset] + with_trailer(plain, b"PAR1"))
    with pytest.raises(FormatError, match="occurs twice"):
        _entered(_read(path), (0, 0))


def test_texts_are_left_out_by_name_and_new_ones_go_to_the_end(tmp_path: Path) -> None:
    pairs = {"keep": "1", "go": "2", "stay": "3"}
    table = pa.table({"id": [1]}).replace_schema_metadata(pairs)
    plain = _read(write(tmp_path / "x.parquet", table)).plain
    new = KeyValue.of(key="new", value="4").encode()
    found = scan_footer(with_texts(plain, [new], without={"go", "absent"}))
    texts = [(text.key, text.value) for text in found.metadata.key_value_metadata or ()]
    assert [text for text in texts if text[0] != "ARROW:schema"] == [
        ("keep", "1"),
        ("stay", "3"),
        ("new", "4"),
    ]
    assert with_texts(plain, without=()) is plain


def test_a_footer_without_texts_stays_as_it_is(tmp_path: Path) -> None:
    plain = _read(write(tmp_path / "x.parquet", pa.table({"id": [1]}), store_schema=False)).plain
    assert with_texts(plain, without={"any"}) is plain
