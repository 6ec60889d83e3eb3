"""A file that contradicts itself is told of, at the place that lies; other files are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.parquet.pages import chunk_extent
from testing.surgery import edit_column, edit_footer, flip, opened
from testing.tables import KEYRING, Mode, customers, write
from testing.thrift.metadata import ColumnMetaData
from tests.auditing.examples import POLICY

#: The id of a finding, the row group and the column that it names.
Told = tuple[str, int | None, str | None]


def told(path: Path) -> list[Told]:
    report = sb.audit(path, policy=POLICY, keys=KEYRING, check_values=True)
    return [
        (finding.id, finding.row_group, finding.column)
        for finding in report.findings
        if finding.id.startswith("impossible-")
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "x.parquet", customers(60), Mode.ENCRYPTED, row_group_size=20)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("mode", list(Mode))
def test_what_pyarrow_writes_contradicts_nothing(tmp_path: Path, mode: Mode, version: str) -> None:
    options = {"write_page_index": True, "data_page_version": version, "data_page_size": 1}
    table = customers(60)
    assert told(write(tmp_path / "x.parquet", table, mode, row_group_size=20, **options)) == []


def _set(name: str, value: object) -> Callable[[ColumnMetaData], None]:
    return lambda meta_data: setattr(meta_data, name, value)


def _negative_pages(meta_data: ColumnMetaData) -> None:
    assert meta_data.encoding_stats
    meta_data.encoding_stats[0].count = -1


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("impossible-counts", _set("num_values", 21)),
        ("impossible-sizes", _set("total_compressed_size", 1 << 40)),
        ("impossible-sizes", _set("data_page_offset", 1 << 40)),
        ("impossible-encodings", _negative_pages),
    ],
    ids=["values", "length", "offset", "encodings"],
)
def test_a_chunk_that_lies_is_named(
    path: Path, name: str, change: Callable[[ColumnMetaData], None]
) -> None:
    edit_column(path, 1, "email", change)
    assert (name, 1, "email") in told(path)
    assert {group for _, group, _ in told(path)} == {1}


def test_the_chunk_that_takes_the_bytes_of_another_is_named(path: Path) -> None:
    sizes: list[int] = []
    edit_column(path, 0, "id", lambda it: sizes.append(it.data_page_offset))
    edit_column(path, 2, "id", _set("dictionary_page_offset", 0))
    edit_column(path, 2, "id", _set("data_page_offset", sizes[0]))
    assert ("impossible-sizes", 2, "id") in told(path)


def test_rows_of_the_file_that_no_row_group_has_are_of_the_whole_file(path: Path) -> None:
    edit_footer(path, lambda it: setattr(it.footer.metadata, "num_rows", 61))
    assert told(path) == [("impossible-counts", None, None)]


def altered(path: Path) -> list[Told]:
    report = sb.audit(path, policy=POLICY, keys=KEYRING, check_values=True)
    return [
        (finding.id, finding.row_group, finding.column)
        for finding in report.findings
        if finding.id == "not-authentic"
    ]


@pytest.mark.parametrize("mode", [Mode.SIGNED, Mode.UNIFORM])
@pytest.mark.parametrize("column", ["email", "iban"])
@pytest.mark.parametrize("has_dictionary", [True, False])
def test_a_data_page_that_was_altered_is_named(
    tmp_path: Path, mode: Mode, column: str, has_dictionary: bool
) -> None:
    """Values come from the dictionary: no other check opens the data pages of such a column."""
    options = {"use_dictionary": has_dictionary, "data_page_size": 1, "row_group_size": 20}
    path = write(tmp_path / "x.parquet", customers(60), mode, **options)
    sb.add_bloom_filters(path, columns="email", keys=KEYRING)
    with opened(path) as it:
        start, length = chunk_extent(it.chunk(1, column))
    flip(path, start + length - 1)
    assert altered(path) == [("not-authentic", 1, column)]


@pytest.mark.parametrize("index", ["column_index_offset", "offset_index_offset"])
def test_a_page_index_that_was_altered_is_named(tmp_path: Path, index: str) -> None:
    path = write(tmp_path / "x.parquet", customers(60), Mode.ENCRYPTED, write_page_index=True)
    with opened(path) as it:
        place = getattr(it.chunk(0, "iban").column_chunk, index)
    flip(path, place + 20)
    assert set(altered(path)) == {("not-authentic", 0, "iban")}
