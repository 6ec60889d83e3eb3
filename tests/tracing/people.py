"""A table of people, as the columns whose values are searched for, and files that hold some."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from secure_bloom.tracing.index import WordIndex
from secure_bloom.tracing.lake import candidates, search_files
from secure_bloom.tracing.report import TracedFile, TraceReport
from secure_bloom.tracing.subjects import SearchedColumn

COUNT = 2_000
_random = random.Random(7)
_FIRST = ["anna", "bob", "carl", "dora", "emil", "zoe", "mats", "ines", "olaf", "petra"]
_LAST = ["huber", "jansen", "kowalski", "moreau", "silva", "tanaka", "virtanen", "weber"]


def _day(n: int) -> datetime.date:
    return datetime.date(1950, 1, 1) + datetime.timedelta(days=n * 7919 % 20_000)


PEOPLE: dict[str, list[object]] = {
    "email": [
        f"{_random.choice(_FIRST)}.{_random.choice(_LAST)}{i}@{('corp.io', 'post.fi')[i % 2]}"
        for i in range(COUNT)
    ],
    "iban": ["DE" + "".join(_random.choices("0123456789", k=20)) for _ in range(COUNT)],
    "card": ["4" + "".join(_random.choices("0123456789", k=15)) for _ in range(COUNT)],
    "name": [
        f"{_random.choice(_FIRST).title()} {_random.choice(_LAST).title()}{'xyz'[i % 3]}el{i % 97}"
        for i in range(COUNT)
    ],
    "id": [_random.randrange(10**9, 10**10) for _ in range(COUNT)],
    "born": [_day(i) for i in range(COUNT)],
    "city": [
        "Berlin",
        "Oslo",
        "Rome",
        "Paris",
        "Lyon",
        "Vienna",
        "Turku",
        "Porto",
        "Gent",
        "Bern",
        "Delft",
        "Graz",
    ],
    "umlaut": [f"Jürgen Müller-Öz{i}@straße.de" for i in range(COUNT)],
    "salary": [float(_random.randrange(10**8, 10**9)) / 100 for _ in range(COUNT)],
}


def subject(name: str, *parts: str) -> SearchedColumn:
    def values() -> Iterator[pa.Array]:
        yield pa.array(PEOPLE[name])

    return SearchedColumn(name=name, values=values, parts=parts)


INDEX = WordIndex.build([subject(name) for name in PEOPLE], 1 << 30)


def search(path: Path, index: WordIndex = INDEX, jobs: int = 1) -> TraceReport:
    return search_files(list(candidates([str(path)])), index, jobs=jobs)


def found_in(file: TracedFile) -> set[str]:
    return {it.column for it in file.findings}


def columns_found(path: Path, index: WordIndex = INDEX) -> set[str]:
    """The columns of which a finding is in a file or in a folder."""
    return {it.column for file in search(path, index).files for it in file.findings}
