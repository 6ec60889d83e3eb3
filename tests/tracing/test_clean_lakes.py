"""A lake of clean files has no finding: docs, source code, generated texts and numbers."""

from __future__ import annotations

import datetime
import random
import sysconfig
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from secure_bloom.tracing.index import WordIndex
from secure_bloom.tracing.lake import FoundFile, occurrences, search_files
from secure_bloom.tracing.search import confirm, trace_text
from secure_bloom.tracing.subjects import SearchedColumn
from testing.project import ROOT
from tests.tracing.people import PEOPLE, subject

SURNAMES = (
    "Smith Brown Young King Long May Field Page Case Price Banks Bell Black White"
    " Green Cross Day Hill Hall Hunt Lane Law Little Marsh Moon Moore Park Rich Rose Short"
    " Stone Street Summer Swift Walker Ward Winter Wise Wood Worth Read Write Class List"
)

#: Columns that texts and numbers meet by chance, beside those of people.
EVERYDAY: dict[str, list[object]] = {
    "user": [f"user{n}@example.com" for n in range(5_000)],
    "surname": [*SURNAMES.split()],
    "town": ["New York", "San Francisco", "Los Angeles", "Cape Town", "Hong Kong"],
    "country": ["Germany", "France", "Italy", "Norway", "United States", "United Kingdom", "Japan"],
    "number": list(range(20_000)),
    "year": list(range(1950, 2030)),
    "code": [10_000 + 7 * n for n in range(9_000)],
    "phone": [f"+49 30 {1_000_000 + 97 * n}" for n in range(3_000)],
    "day": [datetime.date(2020, 1, 1) + datetime.timedelta(days=n) for n in range(2_500)],
    "seen": [datetime.datetime(2024, 1, 1) + datetime.timedelta(minutes=n) for n in range(5_000)],
    "price": [n / 100 for n in range(50_000)],
    "flag": ["yes", "no", "true", "false", "null", "none", "default"],
}


def everyday(name: str) -> SearchedColumn:
    def values() -> Iterator[pa.Array]:
        yield pa.array(EVERYDAY[name])

    return SearchedColumn(name=name, values=values)


def generated(folder: Path, count: int) -> Iterator[Path]:
    """Texts, numbers, dates and addresses of other people, in CSV, JSON and Parquet."""
    chance = random.Random(5)
    words = (ROOT / "README.md").read_text().split()
    for n in range(count):
        rows = [
            [
                str(chance.randrange(10 ** chance.randrange(1, 9))),
                f"2026-{chance.randrange(1, 13):02d}-{chance.randrange(1, 29):02d}",
                f"{chance.choice(words)}{chance.randrange(10**6)}@mail.example.org",
                f"{chance.random() * 10_000:.2f}",
                chance.choice(words),
            ]
            for _ in range(40)
        ]
        path = folder / f"part-{n:05d}"
        if n % 3 == 2:
            columns = list(zip(*rows, strict=True))
            pq.write_table(pa.table({f"c{i}": list(it) for i, it in enumerate(columns)}), path)
        else:
            path.write_text("\n".join(" ,"[n % 2].join(row) for row in rows))
        yield path


#: The lake has so many files, and a quarter of them are generated.
FILES = 1_000


def test_a_clean_lake_has_no_finding(tmp_path: Path, trials: Callable[[int], int]) -> None:
    count = trials(FILES)
    library = Path(sysconfig.get_path("stdlib"))
    files = [*generated(tmp_path, count // 4), *sorted((ROOT / "docs").rglob("*.md"))]
    sources = (it for it in sorted(library.rglob("*.py")) if "site-packages" not in it.parts)
    files += islice(sources, count - len(files))
    assert len(files) == count
    subjects = [*map(subject, PEOPLE), *map(everyday, EVERYDAY)]
    index = WordIndex.build(subjects, 1 << 30)
    report = search_files([FoundFile(str(it), it.name) for it in files], index)
    found = [(file.path, it) for file in report.files for it in file.findings]
    unread = [(file.path, it) for file in report.files for it in file.unread]
    assert (found, unread, report.searched) == ([], [], count)


_chance = random.Random(11)
#: Numbers whose notations have fewer digits than the numbers, or other ones.
NUMBERS: dict[str, list[object]] = {
    "double": [_chance.random() * 10_000 for _ in range(1_000)],
    "large": [_chance.random() * 10**8 for _ in range(1_000)],
    "small": [_chance.random() / 10**6 for _ in range(1_000)],
    "short": [_chance.randrange(10**4) * 10.0 ** _chance.randrange(-12, 12) for _ in range(1_000)],
    "cents": [_chance.randrange(10**9) / 100 for _ in range(1_000)],
    "float": [*map(float, np.float32([_chance.random() * 10_000 for _ in range(1_000)]))],
    "decimal": [Decimal(_chance.randrange(10**11)).scaleb(-5) for _ in range(1_000)],
    "whole": [_chance.randrange(10**6) * 10 ** _chance.randrange(8) for _ in range(1_000)],
    "padded": [f"{_chance.randrange(10**6) * 7919 % 10**6:012}" for _ in range(1_000)],
}


def _other_numbers() -> Iterator[str]:
    yield "\n".join(str(_chance.randrange(10 ** _chance.randrange(1, 9))) for _ in range(9_000))
    yield "\n".join(f"{_chance.random() * 10_000:.2f}" for _ in range(9_000))
    yield "\n".join(
        f"2026-11-{n % 28 + 1:02} {n % 24:02}:{n % 60:02}:{n % 59:02}.{n * 7919 % 10**6:06} INFO "
        f"[{_chance.randrange(10**5)}] {_chance.randrange(1 << 32):08x} {_chance.random():.3g} "
        f"took {_chance.randrange(10**6)} us"
        for n in range(3_000)
    )
    yield from (f"Order {_chance.randrange(10**4, 10**7)} has left.\n" for _ in range(400))


def test_numbers_of_another_place_are_no_finding() -> None:
    def subject_of(name: str) -> SearchedColumn:
        kind = pa.float32() if name == "float" else None
        return SearchedColumn(name=name, values=lambda: iter([pa.array(NUMBERS[name], kind)]))

    index = WordIndex.build(list(map(subject_of, NUMBERS)), 1 << 30)
    traces = [trace_text("", "", text.encode(), index) for text in _other_numbers()]
    confirm(traces, index)
    found = {it for trace in traces for part in trace.parts for it in occurrences(part, index)}
    assert sorted({(it.column, it.verdict) for it in found}) == []
