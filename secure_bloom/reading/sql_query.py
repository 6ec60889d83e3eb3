"""Run a SQL query over open tables, by DuckDB.

    with OpenQuery("SELECT count(*) FROM 'out/'") as query:
        query.table_names             ["out/"]: the tables that are to be opened
        query.run({"out/": table})    the rows of the answer, as an Arrow stream

DuckDB plans the query.  It pushes columns and comparisons down to :meth:`.Table.scan_polars`, which
skips row groups as every read does.  Other conditions, such as functions of columns, are applied by
DuckDB to the rows that are left.

DuckDB has no access to files, so a query reads nothing but the tables, and nothing that was
encrypted is written to a disk.
"""

from __future__ import annotations

import functools
import json
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from secure_bloom.calling.options import MissingKeys
from secure_bloom.errors import PolicyError, SecureBloomError, imported_for
from secure_bloom.parquet.members import below
from secure_bloom.predicates.bound_request import without
from secure_bloom.reading.lent_types import INTERVAL_PARTS, Lent
from secure_bloom.reading.polars_scan import scan
from secure_bloom.reading.query_errors import OWN_ROWS, refusal, unparsed, with_hints_for_sql
from secure_bloom.reading.query_tree import (
    HiddenUse,
    check_parameters,
    expressions,
    first_rows,
    given_bytes,
    table_names,
    wanted_uuids,
)
from secure_bloom.reports.text import legible
from secure_bloom.running.memory_budget import VARIABLE, MemoryBudgetError, refuse_beyond

if TYPE_CHECKING:
    import polars as pl

    from secure_bloom.parquet.members import Member
    from secure_bloom.reading.table_read import AskedTable

Item = TypeVar("Item")
#: DuckDB reads and writes no file, not even for what does not fit into memory.  Times are shown in
#: UTC, as everywhere in this package.
_SETTINGS: Final = (
    "SET temp_directory = ''",
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET TimeZone = 'UTC'",
    "SET lock_configuration = true",
)
#: Rows of one batch of the answer.
_BATCH_ROWS: Final = 65_536
#: About what DuckDB takes to parse and plan a word or a sign.  And what a character takes: the
#: words are counted once a text of signs alone cannot have too many of them.
_TOKEN, _CHARACTER = 4_096, 128
#: Brackets inside of one another.  What DuckDB takes for those that do not end grows with the
#: square of their number: 6 GiB for 100,000.
_MOST_BRACKETS: Final = 250
_BRACKETS: Final = {**dict.fromkeys(b"([{", 1), **dict.fromkeys(b")]}", -1)}
_SHALLOWER: Final = "WITH NAME AS (SELECT ...) names a part of a query"


class OpenQuery:
    """One query. Use it as a context manager; the connection to DuckDB is closed at its end."""

    def __init__(self, text: str) -> None:
        with imported_for("SQL", "sql"):
            import duckdb
            import polars  # noqa: F401 - DuckDB reads the tables through it
        self._text = text
        self._connection = duckdb.connect()
        for setting in _SETTINGS:
            self._connection.execute(setting).fetchall()
        self._tree = self._parsed()
        self._failed: list[SecureBloomError] = []
        #: The columns of the tables that are null or left out because their key is missing.
        self._hidden: list[str] = []
        #: Those of them that the query asks for.
        self.hidden: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._connection.close()

    @property
    def table_names(self) -> list[str]:
        """The names of tables in the query, in their order, without those that WITH defines.

        Raises PolicyError for names that differ in case alone.
        """
        names = list(dict.fromkeys(table_names(self._tree)))
        spelled = dict(zip(map(str.lower, names), names, strict=True))
        for name in names:
            if (other := spelled[name.lower()]) != name:
                # DuckDB compares names of tables without case, and would read one table for both.
                raise PolicyError(f"two tables of the query have the names {name} and {other}")
        return names

    def run(
        self,
        tables: Mapping[str, AskedTable],
        parameters: Mapping[str, object] | None = None,
        missing_keys: str | None = None,
    ) -> pa.RecordBatchReader:
        """Return the rows of the answer, which can be read once, while this query is open.

        ``missing_keys`` is that of :meth:`.Table.sql`.

        ``tables`` has the open table of each name. ``parameters`` are the values of ``$name`` in
        the query.  Raises PolicyError for a query that DuckDB refuses, for a value that the query
        does not use and for columns that differ in case alone, and the error of a table that cannot
        be read.
        """
        by_name("parameters", parameters)
        values = dict(parameters or {})
        check_parameters(self._tree, values)
        most = first_rows(self._tree)
        shown: list[pa.Schema] = []
        for name, table in tables.items():
            with self._errors():
                intervals = table.intervals()
                others = tables.keys() - {name}
                mode = table.missing_keys(missing_keys)
                unused = self._unused(table, others) if mode is MissingKeys.ERROR else frozenset()
                is_null = mode is MissingKeys.NULL
                hidden = table.hidden(mode)
                schema = table.shown_schema(without(unused) if unused else hidden)
                members = hidden.largest(table.shown_schema(table.hidden(MissingKeys.ERROR)))
                use = HiddenUse(self._tree, members, others)
                computed = use.computed if is_null else ()
                lend = functools.partial(Lent.to_duckdb, intervals=intervals)
                failed = self._failed.append
                frame = scan(table, mode, failed, computed=computed, unused=unused, lend=lend)
            _check_names(name, schema)
            shown.append(schema)
            frame = _with_uuids(frame, wanted_uuids(self._tree, values, schema))
            frame = frame if most is None else frame.head(most)
            self._register(name, frame, schema, intervals)
            if mode is not MissingKeys.ERROR:
                asked = map(".".join, sorted(use.shown | use.computed))
                self._hidden += hidden.names
                self.hidden += [it for it in asked if it not in self.hidden]
        values |= given_bytes(self._tree, values, shown)
        with self._errors():
            found = self._connection.sql(self._text, params=values)
            if found is None:
                raise PolicyError(
                    "the statement returns no rows", hint="write SELECT ... FROM 'TABLE'"
                )
            types = [str(it) for it in found.types]
            answer = found.to_arrow_reader(_BATCH_ROWS)
        fields = zip(answer.schema, types, strict=True)
        schema = pa.schema([it.with_type(pa.uuid()) if of == "UUID" else it for it, of in fields])
        return pa.RecordBatchReader.from_batches(schema, self._batches(answer, schema))

    def _register(
        self, name: str, frame: pl.LazyFrame, schema: pa.Schema, intervals: Collection[str]
    ) -> None:
        """Register the rows of a table in DuckDB, with casts to types that Polars does not have.

        Without the cast, a UUID would be bytes, and would equal no text.
        """
        cast = [field.name for field in schema if _is_cast(field.type)]
        shown = [name for name in schema.names if name in intervals]
        if not (cast or shown):
            self._connection.register(name, frame)
            return
        of_rows = f"{name} {secrets.token_hex(8)}"
        self._connection.register(of_rows, frame)
        rows = self._connection.table(_quoted(of_rows))
        types = dict(zip(rows.columns, rows.types, strict=True))
        columns = {
            it: f"CAST({_quoted(it)} AS {_sql_type(schema.field(it).type, types[it])})"
            for it in cast
        }
        columns |= {it: _interval(it) for it in shown}
        replaced = ", ".join(f"{sql} AS {_quoted(it)}" for it, sql in columns.items())
        rows.project(f"* REPLACE ({replaced})").create_view(name)

    def _unused(self, table: AskedTable, other_tables: Collection[str]) -> frozenset[Member]:
        """Return the hidden members of structures that this query does not use.

        DuckDB asks for whole structures, so without this the query would need their keys.
        """
        whole = table.shown_schema(table.hidden(MissingKeys.ERROR))
        structures = {field.name.lower() for field in whole if pa.types.is_nested(field.type)}
        names = {
            it.lower() for node in expressions(self._tree) for it in node.get("column_names", ())
        }
        if structures.isdisjoint(names):
            return frozenset()
        hidden = table.hidden(MissingKeys.DROP)
        largest = hidden.largest(whole)
        use = HiddenUse(self._tree, largest, other_tables)
        unused = [it for it in largest - use.shown - use.computed if len(it) > 1]
        return frozenset(member for member in hidden.members if below(member, unused))

    def _batches(self, answer: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with self._errors():
            for batch in answer:
                columns = [
                    _uuids(it) if field.type == pa.uuid() else it
                    for field, it in zip(schema, batch.columns, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _parsed(self) -> dict[str, Any]:
        """Return DuckDB's syntax tree. Raises PolicyError unless the text is one query."""
        _refuse_too_large(self._text)
        found = self._connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [self._text])
        ((text,),) = found.fetchall()
        try:
            parsed: dict[str, Any] = json.loads(text)
        except RecursionError:
            raise PolicyError("the query nests too deep", hint=_SHALLOWER) from None
        if parsed["error"]:
            raise unparsed(self._text, parsed)
        if (count := len(parsed["statements"])) != 1:
            hint = "run them one by one" if count else "write SELECT ... FROM 'TABLE'"
            raise PolicyError(f"the text has {count} statements, wanted one query", hint=hint)
        node: dict[str, Any] = parsed["statements"][0]["node"]
        return node

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise errors of DuckDB as errors of this package, or the error of a table."""
        import duckdb

        try:
            yield
        except SecureBloomError as exc:
            # Some are errors of the system too, and say already what they are about.
            with_hints_for_sql(exc)
            raise
        except (duckdb.Error, OSError) as exc:
            if self._failed:
                raise with_hints_for_sql(self._failed[0]) from None
            error = refusal(exc, self._text)
            for name in self._hidden:
                if f'"{name.rpartition(".")[2]}"' in error.message:
                    error.hint = f"the key of {name} is missing, so it is left out: give its key"
            raise error from None


def _refuse_too_large(text: str) -> None:
    """Raise an error for a query that takes too much memory only to be parsed.

    Raises MemoryBudgetError for a large query, and PolicyError for one that nests too deep.
    """
    import duckdb

    try:
        refuse_beyond(_CHARACTER * len(text), "the query")
        tokens = duckdb.tokenize(text)
        refuse_beyond(_TOKEN * len(tokens), "the query")
    except MemoryBudgetError as error:
        error.hint = f"{OWN_ROWS}; {VARIABLE}=4GiB allows more"
        raise
    content, depth = text.encode(errors="replace"), 0
    for place, kind in tokens:
        if kind == duckdb.token_type.operator:
            depth += _BRACKETS.get(content[place], 0)
            if depth > _MOST_BRACKETS:
                raise PolicyError(
                    f"the query nests deeper than {_MOST_BRACKETS} brackets", hint=_SHALLOWER
                )


def _is_cast(kind: pa.DataType) -> bool:
    """Return whether DuckDB gets an Arrow type, or a part of it, only by a cast."""
    return (
        isinstance(kind, pa.UuidType)
        or (pa.types.is_time(kind) and kind.unit != "ns")
        or any(_is_cast(kind.field(number).type) for number in range(kind.num_fields))
    )


def _sql_type(kind: pa.DataType, found: Any) -> str:
    """Return the SQL type of an Arrow type. ``found`` is DuckDB's type without a cast."""
    if isinstance(kind, pa.UuidType):
        return "UUID"
    if not _is_cast(kind):
        return str(found)
    if pa.types.is_time(kind):
        return "TIME"
    parts = [part for _, part in found.children]
    if pa.types.is_struct(kind):
        members = zip(kind, parts, strict=True)
        typed = (f"{_quoted(field.name)} {_sql_type(field.type, it)}" for field, it in members)
        return f"STRUCT({', '.join(typed)})"
    if pa.types.is_map(kind):
        key, value = _sql_type(kind.key_type, parts[0]), _sql_type(kind.item_type, parts[1])
        return f"MAP({key}, {value})"
    return f"{_sql_type(kind.value_type, parts[0])}[]"


def _uuids(texts: pa.Array) -> pa.Array:
    """Convert texts that DuckDB wrote into UUIDs."""
    content = bytes.fromhex("".join(texts.fill_null(str(UUID(int=0))).to_pylist()).replace("-", ""))
    values = pa.Array.from_buffers(pa.binary(16), len(texts), [None, pa.py_buffer(content)])
    values = pc.if_else(texts.is_valid(), values, pa.scalar(None, pa.binary(16)))
    return pa.ExtensionArray.from_storage(pa.uuid(), values)


def _interval(name: str) -> str:
    """Return the SQL expression that makes an INTERVAL of its parts (months, days, ...).

    The parts are the fields of the struct column ``name``.
    """
    parts = (f"to_{part}({_quoted(name)}.{part}::BIGINT)" for part in INTERVAL_PARTS)
    return " + ".join(parts)


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def by_name(argument: str, given: Mapping[str, Item] | None) -> dict[str, Item]:
    """Return a mapping by names in lower case, as DuckDB compares names of tables.

    Raises PolicyError for a name that is not a text, and for two names that differ in case alone.
    ``argument`` is the mapping's own name.
    """
    found: dict[str, Item] = {}
    for name, item in (given or {}).items():
        if not isinstance(name, str):
            raise PolicyError(f"{argument} has a name of type {type(name).__name__}, wanted a text")
        if name.lower() in found:
            raise PolicyError(
                f"{argument} has two entries for the name {legible(name.lower())}",
                hint="SQL compares names of tables without case: choose another name",
            )
        found[name.lower()] = item
    return found


def _check_names(table: str, schema: pa.Schema) -> None:
    """Raise PolicyError for columns, or members of one structure, that differ in case alone.

    DuckDB compares names without case. It would use the first of such names for all of them.
    """
    for first, second in _alike(schema):
        raise PolicyError(
            f"{table}: the columns {first} and {second} differ in case alone, and SQL compares "
            "names without case",
            hint=f"secure-bloom read TABLE --columns {first.partition('.')[0]} reads one of them",
        )


def _alike(fields: Iterable[pa.Field], inside: str = "") -> Iterator[tuple[str, str]]:
    known: dict[bytes, str] = {}
    for field in fields:
        path = inside + field.name
        # DuckDB compares letters beyond ASCII with their case.
        key = field.name.encode().lower()
        if key in known:
            yield known[key], path
        known[key] = path
        members = map(field.type.field, range(field.type.num_fields))
        yield from _alike(members, f"{path}.")


def _with_uuids(frame: pl.LazyFrame, wanted: Iterable[tuple[str, list[UUID]]]) -> pl.LazyFrame:
    import polars as pl

    for name, values in wanted:
        frame = frame.filter(pl.col(name).is_in([it.bytes for it in values]))
    return frame
