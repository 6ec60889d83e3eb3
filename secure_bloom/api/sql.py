"""Run a SQL query over encrypted tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from secure_bloom.calling.arguments import check_fields, member_of, takes
from secure_bloom.calling.close_names import CloseNames
from secure_bloom.calling.options import OTHER_TABLE, MissingKeys
from secure_bloom.encryption.access import GivenKeys, GivenPolicy
from secure_bloom.errors import MissingPathError, PolicyError, SecureBloomError
from secure_bloom.reading.kept_table import Table
from secure_bloom.reading.read_request import OpenRequest
from secure_bloom.reading.sql_query import OpenQuery, by_name
from secure_bloom.reports.text import legible
from secure_bloom.storage.paths import Paths

if TYPE_CHECKING:
    import pyarrow as pa


# No repr: a query and its parameters hold values.
@dataclass(frozen=True, eq=False, repr=False)
class SqlRequest:
    """The arguments of :func:`secure_bloom.sql`, as described there."""

    query: str
    tables: Mapping[str, Paths | Table] | None = None
    _: KW_ONLY
    parameters: Mapping[str, object] | None = None
    keys: GivenKeys | Mapping[str, GivenKeys] = None
    policy: GivenPolicy | Mapping[str, GivenPolicy] = None
    missing_keys: str | None = None
    allow_unverified: bool = False
    allow_unprotected: bool = False
    version: int | None = None
    timestamp: str | datetime | None = None
    snapshot: int | None = None
    storage_options: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.missing_keys is not None:
            member_of(MissingKeys, "missing_keys", self.missing_keys)


@takes(SqlRequest)
def sql(asked: SqlRequest) -> pa.Table:
    """Return the rows of a SQL query over tables, encrypted or not.

    The query is one SELECT statement in DuckDB's dialect.  A table in it is the path of a table in
    quotes (``FROM 'lake/customers'``), or a name of ``tables``.  Columns and comparisons are pushed
    down, so row groups that filters rule out are not read.  DuckDB has no access to other files.

    Args:
        query: The query.
        tables: Names in the query, each with the paths of a table or with an open table.
        parameters: The values of ``$name`` in the query.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.  A mapping has one for each table by its name in
            the query, and for all others by ``*``: ``{"c": "customers.toml", "*": "policy.toml"}``.
            ``keys`` may be a mapping of this kind too.
        missing_keys: What becomes of a column whose key is missing: ``"error"`` if it is read,
            ``"null"`` in every row, or ``"drop"`` to leave it out; by default what an open table
            was opened with, else ``"error"``.  A query that computes with a column that is null for
            that reason is an error.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
        version: The version of a Delta table to read, if the query opens one table.
        timestamp: The last version or snapshot until this time.
        snapshot: The snapshot of an Iceberg table.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        A table of the rows of the answer.

    Raises:
        PolicyError: The query cannot be parsed or run, or there is no such table.
        KeyUnavailableError: A key is missing, and rows are left that need it.
        MissingExtraError: DuckDB or Polars is not installed.

    Example:
        >>> query = "SELECT country, count(*) AS n FROM 'out/' GROUP BY country ORDER BY country"
        >>> sb.sql(query, policy="keys/policy.toml").to_pylist()[0]
        {'country': 'it', 'n': 20}
    """
    with answered(asked) as (rows, _):
        return rows.read_all()


@contextmanager
def answered(
    asked: SqlRequest, check: Callable[[Table], None] | None = None
) -> Iterator[tuple[pa.RecordBatchReader, list[str]]]:
    """Yield the rows of the answer, and the columns that are null or left out for lack of a key.

    The rows can be read once, inside the block.  ``check`` is called with each table before.
    """
    with OpenQuery(asked.query) as query, _own_policies(query, asked), ExitStack() as opened:
        given = by_name("tables", asked.tables)
        found = {name: given.get(name.lower(), name) for name in query.table_names}
        tables = {name: table for name, table in found.items() if isinstance(table, Table)}
        paths = {name: path for name, path in found.items() if not isinstance(path, Table)}
        keys = _by_table("keys", asked.keys, paths)
        policies = _by_table("policy", asked.policy, paths)
        at = {name: getattr(asked, name) for name in ("version", "timestamp", "snapshot")}
        wanted = [name for name, value in at.items() if value is not None]
        if wanted and len(tables) + len(paths) != 1:
            raise PolicyError(
                f"{wanted[0]} is that of one table, and the query has {len(tables) + len(paths)}",
                hint=f"in Python: tables={{NAME: secure_bloom.open_table(PATH, {wanted[0]}=...)}}",
            )
        if wanted and tables:
            raise PolicyError(
                f"{wanted[0]} is given, and the table is open", hint="give it to open_table"
            )
        for name, path in paths.items():
            request = OpenRequest(
                path,
                keys=keys[name],
                policy=policies[name],
                allow_unverified=asked.allow_unverified,
                allow_unprotected=asked.allow_unprotected,
                **at,
                storage_options=asked.storage_options,
            )
            with _named_alike(name, given):
                tables[name] = opened.enter_context(Table(request))
        if check is not None:
            for table in tables.values():
                check(table)
        yield query.run(tables, asked.parameters, asked.missing_keys), query.hidden


#: What is given for the tables that have nothing of their own.
OTHERS: Final = "*"


def _by_table(argument: str, given: object, tables: Collection[str]) -> dict[str, Any]:
    """Return the argument of each table of a query. It was given for all tables, or for each name.

    A name of another table is left out, because one mapping may serve many queries. Raises
    PolicyError for it if a table of the query has no entry of its own: the name may be misspelt.
    """
    if not isinstance(given, Mapping):
        return dict.fromkeys(tables, given)
    named = by_name(argument, given)
    wanted = set(map(str.lower, tables))
    others = set() if wanted <= named.keys() else named.keys() - {OTHERS, *wanted}
    for name in sorted(others):
        raise PolicyError(
            f"{argument} is given for {legible(name)}, and the query opens no such table",
            hint=f"it opens {', '.join(map(legible, tables)) or 'none'}",
        )
    return {name: named.get(name.lower(), named.get(OTHERS)) for name in tables}


@contextmanager
def _own_policies(query: OpenQuery, asked: SqlRequest) -> Iterator[None]:
    """Add the argument for several policies to the hint of an error in the block.

    This is done if the query has several tables, but only one policy was given.
    """
    try:
        yield
    except SecureBloomError as error:
        is_shared = asked.policy is not None and len(query.table_names) > 1
        if is_shared and OTHER_TABLE in (error.hint or ""):
            others = str(error.hint).replace(f"; {OTHER_TABLE}", "")
            error.hint = f"{_OWN_POLICY}; {others}"
        raise


_OWN_POLICY: Final = (
    "if the policy is that of another table, policy={NAME: FILE} (--policy NAME=FILE) gives a "
    "table its own"
)


@contextmanager
def _named_alike(name: str, given: Mapping[str, object]) -> Iterator[None]:
    """Add a hint to the error of a missing path that the query uses as the name of a table."""
    try:
        yield
    except MissingPathError as error:
        if error.path == name:
            close = CloseNames(given).close(name, 3)
            if close:
                error.hint = f"did you mean the table {', '.join(close)}?"
            elif not (error.hint or "").startswith("did you mean"):
                error.hint = "the name of a table is its path in quotes: FROM 'lake/customers'"
        raise
