"""Columns of row groups: whole, rows in ranges, and some rows at a time give the same values."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import FormatError
from secure_bloom.parquet.footer.columns import SchemaCache
from secure_bloom.parquet.footer.opened import read_footer
from secure_bloom.reading.pruning.plan import RowGroupPlan
from secure_bloom.reading.rows import column_decoder, decoded_sizes
from secure_bloom.reading.rows.column_decoder import (
    ColumnDecoder,
    DecodeInPartsError,
    stored_extents,
)
from secure_bloom.reading.rows.opened_file import OpenedFile
from secure_bloom.reading.rows.pyarrow_source import SourceOpener
from secure_bloom.storage import open_input
from testing.tables import KEYRING, Mode, customers, write

ROWS, GROUP = 600, 300
NAMES = ["email", "id"]
TABLE = customers(ROWS)


def opened(path: Path) -> OpenedFile:
    resolver = KeyResolver(KEYRING)
    with open_input(str(path)) as file:
        footer = read_footer(file, resolver, SchemaCache())
    leaves = [i for name in [*NAMES, "iban"] for i in footer.columns.below(name)]
    return OpenedFile(footer, SourceOpener(resolver), leaves=lambda: leaves, row_groups=[0, 1])


def decoder(path: Path) -> ColumnDecoder:
    return ColumnDecoder(opened(path), threads=False, count_bytes=True)


def group(row_group: int, ranges: list[tuple[int, int]] | None = None) -> RowGroupPlan:
    return RowGroupPlan(row_group=row_group, rows=GROUP, ranges=ranges)


@pytest.fixture(params=list(Mode))
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write(tmp_path / "x.parquet", TABLE, request.param, row_group_size=GROUP)


def test_whole_row_groups_follow_each_other(lake: Path) -> None:
    found = decoder(lake).rows([group(0), group(1)], NAMES)
    assert {name: found[name].to_pylist() for name in NAMES} == TABLE.select(NAMES).to_pydict()


def test_ranges_are_rows_of_their_row_group(lake: Path) -> None:
    wanted = group(1, [(0, 2), (250, 253)])
    expected = TABLE.select(NAMES).take([300, 301, 550, 551, 552]).to_pydict()
    for rows in (decoder(lake).rows, decoder(lake).checked_rows):
        assert {n: c.to_pylist() for n, c in rows([wanted], NAMES).items()} == expected


def test_pieces_are_the_rows_in_order(lake: Path) -> None:
    pieces = list(decoder(lake).pieces(group(1), NAMES, 70))
    assert [count for _, count in pieces] == [70, 70, 70, 70, 20]
    ids = [value for columns, _ in pieces for value in columns["id"].to_pylist()]
    assert ids == TABLE.column("id").to_pylist()[GROUP:]


def test_too_much_for_memory_is_left_to_pieces(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    it = decoder(lake)
    size = it.decoded_size([0], NAMES)
    assert size > GROUP * 8
    monkeypatch.setattr(column_decoder, "harmless_size", lambda: size - 1)
    with pytest.raises(DecodeInPartsError):
        it.rows([group(0)], NAMES)


def test_row_groups_decoded_before_count_as_they_are(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = decoder(lake)
    first = sum(column.nbytes for column in it.rows([group(0)], NAMES).values())
    enough = first + it.decoded_size([1], NAMES)
    assert enough < it.decoded_size([0, 1], NAMES)
    monkeypatch.setattr(column_decoder, "harmless_size", lambda: enough)
    assert len(it.rows([group(0), group(1)], NAMES)["id"]) == 2 * GROUP
    monkeypatch.setattr(column_decoder, "harmless_size", lambda: enough - 1)
    with pytest.raises(DecodeInPartsError):
        it.rows([group(0), group(1)], NAMES)


def test_what_pyarrow_read_is_counted_once_for_each_chunk(lake: Path) -> None:
    it = decoder(lake)
    it.rows([group(0)], NAMES)
    assert it.extents == stored_extents(opened(lake).footer, 0, NAMES)
    assert len(it.extents) == 2


def test_strings_that_are_decoded_here_count_as_much(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = decoder(lake)
    # Each dictionary is looked at, and nothing is too much.
    monkeypatch.setattr(decoded_sizes, "harmless_size", lambda: 0)
    found = it.rows([group(0), group(1)], NAMES)
    assert {name: found[name].to_pylist() for name in NAMES} == TABLE.select(NAMES).to_pydict()
    footer = opened(lake).footer
    stored = [extent for i in range(2) for extent in stored_extents(footer, i, NAMES)]
    assert sorted(it.extents) == sorted(stored)


@pytest.mark.parametrize("has_extension", [True])
def test_columns_that_are_decoded_here_count_as_they_are(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = decoder(lake)
    monkeypatch.setattr(decoded_sizes, "harmless_size", lambda: 0)
    first = it.rows([group(0)], ["email"])["email"].nbytes
    bound, second = it.decoded_size([0], ["email"]), it.decoded_size([0], ["iban"])
    assert first < bound < first + second
    monkeypatch.setattr(column_decoder, "harmless_size", lambda: first + second)
    assert len(it.rows([group(0)], ["email", "iban"])["iban"]) == GROUP
    monkeypatch.setattr(column_decoder, "harmless_size", lambda: first + second - 1)
    with pytest.raises(DecodeInPartsError):
        it.rows([group(0)], ["email", "iban"])


def test_a_page_that_does_not_decode_is_named_by_its_column(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.parquet", TABLE, Mode.PLAIN, compression="SNAPPY", row_group_size=GROUP
    )
    start, length = stored_extents(opened(path).footer, 0, ["email"])[0]
    data = bytearray(path.read_bytes())
    data[start + length // 2 : start + length] = b"\xff" * (length - length // 2)
    path.write_bytes(data)
    with pytest.raises(FormatError, match="email"):
        decoder(path).rows([group(0)], ["email"])


def test_chunks_that_lie_together_are_read_at_once(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", TABLE, row_group_size=GROUP)
    file, group = opened(path), RowGroupPlan(row_group=0, rows=GROUP)
    names = ["email", "iban", "id"]
    found = ColumnDecoder(file, threads=False, count_bytes=True).slices(group, names, [(7, 8)])
    assert {name: found[name].to_pylist() for name in names} == TABLE.slice(7, 1).select(
        names
    ).to_pydict()
    assert len(file.close()) == 1


def test_columns_of_files_become_those_of_the_table(tmp_path: Path) -> None:
    for day, columns in (("1", {"a": pa.array([1], pa.int32())}), ("2", {"a": [2], "b": ["x"]})):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(pa.table(columns), tmp_path / f"day={day}" / "0.parquet")
    rows = sb.read_table(tmp_path)
    assert rows.schema.types == [pa.int64(), pa.string(), rows.schema.field("day").type]
    assert rows.select(["a", "b"]).to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]
    assert [str(day) for day in rows.column("day").to_pylist()] == ["1", "2"]
