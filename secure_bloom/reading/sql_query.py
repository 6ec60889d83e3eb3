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
import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from secure_bloom.calling.options import MissingKeys
from secure_bloom.errors import PolicyError, SecureBloomError, imported_for
from secure_bloom.reading.lent_types import INTERVAL_PARTS, Lent
from secure_bloom.reading.polars_scan import scan

if TYPE_CHECKING:
    import polars as pl

    from secure_bloom.parquet.members import Member
    from secure_bloom.reading.table_read import AskedTable

Item = TypeVar("Item")
_Sides = list[dict[str, Any]]
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
#: Errors of DuckDB that describe the query, and no value of a row.
_ABOUT_THE_QUERY: Final = (
    "BinderException",
    "CatalogException",
    "NotImplementedException",
    "ParserException",
    "PermissionException",
    "SyntaxException",
)
#: Beginnings of the lines in which DuckDB names what the user may have meant.
_ALIKE: Final = ("Candidate bindings", "Did you mean")
#: A name in quotes in an error of DuckDB.  It may be a value that the user meant as a text.
_QUOTED = re.compile(r'"([^"]*)"')
_UUID: Final = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
#: Bytes as a condition, CSV and JSON have them.
_HEX: Final = re.compile("hex:((?:[0-9a-fA-F]{2})*)")
#: How DuckDB names parameters of the query without a value.
_LACKING = re.compile(r"not provided for the following parameters: (\w+(?:, \w+)*)")
#: A parameter as a condition may have it, and DuckDB not.
_COLON_NAME: Final = re.compile(r"(?<![:\w])\s:[A-Za-z_]\w*")
_OF_CONDITIONS: Final = "write a parameter as $name"
_ONLY_READS: Final = "tables are only read; WITH NAME AS (SELECT ...) names a part of a query"
_NO_SETTING: Final = "settings of DuckDB are fixed; --table NAME=PATH and tables= name other tables"
_TO_FILE: Final = (
    "--output FILE writes the rows of the query; in Python the answer is an Arrow table"
)
#: Words with which statements begin that are no query, and what to use in place of them.
_INSTEAD: Final = {
    "pivot": "name the values: PIVOT 'TABLE' ON country IN ('it', 'no') USING sum(n)",
    "explain": "secure-bloom read TABLE --where ... --explain says what is read, and why",
    **dict.fromkeys(("copy", "export"), _TO_FILE),
    **dict.fromkeys(("attach", "call", "install", "load", "pragma", "set", "use"), _NO_SETTING),
    **dict.fromkeys(("alter", "create", "delete", "drop", "insert"), _ONLY_READS),
    **dict.fromkeys(("merge", "truncate", "update"), _ONLY_READS),
}
_STATEMENT: Final = re.compile(rf"\b({'|'.join(_INSTEAD)})\b", re.IGNORECASE)
#: The kinds of errors whose text may have a value of a row, and what is said of them instead.
_OF_A_VALUE: Final = re.compile("(Conversion|Invalid Input|Out of Range) Error")
_TRY_CAST: Final = "try_cast(COLUMN AS TYPE) gives null for a value that does not fit"
_VALUE_ERRORS: Final = {
    "Conversion": ("a value cannot be converted to a type (DuckDB: Conversion Error)", _TRY_CAST),
    "Invalid Input": (
        "a function or operation does not take a value (DuckDB: Invalid Input Error)",
        "try(EXPRESSION) gives null for a value that it does not take",
    ),
    "Out of Range": (
        "a number is out of the range of its type (DuckDB: Out of Range Error)",
        "cast to a wider type, such as HUGEINT or DOUBLE; try(EXPRESSION) gives null",
    ),
    None: ("a value does not fit an operation or a type", _TRY_CAST),
}
_HINT: Final = "write texts and paths in single quotes, names of columns in double quotes"
#: What to do about an error that DuckDB describes with these words.
_BY_WORDS: Final = {
    "must appear in the GROUP BY": "add the column to GROUP BY, or write GROUP BY ALL",
    "Ambiguous reference": "write the table before the column: c.id",
    "Cannot access file": "a table is its path in quotes: FROM 'lake/customers'",
    "No function matches": "give it a type: cast(COLUMN AS DATE)",
    "Function with name": "functions are those of DuckDB",
    "does not have a column named": "DESCRIBE 'TABLE' lists the columns of a table",
    "WHERE clause cannot contain aggregates": "conditions on aggregates follow HAVING",
}


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
        names = list(dict.fromkeys(_tables(self._tree, frozenset())))
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
        _check_parameters(self._tree, values)
        most = _first_rows(self._tree)
        shown: list[pa.Schema] = []
        for name, table in tables.items():
            intervals = table.intervals()
            mode = self._mode(table, table.missing_keys(missing_keys))
            with self._errors():
                frame = self._scanned(table, mode, intervals)
            schema = table.shown_schema(table.hidden(mode))
            _check_names(name, schema)
            shown.append(schema)
            frame = _with_uuids(frame, _wanted_uuids(self._tree, values, schema))
            frame = frame if most is None else frame.head(most)
            self._register(name, frame, schema, intervals)
            if table.missing_keys(missing_keys) is not MissingKeys.ERROR:
                names = table.hidden(mode).names
                self.hidden = list(dict.fromkeys((*self.hidden, *names)))
        values |= _given_bytes(self._tree, values, shown)
        with self._errors():
            found = self._connection.sql(self._text, params=values)
            if found is None:
                raise PolicyError("the query has no answer", hint="write SELECT ... FROM 'TABLE'")
            types = [str(it) for it in found.types]
            answer = found.to_arrow_reader(_BATCH_ROWS)
        fields = zip(answer.schema, types, strict=True)
        schema = pa.schema([it.with_type(pa.uuid()) if of == "UUID" else it for it, of in fields])
        return pa.RecordBatchReader.from_batches(schema, self._batches(answer, schema))

    def _register(
        self, name: str, frame: pl.LazyFrame, schema: pa.Schema, intervals: Collection[str]
    ) -> None:
        """Give DuckDB the rows of a table, with casts to types that Polars does not have.

        Bytes in place of a UUID would be equal to no text.
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

    def _mode(self, table: AskedTable, asked: MissingKeys) -> MissingKeys:
        """Return what becomes of hidden columns in this query.

        DuckDB asks for whole structures.  So a structure has no hidden members for a query that
        uses none of them.
        """
        if asked is not MissingKeys.ERROR:
            return asked
        whole = table.shown_schema(table.hidden(asked))
        structures = {field.name.lower() for field in whole if pa.types.is_struct(field.type)}
        paths = (it.get("column_names", ()) for it in _expressions(self._tree))
        if structures.isdisjoint(name.lower() for path in paths for name in path[:-1]):
            return asked
        hidden = table.hidden(MissingKeys.DROP).members
        return asked if _may_use(self._tree, hidden) else MissingKeys.DROP

    def _scanned(
        self, table: AskedTable, missing_keys: MissingKeys, intervals: Collection[str]
    ) -> pl.LazyFrame:
        hidden = table.hidden(missing_keys)
        # DuckDB does not say what a column is for, and an answer must not depend on hidden values.
        shows = _only_shows(self._tree, hidden.members) or not _may_use(self._tree, hidden.members)
        lend = functools.partial(Lent.to_duckdb, intervals=intervals)
        return scan(table, missing_keys, self._failed.append, shows_hidden=shows, lend=lend)

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
        found = self._connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [self._text])
        ((text,),) = found.fetchall()
        parsed: dict[str, Any] = json.loads(text)
        if parsed["error"]:
            if parsed["error_type"] == "not implemented":
                word = _STATEMENT.search(self._text)
                hint = _INSTEAD[word[0].lower()] if word else "write SELECT ... FROM 'TABLE'"
                raise PolicyError("the statement is not a query", hint=hint)
            message = _shown(parsed["error_message"])
            hint = _OF_CONDITIONS if _COLON_NAME.search(self._text) else _HINT
            raise PolicyError(f"the query cannot be parsed: {message}", hint=hint)
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
        except SecureBloomError:
            # Some are errors of the system too, and say already what they are about.
            raise
        except (duckdb.Error, OSError) as exc:
            if self._failed:
                raise self._failed[0] from None
            error = _refusal(exc)
            for name in self.hidden:
                if f'"{name.rpartition(".")[2]}"' in error.message:
                    error.hint = f"the key of {name} is missing, so it is left out: give its key"
            raise error from None


def _is_cast(kind: pa.DataType) -> bool:
    """Return whether DuckDB has values of an Arrow type, or a part of them, by a cast alone."""
    return (
        isinstance(kind, pa.UuidType)
        or (pa.types.is_time(kind) and kind.unit != "ns")
        or any(_is_cast(kind.field(number).type) for number in range(kind.num_fields))
    )


def _sql_type(kind: pa.DataType, found: Any) -> str:
    """Return the SQL type of an Arrow type. ``found`` is the one that DuckDB has without a cast."""
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
    """Return the UUIDs that DuckDB has written as texts."""
    content = bytes.fromhex("".join(texts.fill_null(str(UUID(int=0))).to_pylist()).replace("-", ""))
    values = pa.Array.from_buffers(pa.binary(16), len(texts), [None, pa.py_buffer(content)])
    values = pc.if_else(texts.is_valid(), values, pa.scalar(None, pa.binary(16)))
    return pa.ExtensionArray.from_storage(pa.uuid(), values)


def _interval(name: str) -> str:
    """Return the SQL of an INTERVAL from its parts."""
    parts = (f"to_{part}({_quoted(name)}.{part}::BIGINT)" for part in INTERVAL_PARTS)
    return " + ".join(parts)


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def by_name(argument: str, given: Mapping[str, Item] | None) -> dict[str, Item]:
    """Return a mapping by names in lower case, as DuckDB compares names of tables.

    Raises PolicyError for a name that is not a text. ``argument`` is the mapping's own name.
    """
    for name in given or ():
        if not isinstance(name, str):
            raise PolicyError(f"{argument} has a name of type {type(name).__name__}, wanted a text")
    return {name.lower(): item for name, item in (given or {}).items()}


def _check_parameters(tree: dict[str, Any], values: Mapping[str, object]) -> None:
    """Raise PolicyError for a value that the query does not use, unless it lacks another one."""
    used = {
        it["identifier"].lower() for it in _expressions(tree) if it["type"] == "VALUE_PARAMETER"
    }
    unused = [f"${name}" for name in values if name.lower() not in used]
    if unused and used <= set(map(str.lower, values)):
        raise PolicyError(
            f"the query has no parameter {', '.join(unused)}, for which a value was given",
            hint="use it in the query, or leave the value out",
        )


def _given_bytes(
    tree: dict[str, Any], values: Mapping[str, object], schemas: Iterable[pa.Schema]
) -> dict[str, bytes]:
    """Return the parameters that are bytes as texts have them, and are compared with a BLOB.

    Raises PolicyError if the query compares one with a text "hex:00": DuckDB would take its letters
    as the bytes.
    """
    fields = [(field.name.lower(), _is_bytes(field.type)) for it in schemas for field in it]
    blobs = {name for name, is_bytes in fields if is_bytes}
    blobs -= {name for name, is_bytes in fields if not is_bytes}
    found = {}
    for node in _expressions(tree) if blobs else ():
        if not node["type"].startswith("COMPARE_"):
            continue
        sides = [
            it for part in node.values() for it in (part if isinstance(part, list) else [part])
        ]
        sides = [it for it in sides if isinstance(it, dict)]
        if not any(it.get("column_names", [""])[-1].lower() in blobs for it in sides):
            continue
        for side in sides:
            if _HEX.fullmatch(str(side.get("literal", {}).get("text"))):
                raise PolicyError(
                    "bytes are compared with a text that begins with hex:",
                    hint="write from_hex('00ff'), or give the bytes as a parameter",
                )
            name = side.get("identifier", "")
            given = _HEX.fullmatch(str(values.get(name)))
            if given is not None:
                found[name] = bytes.fromhex(given[1])
    return found


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _check_names(table: str, schema: pa.Schema) -> None:
    """Raise PolicyError for columns, or members of one structure, that differ in case alone.

    DuckDB compares names without case, and would take the first of them for each.
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


def _refusal(error: Exception) -> PolicyError:
    """Return an error of DuckDB as an error of this package, without values of rows."""
    # pyarrow, which reads the answer, raises its own error with DuckDB's text.
    kind = type(error).__name__
    if kind in _ABOUT_THE_QUERY:
        first, *others = str(error).partition("\n\nLINE")[0].splitlines()
        hints = [hint for words, hint in _BY_WORDS.items() if words in first]
        hints += [_shown(line) for line in others if line.startswith(_ALIKE)]
        return PolicyError(
            f"the query cannot be run: {_shown(first.partition(': ')[2])}",
            hint=hints[0] if hints else _HINT,
        )
    lacking = _LACKING.search(str(error)[:2_000])
    if lacking is not None:
        names = ", ".join(f"${name}" for name in lacking[1].split(", "))
        return PolicyError(
            f"the query has no value for {names}",
            hint="--parameters FILE, or parameters={NAME: value}, gives values by their names",
        )
    if "OutOfMemory" in kind or "Out of Memory" in str(error)[:200]:
        return PolicyError(
            "the query needs more memory than there is",
            hint="select fewer columns or rows; aggregate before a join",
        )
    found = _OF_A_VALUE.match(str(error)[:200])
    reason, hint = _VALUE_ERRORS[found[1] if found else None]
    return PolicyError(f"the query failed while it ran: {reason}", hint=hint)


def _tables(node: object, defined: Set[str]) -> Iterator[str]:
    """Yield the names of tables in a part of a syntax tree, without the ``defined`` ones."""
    if isinstance(node, list):
        for part in node:
            yield from _tables(part, defined)
    if not isinstance(node, dict):
        return
    if node.get("type") == "BASE_TABLE":
        name = ".".join(filter(None, map(node.get, ("catalog_name", "schema_name", "table_name"))))
        if name.lower() not in defined:
            yield name
    # A query of WITH sees the names before it, and its own one only if it is recursive.
    if node.get("type") == "RECURSIVE_CTE_NODE":
        defined = {*defined, node["cte_name"].lower()}
    for entry in node.get("cte_map", {}).get("map", ()):
        yield from _tables(entry["value"], defined)
        defined = {*defined, entry["key"].lower()}
    yield from _tables([part for name, part in node.items() if name != "cte_map"], defined)


def _only_shows(tree: dict[str, Any], hidden: Collection[Member]) -> bool:
    """Return whether a query uses hidden columns for nothing but its output.

    It is ``SELECT columns FROM table WHERE ... ORDER BY ... LIMIT ...``, and names no hidden column
    after FROM.
    """
    orders = [it for modifier in tree["modifiers"] for it in modifier.get("orders", ())]
    is_plain = (
        tree["type"] == "SELECT_NODE"
        and tree["from_table"]["type"] == "BASE_TABLE"
        and not tree["from_table"]["column_name_alias"]
        and not tree["cte_map"]["map"]
        and all(map(_is_column, tree["select_list"]))
        and not any(tree[it] for it in ("group_sets", "having", "qualify", "sample"))
        and tree["aggregate_handling"] == "STANDARD_HANDLING"
        and {it["type"] for it in tree["modifiers"]} <= {"ORDER_MODIFIER", "LIMIT_MODIFIER"}
        # A number is the position of a column of the output.
        and all(it["expression"]["class"] != "CONSTANT" for it in orders)
    )
    table = tree["from_table"] if is_plain else {}
    rows = {str(table.get(it)).lower() for it in ("alias", "table_name")}
    return is_plain and not any(
        node["class"] in ("STAR", "SUBQUERY", "POSITIONAL_REFERENCE")
        or _may_mean(node.get("column_names", ()), hidden, rows)
        for node in _expressions([tree["where_clause"], orders])
    )


def _may_use(tree: dict[str, Any], hidden: Collection[Member]) -> bool:
    """Return whether a query may use a hidden column, or a hidden member of a structure.

    Everything that has the columns of a table without their names may.
    """
    columns = {member[0].lower() for member in hidden}
    parts = list(_parts(tree))
    # An expression has an alias too, which is no name of rows.
    tables = [part for part in parts if "class" not in part]
    rows = {str(part.get(it)).lower() for part in tables for it in ("alias", "table_name")}
    return any(
        part.get("type") in ("PIVOT", "SHOW_REF")
        or part.get("ref_type") == "NATURAL"
        or bool(part.get("column_name_alias"))
        or not columns.isdisjoint(map(str.lower, part.get("using_columns", ())))
        or part.get("class") in ("STAR", "POSITIONAL_REFERENCE")
        or _may_mean(part.get("column_names", ()), hidden, rows)
        for part in parts
    )


def _is_column(item: dict[str, Any]) -> bool:
    """Return whether an item of SELECT is a column under its own name, or all columns."""
    if item["class"] == "STAR":
        return not (item["columns"] or item["expr"] or item["replace_list"] or item["rename_list"])
    return bool(item["class"] == "COLUMN_REF" and not item["alias"])


def _may_mean(names: Sequence[str], hidden: Collection[Member], rows: Set[str]) -> bool:
    """Return whether a name may be that of a hidden column, or of something that has one inside."""
    path = [name.lower() for name in names]
    if len(path) == 1 and path[0] in rows:
        return True
    for member in hidden:
        wanted = [name.lower() for name in member]
        starts = (at for at, name in enumerate(path) if name == wanted[0])
        if any(all(map(str.__eq__, path[at:], wanted)) for at in starts):
            return True
    return False


def _expressions(node: object) -> Iterator[dict[str, Any]]:
    """Yield all expressions of a part of a syntax tree."""
    return (part for part in _parts(node) if "class" in part)


def _parts(node: object) -> Iterator[dict[str, Any]]:
    """Yield all parts of a syntax tree."""
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    for part in node if isinstance(node, list) else ():
        yield from _parts(part)


def _first_rows(tree: dict[str, Any]) -> int | None:
    """Return the number of rows of a table that a query reads at most, or None for all.

    DuckDB does not push LIMIT down.  So ``SELECT columns FROM table LIMIT n`` is recognised here,
    because it is how a person looks at a table first.
    """
    kinds = {item["class"] for item in tree.get("select_list", ({"class": ""},))}
    is_plain = (
        tree["type"] == "SELECT_NODE"
        and tree["from_table"]["type"] == "BASE_TABLE"
        and kinds <= {"COLUMN_REF", "STAR"}
        and not any(
            tree[it] for it in ("where_clause", "group_sets", "having", "qualify", "sample")
        )
        and [it["type"] for it in tree["modifiers"]] == ["LIMIT_MODIFIER"]
    )
    if not is_plain:
        return None
    bounds = [tree["modifiers"][0][it] for it in ("limit", "offset")]
    numbers = [_number(it) for it in bounds if it is not None]
    return None if None in numbers or bounds[0] is None else sum(filter(None, numbers))


def _wanted_uuids(
    tree: dict[str, Any], parameters: Mapping[str, object], schema: pa.Schema
) -> Iterator[tuple[str, list[UUID]]]:
    """Yield columns of UUIDs, and the values of which a row of the answer has one in the column.

    DuckDB has UUIDs as a cast of bytes, and pushes no condition on a cast down.  So ``u = ...`` and
    ``u IN (...)`` are recognised where a query reads one table once.
    """
    table = tree.get("from_table", {})
    is_plain = (
        tree["type"] == "SELECT_NODE"
        and table["type"] == "BASE_TABLE"
        and not table["column_name_alias"]
        and not tree["cte_map"]["map"]
        # A sample is taken before the rows are looked at.
        and not (tree["sample"] or table["sample"])
        and len(list(_tables(tree, frozenset()))) == 1
    )
    if not is_plain:
        return
    columns: dict[tuple[str, ...], str] = {
        (field.name.lower(),): field.name for field in schema if isinstance(field.type, pa.UuidType)
    }
    of_table = (table["alias"] or table["table_name"]).lower()
    if of_table not in map(str.lower, schema.names):
        columns |= {(of_table, *path): name for path, name in columns.items()}
    for left, right in _equalities(tree["where_clause"]):
        name = columns.get(tuple(map(str.lower, left.get("column_names", ()))))
        values = [_uuid(it, parameters) for it in right]
        if name is not None and None not in values:
            yield name, [it for it in values if it is not None]


def _equalities(where: dict[str, Any] | None) -> Iterator[tuple[dict[str, Any], _Sides]]:
    """Yield the sides of ``=``, and of IN, that must hold for each row."""
    if where is None:
        return
    if where["type"] == "CONJUNCTION_AND":
        for part in where["children"]:
            yield from _equalities(part)
    elif where["type"] == "COMPARE_EQUAL":
        yield where["left"], [where["right"]]
        yield where["right"], [where["left"]]
    elif where["type"] == "COMPARE_IN":
        yield where["children"][0], where["children"][1:]


def _uuid(expression: dict[str, Any], parameters: Mapping[str, object]) -> UUID | None:
    """Return the UUID that an expression is. Return None for any other, and for other spellings."""
    if expression["type"] == "OPERATOR_CAST":
        is_uuid = expression["type_expr"].get("type_name", "").lower() == "uuid"
        expression = expression["child"] if is_uuid else expression
    literal = expression.get("literal", {})
    value = literal["text"] if literal.get("kind") == "STRING" else None
    if expression["type"] == "VALUE_PARAMETER":
        value = parameters.get(expression["identifier"])
    if isinstance(value, str) and _UUID.fullmatch(value):
        value = UUID(value)
    return value if isinstance(value, UUID) else None


def _with_uuids(frame: pl.LazyFrame, wanted: Iterable[tuple[str, list[UUID]]]) -> pl.LazyFrame:
    import polars as pl

    for name, values in wanted:
        frame = frame.filter(pl.col(name).is_in([it.bytes for it in values]))
    return frame


def _number(expression: dict[str, Any]) -> int | None:
    text = expression.get("literal", {}).get("text", "")
    return int(text) if text.isdecimal() else None


def _shown(message: str) -> str:
    """Return a message of DuckDB without texts in double quotes that cannot be names."""
    return _QUOTED.sub(lambda it: it[0] if it[1].isidentifier() else '"..."', message)
