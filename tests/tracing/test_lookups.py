"""Words are confirmed in the row groups whose filters say maybe; threads share a large file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.reading.kept_table import Table
from secure_bloom.reading.read_request import OpenRequest
from secure_bloom.tracing.index import WordIndex
from secure_bloom.tracing.lake import candidates, search_files
from secure_bloom.tracing.report import TraceReport
from secure_bloom.tracing.subjects import SearchedColumn, table_subject
from testing.tables import KEYRING, Mode, write
from tests.tracing.people import PEOPLE, search

#: Each row group has 100 rows.
EMAILS = [f"anna.Smith{n}@post.fi" for n in range(3_000)]


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchedColumn]:
    """The e-mails of an encrypted table."""
    path = tmp_path_factory.mktemp("table") / "t.parquet"
    table = pa.table({"id": range(3_000), "email": sorted(EMAILS, key=lambda it: it[::-1])})
    keys = {"k_pii": ["email"]}
    write(path, table, Mode.ENCRYPTED, column_keys=keys, row_group_size=100)
    sb.add_bloom_filters(path, columns=["email"], keys=KEYRING)
    with Table(OpenRequest(str(path), keys=KEYRING)) as opened:
        yield table_subject(opened, "email")


def rows_read(subject: SearchedColumn, texts: list[str]) -> int | None:
    assert subject.lookup is not None
    arrays = subject.lookup([text.encode() for text in texts])
    return None if arrays is None else sum(map(len, arrays))


def test_few_words_are_looked_up_and_many_need_all_values(subject: SearchedColumn) -> None:
    assert rows_read(subject, EMAILS[7:8]) == 1
    assert rows_read(subject, ["nobody@post.fi"]) == 0
    assert rows_read(subject, EMAILS) is None


@pytest.mark.parametrize(
    ("text", "is_whole_read"),
    [
        ("\n".join(EMAILS[5:15]), False),
        ("\n".join(EMAILS), True),
        ("\n".join(EMAILS[5:15]).upper(), True),
        (EMAILS[5].replace("@", " @ "), True),
        (EMAILS[5].encode().hex(), False),
    ],
    ids=["as written", "many", "capitals", "spaces", "hexadecimal"],
)
def test_both_ways_confirm_the_same_findings(
    tmp_path: Path, subject: SearchedColumn, text: str, is_whole_read: bool
) -> None:
    (tmp_path / "x").write_text(text)
    reads: list[int] = []

    def values() -> Iterator[pa.Array]:
        reads.append(1)
        return subject.values()

    looked_up = traced(tmp_path, replace(subject, values=values))
    assert len(reads) == 1 + is_whole_read
    by_values = traced(tmp_path, replace(subject, lookup=None))
    assert found(looked_up) == found(by_values)
    assert all(it.compared == it.confirmed > 0 for it in looked_up.files[0].found)


def traced(path: Path, subject: SearchedColumn) -> TraceReport:
    return search_files(list(candidates([str(path)])), WordIndex.build([subject], 1 << 30))


def found(report: TraceReport) -> list[tuple[str, str, str, int]]:
    return [
        (file.path, it.column, it.verdict, it.passed) for file in report.files for it in file.found
    ]


def test_threads_find_in_a_large_file_what_one_finds(tmp_path: Path) -> None:
    filler = "\n".join(f"{n},other text" for n in range(40_000))
    emails = [str(it) for it in PEOPLE["email"]]
    (tmp_path / "x").write_text("\n".join(f"{filler}\n{it}" for it in emails[:20]))
    assert (tmp_path / "x").stat().st_size > 8 << 20
    one, several = (search(tmp_path, jobs=jobs) for jobs in (1, 3))
    assert one == several
    assert one.files[0].found[0].passed == 20
