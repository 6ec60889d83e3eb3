"""One lying file after the other, and what our verbs make of it, held against a full scan."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import secure_bloom as sb
from secure_bloom.errors import SecureBloomError
from testing.python_truths import TRUTHS
from testing.tables import KEYRING, Mode
from tests.lying.editing import edit
from tests.lying.honest import GROUP, PAGE, SHAPES, table
from tests.lying.lies import LIES
from tests.lying.witnesses import WITNESSES, Rows, pyarrow_scan, testimony

HONEST: Rows = table().to_pylist()
Question = tuple[Any, ...]


def is_true(question: Question, row: dict[str, Any]) -> bool:
    """Whether a row answers the question, as SQL has it."""
    name, operation, *asked = question
    value = row[name]
    if operation in ("is null", "is not null"):
        return (value is None) is (operation == "is null")
    return value is not None and TRUTHS[operation](value, asked[0])


def questions(column: str) -> Iterator[Question]:
    """What is asked of a column: values of its pages, beside them, at their bounds, and nulls."""
    yield (column, "is null")
    yield (column, "is not null")
    # A row of one page: of the other columns single pages are read.
    yield ("number", "=", 10 * (3 * PAGE + 5))
    if column == "items":
        return
    values = [row[column] for row in HONEST]
    rows = (2, PAGE - 1, 3 * PAGE + 1, GROUP - 1, GROUP + 2 * PAGE + 3, 2 * GROUP - 1)
    present = [v for v in (values[i] for i in rows) if v is not None and not _is_nan(v)]
    for value in dict.fromkeys(present):
        yield (column, "=", value)
    yield (column, "in", [present[0], present[-1]])
    yield (column, "not in", [present[0], present[-1]])
    for operation in ("<", ">", "<=", ">=", "!="):
        yield (column, operation, present[len(present) // 2])
    yield (column, ">", _least(present[0]))
    yield (column, "=", _absent(present[0]))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _least(value: Any) -> Any:
    return "" if isinstance(value, str) else type(value)(-100)


def _absent(value: Any) -> Any:
    return "mzzz" if isinstance(value, str) else type(value)(77_777_777)


@dataclass(frozen=True)
class Trial:
    """One file that tells one lie of one column."""

    shape: str
    lie: str
    column: str
    path: Path = field(compare=False)

    def __str__(self) -> str:
        return f"{self.shape}, {self.column}, {self.lie}"

    @property
    def is_encrypted(self) -> bool:
        return SHAPES[self.shape].mode is not Mode.PLAIN

    @cached_property
    def scan(self) -> Rows | None:
        """What pyarrow gives; None where it refuses the file."""
        return testimony(partial(pyarrow_scan, is_encrypted=self.is_encrypted), self.path)

    @cached_property
    def truths(self) -> list[Rows]:
        """All rows, as one or the other has them: pyarrow, else other readers and who wrote it.

        Where pyarrow refuses the file, a row group that no one opens may still be left out.  Where
        it does not, what was written may be as good an answer.  Empty where no one has the rows any
        more.
        """
        if self.scan is not None:
            return [self.scan, *([HONEST] if LIES[self.lie].may_be_overlooked else [])]
        honest = [] if LIES[self.lie].is_lost else [HONEST]
        if self.is_encrypted:
            return honest
        # Polars ends the process where it cannot have as much memory as a file asks for.
        is_absurd = self.lie.endswith(("huge", "negative"))
        asked = [name for name in WITNESSES if name != "Polars" or not is_absurd]
        others = [testimony(WITNESSES[name], self.path) for name in asked]
        return [*honest, *(rows for rows in others if rows is not None)]


def trials(
    honest: Path, shape: str, folder: Path, lies: list[str], *, every_column: bool
) -> Iterator[Trial]:
    """The lying files of one honest one, each removed when the next is written."""
    path = folder / "lying.parquet"
    for lie in lies:
        for column in LIES[lie].columns:
            if edit(honest, path, 0, column, LIES[lie].change):
                yield Trial(shape, lie, column, path)
                if not every_column:
                    break


@dataclass
class Tally:
    """What came of trials: how much was asked, how often an error was named, what was wrong."""

    files: int = 0
    asked: int = 0
    errors: int = 0
    wrong: list[str] = field(default_factory=list)

    def __iadd__(self, other: Tally) -> Tally:
        self.files += other.files
        self.asked += other.asked
        self.errors += other.errors
        self.wrong += other.wrong
        return self


def read(trial: Trial, *, some: bool = False) -> Tally:
    """Ask `read` all questions; ``some``: three of them."""
    found = Tally(files=1)
    asked = list(questions(trial.column))
    for question in asked[:: max(1, len(asked) // 4)] if some else asked:
        found.asked += 1
        try:
            rows = sb.read_table(trial.path, where=[question], keys=KEYRING).to_pylist()
        except SecureBloomError:
            found.errors += 1
            continue
        wanted = [[row for row in truth if is_true(question, row)] for truth in trial.truths]
        if wanted and not any(repr(rows) == repr(one) for one in wanted):
            found.wrong.append(f"{trial}: read {question}: {len(rows)} rows of {len(wanted[0])}")
    return found


#: Columns that can have a filter.
_FILTERED = ("number", "optional", "word", "few", "mixed", "real", "items")


def add(trial: Trial) -> Tally:
    """Add a filter, and ask it for every value of the column."""
    found = Tally(files=1, asked=1)
    path = trial.path.with_name("added.parquet")
    shutil.copyfile(trial.path, path)
    name = "items.list.element" if trial.column == "items" else trial.column
    options = {name: sb.BloomFilterOptions(fpp=0.0001)}
    (file,) = sb.add_bloom_filters(path, columns=options, keys=KEYRING, replace_filters=True).files
    if file.error is not None:
        found.errors += 1
        return found
    return _probed(trial, path, name, found)


def probe(trial: Trial) -> Tally:
    """Ask the file's own filter for every value."""
    found = Tally(files=1, asked=1)
    if trial.column not in SHAPES[trial.shape].filters or LIES[trial.lie].is_lost:
        # A filter of values that are there no more is that of another file.
        return Tally()
    return _probed(trial, trial.path, trial.column, found)


def _probed(trial: Trial, path: Path, name: str, found: Tally) -> Tally:
    values = _values(trial.truths[0], trial.column) if trial.truths else []
    if not values:
        return found
    (file,) = sb.probe(path, name, values, keys=KEYRING).files
    if file.error is not None:
        found.errors += 1
        return found
    absent = {
        value
        for value in values
        if all(group.verdicts[value] is sb.Verdict.ABSENT for group in file.row_groups)
    }
    if absent:
        found.wrong.append(f"{trial}: {path.stem} misses {len(absent)} of {len(values)} values")
    return found


def _values(rows: Rows, column: str) -> list[Any]:
    found: dict[Any, None] = {}
    for row in rows:
        for value in row[column] or [] if column == "items" else [row[column]]:
            if value is not None and not _is_nan(value):
                found[value] = None
    return list(found)
