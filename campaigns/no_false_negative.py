"""Values that are in a file, looked for in its filters: none may be absent.

Files of every type, encoding and mode get filters; each value is then judged by our filter and by
parquet-java, in one call a file, and some in plain files by DuckDB, which is asked one by one.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import secure_bloom as sb
from campaigns.outcome import Effort, Outcome
from secure_bloom.parquet.literals import physical_values
from secure_bloom.parquet.schema import Leaf
from tests.interop.columns import CASES, DICTIONARY, Column
from tests.interop.files import declare
from tests.surgery import filter_of, opened
from tests.tables import KEYRING, Mode, keyring_json, write

FULL, QUICK = 10_000_000, 4_000
_QUICK_STEP = 16
#: Types that DuckDB's function is not asked of: see docs/compatibility.md.
_NOT_IN_DUCKDB = ("BSON", "FLOAT16", "ENUM", "JSON", "INT96", "UTC")
_ASKED_OF_DUCKDB = 20

Verdicts = Callable[[Path, str, list[Any]], list[bool]]


@dataclass(slots=True)
class _Tally:
    trials: int = 0
    asked_of_duckdb: int = 0
    failures: list[str] = field(default_factory=list)


def run(effort: Effort) -> Outcome:
    """All cases; in a quick run few of them, and without Spark."""
    every = CASES[::_QUICK_STEP] if effort.quick else CASES
    per_file = max(1, (QUICK if effort.quick else FULL) // (len(every) * len(Mode)))
    tally = _Tally()
    with tempfile.TemporaryDirectory() as name, _parquet_java(Path(name), effort.quick) as java:
        for column, cases in itertools.groupby(every, key=lambda case: case[0]):
            values = _Values.of(column, per_file)
            for (_, encoding), mode in itertools.product(cases, Mode):
                path = _file(Path(name), values, encoding, mode)
                _judge(path, values, f"{column.name}, {encoding}, {mode.value}", tally, java)
                if mode is Mode.PLAIN:
                    _ask_duckdb(path, values, tally)
                path.unlink()
    judges = "our filter" if effort.quick else "our filter and parquet-java"
    return Outcome(
        tried=f"Values present in files of {len(every)} pairs of type and encoding x {len(Mode)} "
        f"modes, each judged by {judges}, {tally.asked_of_duckdb:,} of them by DuckDB too",
        trials=tally.trials,
        failures=tuple(tally.failures),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Values:
    """The values of one type: their numbers, the rows, and the bytes under which they may stand."""

    column: Column
    numbers: list[int]
    rows: pa.Array
    forms: list[tuple[bytes, ...]]
    leaf: Leaf

    @classmethod
    def of(cls, column: Column, count: int) -> _Values:
        numbers = list(dict.fromkeys(column.values(0, count)))
        rows = column.array(list(numbers))
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "x.parquet"
            write(path, pa.table({"x": rows.slice(0, 1)}), store_schema=False, **column.options)
            if column.declare is not None:
                declare(path, column.declare)
            with opened(path) as it:
                leaf = next(leaf for leaf in it.footer.leaves if leaf.name == column.leaf)
        forms = [physical_values(leaf, column.written(n)) or () for n in numbers]
        return cls(column=column, numbers=numbers, rows=rows, forms=forms, leaf=leaf)


def _file(folder: Path, values: _Values, encoding: str, mode: Mode) -> Path:
    column, path = values.column, folder / "x.parquet"
    is_dictionary = encoding == DICTIONARY
    write(
        path,
        pa.table({"x": values.rows}),
        mode,
        column_keys={"k_pii": [column.leaf]},
        row_group_size=len(values.rows),
        store_schema=False,
        use_dictionary=is_dictionary,
        column_encoding=None if is_dictionary else {column.leaf: encoding},
        **column.options,
    )
    if column.declare is not None:
        declare(path, column.declare)
    (report,) = sb.add_bloom_filters(path, columns=[column.leaf], keys=KEYRING).files
    if report.error is not None:
        raise RuntimeError(report.error)
    return path


def _judge(path: Path, values: _Values, told: str, tally: _Tally, java: Verdicts | None) -> None:
    bloom_filter = filter_of(path, 0, values.column.leaf)
    ours = [any(map(bloom_filter.check, forms)) for forms in values.forms]
    judges = {"our filter": ours}
    if java is not None:
        judges["parquet-java"] = java(path, values.column.leaf, [values.leaf, values.forms])
    tally.trials += len(values.numbers)
    for judge, verdicts in judges.items():
        missed = verdicts.count(False)
        if missed or len(verdicts) != len(values.numbers):
            tally.failures.append(f"{told}: {judge} misses {missed} of {len(values.numbers)}")


def _ask_duckdb(path: Path, values: _Values, tally: _Tally) -> None:
    column = values.column
    if column.leaf != "x" or any(word in column.name for word in _NOT_IN_DUCKDB):
        return
    step = max(1, len(values.numbers) // _ASKED_OF_DUCKDB)
    for number in values.numbers[::step]:
        excludes = duckdb.execute(
            "SELECT bool_and(bloom_filter_excludes) FROM "
            f"parquet_bloom_probe('{path}', 'x', {column.literal(number)})"
        ).fetchone()
        tally.asked_of_duckdb += 1
        if excludes is None or excludes[0]:
            tally.failures.append(f"{column.name}: DuckDB misses a value of {path.name}")


@contextmanager
def _parquet_java(folder: Path, quick: bool) -> Iterator[Verdicts | None]:
    """parquet-java's verdicts, in a session with the keys of the files; None in a quick run."""
    if quick:
        yield None
        return
    from tests.spark.cluster import small_session
    from tests.spark.parquet_java import bloom_filter_verdicts
    from tests.spark.verdicts import _unpacked

    keyring = folder / "keyring.json"
    keyring.write_text(keyring_json())
    settings = {"spark.secure_bloom.keyring": str(keyring)}
    spark = small_session("local[1]", folder, settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.conf.set("secure_bloom.keyring", str(keyring))

    def verdicts(path: Path, name: str, asked: list[Any]) -> list[bool]:
        leaf, forms = asked
        flat = [_unpacked(leaf.type, form) for each in forms for form in each]
        said = iter(bloom_filter_verdicts(spark, path, 0, name, flat) or [])
        return [any(list(itertools.islice(said, len(each)))) for each in forms]

    try:
        yield verdicts
    finally:
        spark.stop()
