"""Run a SQL query over encrypted tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from secure_bloom.calling.arguments import check_fields, member_of, takes
from secure_bloom.calling.options import MissingKeys
from secure_bloom.encryption.access import GivenKeys, GivenPolicy
from secure_bloom.errors import MissingPathError
from secure_bloom.reading.kept_table import Table
from secure_bloom.reading.read_request import OpenRequest
from secure_bloom.reading.sql_query import OpenQuery, by_name
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
    keys: GivenKeys = None
    policy: GivenPolicy = None
    missing_keys: str | None = None
    allow_unverified: bool = False
    allow_unprotected: bool = False
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
        policy: A KeyPolicy, or the path of one.
        missing_keys: What becomes of a column whose key is missing: ``"error"`` if it is read,
            ``"null"`` in every row, or ``"drop"`` to leave it out; by default what an open table
            was opened with, else ``"error"``.  A query that computes with a column that is null for
            that reason is an error.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
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
def answered(asked: SqlRequest) -> Iterator[tuple[pa.RecordBatchReader, list[str]]]:
    """Yield the rows of the answer, which can be read once, inside the block.

    Beside them are the columns that are null or left out because their key is missing.
    """
    with OpenQuery(asked.query) as query, ExitStack() as opened:
        given = by_name("tables", asked.tables)
        tables = {}
        for name in query.table_names:
            found = given.get(name.lower(), name)
            if not isinstance(found, Table):
                found = opened.enter_context(_opened(name, found, asked))
            tables[name] = found
        yield query.run(tables, asked.parameters, asked.missing_keys), query.hidden


def _opened(name: str, paths: Paths, asked: SqlRequest) -> Table:
    try:
        return Table(
            OpenRequest(
                paths,
                keys=asked.keys,
                policy=asked.policy,
                allow_unverified=asked.allow_unverified,
                allow_unprotected=asked.allow_unprotected,
                storage_options=asked.storage_options,
            )
        )
    except MissingPathError as error:
        if paths == name:
            error.hint = "the name of a table is its path in quotes: FROM 'lake/customers'"
        raise
