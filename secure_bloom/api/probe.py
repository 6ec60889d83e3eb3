"""Probe filters: whether a row group may hold a value, for files, folders, globs and tables.

Only footers and filters are read.  This loads neither pyarrow nor numpy.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from secure_bloom.bloom.verdicts import ProbeReport
from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.encryption.access import GivenKeys, GivenPolicy
from secure_bloom.reading.kept_table import Table
from secure_bloom.reading.read_request import TableRequest
from secure_bloom.storage.paths import Paths


@checked_arguments
def probe(
    paths: Paths,
    column: str,
    values: object,
    *,
    keys: GivenKeys = None,
    policy: GivenPolicy = None,
    allow_unverified: bool = False,
    allow_unprotected: bool = False,
    version: int | None = None,
    timestamp: str | datetime | None = None,
    snapshot: int | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> ProbeReport:
    """Ask the filters of ``column`` for each of ``values``, per file and row group.

    A file that cannot be probed is reported with its error and does not stop the others.  A value
    of a deleted row may be there.

    Args:
        paths: Files, folders, globs or URIs, or one table with a log.
        column: The dotted path of the column.
        values: One value, or a collection, written as a person would (text) or as Python has it
            (int, Decimal, datetime, ...).
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
        version: Version of a Delta table; by default the latest.
        timestamp: Time (ISO 8601 text or datetime) instead of a version or snapshot.
        snapshot: Id of a snapshot of an Iceberg table; by default the current one.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        A report with a verdict for each value and row group: absent, maybe or no filter.

    Raises:
        PolicyError: No file has the column, or it cannot hold a value of that kind.

    Example:
        >>> sb.probe("out/", "email", "ada@example.org", policy="keys/policy.toml")
        <ProbeReport: column email, 1 file, 0 of 2 row groups may hold a value>
    """
    asked = TableRequest(
        paths,
        keys=keys,
        policy=policy,
        allow_unverified=allow_unverified,
        allow_unprotected=allow_unprotected,
        version=version,
        timestamp=timestamp,
        snapshot=snapshot,
        storage_options=storage_options,
    )
    with Table(asked) as table:
        return table.probe(column, values)
