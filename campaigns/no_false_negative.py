"""Values that are in a file, looked for in its filters: none may be absent.

Files of every type, encoding and mode get filters; each value is then judged by our filter and by
parquet-java, in one call a file.  Of plain files DuckDB judges some values, many in one statement:
its function takes one literal, so that all of them would take hours.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa

import secure_bloom as sb
from campaigns.outcome import Effort, Outcome
from secure_bloom.bloom import xxh64
from secure_bloom.bloom.split_block import Probe
from secure_bloom.parquet.literals import physical_values
from testing.columns import CASES, DICTIONARY, Column
from testing.spark.parquet_java import packed
from testing.spark.verdicts import unpacked
from testing.surgery import filter_of, opened
from testing.tables import KEYRING, Mode, keyring_json, write
from testing.typed_files import declare

FULL, QUICK = 10_000_000, 4_000
_QUICK_STEP = 16
#: Types that DuckDB's function is not asked of: see docs/compatibility.md.
_NOT_IN_DUCKDB = ("BSON", "FLOAT16", "ENUM", "JSON", "INT96", "UTC")
_ASKED_OF_DUCKDB, _QUICKLY_ASKED = 1000, 20
#: More in one statement take DuckDB longer, each.
_IN_ONE_STATEMENT = 200

Case = tuple[Column, str]
#: parquet-java's verdicts on the filter of a leaf, in the order of the forms.
Verdicts = Callable[[Path, "_Values"], list[bool]]


@dataclass(slots=True)
class _Tally:
    trials: int = 0
    asked_of_duckdb: int = 0
    failures: list[str] = field(default_factory=list)


def run(effort: Effort) -> Outcome:
    """All cases; in a quick run few of them, and without Spark."""
    every = CASES[::_QUICK_STEP] if effort.quick else CASES
    per_file = values_per_file(every, QUICK if effort.quick else FULL)
    asked_of_duckdb = _QUICKLY_ASKED if effort.quick else _ASKED_OF_DUCKDB
    tally = _Tally()
    with tempfile.TemporaryDirectory() as name, _parquet_java(Path(name), effort.quick) as java:
        for column, cases in itertools.groupby(every, key=lambda case: case[0]):
            values = _Values.of(column, per_file)
            for (_, encoding), mode in itertools.product(cases, Mode):
                path = _file(Path(name), values, encoding, mode)
                _judge(path, values, f"{column.name}, {encoding}, {mode.value}", tally, java)
                if mode is Mode.PLAIN:
                    _ask_duckdb(path, values, asked_of_duckdb, tally)
                path.unlink()
    judges = "our filter" if effort.quick else "our filter and parquet-java"
    return Outcome(
        tried=f"Values present in files of {len(every)} pairs of type and encoding x {len(Mode)} "
        f"modes, each judged by {judges}, {tally.asked_of_duckdb:,} of them by DuckDB too",
        trials=tally.trials,
        failures=tuple(tally.failures),
    )


def values_per_file(cases: Sequence[Case], wanted: int) -> int:
    """How many values a file gets so that all get as many as wanted; some types have fewer."""
    most = sorted(column.distinct // 2 for column, _ in cases)
    left = wanted // len(Mode) + 1
    for position, distinct in enumerate(most):
        share = -(-left // (len(most) - position))
        if share <= distinct:
            return share
        left -= distinct
    raise ValueError(f"the types have fewer than {wanted} values")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Values:
    """The values of one type: their numbers, the rows, and the bytes under which they may stand.

    ``forms`` has those of each value, ``probes`` what our filters are asked for them, and
    ``packed`` what parquet-java is asked.
    """

    column: Column
    numbers: list[int]
    rows: pa.Array
    forms: list[tuple[bytes, ...]]
    probes: list[list[Probe]]
    packed: bytes

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
        return cls(
            column=column,
            numbers=numbers,
            rows=rows,
            forms=forms,
            probes=[[Probe.of(xxh64.hash_value(form)) for form in each] for each in forms],
            packed=packed([unpacked(leaf.type, form) for each in forms for form in each]),
        )


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
    judges = {"our filter": [any(map(bloom_filter.check_probe, each)) for each in values.probes]}
    if java is not None:
        said = iter(java(path, values))
        judges["parquet-java"] = [any(list(itertools.islice(said, len(f)))) for f in values.forms]
    tally.trials += len(values.numbers)
    for judge, verdicts in judges.items():
        missed = verdicts.count(False)
        if missed or len(verdicts) != len(values.numbers):
            tally.failures.append(f"{told}: {judge} misses {missed} of {len(values.numbers)}")


def _ask_duckdb(path: Path, values: _Values, most: int, tally: _Tally) -> None:
    column = values.column
    if column.leaf != "x" or any(word in column.name for word in _NOT_IN_DUCKDB):
        return
    asked = values.numbers[:: max(1, len(values.numbers) // most)]
    tally.asked_of_duckdb += len(asked)
    for start in range(0, len(asked), _IN_ONE_STATEMENT):
        some = asked[start : start + _IN_ONE_STATEMENT]
        verdicts = duckdb.execute(
            " UNION ALL ".join(
                "SELECT bool_and(bloom_filter_excludes) FROM "
                f"parquet_bloom_probe('{path}', 'x', {column.literal(number)})"
                for number in some
            )
        ).fetchall()
        # One of false says "may be there", None that there is no filter.
        missed = len(some) - verdicts.count((False,))
        if missed:
            tally.failures.append(f"{column.name}: DuckDB misses {missed} values of {path.name}")


@contextmanager
def _parquet_java(folder: Path, quick: bool) -> Iterator[Verdicts | None]:
    """parquet-java's verdicts, in a session with the keys of the files; None in a quick run."""
    if quick:
        yield None
        return
    from testing.spark.cluster import small_session
    from testing.spark.parquet_java import packed_verdicts

    keyring = folder / "keyring.json"
    keyring.write_text(keyring_json())
    settings = {"spark.secure_bloom.keyring": str(keyring)}
    spark = small_session("local[1]", folder, settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.conf.set("secure_bloom.keyring", str(keyring))

    def verdicts(path: Path, values: _Values) -> list[bool]:
        count = sum(map(len, values.forms))
        return packed_verdicts(spark, path, 0, values.column.leaf, values.packed, count) or []

    try:
        yield verdicts
    finally:
        spark.stop()
