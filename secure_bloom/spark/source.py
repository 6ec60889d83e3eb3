"""`spark.read.format("secure_bloom")`: encrypted tables through their filters, without a JVM class.

    load()    the schema is read from footers                            the driver's Python
    a query   filters rule out row groups, the others become tasks       the driver's Python
    a task    unwraps keys, decrypts, filters, returns Arrow batches     the executors' Python

The policy and the plan are sent to the executors, never a key: each Python worker asks the policy's
KMS itself.

Spark 4.1 to 4.3 keep the plan made with pushed filters in the loaded DataFrame, and use it for
every scan of the DataFrame: `people.where(a)` and then `people.count()` count the rows of `a`.
Hence only a :class:`PushdownSource` takes filters from Spark.  The option ``where`` belongs to the
loaded DataFrame, and is always safe.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql import datasource as sd
from pyspark.sql.types import StructType

from secure_bloom.api.read import read_row_groups
from secure_bloom.calling.options import MissingKeys
from secure_bloom.encryption.access import GivenKeys
from secure_bloom.encryption.file_keys import asked_once
from secure_bloom.errors import SecureBloomError, UnsupportedFeatureError
from secure_bloom.lakes.hive_partitions import partition_values
from secure_bloom.parquet.schema import in_any_case, unknown_column
from secure_bloom.predicates.binding import bind
from secure_bloom.predicates.bound_request import left_out
from secure_bloom.reading import ReadPlan
from secure_bloom.reading.kept_table import Table
from secure_bloom.reading.pruning.plan import PlannedFile, RowGroupPlan
from secure_bloom.spark.conforming import check_types, conformed, parts
from secure_bloom.spark.package_archive import opened_once, ship
from secure_bloom.spark.pushdown import QueriedTable, Structure, conditions, in_utc, structure
from secure_bloom.spark.source_options import SourceOptions, source_options
from secure_bloom.spark.spark_schema import TableSchema, arrow_schema, check_carried, table_schema
from secure_bloom.spark.tasks import leave_warnings_to_driver

#: Words of the library's hints, for Python and the command line -> what they are here.
_SPELLED = {
    "without_filter_keys=True or --without-filter-keys": '.option("withoutFilterKeys", "true")',
    "missing_keys='drop' (--missing-keys drop)": '.option("missingKeys", "drop")',
    "missing_keys='null' (--missing-keys null)": '.option("missingKeys", "null")',
    "allow_unverified=True or --allow-unverified": '.option("allowUnverified", "true")',
    "allow_unprotected=True or --allow-unprotected": '.option("allowUnprotected", "true")',
}


class SecureBloomSource(sd.DataSource):
    """Parquet tables, encrypted or not.

    Options:

    - ``policy``, a `policy.toml` whose KMS unwraps the keys, or ``keyring``, a keyring file.
      Executors open keyrings and credentials themselves, so each must have the same path on every
      machine.
    - ``where``, a text as `secure-bloom read --where` takes it: only rows for which it is true.
    - ``columns``, names with commas between them, or a JSON list: leaves the others out.  Spark
      does not say to a Python data source which columns a query wants, so all are decoded.
    - ``version`` of a Delta table, or ``timestamp`` of a Delta or Iceberg table; by default the
      latest state.
    - ``withoutFilterKeys``: a condition of ``where`` on a column whose key is missing is left out.
    - ``missingKeys``: ``error``; ``null``, which shows a column whose key is missing as null; or
      ``drop``, which leaves it out.  With ``null``, Spark's own conditions see nulls.
    - ``storageOptions``, a JSON object with ``aws_endpoint_url`` and ``aws_region``: where S3 is.
      Credentials are refused: Spark shows options in its plans.
    - ``allowUnverified``: signed files whose key is missing are read although keys are given.
    - ``allowUnprotected``: files that are protected less than the policy says are read.
    """

    _table: TableSchema | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "secure_bloom"

    def schema(self) -> StructType:
        """Return all columns of all files, or only the columns in the option ``columns``."""
        with _explained():
            options = source_options(self.options)
            table = _read_schema(options, functools.partial(_chosen, options.columns))
            check_carried(table.spark)
        # Spark pickles the source, with this schema, for the processes that plan queries.
        self._table = table
        return table.spark

    def reader(self, schema: StructType) -> sd.DataSourceReader:
        """Return a reader of the columns in ``schema``. A column that the table lacks is null."""
        with _explained():
            check_carried(schema)
            options = source_options(self.options)
            given = {name.lower() for name in schema.names}
            table = self._table or _read_schema(
                options, lambda names: [name for name in names if name.lower() in given]
            )
            return self._reader(options=options, table=table, schema=schema)

    def _reader(self, **query: Any) -> SecureBloomReader:
        return SecureBloomReader(**query)

    def writer(self, *_: object, **__: object) -> NoReturn:
        """Raise UnsupportedFeatureError: the source only reads."""
        _refuse_to("write a table", hint=_WRITE)

    def streamWriter(self, *_: object, **__: object) -> NoReturn:  # noqa: N802 - PySpark's name
        """Raise UnsupportedFeatureError: the source only reads."""
        _refuse_to("write a stream", hint=_WRITE)

    def streamReader(self, *_: object, **__: object) -> NoReturn:  # noqa: N802 - PySpark's name
        """Raise UnsupportedFeatureError: the source does not read streams."""
        _refuse_to(
            "read a stream",
            hint='spark.read.format("secure_bloom").load(PATH) reads a table',
        )


class PushdownSource(SecureBloomSource):
    """The same source, which also skips row groups by the filters of Spark's queries."""

    def _reader(self, **query: Any) -> SecureBloomReader:
        return PushdownReader(**query)


class SecureBloomReader(sd.DataSourceReader):
    """One query: its condition, its plan, its rows."""

    def __init__(self, *, options: SourceOptions, table: TableSchema, schema: StructType) -> None:
        self._options = options
        self._stored = table.stored
        self._own = arrow_schema(table.spark)
        self._schema = arrow_schema(schema)
        self._names = _names(self._schema.names, table)
        self._instants = table.instants
        self._has_log = table.has_log
        self._hidden = table.hidden
        check_types(self._stored, self._schema, self._names)
        self._filters: list[sd.Filter] = []
        self._shared = ship(options)

    def partitions(self) -> list[sd.InputPartition]:
        """Return the row groups that may have rows, in one group for each task."""
        with _explained(), Table(self._options.request()) as table:
            plan = table.plan(
                self._where(table.files),
                columns=self._stored_columns(),
                without_filter_keys=self._options.without_filter_keys,
                missing_keys=self._options.missing_keys.value,
            )
        empty = replace(plan, files=())
        # Spark makes one task of an empty list, and gives it nothing to read.
        return [SourcePartition(plan=empty, files=files) for files in split(plan.files)]

    def read(self, partition: sd.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task, as Arrow batches in Spark's schema."""
        if not isinstance(partition, SourcePartition):
            return
        leave_warnings_to_driver()
        with _explained():
            keys = _opened_keys(self._shared)
            for file in partition.files:
                for batch in read_row_groups(partition.plan, file, keys=keys):
                    yield from parts(
                        conformed(batch, self._schema, self._names, file.partition, file.path)
                    )

    def _where(self, files: Sequence[str]) -> list[Structure] | None:
        """Return the conditions of the option and of Spark's filters. All must be true."""
        paths = self._options.paths
        folders = [] if self._has_log else [partition_values(file, paths) for file in files]
        table = QueriedTable(
            stored=self._stored,
            spark=self._schema,
            own=self._own,
            names=self._names,
            folders=folders,
        )
        found = conditions(self._filters, table)
        if self._options.where is not None:
            found.append(structure(in_utc(self._options.where, self._instants)))
        return found or None

    def _stored_columns(self) -> list[str]:
        """Return the columns to read: at least one, because it shows the number of rows."""
        stored = dict.fromkeys(self._stored.names)
        wanted = [self._names.get(name, name) for name in self._schema.names]
        clear = [name for name in stored if name not in self._hidden.columns]
        return [name for name in wanted if name in stored] or clear[:1]


class PushdownReader(SecureBloomReader):
    """A query that uses Spark's filters."""

    def pushFilters(  # noqa: N802 - PySpark's name
        self, filters: list[sd.Filter]
    ) -> Iterable[sd.Filter]:
        """Take all filters, and return all of them: Spark applies them to the rows again."""
        self._filters = filters
        return filters


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SourcePartition(sd.InputPartition):
    """The input of one task: row groups of files, and the plan with their condition."""

    plan: ReadPlan
    files: tuple[PlannedFile, ...]

    def __repr__(self) -> str:
        # The values of conditions and of folders' names must not show.
        return f"SourcePartition({sum(len(file.row_groups) for file in self.files)})"


_WRITE = "write with Spark's parquet; secure_bloom.spark.add_bloom_filters adds filters"


def _refuse_to(act: str, *, hint: str) -> NoReturn:
    with _explained():
        raise UnsupportedFeatureError(
            f"secure_bloom only reads tables, and was asked to {act}", hint=hint
        )


def _read_schema(options: SourceOptions, choose: Callable[[list[str]], list[str]]) -> TableSchema:
    """Return the schema of the table. Raises PolicyError if ``where`` does not fit it."""
    table = table_schema(options.request(), choose)
    if options.where is not None:
        bind(in_utc(options.where, table.instants), table.compared, options.paths)
    if options.missing_keys is MissingKeys.ERROR:
        return table
    with Table(options.request()) as opened:
        shown = table.showing(opened.hidden(options.missing_keys))
    left = frozenset(shown.spark.names)
    gone = [name for name in table.spark.names if name not in left]
    if gone and (options.columns or not shown.spark.names):
        raise left_out(gone[0])
    return shown


def _chosen(wanted: tuple[str, ...], names: list[str]) -> list[str]:
    """Return the wanted columns, or all if none is named."""
    chosen = [name if name in names else in_any_case(name, names) for name in wanted]
    for name, found in zip(wanted, chosen, strict=True):
        if found is None:
            raise unknown_column(name, names)
    return list(dict.fromkeys(filter(None, chosen))) or names


@opened_once
def _opened_keys(options: SourceOptions) -> GivenKeys:
    """Return the keys of a query. A KEK is unwrapped once."""
    return asked_once(options.request().access().key_source())


def _names(wanted: Iterable[str], table: TableSchema) -> Mapping[str, str]:
    """Return the mapping from names in a given schema to names in the table.

    Names are matched without case, except where two names of the table differ in case alone.
    """
    known = [*table.stored.names, *table.spark.names]
    found = {}
    for name in wanted:
        same = {other for other in known if other.lower() == name.lower()}
        if name not in known and len(same) == 1:
            found[name] = same.pop()
    return found


@contextmanager
def _explained() -> Iterator[None]:
    """Adapt errors in the block to Spark: hints name the source's options, and causes are removed.

    Spark prints the causes of an error, and they may hold secrets.
    """
    try:
        yield
    except SecureBloomError as error:
        if error.hint is not None:
            for elsewhere, here in _SPELLED.items():
                error.hint = error.hint.replace(elsewhere, here)
        raise error from None


#: The least and the most bytes of a task, and the number of tasks from which on tasks grow.
_LEAST, _MOST = 4 * 1024 * 1024, 128 * 1024 * 1024


_TASKS = 64


#: The cost of opening a file, in bytes.
_OPENING = 1024 * 1024


def split(files: Sequence[PlannedFile]) -> list[tuple[PlannedFile, ...]]:
    """Return the files in groups, in their order. A large file is in several groups."""
    pieces = [(piece, size) for file in files for piece, size in _pieces(file)]
    total = sum(size for _, size in pieces)
    target = min(max(total // _TASKS, _LEAST), _MOST)
    return [_joined(group) for group in _groups(pieces, target)]


def _pieces(file: PlannedFile) -> Iterator[tuple[PlannedFile, int]]:
    """Yield each row group as a file of its own, with an estimate of the bytes to read."""
    # If the last row groups were skipped, the estimate is too large; that costs only a task.
    size = file.size // (1 + max(group.row_group for group in file.row_groups))
    for group in file.row_groups:
        yield replace(file, row_groups=(group,)), int(size * _share(group))


def _share(group: RowGroupPlan) -> float:
    if group.ranges is None or not group.rows:
        return 1.0
    return sum(end - start for start, end in group.ranges) / group.rows


def _groups(pieces: Sequence[tuple[PlannedFile, int]], target: int) -> Iterator[list[PlannedFile]]:
    group: list[PlannedFile] = []
    filled = 0
    for piece, size in pieces:
        if group and filled + size > target:
            yield group
            group, filled = [], 0
        is_open = bool(group) and group[-1].path == piece.path
        group.append(piece)
        filled += size if is_open else size + _OPENING
    if group:
        yield group


def _joined(pieces: Sequence[PlannedFile]) -> tuple[PlannedFile, ...]:
    """Join the row groups of a file again, so that a task reads its footer once."""
    found: dict[str, PlannedFile] = {}
    for piece in pieces:
        before = found.get(piece.path)
        groups = piece.row_groups if before is None else before.row_groups + piece.row_groups
        found[piece.path] = replace(piece, row_groups=groups)
    return tuple(found.values())
