"""Open a table once for many lookups: its listing, footers, keys and filters stay in memory."""

from __future__ import annotations

from secure_bloom.calling.arguments import takes
from secure_bloom.reading.kept_table import Table
from secure_bloom.reading.read_request import OpenRequest


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
