"""Read rows of tables through statistics, dictionaries, Bloom filters and page indexes.

Each function opens a table, reads once, and closes it; :func:`open_table` keeps it open for many
lookups. Four functions share one signature: the fields of a :class:`ReadRequest`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from secure_bloom.calling.arguments import checked_arguments, takes
from secure_bloom.encryption.access import GivenKeys
from secure_bloom.reading.kept_table import Table
from secure_bloom.reading.pruning.plan import PlannedFile, ReadPlan
from secure_bloom.reading.read_report import ReadReport
from secure_bloom.reading.read_request import OpenRequest, ReadRequest
from secure_bloom.reading.table_read import planned_rows


@takes(ReadRequest)
def read_table(asked: ReadRequest) -> pa.Table:
    """Return the rows of files for which ``where`` is true, as a full scan would.

    ``where`` is a structure such as ``[("email", "=", "a@x"), ("country", "in", ["it", "no"])]``,
    nested by ``("or", ..., ...)`` and ``("and", ..., ...)``, or a mapping ``{"email": "a@x"}``.  It
    may also be an expression of pyarrow.compute or Polars, or a text as on the command line.
    Comparisons with null are not true, NaN equals nothing, and zeros are equal.  Values are
    compared exactly; those of another kind are refused.

    A row group is only decrypted if its statistics, dictionary, Bloom filter and page index do not
    rule it out.  The schema is the union of the files' schemas, hive partition columns last.
    Deleted rows of tables are left out.

    Args:
        paths: Files, folders, globs or URIs, or one table with a log.
        where: A condition as a text, a structure, or an expression of pyarrow or Polars.
        columns: Columns, or dotted members of structures, in this order; by default all.
        limit: Number of rows after which the read stops.
        parameters: The values of ``:name`` in a condition that is a text.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        without_filter_keys: Leave out a condition on a column whose key is missing. Rows may be
            returned that do not fulfil it. Only with ``missing_keys="error"``.
        missing_keys: What becomes of a column, or a member of a structure, whose key is missing:
            ``"error"`` if it is read, ``"null"`` in every row, or ``"drop"`` to leave it out.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
        version: Version of a Delta table; by default the latest.
        timestamp: Time (ISO 8601 text or datetime) instead of a version or snapshot.
        snapshot: Id of a snapshot of an Iceberg table; by default the current one.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        A table of the rows that match.

    Raises:
        KeyUnavailableError: A key is missing, and rows are left that need it.
        IntegrityError: A module does not authenticate.
        PolicyError: The request cannot be met, for example no file has a column.

    Example:
        >>> where = "email = 'user7@example.com'"
        >>> sb.read_table("out/", where=where, policy="keys/policy.toml").num_rows
        1
    """
    with Table(asked) as table:
        return table.ask(asked).rows()


@takes(ReadRequest)
def read_batches(asked: ReadRequest) -> pa.RecordBatchReader:
    """Return the rows of :func:`read_table` in batches, with few of them in memory at a time.

    The batches are an Arrow stream (``__arrow_c_stream__``), which DuckDB, Polars and other
    libraries take without a copy.

    Args:
        paths: Files, folders, globs or URIs, or one table with a log.
        where: A condition, as :func:`read_table` takes it.
        columns: Columns, or dotted members of structures, in this order; by default all.
        limit: Number of rows after which the read stops.
        parameters: The values of ``:name`` in a condition that is a text.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        without_filter_keys: Leave out a condition on a column whose key is missing. Rows may be
            returned that do not fulfil it. Only with ``missing_keys="error"``.
        missing_keys: What becomes of a column, or a member of a structure, whose key is missing:
            ``"error"`` if it is read, ``"null"`` in every row, or ``"drop"`` to leave it out.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
        version: Version of a Delta table; by default the latest.
        timestamp: Time (ISO 8601 text or datetime) instead of a version or snapshot.
        snapshot: Id of a snapshot of an Iceberg table; by default the current one.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        An iterator of record batches, which can be read once.

    Raises:
        SecureBloomError: The errors of :func:`read_table`.

    Example:
        >>> batches = sb.read_batches("out/", columns="id", policy="keys/policy.toml")
        >>> sum(batch.num_rows for batch in batches)
        40
    """
    with Table(asked) as table:
        return table.ask(asked).stream()


@takes(ReadRequest)
def explain(asked: ReadRequest) -> ReadReport:
    """Read as :func:`read_table` does, drop the rows, and return what was read and why.

    Args:
        paths: Files, folders, globs or URIs, or one table with a log.
        where: A condition, as :func:`read_table` takes it.
        columns: Columns, or dotted members of structures, in this order; by default all.
        limit: Number of rows after which the read stops.
        parameters: The values of ``:name`` in a condition that is a text.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        without_filter_keys: Leave out a condition on a column whose key is missing. Rows may be
            returned that do not fulfil it. Only with ``missing_keys="error"``.
        missing_keys: What becomes of a column, or a member of a structure, whose key is missing:
            ``"error"`` if it is read, ``"null"`` in every row, or ``"drop"`` to leave it out.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
        version: Version of a Delta table; by default the latest.
        timestamp: Time (ISO 8601 text or datetime) instead of a version or snapshot.
        snapshot: Id of a snapshot of an Iceberg table; by default the current one.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        A report with the bytes read, and what each step skipped.

    Raises:
        SecureBloomError: The errors of :func:`read_table`.

    Example:
        >>> where = [("email", "=", "user2x@example.com")]
        >>> sb.explain("out/", where=where, policy="keys/policy.toml").skipped
        {'Bloom filter': 2}
    """
    with Table(asked) as table:
        return table.ask(asked, explain=True).explained()


@takes(ReadRequest)
def plan_read(asked: ReadRequest) -> ReadPlan:
    """Return the row groups that :func:`read_table` would read, for :func:`read_row_groups`.

    The plan can be pickled and read elsewhere.  A ``limit`` does not shorten it.

    Args:
        paths: Files, folders, globs or URIs, or one table with a log.
        where: A condition, as :func:`read_table` takes it.
        columns: Columns, or dotted members of structures, in this order; by default all.
        limit: Number of rows after which the read stops.
        parameters: The values of ``:name`` in a condition that is a text.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        without_filter_keys: Leave out a condition on a column whose key is missing. Rows may be
            returned that do not fulfil it. Only with ``missing_keys="error"``.
        missing_keys: What becomes of a column, or a member of a structure, whose key is missing:
            ``"error"`` if it is read, ``"null"`` in every row, or ``"drop"`` to leave it out.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
        version: Version of a Delta table; by default the latest.
        timestamp: Time (ISO 8601 text or datetime) instead of a version or snapshot.
        snapshot: Id of a snapshot of an Iceberg table; by default the current one.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        A plan with the files that are left, and their row groups.

    Raises:
        SecureBloomError: The errors of :func:`read_table`.

    Example:
        >>> where = "email = 'user7@example.com'"
        >>> plan = sb.plan_read("out/", where=where, policy="keys/policy.toml")
        >>> [len(file.row_groups) for file in plan.files]
        [1]
    """
    with Table(asked) as table:
        return table.ask(asked).plan()


@checked_arguments
def read_row_groups(
    plan: ReadPlan, file: PlannedFile, *, keys: GivenKeys = None
) -> Iterator[pa.RecordBatch]:
    """Yield the matching rows of one file of a plan, in the plan's schema.

    Args:
        plan: The result of :func:`plan_read`, with or without its files.
        file: One file of a plan.
        keys: A keyring or KMS client; by default the KMS of the plan's policy.

    Returns:
        An iterator of record batches.

    Raises:
        FileChangedError: The file is not the one that was planned.

    Example:
        >>> where = "email = 'user7@example.com'"
        >>> plan = sb.plan_read("out/", where=where, policy="keys/policy.toml")
        >>> keys = sb.Keyring.load("keys/dev-keyring.json")
        >>> [file] = plan.files
        >>> sum(batch.num_rows for batch in sb.read_row_groups(plan, file, keys=keys))
        1
    """
    return planned_rows(plan, file, keys)


@takes(OpenRequest)
def open_table(asked: OpenRequest) -> Table:
    """Open a table, and keep what every lookup would read again.

    The listing, the footers and the unwrapped data keys stay in memory until the table is closed,
    and so do the bounds and filters of columns in earlier conditions.  What does not fit
    into ``memory`` is read at each question; the column that was used longest ago is dropped first.
    The table shows its state at the opening; :meth:`Table.refresh` reads what changed since.

    Args:
        paths: Files, folders, globs or URIs, or one table with a log.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        version: Version of a Delta table; by default the latest.
        timestamp: Time (ISO 8601 text or datetime) instead of a version or snapshot.
        memory: The most that is kept: a number of bytes, or a text such as ``"256MiB"``.
        stale_after: For this many seconds after local files were found unchanged, questions are
            answered without looking at them again. By default each question looks at each file,
            which takes about 2 microseconds a file.
        missing_keys: What becomes of a column, or a member of a structure, whose key is missing:
            ``"error"`` when it is read, ``"null"`` in every row, or ``"drop"`` to leave it out.
        snapshot: Id of a snapshot of an Iceberg table; by default the current one.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.

    Returns:
        A table: :meth:`~Table.read`, :meth:`~Table.read_batches`, :meth:`~Table.explain` and
        :meth:`~Table.probe` ask it.

    Raises:
        KeyUnavailableError: The key of a footer is missing.
        IntegrityError: A footer does not authenticate.
        PolicyError: There is no such table, or no such version of it.

    Example:
        >>> with sb.open_table("out/", policy="keys/policy.toml") as table:
        ...     [table.read(f"email = 'user{n}@example.com'").num_rows for n in (7, 8)]
        [1, 1]
    """
    table = Table(asked)
    # All footers are read now: what cannot be read is an error of the opening.
    _ = table.columns
    return table
