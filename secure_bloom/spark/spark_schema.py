"""The columns of a table as Spark's own reader would have them, from the files' footers.

The type of a leaf follows its Parquet type.  Lists, maps and structures follow Arrow's reading of
the schema.  Every column may be null, whatever the files say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as st
from pyspark.sql.pandas.types import from_arrow_type

from secure_bloom.calling.options import MissingKeys
from secure_bloom.errors import FormatError, UnsupportedFeatureError, located
from secure_bloom.lakes.hive_partitions import Values, folder_type
from secure_bloom.parquet.footer.columns import FileColumns
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.logical_types import Kind, Logical, describe
from secure_bloom.parquet.members import ELEMENT, Member
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.predicates.bound_request import HIDDEN, HiddenColumns
from secure_bloom.reading.read_request import TableRequest
from secure_bloom.reading.table.table_files import TableFiles
from secure_bloom.reading.table.table_state import LoggedTable
from secure_bloom.running.bounded_documents import parsed_json
from secure_bloom.running.memory_budget import MemoryShare
from secure_bloom.spark.compat import arrow_schema_in_utc
from secure_bloom.storage.paths import as_paths

#: The key under which Spark writes its own schema into a footer.
_WRITTEN = "org.apache.spark.sql.parquet.row.metadata"

_INTERVALS: dict[tuple[str, ...], Callable[[int, int], st.DataType]] = {
    ("day", "hour", "minute", "second"): st.DayTimeIntervalType,
    ("year", "month"): st.YearMonthIntervalType,
}

_INTERVAL = re.compile(r"interval (\w+)(?: to (\w+))?")


def written_intervals(footer: Footer) -> dict[str, st.DataType]:
    """Return the interval columns, by name.

    Nothing else is taken from Spark's schema: a user-defined type in it would run code that the
    file chose.
    """
    marks = footer.metadata.key_value_metadata or []
    text = next((mark.value for mark in marks if mark.key == _WRITTEN), None)
    try:
        fields: Any = parsed_json(text or "{}", "Spark's schema in the footer").get("fields", [])
        named = [(field["name"], field["type"]) for field in fields]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # The text is damaged or of another version; the Parquet types are used.
        return {}
    found = {name: _interval(text) for name, text in named if isinstance(text, str)}
    return {name: interval for name, interval in found.items() if interval is not None}


def _interval(text: str) -> st.DataType | None:
    match = _INTERVAL.fullmatch(text)
    if match is None:
        return None
    first, last = match[1], match[2] or match[1]
    for fields, kind in _INTERVALS.items():
        if first in fields and last in fields:
            return kind(fields.index(first), fields.index(last))
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """A table's columns: ``stored`` has their types in Arrow, ``spark`` their types in Spark.

    Partition columns that only the names of folders show are at the end of ``spark``. ``has_log``
    is whether the table has a log that names its columns. Conditions are bound to ``compared``.
    ``instants`` are the dotted paths of INT96 columns, which are instants although ``stored`` has
    no zone for them. ``hidden`` are the columns whose key is missing, if a read shows them as null
    or leaves them out.
    """

    stored: pa.Schema
    compared: pa.Schema
    spark: st.StructType
    instants: frozenset[str]
    has_log: bool
    hidden: HiddenColumns = field(default_factory=HiddenColumns)

    def showing(self, hidden: HiddenColumns) -> TableSchema:
        """Return the schema of a read that leaves hidden columns out, or shows them as null.

        If a column has hidden members, its metadata lists their names, as Arrow's schema does.
        """
        found = [_shown(column, hidden) for column in self.spark]
        shown = st.StructType([column for column in found if column is not None])
        return replace(self, spark=shown, hidden=hidden)


def table_schema(asked: TableRequest, choose: Callable[[list[str]], list[str]]) -> TableSchema:
    """Return the schema of a table. ``choose`` picks the wanted columns.

    Raises UnsupportedFeatureError, with the column, for a type that Spark does not have, and the
    errors of reading a footer.
    """
    paths, resolver = as_paths(asked.paths), asked.access().resolver()
    files = TableFiles(paths, resolver, asked.at(), MemoryShare(0))
    kinds: dict[int, _FileSchema] = {}

    def note(footer: Footer) -> None:
        if id(footer.columns) not in kinds:
            kinds[id(footer.columns)] = _FileSchema.of(footer)

    found, state = files.survey(note), files.state
    united = found.arrow
    instants = _instants(kinds.values())
    if isinstance(state, LoggedTable):
        stored = state.with_columns_of_log(united)
        declared = state.with_columns_of_log(pa.schema([]))
        fields = [_declared(declared.field(name)) for name in choose(declared.names)]
    else:
        folders = _folder_fields(state.partitions)
        stored = _without(united, folders)
        instants -= folders.keys()
        fields = [
            folders[name] if name in folders else _field(stored.field(name), kinds.values())
            for name in choose([*stored.names, *folders])
        ]
    found.check(field.name for field in fields)
    own = {*stored.names}
    return TableSchema(
        stored=stored,
        compared=pa.schema([*stored, *(f for f in state.partition_fields if f.name not in own)]),
        spark=st.StructType(fields),
        instants=instants,
        has_log=isinstance(state, LoggedTable),
    )


def _shown(column: st.StructField, hidden: HiddenColumns) -> st.StructField | None:
    if column.name not in hidden.columns:
        return column
    if hidden.mode is MissingKeys.DROP:
        left = _restricted(column.dataType, (column.name,), hidden.members)
        return None if left is None else st.StructField(column.name, left)
    names = [".".join(member) for member in hidden.members if member[0] == column.name]
    marks = {HIDDEN.decode(): ", ".join(sorted(names))}
    return st.StructField(column.name, column.dataType, metadata=marks)


def _restricted(of: st.DataType, path: Member, hidden: Collection[Member]) -> st.DataType | None:
    """Return the type without hidden members, or None if none is left."""
    if path in hidden:
        return None
    if isinstance(of, st.StructType):
        members = [(it, _restricted(it.dataType, (*path, it.name), hidden)) for it in of]
        left = [st.StructField(it.name, type_) for it, type_ in members if type_ is not None]
        return st.StructType(left) if left else None
    if isinstance(of, st.ArrayType):
        element = _restricted(of.elementType, (*path, ELEMENT), hidden)
        return None if element is None else st.ArrayType(element)
    return of


def _folder_fields(values: list[Values]) -> dict[str, st.StructField]:
    names = dict.fromkeys(name for found in values for name in found)
    return {
        name: st.StructField(
            name, from_arrow_type(folder_type([v[name] for v in values if name in v]))
        )
        for name in names
    }


def _without(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    left_out = set(names)
    return pa.schema([field for field in schema if field.name not in left_out])


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileSchema:
    """The schema that several files share: their columns, and Spark's intervals among them."""

    columns: FileColumns
    written: dict[str, st.DataType]

    @classmethod
    def of(cls, footer: Footer) -> _FileSchema:
        return cls(columns=footer.columns, written=written_intervals(footer))


def _instants(kinds: Iterable[_FileSchema]) -> frozenset[str]:
    """Return the paths that are INT96 in every file that has them."""
    leaves = [leaf for kind in kinds for leaf in kind.columns.leaves]
    others = {leaf.name for leaf in leaves if leaf.type is not Type.INT96}
    return frozenset({leaf.name for leaf in leaves} - others)


def _declared(field: pa.Field) -> st.StructField:
    """Return a column as the table's log declares it."""
    with located(column=field.name):
        return st.StructField(field.name, merged_type(field.type))


def _field(stored: pa.Field, kinds: Iterable[_FileSchema]) -> st.StructField:
    """Return the column as Spark gets it, from the files that store it in the table's type."""
    with located(column=stored.name):
        alike = [_type_in(kind, stored) for kind in kinds if _has(kind.columns.arrow, stored)]
        found = common_type(alike) if alike else merged_type(stored.type)
    return st.StructField(stored.name, found)


def _type_in(kind: _FileSchema, stored: pa.Field) -> st.DataType:
    """Return Spark's type of a column in files of one schema."""
    if stored.name in kind.written:
        return kind.written[stored.name]
    leaves = iter([kind.columns.leaves[ordinal] for ordinal in kind.columns.below(stored.name)])
    return spark_type(stored.type, leaves)


def _has(schema: pa.Schema, field: pa.Field) -> bool:
    ordinal = schema.get_field_index(field.name)
    return ordinal >= 0 and bool(schema.field(ordinal).type == field.type)


_MILLIS, _MICROS = 1_000_000, 1_000

_INTERVAL_TYPES = (st.DayTimeIntervalType, st.YearMonthIntervalType)
_LEAVE_OUT = 'leave the column out: .option("columns", "the others, ...")'


def merged_type(stored: pa.DataType) -> st.DataType:
    """Return Spark's type for ``stored``, the common type of files with different types."""
    try:
        found = from_arrow_type(stored, prefer_timestamp_ntz=True)
        # Only the way back finds a decimal with more digits than Spark has.
        arrow_schema(st.StructType([st.StructField("", found)]))
    except (PySparkException, ValueError):
        raise UnsupportedFeatureError(
            f"the files' types unite to {stored}, a type that Spark does not have", hint=_LEAVE_OUT
        ) from None
    return found


def common_type(types: Sequence[st.DataType]) -> st.DataType:
    """Return the one Spark type of a column that has ``types`` in several files.

    All files store the column in one Arrow type. Raises UnsupportedFeatureError for types that
    Spark does not unite: INT96 is an instant, and a timestamp without a zone is none.
    """
    first, *others = dict.fromkeys(types)
    for other in others:
        if not (isinstance(first, _INTERVAL_TYPES) and type(first) is type(other)):
            raise UnsupportedFeatureError(
                f"some files have {first.simpleString()}, others {other.simpleString()}, which "
                "Spark does not unite",
                hint=_LEAVE_OUT,
            )
        first = type(first)(
            min(first.startField, other.startField), max(first.endField, other.endField)
        )
    return first


def spark_type(stored: pa.DataType, leaves: Iterator[Leaf]) -> st.DataType:
    """Return the type of a column whose leaves are next in ``leaves``."""
    if isinstance(stored, pa.BaseExtensionType) and pa.types.is_nested(stored.storage_type):
        return spark_type(stored.storage_type, leaves)
    if pa.types.is_map(stored):
        key = spark_type(stored.key_type, leaves)
        return st.MapType(key, spark_type(stored.item_type, leaves))
    if pa.types.is_struct(stored):
        return st.StructType([st.StructField(f.name, spark_type(f.type, leaves)) for f in stored])
    if pa.types.is_nested(stored):
        return st.ArrayType(spark_type(stored.value_type, leaves))
    leaf = next(leaves)
    logical = leaf.logical
    found = _TYPES[logical.kind](leaf, logical)
    if found is None:
        raise UnsupportedFeatureError(
            f"Spark has no type for {describe(leaf.element)}", hint=_LEAVE_OUT
        )
    return found


_INTEGERS: dict[tuple[int, bool], st.DataType] = {
    (8, True): st.ByteType(),
    (16, True): st.ShortType(),
    (32, True): st.IntegerType(),
    (64, True): st.LongType(),
    (8, False): st.ShortType(),
    (16, False): st.IntegerType(),
    (32, False): st.LongType(),
    (64, False): st.DecimalType(20, 0),
}


def _float(leaf: Leaf, _: Logical) -> st.DataType:
    return st.FloatType() if leaf.width == 4 else st.DoubleType()


def _decimal(leaf: Leaf, logical: Logical) -> st.DataType | None:
    digits = leaf.decimal_digits
    if digits is None:
        raise FormatError(f"DECIMAL column {leaf.name} has no precision")
    most = 38
    return st.DecimalType(digits, logical.scale) if digits <= most else None


def _time(_: Leaf, logical: Logical) -> st.DataType | None:
    if logical.is_utc or logical.unit == _MILLIS:
        return None
    return st.TimeType(6 if logical.unit == _MICROS else 9)


def _timestamp(_: Leaf, logical: Logical) -> st.DataType | None:
    if logical.unit not in (_MILLIS, _MICROS):
        return None
    return st.TimestampType() if logical.is_utc else st.TimestampNTZType()


_TYPES: dict[Kind, Callable[[Leaf, Logical], st.DataType | None]] = {
    Kind.TEXT: lambda _leaf, _logical: st.StringType(),
    Kind.BYTES: lambda _leaf, _logical: st.BinaryType(),
    Kind.INTEGER: lambda _leaf, logical: _INTEGERS.get((logical.bits, logical.signed)),
    Kind.FLOAT: _float,
    Kind.FLOAT16: lambda _leaf, _logical: None,
    Kind.DECIMAL: _decimal,
    Kind.DATE: lambda _leaf, _logical: st.DateType(),
    Kind.TIME: _time,
    Kind.TIMESTAMP: _timestamp,
    Kind.INT96: lambda _leaf, _logical: st.TimestampType(),
    Kind.UUID: lambda _leaf, _logical: None,
    Kind.BOOLEAN: lambda _leaf, _logical: st.BooleanType(),
}


def arrow_schema(schema: st.StructType) -> pa.Schema:
    """Return the Arrow schema that Spark wants for rows of ``schema``."""
    return arrow_schema_in_utc(schema)


def check_carried(schema: st.StructType) -> None:
    """Raise UnsupportedFeatureError for a column that a Python data source cannot return."""
    for column in schema:
        try:
            arrow_schema(st.StructType([column]))
        except PySparkException:
            raise UnsupportedFeatureError(
                f"Spark takes no {column.dataType.simpleString()} from a Python data source",
                hint=_LEAVE_OUT,
                column=column.name,
            ) from None
