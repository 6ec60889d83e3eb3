"""What is not decoded here is refused by its name, and the file stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.parquet.structures.metadata import CompressionCodec
from testing.surgery import edit_column, opened
from testing.tables import KEYRING, Mode, customers, write
from testing.thrift import trees
from testing.thrift.metadata import ColumnMetaData, PageHeader
from testing.thrift.views import tree_of

MODES = pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED], ids=lambda mode: mode.name)
DICTIONARIES = pytest.mark.parametrize("dictionary", [True, False], ids=["dictionary", "pages"])
#: Thrift field ids of the structures that are changed.
PAGE_TYPE, DATA_PAGE_ENCODING, CODEC = 1, 2, 4


def _refused(path: Path, *words: str) -> None:
    """A run fails for the file with an error that names ``words``, and leaves it alone."""
    before = path.read_bytes()
    for in_place in (False, True):
        (report,) = sb.add_bloom_filters(
            path, columns=["email"], keys=KEYRING, in_place=in_place
        ).files
        assert report.status == "failed"
        error = str(report.error).removeprefix(f"{path}, row group 0, column email: ")
        assert error != report.error
        for word in words:
            assert word in error
        assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@MODES
@DICTIONARIES
@pytest.mark.parametrize(
    ("codec", "name"),
    [(CompressionCodec.LZO, "LZO"), (99, "codec is 99, which is no CompressionCodec")],
)
def test_a_codec(tmp_path: Path, mode: Mode, dictionary: bool, codec: int, name: str) -> None:
    path = write(tmp_path / "x.parquet", customers(50), mode, use_dictionary=dictionary)

    def change(meta_data: ColumnMetaData) -> None:
        _set(meta_data.tree, CODEC, codec)

    edit_column(path, 0, "email", change)
    _refused(path, name)


def _set(tree: trees.Struct, field: int, number: int) -> None:
    """A number that the enumeration need not know."""
    thrift_type, _ = tree.fields[field]
    tree.fields[field] = (thrift_type, int(number))


@pytest.mark.parametrize(
    ("encoding", "name"), [(4, "BIT_PACKED"), (77, "encoding is 77, which is no Encoding")]
)
def test_an_encoding_of_a_page(tmp_path: Path, encoding: int, name: str) -> None:
    def change(header: PageHeader) -> None:
        assert header.data_page_header is not None
        _set(tree_of(header.data_page_header), DATA_PAGE_ENCODING, encoding)

    _refused(_with_another_page(tmp_path, change), name)


def test_a_kind_of_page(tmp_path: Path) -> None:
    def change(header: PageHeader) -> None:
        _set(header.tree, PAGE_TYPE, 66)

    _refused(_with_another_page(tmp_path, change), "type is 66, which is no PageType")


def _with_another_page(folder: Path, change: Callable[[PageHeader], None]) -> Path:
    """A plain file whose only data page has a changed header."""
    path = write(folder / "x.parquet", customers(50), use_dictionary=False)
    with opened(path) as it:
        meta_data = it.chunk(0, "email").meta_data
        start, length = meta_data.data_page_offset, meta_data.total_compressed_size
        stored, data_end = it.file.read_at(start, length), it.footer.tail.offset
    tree, header_length = trees.decode(stored)
    header = PageHeader(tree)
    change(header)
    page = header.encode() + stored[header_length:]
    content = path.read_bytes()
    path.write_bytes(content[:data_end] + page + content[data_end:])

    def point_at_it(meta_data: ColumnMetaData) -> None:
        meta_data.data_page_offset = data_end
        meta_data.total_compressed_size = len(page)

    edit_column(path, 0, "email", point_at_it)
    return path


def test_a_codec_that_pyarrow_lacks_does_not_stop_other_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"email": ["a"], "id": [1]}), path)
    edit_column(path, 0, "email", lambda m: setattr(m, "codec", CompressionCodec.LZO))
    assert not sb.add_bloom_filters(path, columns=["id"]).failed
