"""Filters stand where their writers put them: between row groups, or without a length."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.parquet.footer.chunks import Chunk
from testing.live_footer import encode_footer, set_bloom_filter
from testing.project import CORPUS, NO_CORPUS
from testing.surgery import edit_column, filter_of, filter_place, opened
from testing.tables import KEYRING, Mode, customers, read, write
from testing.thrift.views import encoded, tree_of

pytestmark = pytest.mark.usefixtures("both_ways")

COLUMNS = ["email", "id"]
MODES = pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.name)


def _between_row_groups(folder: Path, mode: Mode) -> Path:
    """Three row groups, each followed by the filters of its columns."""
    path = write(folder / "x.parquet", customers(300), mode, row_group_size=100)
    copy = shutil.copy(path, folder / "copy.parquet")
    sb.add_bloom_filters(copy, columns=COLUMNS, keys=KEYRING)
    modules = {
        (row_group, name): Path(copy).read_bytes()[filter_place(Path(copy), row_group, name)]
        for row_group in range(3)
        for name in COLUMNS
    }
    Path(copy).unlink()
    with opened(path) as it:
        content, end = path.read_bytes(), it.footer.tail.offset
        parts, shift = [content[:4]], 0
        for row_group in range(3):
            chunks = [it.chunk(row_group, leaf.name) for leaf in it.footer.leaves]
            start = min(map(_start, chunks))
            stop = _start(it.chunk(row_group + 1, "email")) if row_group < 2 else end
            parts.append(content[start:stop])
            for chunk in chunks:
                _move(chunk, shift)
            for name in COLUMNS:
                module = modules[row_group, name]
                set_bloom_filter(it.chunk(row_group, name), stop + shift, len(module))
                parts.append(module)
                shift += len(module)
        path.write_bytes(b"".join(parts) + encode_footer(it.footer))
    return path


def _start(chunk: Chunk) -> int:
    return chunk.meta_data.dictionary_page_offset or chunk.meta_data.data_page_offset


def _move(chunk: Chunk, shift: int) -> None:
    """Enter that the chunk's pages stand ``shift`` bytes later, in every copy of its metadata."""
    copies = [chunk.meta_data, chunk.column_chunk.meta_data]
    # Where the metadata is in clear both are the same structure.
    trees = {id(tree_of(copy)): copy for copy in copies if copy is not None}
    for meta_data in trees.values():
        meta_data.data_page_offset += shift
        if meta_data.dictionary_page_offset is not None:
            meta_data.dictionary_page_offset += shift
    if chunk.column_chunk.encrypted_column_metadata is not None and chunk.cipher is not None:
        chunk.column_chunk.encrypted_column_metadata = chunk.cipher.encrypt(
            ModuleType.COLUMN_META_DATA, encoded(chunk.meta_data)
        )


@MODES
@pytest.mark.parametrize("in_place", [False, True], ids=["replace", "in place"])
def test_filters_between_row_groups_are_kept_where_they_are(
    tmp_path: Path, mode: Mode, in_place: bool
) -> None:
    path = _between_row_groups(tmp_path, mode)
    is_encrypted = mode is not Mode.PLAIN
    assert read(path, encrypted=is_encrypted).equals(customers(300))
    places = {(r, name): filter_place(path, r, name) for r in range(3) for name in COLUMNS}
    with opened(path) as it:
        assert places[0, "id"].stop <= _start(it.chunk(1, "email"))
        data_end = it.footer.tail.offset
    before = path.read_bytes()
    (report,) = sb.add_bloom_filters(
        path, columns=[*COLUMNS, "city"], keys=KEYRING, in_place=in_place
    ).files
    done = {(f.column, f.action) for f in report.filters}
    assert done == {("email", "kept"), ("id", "kept"), ("city", "added")}
    assert {key: filter_place(path, *key) for key in places} == places
    assert path.read_bytes()[:data_end] == before[:data_end]
    _check(path, is_encrypted=is_encrypted)


@MODES
def test_filters_between_row_groups_are_replaced_and_data_stay(tmp_path: Path, mode: Mode) -> None:
    path = _between_row_groups(tmp_path, mode)
    with opened(path) as it:
        last = filter_place(path, 2, "email").start
        assert last < it.footer.tail.offset
    before = path.read_bytes()
    (report,) = sb.add_bloom_filters(
        path, columns=COLUMNS, keys=KEYRING, replace_filters=True
    ).files
    assert {f.action for f in report.filters} == {"replaced"}
    # Only those after the last row group give their room back.
    assert path.read_bytes()[:last] == before[:last]
    assert all(filter_place(path, r, name).start >= last for r in range(3) for name in COLUMNS)
    _check(path, is_encrypted=mode is not Mode.PLAIN)


def _check(path: Path, *, is_encrypted: bool) -> None:
    table = read(path, encrypted=is_encrypted)
    assert table.equals(customers(300))
    for row_group in range(3):
        found = filter_of(path, row_group, "email")
        emails = table["email"].slice(100 * row_group, 100).to_pylist()
        assert all(found.check(email.encode()) for email in emails)
        assert sum(found.check(f"nobody{i}".encode()) for i in range(500)) < 30


@MODES
def test_a_filter_without_a_length_is_kept_and_gets_it(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", customers(50), mode)
    sb.add_bloom_filters(path, columns=["email"], keys=KEYRING)
    place = filter_place(path, 0, "email")
    edit_column(path, 0, "email", lambda meta_data: delattr(meta_data, "bloom_filter_length"))
    (report,) = sb.add_bloom_filters(path, columns=["email"], keys=KEYRING).files
    (done,) = report.filters
    assert (report.status, done.action, done.reason) == (
        "added",
        "kept",
        "its missing length was added",
    )
    assert filter_place(path, 0, "email") == place


@pytest.mark.skipif(not CORPUS.exists(), reason=NO_CORPUS)
def test_the_corpus_file_without_lengths(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    shutil.copy(CORPUS / "data_index_bloom_encoding_stats.parquet", path)
    before = path.read_bytes()
    with opened(path, None) as it:
        offset = it.chunk(0, "String").meta_data.bloom_filter_offset
        assert it.chunk(0, "String").meta_data.bloom_filter_length is None
        data_end = it.footer.tail.offset
    theirs = filter_of(path, 0, "String", None)
    (report,) = sb.add_bloom_filters(path, columns=["String"]).files
    assert [f.action for f in report.filters] == ["kept"]
    with opened(path, None) as it:
        meta_data = it.chunk(0, "String").meta_data
        assert meta_data.bloom_filter_offset == offset
        assert meta_data.bloom_filter_length is not None
        assert meta_data.bloom_filter_length > theirs.byte_count
    assert filter_of(path, 0, "String", None) == theirs
    assert path.read_bytes()[:data_end] == before[:data_end]
    (again,) = sb.add_bloom_filters(path, columns=["String"]).files
    assert again.status == "unchanged"
