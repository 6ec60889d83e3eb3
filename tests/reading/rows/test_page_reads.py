"""A column from its pages alone: the values that pyarrow has, or an error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import FormatError
from secure_bloom.parquet.footer.columns import SchemaCache
from secure_bloom.parquet.footer.opened import Footer, read_footer
from secure_bloom.reading.rows.page_reads import read_column
from secure_bloom.storage import CountedFile, InputFile, open_input
from testing.tables import KEYRING, Mode, customers, write

ROWS, PAGE = 400, 20
TABLE = customers(ROWS).append_column("inner", pa.array([{"a": n, "b": -n} for n in range(ROWS)]))


@pytest.fixture(params=list(Mode))
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write(
        tmp_path / "x.parquet",
        TABLE,
        request.param,
        write_page_index=True,
        data_page_size=1,
        write_batch_size=PAGE,
        use_dictionary=["city"],
    )


@pytest.fixture
def opened(lake: Path) -> Iterator[tuple[InputFile, Footer]]:
    with open_input(str(lake)) as file:
        counted = CountedFile(file)
        yield counted, read_footer(counted, KeyResolver(KEYRING), SchemaCache())


@pytest.mark.parametrize("name", ["email", "city", "inner"])
def test_a_column_is_read_without_a_footer_of_pyarrow(
    opened: tuple[InputFile, Footer], name: str
) -> None:
    assert read_column(*opened, 0, name).to_pylist() == TABLE.column(name).to_pylist()


def test_a_page_that_does_not_decode_quotes_no_value(tmp_path: Path) -> None:
    table = pa.table({"a": ["secret-value"] * 50})
    path = write(tmp_path / "x.parquet", table, use_dictionary=False, write_statistics=False)
    content = path.read_bytes()
    # The length in front of the first value is larger than the page.
    start = content.index(b"secret-value") - 4
    path.write_bytes(content[:start] + b"\xff\xff\xff\x7f" + content[start + 4 :])
    with open_input(str(path)) as file:
        counted = CountedFile(file)
        footer = read_footer(counted, KeyResolver(None), SchemaCache())
        with pytest.raises(FormatError, match="cannot decode") as caught:
            read_column(counted, footer, 0, "a")
    assert (caught.value.row_group, caught.value.column) == (0, "a")
    assert "secret" not in str(caught.value)
