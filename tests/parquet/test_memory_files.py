"""Files made in memory: pyarrow reads them like any other."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import unlock
from secure_bloom.parquet.memory_files import (
    MemoryColumn,
    memory_file,
    stored_plain,
    without_data,
)
from secure_bloom.parquet.pages import read_pages
from secure_bloom.parquet.structures.metadata import KeyValue, SchemaElement
from secure_bloom.parquet.structures.splices import encoded, i32, with_fields
from secure_bloom.storage import open_input
from testing.tables import KEYRING, Mode, write


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED])
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_pyarrow_reads_the_pages_of_a_column(
    tmp_path: Path, mode: Mode, use_dictionary: bool
) -> None:
    emails = [f"user{i % 10}@example.com" for i in range(1000)]
    table = pa.table({"id": range(1000), "email": emails, "iban": emails})
    path = write(
        tmp_path / "t.parquet", table, mode, use_dictionary=use_dictionary, write_page_checksum=True
    )
    keys = KeyResolver(KEYRING).for_file()
    with open_input(str(path)) as file:
        footer = unlock(read_tail(file), keys)
        chunk = footer.chunk(0, 1)
        column = MemoryColumn(
            path=chunk.leaf.path,
            type=chunk.leaf.type,
            codec=chunk.meta_data.codec,
            values=1000,
            pages=[stored_plain(page) for page in read_pages(file, chunk)],
            has_dictionary=use_dictionary,
        )
    root, _, email, _ = (element.encoded for element in footer.scan.schema.elements)
    schema = [with_fields(root, {SchemaElement.num_children.id: i32(1)}), email]
    marks = [encoded(KeyValue, key="k", value="v")]
    content = memory_file(schema, [column], 1000, marks=marks)
    made = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
    assert made.read().to_pydict() == {"email": emails}
    assert made.metadata.metadata == {b"k": b"v"}


def test_pyarrow_reads_a_footer_without_data(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", pa.table({"id": [1, 2, 3]}))
    with open_input(str(path)) as file:
        clear = read_tail(file).clear
    made = pq.ParquetFile(pa.BufferReader(without_data(clear)))
    assert made.metadata.num_rows == 3
    assert made.schema_arrow.names == ["id"]
