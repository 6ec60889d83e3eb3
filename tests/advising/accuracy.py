"""Hold advice to what is measured: add each filter to a copy, and explain reads of it.

``python -m tests.advising.accuracy`` does it for all seeded tables, and writes the table of
``docs/advise.md``.  The values that are looked up here are chosen here.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import secure_bloom as sb
from secure_bloom.advising.table_advice import ColumnAdvice, TableAdvice
from testing.project import ROOT
from testing.tables import KEYRING
from tests.advising.seeded import TABLES

PAGE = ROOT / "docs" / "advise.md"
KINDS = ("bytes added", "absent, without", "absent, with", "present, without", "present, with")
#: Lookups of each kind.
LOOKUPS = 24


@dataclass(frozen=True)
class Measured:
    """One column as it was measured; bytes a lookup by kind, and by whether there is a filter."""

    advice: ColumnAdvice
    bytes_added: int
    bytes_per_lookup: Mapping[str, Mapping[str, float | None]]

    def errors(self) -> dict[str, float]:
        """The error of each prediction, as a share of what was measured."""
        told = self.advice.to_dict()
        found = {"bytes added": _error(told["bytes_added"], self.bytes_added)}
        for kind, numbers in self.bytes_per_lookup.items():
            for filters, measured in numbers.items():
                if measured is not None:
                    predicted = told["bytes_per_lookup"][kind][filters]
                    found[f"{kind}, {filters}"] = _error(predicted, measured)
        return found


def _error(predicted: float | None, measured: float) -> float:
    return float("nan") if predicted is None else (predicted - measured) / max(1.0, measured)


def measure(table: Path, advice: TableAdvice, *, lookups: int = LOOKUPS) -> Iterator[Measured]:
    """Every column whose values were looked at, with a filter of its own in a copy."""
    for column in advice.columns:
        if column.trial is not None:
            yield _measured(table, column, lookups)


def _measured(table: Path, column: ColumnAdvice, lookups: int) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / table.name
        shutil.copytree(table, copy)
        report = sb.add_bloom_filters(copy, columns=[column.column], keys=KEYRING)
        assert not report.failed
        values = values_to_look_up(table, column.column, lookups)
        found = {
            kind: {
                "without": _mean(table, column.column, chosen),
                "with": _mean(copy, column.column, chosen),
            }
            for kind, chosen in values.items()
        }
        added = sum((f.bytes_after or 0) - (f.bytes_before or 0) for f in report.files)
    return Measured(advice=column, bytes_added=added, bytes_per_lookup=found)


def _mean(table: Path, column: str, values: list[Any]) -> float | None:
    # A list is looked up by its own name.
    path = tuple(column.removesuffix(".list.element").split("."))
    sizes = [
        sb.explain(table, where=[(path, "=", value)], keys=KEYRING).bytes_read for value in values
    ]
    return sum(sizes) / len(sizes) if sizes else None


def values_to_look_up(table: Path, column: str, count: int) -> dict[str, list[Any]]:
    """Values of random rows, and others between the least and the greatest that no row has."""
    top, *members = column.removesuffix(".list.element").split(".")
    values = sb.read_table(table, columns=[top], keys=KEYRING).column(0)
    for member in members:
        values = pc.struct_field(values, member)
    if pa.types.is_list(values.type):
        values = pc.list_flatten(values)
    values = values.drop_null().combine_chunks()
    chance = random.Random(column)
    present = [values[chance.randrange(len(values))] for _ in range(count)]
    known = set(values.to_pylist())
    low, high = min(known), max(known)
    absent: list[Any] = []
    for _ in range(50 * count):
        value = _beside(chance.choice(present).as_py(), low, high, chance, values.type)
        if value is not None and low < value < high and value not in known:
            absent.append(value)
    return {"present": present, "absent": [pa.scalar(v, values.type) for v in absent[:count]]}


def _beside(value: Any, low: Any, high: Any, chance: random.Random, type_: pa.DataType) -> Any:
    if isinstance(value, str):
        letters = list(value)
        place = chance.choice([i for i, letter in enumerate(letters) if letter.isalnum()])
        letters[place] = str(chance.randrange(10)) if letters[place].isdigit() else "k"
        return "".join(letters)
    if isinstance(value, int):
        return value + chance.choice([-1, 1]) * chance.randrange(1, 60)
    if isinstance(value, float):
        return low + (high - low) * chance.random()
    step = value.resolution if hasattr(value, "resolution") else type(value)("0.01")
    return value + chance.choice([-1, 1]) * chance.randrange(1, 60) * step


def main() -> None:
    """Measure every table, and write the page's table."""
    lines = [
        f"| table | column | verdict | {' | '.join(KINDS)} |",
        f"|{' --- |' * 3}{' ---: |' * 5}",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name, write in TABLES.items():
            if len(sys.argv) > 1 and name not in sys.argv[1:]:
                continue
            table = Path(folder) / name.replace(" ", "-")
            write(table)
            for measured in measure(table, sb.advise(table, keys=KEYRING)):
                lines.append(_line(name, measured))
                print(lines[-1], flush=True)
    if len(sys.argv) == 1:
        before, mark, rest = PAGE.read_text().partition("<!-- measured -->\n")
        after = rest.partition("<!-- end -->")[2]
        PAGE.write_text(before + mark + "\n".join(lines) + "\n<!-- end -->" + after)


def _line(name: str, measured: Measured) -> str:
    errors = measured.errors()
    cells = [f"{100 * errors[kind]:+.1f} %" if kind in errors else "-" for kind in KINDS]
    column = measured.advice
    return f"| {name} | `{column.column}` | {column.verdict} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
