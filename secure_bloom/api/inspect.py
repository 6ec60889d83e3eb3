"""Describe files: footers, encryption, columns, keys and filters, as far as keys allow."""

from __future__ import annotations

from datetime import datetime

from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy
from secure_bloom.inspecting.files import InspectReport, inspect_files
from secure_bloom.storage.paths import Paths, as_paths
from secure_bloom.tables import TableVersion, list_tables


@checked_arguments
def inspect(
    paths: Paths,
    *,
    keys: GivenKeys = None,
    policy: GivenPolicy = None,
    check: bool = False,
    version: int | None = None,
    timestamp: str | datetime | None = None,
    snapshot: int | None = None,
) -> InspectReport:
    """Describe files as far as keys are available. Without any key, describe what is in clear.

    A file that cannot be read is reported with its error and does not stop the others.

    Args:
        paths: Files, folders, globs or URIs, or one table with a log.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        check: Read the values of every column that has a filter, and look them up in the filter.
        version: Version of a Delta table; by default the latest.
        timestamp: Time (ISO 8601 text or datetime) instead of a version or snapshot.
        snapshot: Id of a snapshot of an Iceberg table; by default the current one.

    Returns:
        A report with a record for each file, row group and column.

    Raises:
        PolicyError: A path leads to no file.

    Example:
        >>> sb.inspect("out/", policy="keys/policy.toml")
        <InspectReport: 1 file (1 encrypted)>
    """
    resolver = Access.of(keys, policy).describing_resolver()
    at = TableVersion(version=version, timestamp=timestamp, snapshot=snapshot)
    return inspect_files(list_tables(as_paths(paths), at), resolver, check=check)
