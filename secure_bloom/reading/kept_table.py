"""A table that is open: listed once, its footers and keys in memory, asked as often as wanted.

    table = Table(OpenRequest("out/"))
    table.read(where)      a question: rows, batches, an explanation, a plan, verdicts of filters
    table.refresh()        what changed is read again
    table.close()          keys, footers and filters are dropped

Every read of this package is a question to one of these.  A table is the state at its opening.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from secure_bloom.calling.arguments import asks, checked_arguments, member_of
from secure_bloom.calling.options import MissingKeys
from secure_bloom.errors import FileChangedError, PolicyError, imported_for
from secure_bloom.lakes.output_rules import refuse_rows
from secure_bloom.parquet.structures.metadata import ConvertedType
from secure_bloom.reading.probing import TableProbe
from secure_bloom.reading.read_request import OpenRequest, Question, TableRequest
from secure_bloom.reading.table.table_files import TableFiles
from secure_bloom.reports.text import counted, human_bytes, legible
from secure_bloom.running.memory_budget import MemoryShare
from secure_bloom.storage.dispatch import tree_of
from secure_bloom.storage.listing import DATA_SUFFIXES
from secure_bloom.storage.paths import as_paths
from secure_bloom.storage.table_objects import table_path

# Imported where they are used: verdicts need none of them.
if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    import pyarrow as pa

    from secure_bloom.bloom.verdicts import ProbeReport
    from secure_bloom.parquet.members import Member
    from secure_bloom.predicates.bound_request import HiddenColumns
    from secure_bloom.reading.pruning.kept_columns import KeptColumns
    from secure_bloom.reading.pruning.plan import ReadPlan
    from secure_bloom.reading.read_report import ReadReport
    from secure_bloom.reading.table_read import TableRead

_Answer = TypeVar("_Answer")


class Table:
    """An open table. Use it as a context manager, from any number of threads."""

    def __init__(self, asked: TableRequest) -> None:
        if not isinstance(asked.paths, str) and table_path(asked.paths) is None:
            # Listed once: the paths may come from a generator.
            asked = replace(asked, paths=as_paths(asked.paths))
        grant = asked.grant()
        self._given = as_paths(asked.paths)
        self._access = asked.access()
        # What opens the table elsewhere: keys never travel.
        self._asked = replace(
            asked,
            paths=self._given,
            keys=None,
            policy=self._access.policy,
            storage_options=None,
            version=asked.at().version,
        )
        self._lock = threading.Lock()
        self._missing_keys = (
            member_of(MissingKeys, "missing_keys", asked.missing_keys)
            if isinstance(asked, OpenRequest)
            else MissingKeys.ERROR
        )
        self._stale_after = asked.stale_after if isinstance(asked, OpenRequest) else 0
        #: Until then the files count as unchanged.
        self._fresh_until = 0.0
        # A request of one read keeps what it needs until its end.
        self._memory = MemoryShare(asked.most_bytes()) if isinstance(asked, OpenRequest) else None
        self._files: TableFiles | None = TableFiles(
            self._given, self._access.resolver(), asked.at(), self._memory, grant=grant
        )
        #: Bounds and filters in memory, once the table was asked; one read keeps none.
        self._columns: KeptColumns | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table, with its partition columns last.

        The first use reads all footers.  A column is hidden if its key is missing in some file, and
        so is a member of a structure.  The metadata of its field has the names of what is hidden,
        as ``secure_bloom.hidden``.  With ``missing_keys="drop"`` what is hidden is left out.
        """
        import pyarrow as pa

        from secure_bloom.predicates.bound_request import marked

        if self._missing_keys is MissingKeys.DROP:
            return self.shown_schema(self.hidden(self._missing_keys))
        hidden = self.hidden_members()
        return pa.schema([marked(column, hidden) for column in self._opened().whole_schema])

    @property
    def readable_columns(self) -> list[str]:
        """The columns whose keys are available.

        A structure with hidden members is replaced by its other members. The names can be given as
        ``columns``.
        """
        from secure_bloom.parquet.members import apart_from

        hidden = self.hidden_members()
        found = (apart_from(column, hidden) for column in self._opened().whole_schema)
        return [".".join(member) for members in found for member in members]

    @property
    def columns(self) -> list[str]:
        """The names of the columns, also of hidden ones unless they are left out."""
        if self._missing_keys is MissingKeys.DROP:
            return list(self.schema.names)
        return list(self._opened().whole_schema.names)

    @property
    def files(self) -> list[str]:
        """The paths of the files of the table, in the order of their rows."""
        return list(self._opened().paths)

    @asks(Question)
    def read(self, asked: Question) -> pa.Table:
        """Return the rows for which ``where`` is true, as :func:`secure_bloom.read_table` does.

        Args:
            where: A condition as a text, a structure or a pyarrow.compute expression.
            columns: Columns, or dotted members of structures, in this order; by default all.
            limit: Number of rows after which the read stops.
            parameters: The values of ``:name`` in a condition that is a text.
            without_filter_keys: Leave out a condition on a column whose key is missing.
            missing_keys: What becomes of a column whose key is missing, as :func:`open_table`
                takes it; by default what was given there.

        Returns:
            A table of the rows that match.

        Raises:
            FileChangedError: A file is no longer the one that was opened, and cannot be read again.
            PolicyError: The request cannot be met, for example the table has no such column.

        Example:
            >>> table = sb.open_table("out/", policy="keys/policy.toml")
            >>> table.read("email = 'user7@example.com'").num_rows
            1
        """
        return self._answered(lambda: self.ask(asked).rows())

    @asks(Question)
    def read_batches(self, asked: Question) -> pa.RecordBatchReader:
        """Return the rows of :meth:`read` in batches, with few of them in memory at a time.

        The batches are an Arrow stream (``__arrow_c_stream__``), which DuckDB, Polars and other
        libraries take without a copy.

        Args:
            where: A condition, as :meth:`read` takes it.
            columns: Columns, or dotted members of structures, in this order; by default all.
            limit: Number of rows after which the read stops.
            parameters: The values of ``:name`` in a condition that is a text.
            without_filter_keys: Leave out a condition on a column whose key is missing.

        Returns:
            An iterator of record batches, which can be read once.

        Raises:
            SecureBloomError: The errors of :meth:`read`.
        """
        return self.ask(asked).stream()

    @asks(Question)
    def explain(self, asked: Question) -> ReadReport:
        """Read as :meth:`read` does, drop the rows, and return what was read and why.

        Args:
            where: A condition, as :meth:`read` takes it.
            columns: Columns, or dotted members of structures, in this order; by default all.
            limit: Number of rows after which the read stops.
            parameters: The values of ``:name`` in a condition that is a text.
            without_filter_keys: Leave out a condition on a column whose key is missing.

        Returns:
            A report with the bytes read, and what each step skipped.

        Raises:
            SecureBloomError: The errors of :meth:`read`.
        """
        return self._answered(lambda: self.ask(asked, explain=True).explained())

    @asks(Question)
    def plan(self, asked: Question) -> ReadPlan:
        """Return the row groups that :meth:`read` would read, as :func:`secure_bloom.plan_read`.

        Args:
            where: A condition, as :meth:`read` takes it.
            columns: Columns, or dotted members of structures, in this order; by default all.
            limit: Does not shorten a plan.
            parameters: The values of ``:name`` in a condition that is a text.
            without_filter_keys: Leave out a condition on a column whose key is missing.

        Returns:
            A plan with the files that are left, and their row groups.

        Raises:
            SecureBloomError: The errors of :meth:`read`.
        """
        return self._answered(lambda: self.ask(asked).plan())

    @asks(Question)
    def count(self, asked: Question) -> int:
        """Return the number of rows for which ``where`` is true.

        Args:
            where: A condition, as :meth:`read` takes it; by default all rows.
            columns: Changes nothing.
            limit: Number of rows after which counting stops.
            parameters: The values of ``:name`` in a condition that is a text.
            without_filter_keys: Leave out a condition on a column whose key is missing.
            missing_keys: What becomes of a column whose key is missing, as :meth:`read` takes it.

        Returns:
            A number of rows.

        Raises:
            SecureBloomError: The errors of :meth:`read`.
        """
        counted_by = replace(asked, columns=[self.countable(self.columns)])

        def count() -> int:
            return sum(batch.num_rows for batch in self.ask(counted_by).batches())

        return self._answered(count)

    @checked_arguments
    def head(self, rows: int = 5) -> pa.Table:
        """Return the first rows.

        Args:
            rows: How many, at most.

        Returns:
            A table of these rows.

        Raises:
            SecureBloomError: The errors of :meth:`read`.
        """
        return self.read(limit=rows)

    @asks(Question)
    def to_pandas(self, asked: Question) -> Any:
        """Return the rows of :meth:`read` as a DataFrame of pandas.

        Args:
            where: A condition, as :meth:`read` takes it.
            columns: Columns, or dotted members of structures, in this order; by default all.
            limit: Number of rows after which the read stops.
            parameters: The values of ``:name`` in a condition that is a text.
            without_filter_keys: Leave out a condition on a column whose key is missing.
            missing_keys: What becomes of a column whose key is missing, as :meth:`read` takes it.

        Returns:
            A DataFrame.

        Raises:
            MissingExtraError: pandas is not installed.
            SecureBloomError: The errors of :meth:`read`.
        """
        rows = self._answered(lambda: self.ask(asked).rows())
        with imported_for("to_pandas()", "pandas"):
            return rows.to_pandas()

    @asks(Question)
    def to_polars(self, asked: Question) -> pl.DataFrame:
        """Return the rows of :meth:`read` as a DataFrame of Polars.

        Args:
            where: A condition, as :meth:`read` takes it.
            columns: Columns, or dotted members of structures, in this order; by default all.
            limit: Number of rows after which the read stops.
            parameters: The values of ``:name`` in a condition that is a text.
            without_filter_keys: Leave out a condition on a column whose key is missing.
            missing_keys: What becomes of a column whose key is missing, as :meth:`read` takes it.

        Returns:
            A DataFrame.

        Raises:
            MissingExtraError: Polars is not installed.
            SecureBloomError: The errors of :meth:`read`.
        """
        with imported_for("to_polars()", "polars"):
            import polars as pl
        return pl.DataFrame(self._answered(lambda: self.ask(asked).rows()))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return all rows as an Arrow stream, which other libraries take as a table.

        For example ``pyarrow.table(table)`` and ``polars.DataFrame(table)``.
        """
        import pyarrow as pa

        rows = self.read_batches()
        # Read ahead: what is raised inside of a stream, such as the error of a missing key, reaches
        # the caller as a trace in the text of an error of Arrow.
        first = list(itertools.islice(rows, 1))
        stream = pa.RecordBatchReader.from_batches(rows.schema, itertools.chain(first, rows))
        return stream.__arrow_c_stream__(requested_schema)

    @checked_arguments
    def probe(self, column: str, values: object) -> ProbeReport:
        """Ask the filters of ``column`` for each of ``values``, as :func:`secure_bloom.probe` does.

        Args:
            column: The dotted path of the column.
            values: One value, or a collection, written as a person would (text) or as Python has it
                (int, Decimal, datetime, ...).

        Returns:
            A report with a verdict for each value and row group: absent, maybe or no filter.

        Raises:
            PolicyError: No file has the column, or it cannot hold a value of that kind.
        """
        files = self._current()
        return TableProbe(files, column, values, self._kept(files)).report()

    @checked_arguments
    def scan_polars(self, *, missing_keys: str | None = None) -> pl.LazyFrame:
        """Return the table as a LazyFrame of Polars, which is read when it is collected.

        Columns, predicates and the number of rows are pushed down as far as they can be.  Polars
        applies its predicates once more, so conditions on floating-point columns, computed values
        and casts work, but rule nothing out.

        Args:
            missing_keys: What becomes of a column whose key is missing, as :func:`open_table`
                takes it; by default what was given there.  A predicate on a column that is null for
                that reason is an error where Polars pushes it down.

        Returns:
            A LazyFrame.

        Raises:
            MissingExtraError: Polars is not installed.

        Example:
            >>> table = sb.open_table("out/", policy="keys/policy.toml")
            >>> table.scan_polars().filter(pl.col("email") == "user7@example.com").collect().height
            1
        """
        from secure_bloom.reading.polars_scan import scan

        return scan(self, self.missing_keys(missing_keys))

    @checked_arguments
    def sql(
        self,
        query: str,
        tables: Mapping[str, Table] | None = None,
        *,
        parameters: Mapping[str, object] | None = None,
        missing_keys: str | None = None,
    ) -> pa.Table:
        """Return the rows of a SQL query over this table, as :func:`secure_bloom.sql` does.

        The query names this table ``self``, or by the path or the last part of the path that it was
        opened with.

        Args:
            query: One SELECT statement in DuckDB's dialect.
            tables: Other open tables, by their names in the query.
            parameters: The values of ``$name`` in the query.
            missing_keys: What becomes of a column whose key is missing, as :func:`open_table`
                takes it; by default what was given there.

        Returns:
            A table of the rows of the answer.

        Raises:
            PolicyError: The query cannot be parsed or run, or names another table.

        Example:
            >>> table = sb.open_table("out/", policy="keys/policy.toml")
            >>> table.sql("SELECT count(*) AS n FROM self WHERE country = 'it'").to_pylist()
            [{'n': 10}]
        """
        from secure_bloom.reading.query_errors import OWN_ROWS
        from secure_bloom.reading.sql_query import OpenQuery, by_name

        own = {"self", *self._given, *(it.rstrip("/").rpartition("/")[2] for it in self._given)}
        known = dict.fromkeys(map(str.lower, own), self) | by_name("tables", tables)
        with OpenQuery(query) as opened:
            for name in opened.table_names:
                if name.lower() not in known:
                    raise PolicyError(
                        f"the query names the table {legible(name)}, which was not given",
                        hint="this table is called self; give others as tables={NAME: table}",
                    )
                kind = type(known[name.lower()])
                if not issubclass(kind, Table):
                    raise PolicyError(
                        f"{legible(name)} is a {kind.__name__}, wanted an open table",
                        hint="give tables={NAME: secure_bloom.open_table(PATH)}; DuckDB and Polars "
                        f"join scan_polars() with rows in memory; {OWN_ROWS}",
                    )
            named = {name: known[name.lower()] for name in opened.table_names}
            return opened.run(named, parameters, missing_keys).read_all()

    def ask(
        self,
        question: Question,
        *,
        explain: bool = False,
        unused: frozenset[Member] = frozenset(),
    ) -> TableRead:
        """Return one read. Take its batches or its plan, then its report.

        ``unused`` are members of structures to be left out.
        """
        from secure_bloom.reading.table_read import TableRead

        files = self._current()
        return TableRead(
            files,
            self._access,
            question,
            self._kept(files),
            missing_keys=self.missing_keys(question.missing_keys),
            explain=explain,
            unused=unused,
        )

    def refuse_output(self, output: Path, form: str) -> str | None:
        """Raise PolicyError if rows in ``output`` would replace or join the table's files.

        Return a note if other readers of the table's folder would take the rows for a file of it.
        """
        is_data = form == "parquet" or output.name.lower().endswith(DATA_SUFFIXES)
        return refuse_rows(
            output, is_data=is_data, given=self._given, listing=self._opened().listing
        )

    def missing_keys(self, given: str | None = None) -> MissingKeys:
        """Return how hidden columns are read: as ``given``, else as chosen in ``open_table``.

        Raises PolicyError for another text.
        """
        if given is None:
            return self._missing_keys
        return member_of(MissingKeys, "missing_keys", given)

    def refresh(self) -> None:
        """Read the current state of the table. Nothing is read again of files that did not change.

        Raises: PolicyError: The table is gone, or the version that was asked for.
        """
        with self._lock:
            self._renew(self._opened(), listed=False)

    def close(self) -> None:
        """Drop keys, footers and filters. A read that has begun continues to its end."""
        if self._files is not None:
            self._files.close()
        self._files = self._columns = None
        self._access = replace(self._access, keys=None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Table {self._title()}: {self._summary()}>"

    def _repr_html_(self) -> str:
        import html

        rows = "".join(
            f"<tr><td>{html.escape(legible(field.name))}</td>"
            f"<td>{html.escape(legible(str(field.type)))}{_mark(field)}</td></tr>"
            for field in (() if self._files is None else self.schema)
        )
        head = "<thead><tr><th>column</th><th>type</th></tr></thead>"
        return f"<p>{html.escape(repr(self))}</p><table>{head}<tbody>{rows}</tbody></table>"

    def _title(self) -> str:
        more = f" and {len(self._given) - 1:,} more" if len(self._given) > 1 else ""
        return legible(self._given[0]) + more if self._given else "of no paths"

    def _summary(self) -> str:
        if self._files is None:
            return "closed"
        shown = counted(len(self._files), "file")
        if self._memory is None:
            return shown
        filters = 0 if self._columns is None else self._columns.memory
        footers = self._memory.used - filters
        return (
            f"{shown}, {human_bytes(footers)} of footers and {human_bytes(filters)} of filters kept"
        )

    def __reduce__(self) -> tuple[object, ...]:
        if self._access.keys is not None and self._access.policy is None:
            raise PolicyError(
                "the table was opened with keys=, and keys are not pickled",
                hint="open it with policy=: the other process asks the policy's KMS",
            )
        return Table, (self._asked,)

    def hidden(self, missing_keys: MissingKeys) -> HiddenColumns:
        """Return the columns whose key is missing, as a read with ``missing_keys`` sees them."""
        from secure_bloom.predicates.bound_request import HiddenColumns

        is_error = missing_keys is MissingKeys.ERROR
        members = frozenset[tuple[str, ...]]() if is_error else self.hidden_members()
        return HiddenColumns(mode=missing_keys, members=members)

    def shown_schema(self, hidden: HiddenColumns) -> pa.Schema:
        """Return the columns as a read shows them."""
        import pyarrow as pa

        found = map(hidden.shown, self._opened().whole_schema)
        return pa.schema([column for column in found if column is not None])

    def intervals(self) -> frozenset[str]:
        """Return the columns that are an INTERVAL in every file that has them."""
        files = self._opened()
        # The columns of all files are known once the schema was asked for.
        _ = files.schema
        leaves = {leaf for columns in files.schemas for leaf in columns.leaves}
        found = {
            leaf
            for leaf in leaves
            if leaf.converted_type is ConvertedType.INTERVAL and len(leaf.path) == 1
        }
        return frozenset({it.name for it in found} - {it.path[0] for it in leaves - found})

    def countable(self, names: Sequence[str]) -> str:
        """Return a column by which rows are counted: the first one whose key is available."""
        return self._opened().countable(names)

    def hidden_members(self, names: Sequence[str] | None = None) -> frozenset[Member]:
        """Return the members of these columns, by default of all, whose key is missing."""
        files = self._opened()
        own = {column.name for column in files.partition_fields}
        wanted = files.whole_schema.names if names is None else names
        return files.hidden([name for name in wanted if name not in own])

    def _kept(self, files: TableFiles) -> KeptColumns | None:
        """Return the columns that are kept of this state of the files.

        Return None for a table that is opened for one question, or if the state is an older one.
        """
        if self._memory is None:
            return None
        from secure_bloom.reading.pruning.kept_columns import KeptColumns

        with self._lock:
            if self._columns is None:
                self._columns = KeptColumns(files)
            return self._columns if self._columns.files is files else None

    def _current(self) -> TableFiles:
        """Return the files. Files of a plain folder that have changed are read again.

        Raises FileChangedError for a changed file of a table with a log.
        """
        files = self._opened()
        if self._stale_after and time.monotonic() < self._fresh_until:
            return files
        try:
            files.check_unchanged()
            self._fresh_until = time.monotonic() + self._stale_after
        except FileChangedError as error:
            return self._renewed(files, error)
        return files

    def _renewed(self, files: TableFiles, error: FileChangedError) -> TableFiles:
        gone = error.path is not None and not tree_of(error.path).is_file(error.path)
        if files.is_versioned or gone:
            error.hint = "table.refresh() reads the table as it is now"
            raise error
        with self._lock:
            # Another thread may have been first.
            if self._files is files:
                self._renew(files, listed=True)
            return self._opened()

    def _renew(self, files: TableFiles, *, listed: bool) -> None:
        self._files = new = files.renewed(listed=listed)
        self._columns = None if self._columns is None else self._columns.moved(new)

    def _answered(self, ask: Callable[[], _Answer]) -> _Answer:
        """Return the answer. Ask once more if a file of a plain folder changed meanwhile."""
        files = self._files
        try:
            return ask()
        except FileChangedError as error:
            if files is None:
                raise
            self._renewed(files, error)
            return ask()

    def _opened(self) -> TableFiles:
        if self._files is None:
            raise PolicyError("the table is closed", hint="open it again: sb.open_table(...)")
        return self._files


def _mark(field: pa.Field) -> str:
    import html

    from secure_bloom.predicates.bound_request import HIDDEN

    names = (field.metadata or {}).get(HIDDEN, b"").decode()
    return f" (no key: {html.escape(legible(names))})" if names else ""
