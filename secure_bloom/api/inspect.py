"""Describe files: what they contain, and which master keys they depend on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.calling.options import Names, as_names
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy
from secure_bloom.lakes import TableVersion, list_tables
from secure_bloom.storage.paths import Paths, as_paths
from secure_bloom.storage.storage_options import with_storage_options

if TYPE_CHECKING:
    from secure_bloom.inspecting.files import InspectReport
    from secure_bloom.inspecting.key_use import KeyUseReport


@checked_arguments
@with_storage_options
def inspect(
    paths: Paths,
    *,
    keys: GivenKeys = None,
    policy: GivenPolicy = None,
    check: bool = False,
    version: int | None = None,
    timestamp: str | datetime | None = None,
    snapshot: int | None = None,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
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
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        A report with a record for each file, row group and column.

    Raises:
        PolicyError: A path leads to no file.

    Example:
        >>> sb.inspect("out/", policy="keys/policy.toml")
        <InspectReport: 1 file (1 encrypted)>
    """
    # Imported here and below: each door loads its own work.
    from secure_bloom.inspecting.files import inspect_files

    resolver = Access.of(keys, policy).describing_resolver()
    at = TableVersion(version=version, timestamp=timestamp, snapshot=snapshot)
    return inspect_files(list_tables(as_paths(paths), at), resolver, check=check)


@checked_arguments
@with_storage_options
def keys_used(
    paths: Paths,
    *,
    keys: GivenKeys = None,
    policy: GivenPolicy = None,
    only: Names = (),
    version: int | None = None,
    timestamp: str | datetime | None = None,
    snapshot: int | None = None,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> KeyUseReport:
    """Return the master keys, and versions of them, that open the footers and columns of files.

    Names of keys are in clear. Only an encrypted footer hides the names of its columns' keys.  With
    a policy, the report says which keys are retired, and which the policy does not name.  Files in
    the folders that readers skip, such as copies and older versions of a table, are looked at too,
    unless a version is asked for.  What cannot be looked at is in ``incomplete``.

    Args:
        paths: Files, folders, globs or URIs, or one table with a log.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        only: Master keys to report. Files that depend on none of them are left out, unless their
            footers were not opened.
        version: Version of a Delta table; by default the latest.
        timestamp: Time (ISO 8601 text or datetime) instead of a version or snapshot.
        snapshot: Id of a snapshot of an Iceberg table; by default the current one.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        A report with ``files``, ``files_by_key``, ``unused`` and ``incomplete``.

    Raises:
        PolicyError: A path leads to no file.

    Example:
        >>> sb.keys_used("out/").files_by_key[("k_footer", None)]
        1
    """
    from secure_bloom.inspecting.key_use import find_key_use
    from secure_bloom.inspecting.skipped_files import skipped_files

    access = Access.of(keys, policy)
    resolver, names = access.describing_resolver(), as_names("only", only)
    at = TableVersion(version=version, timestamp=timestamp, snapshot=snapshot)
    given = as_paths(paths)
    listing = list_tables(given, at)
    skipped = skipped_files(given, listing) if at.is_latest else None
    return find_key_use(listing, skipped, resolver, access, names)
