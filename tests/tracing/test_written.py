"""Words as they are written are asked of the filters of a table, and few row groups are read."""

from __future__ import annotations

import base64
import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.reading.kept_table import Table
from secure_bloom.reading.read_request import OpenRequest
from secure_bloom.tracing.report import TraceReport
from secure_bloom.tracing.subjects import written_subject
from testing.tables import KEYRING, Mode, write

#: Each row group has 100 rows, with e-mails from all of the alphabet.
EMAILS = [f"anna.Smith{n * 7919 % 3_000:04}x@post.fi" for n in range(3_000)]
CARDS = [4_000_000_000_000_000 + n * 7_919_000_003 for n in range(3_000)]
SOME = EMAILS[2_005:2_015]
TEXT = "\n".join(SOME)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An encrypted table with filters, and the same without."""
    folder = tmp_path_factory.mktemp("tables")
    table = pa.table({"id": range(3_000), "email": EMAILS, "card": CARDS})
    keys = {"k_pii": ["email", "card"]}
    paths = folder / "filters.parquet", folder / "plain.parquet"
    for path in paths:
        write(
            path, table, Mode.ENCRYPTED, column_keys=keys, row_group_size=100, use_dictionary=False
        )
    sb.add_bloom_filters(paths[0], columns=["email", "card"], keys=KEYRING)
    return paths


def traced(table: Path, files: Path, column: str = "email", **options: object) -> TraceReport:
    return sb.trace(files, values_of=f"{table}:{column}", keys=KEYRING, **options)


def found(report: TraceReport) -> list[tuple[str, str, str, int, int]]:
    return [
        (file.path, it.place, it.verdict, it.compared, it.confirmed)
        for file in report.files
        for it in file.found
    ]


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),
        "".join(f'{{"a": 1, "mail": "{it}"}}\n' for it in SOME).encode(),
        "".join(f"1,{it},Oslo\r\n" for it in SOME).encode(),
        ("See mailto:" + ", or https://x.io/?mail=".join(SOME) + ".").encode(),
        TEXT.encode().hex().encode(),
        base64.b64encode(TEXT.encode()),
        TEXT.replace("@", "%40").encode(),
        TEXT.encode("utf-16"),
        TEXT[::-1].encode(),
        gzip.compress(TEXT.encode()),
    ],
    ids=["lines", "json", "csv", "text", "hex", "base64", "url", "utf-16", "reversed", "gzip"],
)
def test_values_as_they_are_written_are_found_by_filters_as_by_values(
    tmp_path: Path, tables: tuple[Path, Path], content: bytes
) -> None:
    (tmp_path / "x").write_bytes(content)
    by_filters, by_values = (found(traced(it, tmp_path, as_written=True)) for it in tables)
    assert by_filters == by_values == found(traced(tables[0], tmp_path))
    assert by_filters


def test_few_row_groups_are_read_for_few_words(tables: tuple[Path, Path]) -> None:
    def rows(path: Path) -> int:
        with Table(OpenRequest(str(path), keys=KEYRING)) as table:
            planned = table.plan(where=[("email", "in", SOME)])
            return sum(group.rows for file in planned.files for group in file.row_groups)

    def values(path: Path) -> int:
        with Table(OpenRequest(str(path), keys=KEYRING)) as table:
            subject = written_subject(table, "email", [it.encode() for it in SOME])
            assert subject is not None
            return sum(map(len, subject.values()))

    # The first row group shows how values look.
    assert values(tables[0]) == values(tables[1]) == 110
    assert rows(tables[0]) <= 500
    assert rows(tables[1]) == 3_000


def test_numbers_are_found_and_dense_ones_are_left_out(
    tmp_path: Path, tables: tuple[Path, Path]
) -> None:
    (tmp_path / "x").write_text("\n".join(map(str, CARDS[50:60])))
    (tmp_path / "y").write_text("".join(f"{n}\n" for n in range(10_000, 13_000)))
    for table in tables:
        report = traced(table, tmp_path, "card", as_written=True)
        assert [(path, n) for path, _, _, _, n in found(report)] == [(str(tmp_path / "x"), 10)]
        assert not found(traced(table, tmp_path, "id", as_written=True))


@pytest.mark.parametrize("kind", [pa.float64(), pa.list_(pa.string())], ids=["floats", "lists"])
def test_all_values_of_other_types_are_read(tmp_path: Path, kind: pa.DataType) -> None:
    values = [1234567.25 + n for n in range(50)]
    column = [[f"anna{n}@post.fi"] for n in range(50)] if pa.types.is_list(kind) else values
    pq.write_table(pa.table({"a": pa.array(column, kind)}), tmp_path / "t.parquet")
    (tmp_path / "x").write_text("\n".join(map(str, column)))
    report = traced(tmp_path / "t.parquet", tmp_path / "x", "a", as_written=True)
    assert [it.as_written for it in report.columns] == [False]
    assert found(report) == found(traced(tmp_path / "t.parquet", tmp_path / "x", "a"))


def test_other_capitals_need_the_values(tmp_path: Path, tables: tuple[Path, Path]) -> None:
    (tmp_path / "x").write_text(TEXT.upper())
    assert found(traced(tables[0], tmp_path))
    assert not found(traced(tables[0], tmp_path, as_written=True))


def test_with_many_words_all_values_are_read(tmp_path: Path, tables: tuple[Path, Path]) -> None:
    (tmp_path / "x").write_text("".join(f"{n:09} {n:08}\n" for n in range(5_000)) + TEXT.upper())
    report = traced(tables[0], tmp_path, as_written=True)
    assert [it.as_written for it in report.columns] == [False]
    assert found(report)
